//! Posting of operations, and queues of operations for which there was no room.

use super::OfiState;
use crate::access::{LocalPiece, RemoteKey};
use crate::ffi::*;
use crate::job::OfiCore;
use crate::object::{MessageSupport, Objects};
use crate::peer::OfiPeer;
use crate::random::random;
use crate::requests::{OfiRequest, RemoteTransfer, TransferRegistration, TransferTail};
use crate::wire::{HEADER, OfiHeader, OfiMessageKind, encode_address};
use crate::work::{INLINE_MAX, KeptPayload, OfiWork};
use std::collections::VecDeque;
use std::ptr;
use weft_fabric::{Completion, Fault, Head, PostOutcome, RemoteAddr, Sge};

/// A peer, and the provider's number for the address of this peer.
#[derive(Clone, Copy)]
struct PeerNumber {
    peer: usize,
    number: u64,
}

/// Maximum number of operations under way. Each operation takes memory of the provider, several KiB with some providers. A
/// completed operation makes room.
const OPEN_MOST: usize = 256;

impl OfiState {
    /// Posts a message of the provider. Returns true if the message is posted or the peer is lost, and false if there is no room.
    pub fn post(
        &mut self,
        core: &OfiCore,
        peer: usize,
        kind: OfiMessageKind,
        words: [u64; 3],
        body: &[Sge],
    ) -> bool {
        let &mut OfiPeer { owed, says: proof, me, number, .. } = self.peer(core, peer);
        let header = OfiHeader { proof, rank: me, kind, credits: owed, words };
        let posted =
            self.post_bytes(core, PeerNumber { peer, number }, kind, &header.encode(), body);
        match posted {
            0 => {
                let it = self.peer(core, peer);
                it.owed -= owed;
                true
            }
            posted if posted == -FI_EAGAIN => false,
            posted => {
                let reason = core.objects.why(posted);
                self.lose(core, peer, "a message", &reason);
                true
            }
        }
    }

    /// Posts a header and a body as one message to a peer, whose number at the provider is `to`. Returns 0, or an error below 0.
    fn post_bytes(
        &mut self,
        core: &OfiCore,
        to: PeerNumber,
        kind: OfiMessageKind,
        header: &[u8; HEADER],
        body: &[Sge],
    ) -> isize {
        let PeerNumber { peer, number: to } = to;
        let objects = &core.objects;
        let mut parts = [named(header), Sge::EMPTY, Sge::EMPTY, Sge::EMPTY];
        parts[1..1 + body.len()].copy_from_slice(body);
        let library = match objects.messages() {
            MessageSupport::Pieces(library) => library,
            MessageSupport::Parts(tcp) => {
                // SAFETY: `Tcp::inject` reads the bytes before it returns. The header lives here, and the maker of each other `Sge`
                // promised (`Sge::new`) that it is readable until the operation is complete.
                return unsafe { tcp.inject(to, &parts[..1 + body.len()]) };
            }
        };
        let Ok(buffer) = self.pools.sending.take(objects) else { return -FI_EAGAIN };
        let memory = self.pools.sending.memory(buffer);
        memory.fill(header);
        let mut len = HEADER;
        for &part in body {
            memory.part(len, part.len()).copy_from(part);
            len += part.len();
        }
        let message = memory.part(0, len);
        // `Leave`, the last message, is sent with a completion, which also shows that all earlier messages have left. Without a
        // completion, a provider could still hold injected messages, while a connection is being made, and would lose them when
        // the process ends.
        let injected = len <= objects.facts.inject_max && kind != OfiMessageKind::Leave;
        let posted = if injected {
            // SAFETY: `Libfabric::inject` reads the bytes before it returns. The buffer was taken from the pool and is used only
            // here.
            unsafe { library.inject(to, message) }
        } else {
            let number = self.requests.add(peer, OfiRequest::Send(buffer));
            let context = self.requests.context(number);
            let descriptor = self.pools.sending.descriptor(buffer);
            // SAFETY: `Libfabric::send` needs memory that stays as it is until the operation is complete: the buffer goes back to
            // the pool only then. `descriptor` is that of the buffer.
            let posted = unsafe { library.send(to, message, descriptor, context) };
            if posted != 0 {
                self.requests.take(number);
            }
            posted
        };
        if injected || posted != 0 {
            self.pools.sending.give_back(buffer);
        }
        posted
    }

