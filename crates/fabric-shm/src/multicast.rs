//! Multicast: every rank owns a ring of slots that all other ranks read. The owner writes a datagram once for all readers. A reader
//! that is more than a ring behind loses datagrams, as on a network.
//!
//! Contract. Only the owner writes its slots, in the order of positions `p` (slot `p mod SLOTS`). A slot is a seqlock: its
//! stamp is `2 p + 1` while datagram `p` is being written and `2 p + 2` afterwards. Readers copy the content and read the stamp
//! again. If the stamp has changed, the copy is worthless. Content is read and written as relaxed atomic words, because both
//! happen at the same time.

use crate::sync::{AtomicU64, Ordering, fence};
use std::cell::Cell;
use weft_fabric::{GroupId, Sge};

/// Number of slots of a rank.
pub const SLOTS: usize = if cfg!(loom) { 2 } else { 32 };

const WORDS: usize = if cfg!(loom) { 2 } else { 254 };

/// Maximum size of a datagram, in bytes.
pub const MULTICAST_MAX: usize = WORDS * 8;

#[derive(Debug)]
#[repr(C)]
pub struct MulticastSlot {
    stamp: AtomicU64,
    /// Group and length of the datagram.
    title: AtomicU64,
    words: [AtomicU64; WORDS],
}

#[cfg(test)]
impl MulticastSlot {
    pub fn new() -> MulticastSlot {
        let zero = || AtomicU64::new(0);
        MulticastSlot { stamp: zero(), title: zero(), words: std::array::from_fn(|_| zero()) }
    }
}

/// The owner's end, which writes datagrams.
#[derive(Debug, Default)]
pub struct MulticastSpeaker {
    next: Cell<u64>,
}

impl MulticastSpeaker {
    /// Writes a datagram of at most [`MULTICAST_MAX`] bytes.
    pub fn speak(&self, slots: &[MulticastSlot], group: GroupId, src: Sge) {
        let position = self.next.get();
        self.next.set(position + 1);
        let slot = &slots[position as usize % SLOTS];
        slot.stamp.store(2 * position + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        slot.title.store(u64::from(group.0) << 32 | src.len() as u64, Ordering::Relaxed);
        let mut word = [0; 8];
        for (i, to) in slot.words[..src.len().div_ceil(8)].iter().enumerate() {
            let part = src.part(8 * i, (src.len() - 8 * i).min(8));
            part.read(&mut word[..part.len()]);
            to.store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
        slot.stamp.store(2 * position + 2, Ordering::Release);
    }
}

/// A reader of the slots of one owner.
#[derive(Debug, Default)]
pub struct SlotReader {
    next: Cell<u64>,
}

impl SlotReader {
    /// Returns the next datagram of a group that `wanted` accepts, copied to the start of `into`. Skips datagrams of other
    /// groups, lost datagrams, and datagrams that are longer than `into`.
    pub fn listen(
        &self,
        slots: &[MulticastSlot],
        wanted: impl Fn(GroupId) -> bool,
        into: Sge,
    ) -> Option<(GroupId, usize)> {
        loop {
            let position = self.next.get();
            let slot = &slots[position as usize % SLOTS];
            let stamp = slot.stamp.load(Ordering::Acquire);
            // The position may be derived from a false stamp, so the arithmetic must not overflow.
            let complete = position.wrapping_mul(2).wrapping_add(2);
            if stamp < complete {
                return None;
            }
            if stamp > complete {
                // Overrun: the slot holds datagram `newest`, now or soon. Datagrams that are older than `newest` by a whole ring
                // are gone. The reader continues half a ring behind the newest datagram, at a slot that no sender overwrites soon.
                let newest = (stamp - 1) / 2;
                self.next.set((newest + 1).saturating_sub(SLOTS as u64 / 2).max(position + 1));
                continue;
            }
            self.next.set(position + 1);
            let title = slot.title.load(Ordering::Relaxed);
            let (group, len) = (GroupId((title >> 32) as u32), title as u32 as usize);
            if !wanted(group) || len > MULTICAST_MAX.min(into.len()) {
                continue;
            }
            for (i, from) in slot.words[..len.div_ceil(8)].iter().enumerate() {
                let word = from.load(Ordering::Relaxed).to_ne_bytes();
                let part = into.part(8 * i, (len - 8 * i).min(8));
                part.fill(&word[..part.len()]);
            }
            fence(Ordering::Acquire);
            if slot.stamp.load(Ordering::Relaxed) == stamp {
                return Some((group, len));
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn sge(bytes: &mut [u8]) -> Sge {
        // SAFETY: the `Sge` is used only while the caller's statement borrows `bytes`.
        unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) }
    }

    #[test]
    fn datagrams_of_wanted_groups_come_in_order() {
        let slots: Vec<MulticastSlot> = (0..SLOTS).map(|_| MulticastSlot::new()).collect();
        let (speaker, listener) = (MulticastSpeaker::default(), SlotReader::default());
        for (group, text) in [(1, "one"), (2, "two, no"), (1, ""), (1, "exactly 16 bytes")] {
            speaker.speak(&slots, GroupId(group), sge(&mut text.as_bytes().to_vec()));
        }
        let mut into = [0; 64];
        for text in ["one", "", "exactly 16 bytes"] {
            let got = listener.listen(&slots, |g| g.0 == 1, sge(&mut into));
            assert_eq!(got, Some((GroupId(1), text.len())));
            assert_eq!(&into[..text.len()], text.as_bytes());
        }
        assert_eq!(listener.listen(&slots, |_| true, sge(&mut into)), None);
    }

    #[test]
    fn a_slow_reader_loses_the_oldest_and_goes_on() {
        let slots: Vec<MulticastSlot> = (0..SLOTS).map(|_| MulticastSlot::new()).collect();
        let (speaker, listener) = (MulticastSpeaker::default(), SlotReader::default());
        for i in 0..1000u64 {
            speaker.speak(&slots, GroupId(0), sge(&mut i.to_ne_bytes()));
        }
        let mut into = [0; 8];
        let mut got = Vec::new();
        while listener.listen(&slots, |_| true, sge(&mut into)).is_some() {
            got.push(u64::from_ne_bytes(into));
        }
        assert_eq!(got.last(), Some(&999));
        assert!(got.len() >= SLOTS / 2 && got.is_sorted(), "{got:?}");
    }
}
