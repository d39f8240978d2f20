//! The simulated cluster: clock and inbox of every rank, and the operations under way.
//!
//! A rank is polled when global time has reached its local clock. While it is polled, the rank may run ahead of global time: it
//! posts, copies and computes in local time. It sees arrivals up to global time, so the end of a wait is exact. A poll without a
//! wait must first let global time catch up ([`weft_fabric::FabricExt::poll_clock`]).

use crate::aided_read::AidedRead;
use crate::arrival_record::ArrivalRecord;
use crate::in_flight::{FlightAction, NONE, SimFlights};
use crate::machine::Machine;
use crate::memory::WorldMemory;
use crate::network::NetworkState;
use crate::node_levels::NodeLevels;
use crate::options::SimOptions;
use crate::ordered_flag::OrderedFlags;
use crate::prices::Prices;
use crate::processes::RankProcesses;
use crate::queue::{EventQueue, NUMBER_BITS};
use crate::threads::{HostCounts, RankArrival, RankThreads};
use crate::trace::{Activity, BusySpan, Trace};
use crate::turns::MessageOrder;
use crate::units::Picoseconds;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use weft_fabric::{Copies, Counters, Fault, GroupId, Staging, StagingPool};

/// Minimum event number that stands for the poll of a rank. Lower event numbers stand for flights.
pub(crate) const POLLS: u32 = 1 << (NUMBER_BITS - 1);

/// Time of an event that is not scheduled.
const NEVER: Picoseconds = Picoseconds::MAX;

/// Counts of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunCounts {
    /// Messages that reached an inbox.
    pub messages: u64,
    /// Writes whose bytes were placed.
    pub writes: u64,
    /// Number of these writes that came with an immediate.
    pub immediates: u64,
    /// Reads whose answer came back.
    pub reads: u64,
    /// Atomics whose result came back.
    pub atomics: u64,
    /// Datagrams that a receiver got, counted once for each receiver.
    pub datagrams: u64,
    /// Datagrams that a receiver missed by chance, for lack of room, or for lack of a path.
    pub lost_datagrams: u64,
    /// Events that were handled, including arrivals and polls of ranks.
    pub events: u64,
    /// Number of polls of a rank's program.
    pub polls: u64,
}

/// State of one rank that every event examines.
pub(crate) struct RankState {
    pub clock: Picoseconds,
    /// Time of the next poll; [`NEVER`] if only an event can cause a poll.
    pub poll_at: Picoseconds,
    /// Time from which the rank has had nothing to do.
    idle_from: Picoseconds,
    /// Time at which the last of the rank's messages that a later message could overtake reaches its node.
    pub latest: Picoseconds,
    pub node: u32,
    /// Messages that have arrived, linked by [`SimFlight::next`].
    pub first: u32,
    pub last: u32,
    /// Number of messages that have arrived.
    pub arrived: u32,
    pub dead: bool,
    pub failed: bool,
    /// True if the rank has threads: [`RankRest::host`].
    pub hosted: bool,
    /// Address of the rank's fabric. The fabric's users lie near this address, so this memory is prefetched before the rank is
    /// polled.
    pub home: usize,
}

/// State of one rank that few events examine.
pub(crate) struct RankRest {
    pub counters: Rc<Counters>,
    pub groups: Vec<GroupId>,
    pub datagrams: VecDeque<(u32, GroupId, Rc<Staging>)>,
    pub fault: Option<Fault>,
    /// Threads of the rank, once it has more than one thread that waits and charges.
    pub host: Option<Box<RankThreads>>,
    /// Messages under way that could be overtaken: the time at which each message reaches its node, in ascending order, and its
    /// receiver.
    pub sent: VecDeque<(Picoseconds, u32)>,
    pub aided_read: Option<AidedRead>,
}

/// The complete state of a simulated cluster.
pub(crate) struct WorldState {
    pub now: Picoseconds,
    pub ranks: Vec<RankState>,
    pub rest: Vec<RankRest>,
    pub flights: SimFlights,
    pub queue: EventQueue,
    /// Ranks that are to be polled now.
    pub ready: VecDeque<u32>,
    pub network: NetworkState,
    /// Levels of the nodes' processors, if the machine file has any.
    pub levels: Option<Box<NodeLevels>>,
    /// Flights that wait at a port, by node and rail.
    pub waiting: BTreeMap<(u32, u32), VecDeque<u32>>,
    pub memory: WorldMemory,
    pub members: BTreeMap<GroupId, Vec<u32>>,
    pub rng: fastrand::Rng,
    /// Order of messages, if a rail may die.
    pub turns: Option<Box<MessageOrder>>,
    /// Order of writes over paths.
    pub behind: OrderedFlags,
    pub trace: Option<Trace>,
    /// Arrivals, if the ranks are processes of their own.
    pub arrivals: Option<Box<ArrivalRecord>>,
    pub counts: RunCounts,
    /// Counts of ranks whose threads have ended.
    pub host_counts: BTreeMap<usize, HostCounts>,
    pub machine: Rc<Machine>,
    pub copies: Rc<Copies>,
    pub prices: Prices,
    pub options: SimOptions,
    pub pool: StagingPool,
    /// Access to the ranks' memory, if they are processes of their own.
    pub processes: Option<Rc<dyn RankProcesses>>,
}

