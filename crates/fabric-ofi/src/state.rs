//! State of one process: what it knows of its peers, and its work in each poll (completions, arrivals, kept operations).

use crate::alive::Signs;
use crate::buffers::MessageBuffers;
use crate::connection_state::{ConnectionState, KeepaliveTimes};
use crate::ffi::*;
use crate::helper_thread::HelperPlace;
use crate::long_messages::Assembly;
use crate::memory::ProcessMemory;
use crate::object::{Objects, PollOutcome};
use crate::rails::{ExtraRail, Over, Probes, RAILS_MAX};
use crate::requests::{OfiRequest, RequestTable};
use crate::sleep::OfiSleeper;
use crate::wire::{FOREIGN, OfiMessageKind, proof};
use crate::work::OfiWork;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use weft_fabric::{Completion, Counters, Fault, Head, Sge, repeated};
use weft_job_connections::{JobConnections, Roster};

/// Number of receive buffers that are posted, for all peers together.
const POSTED: usize = 64;

/// Maximum number of completions taken at a time.
const BATCH: usize = 16;

/// Maximum number of polls that are skipped in a row while nothing comes. With some providers a poll is one or two system calls,
/// and a process that waits for a rank of its own node polls millions of times a second.
const REST_MOST: u32 = 16;

/// Number of polls without a result after which one more poll is skipped. Skipping delays an arrival only by a small part of the
/// time that it took: a skipped poll may take as long as a real one, if the processor is offered to other threads in between.
const LOOKS_PER_REST: u32 = 16;

/// Host and address of a peer, in readable form.
#[derive(Debug, Clone)]
pub struct Where {
    pub host: String,
    pub address: String,
    /// True if the process is on this machine, but in another network namespace.
    pub is_apart: bool,
}

/// A process that can be reached.
pub struct OfiProcess {
    /// The provider's number for its address.
    pub number: u64,
    pub place: Where,
    /// Address of its endpoint, if the provider uses TCP.
    pub ip: Option<SocketAddr>,
}

/// The part of the state that does not change.
pub struct OfiCore {
    pub objects: Arc<Objects>,
    pub sleeper: Arc<OfiSleeper>,
    pub helper: Arc<HelperPlace>,
    pub counters: Rc<Counters>,
    pub rank: usize,
    /// Secret of the job.
    pub secret: u128,
    /// Number of processes of the job.
    pub size: usize,
    /// All processes that can be reached, on the first rail.
    pub roster: RefCell<Roster<OfiProcess>>,
    /// Set if a link with another job has news: a process is lost, or all have left.
    pub alarm: Arc<AtomicBool>,
    /// The further rails, between the processes of the job.
    pub others: Vec<ExtraRail>,
    /// Memory for probes, if there are further rails.
    pub probes: Option<Probes>,
    /// Time for which a peer may be silent before a waiting process asks it for a sign of life. Zero: it is never asked.
    pub keepalive: Duration,
    /// Time for which a peer's host may leave something unacknowledged.
    pub patience: Duration,
    /// Number of messages that a peer may have sent without having their credits back.
    pub credits: usize,
    pub same_arithmetic: bool,
    /// Reason for this provider and this interface.
    pub why: String,
    /// Function that prints a line for the user.
    pub say: fn(&str),
}

impl OfiCore {
    /// Returns the number of rails.
    pub fn rails(&self) -> usize {
        1 + self.others.len()
    }

    /// Returns the address of an endpoint on a rail, if the provider uses TCP.
    pub fn ip(&self, rail: usize, rank: usize) -> Option<SocketAddr> {
        match rail {
            0 => self.roster.borrow().member(rank).ip,
            _ => self.others[rail - 1].ips.get(rank).copied().flatten(),
        }
    }

    /// Returns true if some process has its endpoint of the rail at `there`.
    pub fn is_an_endpoint(&self, rail: usize, there: SocketAddr) -> bool {
        match rail {
            0 => self.roster.borrow().iter().any(|(_, member)| member.ip == Some(there)),
            _ => self.others[rail - 1].ips.contains(&Some(there)),
        }
    }

