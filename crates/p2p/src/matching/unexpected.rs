//! Unexpected messages: messages that arrived before their receive.

use super::chains::{Chains, Hash};
use super::{EnvelopeArrival, EnvelopeBody, Matched, ProbedMessage};
use crate::envelope::{Envelope, MatchingContext, MessageKind, ReceiveSource, SignatureMark, Tag};
use crate::message::Want;
use crate::slab::{NONE, Slab};
use weft_fabric::{Key, RemoteAddr};

/// Number of messages that a search examines one by one at first. If searches often examine more messages, the searches use chains.
const FEW: usize = 16;

/// Chains are made once the number of messages that were examined in vain exceeds this multiple of the number of kept messages.
const PATIENCE: u64 = 4;

/// An envelope in the queue. Without the payload, an entry takes at most 64 bytes, including 8 bytes for its links in chains of one
/// kind.
#[derive(Debug, Clone, Copy)]
struct Unexpected {
    context: MatchingContext,
    rank: u32,
    tag: Tag,
    peer: u32,
    request: u32,
    /// Length in the low 56 bits, kind in the high 8. The two highest bits are [`STORED`] and [`WORD`].
    len_kind: u64,
    /// Key and address of the payload at the sender, if both are short, as for shared memory. Otherwise the index of the envelope's
    /// [`EnvelopeBody`].
    place: [u64; 2],
    later: u32,
    earlier: u32,
}

const _: () = assert!(size_of::<Unexpected>() + 8 <= 64, "the stated bound of an envelope");

const LEN_MASK: u64 = (1 << 56) - 1;

/// Flag: the envelope has an [`EnvelopeBody`] of its own.
const STORED: u64 = 1 << 63;

/// Flag: [`Envelope::word`].
const WORD: u64 = 1 << 62;

const FLAGS: u64 = STORED | WORD;

impl Default for Unexpected {
    fn default() -> Self {
        Unexpected {
            context: MatchingContext(0),
            rank: 0,
            tag: 0,
            peer: 0,
            request: 0,
            len_kind: 0,
            place: [0; 2],
            later: NONE,
            earlier: NONE,
        }
    }
}

/// Pattern for which a receive or a probe searches.
#[derive(Clone, Copy)]
struct Wanted {
    context: MatchingContext,
    rank: Option<u32>,
    tag: Option<Tag>,
}

impl Wanted {
    fn fits(&self, u: &Unexpected) -> bool {
        u.context == self.context
            && self.rank.is_none_or(|rank| rank == u.rank)
            && self.tag.is_none_or(|tag| tag == u.tag)
    }

    /// Returns the kind of chains in which the pattern is looked up.
    fn kind(&self) -> usize {
        usize::from(self.rank.is_none()) | usize::from(self.tag.is_none()) << 1
    }
}

impl Unexpected {
    fn kind(&self) -> MessageKind {
        match ((self.len_kind & !FLAGS) >> 56) as u8 {
            kind if kind == MessageKind::Rts as u8 => MessageKind::Rts,
            kind if kind == MessageKind::EagerSync as u8 => MessageKind::EagerSync,
            _ => MessageKind::Eager,
        }
    }

    fn len(&self) -> u64 {
        self.len_kind & LEN_MASK
    }

    /// Returns the hash of the message in chains of one [`Wanted::kind`].
    fn hash(&self, kind: usize) -> Hash {
        let rank = if kind & 1 == 0 { self.rank } else { u32::MAX };
        let tag = if kind & 2 == 0 { self.tag as u32 } else { u32::MAX };
        Hash::of(self.context.0, rank, tag)
    }

    fn may_be_cancelled(&self) -> bool {
        self.kind() != MessageKind::Eager
    }

    fn is_of(&self, peer: usize, request: u32) -> bool {
        self.may_be_cancelled() && self.peer as usize == peer && self.request == request
    }
}

/// Kind of the chains whose key is the sender and the sender's request. Only messages that may be cancelled are in these chains.
const SENDERS: usize = 4;

impl Unexpected {
    /// Returns the hash of the message in the chains of kind `kind`. Returns `None` if chains of this kind do not hold the message.
    fn hash_in(&self, kind: usize) -> Option<Hash> {
        match kind {
            SENDERS => self.may_be_cancelled().then(|| Hash::of(0, self.peer, self.request)),
            kind => Some(self.hash(kind)),
        }
    }
}

