//! Losses of processes of other jobs, and the end of connections with them.

use crate::connection::ConnectionPhase;
use crate::memory::NONE;
use crate::pending::PostedWork;
use crate::rail::BufferUse;
use crate::state::{VerbsCore, VerbsState};
use std::sync::atomic::Ordering;

impl VerbsState {
    /// Handles reports of the sessions between jobs: a process of another job has ended without a word, or all have left a
    /// connection between jobs.
    #[cold]
    pub fn hear_of_links(&mut self, core: &VerbsCore) {
        core.alarm.store(false, Ordering::Release);
        for peer in self.links.take_lost() {
            self.cut_off(core, peer);
            let host = core.host_of(peer);
            let why = format!("it was on {host}, of another job, and has ended without a word");
            self.lose(core, peer, why);
        }
        self.end_links(core);
    }

    /// Forgets the peers of connections between jobs that all processes have left.
    pub fn end_links(&mut self, core: &VerbsCore) {
        for peer in self.links.take_over() {
            self.forget(core, peer);
        }
    }

    /// Cuts off the traffic with `peer`. Requests in flight end with an error, which is not reported as news.
    fn cut_off(&mut self, core: &VerbsCore, peer: usize) {
        for link in core.links_with(peer) {
            let Some(it) = self.peers[link].as_deref_mut() else { continue };
            it.phase = ConnectionPhase::Lost;
            it.shut();
            self.connecting.retain(|&other| other != link as u32);
        }
    }

    /// Forgets a process of another job, or a number that was reserved for one. Its queue pairs are destroyed, and the
    /// buffers that they have used become free.
    #[cold]
    pub fn forget(&mut self, core: &VerbsCore, peer: usize) {
        if core.roster.borrow().foreign(peer).is_some() {
            // The end of this connection is not reported as a loss.
            if let Some(member) = core.roster.borrow().get(peer) {
                member.unmissed.set(true);
            }
            self.cut_off(core, peer);
            // Completions are taken while the number still belongs to the process, and again when no more can come.
            while self.poll(core) {}
            let links: Vec<usize> = core.links_with(peer).collect();
            let abandoned = links.iter().filter_map(|&link| self.close(core, link)).collect();
            core.roster.borrow_mut().take(peer);
            while self.poll(core) {}
            self.give_up_works(core, abandoned);
            self.unmade.retain(|link| !links.contains(link));
        } else {
            core.roster.borrow_mut().take(peer);
        }
    }

    /// Destroys connection `link`, and returns its buffers and registrations. Returns its kept work.
    fn close(&mut self, core: &VerbsCore, link: usize) -> Option<Vec<PostedWork>> {
        let mut it = self.peers[link].take()?;
        let rail = it.rail;
        let number = link as u32;
        self.routes[rail].remove(&it.pair.number());
        self.arrived.retain(|&other| other != number);
        for list in [&mut self.waiting, &mut self.connecting, &mut self.out, &mut self.debts] {
            list.retain(|&other| other != number);
        }
        let mut buffer = it.inbox.0;
        while buffer != NONE {
            let next = self.rails[rail].buffers[buffer as usize].next;
            self.rails[rail].give_back(buffer, link, BufferUse::Control);
            buffer = next;
            // The pool of idle buffers is bounded.
            self.repost(core, rail);
        }
        let mut works = it.secondary.as_mut().map_or_else(Vec::new, |it| it.abandon());
        for list in [&mut it.kept_messages, &mut it.kept_work] {
            while let Some(&work) = self.slab.front(list) {
                self.slab.pop(list);
                works.push(work);
            }
        }
        let records = it.abandon();
        // With the queue pair destroyed, the adapter does not touch the memory any more.
        drop(it);
        for record in records {
            if record.buffer != NONE {
                self.pool.give_back(record.buffer);
            }
            self.memories.release(record.registration);
            self.awaited -= usize::from(record.done.is_some());
            core.complete(record.done);
        }
        self.rails[rail].shrink(link, core.buffers_of(link));
        self.connections -= usize::from(!core.is_secondary(link));
        Some(works)
    }

    /// Completes kept work that will never be posted.
    fn give_up_works(&mut self, core: &VerbsCore, works: Vec<Vec<PostedWork>>) {
        for work in works.into_iter().flatten() {
            self.memories.release(work.registration());
            self.awaited -= usize::from(work.is_awaited());
            core.complete(work.done());
        }
    }
}
