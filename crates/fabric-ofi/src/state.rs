//! What one process knows of its peers, and what it does when nobody looks: completions, arrivals, what was kept.

use crate::alive::Signs;
use crate::buffers::MessageBuffers;
use crate::connection_state::{ConnectionState, KeepaliveTimes};
use crate::ffi::*;
use crate::helper::HelperPlace;
use crate::memory::ProcessMemory;
use crate::object::{Objects, PollOutcome};
use crate::parts::Assembly;
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
use weft_fabric::linking::{JobConnections, Roster};
use weft_fabric::{Completion, Counters, Fault, Head, Sge, repeated};

/// Buffers that wait for what arrives, of all peers together.
const POSTED: usize = 64;

/// Completions that are taken at a time.
const BATCH: usize = 16;

/// Looks that are left out, at most, while nothing comes: each is a system call or two with some providers, and who waits for
/// a rank of the own node looks millions of times a second.
const REST_MOST: u32 = 16;

/// Looks in vain for one that is left out. What comes is found late by a small part of the time that it took: a look that is
/// left out may take as long as one, where the processor is offered to others in between.
const LOOKS_PER_REST: u32 = 16;

/// Where a peer is, for people.
#[derive(Debug, Clone)]
pub struct Where {
    pub host: String,
    pub address: String,
    /// The process is on this machine, but in another network namespace.
    pub is_apart: bool,
}

/// One process.
pub struct OfiProcess {
    /// The provider's number of its address.
    pub number: u64,
    pub place: Where,
    /// The address of its endpoint, of providers that speak TCP.
    pub ip: Option<SocketAddr>,
}

/// What does not change.
pub struct OfiCore {
    pub objects: Arc<Objects>,
    pub sleeper: Arc<OfiSleeper>,
    pub helper: Arc<HelperPlace>,
    pub counters: Rc<Counters>,
    pub rank: usize,
    /// The job's.
    pub secret: u64,
    /// Processes of the job.
    pub size: usize,
    /// All that can be reached, on the first rail.
    pub roster: RefCell<Roster<OfiProcess>>,
    /// A link with another job has something to say: that a process is lost, or that all have left.
    pub alarm: Arc<AtomicBool>,
    /// The rails beside the first, between the processes of the job.
    pub others: Vec<ExtraRail>,
    /// There if there are further rails.
    pub probes: Option<Probes>,
    /// How long a peer may be silent before who waits asks for a sign of life; zero: it never does.
    pub keepalive: Duration,
    /// How long a peer's host may leave something unacknowledged.
    pub patience: Duration,
    /// Messages that a peer may have sent and not had back.
    pub credits: usize,
    pub same_arithmetic: bool,
    /// Why this provider and this interface.
    pub why: String,
    /// Function that prints a line for the user.
    pub say: fn(&str),
}

impl OfiCore {
    /// How many rails there are.
    pub fn rails(&self) -> usize {
        1 + self.others.len()
    }

    /// The address of an endpoint on a rail, of providers that speak TCP.
    pub fn ip(&self, rail: usize, rank: usize) -> Option<SocketAddr> {
        match rail {
            0 => self.roster.borrow().member(rank).ip,
            _ => self.others[rail - 1].ips.get(rank).copied().flatten(),
        }
    }

    /// Whether some process has its endpoint of a rail there.
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

    /// Host and address, for people.
    pub fn place(&self, rank: usize) -> Where {
        self.roster.borrow().member(rank).place.clone()
    }

    /// What a message from `rank` must begin with; `None`: there is nobody.
    pub fn proof_of(&self, rank: usize) -> Option<u64> {
        if rank < self.size {
            return Some(proof(self.secret, rank as u32, self.rank as u32));
        }
        let foreign = self.roster.borrow().foreign(rank)?;
        Some(proof(foreign.secret, rank as u32, FOREIGN))
    }

