//! State of one process that changes while the fabric is used. The files of the folder `state` have the operations that need
//! several parts of the state.

mod alive;
pub mod arrive;
mod connection_news;
mod links;
mod long_messages;
mod posting;
mod rails;

use crate::access::TransferKind;
use crate::ffi::*;
use crate::job::OfiCore;
use crate::memory::ProcessMemory;
use crate::message_pools::MessagePools;
use crate::object::{Objects, PollOutcome};
use crate::options::RAILS_MAX;
use crate::peer::{OfiPeer, OfiPeers};
use crate::poll_pace::{PollNeed, PollPace, PollResult};
use crate::rail_changes::RailChanges;
use crate::requests::{OfiRequest, RequestTable};
use crate::wire::OfiMessageKind;
use crate::work::OfiWork;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Instant;
use weft_fabric::{FabricTrouble, Fault, Head};
use weft_job_connections::JobConnections;

/// Maximum number of completions taken at a time.
const BATCH: usize = 16;

/// Counts of events, for the user.
#[derive(Debug, Clone, Copy, Default)]
pub struct EventCounts {
    /// By rail: number of bytes of completed transfers.
    pub carried: [u64; RAILS_MAX],
    /// Number of transfers that were repeated over the first rail.
    pub repeated: u64,
    /// Number of peers that were reached over a network other than the agreed network.
    pub detours: u64,
    /// Number of messages that came without the secret of the job.
    pub strangers: u64,
}

/// The part of the state that changes.
pub struct OfiState {
    pub peers: OfiPeers,
    pub memory: ProcessMemory,
    pub requests: RequestTable,
    pub pools: MessagePools,
    pub links: JobConnections,
    pub changes: RailChanges,
    /// Messages of this process to itself.
    pub loopback: VecDeque<(Head, Box<[u8]>)>,
    pub trouble: FabricTrouble,
    pub counts: EventCounts,
    pub pace: PollPace,
    /// Time of the next check for silent peers.
    next_look: Instant,
    /// Time at which this process began to end. From then on, the death of a peer does not count as a loss.
    pub ending: Option<Instant>,
}

impl OfiState {
    /// Makes the state of a process without peers, and gives the provider buffers for future messages.
    pub fn new(core: &OfiCore, memory: ProcessMemory) -> Result<OfiState, Fault> {
        let mut requests = RequestTable::default();
        let mut pools = MessagePools::new(&core.objects);
        pools.repost(core, &mut requests)?;
        Ok(OfiState {
            peers: OfiPeers::new(core.size),
            memory,
            requests,
            pools,
            links: JobConnections::default(),
            changes: RailChanges::new(),
            loopback: VecDeque::new(),
            trouble: FabricTrouble::default(),
            counts: EventCounts::default(),
            pace: PollPace::default(),
            next_look: Instant::now() + core.times.keepalive,
            ending: None,
        })
    }

    /// Returns the peer. Creates its state at the first use.
    #[inline]
    pub fn peer(&mut self, core: &OfiCore, rank: usize) -> &mut OfiPeer {
        self.peers.of(core, rank)
    }

    /// Polls, or skips the poll if nothing has come for a while. A skipped poll costs almost nothing.
    #[inline]
    pub fn look(&mut self, core: &OfiCore) -> bool {
        let must = core.sleeper.take_must_look();
        if core.alarm.load(Ordering::Acquire) {
            self.hear_of_links(core);
        }
        // A provider that holds requests back sends them in a poll.
        if self.pace.may_skip() && !self.peers.waits() && !must && !core.has_unsent() {
            self.pace.skip();
            return false;
        }
        let need = if must { PollNeed::Now } else { PollNeed::Usual };
        let moved = self.poll(core) | self.poll_others(core, need) | self.drain_all(core);
        if moved {
            core.sleeper.found();
        }
        if self.pace.count(if moved { PollResult::Moved } else { PollResult::Nothing }) {
            self.look_at_peers(core);
        }
        moved
    }