    pub fn times(&self) -> KeepaliveTimes {
        KeepaliveTimes { keepalive: self.keepalive, patience: self.patience }
    }

    /// Returns the state of the connection to a peer on a rail, or `None` if the endpoint does not know it.
    pub fn way(&self, rail: usize, rank: usize) -> Option<ConnectionState> {
        match rail {
            0 => self.objects.way(self.roster.borrow().member(rank).number),
            _ => {
                let rail = &self.others[rail - 1];
                rail.objects.way(*rail.numbers.get(rank)?)
            }
        }
    }

    /// Returns host and address, in readable form.
    pub fn place(&self, rank: usize) -> Where {
        self.roster.borrow().member(rank).place.clone()
    }

    /// Returns the proof with which a message from `rank` must begin, or `None` if there is no such process.
    pub fn proof_of(&self, rank: usize) -> Option<u64> {
        if rank < self.size {
            return Some(proof(self.secret, rank as u32, self.rank as u32));
        }
        let foreign = self.roster.borrow().foreign(rank)?;
        Some(proof(foreign.secret, rank as u32, FOREIGN))
    }

    /// Returns true if the provider keeps something that only a poll sends.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        self.objects.has_unsent() || self.others.iter().any(|rail| rail.objects.has_unsent())
    }

    #[inline]
    pub fn complete(&self, done: Completion) {
        if let Some(counter) = done {
            self.counters.add(counter, 1);
        }
    }
}

/// State of a peer with which something was exchanged.
pub struct OfiPeer {
    /// The provider's number for its address on the first rail.
    pub number: u64,
    /// The first words of messages to the peer: a proof, and the peer's number for this process.
    pub says: u64,
    pub me: u32,
    /// The proof at the beginning of the peer's messages. `None` means that the peer sends none.
    pub expects: Option<u64>,
    /// Credits: number of messages that may still be sent to the peer.
    pub credits: usize,
    /// Credits that the peer gets with the next message to it.
    pub owed: u16,
    /// Bytes of the next message that are posted as parts.
    pub posted: usize,
    /// The part of a long message that has arrived so far.
    pub assembly: Option<Assembly>,
    /// Buffers and lengths of messages that have arrived.
    pub inbox: VecDeque<(u32, usize)>,
    /// True if the peer is in the queue of peers with messages.
    pub listed: bool,
    /// Messages that found no room, and all other operations that found none.
    pub kept_messages: VecDeque<OfiWork>,
    pub kept_work: VecDeque<OfiWork>,
    /// True if the peer is in the list of peers with kept operations.
    pub waiting: bool,
    /// The further rails to the peer.
    pub over: Box<[Over]>,
    /// By rail: number of writes that were asked for on the rail and are not complete.
    pub written: [u32; RAILS_MAX],
    /// True if the peer has announced that nothing more will come.
    pub left: bool,
    /// True if this process does not need the peer any more. Its end is no loss then.
    pub unmissed: bool,
    /// True if the peer is lost. Nothing is posted to it.
    pub lost: bool,
    pub signs: Signs,
}

/// The part of the state that changes.
pub struct OfiState {
    pub peers: Vec<Option<Box<OfiPeer>>>,
    pub memory: ProcessMemory,
    pub requests: RequestTable,
    pub sending: MessageBuffers,
    pub receiving: MessageBuffers,
    /// Buffers for messages that come in parts.
    pub whole: MessageBuffers,
    /// Number of receive buffers that the provider has.
    pub posted: usize,
    /// Peers with messages, in the order of their turns.
    pub arrived: VecDeque<u32>,
    pub links: JobConnections,
    /// Peers for which something is kept.
    pub waiting: Vec<u32>,
    /// Peers and rails that are being tried, then those that are being shut.
    pub asking: Vec<(u32, u8)>,
    pub closing: Vec<(u32, u8)>,
    /// Time of the next look at connections that are being shut.
    pub next_scan: Instant,
    /// By rail: bytes of completed transfers.
    pub carried: [u64; RAILS_MAX],
    /// Number of transfers that were repeated over the first rail.
    pub repeated: u64,
    /// Notes for the user about rails and connections.
    pub notes: Vec<String>,
    /// Number of peers that were reached by another way than the agreed one.
    pub detours: u64,
    /// Number of polls until the further rails are polled, while nothing is under way.
    pub others_rest: Cell<u32>,
    /// Messages of this process to itself.
    pub loopback: VecDeque<(Head, Box<[u8]>)>,
    pub fault: Option<Fault>,
    /// The fault in words, with host and address.
    pub trouble: Option<String>,
    /// Time of the next look at peers.
    pub next_look: Instant,
    /// Time since which this process ends. From then on no peer is missed.
    pub ending: Option<Instant>,
    /// Number of messages that came without the secret of the job.
    pub strangers: u64,
    /// Number of polls to skip before the next one, and number of polls in a row without a result.
    rest: Cell<u32>,
    vain: Cell<u32>,
}

