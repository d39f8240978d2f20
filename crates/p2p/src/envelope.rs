//! Wire format: the 24-byte head of every message.
//!
//! ```text
//!   word 0   kind (8) | cancel word (1) | signature mark (23) | tag (32)
//!   word 1   context (64)
//!   word 2   sender's rank in the communicator (32) | sender's request (32)
//! ```
//! A reply (Ack, CTS, Data, ATS) carries in the low half of word 2 the request that it answers. Word 1 carries another number: a
//! request or an offset.

use weft_fabric::{Head, Sge, coded_enum};

/// A matching space. Every communicator has a space for its messages and another space for its collectives. No space is used twice
/// in a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct MatchingContext(pub u64);

/// Message tag. A message that is sent never has a negative tag.
pub type Tag = i32;

/// Source from which a receive takes a message: one process, or any member of the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveSource {
    /// One process: `rank` in the communicator, `peer` in the fabric.
    Rank {
        /// The sender's rank in the communicator, which its envelope carries.
        rank: u32,
        /// The sender's rank in the fabric.
        peer: usize,
    },
    /// The first message to arrive, from any sender.
    Any,
}

coded_enum! {
    /// Kinds of message.
    pub enum MessageKind {
        /// Envelope and whole payload.
        Eager = 1,
        /// Envelope and whole payload of a synchronous send; the receiver answers [`MessageKind::Ack`] at the match.
        EagerSync = 2,
        /// Offer (request to send): only the envelope; the payload waits at the sender.
        Rts = 3,
        /// Answer to an `EagerSync`, once it is matched.
        Ack = 4,
        /// Request to send the payload in pieces (clear to send).
        Cts = 5,
        /// One piece of a payload.
        Data = 6,
        /// End of a read (acknowledgement to sender): the payload has been read.
        Ats = 7,
        /// Credit: total of the eager payload so far released at the receiver.
        Credit = 8,
        /// Request to take back an `Rts` or `EagerSync` that is not matched yet.
        Cancel = 9,
        /// Answer to a `Cancel`: 1 if the message was taken back, else 0.
        Cancelled = 10,
        /// Request to the sender to help to copy a payload.
        CoCopyRequest = 11,
        /// Number of pieces that the sender copied.
        CoCopyReply = 12,
        /// Request to write the payload to an address at the receiver (ready to receive).
        Rtr = 13,
        /// End of a write (acknowledgement to peer): the payload has been written.
        Atp = 14,
        /// Notice that the whole payload is now staged. The notice wakes a receiver that no longer waits for the next part.
        StagedComplete = 15,
        /// Address of a chunk of the sender's cancel words (`matching/cancel.rs`).
        CancelWords = 16,
        /// [`MessageKind::Eager`] with a [`SignatureMark`].
        EagerWithMark = 17,
        /// [`MessageKind::EagerSync`] with a [`SignatureMark`].
        EagerSyncWithMark = 18,
        /// [`MessageKind::Rts`] with a [`SignatureMark`].
        RtsWithMark = 19,
    }
}

/// Number with which a sender names the type signature of a message, for a checking mode. 0 names nothing. Only heads of the kinds
/// with a mark have the bits, so a job without marks does not look at them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SignatureMark(u32);

impl SignatureMark {
    /// Number of bits of a mark.
    pub const BITS: u32 = 23;
    /// First bit of the mark in word 0.
    const SHIFT: u32 = 9;
    /// Difference between the code of a kind with a mark and the code of the kind without.
    const KINDS: u64 = 16;

    /// Returns the mark with this number; `None` if the number is 0 or too large.
    pub fn new(number: u32) -> Option<SignatureMark> {
        (number != 0 && number >> SignatureMark::BITS == 0).then_some(SignatureMark(number))
    }

    /// Returns the number.
    pub fn number(self) -> u32 {
        self.0
    }

    /// Adds the mark to the head of an eager message or an offer.
    pub fn on(self, head: Head) -> Head {
        let [word0, word1, word2] = head.0;
        match self.0 {
            0 => head,
            mark => Head([
                word0 + SignatureMark::KINDS + (u64::from(mark) << SignatureMark::SHIFT),
                word1,
                word2,
            ]),
        }
    }

