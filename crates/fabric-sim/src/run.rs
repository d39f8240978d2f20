//! Running programs on a simulated cluster: one future a rank, polled in the order of time.

use crate::cluster::Cluster;
use crate::host;
use crate::machine::Machine;
use crate::options::{Death, SimOptions};
use crate::sim::Sim;
use crate::threads::HostCounts;
use crate::trace::Trace;
use crate::units::Picoseconds;
use crate::world::RunCounts;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};

/// Ranks between the one that is polled and the one whose memory is fetched into the cache.
const AHEAD: usize = 1;
/// So many bytes of it.
const HOME: usize = 2048;

/// Asks the processor to have `len` bytes at an address in its cache soon: a rank is touched once in
/// thousands of events. Nothing is read.
fn fetch(address: usize, len: usize) {
    #[cfg(target_arch = "x86_64")]
    for offset in (0..len).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let line = std::ptr::without_provenance::<i8>(address.wrapping_add(offset));
        // SAFETY: a prefetch is a hint; it faults for no address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (address, len);
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOutcome<T> {
    /// By rank; `None` for one that died.
    pub results: Vec<Option<T>>,
    /// When each rank was through, in local time; 0 for one that died.
    pub ends: Vec<Picoseconds>,
    /// How many operations and events there were.
    pub counts: RunCounts,
    /// By rank: what its threads have cost, where it has more than one that waits.
    pub hosts: Vec<HostCounts>,
    /// What each rank did when, if [`SimOptions::trace`] was set.
    pub trace: Option<Trace>,
}

impl<T> RunOutcome<T> {
    /// When the last rank was through.
    pub fn end(&self) -> Picoseconds {
        self.ends.iter().copied().max().unwrap_or(0)
    }
}

/// Why a run did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    /// No rank can go on: nothing is under way any more.
    Deadlock {
        /// Global time in picoseconds.
        at: Picoseconds,
        /// Living ranks that are not through, in ascending order.
        waiting: Vec<usize>,
    },
    /// Virtual time has reached [`SimOptions::limit`].
    Limit {
        /// Global time in picoseconds.
        at: Picoseconds,
        /// Living ranks that are not through, in ascending order.
        waiting: Vec<usize>,
    },
    /// The machine cannot hold so many ranks, or none were asked for.
    Ranks {
        /// What [`SimOptions::ranks`] said.
        asked: usize,
        /// Nodes of the machine, times its ranks on a node.
        most: usize,
    },
    /// There is no such rank, node or rail to die.
    Death {
        /// Which of [`SimOptions::deaths`] names something that is not there.
        death: Death,
        /// How many ranks the run has.
        ranks: usize,
        /// How many nodes the ranks of the run fill.
        nodes: usize,
        /// How many rails each node has.
        rails: usize,
    },
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, at, waiting) = match self {
            Stopped::Deadlock { at, waiting } => ("deadlock", at, waiting),
            Stopped::Limit { at, waiting } => ("the limit of virtual time", at, waiting),
            Stopped::Ranks { asked, most } => {
                return write!(f, "{asked} ranks: the machine has room for 1 to {most}");
            }
            Stopped::Death { death, ranks, nodes, rails } => {
                write!(f, "{death:?} cannot die: there are ranks 0 to {}, ", ranks - 1)?;
                return write!(f, "nodes 0 to {}, rails 0 to {}", nodes - 1, rails - 1);
            }
        };
        let us = *at as f64 / 1e6;
        write!(f, "{what} at {us:.3} us: ")?;
        match waiting.as_slice() {
            [] => write!(f, "nobody waits"),
            [one] => write!(f, "rank {one} waits"),
            [first, .., last] if waiting.len() > 8 => {
                write!(f, "{} ranks wait, from {first} to {last}", waiting.len())
            }
            some => {
                let list: Vec<_> = some.iter().map(usize::to_string).collect();
                write!(f, "ranks {} wait", list.join(", "))
            }
        }
    }
}

impl std::error::Error for Stopped {}

/// Runs `program` as every rank of a simulated cluster and returns what they returned.
///
/// The same machine, options and program give the same outcome, bit for bit.
pub fn run<T, P>(
    machine: &Rc<Machine>,
    options: SimOptions,
    mut program: impl FnMut(Sim) -> P,
) -> Result<RunOutcome<T>, Stopped>
where
    P: Future<Output = T> + 'static,
{
    let size = options.ranks;
    let cluster = Cluster::new(machine, options)?;
    let state = &cluster.state;
    // Programs end before the state whose memory they name.
    let mut programs: Vec<Option<Pin<Box<P>>>> =
        (0..size).map(|rank| Some(Box::pin(program(cluster.rank(rank))))).collect();
    let threads = host::Threads(state);
    let mut results: Vec<Option<T>> = (0..size).map(|_| None).collect();
    let mut ends = vec![0; size];
    let mut left = size;
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        // All that is due now has happened before anybody looks.
        let ready = {
            let state = &mut *state.borrow_mut();
            let now = state.now;
            while state.queue.due(now) {
                state.step(now);
            }
            let ready = state.next_ready();
            if let Some(&soon) = state.ready.get(AHEAD) {
                fetch(state.ranks[soon as usize].home, HOME);
                if let Some(program) = &programs[soon as usize] {
                    fetch(std::ptr::from_ref(&**program).addr(), size_of::<P>().min(HOME));
                }
            }
            ready
        };
        if let Some((rank, hosted)) = ready {
            let Some(program) = &mut programs[rank] else { continue };
            let polled = match hosted {
                false => program.as_mut().poll(&mut cx),
                true => host::turn(state, rank, program.as_mut(), &mut cx),
            };
            if !hosted {
                state.borrow_mut().rest(rank);
            }
            if let std::task::Poll::Ready(result) = polled {
                let clock = cluster.clock(rank);
                if !state.borrow().outlived(rank, clock) {
                    (ends[rank], results[rank]) = (clock, Some(result));
                }
                host::end_threads(state, rank);
                programs[rank] = None;
                left -= 1;
            }
            continue;
        }
        if left == 0 {
            break;
        }
        if !cluster.advance() {
            let left = (0..size).filter(|&rank| programs[rank].is_some());
            match cluster.stopped(left) {
                None => break,
                Some((_, stopped)) => return Err(stopped),
            }
        }
    }
    drop(threads);
    drop(programs);
    let mut state = state.borrow_mut();
    let hosts = (0..size).map(|rank| state.host_counts(rank)).collect();
    Ok(RunOutcome { results, ends, counts: state.counts, hosts, trace: state.trace.take() })
}
