//! State that the multicast groups of a process share: limits, counts, and memory.

use std::rc::Rc;
use std::time::Duration;
use weft_fabric::{Counter, Fabric, Staging, StagingPool};

/// Way in which a root answers members that lack a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Repair {
    /// By a reliable message to the member that asks.
    #[default]
    Unicast,
    /// By multicast once more, which serves all members that lack the datagram.
    Multicast,
}

/// Parameters of multicast. They may differ between processes.
#[derive(Debug, Clone, Copy)]
pub struct MulticastLimits {
    /// Minimum wait before a member asks for a missing datagram.
    pub least: Duration,
    /// Maximum wait between questions. While no answer comes, the wait doubles up to this maximum.
    pub most: Duration,
    /// Maximum number of multicasts that a root may be ahead of the slowest member, if nothing else bounds this number.
    pub window: usize,
    /// Maximum payload, in bytes, that a root may be ahead of the slowest member. A multicast may begin while less payload is kept.
    pub kept: usize,
    /// Maximum size of the early datagrams of all groups, in bytes.
    pub store: usize,
    /// Way in which this process, as a root, answers a member that lacks a datagram.
    pub repair: Repair,
}

impl Default for MulticastLimits {
    fn default() -> MulticastLimits {
        MulticastLimits {
            least: Duration::from_micros(500),
            most: Duration::from_millis(100),
            window: 8,
            kept: 1 << 20,
            store: 256 << 10,
            repair: Repair::Unicast,
        }
    }
}

/// Counts of events in all groups, including ended groups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MulticastCounts {
    /// Multicasts that this process sent as a root.
    pub sent: u64,
    /// Datagrams of the multicasts sent, each once, without repairs.
    pub datagrams_sent: u64,
    /// Datagrams that arrived, including datagrams that were dropped, without repairs by message.
    pub datagrams: u64,
    /// Questions for datagrams that have not arrived in time (they may be lost, or not sent yet).
    pub naks_sent: u64,
    /// Questions of other members to this process as a root.
    pub naks_heard: u64,
    /// Questions heard that named no kept multicast.
    pub naks_ignored: u64,
    /// Datagrams that this process sent once more as reliable messages.
    pub repairs_sent: u64,
    /// Datagrams received as repairs: by a reliable message, or by a second multicast if the datagram was new.
    pub repairs: u64,
    /// Datagrams multicast again.
    pub recasts_sent: u64,
    /// Questions for datagrams that had been multicast again a moment before.
    pub naks_joined: u64,
    /// Datagrams that had arrived before.
    pub duplicates: u64,
    /// Datagrams of a foreign group, or with an impossible title.
    pub foreign: u64,
    /// Datagrams that arrived too early, when the store was full.
    pub dropped: u64,
    /// Acknowledgements sent.
    pub acks_sent: u64,
}

/// State that groups share.
pub struct MulticastShared {
    pub counts: MulticastCounts,
    pub limits: MulticastLimits,
    pub pool: StagingPool,
    /// Free space of the store, in bytes.
    pub room: usize,
    /// Buffer into which datagrams are read.
    pub scratch: Staging,
    /// Counter that advances when a repair that the fabric had queued has left, and its value when all queued repairs have left.
    done: Option<Counter>,
    all_left: u64,
    departing: Vec<Rc<Staging>>,
    /// Close messages that arrived before their group was opened: context, sender, place, round.
    pub early: Vec<(u64, usize, u32, u64)>,
}

impl MulticastShared {
    /// Creates the state. `limits` hold for all groups that will be opened.
    pub fn new(limits: MulticastLimits) -> MulticastShared {
        let pool = StagingPool::default();
        MulticastShared {
            counts: MulticastCounts::default(),
            limits,
            room: limits.store,
            scratch: pool.take(0),
            pool,
            done: None,
            all_left: 0,
            departing: Vec::new(),
            early: Vec::new(),
        }
    }

    /// Returns the counter for repairs that the fabric has queued. Releases the memory of these repairs if all of them have left.
    pub fn done<F: Fabric>(&mut self, fabric: &F) -> Counter {
        let counters = fabric.counters();
        if let Some(done) = self.done {
            if counters.value(done) >= self.all_left {
                self.departing.clear();
            }
            return done;
        }
        let done = counters.allocate();
        self.all_left = counters.value(done);
        self.done = Some(done);
        done
    }

    /// Notes that a repair out of `memory` is being sent.
    pub fn leaves(&mut self, memory: Rc<Staging>) {
        self.all_left += 1;
        self.departing.push(memory);
    }
}