    /// Whether the provider keeps something that only a look sends.
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

/// What is kept of a peer with which something was exchanged.
pub struct OfiPeer {
    /// The provider's number of its address on the first rail.
    pub number: u64,
    /// The first words of messages to the peer: a proof, and the peer's number for this process.
    pub says: u64,
    pub me: u32,
    /// The proof at the beginning of the peer's messages. `None` means that the peer sends none.
    pub expects: Option<u64>,
    /// Messages that may still be sent.
    pub credits: usize,
    /// Credits that it will be given with what is sent next.
    pub owed: u16,
    /// Bytes of the message that is next which were posted in parts.
    pub posted: usize,
    /// What has come of a message in parts.
    pub assembly: Option<Assembly>,
    /// Buffers of messages that have arrived.
    pub inbox: VecDeque<(u32, usize)>,
    /// It stands among those that have messages.
    pub listed: bool,
    /// Messages that found no room, and all else.
    pub kept_messages: VecDeque<OfiWork>,
    pub kept_work: VecDeque<OfiWork>,
    /// It stands among those for whom something is kept.
    pub waiting: bool,
    /// The further rails to it.
    pub over: Box<[Over]>,
    /// By rail: writes that were asked for there and are not over.
    pub written: [u32; RAILS_MAX],
    /// It has said that nothing more will come.
    pub left: bool,
    /// This process needs it no more: its end is no loss.
    pub unmissed: bool,
    /// It is lost: nothing is posted to it.
    pub lost: bool,
    pub signs: Signs,
}

/// What changes.
pub struct OfiState {
    pub peers: Vec<Option<Box<OfiPeer>>>,
    pub memory: ProcessMemory,
    pub requests: RequestTable,
    pub sending: MessageBuffers,
    pub receiving: MessageBuffers,
    /// For messages that come in parts.
    pub whole: MessageBuffers,
    /// Buffers that the provider has for what arrives.
    pub posted: usize,
    /// Peers with messages, in the order of their turns.
    pub arrived: VecDeque<u32>,
    pub links: JobConnections,
    /// Peers for whom something is kept.
    pub waiting: Vec<u32>,
    /// Peers and rails that are being tried, and those that are being shut.
    pub asking: Vec<(u32, u8)>,
    pub closing: Vec<(u32, u8)>,
    /// When connections that are being shut are looked at next.
    pub next_scan: Instant,
    /// By rail: bytes of transfers that are over.
    pub carried: [u64; RAILS_MAX],
    /// Transfers that were repeated over the first rail.
    pub repeated: u64,
    /// Notes for the user about rails and connections.
    pub notes: Vec<String>,
    /// Number of peers that were reached by another way than the agreed one.
    pub detours: u64,
    /// Looks until the further rails are looked at, while nothing is under way.
    pub others_rest: Cell<u32>,
    /// Messages to ourselves.
    pub loopback: VecDeque<(Head, Box<[u8]>)>,
    pub fault: Option<Fault>,
    /// The fault in words, with host and address.
    pub trouble: Option<String>,
    /// When peers are looked at next.
    pub next_look: Instant,
    /// Since when this process ends: nobody is missed any more.
    pub ending: Option<Instant>,
    /// What came without the secret of the job.
    pub strangers: u64,
    /// Looks that are left out before the next, and how many were after the last one.
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

    /// The peer, from now on known.
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

    /// The job cannot go on: the first reason counts.
    #[cold]
    pub fn fail(&mut self, fault: Fault, why: String) {
        debug_assert_eq!(repeated(&fault.because(&why)), None);
        if self.fault.is_none() {
            (self.fault, self.trouble) = (Some(fault), Some(why));
        }
    }

    /// Gives the provider buffers for what arrives.
    pub fn repost(&mut self, core: &OfiCore) -> Result<(), Fault> {
        while self.posted < POSTED {
            let buffer = self.receiving.take(&core.objects)?;
            let number = self.requests.add(core.rank, OfiRequest::Receive(buffer));
            let memory = self.receiving.memory(buffer);
            let context = self.requests.context(number);
            let descriptor = self.receiving.descriptor(buffer);
            // SAFETY: the buffer is the provider's until the request ends.
            let posted = unsafe { core.objects.post(memory, descriptor, context) };
            if posted != 0 {
                self.requests.take(number);
                self.receiving.give_back(buffer);
                // There is no room now; those that are posted are enough to go on.
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

    /// A look that costs next to nothing when nothing has come for a while.
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

    /// Takes what is over and what has arrived.
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

    /// Takes what is over on one rail.
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

    /// Takes the error that stands at the head of the queue.
    #[cold]
    fn poll_error(&mut self, core: &OfiCore, objects: &Objects) {
        let Some((context, reason)) = objects.take_failed() else { return };
        let Some(number) = self.requests.number(context) else { return };
        let (peer, request) = self.requests.take(number);
        let what = match request {
            OfiRequest::Receive(buffer) => {
                // Nobody's fault that we know of: longer than our messages, or cancelled.
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

    /// A request has ended well; `len`: bytes that arrived.
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

    /// Tells a peer how many messages it may send if it has been waiting for half of them.
    pub fn settle(&mut self, core: &OfiCore, rank: usize) {
        let half = (core.credits / 2).max(1);
        if usize::from(self.peer(core, rank).owed) >= half {
            self.submit(core, rank, OfiWork::Tell { kind: OfiMessageKind::Credits, words: [0; 3] });
        }
    }

    /// The payload of a buffer.
    pub fn payload(&self, buffer: u32, len: usize) -> Sge {
        self.arrived_in(buffer).part(crate::wire::HEADER, len)
    }
}
