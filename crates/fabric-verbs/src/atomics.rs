//! Atomics on the memory of a process. All of them go through one adapter of that process, whichever rank asks: two adapters
//! do not coordinate, so operations that go through both are not atomic.
//!
//! ```text
//!   rank t of its job   rail t mod r   on the first connection where that one takes it, else on the secondary one over it
//! ```
//! Atomics have no other path. If that rail carries no data, they fail. If the rail dies, operations in flight fail too,
//! since it is unknown whether they were applied.

use crate::connection::ConnectionPhase;
use crate::ffi::IBV_ATOMIC_NONE;
use crate::pending::{PendingAtomic, PostedWork};
use crate::state::{VerbsCore, VerbsState};
use crate::{address, pending};
use weft_fabric::{Completion, Fault, RemoteAddr, Sge};

impl VerbsCore {
    /// Returns the number of the connection for atomics on memory of `peer`.
    fn atomics_to(&self, peer: usize) -> usize {
        self.link_over(peer, self.home(peer) % self.rails)
    }
}

impl VerbsState {
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
        let link = core.atomics_to(peer);
        let rail = core.rail_of(link);
        if self.rails[rail].context.attributes.atomic_cap == IBV_ATOMIC_NONE {
            return Err(Fault::unsupported(peer, "do atomics"));
        }
        let result: pending::LocalMemory = self.place(result.part(0, 8), true)?;
        let work = PostedWork::Atomic { target, what, result, done };
        match link == peer {
            true => self.submit(core, peer, work),
            false => self.submit_secondary(core, link, work),
        }
    }

    /// Posts over secondary connection `link` only. If the connection is not open yet, keeps the work until it is.
    fn submit_secondary(
        &mut self,
        core: &VerbsCore,
        link: usize,
        work: PostedWork,
    ) -> Result<(), Fault> {
        let peer = core.peer_of(link);
        if !self.reach(core, peer) {
            return Err(Fault::lost(peer));
        }
        if self.peers[link].is_none() && (self.unmade.contains(&link) || !self.begin(core, link)) {
            return Err(Fault::unsupported(peer, "do atomics over the rail for them"));
        }
        let it = self.link(link);
        if matches!(it.phase, ConnectionPhase::Lost | ConnectionPhase::Gone) {
            return Err(Fault::lost(peer));
        }
        self.awaited += usize::from(work.is_awaited());
        let it = self.link(link);
        if it.phase == ConnectionPhase::Open
            && it.kept_work.is_empty()
            && self.add_work(link, &work)
        {
            self.ring(link);
            return Ok(());
        }
        self.poll(core);
        let VerbsState { peers, slab, .. } = self;
        let it = peers[link].as_deref_mut().expect("looked at above");
        slab.push(&mut it.kept_work, work);
        self.wait_for(link);
        self.drain(core, link);
        Ok(())
    }
}
