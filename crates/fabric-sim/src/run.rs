//! Execution of programs on a simulated cluster. Each rank is a future, and the futures are polled in the order of time.

use crate::cluster::Cluster;
use crate::host;
use crate::machine::Machine;
use crate::options::SimOptions;
use crate::sim::Sim;
use crate::stopped::Stopped;
use crate::threads::HostCounts;
use crate::trace::Trace;
use crate::units::Picoseconds;
use crate::world::RunCounts;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};

/// Distance in the ready queue from the rank that is polled to the rank whose memory is prefetched into the cache.
const AHEAD: usize = 1;
/// Number of bytes of a rank's memory to prefetch.
const HOME: usize = 2048;

/// Asks the processor to load `len` bytes at an address into its cache, because a rank runs only once in thousands of events. The
/// bytes are not read.
fn fetch(address: usize, len: usize) {
    #[cfg(target_arch = "x86_64")]
    for offset in (0..len).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let line = std::ptr::without_provenance::<i8>(address.wrapping_add(offset));
        // SAFETY: `_mm_prefetch` is a hint and accepts any address; it never faults. SSE, which it needs, is part of x86_64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (address, len);
}

/// Outcome of a run that came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOutcome<T> {
    /// Results by rank; `None` for a rank that died.
    pub results: Vec<Option<T>>,
    /// Local time at which each rank ended; 0 for a rank that died.
    pub ends: Vec<Picoseconds>,
    /// Numbers of operations and events.
    pub counts: RunCounts,
    /// Counts of threads by rank. They are 0 for a rank without further threads.
    pub hosts: Vec<HostCounts>,
    /// Activities of each rank with their times, if [`SimOptions::trace`] was set.
    pub trace: Option<Trace>,
}

impl<T> RunOutcome<T> {
    /// Returns the time at which the last rank ended.
    pub fn end(&self) -> Picoseconds {
        self.ends.iter().copied().max().unwrap_or(0)
    }
}

impl std::error::Error for Stopped {}

/// Runs `program` as every rank of a simulated cluster and returns the results.
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
    // Programs are dropped before the state, because they use its memory.
    let mut programs: Vec<Option<Pin<Box<P>>>> =
        (0..size).map(|rank| Some(Box::pin(program(cluster.rank(rank))))).collect();
    let threads = host::Threads(state);
    let mut results: Vec<Option<T>> = (0..size).map(|_| None).collect();
    let mut ends = vec![0; size];
    let mut left = size;
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        // All events that are due now are handled before any rank is polled.
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
