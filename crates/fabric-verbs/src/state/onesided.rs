//! One-sided operations: writes, reads and atomics.
//!
//! All atomics on the memory of a process go through one adapter of this process, whichever rank requests them. Two adapters do not
//! coordinate their atomics, so operations through both adapters would not be atomic.
//!
//! ```text
//!   target with rank t in its job   rail t mod r   by the first connection if it uses that rail, else by the secondary connection
//! ```
//! Atomics have no other path. If this rail carries no data, atomics fail. If the rail fails, atomics in flight also fail, because
//! nobody knows if the target has applied them.

use super::VerbsState;
use crate::address::{self, VerbsTarget};
use crate::connection::ConnectionPhase;
use crate::connection::pending::{
    LocalMemory, PendingAtomic, PostedWork, WorkAtomic, WorkRead, WorkWrite, WriteTail,
};
use crate::connection::posting::{Direction, Posting};
use crate::ffi::IBV_ATOMIC_NONE;
use crate::job::VerbsCore;
use crate::memory::NONE;
use weft_fabric::{Completion, Fault, FlagWrite, RemoteAddr, RemoteRead, RemoteWrite, Sge};

/// Maximum size in bytes of a part of an operation. Every adapter accepts a request of this size.
pub const PART: usize = 1 << 30;

impl VerbsState {
    /// Posts an operation if the connection is open, no earlier operation is kept, and there is room.
    #[inline]
    fn post_work(&mut self, number: usize, work: &PostedWork) -> bool {
        let VerbsState { connections, posting, memories, trouble, .. } = self;
        if let Some(link) = connections.get_mut(number)
            && link.phase == ConnectionPhase::Open
            && link.kept_work.is_empty()
            && posting.add_work(memories, link, work)
        {
            posting.ring(link, trouble);
            return true;
        }
        false
    }

    /// Posts the work, or keeps it until there is room.
    pub fn submit(&mut self, core: &VerbsCore, to: usize, work: PostedWork) -> Result<(), Fault> {
        self.posting.await_work(&work);
        // A secondary connection may have been shut while earlier parts were posted. Then the first connection takes the remaining
        // parts.
        let secondary = core.is_secondary(to) && self.connections.is_open(to);
        let number = if secondary { to } else { core.peer_of(to) };
        if self.post_work(number, &work) {
            return Ok(());
        }
        if !self.reach(core, number) {
            return Err(Fault::lost(number));
        }
        self.poll(core);
        self.drain(core, number);
        self.kept.keep(self.connections.of(number), work);
        self.drain(core, number);
        Ok(())
    }

    pub fn write(
        &mut self,
        core: &VerbsCore,
        number: usize,
        write: &RemoteWrite,
        tail: WriteTail,
    ) -> Result<(), Fault> {
        let &RemoteWrite { src, dst, done } = write;
        if src.is_empty() {
            return self.write_tail(core, number, tail, done);
        }
        let target = address::decode(core.peer_of(number), dst, src.len())?;
        let from = Posting::prepare(&mut self.memories, src, Direction::Out)?;
        for part in parts(src.len()) {
            let from = self.share_part(from, part);
            let target = target.further(part.offset);
            let (tail, done) = if part.last { (tail, done) } else { (WriteTail::Nothing, None) };
            self.submit(core, number, PostedWork::Write(WorkWrite { from, target, tail, done }))?;
        }
        Ok(())
    }

    /// Posts the tail of a write that has no data.
    pub fn write_tail(
        &mut self,
        core: &VerbsCore,
        number: usize,
        tail: WriteTail,
        done: Completion,
    ) -> Result<(), Fault> {
        if matches!(tail, WriteTail::Nothing) {
            core.complete(done);
            return Ok(());
        }
        let from = LocalMemory { memory: Sge::EMPTY, registration: NONE };
        let work = WorkWrite { from, target: VerbsTarget::NOWHERE, tail, done };
        self.submit(core, number, PostedWork::Write(work))
    }

