//! State that changes while a [`crate::Verbs`] is used. Operations that need several parts of the state are in the folder `state`.

mod connecting;
mod links;
mod messages;
pub mod onesided;
pub mod peek;
mod secondary_connections;

use crate::adapter::object::BATCH;
use crate::connection::arrivals::Arrivals;
use crate::connection::connection_shutdowns::ConnectionShutdowns;
use crate::connection::connections::Connections;
use crate::connection::debts::Debts;
use crate::connection::handshakes::Handshakes;
use crate::connection::posting::Posting;
use crate::connection::work_backlog::WorkBacklog;
use crate::connection::{ConnectionPhase, VerbsConnection};
use crate::datagrams::{GREETER_TAG, MULTICAST_TAG};
use crate::ffi::*;
use crate::job::VerbsCore;
use crate::memory::Memories;
use crate::memory::receive_pool::BufferUse;
use crate::multicast::VerbsMulticast;
use crate::rail::VerbsRail;
use crate::trouble;
use crate::watch::PeriodicChecks;
use crate::wire::{ImmediateTag, WAKE, WireKind};
use peek::Peeked;
use weft_fabric::{FabricTrouble, Fault};
use weft_job_connections::JobConnections;

// Fields are dropped in this order: queue pairs before the objects from which they were made.
pub struct VerbsState {
    /// Connections by number, see [`VerbsCore::link_over`].
    pub connections: Connections,
    pub multicast: Option<VerbsMulticast>,
    pub rails: Vec<VerbsRail>,
    pub posting: Posting,
    pub memories: Memories,
    pub kept: WorkBacklog,
    pub links: JobConnections,
    pub arrivals: Arrivals,
    pub handshakes: Handshakes,
    pub secondary: ConnectionShutdowns,
    pub debts: Debts,
    pub peeked: Box<Peeked>,
    /// Addresses of silent flags.
    pub silent: Vec<usize>,
    pub trouble: FabricTrouble,
    pub watch: PeriodicChecks,
}

/// Parts of the state that hold resources of the adapters.
pub struct AdapterParts {
    pub multicast: Option<VerbsMulticast>,
    pub rails: Vec<VerbsRail>,
    pub posting: Posting,
    pub memories: Memories,
}

impl VerbsState {
    /// Makes the state of a process in a job of `size` processes, without connections.
    pub fn new(parts: AdapterParts, size: usize, notes: Vec<String>) -> VerbsState {
        let AdapterParts { multicast, rails, posting, memories } = parts;
        VerbsState {
            connections: Connections::new(0, 1),
            multicast,
            rails,
            posting,
            memories,
            kept: WorkBacklog::new(size.min(64)),
            links: JobConnections::default(),
            arrivals: Arrivals::new(size.min(1024)),
            handshakes: Handshakes::new(size.min(64)),
            secondary: ConnectionShutdowns::default(),
            debts: Debts::new(64),
            peeked: Box::default(),
            silent: Vec::new(),
            trouble: FabricTrouble::new(notes),
            watch: PeriodicChecks::default(),
        }
    }

    /// Handles all completions. Returns true if there were completions.
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
                if let Some(multicast) = &mut self.multicast {
                    multicast.sent(wc.wr_id);
                }
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

