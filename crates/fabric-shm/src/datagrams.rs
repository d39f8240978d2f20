//! Multicast of a rank: the groups that it has joined, the datagrams that it sends, and the datagrams of the other ranks of its
//! job.

use crate::multicast::{MULTICAST_MAX, MulticastSpeaker};
use crate::peer::ShmPeer;
use crate::segment::Segment;
use crate::sync::{Ordering, fence};
use std::cell::{Cell, RefCell};
use weft_fabric::{Datagram, GroupId, Sge};

/// The multicast state of one rank.
#[derive(Default)]
pub(crate) struct ShmDatagrams {
    speaker: MulticastSpeaker,
    groups: RefCell<Vec<GroupId>>,
    /// Number of datagrams, of all ranks, that this rank has examined.
    seen: Cell<u64>,
}

impl ShmDatagrams {
    pub fn join(&self, group: GroupId) {
        let mut groups = self.groups.borrow_mut();
        if !groups.contains(&group) {
            groups.push(group);
        }
    }

    pub fn leave(&self, group: GroupId) {
        self.groups.borrow_mut().retain(|&g| g != group);
    }

    /// Sends a datagram of `rank`. Afterwards the caller must wake the ranks that sleep.
    pub fn speak(&self, segment: &Segment, rank: usize, group: GroupId, src: Sge) {
        let (len, max) = (src.len(), MULTICAST_MAX);
        assert!(len <= max, "a datagram of {len} bytes exceeds the {max} of multicast_max");
        self.speaker.speak(segment.slots(rank), group, src);
        segment.header().multicasts.0.fetch_add(1, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Receives the next datagram for `rank`, sent by one of `peers`.
    pub fn listen(
        &self,
        segment: &Segment,
        rank: usize,
        peers: &[ShmPeer],
        into: Sge,
    ) -> Option<Datagram> {
        let sent = segment.header().multicasts.0.load(Ordering::Acquire);
        if sent == self.seen.get() {
            return None;
        }
        let groups = self.groups.borrow();
        for (source, peer) in peers.iter().enumerate().filter(|&(source, _)| source != rank) {
            let slots = segment.slots(source);
            if let Some((group, len)) = peer.listener.listen(slots, |g| groups.contains(&g), into) {
                return Some(Datagram { source, group, len });
            }
        }
        // This rank has examined all datagrams that had been sent when this call began.
        self.seen.set(sent);
        None
    }
}
