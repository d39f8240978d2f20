//! All that changes while a [`crate::Verbs`] is used, and what its parts have in common.

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
use weft_fabric::linking::{JobConnections, Roster};
use weft_fabric::{Completion, Counters, Fault, repeated};

/// One process.
pub struct VerbsProcess {
    pub address: VerbsAddress,
    /// Its rank in its own job.
    pub home: usize,
    /// Of another job, and this process needs it no more: its end is no loss.
    pub unmissed: Cell<bool>,
}

impl VerbsProcess {
    pub fn new(address: VerbsAddress, home: usize) -> VerbsProcess {
        VerbsProcess { address, home, unmissed: Cell::new(false) }
    }
}

/// What does not change.
pub struct VerbsCore {
    pub rank: usize,
    pub counters: Rc<Counters>,
    pub bounds: QueueDepths,
    pub options: VerbsOptions,
    pub nonce: u64,
    /// Processes of the job.
    pub size: usize,
    /// All that can be reached: the processes of the job, and those of linked ones.
    pub roster: RefCell<Roster<VerbsProcess>>,
    /// A link with another job has something to say: that a process is lost, or that all have left.
    pub alarm: Arc<AtomicBool>,
    /// Rails that all processes have.
    pub rails: usize,
    /// The networks of the rails, as all processes call them.
    pub networks: Vec<String>,
    /// An address by which other hosts reach this process, where all processes of the job have one.
    pub ip: Option<IpAddr>,
    /// All processes compute alike.
    pub same_arithmetic: bool,
}

impl VerbsCore {
    /// The rail for traffic with `peer`; both ends choose the same.
    pub fn rail_to(&self, peer: usize) -> usize {
        // That of a process with itself is its rail for atomics.
        let usual = if peer == self.rank { peer } else { self.rank + self.home(peer) };
        self.options.rail.unwrap_or(usual) % self.rails
    }

    /// The rank of `peer` in its own job, which both ends know.
    pub fn home(&self, peer: usize) -> usize {
        if peer < self.size { peer } else { self.roster.borrow().member(peer).home }
    }

    /// Where a rail of `peer` is.
    pub fn address_of(&self, peer: usize, rail: usize) -> RailAddress {
        self.roster.borrow().member(peer).address.rails[rail]
    }

    /// The host of `peer`.
    pub fn host_of(&self, peer: usize) -> String {
        self.roster.borrow().member(peer).address.host.clone()
    }

    /// Whether the end of `peer` is a loss.
    pub fn misses(&self, peer: usize) -> bool {
        self.roster.borrow().get(peer).is_some_and(|member| !member.unmissed.get())
    }

    pub fn complete(&self, done: Completion) {
        if let Some(counter) = done {
            self.counters.add(counter, 1);
        }
    }
}

/// Numbers of queue pairs are well spread already.
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

/// From the number of a queue pair to that of the connection.
pub type Routes = HashMap<u32, u32, BuildHasherDefault<QueuePairHasher>>;

// The order of the fields is that of their end: queue pairs before what they are made of.
pub struct VerbsState {
    /// By number of the connection, see [`VerbsCore::link_over`].
    pub peers: Connections,
    pub multicast: Option<VerbsMulticast>,
    pub rails: Vec<VerbsRail>,
    pub pool: RegisteredPool,
    pub memories: Memories,
    pub routes: [Routes; RAILS_MAX],
    pub connections: usize,
    pub links: JobConnections,
    /// Peers whose messages have arrived, in the order of service.
    pub arrived: VecDeque<u32>,
    /// Connections for which something is kept.
    pub waiting: Vec<u32>,
    /// Connections for which connect requests are exchanged.
    pub connecting: Vec<u32>,
    /// Secondary connections that are shut, and not yet done with.
    pub out: Vec<u32>,
    /// Secondary connections that cannot be made.
    pub unmade: Vec<usize>,
    /// Peers that must be told of their credits.
    pub debts: Vec<u32>,
    pub slab: WorkSlab,
    pub peeked: Box<Peeked>,
    /// One-sided operations whose end somebody asks for.
    pub awaited: usize,
    pub batch: Box<Batch>,
    /// Addresses of flags that wake nobody.
    pub silent: Vec<usize>,
    pub fault: Option<Fault>,
    /// What happened, in words.
    pub trouble: Option<String>,
    /// Calls of `progress`, for what is done now and then.
    pub turns: u32,
    pub next_keepalive: Option<Instant>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// `wr_id` of a request on a connection.
pub fn request_id(peer: usize, number: u32) -> u64 {
    (peer as u64) << 32 | u64::from(number)
}

impl VerbsState {
    /// Ends all waits. The first fault stands.
    #[cold]
    pub fn fail(&mut self, fault: Fault, why: String) {
        debug_assert_eq!(repeated(&fault.because(&why)), None);
        if self.fault.is_none() {
            self.fault = Some(fault);
            self.trouble = Some(why);
        }
    }

    /// `peer` is gone: a fault, unless nobody needs it any more.
    #[cold]
    pub fn lose(&mut self, core: &VerbsCore, peer: usize, why: String) {
        if core.misses(peer) {
            self.fail(Fault::lost(peer), why);
        }
    }

    /// The connection with `peer`, which exists.
    pub fn link(&mut self, peer: usize) -> &mut Connection {
        self.peers[peer].as_deref_mut().expect("a connection")
    }

    /// Posts what was collected for `peer`, by one call.
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

    /// Whatever has completed. True if anything moved.
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

    /// All requests to `peer` up to `number` have completed.
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

    /// One arrival; true if receive buffers are to be posted again.
    pub fn arrival(&mut self, core: &VerbsCore, rail: usize, wc: &ibv_wc) -> bool {
        let buffer = wc.wr_id as u32;
        let peer = self.routes[rail].get(&wc.qp_num).map(|&peer| peer as usize);
        let Some(peer) = peer.filter(|_| wc.status == IBV_WC_SUCCESS) else {
            if let Some(peer) = peer {
                // The receive buffers are those of first connections.
                self.broken(core, core.peer_of(peer), wc.status);
            }
            return self.rails[rail].give_back(buffer, core.rank, BufferUse::Control);
        };
        if self.link(peer).phase == ConnectionPhase::Connecting {
            // Whoever sends has heard of us.
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

    /// Posts idle receive buffers, and tells peers of the room that they have again.
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

    /// Collects the disconnect to `peer`, if there is room for it.
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

    /// Something is kept back, or a connection is being made: more than solicited messages matters.
    #[inline]
    pub fn is_busy(&self, core: &VerbsCore) -> bool {
        let kept = self.slab.used() > 0 || !self.out.is_empty();
        kept || !self.connecting.is_empty() && self.is_connecting(core)
    }

    /// Sends credits to those who are owed many, unless a message has carried them.
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

    /// `peer` has taken its leave: what is still meant for it is lost.
    fn left(&mut self, core: &VerbsCore, peer: usize) {
        self.leave_secondary(core, peer);
        let link = self.link(peer);
        link.phase = ConnectionPhase::Gone;
        if !link.is_empty() {
            let why = "it has left before it took what was sent to it".to_owned();
            self.lose(core, peer, why);
        }
    }

    /// A request to `peer` has failed.
    #[cold]
    fn broken(&mut self, core: &VerbsCore, peer: usize, status: i32) {
        let Some(Some(link)) = self.peers.get_mut(peer) else { return };
        let before = std::mem::replace(&mut link.phase, ConnectionPhase::Lost);
        // Credits and probes may come too late for a peer that has left.
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