    /// Returns a part of the memory `place`. Adds a user to the registration for each part except the last.
    fn share_part(&mut self, place: LocalMemory, part: Part) -> LocalMemory {
        if !part.last {
            self.memories.add_user(place.registration);
        }
        LocalMemory { memory: place.memory.part(part.offset, part.len), ..place }
    }

    pub fn read(
        &mut self,
        core: &VerbsCore,
        number: usize,
        read: &RemoteRead,
    ) -> Result<(), Fault> {
        let &RemoteRead { dst, src, done } = read;
        if dst.is_empty() {
            core.complete(done);
            return Ok(());
        }
        let target = address::decode(core.peer_of(number), src, dst.len())?;
        let into = Posting::prepare(&mut self.memories, dst, Direction::In)?;
        for part in parts(dst.len()) {
            let into = self.share_part(into, part);
            let target = target.further(part.offset);
            let done = if part.last { done } else { None };
            self.submit(core, number, PostedWork::Read(WorkRead { into, target, done }))?;
        }
        Ok(())
    }

    pub fn atomic(
        &mut self,
        core: &VerbsCore,
        peer: usize,
        target: RemoteAddr,
        what: PendingAtomic,
        result: Sge,
        done: Completion,
    ) -> Result<(), Fault> {
        let target = address::decode_word(peer, target)?;
        let number = core.atomics_to(peer);
        let rail = &self.rails[core.rail_of(number)];
        if rail.context.attributes.atomic_cap == IBV_ATOMIC_NONE {
            return Err(Fault::unsupported(peer, "do atomics"));
        }
        let result = Posting::prepare(&mut self.memories, result.part(0, 8), Direction::In)?;
        let work = PostedWork::Atomic(WorkAtomic { target, what, result, done });
        match number == peer {
            true => self.submit(core, peer, work),
            false => self.submit_secondary(core, number, work),
        }
    }

    /// Posts work over secondary connection `number` and over no other connection. Keeps the work until the connection is open.
    fn submit_secondary(
        &mut self,
        core: &VerbsCore,
        number: usize,
        work: PostedWork,
    ) -> Result<(), Fault> {
        let peer = core.peer_of(number);
        if !self.reach(core, peer) {
            return Err(Fault::lost(peer));
        }
        if self.connections.get(number).is_none()
            && (self.secondary.is_unmade(number) || !self.begin(core, number))
        {
            return Err(Fault::unsupported(peer, "do atomics over the rail for them"));
        }
        let phase = self.connections.of(number).phase;
        if matches!(phase, ConnectionPhase::Lost | ConnectionPhase::Gone) {
            return Err(Fault::lost(peer));
        }
        self.posting.await_work(&work);
        if self.post_work(number, &work) {
            return Ok(());
        }
        self.poll(core);
        self.kept.keep(self.connections.of(number), work);
        self.drain(core, number);
        Ok(())
    }
}

/// Checks a flag, and returns it as the tail of a write.
pub fn flag(peer: usize, set: &FlagWrite) -> Result<WriteTail, Fault> {
    let at = address::decode_word(peer, set.flag.at)?;
    Ok(WriteTail::Flag { at: VerbsTarget { wake: set.flag.waking, ..at }, value: set.value })
}

/// A part of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    offset: usize,
    len: usize,
    last: bool,
}

/// Returns the parts of an operation of `whole` bytes.
fn parts(whole: usize) -> impl Iterator<Item = Part> {
    (0..whole).step_by(PART).map(move |offset| {
        let len = PART.min(whole - offset);
        Part { offset, len, last: offset + len == whole }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_all() {
        let part = |offset, len, last| Part { offset, len, last };
        assert_eq!(parts(7).collect::<Vec<_>>(), [part(0, 7, true)]);
        let long: Vec<_> = parts(2 * PART + 5).collect();
        let middle = part(PART, PART, false);
        assert_eq!(long, [part(0, PART, false), middle, part(2 * PART, 5, true)]);
    }
}
