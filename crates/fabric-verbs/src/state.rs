//! State that changes while a [`crate::Verbs`] is used, and the fixed core that its parts share.

use crate::batch::Batch;
use crate::connection::{Connection, ConnectionPhase, Record};
use crate::connections::Connections;
use crate::ffi::*;
use crate::memory::{Memories, NONE};
use crate::multicast::VerbsMulticast;
use crate::object::BATCH;
use crate::peek::Peeked;
use crate::pending::WorkSlab;
use crate::pool::RegisteredPool;
use crate::rail::{BufferUse, GREETER_TAG, MULTICAST_TAG, QueueDepths, VerbsRail};
use crate::wire::{ImmediateTag, RailAddress, VerbsAddress, WAKE, WireKind};
use crate::{RAILS_MAX, VerbsOptions};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use weft_fabric::{Completion, Counters, Fault, repeated};
use weft_job_connections::{JobConnections, Roster};

/// A process that can be reached.
pub struct VerbsProcess {
    pub address: VerbsAddress,
    /// Rank in its own job.
    pub home: usize,
    /// True for a process of another job that this process does not need any more: its end is not a loss.
    pub unmissed: Cell<bool>,
}

impl VerbsProcess {
    pub fn new(address: VerbsAddress, home: usize) -> VerbsProcess {
        VerbsProcess { address, home, unmissed: Cell::new(false) }
    }
}

/// The fixed part of the fabric.
pub struct VerbsCore {
    pub rank: usize,
    pub counters: Rc<Counters>,
    pub bounds: QueueDepths,
    pub options: VerbsOptions,
    pub nonce: u64,
    /// Number of processes of the job.
    pub size: usize,
    /// All reachable processes: those of the job, and those of connected jobs.
    pub roster: RefCell<Roster<VerbsProcess>>,
    /// True if a connection with another job has news: a process is lost, or all have left.
    pub alarm: Arc<AtomicBool>,
    /// Number of rails that all processes have.
    pub rails: usize,
    /// The networks of the rails, by names that are equal at all processes.
    pub networks: Vec<String>,
    /// An address by which other hosts reach this process; `None` if a process of the job has none.
    pub ip: Option<IpAddr>,
    /// True if all processes compute with the same arithmetic.
    pub same_arithmetic: bool,
}

impl VerbsCore {
    /// Returns the rail of the first connection with `peer`. Both ends choose the same rail.
    pub fn rail_to(&self, peer: usize) -> usize {
        // The connection of a process with itself is on its rail for atomics.
        let usual = if peer == self.rank { peer } else { self.rank + self.home(peer) };
        self.options.rail.unwrap_or(usual) % self.rails
    }

    /// Returns the rank of `peer` in its own job, which both ends know.
    pub fn home(&self, peer: usize) -> usize {
        if peer < self.size { peer } else { self.roster.borrow().member(peer).home }
    }

    /// Returns the address of a rail of `peer`.
    pub fn address_of(&self, peer: usize, rail: usize) -> RailAddress {
        self.roster.borrow().member(peer).address.rails[rail]
    }

    /// Returns the host of `peer`.
    pub fn host_of(&self, peer: usize) -> String {
        self.roster.borrow().member(peer).address.host.clone()
    }

    /// Returns true if the end of `peer` is a loss.
    pub fn misses(&self, peer: usize) -> bool {
        self.roster.borrow().get(peer).is_some_and(|member| !member.unmissed.get())
    }

    pub fn complete(&self, done: Completion) {
        if let Some(counter) = done {
            self.counters.add(counter, 1);
        }
    }
}

/// A hasher for numbers of queue pairs: one multiplication.
#[derive(Default)]
pub struct QueuePairHasher(u64);

impl Hasher for QueuePairHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only numbers are hashed");
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// Map from the number of a queue pair to the number of its connection.
pub type Routes = HashMap<u32, u32, BuildHasherDefault<QueuePairHasher>>;

