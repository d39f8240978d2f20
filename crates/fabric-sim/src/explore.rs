//! Schedule exploration: runs of a program under many schedules, until a schedule shows an error.
//!
//! ```text
//!   let found = explore(&machine, Options::new(4), 0..1000, |sim| async move {
//!       ...
//!       if sum == 10 { Ok(sum) } else { Err(format!("the sum is {sum}, not 10")) }
//!   });
//!   // seed 417: rank 3: the sum is 7, not 10, at 12.345 us (also with delays of at most 3.125 us
//!   // instead of 100 us); replay: WEFT_SIM_SEED=417
//! ```
//! Each seed has its own delays, losses and order of ranks ([`Chaos`]). A schedule is wrong if a rank returns an error or panics,
//! if ranks return different values, if no rank can continue, or if virtual time reaches its limit.

use crate::cluster::Cluster;
use crate::host;
use crate::machine::Machine;
use crate::options::{Chaos, SimOptions};
use crate::sim::Sim;
use crate::stopped::Stopped;
use crate::units::{MICROSECOND, Picoseconds, Time};
use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

/// Maximum virtual time of a run if [`SimOptions::limit`] sets no limit: 100 ms.
const LIMIT: Picoseconds = 100_000 * MICROSECOND;

/// Minimum of the maximum delay to which a search halves delays: 1 ns.
const LEAST_DELAY: Time = Time(1000);

/// Environment variable with the only seed to run.
const SEED: &str = "WEFT_SIM_SEED";

/// Result of an exploration in which no schedule was wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explored {
    /// Seeds that were run.
    pub seeds: u64,
    /// Events of all runs.
    pub events: u64,
}

/// Reason why a schedule is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WrongReason {
    /// The rank returned this error.
    Failed(String),
    /// The rank panicked, with this text.
    Panicked(String),
    /// The rank waits; other ranks may wait, too.
    Stopped(Stopped),
    /// The rank and the first rank returned different values.
    Disagrees {
        /// Value that the rank returned, as `{:?}` prints it.
        value: String,
        /// The first rank that has not died.
        first: usize,
        /// Value that the first rank returned, as `{:?}` prints it.
        other: String,
    },
}

/// A wrong schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongSchedule {
    /// The rank that failed, or whose value differs. If no rank can continue, the first rank that waits.
    pub rank: usize,
    /// The reason why the schedule is wrong.
    pub reason: WrongReason,
    /// Virtual time in picoseconds: the rank's own clock if the rank failed, else the clock of the cluster.
    pub at: Picoseconds,
}

/// The first seed whose schedule is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongSeed {
    /// Seed of the failure. `WEFT_SIM_SEED` with this value repeats the failure.
    pub seed: u64,
    /// The error that the seed's schedule has shown.
    pub failure: WrongSchedule,
    /// Maximum delay of the run ([`Chaos::most`]).
    pub most: Time,
    /// Smallest maximum delay, found by halving down to about 1 ns, under which the seed still fails.
    pub least: Time,
}

impl fmt::Display for WrongSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WrongSchedule { rank, reason, at } = self;
        let us = *at as f64 / MICROSECOND as f64;
        write!(f, "rank {rank}: ")?;
        match reason {
            WrongReason::Failed(error) => write!(f, "{error}, at {us:.3} us"),
            WrongReason::Panicked(text) => write!(f, "panicked: {text}, at {us:.3} us"),
            WrongReason::Stopped(stopped) => write!(f, "{stopped}"),
            WrongReason::Disagrees { value, first, other } => {
                write!(f, "returned {value}, while rank {first} returned {other}")
            }
        }
    }
}

impl fmt::Display for WrongSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WrongSeed { seed, failure, most, least } = self;
        write!(f, "seed {seed}: {failure}")?;
        if least < most {
            let (least, most) = (least.us(), most.us());
            write!(f, " (also with delays of at most {least} us instead of {most} us)")?;
        }
        write!(f, "; replay: {SEED}={seed}")
    }
}

impl std::error::Error for WrongSeed {}