    /// Splits the head of an eager message with a mark. Returns `None` for any other head.
    pub fn of_eager(head: Head) -> Option<(Head, SignatureMark)> {
        (head.0[0] as u8 == MessageKind::EagerWithMark as u8).then(|| SignatureMark::split(head))
    }

    /// Splits a head of a kind with a mark into the head without the mark, and the mark.
    pub fn split(head: Head) -> (Head, SignatureMark) {
        let [word0, word1, word2] = head.0;
        let mask = ((1 << SignatureMark::BITS) - 1) << SignatureMark::SHIFT;
        let mark = SignatureMark(((word0 & mask) >> SignatureMark::SHIFT) as u32);
        (Head([(word0 & !mask) - SignatureMark::KINDS, word1, word2]), mark)
    }
}

/// A decoded head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope {
    pub kind: MessageKind,
    /// True if a cancel word at the sender shows whether the message is cancelled (`matching/cancel.rs`).
    pub word: bool,
    pub tag: Tag,
    /// Context, or the number that a reply carries.
    pub context: MatchingContext,
    /// Sender's rank in the communicator.
    pub rank: u32,
    /// Request of the sender. In a reply: request of the process that receives the reply.
    pub request: u32,
}

impl Envelope {
    pub fn encode(self) -> Head {
        let word0 = self.kind as u64 | u64::from(self.word) << 8 | u64::from(self.tag as u32) << 32;
        Head([word0, self.context.0, u64::from(self.rank) | u64::from(self.request) << 32])
    }

    /// Decodes a head. Returns `None` if the kind is unknown.
    pub fn decode(head: Head) -> Option<Envelope> {
        let [word0, word1, word2] = head.0;
        Some(Envelope {
            kind: MessageKind::of_code(word0 as u8)?,
            word: word0 >> 8 & 1 == 1,
            tag: (word0 >> 32) as i32,
            context: MatchingContext(word1),
            rank: word2 as u32,
            request: (word2 >> 32) as u32,
        })
    }

    /// Encodes a reply that carries `number`. `request` is a request of the process that receives the reply.
    pub fn reply(kind: MessageKind, request: u32, number: u64) -> Head {
        Envelope { kind, word: false, tag: 0, context: MatchingContext(number), rank: 0, request }
            .encode()
    }
}

/// An arrived message: its sender, its envelope and its payload.
#[derive(Debug, Clone, Copy)]
pub struct PeerMessage {
    /// Sender's rank in the fabric.
    pub peer: usize,
    pub envelope: Envelope,
    pub payload: Sge,
}

/// Step of a rendezvous, for callers that see only heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RendezvousNotice {
    /// A payload is offered.
    Start,
    /// The payload has been read.
    Finish,
}

/// Returns the step of a rendezvous that a message with this head announces, and the rank in the communicator that offers
/// the payload. Returns `None` for any other message.
pub fn announced(head: &Head) -> Option<(RendezvousNotice, Option<u32>)> {
    let e = Envelope::decode(*head)?;
    match e.kind {
        MessageKind::Rts | MessageKind::RtsWithMark => {
            Some((RendezvousNotice::Start, Some(e.rank)))
        }
        MessageKind::Ats => Some((RendezvousNotice::Finish, None)),
        _ => None,
    }
}

/// A payload of a few words. Zeros at the end are not sent. An address ends with zeros if the fabric's keys are short.
pub struct ShortWords {
    bytes: [u8; 8 * ShortWords::MOST],
    len: usize,
}

impl ShortWords {
    const MOST: usize = 8;
    /// Minimum number of words sent.
    const LEAST: usize = 4;

    pub fn new(words: &[u64]) -> ShortWords {
        let zeros = words.iter().rev().take_while(|&&word| word == 0).count();
        let len = (words.len() - zeros).max(ShortWords::LEAST);
        let mut bytes = [0; 8 * ShortWords::MOST];
        for (at, word) in bytes.chunks_exact_mut(8).zip(words) {
            at.copy_from_slice(&word.to_ne_bytes());
        }
        ShortWords { bytes, len: 8 * len }
    }

    /// Returns the payload. The payload is valid as long as `self` stays where it is.
    pub fn payload(&mut self) -> Sge {
        // SAFETY: `bytes` holds `len` bytes. Only the call of `send` uses the payload. `self` outlives this call, and `send` copies
        // an inline payload before it returns.
        unsafe { Sge::new(self.bytes.as_mut_ptr(), self.len) }
    }