// The order of the fields is the order of their drop: queue pairs before the objects from which they were made.
pub struct VerbsState {
    /// Connections by number, see [`VerbsCore::link_over`].
    pub peers: Connections,
    pub multicast: Option<VerbsMulticast>,
    pub rails: Vec<VerbsRail>,
    pub pool: RegisteredPool,
    pub memories: Memories,
    pub routes: [Routes; RAILS_MAX],
    pub connections: usize,
    pub links: JobConnections,
    /// Peers with arrived messages, in the order of service.
    pub arrived: VecDeque<u32>,
    /// Connections with kept work.
    pub waiting: Vec<u32>,
    /// Connections that exchange connect requests.
    pub connecting: Vec<u32>,
    /// Secondary connections that are shut, but whose work is not yet handed over.
    pub out: Vec<u32>,
    /// Secondary connections that cannot be made.
    pub unmade: Vec<usize>,
    /// Connections whose peer must be told of its credits.
    pub debts: Vec<u32>,
    pub slab: WorkSlab,
    pub peeked: Box<Peeked>,
    /// Number of one-sided operations that have a completion and are not complete.
    pub awaited: usize,
    pub batch: Box<Batch>,
    /// Addresses of silent flags.
    pub silent: Vec<usize>,
    pub fault: Option<Fault>,
    /// Description of the fault, in words.
    pub trouble: Option<String>,
    /// Number of calls of `progress`, for work that is done every Nth call.
    pub turns: u32,
    pub next_keepalive: Option<Instant>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Returns the `wr_id` of a request on a connection.
pub fn request_id(peer: usize, number: u32) -> u64 {
    (peer as u64) << 32 | u64::from(number)
}

impl VerbsState {
    /// Records a fault, which ends all waits. The first fault stays.
    #[cold]
    pub fn fail(&mut self, fault: Fault, why: String) {
        debug_assert_eq!(repeated(&fault.because(&why)), None);
        if self.fault.is_none() {
            self.fault = Some(fault);
            self.trouble = Some(why);
        }
    }

    /// Handles the loss of `peer`: a fault, unless this process does not need `peer` any more.
    #[cold]
    pub fn lose(&mut self, core: &VerbsCore, peer: usize, why: String) {
        if core.misses(peer) {
            self.fail(Fault::lost(peer), why);
        }
    }

    /// Returns connection `peer`, which must exist.
    pub fn link(&mut self, peer: usize) -> &mut Connection {
        self.peers[peer].as_deref_mut().expect("a connection")
    }

    /// Posts the batch on connection `peer`, by one call.
    #[inline]
    pub fn ring(&mut self, peer: usize) {
        let VerbsState { peers, batch, .. } = self;
        let pair = &peers[peer].as_deref().expect("a connection").pair;
        let errno = batch.post(pair);
        if errno != 0 {
            let fault = Fault::system("posting to the adapter", errno.abs());
            self.fail(fault, format!("posting to process {peer} failed"));
        }
    }

    /// Handles all completions. Returns true if there were any.
    #[inline]
    pub fn poll(&mut self, core: &VerbsCore) -> bool {
        let mut moved = self.follow_up(core);
        for rail in 0..self.rails.len() {
            moved |= self.poll_arrivals(core, rail);
            moved |= self.poll_departures(core, rail);
            moved |= self.poll_datagrams(core, rail);
        }
        moved
    }

    pub fn poll_departures(&mut self, core: &VerbsCore, rail: usize) -> bool {
        let mut done = [ibv_wc::default(); BATCH];
        let n = self.rails[rail].base.departures.poll(&mut done);
        for wc in &done[..n] {
            if wc.wr_id >= MULTICAST_TAG {
                self.multicast_sent(wc.wr_id);
            } else if wc.wr_id >= GREETER_TAG {
                let greeter = &mut self.rails[rail].greeter;
                greeter.sent(greeter.slot_of(wc.wr_id));
            } else if wc.status == IBV_WC_SUCCESS {
                self.departed(core, (wc.wr_id >> 32) as usize, wc.wr_id as u32);
            } else {
                let (link, number) = ((wc.wr_id >> 32) as usize, wc.wr_id as u32);
                match core.is_secondary(link) {
                    true => self.rail_failed(core, link, number, wc.status),
                    false => self.broken(core, link, wc.status),
                }
            }
        }
        n > 0
    }

