//! Secondary connections that cannot carry data, because they could not be made or because they are shut.

use crate::connection::connections::Connections;
use crate::connection::handshakes::{Handshakes, TRIAL};
use crate::connection::{ConnectionPhase, VerbsConnection};
use crate::job::VerbsCore;
use crate::rail::VerbsRail;
use weft_fabric::FabricTrouble;

/// Secondary connections that cannot carry data.
#[derive(Default)]
pub struct ConnectionShutdowns {
    /// Secondary connections that are shut, but have not handed over their work yet.
    pub open: Vec<u32>,
    /// Secondary connections that cannot be made.
    unmade: Vec<usize>,
}

impl ConnectionShutdowns {
    /// Returns true if a shut connection has not handed over its work yet.
    #[inline]
    pub fn holds_work(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns true if connection `link` cannot be made.
    pub fn is_unmade(&self, link: usize) -> bool {
        self.unmade.contains(&link)
    }

    /// Records that secondary connection `link` cannot be made.
    #[cold]
    pub fn give_up(
        &mut self,
        core: &VerbsCore,
        rails: &[VerbsRail],
        trouble: &mut FabricTrouble,
        link: usize,
        why: &str,
    ) {
        self.unmade.push(link);
        let rail = rails[core.rail_of(link)].port.name();
        let peer = core.peer_of(link);
        trouble.note(format!("{rail} carries nothing to process {peer}: {why}; other rails do"));
    }

    /// Shuts this end of secondary connection `link`. Afterwards this end does not carry data any more.
    #[cold]
    pub fn shut(
        &mut self,
        core: &VerbsCore,
        handshakes: &mut Handshakes,
        trouble: &mut FabricTrouble,
        link: &mut VerbsConnection,
        why: &str,
    ) {
        if matches!(link.phase, ConnectionPhase::Lost | ConnectionPhase::Gone) {
            return;
        }
        link.phase = ConnectionPhase::Lost;
        handshakes.end(link.number);
        link.shut();
        self.open.push(link.number);
        let rail = core.rail_of(link.number as usize);
        trouble.note(format!("rail {rail} is not used any more: {why}"));
    }

    /// Returns true if `rail` carries data to `peer`, or may carry data once it is connected.
    pub fn may_work(
        &self,
        core: &VerbsCore,
        connections: &Connections,
        rail: usize,
        peer: usize,
    ) -> bool {
        if rail >= core.rails {
            return false;
        }
        let link = core.link_over(peer, rail);
        match connections.get(link) {
            None => !self.is_unmade(link),
            Some(it) if it.phase == ConnectionPhase::Connecting && link != peer => {
                it.asking.since.elapsed() < TRIAL
            }
            Some(it) => matches!(it.phase, ConnectionPhase::Connecting | ConnectionPhase::Open),
        }
    }

    /// Forgets the connections `numbers`, because they are closed.
    pub fn forget(&mut self, numbers: &[usize]) {
        self.open.retain(|&link| !numbers.contains(&(link as usize)));
        self.unmade.retain(|link| !numbers.contains(link));
    }
}
