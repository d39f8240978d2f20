//! Changes of the connections to peers: a peer is lost, or was reached over a network other than the agreed network.

use super::OfiState;
use crate::job::{OfiCore, Where};
use crate::object::advice;
use crate::peer_rail::PeerRail;
use weft_fabric::Fault;

/// Explanation for a lost peer that is on the same machine in a network namespace of its own.
const APART: &str = ". It is on this machine, in a network namespace of its own, as containers are that do not share the host's \
                     network (podman, docker: --net=host)";

impl OfiState {
    /// Handles the loss of a peer, for a reason that the library gave.
    #[cold]
    pub fn lose(&mut self, core: &OfiCore, rank: usize, what: &str, reason: &str) {
        let peer = self.peer(core, rank);
        let known = std::mem::replace(&mut peer.lost, true);
        let left = peer.left || peer.unmissed;
        let silent = peer.signs.silent().as_secs();
        peer.kept_messages.clear();
        peer.posted = 0;
        peer.kept_work.clear();
        peer.over.iter_mut().for_each(PeerRail::forget);
        if known || left || self.ending.is_some() {
            return;
        }
        let Where { host, address, is_apart } = core.place(rank);
        let facts = &core.objects.facts;
        let why = format!(
            "it was on {host}, at {address} from {} through {}: {what}: {reason}; {}{}",
            facts.domain,
            facts.provider,
            advice(reason, silent),
            if is_apart { APART } else { "" }
        );
        self.trouble.fail(Fault::lost(rank), why);
    }

    /// Handles peers that were reached over a network other than the agreed network. Prints a line only for the first such peer,
    /// because the other peers most likely have the same reason.
    #[cold]
    pub fn hear_of_detours(&mut self, core: &OfiCore) {
        while let Some(detour) = core.objects.take_detour() {
            let roster = core.roster.borrow();
            let whose = roster.iter().find(|(_, member)| member.number == detour.number);
            let Some((rank, member)) = whose else { continue };
            let (domain, way) = (&core.objects.facts.domain, detour.by.as_deref());
            let line = format!(
                "process {rank} on {} does not answer at {} from {domain} ({}); it is reached at {} from {} (WEFT_OFI_INTERFACES={} \
                 takes that way at once)",
                member.place.host,
                detour.first,
                weft_bootstrap::limits::explain(&detour.why()),
                detour.taken,
                way.unwrap_or("wherever a router leads there"),
                way.unwrap_or("NAME"),
            );
            if self.counts.detours == 0 {
                (core.say)(&line);
            }
            self.counts.detours += 1;
            self.trouble.note(line);
        }
    }

    /// Handles peers that have ended their connection of the first rail. All bytes that came before the end are handled already.
    #[cold]
    pub fn hear_of_ends(&mut self, core: &OfiCore) {
        while let Some((number, reason)) = core.objects.take_gone() {
            let roster = core.roster.borrow();
            let whose = roster.iter().find(|(_, member)| member.number == number);
            if let Some((rank, _)) = whose {
                drop(roster);
                self.lose(core, rank, "its connection", &reason);
            }
        }
    }
}