    /// Handles the completion of all requests to `peer` up to `number`.
    pub fn departed(&mut self, core: &VerbsCore, peer: usize, number: u32) {
        let VerbsState { peers, pool, memories, awaited, .. } = self;
        let Some(Some(link)) = peers.get_mut(peer) else { return };
        link.lively = true;
        while let Some(record) = link.completed(number) {
            let Record { buffer, landing, registration, done } = record;
            if let Some(landing) = landing {
                landing.copy_from(pool.part(buffer, 0, landing.len()));
            }
            if buffer != NONE {
                pool.give_back(buffer);
            }
            memories.release(registration);
            *awaited -= usize::from(done.is_some());
            core.complete(done);
        }
    }

    fn poll_arrivals(&mut self, core: &VerbsCore, rail: usize) -> bool {
        let mut done = [ibv_wc::default(); BATCH];
        let n = self.rails[rail].base.arrivals.poll(&mut done);
        let mut due = false;
        for wc in &done[..n] {
            due |= self.arrival(core, rail, wc);
        }
        if due {
            self.repost(core, rail);
        }
        n > 0
    }

    /// Handles an arrival. Returns true if receive buffers should be posted again.
    pub fn arrival(&mut self, core: &VerbsCore, rail: usize, wc: &ibv_wc) -> bool {
        let buffer = wc.wr_id as u32;
        let peer = self.routes[rail].get(&wc.qp_num).map(|&peer| peer as usize);
        let Some(peer) = peer.filter(|_| wc.status == IBV_WC_SUCCESS) else {
            if let Some(peer) = peer {
                // The receive queue belongs to all connections; the failure counts for the peer's first connection.
                self.broken(core, core.peer_of(peer), wc.status);
            }
            return self.rails[rail].give_back(buffer, core.rank, BufferUse::Control);
        };
        if self.link(peer).phase == ConnectionPhase::Connecting {
            // A peer that sends has heard this end's connect request.
            self.settle(core, peer);
        }
        let immediate = u32::from_be(wc.imm_data);
        if wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM {
            if immediate != WAKE {
                core.counters.add(core.counters.immediate(immediate), 1);
            }
            return self.rails[rail].give_back(buffer, peer, BufferUse::Event);
        }
        let tag = ImmediateTag::decode(immediate);
        let link = self.link(peer);
        link.messages += tag.messages;
        link.events += tag.events;
        if wc.wc_flags & IBV_WC_WITH_IMM == 0
            || tag.kind == WireKind::Message && !self.deliver(rail, peer, wc)
        {
            let what = "message length";
            self.fail(Fault::corrupt(peer, what), format!("{} bytes", wc.byte_len));
            return self.rails[rail].give_back(buffer, peer, BufferUse::Control);
        }
        match tag.kind {
            WireKind::Message => false,
            WireKind::Credits => {
                if wc.byte_len == 8 {
                    self.hear_shut(core, rail, peer, buffer);
                }
                self.rails[rail].give_back(buffer, peer, BufferUse::Control)
            }
            WireKind::Reserved => {
                core.counters.add(core.counters.immediate(WAKE), 1);
                self.rails[rail].give_back(buffer, peer, BufferUse::Event)
            }
            WireKind::Disconnect => {
                self.left(core, peer);
                self.rails[rail].give_back(buffer, peer, BufferUse::Control)
            }
        }
    }