impl OfiState {
    pub fn new(core: &OfiCore, memory: ProcessMemory) -> OfiState {
        OfiState {
            peers: (0..core.size).map(|_| None).collect(),
            memory,
            requests: RequestTable::default(),
            sending: MessageBuffers::new(core.objects.facts.buffer),
            receiving: MessageBuffers::new(core.objects.facts.buffer),
            whole: MessageBuffers::new(crate::wire::HEADER + core.objects.facts.send_max()),
            posted: 0,
            arrived: VecDeque::new(),
            links: JobConnections::default(),
            waiting: Vec::new(),
            asking: Vec::new(),
            closing: Vec::new(),
            next_scan: Instant::now(),
            carried: [0; RAILS_MAX],
            repeated: 0,
            notes: Vec::new(),
            detours: 0,
            others_rest: Cell::new(0),
            loopback: VecDeque::new(),
            fault: None,
            trouble: None,
            next_look: Instant::now() + core.keepalive,
            ending: None,
            strangers: 0,
            rest: Cell::new(0),
            vain: Cell::new(0),
        }
    }

    /// Returns the peer. Creates its state at the first use.
    #[inline]
    pub fn peer(&mut self, core: &OfiCore, rank: usize) -> &mut OfiPeer {
        self.peers[rank].get_or_insert_with(|| {
            let roster = core.roster.borrow();
            let number = roster.member(rank).number;
            let foreign = roster.foreign(rank);
            let me = foreign.map_or(core.rank as u32, |foreign| foreign.me);
            let says = match foreign {
                Some(foreign) => proof(foreign.secret, me, FOREIGN),
                None => proof(core.secret, me, rank as u32),
            };
            let expects = core.proof_of(rank);
            let rails = if foreign.is_some() { 0 } else { core.others.len() };
            Box::new(OfiPeer {
                number,
                says,
                me,
                expects,
                credits: core.credits,
                owed: 0,
                posted: 0,
                assembly: None,
                inbox: VecDeque::new(),
                listed: false,
                kept_messages: VecDeque::new(),
                kept_work: VecDeque::new(),
                waiting: false,
                over: (0..rails).map(|_| Over::default()).collect(),
                written: [0; RAILS_MAX],
                left: false,
                unmissed: false,
                lost: false,
                signs: Signs::new(),
            })
        })
    }

    /// Records that the job cannot go on. Only the first fault and reason are kept.
    #[cold]
    pub fn fail(&mut self, fault: Fault, why: String) {
        debug_assert_eq!(repeated(&fault.because(&why)), None);
        if self.fault.is_none() {
            (self.fault, self.trouble) = (Some(fault), Some(why));
        }
    }

    /// Gives the provider buffers for messages to come.
    pub fn repost(&mut self, core: &OfiCore) -> Result<(), Fault> {
        while self.posted < POSTED {
            let buffer = self.receiving.take(&core.objects)?;
            let number = self.requests.add(core.rank, OfiRequest::Receive(buffer));
            let memory = self.receiving.memory(buffer);
            let context = self.requests.context(number);
            let descriptor = self.receiving.descriptor(buffer);
            // SAFETY: `Objects::post` needs a buffer that is not touched until the operation is complete: it goes back to the pool
            // only then. The descriptor is that of the buffer.
            let posted = unsafe { core.objects.post(memory, descriptor, context) };
            if posted != 0 {
                self.requests.take(number);
                self.receiving.give_back(buffer);
                // The provider has no room now. The posted buffers are enough to go on.
                return if posted == -FI_EAGAIN && self.posted > 0 {
                    Ok(())
                } else {
                    Err(Fault::system("posting a receive buffer", -posted as i32))
                };
            }
            self.posted += 1;
        }
        Ok(())
    }

