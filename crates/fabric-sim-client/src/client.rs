//! The rank's side of the slot: requests, the journal of posts and charges, counters that advanced.

use crate::arena::{PeerArena, RankArena};
use crate::clock_readings::ClockReadings;
use crate::inbox::{PAYLOAD, PAYLOAD_ALIGN};
use crate::journal::JournalEntry;
use crate::request::{SimRequest, SlotWords, fault_of};
use crate::slot::{JobHeader, MOST_ADVANCES, PathHeader, RankSlot, SlotsFile};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::time::{Duration, Instant};
use weft_fabric::copies::{CopyModel, ProcessorGroups};
use weft_fabric::{
    Capabilities, Copies, Counter, Counters, Fault, RemoteAddr, Sge, StagingPool, Work,
};

/// Reason why a rank cannot join its simulation.
#[derive(Debug)]
pub struct ClientFailure(String);

impl fmt::Display for ClientFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ClientFailure {}

/// Bit of a counter in a reply that marks an immediate.
pub const IMMEDIATE: u64 = 1 << 32;

/// The place in the slots file, which the sleeper shares.
pub(crate) struct SlotOwner {
    pub slots: SlotsFile,
    pub rank: usize,
    /// Time to look for the end of the simulation's turn before this process sleeps.
    pub spin: Duration,
    pub origin: Instant,
    /// Earliest deadline in picoseconds of the waits that were polled since the last rest; `u64::MAX` if there is none.
    pub deadline: AtomicU64,
    /// Number of looks that have brought anything. A thread that was about to sleep must look again.
    pub news: AtomicU32,
    /// True once the rank has left the simulation.
    pub left: AtomicBool,
}

impl SlotOwner {
    pub fn slot(&self) -> &RankSlot {
        self.slots.slot(self.rank)
    }

    /// Makes a request and waits for the reply.
    pub fn ask(&self, request: SimRequest) -> SlotWords {
        let slot = self.slot();
        if self.left.load(Relaxed) {
            return SlotWords::default();
        }
        slot.ask(request, self.spin)
    }

    /// Leaves the simulation, once no operation under way uses this process's memory. Later requests have no effect.
    fn leave(&self) {
        self.ask(SimRequest::End);
        self.left.store(true, Relaxed);
    }

    /// Returns an instant of virtual time in picoseconds.
    pub fn picoseconds(&self, at: Instant) -> u64 {
        let nanos = at.saturating_duration_since(self.origin).as_nanos();
        u64::try_from(nanos).unwrap_or(u64::MAX).saturating_mul(1000)
    }
}

/// A rank of a simulated job, as its process sees it.
pub struct SimClient {
    pub(crate) owner: Arc<SlotOwner>,
    pub(crate) header: JobHeader,
    pub(crate) counters: Counters,
    pub(crate) copies: Copies,
    pub(crate) arena: RankArena,
    pub(crate) pool: StagingPool,
    /// Payloads of messages that the library has not released, by token.
    pub(crate) taken: RefCell<HashMap<u64, weft_fabric::Staging>>,
    pub(crate) next_token: Cell<u64>,
    peers: RefCell<HashMap<usize, Option<PeerArena>>>,
    groups: RefCell<HashMap<usize, Option<ProcessorGroups>>>,
    failed: Cell<bool>,
    /// True after the last quiet message, until the caller has asked whether there are more. Later messages wait.
    pub(crate) quiet_end: Cell<bool>,
    /// Readings of the clock by the program.
    readings: Cell<ClockReadings>,
}

impl SimClient {
    /// Attaches this process as `rank` of `size` ranks, and waits for its first turn. `directory` is the value of
    /// [`crate::SIMULATION_VARIABLE`].
    pub fn connect(directory: &Path, rank: usize, size: usize) -> Result<SimClient, ClientFailure> {
        let path = directory.join("ranks");
        let failure = |what: &str, error: &dyn fmt::Display| {
            ClientFailure(format!("{what} of the simulation ({}): {error}", path.display()))
        };
        let slots = SlotsFile::open(&path).map_err(|error| failure("the file", &error))?;
        if slots.ranks() != size {
            let text = format!("it has {} ranks, and this job {size}", slots.ranks());
            return Err(failure("the file", &text));
        }
        let arena = RankArena::new().map_err(|error| failure("memory for peers", &error))?;
        let header = slots.header();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let spin = Duration::from_micros(if processors > 1 { 100 } else { 0 });
        let owner = Arc::new(SlotOwner {
            slots,
            rank,
            spin,
            origin: Instant::now(),
            deadline: AtomicU64::new(u64::MAX),
            news: AtomicU32::new(0),
            left: AtomicBool::new(false),
        });
        let slot = owner.slot();
        slot.arena_base.store(arena.base(), Relaxed);
        slot.arena_file.store(arena.descriptor() as u64, Relaxed);
        slot.pid.store(std::process::id(), std::sync::atomic::Ordering::Release);
        let model = CopyModel::from_words(header.model)
            .ok_or_else(|| failure("the file", &"its copy model has impossible numbers"))?;
        let copies = Copies::new(Arc::new(model));
        let client = SimClient {
            owner,
            header,
            counters: Counters::new(),
            copies,
            arena,
            pool: StagingPool::default(),
            taken: RefCell::default(),
            next_token: Cell::new(1),
            peers: RefCell::default(),
            groups: RefCell::default(),
            failed: Cell::new(false),
            quiet_end: Cell::new(false),
            readings: Cell::default(),
        };
        client.ask(SimRequest::Rest { until: Some(0) });
        if let Some(groups) = client.groups_of(rank) {
            client.copies.set_groups(groups);
        }
        Ok(client)
    }