    /// Takes completed operations and arrived messages.
    pub fn poll(&mut self, core: &OfiCore) -> bool {
        let moved = self.poll_queue(core, &core.objects);
        if moved && let Err(fault) = self.pools.repost(core, &mut self.requests) {
            let why = fault.to_string();
            self.trouble.fail(fault, why);
        }
        if moved {
            self.hear_of_detours(core);
            self.hear_of_ends(core);
        }
        moved
    }

    /// Takes completed operations of one rail.
    pub fn poll_queue(&mut self, core: &OfiCore, objects: &Objects) -> bool {
        let mut moved = false;
        loop {
            let nothing = fi_cq_msg_entry { op_context: std::ptr::null_mut(), flags: 0, len: 0 };
            let mut entries = [nothing; BATCH];
            match objects.take(&mut entries) {
                PollOutcome::Over(count) => {
                    for entry in &entries[..count] {
                        if let Some(number) = self.requests.number(entry.op_context) {
                            self.over(core, number, entry.len);
                        }
                    }
                    moved = true;
                    if count == BATCH {
                        continue;
                    }
                }
                PollOutcome::Moved => moved = true,
                PollOutcome::Nothing => {}
                PollOutcome::Failed => {
                    self.poll_error(core, objects);
                    moved = true;
                    continue;
                }
                PollOutcome::Broken(error) => {
                    let why = objects.why(error);
                    self.trouble.fail(Fault::system("fi_cq_read", -error as i32), why);
                }
            }
            break;
        }
        moved
    }

    /// Takes the error at the head of the completion queue.
    #[cold]
    fn poll_error(&mut self, core: &OfiCore, objects: &Objects) {
        let Some((context, reason)) = objects.take_failed() else { return };
        let Some(number) = self.requests.number(context) else { return };
        let (peer, request) = self.requests.take(number);
        let what = match request {
            OfiRequest::Receive(buffer) => {
                // The peer is not known: a peer has sent a longer message than this library sends, or the receive was cancelled.
                self.pools.cancelled(buffer);
                return;
            }
            OfiRequest::Send(buffer) => {
                self.pools.sending.give_back(buffer);
                "a message"
            }
            OfiRequest::Transfer(rail, transfer, held) => {
                self.let_go(held);
                if rail > 0 {
                    return self.rail_lost(core, peer, rail, transfer, &reason);
                }
                match transfer.access {
                    TransferKind::Write => "a write",
                    TransferKind::Read => "a read",
                }
            }
            OfiRequest::Probe(rail) => {
                return self.rail_failed(core, peer, rail.into(), &reason);
            }
            OfiRequest::Reply(..) | OfiRequest::Free => return,
        };
        self.lose(core, peer, what, &reason);
    }

    /// Handles a request that has completed. `len` is the number of bytes that arrived.
    fn over(&mut self, core: &OfiCore, number: u32, len: usize) {
        let (peer, request) = self.requests.take(number);
        if let (OfiRequest::Transfer(0, ..), Some(peer)) = (&request, self.peers.get_mut(peer)) {
            peer.signs.heard = true;
        }
        match request {
            OfiRequest::Receive(buffer) => {
                self.pools.arrived();
                self.arrival(core, buffer, len);
            }
            OfiRequest::Send(buffer) => self.pools.sending.give_back(buffer),
            OfiRequest::Transfer(rail, transfer, held) => {
                self.let_go(held);
                self.is_over(core, peer, rail, &transfer);
                match transfer.tail {
                    None => core.complete(transfer.done),
                    Some(tail) => {
                        let (src, done) = (Box::default(), transfer.done);
                        self.submit(core, peer, OfiWork::Place { src, dst: None, tail, done });
                    }
                }
            }
            OfiRequest::Probe(rail) => self.rail_opens(core, peer, rail.into()),
            OfiRequest::Reply(..) | OfiRequest::Free => {}
        }
    }

    /// Returns credits to a peer, if the peer is owed at least half of its credits.
    pub fn settle(&mut self, core: &OfiCore, rank: usize) {
        let half = (core.credits / 2).max(1);
        if usize::from(self.peer(core, rank).owed) >= half {
            self.tell(core, rank, OfiMessageKind::Credits, [0; 3]);
        }
    }
}