/// All unexpected messages, in the order of their arrival.
#[repr(C)]
pub struct UnexpectedMessages {
    slots: Slab<Unexpected>,
    first: u32,
    last: u32,
    /// Chains of five kinds: by rank and tag, by the rank only, by the tag only, by the context only, and by the sender's request.
    /// Chains of a kind are made once searches without these chains have examined many messages ([`PATIENCE`]). All kinds are
    /// dropped when few messages are left. A flood of messages that is searched rarely takes no memory for chains.
    chains: [Option<Box<Chains>>; 5],
    /// For each kind: number of messages that were examined in vain because there were no chains of this kind.
    deep: [u64; 5],
    bodies: Vec<Option<EnvelopeBody>>,
    free_bodies: Vec<u32>,
    payload_bytes: u64,
    most_payload_bytes: u64,
    passed: u64,
}

impl UnexpectedMessages {
    pub fn new() -> UnexpectedMessages {
        UnexpectedMessages {
            slots: Slab::new(),
            first: NONE,
            last: NONE,
            chains: [const { None }; 5],
            deep: [0; 5],
            bodies: Vec::new(),
            free_bodies: Vec::new(),
            payload_bytes: 0,
            most_payload_bytes: 0,
            passed: 0,
        }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn most(&self) -> usize {
        self.slots.most()
    }

    pub fn payload(&self) -> (u64, u64) {
        (self.payload_bytes, self.most_payload_bytes)
    }

    pub fn restart_most(&mut self) {
        self.slots.restart_most();
        self.most_payload_bytes = self.payload_bytes;
    }

    pub fn passed(&self) -> u64 {
        self.passed + self.chains.iter().flatten().map(|chains| chains.passed()).sum::<u64>()
    }

    /// Iterates over all messages in the order of their arrival.
    fn all(&self) -> impl Iterator<Item = u32> {
        let some = |slot: u32| (slot != NONE).then_some(slot);
        std::iter::successors(some(self.first), move |&at| some(self.slots[at].later))
    }

    pub fn count(&self, ours: impl Fn(MatchingContext) -> bool) -> usize {
        self.all().filter(|&at| ours(self.slots[at].context)).count()
    }

    /// Keeps an envelope (and its payload) for a later receive.
    pub fn keep(&mut self, a: EnvelopeArrival) {
        self.payload_bytes += a.body.len();
        self.most_payload_bytes = self.most_payload_bytes.max(self.payload_bytes);
        let (place, stored) = match a.body {
            EnvelopeBody::There(RemoteAddr { addr, key: Key([key, 0, 0]) }) => ([key, addr], 0),
            body => ([u64::from(self.store(body)), 0], STORED),
        };
        let Envelope { kind, word, tag, context, rank, request } = a.envelope;
        let index = self.slots.take();
        let earlier = std::mem::replace(&mut self.last, index);
        match earlier {
            NONE => self.first = index,
            earlier => self.slots[earlier].later = index,
        }
        self.slots[index] = Unexpected {
            context,
            rank,
            tag,
            peer: a.peer as u32,
            request,
            len_kind: a.len | (kind as u64) << 56 | stored | if word { WORD } else { 0 },
            place,
            later: NONE,
            earlier,
        };
        let slots = &self.slots;
        for (kind, chains) in self.chains.iter_mut().enumerate() {
            if let Some(chains) = chains {
                note(chains, slots, kind, index);
            }
        }
    }

    /// Adds a mark to the message that arrived last.
    pub fn mark_last(&mut self, mark: SignatureMark) {
        let Unexpected { len_kind, place: [first, addr], .. } = self.slots[self.last];
        let body = match len_kind & STORED {
            0 => Some(EnvelopeBody::There(RemoteAddr::new(first, addr))),
            _ => {
                self.free_bodies.push(first as u32);
                self.bodies[first as usize].take()
            }
        };
        let Some(body) = body else { return };
        let stored = self.store(EnvelopeBody::WithMark(mark, Box::new(body)));
        let last = &mut self.slots[self.last];
        last.place = [stored.into(), 0];
        last.len_kind |= STORED;
    }

    fn store(&mut self, body: EnvelopeBody) -> u32 {
        match self.free_bodies.pop() {
            Some(index) => {
                self.bodies[index as usize] = Some(body);
                index
            }
            None => {
                self.bodies.push(Some(body));
                self.bodies.len() as u32 - 1
            }
        }
    }

    fn find(&mut self, &Want { context, source, tag }: &Want) -> Option<u32> {
        let rank = match source {
            ReceiveSource::Rank { rank, .. } => Some(rank),
            ReceiveSource::Any => None,
        };
        let wanted = Wanted { context, rank, tag };
        let sample = Unexpected {
            context,
            rank: rank.unwrap_or(0),
            tag: tag.unwrap_or(0),
            ..Unexpected::default()
        };
        self.search(wanted.kind(), |kind| sample.hash(kind), |u| wanted.fits(u))
    }

    /// Finds the first message for which `fits` returns true. Looks at the first few messages, then at the messages with the same
    /// `hash` in the chains of `kind`. While long searches are rare, goes through the whole list instead and makes no chains.
    #[inline]
    fn search(
        &mut self,
        kind: usize,
        hash: impl Fn(usize) -> Hash,
        fits: impl Fn(&Unexpected) -> bool,
    ) -> Option<u32> {
        let mut at = self.first;
        for _ in 0..FEW {
            if at == NONE || fits(&self.slots[at]) {
                return (at != NONE).then_some(at);
            }
            at = self.slots[at].later;
            self.passed += 1;
        }
        if at == NONE {
            return None;
        }
        if self.chains[kind].is_none() && self.deep[kind] < PATIENCE * self.slots.len() as u64 {
            let before = self.passed;
            while at != NONE && !fits(&self.slots[at]) {
                at = self.slots[at].later;
                self.passed += 1;
            }
            self.deep[kind] += self.passed - before;
            return (at != NONE).then_some(at);
        }
        let mut chains = self.chains_of(kind);
        let slots = &self.slots;
        chains.adapt(|at| slots[at].hash_in(kind).expect(MEMBERS));
        let found = chains.find(hash(kind), |at| fits(&self.slots[at]));
        self.chains[kind] = Some(chains);
        found
    }

    /// Takes the chains of kind `kind`, and makes these chains if there are none. The caller puts the chains back.
    #[cold]
    fn chains_of(&mut self, kind: usize) -> Box<Chains> {
        self.chains[kind].take().unwrap_or_else(|| {
            let mut made = Box::new(Chains::new());
            self.all().for_each(|at| note(&mut made, &self.slots, kind, at));
            made
        })
    }

    /// Returns the first message that a receive would take.
    pub fn peek(&mut self, want: &Want) -> Option<ProbedMessage> {
        let found = self.find(want)?;
        let u = &self.slots[found];
        let word = (u.len_kind & WORD != 0).then_some((u.peer as usize, u.request));
        Some(ProbedMessage { rank: u.rank, tag: u.tag, len: u.len(), word })
    }

    /// Takes the first message that a receive matches.
    pub fn take(&mut self, want: &Want) -> Option<Matched> {
        if self.slots.len() == 0 {
            return None;
        }
        let index = self.find(want)?;
        Some(self.unkeep(index))
    }

    /// Takes back the message that `peer` sent with its request `request`, if the message is still unmatched.
    pub fn take_back(&mut self, peer: usize, request: u32) -> bool {
        let hash = |_| Hash::of(0, peer as u32, request);
        let found = self.search(SENDERS, hash, |u| u.is_of(peer, request));
        found.map(|at| self.unkeep(at)).is_some()
    }

    fn unkeep(&mut self, at: u32) -> Matched {
        for (kind, chains) in self.chains.iter_mut().enumerate() {
            if let Some(chains) = chains
                && let Some(hash) = self.slots[at].hash_in(kind)
            {
                chains.remove(at, hash);
            }
        }
        // The bound is far below the length at which chains are made, so that chains do not come and go with every message.
        if self.slots.len() <= FEW / 4 {
            for chains in self.chains.iter_mut().filter_map(Option::take) {
                self.passed += chains.passed();
            }
            self.deep = [0; 5];
        }
        let u = self.slots[at];
        match u.earlier {
            NONE => self.first = u.later,
            earlier => self.slots[earlier].later = u.later,
        }
        match u.later {
            NONE => self.last = u.earlier,
            later => self.slots[later].earlier = u.earlier,
        }
        self.slots.give(at);
        let [first, addr] = u.place;
        let body = if u.len_kind & STORED == 0 {
            Some(EnvelopeBody::There(RemoteAddr::new(first, addr)))
        } else {
            self.free_bodies.push(first as u32);
            self.bodies[first as usize].take()
        };
        self.payload_bytes -= body.as_ref().map_or(0, EnvelopeBody::len);
        let Unexpected { rank, tag, request, peer, .. } = u;
        let (kind, word) = (u.kind(), u.len_kind & WORD != 0);
        Matched { kind, word, peer: peer as usize, rank, tag, len: u.len(), request, body }
    }
}

/// Adds the message at `at` to `chains`, which are the chains of kind `kind`. Does nothing if chains of this kind do not hold the
/// message.
fn note(chains: &mut Chains, slots: &Slab<Unexpected>, kind: usize, at: u32) {
    if let Some(hash) = slots[at].hash_in(kind) {
        chains.push(at, hash);
    }
}

const MEMBERS: &str = "only those that have a hash are in chains";