    /// Leaves the simulation: the rank's clock stands from now on. Without this call, the end of the value does so.
    pub fn leave(&self) {
        self.owner.leave();
    }

    /// Returns virtual time in picoseconds.
    pub fn clock(&self) -> u64 {
        let slot = self.owner.slot();
        if !slot.journal.is_empty() || slot.file_accesses.load(Relaxed) > 0 {
            self.ask(SimRequest::Clock);
        }
        self.owner.slot().clock.load(Relaxed)
    }

    /// Reads the clock for the program, in picoseconds. Where computing takes no time, the reading does ([`ClockReadings`]). Else a loop
    /// of readings passes its own processor time, and each reading takes the time of a plain one.
    pub fn read_clock(&self) -> u64 {
        let mut readings = match self.header.compute_factor {
            0 => self.readings.get(),
            _ => ClockReadings::new(),
        };
        self.charge_now(Work::Compute(readings.begin(self.owner.slot().clock.load(Relaxed))));
        let clock = self.clock();
        readings.end(clock);
        self.readings.set(readings);
        clock
    }

    /// Returns the number of the simulated node of `peer`.
    pub fn node_of(&self, peer: usize) -> usize {
        peer / self.header.ranks_per_node as usize
    }

    pub(crate) fn ask(&self, request: SimRequest) -> SlotWords {
        let reply = self.owner.ask(request);
        self.after_reply();
        reply
    }

    /// Applies the news of a reply.
    pub(crate) fn after_reply(&self) {
        let slot = self.owner.slot();
        let advanced = slot.advanced.swap(0, Relaxed) as usize;
        for word in &slot.advances[..advanced.min(MOST_ADVANCES)] {
            let word = word.load(Relaxed);
            let counter = match word & IMMEDIATE {
                0 => Counter(word as u32),
                _ => self.counters.immediate(word as u32),
            };
            self.counters.add(counter, 1);
        }
        if slot.fault.load(Relaxed) != 0 {
            self.failed.set(true);
        }
    }

    /// Enters a request without a reply into the journal. If the simulation refuses the request, that is a fault of this rank.
    pub(crate) fn enter(&self, request: SimRequest) {
        self.make_room();
        self.append(request);
    }

    /// Makes room in the journal for a request. May make a request itself.
    pub(crate) fn make_room(&self) {
        let slot = self.owner.slot();
        // The simulation lets the time of accesses to files pass before the next request.
        if !slot.journal.has_room_for(4) || slot.file_accesses.load(Relaxed) > 0 {
            self.ask(SimRequest::Clock);
        }
    }

    /// Appends a request to the journal, which has room. The program's computing comes before the request.
    pub(crate) fn append(&self, request: SimRequest) {
        if self.owner.left.load(Relaxed) {
            return;
        }
        let slot = self.owner.slot();
        slot.journal.enter_call(slot.call.load(Relaxed));
        let computed = slot.compute.swap(0, Relaxed);
        if computed > 0 {
            slot.journal.add(JournalEntry::Computed(computed));
        }
        let slept = slot.slept.swap(0, Relaxed);
        if slept > 0 {
            slot.journal.add(JournalEntry::Slept(slept));
        }
        slot.journal.add(JournalEntry::Request(request));
    }

