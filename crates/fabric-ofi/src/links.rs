//! What is kept of links with other jobs, and how their losses are heard.

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

impl Links {
    /// Takes those that all have left.
    pub fn take_over(&mut self) -> Vec<Rc<Bond>> {
        self.leaving.extract_if(.., |bond| bond.life.is_over()).collect()
    }
}

impl State {
    /// Learns from the sessions of links that a process of another job has ended without a word.
    #[cold]
    pub fn hear_of_losses(&mut self, core: &Core) {
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
    }
}
