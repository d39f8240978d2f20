//! Messages that are too long for one message of the provider. They are sent as parts, in order. The last part is a message of the
//! usual kind, with the head.
//!
//! ```text
//!   part (length, 0)       ──▶ copied to a buffer for the whole message, and its credit goes back
//!   part (length, 16 KiB)  ──▶ copied behind the first part
//!   message (head)         ──▶ copied behind the parts: the message has arrived
//! ```
//! The parts cost the receiver one more copy, but save a rendezvous. They are used if a rendezvous takes longer than the copies.

use super::OfiState;
use crate::job::OfiCore;
use crate::provider_facts::ProviderFacts;
use crate::wire::OfiMessageKind;
use weft_fabric::{Head, Sge};

impl OfiState {
    /// Posts a message within the peer's credits. If there is no room for the whole message, posts as many parts as possible and
    /// returns false. Then the caller must post the same message again before any other message.
    #[inline]
    pub fn post_message(&mut self, core: &OfiCore, peer: usize, head: Head, payload: Sge) -> bool {
        if payload.len() > core.objects.facts.part_max() && !self.post_parts(core, peer, payload) {
            return false;
        }
        let at = self.peer(core, peer).posted;
        let rest = payload.part(at, payload.len() - at);
        let cost = ProviderFacts::credits(rest.len(), core.credits);
        if self.peer(core, peer).credits < cost {
            return false;
        }
        let posted = self.post(core, peer, OfiMessageKind::Message, head.0, &[rest]);
        let it = self.peer(core, peer);
        if posted {
            it.credits -= cost;
            it.posted = 0;
        }
        posted
    }

    /// Posts all parts of a long message except the last. Returns false if there is no room for all these parts.
    fn post_parts(&mut self, core: &OfiCore, peer: usize, payload: Sge) -> bool {
        let most = core.objects.facts.part_max();
        loop {
            let it = self.peer(core, peer);
            let (at, credits) = (it.posted, it.credits);
            if payload.len() - at <= most {
                return true;
            }
            let words = [payload.len() as u64, at as u64, 0];
            if credits == 0
                || !self.post(core, peer, OfiMessageKind::Part, words, &[payload.part(at, most)])
            {
                return false;
            }
            let it = self.peer(core, peer);
            it.credits -= 1;
            it.posted += most;
        }
    }
}
