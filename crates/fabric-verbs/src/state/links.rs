//! Losses of processes of other jobs, and the end of connections to these processes.

use super::VerbsState;
use crate::connection::ConnectionPhase;
use crate::connection::pending::PostedWork;
use crate::job::VerbsCore;
use crate::memory::NONE;
use crate::memory::receive_pool::BufferUse;
use crate::trouble;
use std::sync::atomic::Ordering;

impl VerbsState {
    /// Handles reports of the sessions that connect jobs: a process of another job has died, or all processes have left a
    /// connection between jobs.
    #[cold]
    pub fn hear_of_links(&mut self, core: &VerbsCore) {
        core.alarm.store(false, Ordering::Release);
        for peer in self.links.take_lost() {
            self.cut_off(core, peer);
            let host = core.host_of(peer);
            let why = format!("it was on {host}, of another job, and has ended without a word");
            trouble::lose(&mut self.trouble, core, peer, why);
        }
        self.end_links(core);
    }

    /// Forgets the peers of connections between jobs that all processes have left.
    pub fn end_links(&mut self, core: &VerbsCore) {
        for peer in self.links.take_over() {
            self.forget(core, peer);
        }
    }

    /// Cuts off the traffic with `peer`. Requests in flight end with an error. These errors are not reported.
    fn cut_off(&mut self, core: &VerbsCore, peer: usize) {
        for link in core.links_with(peer) {
            let Some(it) = self.connections.get_mut(link) else { continue };
            it.phase = ConnectionPhase::Lost;
            it.shut();
            self.handshakes.end(link as u32);
        }
    }

    /// Forgets a process of another job, or a number that was reserved for such a process. Destroys the queue pairs of the
    /// connections with it, and frees the buffers of these connections.
    #[cold]
    pub fn forget(&mut self, core: &VerbsCore, peer: usize) {
        if core.roster.borrow().foreign(peer).is_some() {
            // The end of this connection must not be reported as a loss.
            if let Some(member) = core.roster.borrow().get(peer) {
                member.unmissed.set(true);
            }
            self.cut_off(core, peer);
            // Completions are handled now, while the number still belongs to the process, and once more after the queue pairs are
            // destroyed.
            while self.poll(core) {}
            let links: Vec<usize> = core.links_with(peer).collect();
            let mut abandoned = Vec::new();
            for &link in &links {
                self.close(core, link, &mut abandoned);
            }
            core.roster.borrow_mut().take(peer);
            while self.poll(core) {}
            for work in &abandoned {
                self.posting.give_up(core, &mut self.memories, work);
            }
            self.secondary.forget(&links);
        } else {
            core.roster.borrow_mut().take(peer);
        }
    }

    /// Destroys connection `number`, and returns its buffers and registrations. Adds its kept work to `abandoned`.
    fn close(&mut self, core: &VerbsCore, number: usize, abandoned: &mut Vec<PostedWork>) {
        let Some(mut it) = self.connections.take(number) else { return };
        let rail = it.rail;
        self.arrivals.forget(it.number);
        self.handshakes.end(it.number);
        self.debts.forget(it.number);
        let mut buffer = it.inbox.first();
        while buffer != NONE {
            let pool = &mut self.rails[rail].receives;
            let next = pool.next(buffer);
            pool.give_back(buffer, number, BufferUse::Control);
            buffer = next;
            // The list of idle buffers has limited room, so the buffers are posted again.
            self.repost(core, rail);
        }
        if let Some(secondary) = &mut it.secondary {
            abandoned.append(&mut secondary.repeat);
        }
        self.kept.take_all(&mut it, abandoned);
        let records = it.abandon();
        // After the queue pair is destroyed, the adapter does not touch the memory any more.
        drop(it);
        self.posting.abandon(core, &mut self.memories, records);
        self.rails[rail].receives.shrink(number, core.buffers_of(number));
    }
}
