//! One-sided operations: writes, reads and atomics.

use crate::address::{self, VerbsTarget};
use crate::batch::Batch;
use crate::connection::{Connection, ConnectionPhase, Record};
use crate::ffi::*;
use crate::memory::{NONE, Uses};
use crate::pending::{LocalMemory, PendingAtomic, PostedWork, WriteTail};
use crate::rail::{BUFFER, INLINE_MAX};
use crate::state::{VerbsCore, VerbsState, request_id};
use crate::wire::{ImmediateTag, WAKE, WireKind};
use weft_fabric::{Completion, Fault, RemoteAddr, RemoteFlag, Sge};

/// Maximum size in bytes of a part of an operation. Every adapter takes at least this size in one request.
pub const PART: usize = 1 << 30;

impl VerbsState {
    /// Prepares a piece of local memory for the network. A short piece is copied, or goes through a bounce buffer. A longer
    /// piece is registered for this operation, unless it lies in registered memory.
    pub fn place(&mut self, memory: Sge, landing: bool) -> Result<LocalMemory, Fault> {
        let len = memory.len();
        if len <= INLINE_MAX && !landing {
            return Ok(LocalMemory { memory, registration: NONE });
        }
        let uses = if landing { Uses::Writes } else { Uses::Reads };
        let registration = match self.memories.share(memory, uses) {
            Some(id) => id,
            None if len <= BUFFER => NONE,
            // SAFETY: `acquire` needs memory that stays mapped: whoever made the `Sge` promised that the memory outlives the
            // operation; a registration that is kept longer is subject to the rule of `VerbsOptions::keep`.
            None => unsafe { self.memories.acquire(memory, uses) }?,
        };
        Ok(LocalMemory { memory, registration })
    }

    /// Posts the work, or keeps it until there is room.
    pub fn submit(&mut self, core: &VerbsCore, to: usize, work: PostedWork) -> Result<(), Fault> {
        self.awaited += usize::from(work.is_awaited());
        let open = |link: &Connection| link.phase == ConnectionPhase::Open;
        // A secondary connection may have been shut while earlier parts were posted; the first connection takes the rest.
        let secondary = core.is_secondary(to) && self.peers[to].as_deref().is_some_and(open);
        let peer = if secondary { to } else { core.peer_of(to) };
        if let Some(link) = &self.peers[peer]
            && link.phase == ConnectionPhase::Open
            && link.kept_work.is_empty()
            && self.add_work(peer, &work)
        {
            self.ring(peer);
            return Ok(());
        }
        if !self.reach(core, peer) {
            return Err(Fault::lost(peer));
        }
        self.poll(core);
        self.drain(core, peer);
        let VerbsState { peers, slab, .. } = self;
        let link = peers[peer].as_deref_mut().expect("reached");
        slab.push(&mut link.kept_work, work);
        self.wait_for(peer);
        self.drain(core, peer);
        Ok(())
    }

    pub fn write(
        &mut self,
        core: &VerbsCore,
        peer: usize,
        src: Sge,
        dst: RemoteAddr,
        tail: WriteTail,
        done: Completion,
    ) -> Result<(), Fault> {
        if src.is_empty() {
            if matches!(tail, WriteTail::Nothing) {
                core.complete(done);
                return Ok(());
            }
            let from = LocalMemory { memory: src, registration: NONE };
            let target = VerbsTarget::NOWHERE;
            return self.submit(core, peer, PostedWork::Write { from, target, tail, done });
        }
        let target = address::decode(core.peer_of(peer), dst, src.len())?;
        let from = self.place(src, false)?;
        for (offset, len) in parts(src.len()) {
            let memory = src.part(offset, len);
            let target = VerbsTarget { at: target.at + offset as u64, ..target };
            let last = offset + len == src.len();
            let (tail, done) = if last { (tail, done) } else { (WriteTail::Nothing, None) };
            let from = self.share_part(from, memory, last);
            self.submit(core, peer, PostedWork::Write { from, target, tail, done })?;
        }
        Ok(())
    }

    /// Returns a part of a place. Each part except the last counts as an additional user of the registration.
    fn share_part(&mut self, place: LocalMemory, memory: Sge, last: bool) -> LocalMemory {
        if !last {
            self.memories.add_user(place.registration);
        }
        LocalMemory { memory, registration: place.registration }
    }