    /// Posts idle receive buffers, and counts the credits that peers are owed for them.
    pub fn repost(&mut self, core: &VerbsCore, rail: usize) {
        let VerbsState { peers, rails, debts, .. } = self;
        let posted = rails[rail].repost(|peer, of| {
            let Some(Some(link)) = peers.get_mut(peer) else { return };
            let (owed, given) = match of {
                BufferUse::Message => (&mut link.owed_messages, core.bounds.messages),
                BufferUse::Event => (&mut link.owed_events, core.events_by(peer)),
                BufferUse::Control => return,
            };
            *owed += 1;
            if *owed as usize == given.div_ceil(2) {
                debts.push(peer as u32);
            }
        });
        if let Err(fault) = posted {
            self.fail(fault, "the shared receive queue".to_owned());
        }
        self.pay(core);
    }

    /// Adds the disconnect to `peer` to the batch. Returns false if there is no room.
    pub fn add_disconnect(&mut self, peer: usize) -> bool {
        let VerbsState { peers, batch, .. } = self;
        let link = peers[peer].as_deref_mut().expect("a connection");
        if !link.has_room(1) {
            return false;
        }
        let tag = link.take_credits(WireKind::Disconnect);
        let (number, _) = link.note(Record::NOTHING, true);
        batch.control(request_id(peer, number), true, tag);
        true
    }

    /// Returns true if work is kept, or a connection is being made: then other events than solicited messages matter.
    #[inline]
    pub fn is_busy(&self, core: &VerbsCore) -> bool {
        let kept = self.slab.used() > 0 || !self.out.is_empty();
        kept || !self.connecting.is_empty() && self.is_connecting(core)
    }

    /// Sends credits to peers that are owed many, unless a message has carried them.
    pub fn pay(&mut self, core: &VerbsCore) -> bool {
        let mut paid = false;
        for i in (0..self.debts.len()).rev() {
            let peer = self.debts[i] as usize;
            let VerbsState { peers, batch, .. } = &mut *self;
            let link = peers[peer].as_deref_mut().expect("a debtor is connected");
            let due = link.owed_messages as usize >= core.bounds.messages.div_ceil(2)
                || link.owed_events as usize >= core.events_by(peer).div_ceil(2);
            if due && link.phase == ConnectionPhase::Open {
                if !link.has_room(1) {
                    continue;
                }
                let tag = link.take_credits(WireKind::Credits);
                let (number, signaled) = link.note(Record::NOTHING, link.secondary.is_some());
                if let Some(secondary) = &mut link.secondary {
                    secondary.posted.push_back(None);
                }
                batch.control(request_id(peer, number), signaled, tag);
                self.ring(peer);
                paid = true;
            }
            self.debts.swap_remove(i);
        }
        paid
    }

    /// Handles the disconnect of `peer`. Work that is kept for it is lost.
    fn left(&mut self, core: &VerbsCore, peer: usize) {
        self.leave_secondary(core, peer);
        let link = self.link(peer);
        link.phase = ConnectionPhase::Gone;
        if !link.is_empty() {
            let why = "it has left before it took what was sent to it".to_owned();
            self.lose(core, peer, why);
        }
    }

    /// Handles the failure of a request to `peer`.
    #[cold]
    fn broken(&mut self, core: &VerbsCore, peer: usize, status: i32) {
        let Some(Some(link)) = self.peers.get_mut(peer) else { return };
        let before = std::mem::replace(&mut link.phase, ConnectionPhase::Lost);
        // Credits and probes may arrive too late at a peer that has left, so their failure is no fault.
        if before == ConnectionPhase::Lost || before == ConnectionPhase::Gone && !link.is_awaited()
        {
            return;
        }
        let rail = link.rail;
        let why = crate::trouble::explain(core, &self.rails, rail, peer, status);
        match status {
            IBV_WC_REM_ACCESS_ERR => {
                self.fail(Fault::corrupt(peer, "memory key (its adapter refuses it)"), why);
            }
            _ => self.lose(core, peer, why),
        }
    }
}