    pub fn send(
        &mut self,
        core: &OfiCore,
        to: usize,
        head: Head,
        payload: Sge,
        done: Completion,
    ) -> PostOutcome {
        let len = payload.len();
        let most = core.objects.facts.send_max();
        assert!(len <= most, "a payload of {len} bytes exceeds the {most} of send_max");
        if to == core.rank {
            let mut copy = vec![0; len].into_boxed_slice();
            payload.read(&mut copy);
            self.loopback.push_back((head, copy));
            return PostOutcome::Done;
        }
        if self.refuses(core, to).is_some() {
            return PostOutcome::Done;
        }
        if self.peer(core, to).kept_messages.is_empty()
            && self.post_message(core, to, head, payload)
        {
            return PostOutcome::Done;
        }
        // A process that only sends perhaps never calls `progress`. Without this poll, its queue of kept messages would grow.
        self.poll(core);
        self.drain(core, to);
        if self.peer(core, to).kept_messages.is_empty()
            && self.post_message(core, to, head, payload)
        {
            return PostOutcome::Done;
        }
        let (payload, posted) = if len <= INLINE_MAX {
            let mut copy = vec![0; len].into_boxed_slice();
            payload.read(&mut copy);
            (KeptPayload::Copied(copy), PostOutcome::Done)
        } else {
            (KeptPayload::Lent(payload, done), PostOutcome::Later)
        };
        self.peer(core, to).kept_messages.push_back(OfiWork::Message { head, payload });
        self.peers.wait_for(core, to);
        posted
    }

    /// Returns the reason why nothing can be posted to a peer, or `None` if operations can be posted.
    pub fn refuses(&mut self, core: &OfiCore, rank: usize) -> Option<Fault> {
        let peer = self.peer(core, rank);
        if peer.left && !peer.lost {
            let why = format!("it was on {}, and has left already", core.place(rank).host);
            self.trouble.fail(Fault::lost(rank), why);
            return Some(Fault::lost(rank));
        }
        peer.lost.then(|| Fault::lost(rank))
    }

    /// Posts an operation, or keeps it if there is no room.
    pub fn submit(&mut self, core: &OfiCore, peer: usize, work: OfiWork) {
        if self.peer(core, peer).lost {
            return;
        }
        if !self.peer(core, peer).kept_work.is_empty() {
            self.drain(core, peer);
        }
        if !self.peer(core, peer).kept_work.is_empty() || !self.add(core, peer, &work) {
            self.peer(core, peer).kept_work.push_back(work);
            self.peers.wait_for(core, peer);
        }
    }

    /// Submits a message without a body.
    pub fn tell(&mut self, core: &OfiCore, peer: usize, kind: OfiMessageKind, words: [u64; 3]) {
        self.submit(core, peer, OfiWork::Tell { kind, words });
    }

    /// Submits an operation of the program, as [`OfiState::submit`] does. Refuses it if the peer is gone.
    pub fn ask(&mut self, core: &OfiCore, peer: usize, work: OfiWork) -> Result<(), Fault> {
        match self.refuses(core, peer) {
            Some(fault) => Err(fault),
            None => {
                self.submit(core, peer, work);
                Ok(())
            }
        }
    }

