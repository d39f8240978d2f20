//! The inbox of a slot: the first messages that have arrived at the rank, with their payloads. So a rank takes them without a request.
//! The messages stay in the simulation until the journal has an entry that the rank has taken them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use weft_fabric::{ArrivedMessage, Head, Sge};

/// Room in bytes for payloads. The largest message of the simulated cluster fits.
pub const PAYLOAD: usize = 64 << 10;

/// Maximum number of messages in an inbox.
const MESSAGES: usize = 64;

/// Alignment of payloads in bytes.
pub const PAYLOAD_ALIGN: usize = 64;

/// A message in an inbox.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InboxMessage {
    /// The sender.
    pub peer: usize,
    /// The head.
    pub head: Head,
    /// The payload in the slot, or a phantom.
    pub payload: Sge,
}

/// Room of an inbox.
#[derive(Debug, Clone, Copy)]
pub struct InboxRoom {
    messages: usize,
    bytes: usize,
}

impl InboxRoom {
    /// Takes the room of a message. Returns false if there is not enough.
    pub fn take(&mut self, payload: Sge) -> bool {
        let len = if payload.is_phantom() { 0 } else { payload.len() };
        if self.messages == 0 || len > self.bytes {
            return false;
        }
        self.messages -= 1;
        self.bytes = self.bytes.saturating_sub(len.next_multiple_of(PAYLOAD_ALIGN));
        true
    }
}

/// Words of a message: peer, head, length, and 1 if the payload is a phantom.
const MESSAGE_WORDS: usize = 6;

/// The messages. They belong to the side that runs.
#[repr(C)]
pub struct SlotInbox {
    /// Number of messages.
    shown: AtomicU32,
    /// Number of messages that the rank has taken.
    taken: AtomicU32,
    /// Offset in bytes of the next payload, for the side that writes or reads.
    offset: AtomicU32,
    messages: [[AtomicU64; MESSAGE_WORDS]; MESSAGES],
    payload: std::cell::UnsafeCell<[u8; PAYLOAD]>,
}

impl SlotInbox {
    /// Returns true if the rank has taken all messages, so that others can be shown.
    pub fn is_done(&self) -> bool {
        self.taken.load(Ordering::Relaxed) >= self.shown.load(Ordering::Relaxed)
    }

    /// Begins to show messages to the rank.
    pub fn clear(&self) {
        let counts = [&self.shown, &self.taken, &self.offset];
        counts.into_iter().for_each(|count| count.store(0, Ordering::Relaxed));
    }

    /// Returns the room for further messages.
    pub fn room(&self) -> InboxRoom {
        let shown = self.shown.load(Ordering::Relaxed) as usize;
        InboxRoom { messages: MESSAGES.saturating_sub(shown), bytes: PAYLOAD - self.offset() }
    }

    /// Shows a message. Returns false if there is no room.
    pub fn show(&self, message: &ArrivedMessage) -> bool {
        let shown = self.shown.load(Ordering::Relaxed) as usize;
        let (len, is_phantom) = (message.payload.len(), message.payload.is_phantom());
        if !self.room().take(message.payload) {
            return false;
        }
        if !is_phantom && len > 0 {
            self.next_payload(len).copy_from(message.payload);
        }
        let [first, second, third] = message.head.0;
        let words = [message.peer as u64, first, second, third, len as u64, u64::from(is_phantom)];
        let places = self.messages[shown].iter().zip(words);
        places.for_each(|(place, word)| place.store(word, Ordering::Relaxed));
        self.shown.store(shown as u32 + 1, Ordering::Relaxed);
        true
    }

    /// Ends showing. The rank takes the messages from the first on.
    pub fn finish(&self) {
        self.offset.store(0, Ordering::Relaxed);
    }

    /// Takes the next message. Its payload is valid until the rank's next request.
    pub fn take(&self) -> Option<InboxMessage> {
        let taken = self.taken.load(Ordering::Relaxed);
        if taken >= self.shown.load(Ordering::Relaxed) {
            return None;
        }
        let words = self.messages.get(taken as usize)?;
        let [peer, first, second, third, len, is_phantom] =
            std::array::from_fn(|at| words[at].load(Ordering::Relaxed));
        self.taken.store(taken + 1, Ordering::Relaxed);
        let payload = match (is_phantom, len as usize) {
            (0, 0) => Sge::EMPTY,
            (0, len) => self.next_payload(len),
            (_, len) => Sge::phantom(len),
        };
        Some(InboxMessage { peer: peer as usize, head: Head([first, second, third]), payload })
    }

    fn offset(&self) -> usize {
        (self.offset.load(Ordering::Relaxed) as usize).min(PAYLOAD)
    }

    /// Returns the place of the next payload, and goes on behind it.
    fn next_payload(&self, len: usize) -> Sge {
        let at = self.offset();
        let len = len.min(PAYLOAD - at);
        self.offset.store((at + len).next_multiple_of(PAYLOAD_ALIGN) as u32, Ordering::Relaxed);
        // SAFETY: the bytes lie within the payload. Only the side that runs calls this function, and uses them before its turn ends.
        unsafe { Sge::new(self.payload.get().cast::<u8>().add(at), len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Box<SlotInbox> {
        // SAFETY: zeros are valid for atomics and bytes.
        unsafe { Box::new_zeroed().assume_init() }
    }

    fn message(peer: usize, payload: Sge) -> ArrivedMessage {
        ArrivedMessage { peer, head: Head([1, 2, peer as u64]), payload, token: 0 }
    }

    #[test]
    fn messages_come_in_order_with_their_payloads() {
        let inbox = empty();
        for round in 0..3u8 {
            assert!(inbox.is_done());
            inbox.clear();
            let mut bytes = [round; 100];
            // SAFETY: the bytes outlive the message.
            let payload = unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) };
            assert!(inbox.show(&message(3, payload)));
            assert!(inbox.show(&message(4, Sge::phantom(1 << 30))));
            assert!(inbox.show(&message(5, Sge::EMPTY)));
            assert!(inbox.show(&message(6, payload.part(0, 7))));
            inbox.finish();
            assert!(!inbox.is_done());
            let all: Vec<_> = std::iter::from_fn(|| inbox.take()).collect();
            assert_eq!(all.iter().map(|m| m.peer).collect::<Vec<_>>(), [3, 4, 5, 6]);
            assert_eq!(all[3].head, Head([1, 2, 6]));
            assert!(all[1].payload.is_phantom() && all[1].payload.len() == 1 << 30);
            for (at, len) in [(0, 100), (3, 7)] {
                let mut copy = vec![0xff; len];
                all[at].payload.read(&mut copy);
                assert_eq!(copy, vec![round; len]);
            }
        }
    }

    #[test]
    fn a_full_inbox_refuses_messages() {
        let inbox = empty();
        let mut bytes = vec![1; PAYLOAD];
        // SAFETY: the bytes outlive the messages.
        let payload = unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) };
        assert!(inbox.show(&message(1, payload)));
        assert!(!inbox.show(&message(1, payload.part(0, 1))));
        assert!(inbox.show(&message(1, Sge::EMPTY)));
        inbox.clear();
        let mut room = inbox.room();
        assert!(room.take(payload) && !room.take(payload.part(0, 1)) && room.take(Sge::EMPTY));
        let count = (0..1000).take_while(|_| inbox.show(&message(1, Sge::EMPTY))).count();
        assert_eq!(count, MESSAGES);
    }
}