/// Runs `program` as every rank for each of `seeds`, and stops at the first wrong schedule.
///
/// `options` has the number of ranks, deaths and further options. If it has no chaos, [`Chaos::rough`] is used. The environment
/// variable `WEFT_SIM_SEED` replaces `seeds` by a single seed, to repeat a failure.
///
/// A program that polls memory must let time pass after each poll: [`weft_fabric::FabricExt::charge`], then [`Sim::catch_up`].
/// Memory of operations must outlive the operations in every schedule, even in a wrong schedule, as memory of
/// [`weft_fabric::Fabric::allocate`] does.
///
/// # Panics
/// If `WEFT_SIM_SEED` is not a number, if the machine cannot hold the ranks, or if a rank, node or rail that is to die does not
/// exist.
pub fn explore<T, P>(
    machine: &Rc<Machine>,
    options: SimOptions,
    seeds: Range<u64>,
    program: impl Fn(Sim) -> P,
) -> Result<Explored, WrongSeed>
where
    T: PartialEq + fmt::Debug,
    P: Future<Output = Result<T, String>> + 'static,
{
    let seeds = match std::env::var(SEED) {
        Ok(text) => {
            let problem = || format!("{SEED} is `{text}`: expected a whole number below 2^64 - 1");
            let seed: u64 = text.parse().unwrap_or_else(|_| panic!("{}", problem()));
            seed..seed.checked_add(1).unwrap_or_else(|| panic!("{}", problem()))
        }
        Err(_) => seeds,
    };
    let chaos = options.chaos.unwrap_or_else(Chaos::rough);
    let limit = options.limit.min(LIMIT);
    let run = |seed: u64, most: Time| {
        let chaos = Some(Chaos { most, ..chaos });
        once(machine, SimOptions { seed, chaos, limit, ..options.clone() }, &program)
    };
    let mut explored = Explored { seeds: 0, events: 0 };
    for seed in seeds {
        match run(seed, chaos.most) {
            Ok(events) => {
                explored.seeds += 1;
                explored.events += events;
            }
            Err(failure) => {
                let smaller = std::iter::successors(Some(chaos.most), |most| {
                    (*most > LEAST_DELAY).then_some(Time(most.0 / 2))
                });
                let least = smaller.skip(1).filter(|&most| run(seed, most).is_err()).last();
                let least = least.unwrap_or(chaos.most);
                return Err(WrongSeed { seed, failure, most: chaos.most, least });
            }
        }
    }
    Ok(explored)
}

/// Runs one schedule and returns its number of events.
fn once<T, P>(
    machine: &Rc<Machine>,
    options: SimOptions,
    program: impl Fn(Sim) -> P,
) -> Result<u64, WrongSchedule>
where
    T: PartialEq + fmt::Debug,
    P: Future<Output = Result<T, String>>,
{
    let size = options.ranks;
    let cluster = Cluster::new(machine, options).unwrap_or_else(|stopped| panic!("{stopped}"));
    // Programs are dropped before the cluster, because they use its memory.
    let mut programs: Vec<Option<Pin<Box<P>>>> =
        (0..size).map(|rank| Some(Box::pin(program(cluster.rank(rank))))).collect();
    let threads = host::Threads(&cluster.state);
    let mut results: Vec<Option<T>> = (0..size).map(|_| None).collect();
    loop {
        if let Some(due) = cluster.due_hosted() {
            let rank = due.rank;
            let Some(running) = &mut programs[rank] else { continue };
            let poll = AssertUnwindSafe(|| cluster.poll(due, running.as_mut()));
            let polled = catch_unwind(poll);
            let at = cluster.clock(rank);
            let failed = |reason| Err(WrongSchedule { rank, reason, at });
            match polled {
                Ok(Poll::Pending) => {}
                Ok(Poll::Ready(Ok(value))) => {
                    host::end_threads(&cluster.state, rank);
                    let died = cluster.state.borrow().outlived(rank, at);
                    results[rank] = (!died).then_some(value);
                    programs[rank] = None;
                }
                Ok(Poll::Ready(Err(error))) => return failed(WrongReason::Failed(error)),
                Err(payload) => return failed(WrongReason::Panicked(text_of(&*payload))),
            }
            continue;
        }
        if programs.iter().all(Option::is_none) {
            break;
        }
        if !cluster.advance() {
            let waiting = (0..size).filter(|&rank| programs[rank].is_some());
            match cluster.stopped(waiting) {
                None => break,
                Some((rank, stopped)) => {
                    let (at, reason) = (cluster.now(), WrongReason::Stopped(stopped));
                    return Err(WrongSchedule { rank, reason, at });
                }
            }
        }
    }
    drop(threads);
    drop(programs);
    agree(&results, cluster.now())?;
    Ok(cluster.counts().events)
}

/// Checks that all ranks that have not died returned the same value.
fn agree<T: PartialEq + fmt::Debug>(
    results: &[Option<T>],
    at: Picoseconds,
) -> Result<(), WrongSchedule> {
    let mut all = results.iter().enumerate().filter_map(|(rank, r)| Some((rank, r.as_ref()?)));
    let Some((first, other)) = all.next() else { return Ok(()) };
    match all.find(|(_, value)| *value != other) {
        None => Ok(()),
        Some((rank, value)) => {
            let (value, other) = (format!("{value:?}"), format!("{other:?}"));
            Err(WrongSchedule { rank, reason: WrongReason::Disagrees { value, first, other }, at })
        }
    }
}

fn text_of(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    text.unwrap_or("with a value that is no text").to_owned()
}
