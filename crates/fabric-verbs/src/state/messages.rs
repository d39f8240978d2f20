//! Two-sided messages. A message is posted immediately if the peer has room. Otherwise it is kept.

use super::VerbsState;
use crate::connection::ConnectionPhase;
use crate::connection::pending::PostedMessage;
use crate::job::VerbsCore;
use crate::memory::receive_pool::BufferUse;
use crate::sizes::SEND_MAX;
use weft_fabric::{ArrivedMessage, Completion, Fault, GroupId, PostOutcome, Sge};

impl VerbsState {
    /// Sends a message.
    #[inline]
    pub fn send(
        &mut self,
        core: &VerbsCore,
        peer: usize,
        message: PostedMessage,
        done: Completion,
    ) -> PostOutcome {
        if message.payload.len() <= SEND_MAX && self.post_message(peer, message) {
            return PostOutcome::Done;
        }
        self.send_slowly(core, peer, message, done)
    }

    /// Posts a message if the connection is open, no earlier message is kept, and there is room.
    #[inline]
    fn post_message(&mut self, peer: usize, message: PostedMessage) -> bool {
        let VerbsState { connections, posting, memories, trouble, .. } = self;
        if let Some(link) = connections.get_mut(peer)
            && link.phase == ConnectionPhase::Open
            && link.kept_messages.is_empty()
            && posting.add_message(memories, link, message)
        {
            posting.ring(link, trouble);
            return true;
        }
        false
    }

    #[cold]
    fn send_slowly(
        &mut self,
        core: &VerbsCore,
        peer: usize,
        message: PostedMessage,
        done: Completion,
    ) -> PostOutcome {
        let len = message.payload.len();
        assert!(len <= SEND_MAX, "a payload of {len} bytes exceeds the {SEND_MAX} of send_max");
        if !self.reach(core, peer) {
            return PostOutcome::Done;
        }
        // A caller that only sends may never call `progress`. So this call polls and drains, because otherwise kept messages would
        // pile up.
        self.poll(core);
        self.drain(core, peer);
        if self.post_message(peer, message) {
            return PostOutcome::Done;
        }
        self.kept.keep_message(self.connections.of(peer), message, done)
    }

    /// Sends a datagram to a group.
    pub fn multicast(&mut self, core: &VerbsCore, group: GroupId, src: Sge) -> Result<(), Fault> {
        let Some(multicast) = &self.multicast else {
            return Err(Fault::unsupported(core.rank, "multicast"));
        };
        let (len, max) = (src.len(), multicast.max);
        assert!(len <= max, "a datagram of {len} bytes exceeds the {max} of multicast_max");
        if !multicast.has_room() {
            self.poll_departures(core, 0);
        }
        let VerbsState { multicast: Some(multicast), rails, memories, .. } = self else {
            unreachable!("looked at above");
        };
        multicast.send(core, &rails[0], memories, group, src)
    }

    #[inline]
    pub fn release(&mut self, core: &VerbsCore, message: &ArrivedMessage) {
        let rail = (message.token >> 32) as usize;
        let pool = &mut self.rails[rail].receives;
        if pool.give_back(message.token as u32, message.peer, BufferUse::Message) {
            self.repost(core, rail);
        }
    }
}
