//! Atomics on a process's memory go through one of its adapters, whoever asks: two adapters know nothing of each
//! other, so what goes through both is not atomic.
//!
//! ```text
//!   rank t of its job   rail t mod r   on the first connection where that one takes it, else on the secondary one over it
//! ```
//! There is no other way for them: where that rail carries nothing, they fail; if it dies, so does what is under way,
//! since nobody knows whether it was applied.

use crate::connection::ConnectionPhase;
use crate::ffi::IBV_ATOMIC_NONE;
use crate::pending::{PendingAtomic, PostedWork};
use crate::state::{VerbsCore, VerbsState};
use crate::{address, pending};
use weft_fabric::{Completion, Fault, RemoteAddr, Sge};

impl VerbsCore {
    /// The connection for atomics on memory of `peer`.
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

    /// Posts over secondary connection `link` and no other, or keeps until that is open.
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