    pub fn read(
        &mut self,
        core: &VerbsCore,
        peer: usize,
        dst: Sge,
        src: RemoteAddr,
        done: Completion,
    ) -> Result<(), Fault> {
        if dst.is_empty() {
            core.complete(done);
            return Ok(());
        }
        let target = address::decode(core.peer_of(peer), src, dst.len())?;
        let into = self.place(dst, true)?;
        for (offset, len) in parts(dst.len()) {
            let memory = dst.part(offset, len);
            let target = VerbsTarget { at: target.at + offset as u64, ..target };
            let last = offset + len == dst.len();
            let into = self.share_part(into, memory, last);
            let done = if last { done } else { None };
            self.submit(core, peer, PostedWork::Read { into, target, done })?;
        }
        Ok(())
    }

    /// Adds an operation to the batch, if there is room for it.
    pub fn add_work(&mut self, peer: usize, work: &PostedWork) -> bool {
        let added = match *work {
            PostedWork::Write { from, target, tail, done } => {
                self.add_write(peer, from, target, tail, done)
            }
            PostedWork::Read { into, target, done } => self.add_read(peer, into, target, done),
            PostedWork::Atomic { target, what, result, done } => {
                self.add_atomic(peer, target, what, result, done)
            }
            PostedWork::Short { .. } | PostedWork::Long { .. } => {
                unreachable!("messages are kept elsewhere")
            }
        };
        if added && let Some(secondary) = &mut self.link(peer).secondary {
            secondary.posted.push_back(Some(*work));
            if let PostedWork::Atomic { target, .. } = work
                && target.wake
            {
                secondary.posted.push_back(None);
            }
        }
        added
    }

    fn add_write(
        &mut self,
        peer: usize,
        from: LocalMemory,
        target: VerbsTarget,
        tail: WriteTail,
        done: Completion,
    ) -> bool {
        let VerbsState { peers, batch, pool, memories, .. } = self;
        let link = peers[peer].as_deref_mut().expect("a connection");
        let LocalMemory { memory, registration } = from;
        let data = !memory.is_empty();
        // A write can carry any immediate except [`WAKE`].
        let carried = match tail {
            WriteTail::Immediate(immediate) if immediate != WAKE => Some(immediate),
            _ => None,
        };
        let separate = !matches!(tail, WriteTail::Nothing) && carried.is_none();
        let requests = usize::from(data || carried.is_some()) + usize::from(separate);
        let event = match tail {
            WriteTail::Nothing => false,
            WriteTail::Flag { at, .. } => at.wake,
            WriteTail::Immediate(_) => true,
        };
        let room = link.has_room(requests) && batch.has_room(requests);
        if !room || event && link.events == 0 {
            return false;
        }
        let inline = registration == NONE && memory.len() <= link.inline;
        let mut last = Record { done, ..Record::NOTHING };
        // Operations of a secondary connection are always signaled: if the connection is shut, it must be known which have
        // completed.
        let mut eager = link.secondary.is_some();
        if data && registration == NONE && !inline {
            eager |= pool.is_low();
            let Some(buffer) = pool.take() else { return false };
            pool.part(buffer, 0, memory.len()).copy_from(memory);
            last.buffer = buffer;
        }
        if registration != NONE && !memories.is_lasting(registration) {
            last.registration = registration;
        }
        link.events -= u32::from(event);
        let rail = link.rail;
        if data || carried.is_some() {
            let record = if separate { Record::NOTHING } else { last };
            let (number, signaled) = link.note(record, eager && !separate);
            let opcode = match carried {
                Some(_) => IBV_WR_RDMA_WRITE_WITH_IMM,
                None => IBV_WR_RDMA_WRITE,
            };
            let flags = if signaled { IBV_SEND_SIGNALED } else { 0 };
            let request = batch
                .add(request_id(peer, number), opcode, flags)
                .immediate(carried.unwrap_or(0))
                .to(target.at, target.keys[rail]);
            if registration != NONE {
                request.data(memories.sge(registration, rail, memory));
            } else if inline {
                request.inline(memory);
            } else {
                request.data(pool.sge(memories, rail, last.buffer, memory.len()));
            }
        }
        if separate {
            let (number, signaled) = link.note(last, eager);
            add_tail(batch, request_id(peer, number), rail, signaled, tail);
        }
        true
    }

    fn add_read(
        &mut self,
        peer: usize,
        into: LocalMemory,
        target: VerbsTarget,
        done: Completion,
    ) -> bool {
        let VerbsState { peers, batch, pool, memories, .. } = self;
        let link = peers[peer].as_deref_mut().expect("a connection");
        if !link.has_room(1) || !batch.has_room(1) {
            return false;
        }
        let mut record = Record { done, ..Record::NOTHING };
        let LocalMemory { memory, registration } = into;
        let sge = if registration == NONE {
            let Some(buffer) = pool.take() else { return false };
            (record.buffer, record.landing) = (buffer, Some(memory));
            pool.sge(memories, link.rail, buffer, memory.len())
        } else {
            if !memories.is_lasting(registration) {
                record.registration = registration;
            }
            memories.sge(registration, link.rail, memory)
        };
        // Reads are always signaled: even without a completion, the data must be copied out soon.
        let (number, _) = link.note(record, true);
        batch
            .add(request_id(peer, number), IBV_WR_RDMA_READ, IBV_SEND_SIGNALED)
            .to(target.at, target.keys[link.rail])
            .data(sge);
        true
    }

