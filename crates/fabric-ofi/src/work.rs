//! Posting of operations, and queues for operations that found no room: a peer's messages wait in one queue, everything else in
//! another.

use crate::address;
use crate::ffi::*;
use crate::object::{MessageSupport, Objects};
use crate::random::random;
use crate::requests::{Held, OfiRequest, RemoteTransfer, TransferTail};
use crate::state::{OfiCore, OfiPeer, OfiState};
use crate::wire::{ADDRESS, HEADER, OfiHeader, OfiMessageKind, encode_address};
use std::ptr;
use weft_fabric::{Completion, Fault, Head, PostOutcome, RemoteAddr, Sge};

/// Maximum payload of a message that is copied when the message has to be kept, in bytes.
pub const INLINE_MAX: usize = 256;

/// Maximum length of a write that goes as one message with its tail, in bytes. The target's processor copies these bytes a second
/// time.
pub const PLACE_MAX: usize = (8 << 10) - HEADER - 2 * ADDRESS;

/// Maximum number of operations under way. The provider takes memory for each, several KiB with some providers. A completed
/// operation makes room.
const OPEN_MOST: usize = 256;

/// The payload of a kept message.
pub enum KeptPayload {
    Copied(Box<[u8]>),
    /// Bytes of the caller, which stay until the counter advances.
    Lent(Sge, Completion),
}

/// An operation to post.
pub enum OfiWork {
    Message {
        head: Head,
        payload: KeptPayload,
    },
    /// A short write and its tail. Without an address, only the tail.
    Place {
        src: Box<[u8]>,
        dst: Option<RemoteAddr>,
        tail: TransferTail,
        done: Completion,
    },
    Transfer(RemoteTransfer),
    Atomic {
        kind: OfiMessageKind,
        at: RemoteAddr,
        operands: [u64; 2],
        result: Sge,
        done: Completion,
    },
    Tell {
        kind: OfiMessageKind,
        words: [u64; 3],
    },
}

impl OfiWork {
    /// Returns true if a peer lacks something while this operation is kept. Credits and requests for a sign of life are of no use
    /// to a peer that sends nothing more, and cannot be posted to a peer that has ended.
    fn must_leave(&self) -> bool {
        !matches!(self, OfiWork::Tell { kind: OfiMessageKind::Credits | OfiMessageKind::Ask, .. })
    }
}

impl OfiState {
    /// Returns true if something is kept that a peer waits for.
    pub fn must_leave(&self) -> bool {
        let waiting = self.waiting.iter().flat_map(|&rank| &self.peers[rank as usize]);
        let mut staying = waiting.filter(|peer| !peer.left);
        staying.any(|peer| {
            !peer.kept_messages.is_empty() || peer.kept_work.iter().any(OfiWork::must_leave)
        })
    }

    /// Posts a message of the provider. Returns true if it is on its way or the peer is lost, and false if there is no room.
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
        let posted = self.post_bytes(core, (peer, number), kind, &header.encode(), body);
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