    /// Posts an operation. Returns false if there is no room.
    fn add(&mut self, core: &OfiCore, peer: usize, work: &OfiWork) -> bool {
        match *work {
            OfiWork::Message { head, ref payload } => match *payload {
                KeptPayload::Copied(ref bytes) => self.post_message(core, peer, head, named(bytes)),
                KeptPayload::Lent(payload, done) => {
                    let posted = self.post_message(core, peer, head, payload);
                    if posted {
                        core.complete(done);
                    }
                    posted
                }
            },
            OfiWork::Place { ref src, dst, tail, done } => {
                self.place(core, peer, src, dst, tail, done)
            }
            OfiWork::Transfer(transfer) => self.transfer(core, peer, 0, transfer),
            OfiWork::Atomic { kind, at, operands: [first, second], result, done } => {
                let number = self.requests.add(peer, OfiRequest::Reply(Some(result), done));
                let words = [self.requests.ticket(number), first, second];
                let posted = self.post(core, peer, kind, words, &[named(&encode_address(at))]);
                if !posted {
                    self.requests.take(number);
                }
                posted
            }
            OfiWork::Tell { kind, words } => self.post(core, peer, kind, words, &[]),
        }
    }

    fn place(
        &mut self,
        core: &OfiCore,
        peer: usize,
        src: &[u8],
        dst: Option<RemoteAddr>,
        tail: TransferTail,
        done: Completion,
    ) -> bool {
        let number = done.is_some().then(|| self.requests.add(peer, OfiRequest::Reply(None, done)));
        let ticket = number.map_or(0, |number| self.requests.ticket(number));
        let (words, flag) = match tail {
            TransferTail::Flag(at, value) => ([ticket, 0, value], at),
            TransferTail::Immediate(number) => ([ticket, 1, number.into()], RemoteAddr::default()),
        };
        let (dst, flag) = (encode_address(dst.unwrap_or_default()), encode_address(flag));
        let body = [named(&dst), named(&flag), named(src)];
        let posted = self.post(core, peer, OfiMessageKind::Place, words, &body);
        if !posted && let Some(number) = number {
            self.requests.take(number);
        }
        posted
    }

    /// Registers local memory for one transfer, if the provider needs registered memory and the memory is not registered yet.
    fn register(&mut self, objects: &Objects, memory: Sge) -> Result<TransferRegistration, Fault> {
        if !objects.registers_local() {
            return Ok(TransferRegistration::Nothing);
        }
        if let Some(id) = self.memory.registrations.use_for_transfer(memory) {
            return Ok(TransferRegistration::Shared(id));
        }
        let access = FI_READ | FI_WRITE;
        // SAFETY: `register` needs memory that stays mapped until the registration is closed. The maker of the `Sge` promised
        // that the memory stays mapped until the operation is complete (`Sge::new`), and the registration is closed then.
        let made = unsafe { objects.register(memory.ptr(), memory.len(), access, random() >> 1) };
        made.map(TransferRegistration::Own)
    }

    /// Releases the registration of a transfer that has ended.
    pub fn let_go(&mut self, held: TransferRegistration) {
        if let TransferRegistration::Shared(id) = held {
            self.memory.registrations.transferred(id);
        }
    }