    fn add_atomic(
        &mut self,
        peer: usize,
        target: VerbsTarget,
        what: PendingAtomic,
        result: LocalMemory,
        done: Completion,
    ) -> bool {
        let VerbsState { peers, batch, pool, memories, .. } = self;
        let link = peers[peer].as_deref_mut().expect("a connection");
        let requests = 1 + usize::from(target.wake);
        let room = link.has_room(requests) && batch.has_room(requests);
        if !room || target.wake && link.events == 0 {
            return false;
        }
        let mut record = Record { done, ..Record::NOTHING };
        let LocalMemory { memory, registration } = result;
        let sge = if registration == NONE {
            let Some(buffer) = pool.take() else { return false };
            (record.buffer, record.landing) = (buffer, Some(memory));
            pool.sge(memories, link.rail, buffer, memory.len())
        } else {
            if !memories.is_lasting(registration) {
                record.registration = registration;
            }
            memories.sge(registration, link.rail, memory)
        };
        let (opcode, operand, swap) = match what {
            PendingAtomic::Add { operand } => (IBV_WR_ATOMIC_FETCH_AND_ADD, operand, 0),
            PendingAtomic::Swap { compare, swap } => (IBV_WR_ATOMIC_CMP_AND_SWP, compare, swap),
        };
        let (number, _) = link.note(record, true);
        batch
            .add(request_id(peer, number), opcode, IBV_SEND_SIGNALED)
            .atomic(target.at, target.keys[link.rail], operand, swap)
            .data(sge);
        if target.wake {
            link.events -= 1;
            let (number, signaled) = link.note(Record::NOTHING, false);
            let flags = if signaled { IBV_SEND_SIGNALED } else { 0 };
            batch
                .add(request_id(peer, number), IBV_WR_RDMA_WRITE_WITH_IMM, flags)
                .immediate(WAKE)
                .inline(Sge::EMPTY);
        }
        true
    }

    /// Adds a request without effect. Its completion proves that all requests before it have completed.
    pub fn add_probe(&mut self, peer: usize) -> bool {
        let VerbsState { peers, batch, .. } = self;
        let link = peers[peer].as_deref_mut().expect("a connection");
        if link.phase != ConnectionPhase::Open || !link.has_room(1) || !batch.has_room(1) {
            return false;
        }
        let (number, _) = link.note(Record::NOTHING, true);
        let id = request_id(peer, number);
        batch.add(id, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED).to(0, 0).inline(Sge::EMPTY);
        if let Some(secondary) = &mut link.secondary {
            secondary.posted.push_back(None);
        }
        true
    }
}

/// Checks a flag, and returns it as the tail of a write.
pub fn flag(peer: usize, flag: RemoteFlag, value: u64) -> Result<WriteTail, Fault> {
    let at = address::decode_word(peer, flag.at)?;
    Ok(WriteTail::Flag { at: VerbsTarget { wake: flag.waking, ..at }, value })
}

/// Returns offsets and lengths of the parts of an operation.
fn parts(len: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..len).step_by(PART).map(move |offset| (offset, PART.min(len - offset)))
}

/// Adds the request that follows the data of a write: a flag, or the immediate [`WAKE`].
fn add_tail(batch: &mut Batch, id: u64, rail: usize, signaled: bool, tail: WriteTail) {
    let signal = if signaled { IBV_SEND_SIGNALED } else { 0 };
    match tail {
        WriteTail::Flag { at, value } if at.wake => {
            let request = batch.add(id, IBV_WR_RDMA_WRITE_WITH_IMM, signal);
            request.immediate(WAKE).to(at.at, at.keys[rail]).word(value);
        }
        WriteTail::Flag { at, value } => {
            batch.add(id, IBV_WR_RDMA_WRITE, signal).to(at.at, at.keys[rail]).word(value);
        }
        _ => {
            let tag = ImmediateTag { kind: WireKind::Reserved, messages: 0, events: 0 };
            batch.control(id, signaled, tag);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_all() {
        assert_eq!(parts(7).collect::<Vec<_>>(), [(0, 7)]);
        let long: Vec<_> = parts(2 * PART + 5).collect();
        assert_eq!(long, [(0, PART), (PART, PART), (2 * PART, 5)]);
    }
}
