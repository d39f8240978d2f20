//! A simulated cluster that its caller drives step by step. [`crate::run()`] uses it. Tests use it to drive ranks that are threads
//! that poll instead of futures.

use crate::host;
use crate::machine::Machine;
use crate::options::{Death, SimOptions};
use crate::sim::Sim;
use crate::stopped::Stopped;
use crate::units::Picoseconds;
use crate::world::{RunCounts, WorldState};
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Ranks of a machine in virtual time. The simulation proceeds only in calls of these methods:
///
/// ```text
///   loop: due()? ──rank──> let that rank go on, until it can only wait; rest()
///           └─none──> advance()? ──false──> nothing is under way: the end, or a deadlock
/// ```
/// A rank that polls instead of waiting calls [`Cluster::follow`] before each poll.
pub struct Cluster {
    pub(crate) state: Rc<RefCell<WorldState>>,
    limit: Picoseconds,
}

/// A rank whose program is to be polled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DueRank {
    pub rank: usize,
    /// True if the rank has threads.
    pub hosted: bool,
}

impl Cluster {
    /// Creates a cluster in which every rank is due. Errors: [`Stopped::Ranks`], [`Stopped::Death`].
    pub fn new(machine: &Rc<Machine>, options: SimOptions) -> Result<Cluster, Stopped> {
        let most = machine.nodes.0.saturating_mul(machine.ranks_per_node.0);
        if options.ranks == 0 || options.ranks > most {
            return Err(Stopped::Ranks { asked: options.ranks, most });
        }
        let (nodes, rails) = (options.ranks.div_ceil(machine.ranks_per_node.0), machine.rail.len());
        for &(_, death) in &options.deaths {
            let exists = match death {
                Death::Rank(rank) => rank < options.ranks,
                Death::Rail { node, rail } => node < nodes && rail < rails,
            };
            if !exists {
                return Err(Stopped::Death { death, ranks: options.ranks, nodes, rails });
            }
        }
        let limit = options.limit;
        let state = Rc::new(RefCell::new(WorldState::new(machine.clone(), options)));
        Ok(Cluster { state, limit })
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> usize {
        self.state.borrow().ranks.len()
    }

    /// Returns the fabric of `rank`.
    pub fn rank(&self, rank: usize) -> Sim {
        Sim::new(&self.state, rank)
    }

    /// Returns the next rank that is due: an event concerns it at the present time, or it has not run yet. Sets the clock of the
    /// rank. Before that, handles all events that are due now.
    #[inline]
    pub fn due(&self) -> Option<usize> {
        self.due_hosted().map(|due| due.rank)
    }

    /// Returns the next rank that is due, as [`due`](Self::due) does.
    #[inline]
    pub(crate) fn due_hosted(&self) -> Option<DueRank> {
        let state = &mut *self.state.borrow_mut();
        let now = state.now;
        while state.queue.due(now) {
            state.step(now);
        }
        state.next_ready().map(|(rank, hosted)| DueRank { rank, hosted })
    }

    /// Handles the next event, and moves global time to the time of the event. Returns false if no event is left before
    /// [`SimOptions::limit`].
    #[inline]
    pub fn advance(&self) -> bool {
        self.state.borrow_mut().step(self.limit)
    }

    /// Records that `rank` has had its turn and waits.
    #[inline]
    pub fn rest(&self, rank: usize) {
        self.state.borrow_mut().rest(rank);
    }

    /// Polls the program of a rank that is due.
    pub(crate) fn poll<P: Future>(&self, due: DueRank, program: Pin<&mut P>) -> Poll<P::Output> {
        let DueRank { rank, hosted } = due;
        let mut cx = Context::from_waker(Waker::noop());
        if hosted {
            return host::turn(&self.state, rank, program, &mut cx);
        }
        let polled = program.poll(&mut cx);
        self.rest(rank);
        polled
    }

    /// Returns the first rank that waits, and the reason why no rank can continue, after [`Cluster::advance`] has returned false.
    /// `left`: ranks that have not ended, in ascending order. Returns `None` if all these ranks are dead.
    pub(crate) fn stopped(&self, left: impl Iterator<Item = usize>) -> Option<(usize, Stopped)> {
        let state = &*self.state.borrow();
        let waiting: Vec<usize> = left.filter(|&rank| !state.ranks[rank].dead).collect();
        let (first, at) = (*waiting.first()?, state.now);
        let stopped = match state.queue.due(Picoseconds::MAX) {
            false => Stopped::Deadlock { at, waiting },
            true => Stopped::Limit { at, waiting },
        };
        Some((first, stopped))
    }

    /// Returns the local time of `rank`.
    pub fn clock(&self, rank: usize) -> Picoseconds {
        self.state.borrow().ranks[rank].clock
    }

    /// Moves the clock of a rank that polls up to global time.
    pub fn follow(&self, rank: usize) {
        let state = &mut *self.state.borrow_mut();
        let clock = &mut state.ranks[rank].clock;
        *clock = state.now.max(*clock);
    }

    /// Returns global time.
    pub fn now(&self) -> Picoseconds {
        self.state.borrow().now
    }

    /// Returns true if an event is left, which [`Cluster::advance`] has refused because of [`SimOptions::limit`].
    pub fn has_events(&self) -> bool {
        self.state.borrow().queue.due(Picoseconds::MAX)
    }

    /// Takes the record of activities, if [`SimOptions::trace`] was set.
    pub fn take_trace(&self) -> Option<crate::Trace> {
        self.state.borrow_mut().trace.take()
    }

    /// Returns the counts of the run so far.
    pub fn counts(&self) -> RunCounts {
        self.state.borrow().counts
    }
}
