//! Losses of processes of other jobs, and the end of links with other jobs.

use super::OfiState;
use crate::job::OfiCore;
use std::sync::atomic::Ordering;

impl OfiState {
    /// Handles reports of the sessions between jobs: a process of another job has died, or all processes have left a link.
    #[cold]
    pub fn hear_of_links(&mut self, core: &OfiCore) {
        core.alarm.store(false, Ordering::Release);
        for peer in self.links.take_lost() {
            self.lose(core, peer, "its job", "it has ended without a word");
        }
        for peer in self.links.take_over() {
            self.forget(core, peer);
        }
    }

    /// Forgets a process of another job, or a number that was reserved for such a process.
    pub fn forget(&mut self, core: &OfiCore, peer: usize) {
        if core.roster.borrow().foreign(peer).is_some() {
            // Operations that end with this connection are no loss.
            self.peer(core, peer).unmissed = true;
            core.objects.remove(core.roster.borrow().member(peer).number);
            self.poll(core);
            for message in std::mem::take(&mut self.peer(core, peer).inbox) {
                self.pools.give_back(message.buffer);
            }
            self.peers.forget(peer);
        }
        core.roster.borrow_mut().take(peer);
    }
}