    /// Reads the words of a payload. Returns `None` if the payload has fewer words.
    pub fn read<const N: usize>(payload: Sge) -> Option<[u64; N]> {
        let mut bytes = [0; 8 * ShortWords::MOST];
        let len = payload.len().min(8 * N);
        if len < 8 * ShortWords::LEAST {
            return None;
        }
        payload.part(0, len).read(&mut bytes[..len]);
        let word = |i: usize| u64::from_ne_bytes(bytes[8 * i..][..8].try_into().expect("8 bytes"));
        Some(std::array::from_fn(word))
    }
}

/// Returns the first word that a waiting receive expects of an eager message with `tag`.
pub fn eager_word(tag: Tag) -> u64 {
    MessageKind::Eager as u64 | u64::from(tag as u32) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_decode_to_what_was_encoded() {
        for kind in [MessageKind::Eager, MessageKind::Rts, MessageKind::Cancelled] {
            let envelope = Envelope {
                kind,
                word: kind == MessageKind::Rts,
                tag: i32::MAX,
                context: MatchingContext(u64::MAX - 3),
                rank: 77,
                request: u32::MAX,
            };
            assert_eq!(Envelope::decode(envelope.encode()), Some(envelope));
        }
        assert_eq!(Envelope::decode(Head([99, 0, 0])), None);
        assert_eq!(Envelope::decode(Head([0, 0, 0])), None);
    }

    #[test]
    fn a_mark_is_split_from_the_head_that_it_was_added_to() {
        for kind in [MessageKind::Eager, MessageKind::EagerSync, MessageKind::Rts] {
            for (word, tag, number) in
                [(true, i32::MAX, 1), (false, 0, (1 << SignatureMark::BITS) - 1)]
            {
                let context = MatchingContext(3);
                let head = Envelope { kind, word, tag, context, rank: 77, request: 5 }.encode();
                let mark = SignatureMark::new(number).expect("in range");
                assert_eq!(SignatureMark::split(mark.on(head)), (head, mark));
                let with = Envelope::decode(mark.on(head)).expect("a known kind");
                assert_eq!((with.kind as u8, with.word), (kind as u8 + 16, word));
            }
        }
        let head = Envelope::reply(MessageKind::Rts, 0, 0);
        assert_eq!(SignatureMark::default().on(head), head);
        assert_eq!([0, 1 << SignatureMark::BITS].map(SignatureMark::new), [None, None]);
    }

    #[test]
    fn heads_say_what_becomes_of_a_rendezvous() {
        let head = |kind| {
            Envelope { kind, word: true, tag: 1, context: MatchingContext(2), rank: 3, request: 4 }
                .encode()
        };
        assert_eq!(announced(&head(MessageKind::Rts)), Some((RendezvousNotice::Start, Some(3))));
        let finish = Envelope::reply(MessageKind::Ats, 7, 0);
        assert_eq!(announced(&finish), Some((RendezvousNotice::Finish, None)));
        for kind in [MessageKind::Eager, MessageKind::EagerSync, MessageKind::Credit] {
            assert_eq!(announced(&head(kind)), None);
        }
        assert_eq!(announced(&Head([99, 0, 0])), None);
    }

    #[test]
    fn words_are_read_as_they_were_written() {
        for words in [[1, 2, 3, 4, 5], [1, 2, 3, 4, 0], [1, 2, 0, 0, 0], [0; 5]] {
            let mut sent = ShortWords::new(&words);
            let payload = sent.payload();
            assert_eq!(payload.len(), if words[4] == 0 { 32 } else { 40 });
            assert_eq!(ShortWords::read(payload), Some(words));
            assert_eq!(ShortWords::read::<5>(payload.part(0, 24)), None);
        }
    }

    #[test]
    fn the_compared_word_is_the_encoded_one() {
        let envelope = Envelope {
            kind: MessageKind::Eager,
            word: false,
            tag: 5,
            context: MatchingContext(1),
            rank: 2,
            request: 0,
        };
        assert_eq!(envelope.encode().0[0], eager_word(5));
    }
}