    /// Handles the completion of all requests on connection `link` up to `number`.
    fn departed(&mut self, core: &VerbsCore, link: usize, number: u32) {
        let VerbsState { connections, posting, memories, .. } = self;
        if let Some(link) = connections.find(link) {
            posting.departed(core, memories, link, number);
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
    fn arrival(&mut self, core: &VerbsCore, rail: usize, wc: &ibv_wc) -> bool {
        let buffer = wc.wr_id as u32;
        let number = self.connections.of_pair(rail, wc.qp_num);
        let Some(number) = number.filter(|_| wc.status == IBV_WC_SUCCESS) else {
            if let Some(number) = number {
                // The receive queue belongs to all connections, so a failure on any connection counts as a failure of the peer's
                // first connection.
                self.broken(core, core.peer_of(number), wc.status);
            }
            return self.rails[rail].receives.give_back(buffer, core.rank, BufferUse::Control);
        };
        if self.connections.of(number).phase == ConnectionPhase::Connecting {
            // The peer sends messages, so it has received the connect request of this end.
            self.settle(core, number);
        }
        let VerbsState { connections, rails, arrivals, trouble, .. } = self;
        let pool = &mut rails[rail].receives;
        let immediate = u32::from_be(wc.imm_data);
        if wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM {
            if immediate != WAKE {
                core.counters.add(core.counters.immediate(immediate), 1);
            }
            return pool.give_back(buffer, number, BufferUse::Event);
        }
        let tag = ImmediateTag::decode(immediate);
        let link = connections.of(number);
        link.messages += tag.messages;
        link.events += tag.events;
        if wc.wc_flags & IBV_WC_WITH_IMM == 0
            || tag.kind == WireKind::Message && !arrivals.deliver(link, pool, wc)
        {
            let what = "message length";
            trouble.fail(Fault::corrupt(number, what), format!("{} bytes", wc.byte_len));
            return pool.give_back(buffer, number, BufferUse::Control);
        }
        match tag.kind {
            WireKind::Message => return false,
            WireKind::Credits => {
                if wc.byte_len == 8 {
                    self.hear_shut(core, rail, number, buffer);
                }
            }
            WireKind::Reserved => {
                core.counters.add(core.counters.immediate(WAKE), 1);
                return pool.give_back(buffer, number, BufferUse::Event);
            }
            WireKind::Disconnect => self.left(core, number),
        }
        self.rails[rail].receives.give_back(buffer, number, BufferUse::Control)
    }

    /// Posts idle receive buffers, and counts the credits that are owed to peers for these buffers.
    fn repost(&mut self, core: &VerbsCore, rail: usize) {
        let VerbsState { connections, rails, debts, trouble, .. } = self;
        let posted = rails[rail].receives.repost(|number, of| {
            if let Some(link) = connections.find(number) {
                debts.owe(core, link, of);
            }
        });
        if let Err(fault) = posted {
            trouble.fail(fault, "the shared receive queue".to_owned());
        }
        self.pay(core);
    }

    /// Sends credits to peers to which many credits are owed. Returns true if any credits were sent.
    pub fn pay(&mut self, core: &VerbsCore) -> bool {
        let VerbsState { connections, posting, debts, trouble, .. } = self;
        debts.pay(core, connections, posting, trouble)
    }

    /// Posts work that is kept for connection `number`. Returns true if any work was posted.
    fn drain(&mut self, core: &VerbsCore, number: usize) -> bool {
        let VerbsState { connections, posting, memories, kept, trouble, .. } = self;
        kept.drain(core, memories, connections.of(number), posting, trouble)
    }

    /// Posts kept work for all peers. Returns true if any work was posted.
    pub fn drain_all(&mut self, core: &VerbsCore) -> bool {
        let VerbsState { connections, posting, memories, kept, trouble, .. } = self;
        kept.drain_all(core, memories, connections, posting, trouble)
    }

    /// Posts a probe, a request that transfers nothing, on connection `number`. Returns false if there is no room.
    pub fn probe(&mut self, number: usize) -> bool {
        self.post_control(number, Posting::add_probe)
    }

    /// Disconnects from `peer`. Returns false if there is no room for the message.
    pub fn disconnect(&mut self, peer: usize) -> bool {
        self.post_control(peer, Posting::add_disconnect)
    }

    /// Posts a control request on a connection. `add` adds the request to the batch, and returns false if there is no room.
    pub fn post_control(
        &mut self,
        number: usize,
        add: impl FnOnce(&mut Posting, &mut VerbsConnection) -> bool,
    ) -> bool {
        let VerbsState { connections, posting, trouble, .. } = self;
        let link = connections.of(number);
        let added = add(posting, link);
        if added {
            posting.ring(link, trouble);
        }
        added
    }

    /// Returns true if work is kept, or if a connection is being made. Then the helper must wake for all events, not only for
    /// solicited messages.
    #[inline]
    pub fn is_busy(&self, core: &VerbsCore) -> bool {
        self.keeps_work() || self.handshakes.is_connecting(core, &self.connections)
    }

    /// Returns true if work is kept, or if a shut connection still has work to hand over.
    #[inline]
    pub fn keeps_work(&self) -> bool {
        !self.kept.is_empty() || self.secondary.holds_work()
    }

    /// Handles the disconnect message of `peer`. Work that is kept for `peer` is lost.
    fn left(&mut self, core: &VerbsCore, peer: usize) {
        let VerbsState { connections, handshakes, trouble, .. } = self;
        for number in core.links_with(peer).skip(1) {
            let Some(link) = connections.get_mut(number) else { continue };
            if link.phase != ConnectionPhase::Lost {
                link.phase = ConnectionPhase::Gone;
            }
            handshakes.end(link.number);
        }
        let link = connections.of(peer);
        link.phase = ConnectionPhase::Gone;
        if !link.is_empty() {
            let why = "it has left before it took what was sent to it".to_owned();
            trouble::lose(trouble, core, peer, why);
        }
    }

    /// Handles the failure of a request to `peer`.
    #[cold]
    fn broken(&mut self, core: &VerbsCore, peer: usize, status: i32) {
        let VerbsState { connections, rails, trouble, .. } = self;
        let Some(link) = connections.find(peer) else { return };
        let before = std::mem::replace(&mut link.phase, ConnectionPhase::Lost);
        // Credits and probes may arrive too late at a peer that has left. Their failure is not a fault.
        if before == ConnectionPhase::Lost || before == ConnectionPhase::Gone && !link.is_awaited()
        {
            return;
        }
        let why = crate::trouble::explain(core, rails, link.rail, peer, status);
        match status {
            IBV_WC_REM_ACCESS_ERR => {
                trouble.fail(Fault::corrupt(peer, "memory key (its adapter refuses it)"), why);
            }
            _ => trouble::lose(trouble, core, peer, why),
        }
    }

    /// Posts a probe to every peer that was silent since the last call. With these probes, a lost peer is detected even if this
    /// process only waits for messages of the peer.
    pub fn ask_silent_peers(&mut self) {
        for peer in 0..self.connections.peers() {
            let Some(link) = self.connections.get_mut(peer) else { continue };
            let silent = !std::mem::replace(&mut link.lively, false);
            // If a signaled request is in flight, the adapter reports its completion or failure anyway.
            if silent && link.unsignaled as usize == link.outstanding() {
                self.probe(peer);
            }
        }
    }
}