    /// Puts the payload of a request that is to be appended next into the slot. Returns its offset. May make a request itself.
    pub(crate) fn put_payload(&self, payload: Sge) -> usize {
        // A rank that has left makes no room.
        if payload.is_phantom() || payload.is_empty() || self.owner.left.load(Relaxed) {
            return 0;
        }
        assert!(payload.len() <= PAYLOAD, "a payload of {} bytes in one message", payload.len());
        let slot = self.owner.slot();
        let offset = || (slot.posted.load(Relaxed) as usize).next_multiple_of(PAYLOAD_ALIGN);
        if offset() + payload.len() > PAYLOAD {
            self.ask(SimRequest::Clock);
        }
        let at = offset();
        // SAFETY: the payload of the slot has room behind `at`, because the journal is empty or there was room, and the assertion
        // above limits the length. The slot belongs to the rank while it runs.
        unsafe { Sge::new(slot.payload().add(at), payload.len()) }.copy_from(payload);
        slot.posted.store((at + payload.len()) as u32, Relaxed);
        at
    }

    pub(crate) fn fault_now(&self) -> Option<Fault> {
        match self.failed.get() {
            true => fault_of(self.owner.slot().fault.load(Relaxed)),
            false => None,
        }
    }

    /// Lets time pass for `work`.
    pub(crate) fn charge_now(&self, work: Work) {
        if matches!(work, Work::Copy(0) | Work::Stage(0) | Work::Reduce(0))
            || self.owner.left.load(Relaxed)
        {
            return;
        }
        let (journal, call) = (&self.owner.slot().journal, &self.owner.slot().call);
        if !journal.has_room_for(2) {
            self.ask(SimRequest::Clock);
        }
        journal.enter_call(call.load(Relaxed));
        journal.add(JournalEntry::Work(work));
    }

    /// Looks without waiting (MPI_Test): global time catches up with the rank's clock, and no loop of looks is
    /// endless.
    pub(crate) fn catch_up(&self) {
        self.owner.ask(SimRequest::Look);
        let slot = self.owner.slot();
        if slot.messages.load(Relaxed) > 0 || slot.advanced.load(Relaxed) > 0 {
            self.owner.news.fetch_add(1, Relaxed);
        }
        self.after_reply();
    }

    /// Returns the groups of processors of `peer`.
    pub(crate) fn groups_of(&self, peer: usize) -> Option<ProcessorGroups> {
        if let Some(&groups) = self.groups.borrow().get(&peer) {
            return groups;
        }
        let mut reply = self.ask(SimRequest::Groups { peer });
        let found = (reply.take() != 0)
            .then(|| ProcessorGroups::of(std::array::from_fn(|_| reply.take() as u32)));
        self.groups.borrow_mut().insert(peer, found);
        found
    }

    /// Returns `len` bytes of a peer of this node as this process sees them.
    pub(crate) fn see(&self, peer: usize, at: RemoteAddr, len: usize) -> Option<Sge> {
        if self.node_of(peer) != self.node_of(self.owner.rank) {
            return None;
        }
        let mut reply = self.ask(SimRequest::MemoryOf { peer, at, len });
        if reply.take() != 0 {
            return None;
        }
        let memory = reply.take_memory();
        let address = memory.ptr().addr() as u64;
        if peer == self.owner.rank {
            return Some(memory);
        }
        let mut peers = self.peers.borrow_mut();
        let arena = peers.entry(peer).or_insert_with(|| {
            let slot = self.owner.slots.slot(peer);
            let (base, file) = (slot.arena_base.load(Relaxed), slot.arena_file.load(Relaxed));
            PeerArena::open(slot.pid.load(Relaxed), file as i32, base).ok()
        });
        arena.as_ref()?.at(address, len)
    }

    /// Returns the name of this rank's simulated node.
    pub fn node_name(&self) -> String {
        format!("node{}", self.node_of(self.owner.rank))
    }

    /// Describes the simulation, in lines for the user.
    pub fn describe(&self) -> Vec<String> {
        let (ranks, each) = (self.owner.slots.ranks(), self.header.ranks_per_node);
        vec![format!("virtual time, {ranks} ranks, {each} on each simulated node")]
    }

    pub(crate) fn path(&self, peer: usize) -> Capabilities {
        let local = self.node_of(peer) == self.node_of(self.owner.rank);
        let path: &PathHeader = if local { &self.header.local } else { &self.header.remote };
        Capabilities {
            fabric: "sim",
            send_max: path.send_max as usize,
            inline_max: path.inline_max as usize,
            mtu: path.mtu as usize,
            multicast_max: path.multicast_max as usize,
            direct: path.direct != 0,
            in_order_placement: path.in_order_placement != 0,
            shares_memory: path.shares_memory != 0,
            coherent_atomics: path.coherent_atomics != 0,
            atomics: true,
            synchronous: false,
            by_progress: false,
            rails: path.rails as usize,
            round_trip: path.round_trip as u32,
            flags_wake: true,
        }
    }
}

impl Drop for SimClient {
    fn drop(&mut self) {
        self.leave();
    }
}