impl WorldState {
    pub fn new(machine: Rc<Machine>, options: SimOptions) -> WorldState {
        let ranks_per_node = machine.ranks_per_node.0;
        let nodes = options.ranks.div_ceil(ranks_per_node);
        let rank = |rank| RankState {
            clock: 0,
            poll_at: 0,
            idle_from: 0,
            latest: 0,
            node: (rank / ranks_per_node) as u32,
            first: NONE,
            last: NONE,
            arrived: 0,
            dead: false,
            failed: false,
            hosted: false,
            home: 0,
        };
        let rest = |_| RankRest {
            counters: Rc::new(Counters::new()),
            groups: Vec::new(),
            datagrams: VecDeque::new(),
            fault: None,
            host: None,
            sent: VecDeque::new(),
            aided_read: None,
        };
        let mut state = WorldState {
            now: 0,
            ranks: (0..options.ranks).map(rank).collect(),
            rest: (0..options.ranks).map(rest).collect(),
            flights: SimFlights::default(),
            queue: EventQueue::default(),
            ready: (0..options.ranks as u32).collect(),
            network: NetworkState::new(&machine, nodes),
            levels: NodeLevels::new(&machine, nodes),
            waiting: BTreeMap::new(),
            memory: WorldMemory::default(),
            members: BTreeMap::new(),
            rng: fastrand::Rng::with_seed(options.seed),
            turns: MessageOrder::of(&options),
            behind: OrderedFlags::default(),
            trace: options.trace.then(Trace::default),
            arrivals: None,
            counts: RunCounts::default(),
            host_counts: BTreeMap::new(),
            prices: Prices::of(&machine),
            copies: Rc::new(Copies::new(Arc::new(machine.copies.model()))),
            machine,
            pool: StagingPool::default(),
            processes: None,
            options,
        };
        for (at, death) in state.options.deaths.clone() {
            state.post(at, 0, 0, FlightAction::Death(death));
        }
        state
    }

    /// Returns the costs of copies for `rank`. All ranks share them, unless their processors belong to groups.
    pub fn copies_of(&self, rank: usize) -> Rc<Copies> {
        let Some(levels) = &self.levels else { return self.copies.clone() };
        let copies = Copies::new(Arc::new(self.copies.model().clone()));
        copies.set_groups(levels.groups_of(rank));
        Rc::new(copies)
    }

    pub fn node(&self, rank: usize) -> usize {
        self.ranks[rank].node as usize
    }

    pub fn is_local(&self, a: usize, b: usize) -> bool {
        self.node(a) == self.node(b)
    }

    // ---- local time ---------------------------------------------------------------------------

    /// Lets time pass for `rank`.
    #[inline]
    pub fn spend(&mut self, rank: usize, time: Picoseconds, activity: Activity) {
        let clock = &mut self.ranks[rank].clock;
        let start = *clock;
        *clock = start.saturating_add(time);
        if let Some(trace) = &mut self.trace {
            let end = start.saturating_add(time);
            trace.span(BusySpan { rank: rank as u32, activity, start, end });
        }
    }

    /// Lets time pass for `rank` between two polls. A rank with threads waits in its threads, and is not delayed.
    pub fn delay(&mut self, rank: usize, time: Picoseconds) {
        if self.ranks[rank].hosted {
            return;
        }
        self.spend(rank, time, Activity::Copy);
        let state = &mut self.ranks[rank];
        state.idle_from = state.clock;
    }

    /// Schedules a poll of `rank` at time `at`, unless an earlier poll is scheduled.
    #[inline]
    pub fn schedule(&mut self, rank: usize, at: Picoseconds) {
        let state = &mut self.ranks[rank];
        if state.dead || state.poll_at <= at {
            return;
        }
        state.poll_at = at;
        if at <= self.now {
            self.ready.push_back(rank as u32);
        } else {
            self.queue.push(at, POLLS | rank as u32);
        }
    }

    /// Wakes `rank` for an event for which it may be waiting.
    #[inline]
    pub fn wake(&mut self, rank: usize, arrival: RankArrival) {
        if self.ranks[rank].hosted {
            self.notify(rank, arrival);
            return;
        }
        let at = self.ranks[rank].clock.max(self.now + self.prices.poll);
        self.schedule(rank, at);
    }

    /// Returns the next rank to be polled now, with its clock set. The `bool` is true if the rank has threads.
    pub fn next_ready(&mut self) -> Option<(usize, bool)> {
        loop {
            let rank = if self.options.chaos.is_some() && self.ready.len() > 1 {
                let i = self.rng.usize(0..self.ready.len());
                self.ready.swap_remove_back(i)?
            } else {
                self.ready.pop_front()?
            } as usize;
            let now = self.now;
            let state = &mut self.ranks[rank];
            if state.dead || state.poll_at > now {
                continue;
            }
            state.poll_at = NEVER;
            let idle_from = state.idle_from;
            self.counts.polls += 1;
            if let Some(levels) = &mut self.levels {
                levels.begin_poll(rank);
            }
            if state.hosted {
                return Some((rank, true));
            }
            state.clock = state.clock.max(now);
            if let Some(trace) = &mut self.trace {
                let activity = Activity::Wait;
                let end = now.max(idle_from);
                trace.span(BusySpan { rank: rank as u32, activity, start: idle_from, end });
            }
            return Some((rank, false));
        }
    }

    /// Ends a poll of `rank`, which waits.
    pub fn rest(&mut self, rank: usize) {
        let state = &mut self.ranks[rank];
        state.idle_from = state.clock;
        if state.hosted {
            self.first_rest(rank);
        }
    }
}
