//! Progress of a rendezvous while the program computes: the designs that the Rendezvous document compares and ours, for ranks of
//! a simulated cluster.
//!
//! ```text
//!                 what wakes the helper             what it does                     main thread in the library
//!   none          there is none                                                       polls
//!   locked        offers, ends, reads that are over  moves messages, under a lock     polls, under the same lock
//!   signal        offers                             signals the main thread          polls; signals are ignored
//!   handover      what is sent solicited, reads      moves messages                   polls; the helper stands back
//! ```
//! The designs are here and not in the crate of patterns, because they need threads, interrupts and signals of the simulator. On
//! real machines the library has its own helper ([`weft_fabric::wait::HelperHandle`]).

mod handover;
mod locked;
mod signal;
#[cfg(test)]
mod tests;

use super::{SimRank, text};
use crate::workload::Progress;
use locked::{LibraryLock, LockWait};
use signal::Gate;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use weft_datatype::{Basic, Predefined, Type};
use weft_fabric_sim::machine::SchedulerPolicy;
use weft_fabric_sim::units::{Count, MICROSECOND, Picoseconds, Time};
use weft_fabric_sim::{InterruptEvent, Machine, Sim};
use weft_p2p::{ProtocolLimits, SendMode};
use weft_process::{Active, Buffer, Destination, Origin};

const TAG: i32 = 1;

/// Returns limits with rendezvous from 8 KiB on, as in the document's measurements of MVAPICH (section 5.4).
pub fn limits() -> ProtocolLimits {
    // With `prepares`, handlers have room to post reads.
    ProtocolLimits { eager: (8 << 10) - 1, prepares: true, ..ProtocolLimits::default() }
}

/// Returns the machine with this policy for all threads.
pub fn under(machine: &Rc<Machine>, policy: SchedulerPolicy) -> Rc<Machine> {
    let mut other = Machine::clone(machine);
    other.scheduler.policy = policy;
    Rc::new(other)
}

/// Returns the machine with the scheduling policy that a design gets if the document names none. This is round robin, which the
/// document found best for its own design. The existing design keeps the machine's policy.
pub fn usual(machine: &Rc<Machine>, design: Progress) -> Rc<Machine> {
    match design {
        Progress::Locked | Progress::Spinning => machine.clone(),
        Progress::SpinningApart => {
            let mut wider = Machine::clone(machine);
            wider.scheduler.cores = Count(2);
            Rc::new(wider)
        }
        _ => under(machine, SchedulerPolicy::RoundRobin),
    }
}

/// Returns the machine with registration that costs no time, as if all memory had been registered before.
pub fn registered(machine: &Rc<Machine>) -> Rc<Machine> {
    let mut paid = Machine::clone(machine);
    (paid.host.registration, paid.host.registration_page) = (Time(0), Time(0));
    Rc::new(paid)
}

enum HelperDesign {
    None,
    Locked(Rc<LibraryLock>),
    Signal(Rc<Gate>),
    Handover,
}

/// A rank's program, which calls the library under one of the designs.
pub struct DesignProgram {
    pub rank: SimRank,
    helper: HelperDesign,
    byte: Type,
    waited: Cell<Picoseconds>,
}

/// Returns the highest priority that a helper can request. Under Linux's default policy, all threads have this priority. Under the
/// other policies, it is higher than the priority of the main thread.
fn highest(policy: SchedulerPolicy) -> i32 {
    match policy {
        SchedulerPolicy::Dynamic => 0,
        SchedulerPolicy::Fifo | SchedulerPolicy::RoundRobin => 1,
    }
}