    /// Posts a header and the body behind it to a peer, which the provider calls `to`. Returns 0, or an error below 0.
    fn post_bytes(
        &mut self,
        core: &OfiCore,
        (peer, to): (usize, u64),
        kind: OfiMessageKind,
        header: &[u8; HEADER],
        body: &[Sge],
    ) -> isize {
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
        let Ok(buffer) = self.sending.take(objects) else { return -FI_EAGAIN };
        let memory = self.sending.memory(buffer);
        memory.fill(header);
        let mut len = HEADER;
        for &part in body {
            memory.part(len, part.len()).copy_from(part);
            len += part.len();
        }
        let message = memory.part(0, len);
        // `Leave`, the last message, is sent with a completion that can be waited for, which covers all messages before it. A
        // provider may keep injected messages while a connection is being made, and loses them when the process ends.
        let injected = len <= objects.facts.inject_max && kind != OfiMessageKind::Leave;
        let posted = if injected {
            // SAFETY: `Libfabric::inject` reads the bytes before it returns. The buffer was taken from the pool and is used only
            // here.
            unsafe { library.inject(to, message) }
        } else {
            let number = self.requests.add(peer, OfiRequest::Send(buffer));
            let context = self.requests.context(number);
            let descriptor = self.sending.descriptor(buffer);
            // SAFETY: `Libfabric::send` needs memory that stays as it is until the operation is complete: the buffer goes back to
            // the pool only then. `descriptor` is that of the buffer.
            let posted = unsafe { library.send(to, message, descriptor, context) };
            if posted != 0 {
                self.requests.take(number);
            }
            posted
        };
        if injected || posted != 0 {
            self.sending.give_back(buffer);
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
        // A process that only sends may not call `progress`. Without this poll, its queue of kept messages would grow.
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
        self.wait_for(core, to);
        posted
    }

    /// Returns the reason why nothing can be posted to a peer, or `None` if something can.
    pub fn refuses(&mut self, core: &OfiCore, rank: usize) -> Option<Fault> {
        let peer = self.peer(core, rank);
        if peer.left && !peer.lost {
            let why = format!("it was on {}, and has left already", core.place(rank).host);
            self.fail(Fault::lost(rank), why);
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
            self.wait_for(core, peer);
        }
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

    pub fn wait_for(&mut self, core: &OfiCore, rank: usize) {
        if !std::mem::replace(&mut self.peer(core, rank).waiting, true) {
            self.waiting.push(rank as u32);
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

    /// Registers local memory for one transfer if the provider needs that and the memory is not registered.
    fn register(&mut self, objects: &Objects, memory: Sge) -> Result<Held, Fault> {
        if !objects.registers_local() {
            return Ok(Held::Nothing);
        }
        if let Some(id) = self.memory.use_for_transfer(memory) {
            return Ok(Held::Shared(id));
        }
        let access = FI_READ | FI_WRITE;
        // SAFETY: `register` needs memory that stays mapped until the registration is closed. The maker of the `Sge` promised that
        // until the operation is complete (`Sge::new`), and the registration is closed then.
        let made = unsafe { objects.register(memory.ptr(), memory.len(), access, random() >> 1) };
        made.map(Held::Own)
    }

    /// Releases the registration of a transfer that does not need it any more.
    pub fn let_go(&mut self, held: Held) {
        if let Held::Shared(id) = held {
            self.memory.transferred(id);
        }
    }

    /// Returns the objects of a rail, and the number that a peer's address has there.
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
        let RemoteTransfer { write, local, remote, done, .. } = whole;
        let held = match self.register(objects, local) {
            Ok(held) => held,
            Err(fault) => {
                let why = fault.to_string();
                self.fail(fault, why);
                return true;
            }
        };
        let descriptor = match &held {
            Held::Nothing => ptr::null_mut(),
            Held::Shared(id) => self.memory.descriptor(rail, *id),
            Held::Own(registration) => registration.descriptor(),
        };
        let facts = &objects.facts;
        let at = if objects.names_by_address() { remote.at } else { remote.offset };
        // If messages follow writes, the tail goes at once, and its answer ends the operation.
        let now = whole.tail.filter(|_| facts.sends_follow_writes);
        let rest = match now {
            Some(_) => RemoteTransfer { tail: None, done: None, ..whole },
            None => whole,
        };
        let number = self.requests.add(peer, OfiRequest::Transfer(rail as u8, rest, held));
        let context = self.requests.context(number);
        // SAFETY: `transfer` needs local memory that lives until the operation is complete: the maker of the `Sge` promised it
        // (`Sge::new`). The descriptor is that of the memory's registration.
        let posted = unsafe {
            let remote = (at, remote.key);
            objects.transfer(to, (local, descriptor), remote, write, context)
        };
        if posted != 0
            && let (_, OfiRequest::Transfer(.., Held::Shared(id))) = self.requests.take(number)
        {
            self.memory.refused(id);
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
                        self.wait_for(core, peer);
                    }
                }
                true
            }
            posted if posted == -FI_EAGAIN => false,
            posted => {
                let reason = objects.why(posted);
                if rail > 0 {
                    // Nothing of this transfer is under way.
                    self.rail_failed(core, peer, rail, &reason);
                    self.submit(core, peer, OfiWork::Transfer(whole));
                } else {
                    self.lose(core, peer, "a transfer", &reason);
                }
                true
            }
        }
    }

    /// Posts operations that are kept for `rank`. Returns true if anything moved.
    pub fn drain(&mut self, core: &OfiCore, rank: usize) -> bool {
        let mut moved = false;
        while let Some(work) = self.peer(core, rank).kept_messages.pop_front() {
            if !self.add(core, rank, &work) {
                self.peer(core, rank).kept_messages.push_front(work);
                break;
            }
            moved = true;
        }
        while let Some(work) = self.peer(core, rank).kept_work.pop_front() {
            // If a tail finds no room, its write puts it at the front of the queue. The write itself is posted and has left the
            // queue then.
            if !self.add(core, rank, &work) {
                self.peer(core, rank).kept_work.push_front(work);
                break;
            }
            moved = true;
        }
        moved | self.drain_rails(core, rank)
    }

    /// Posts operations that are kept for any peer. Returns true if anything moved.
    pub fn drain_all(&mut self, core: &OfiCore) -> bool {
        let mut moved = false;
        for i in (0..self.waiting.len()).rev() {
            let rank = self.waiting[i] as usize;
            moved |= self.drain(core, rank);
            let peer = self.peer(core, rank);
            let over = peer.over.iter().all(|over| over.kept.is_empty());
            if peer.kept_messages.is_empty() && peer.kept_work.is_empty() && over {
                peer.waiting = false;
                self.waiting.swap_remove(i);
            }
        }
        // A sleeper notices the end of an operation, but not that the provider has room again.
        let no_room = !self.waiting.is_empty() && self.requests.open() < OPEN_MOST;
        // Nor does it notice the end of a connection.
        core.sleeper.set_naps(no_room || !self.asking.is_empty() || self.is_shutting());
        moved
    }
}

/// Names bytes that are copied before the call returns.
fn named(bytes: &[u8]) -> Sge {
    // SAFETY: `Sge::new` needs memory that stays readable until the operation is complete. The bytes are borrowed, and are only
    // read before the posting call returns.
    unsafe { Sge::new(bytes.as_ptr().cast_mut(), bytes.len()) }
}

/// Checks the address of the word that a tail sets.
pub fn check(rank: usize, tail: TransferTail) -> Result<(), Fault> {
    match tail {
        TransferTail::Flag(at, _) => address::decode_word(rank, at).map(|_| ()),
        TransferTail::Immediate(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_lacks_does_not_hold_up_the_end() {
        let tell = |kind| OfiWork::Tell { kind, words: [0; 3] };
        assert!(
            !tell(OfiMessageKind::Ask).must_leave() && !tell(OfiMessageKind::Credits).must_leave()
        );
        assert!(
            tell(OfiMessageKind::Reply).must_leave() && tell(OfiMessageKind::Leave).must_leave()
        );
        let tail = TransferTail::Immediate(1);
        assert!(OfiWork::Place { src: Box::default(), dst: None, tail, done: None }.must_leave());
    }
}