    /// Returns the endpoint of a rail, and the number of a peer's address on this rail.
    #[inline]
    pub fn on<'c>(&mut self, core: &'c OfiCore, rail: usize, peer: usize) -> (&'c Objects, u64) {
        match rail {
            0 => (&core.objects, self.peer(core, peer).number),
            _ => (&core.others[rail - 1].objects, core.others[rail - 1].numbers[peer]),
        }
    }

    /// Posts a write with its tail, or a read, on a rail. Returns false if there is no room.
    pub fn transfer(
        &mut self,
        core: &OfiCore,
        peer: usize,
        rail: usize,
        whole: RemoteTransfer,
    ) -> bool {
        if self.requests.open() >= OPEN_MOST {
            return false;
        }
        let (objects, to) = self.on(core, rail, peer);
        let RemoteTransfer { access, local, remote, done, .. } = whole;
        let held = match self.register(objects, local) {
            Ok(held) => held,
            Err(fault) => {
                let why = fault.to_string();
                self.trouble.fail(fault, why);
                return true;
            }
        };
        let descriptor = match &held {
            TransferRegistration::Nothing => ptr::null_mut(),
            TransferRegistration::Shared(id) => self.memory.registrations.descriptor(rail, *id),
            TransferRegistration::Own(registration) => registration.descriptor(),
        };
        let facts = &objects.facts;
        let at = if objects.names_by_address() { remote.at } else { remote.offset };
        // If the provider keeps messages behind earlier writes, the tail is posted at once, and its answer ends the operation.
        let now = whole.tail.filter(|_| facts.sends_follow_writes);
        let rest = match now {
            Some(_) => RemoteTransfer { tail: None, done: None, ..whole },
            None => whole,
        };
        let number = self.requests.add(peer, OfiRequest::Transfer(rail as u8, rest, held));
        let context = self.requests.context(number);
        // SAFETY: `transfer` needs local memory that lives until the operation is complete: the maker of the `Sge` promised this
        // (`Sge::new`). The descriptor is that of the memory's registration.
        let posted = unsafe {
            let remote = RemoteKey { at, key: remote.key };
            objects.transfer(to, access, LocalPiece { memory: local, descriptor }, remote, context)
        };
        if posted != 0
            && let (_, OfiRequest::Transfer(.., TransferRegistration::Shared(id))) =
                self.requests.take(number)
        {
            self.memory.registrations.refused(id);
        }
        match posted {
            0 => {
                if rail > 0 {
                    self.peer(core, peer).over[rail - 1].under_way += 1;
                }
                if let Some(tail) = now {
                    // The tail must be the next operation behind the write, before all other kept operations.
                    let work = OfiWork::Place { src: Box::default(), dst: None, tail, done };
                    if !self.add(core, peer, &work) {
                        self.peer(core, peer).kept_work.push_front(work);
                        self.peers.wait_for(core, peer);
                    }
                }
                true
            }
            posted if posted == -FI_EAGAIN => false,
            posted => {
                let reason = objects.why(posted);
                if rail > 0 {
                    // No part of this transfer is under way.
                    self.rail_failed(core, peer, rail, &reason);
                    self.submit(core, peer, OfiWork::Transfer(whole));
                } else {
                    self.lose(core, peer, "a transfer", &reason);
                }
                true
            }
        }
    }

    /// Posts the operations of a queue of a peer, until there is no room. Returns true if anything was posted.
    fn drain_queue(
        &mut self,
        core: &OfiCore,
        rank: usize,
        queue: impl Fn(&mut OfiPeer) -> &mut VecDeque<OfiWork>,
    ) -> bool {
        let mut moved = false;
        while let Some(work) = queue(self.peer(core, rank)).pop_front() {
            if !self.add(core, rank, &work) {
                queue(self.peer(core, rank)).push_front(work);
                break;
            }
            moved = true;
        }
        moved
    }

    /// Posts operations that are kept for `rank`. Returns true if anything moved.
    pub fn drain(&mut self, core: &OfiCore, rank: usize) -> bool {
        let moved = self.drain_queue(core, rank, |peer| &mut peer.kept_messages)
            | self.drain_queue(core, rank, |peer| &mut peer.kept_work);
        moved | self.drain_rails(core, rank)
    }

    /// Posts operations that are kept for any peer. Returns true if anything moved.
    pub fn drain_all(&mut self, core: &OfiCore) -> bool {
        let mut moved = false;
        for i in (0..self.peers.waiting()).rev() {
            moved |= self.drain(core, self.peers.waiting_at(i));
            self.peers.drop_drained(core, i);
        }
        // A sleeper notices the end of an operation, but not that the provider has room again.
        let no_room = self.peers.waits() && self.requests.open() < OPEN_MOST;
        // A sleeper also does not notice the end of a connection.
        core.sleeper.set_naps(no_room || !self.changes.asking.is_empty() || self.is_shutting());
        moved
    }
}

/// Makes an `Sge` of bytes that are copied before the posting call returns.
fn named(bytes: &[u8]) -> Sge {
    // SAFETY: `Sge::new` needs memory that stays readable until the operation is complete. The bytes are borrowed, and are only
    // read before the posting call returns.
    unsafe { Sge::new(bytes.as_ptr().cast_mut(), bytes.len()) }
}