    /// Polls, or skips the poll, at almost no cost, if nothing has come for a while.
    #[inline]
    pub fn look(&mut self, core: &OfiCore) -> bool {
        let rest = self.rest.get();
        let must = core.sleeper.take_must_look();
        if core.alarm.load(Ordering::Acquire) {
            self.hear_of_links(core);
        }
        if rest > 0 && self.waiting.is_empty() && !must {
            self.rest.set(rest - 1);
            return false;
        }
        let moved = self.poll(core) | self.poll_others(core, must) | self.drain_all(core);
        if moved {
            core.sleeper.found();
        }
        let vain = if moved { 0 } else { self.vain.get().saturating_add(1) };
        self.vain.set(vain);
        self.rest.set((vain / LOOKS_PER_REST).min(REST_MOST));
        if self.rest.get() >= REST_MOST / 4 {
            self.look_at_peers(core);
        }
        moved
    }

    /// Takes completed operations and arrived messages.
    pub fn poll(&mut self, core: &OfiCore) -> bool {
        let moved = self.poll_queue(core, &core.objects);
        if moved && let Err(fault) = self.repost(core) {
            let why = fault.to_string();
            self.fail(fault, why);
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
                    self.fail(Fault::system("fi_cq_read", -error as i32), why);
                }
            }
            break;
        }
        moved
    }

    /// Takes the error at the head of the queue.
    #[cold]
    fn poll_error(&mut self, core: &OfiCore, objects: &Objects) {
        let Some((context, reason)) = objects.take_failed() else { return };
        let Some(number) = self.requests.number(context) else { return };
        let (peer, request) = self.requests.take(number);
        let what = match request {
            OfiRequest::Receive(buffer) => {
                // No peer is known to be at fault: the message was longer than this library sends, or the receive was cancelled.
                self.posted -= 1;
                self.receiving.give_back(buffer);
                return;
            }
            OfiRequest::Send(buffer) => {
                self.sending.give_back(buffer);
                "a message"
            }
            OfiRequest::Transfer(rail, transfer, held) => {
                self.let_go(held);
                if rail > 0 {
                    return self.rail_lost(core, peer, rail, transfer, &reason);
                }
                if transfer.write { "a write" } else { "a read" }
            }
            OfiRequest::Probe(rail) => {
                return self.rail_failed(core, peer, rail.into(), &reason);
            }
            OfiRequest::Reply(..) | OfiRequest::Free => return,
        };
        self.lose(core, peer, what, &reason);
    }

    /// Handles a request that has ended well. `len` is the number of bytes that arrived.
    fn over(&mut self, core: &OfiCore, number: u32, len: usize) {
        let (peer, request) = self.requests.take(number);
        if let (OfiRequest::Transfer(0, ..), Some(peer)) = (&request, &mut self.peers[peer]) {
            peer.signs.heard = true;
        }
        match request {
            OfiRequest::Receive(buffer) => {
                self.posted -= 1;
                self.arrival(core, buffer, len);
            }
            OfiRequest::Send(buffer) => self.sending.give_back(buffer),
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

    /// Tells a peer how many messages it may send, if it is owed at least half of its credits.
    pub fn settle(&mut self, core: &OfiCore, rank: usize) {
        let half = (core.credits / 2).max(1);
        if usize::from(self.peer(core, rank).owed) >= half {
            self.submit(core, rank, OfiWork::Tell { kind: OfiMessageKind::Credits, words: [0; 3] });
        }
    }

    /// Returns the payload in a buffer.
    pub fn payload(&self, buffer: u32, len: usize) -> Sge {
        self.arrived_in(buffer).part(crate::wire::HEADER, len)
    }
}
