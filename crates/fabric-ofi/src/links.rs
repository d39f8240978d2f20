//! What is kept of links with other jobs, how their losses are heard, and how they end.

use crate::state::{Core, State};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use weft_bootstrap::ports::Life;

/// What is kept of a link.
pub struct Bond {
    pub life: Life,
    /// Numbers of the members, by place; those that came with this link are `new`.
    pub peers: Vec<usize>,
    pub new: Vec<usize>,
}

/// The links of a process.
#[derive(Default)]
pub struct Links {
    pub live: Vec<Rc<Bond>>,
    /// Left, but not by all.
    pub leaving: Vec<Rc<Bond>>,
}

impl State {
    /// Learns from the sessions of links that a process of another job has ended without a word, or that all have left.
    #[cold]
    pub fn hear_of_links(&mut self, core: &Core) {
        core.alarm.store(false, Ordering::Release);
        let mut lost: Vec<usize> = Vec::new();
        for bond in &self.links.live {
            while let Some(place) = bond.life.take_lost() {
                lost.extend(bond.peers.get(place).filter(|peer| bond.new.contains(peer)));
            }
        }
        for peer in lost {
            self.lose(core, peer, "its job", "it has ended without a word");
        }
        self.end_links(core);
    }

    /// Ends what all have left.
    pub fn end_links(&mut self, core: &Core) {
        let over = self.links.leaving.extract_if(.., |bond| bond.life.is_over());
        for bond in over.collect::<Vec<_>>() {
            bond.new.iter().for_each(|&peer| self.forget(core, peer));
        }
    }

    /// Forgets a process of another job, or a number that was reserved for one.
    pub fn forget(&mut self, core: &Core, peer: usize) {
        if core.roster.borrow().foreign(peer).is_some() {
            // What ends with its connection is missed by nobody.
            self.peer(core, peer).unmissed = true;
            core.objects.remove(core.roster.borrow().member(peer).number);
            self.poll(core);
            for (buffer, _) in std::mem::take(&mut self.peer(core, peer).inbox) {
                self.give_back(buffer);
            }
            self.arrived.retain(|&one| one as usize != peer);
            self.waiting.retain(|&one| one as usize != peer);
            self.peers[peer] = None;
        }
        core.roster.borrow_mut().take(peer);
    }
}
