//! MPI messages of two ranks by rendezvous with RDMA read, under a design that makes progress while the program computes.

use super::progress::{DesignProgram, limits, registered, under, usual};
use super::{Measured, WARM_UP, each, first, world};
use crate::workload::{ComputingSide, Overlap, Progress, RegistrationPolicy};
use std::rc::Rc;
use weft_fabric_sim::machine::SchedulerPolicy;
use weft_fabric_sim::units::{MICROSECOND, Picoseconds};
use weft_fabric_sim::{Machine, SimOptions};

/// Maximum number of messages under way in the bandwidth test, as in the OSU benchmarks.
const WINDOW: usize = 64;
/// Time that the bandwidth test needs for smaller messages, before the first rendezvous: 110 windows of each size from 1 byte to 4
/// KiB, at half a microsecond a message and 1400 MB/s. The time matters because a scheduler remembers how long a thread has run and
/// slept.
const BEFORE: Picoseconds = 125_000 * MICROSECOND;

fn prepared(machine: &Rc<Machine>, memory: RegistrationPolicy) -> Rc<Machine> {
    match memory {
        RegistrationPolicy::Once => registered(machine),
        RegistrationPolicy::Each => machine.clone(),
    }
}

/// Messages whose bandwidth is measured.
pub struct WindowedTransfer {
    pub memory: RegistrationPolicy,
    pub progress: Progress,
    /// Scheduling policy of all threads. `None` stands for the policy of the design.
    pub policy: Option<SchedulerPolicy>,
}

/// Returns the bandwidth from rank 0 to rank 1 in bytes per microsecond. Rank 0 sends windows of messages, and rank 1 answers each
/// window with an empty message.
pub fn bandwidth(
    machine: &Rc<Machine>,
    bytes: usize,
    transfer: WindowedTransfer,
    rounds: usize,
) -> Measured {
    let WindowedTransfer { memory, progress: design, policy } = transfer;
    let machine = prepared(machine, memory);
    let machine = &policy.map_or_else(|| usual(&machine, design), |policy| under(&machine, policy));
    let outcome = world(machine, SimOptions::new(2), limits(), |rank| {
        let program = DesignProgram::new(rank, design, machine);
        async move {
            let me = program.rank.comm.rank();
            program.begin().await?;
            program.sim().compute(BEFORE).await;
            let mut start = 0;
            for round in 0..WARM_UP + rounds {
                if round == WARM_UP {
                    start = program.sim().clock();
                }
                let begin =
                    || if me == 0 { program.send(bytes, 1) } else { program.receive(bytes, 0) };
                let window: Vec<_> = (0..WINDOW).map(|_| begin()).collect();
                for active in window {
                    program.finish(active).await?;
                }
                let answer = if me == 0 { program.receive(0, 1) } else { program.send(0, 0) };
                program.finish(answer).await?;
            }
            Ok((bytes * WINDOW) as f64 / each(start, program.sim().clock(), rounds))
        }
    })?;
    first(&outcome)
}

/// Returns the mean time in microseconds of an iteration at the measured rank, which starts the message, computes for `work`, and
/// waits.
fn iteration(
    machine: &Rc<Machine>,
    bytes: usize,
    overlap: &Overlap,
    work: Picoseconds,
    rounds: usize,
) -> Measured {
    let Overlap { side, progress: design, .. } = *overlap;
    let outcome = world(machine, SimOptions::new(2), limits(), |rank| {
        let program = DesignProgram::new(rank, design, machine);
        async move {
            let me = program.rank.comm.rank();
            let sends = (me == 0) == (side == ComputingSide::Sender);
            program.begin().await?;
            let mut spent = 0;
            for round in 0..WARM_UP + rounds {
                // If the sender is measured, it finds the receive posted. If the receiver is measured, it posts its receive before
                // the sender begins.
                let early = (!sends).then(|| program.receive(bytes, 1 - me));
                program.together().await?;
                let start = program.sim().clock();
                let active = early.unwrap_or_else(|| program.send(bytes, 1 - me));
                if me == 0 {
                    program.compute(work).await;
                }
                program.finish(active).await?;
                if round >= WARM_UP {
                    spent += program.sim().clock() - start;
                }
            }
            Ok(each(0, spent, rounds))
        }
    })?;
    first(&outcome)
}

/// Returns application availability as the Sandia MPI Micro-Benchmarks define it. The work is increased until it takes most of an
/// iteration. The result is the percentage of the message's own time in which the processor was free for work: `1 - (iteration -
/// work) / time without work`.
pub fn availability(machine: &Rc<Machine>, bytes: usize, overlap: Overlap, few: usize) -> Measured {
    /// Minimum time of a counted iteration, divided by the time of an iteration without work.
    const LONG: f64 = 1.5;
    let Overlap { memory, policy, rounds, .. } = overlap;
    let rounds = rounds.unwrap_or(few);
    let machine = &under(&prepared(machine, memory), policy);
    let base = iteration(machine, bytes, &overlap, 0, rounds)?;
    let mut work = base;
    loop {
        let time = iteration(machine, bytes, &overlap, (work * 1e6) as Picoseconds, rounds)?;
        if time >= LONG * base {
            // The result would be negative if a helper costs more than it gains. Then 0 is returned.
            return Ok((100.0 * (1.0 - (time - work) / base)).max(0.0));
        }
        work *= 2.0;
    }
}

/// Returns the number of interrupts on both ranks for one message, while both ranks compute until the message has arrived. A woken
/// helper runs at once here. A helper that waited for a core would handle several interrupts together.
pub fn interrupts(machine: &Rc<Machine>, bytes: usize, design: Progress) -> Measured {
    const MESSAGES: usize = 20;
    let machine = &under(&registered(machine), SchedulerPolicy::RoundRobin);
    let outcome = world(machine, SimOptions::new(2), limits(), |rank| {
        let program = DesignProgram::new(rank, design, machine);
        async move {
            let (me, work) = (program.rank.comm.rank(), 20_000 * MICROSECOND);
            program.begin().await?;
            for _ in 0..MESSAGES {
                let early = (me == 1).then(|| program.receive(bytes, 0));
                program.together().await?;
                let active = early.unwrap_or_else(|| program.send(bytes, 1));
                program.compute(work).await;
                program.finish(active).await?;
            }
            Ok(program.sim().host_counts().interrupts as f64)
        }
    })?;
    first(&outcome)?;
    let all: u64 = outcome.hosts.iter().map(|counts| counts.interrupts).sum();
    Ok(all as f64 / MESSAGES as f64)
}

/// Returns 1 if the receiver reads the payload of a message of `bytes` bytes, and 0 if the sender sends the payload.
pub fn is_rendezvous(machine: &Rc<Machine>, bytes: usize) -> Measured {
    let outcome = world(machine, SimOptions::new(2), limits(), |rank| {
        let program = DesignProgram::new(rank, Progress::None, machine);
        async move {
            let active = match program.rank.comm.rank() {
                0 => program.send(bytes, 1),
                _ => program.receive(bytes, 0),
            };
            program.finish(active).await?;
            Ok(0.0)
        }
    })?;
    first(&outcome)?;
    Ok(if outcome.counts.reads > 0 { 1.0 } else { 0.0 })
}
