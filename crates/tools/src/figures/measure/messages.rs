//! MPI messages of two ranks, with the protocol of the Rendezvous document's baseline: rendezvous by
//! RDMA read, and no progress while the program computes.

use super::{Measured, Rank, WARM_UP, each, first, text, world};
use crate::figures::workload::{Memory, Side};
use std::rc::Rc;
use weft_datatype::{Basic, Predefined};
use weft_fabric::{Fabric, Work};
use weft_fabric_sim::units::{Picoseconds, Time};
use weft_fabric_sim::{Machine, Options};
use weft_p2p::{Limits, Mode};
use weft_process::{Active, Buffer, Destination, Origin};

/// Messages under way at once in the bandwidth test, as in the OSU benchmarks.
const WINDOW: usize = 64;
const TAG: i32 = 1;

/// Rendezvous from 8 KiB on, as MVAPICH was measured: Rendezvous, section 5.4.
fn limits() -> Limits {
    Limits { eager: (8 << 10) - 1, ..Limits::default() }
}

/// The machine as it is, or one on which registration has been paid for.
fn registered(machine: &Rc<Machine>, memory: Memory) -> Rc<Machine> {
    let mut paid = Machine::clone(machine);
    if memory == Memory::Once {
        (paid.host.registration, paid.host.registration_page) = (Time(0), Time(0));
    }
    Rc::new(paid)
}

impl Rank {
    /// Sizes only: no byte is moved.
    fn data(&self, bytes: usize) -> Buffer {
        Buffer::phantom(bytes, Predefined::new().of(Basic::BYTE).clone())
    }

    fn send(&self, bytes: usize) -> Active {
        let to = Destination::Rank(1 - self.comm.rank());
        self.comm.isend(&self.data(bytes), to, TAG, Mode::Standard)
    }

    fn receive(&self, bytes: usize) -> Active {
        self.comm.irecv(&self.data(bytes), Origin::Rank(1 - self.comm.rank()), Some(TAG))
    }

    async fn finish(&self, active: Active) -> Result<(), String> {
        self.comm.finished(active).await.map(|_| ()).map_err(text)
    }
}

/// Bytes a microsecond from rank 0 to rank 1: windows of messages, each answered by an empty one.
pub fn bandwidth(machine: &Rc<Machine>, bytes: usize, memory: Memory, rounds: usize) -> Measured {
    let machine = &registered(machine, memory);
    let outcome = world(machine, Options::new(2), limits(), |rank| async move {
        let mut start = 0;
        for round in 0..WARM_UP + rounds {
            if round == WARM_UP {
                start = rank.sim.clock();
            }
            let sends = rank.comm.rank() == 0;
            let begin = || if sends { rank.send(bytes) } else { rank.receive(bytes) };
            let window: Vec<_> = (0..WINDOW).map(|_| begin()).collect();
            for active in window {
                rank.finish(active).await?;
            }
            let answer = if sends { rank.receive(0) } else { rank.send(0) };
            rank.finish(answer).await?;
        }
        Ok((bytes * WINDOW) as f64 / each(start, rank.sim.clock(), rounds))
    })?;
    first(&outcome)
}

/// Mean time in microseconds of an iteration at the side that is looked at: start the message,
/// compute for `work`, wait.
fn iteration(
    machine: &Rc<Machine>,
    bytes: usize,
    side: Side,
    work: Picoseconds,
    rounds: usize,
) -> Measured {
    let outcome = world(machine, Options::new(2), limits(), |rank| async move {
        let sends = (rank.comm.rank() == 0) == (side == Side::Sender);
        let mut spent = 0;
        for round in 0..WARM_UP + rounds {
            // A sender finds the receive posted; a receiver posts it before the sender begins.
            let early = (!sends).then(|| rank.receive(bytes));
            rank.comm.barrier().await.map_err(text)?;
            let start = rank.sim.clock();
            let active = early.unwrap_or_else(|| rank.send(bytes));
            if rank.comm.rank() == 0 {
                rank.sim.charge(Work::Compute(work));
            }
            rank.finish(active).await?;
            if round >= WARM_UP {
                spent += rank.sim.clock() - start;
            }
        }
        Ok(each(0, spent, rounds))
    })?;
    first(&outcome)
}

/// Application availability as the Sandia MPI Micro-Benchmarks define it: with as much work beside the
/// message that it alone decides how long an iteration takes, the part of the message's own time that
/// was free for work, in percent: `1 - (iteration - work) / time without work`.
pub fn availability(
    machine: &Rc<Machine>,
    bytes: usize,
    side: Side,
    memory: Memory,
    rounds: usize,
) -> Measured {
    /// An iteration this much longer than without work is long enough.
    const LONG: f64 = 1.5;
    let machine = &registered(machine, memory);
    let base = iteration(machine, bytes, side, 0, rounds)?;
    let mut work = base;
    loop {
        let time = iteration(machine, bytes, side, (work * 1e6) as Picoseconds, rounds)?;
        if time >= LONG * base {
            return Ok(100.0 * (1.0 - (time - work) / base));
        }
        work *= 2.0;
    }
}

/// 1 if a message of `bytes` is read by its receiver, 0 if its payload is sent.
pub fn is_rendezvous(machine: &Rc<Machine>, bytes: usize) -> Measured {
    let outcome = world(machine, Options::new(2), limits(), |rank| async move {
        let active = match rank.comm.rank() {
            0 => rank.send(bytes),
            _ => rank.receive(bytes),
        };
        rank.finish(active).await?;
        Ok(0.0)
    })?;
    first(&outcome)?;
    Ok(if outcome.counts.reads > 0 { 1.0 } else { 0.0 })
}