impl DesignProgram {
    /// Starts the design's helper, if it has one.
    pub fn new(rank: SimRank, design: Progress, machine: &Machine) -> DesignProgram {
        let priority = highest(machine.scheduler.policy);
        let switch = machine.scheduler.switch.0;
        let helper = match design {
            Progress::None => HelperDesign::None,
            Progress::Locked | Progress::Spinning | Progress::SpinningApart => {
                let wait = match design {
                    Progress::Locked => LockWait::Sleep,
                    _ => LockWait::Spin,
                };
                let lock = LibraryLock::new(&rank.sim, machine.host.call.0, switch, wait);
                locked::start(&rank, &lock, priority);
                HelperDesign::Locked(lock)
            }
            Progress::Signal | Progress::SignalTwice => {
                let gate = Rc::new(Gate::default());
                let event = match design {
                    Progress::SignalTwice => InterruptEvent::SolicitedOrDone,
                    _ => InterruptEvent::Solicited,
                };
                signal::start(&rank, &gate, priority, event);
                HelperDesign::Signal(gate)
            }
            Progress::Handover => {
                handover::start(&rank, priority);
                HelperDesign::Handover
            }
        };
        let byte = Predefined::new().of(Basic::BYTE).clone();
        DesignProgram { rank, helper, byte, waited: Cell::new(0) }
    }

    /// Runs MPI_Init, which waits for the other ranks. The helper sleeps when this function returns.
    pub async fn begin(&self) -> Result<(), String> {
        self.sim().sleep(MICROSECOND).await;
        self.together().await
    }

    pub fn sim(&self) -> &Sim {
        &self.rank.sim
    }

    /// Returns the time spent in [`DesignProgram::finish`] since the last call of this function.
    pub fn waited(&self) -> Picoseconds {
        self.waited.take()
    }

    /// Returns a buffer that has a size but no bytes, so that nothing is copied.
    fn data(&self, bytes: usize) -> Buffer {
        Buffer::phantom(bytes, self.byte.clone())
    }

    pub fn send(&self, bytes: usize, to: usize) -> Active {
        self.rank.comm.isend(&self.data(bytes), Destination::Rank(to), TAG, SendMode::Standard)
    }

    pub fn receive(&self, bytes: usize, from: usize) -> Active {
        if let HelperDesign::Signal(gate) = &self.helper {
            gate.posted();
        }
        self.rank.comm.irecv(&self.data(bytes), Origin::Rank(from), Some(TAG))
    }

    /// Waits for an operation, like MPI_Wait.
    pub async fn finish(&self, mut active: Active) -> Result<(), String> {
        let (start, endpoint) = (self.sim().clock(), self.rank.comm.engine().endpoint().clone());
        let receives = matches!(active, Active::Receive { .. });
        let outcome = poll_fn(|_| {
            self.look();
            match active.poll(&endpoint) {
                Some(outcome) => Poll::Ready(outcome),
                None => Poll::Pending,
            }
        })
        .await;
        if let HelperDesign::Signal(gate) = &self.helper
            && receives
        {
            gate.received();
        }
        self.waited.set(self.waited.get() + self.sim().clock() - start);
        outcome.error.map_or(Ok(()), |error| Err(text(error)))
    }

    /// Runs MPI_Barrier.
    pub async fn together(&self) -> Result<(), String> {
        let mut barrier = pin!(self.rank.comm.barrier());
        let endpoint = self.rank.comm.engine().endpoint();
        poll_fn(|cx| {
            self.look();
            let polled = barrier.as_mut().poll(cx);
            // Polls in every wait, because a helper that waits for the lock can get the lock only between two polls.
            endpoint.last_wait();
            polled
        })
        .await
        .map_err(text)
    }

    /// Computes outside of the library.
    pub async fn compute(&self, time: Picoseconds) {
        let sim = self.sim();
        match &self.helper {
            HelperDesign::None | HelperDesign::Handover => sim.compute(time).await,
            HelperDesign::Locked(lock) => {
                lock.leave();
                sim.compute(time).await;
                lock.enter();
            }
            HelperDesign::Signal(gate) => {
                gate.leave();
                // Handles messages that arrived while signals were ignored.
                sim.catch_up().await;
                self.rank.comm.engine().progress();
                sim.compute(time).await;
                gate.enter();
            }
        }
    }

    /// Polls the library once, as the main thread.
    fn look(&self) {
        if let HelperDesign::Locked(lock) = &self.helper {
            lock.round();
        }
    }
}
