//! Matching: posted receives against arrived envelopes (MPI 5.0, section 3.5: messages from one
//! sender in one context do not overtake).
//!
//! ```text
//!   posted       64 chains by (context, source)      + one chain of receives from any source
//!   unexpected   64 chains by (context, source)      = the same entries in one chain by arrival
//! ```
//! A chain keeps the order of posting or arrival; where a receive from one source and one from any
//! source both fit, the one posted first wins.

use crate::envelope::{Context, Kind, Source, Tag};
use crate::slab::{NONE, Slab};
use weft_fabric::{Key, RemoteAddr, Staging};

const CHAINS: usize = 64;

fn chain(context: Context, rank: u32) -> usize {
    let mixed = (context.0 ^ u64::from(rank).rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 58) as usize
}

#[derive(Debug, Clone, Copy)]
struct Ends {
    first: u32,
    last: u32,
}

const EMPTY: Ends = Ends { first: NONE, last: NONE };

/// A posted receive.
#[derive(Debug)]
struct Posted {
    context: Context,
    /// `None`: any.
    rank: Option<u32>,
    tag: Option<Tag>,
    order: u64,
    request: u32,
    next: u32,
    prev: u32,
}

impl Default for Posted {
    fn default() -> Self {
        let context = Context(0);
        Posted { context, rank: None, tag: None, order: 0, request: NONE, next: NONE, prev: NONE }
    }
}

/// An envelope that found no receive: at most 64 bytes, payload apart.
#[derive(Debug, Clone, Copy)]
struct Unexpected {
    context: Context,
    rank: u32,
    tag: Tag,
    peer: u32,
    request: u32,
    /// Length in the low 56 bits, kind in the high 8, of which the first is [`STORED`].
    len_kind: u64,
    /// Key and address of a payload at the sender if they are short, as those of shared memory are;
    /// else the number of its [`Body`].
    place: [u64; 2],
    next: u32,
    prev: u32,
    later: u32,
    earlier: u32,
}

const _: () = assert!(size_of::<Unexpected>() <= 64, "the stated bound of an envelope");

impl Default for Unexpected {
    fn default() -> Self {
        Unexpected {
            context: Context(0),
            rank: 0,
            tag: 0,
            peer: 0,
            request: 0,
            len_kind: 0,
            place: [0; 2],
            next: NONE,
            prev: NONE,
            later: NONE,
            earlier: NONE,
        }
    }
}

/// An arrived message: matched, or found by a probe.
pub struct Matched {
    pub(crate) kind: Kind,
    pub(crate) peer: usize,
    /// Sender's rank in the communicator.
    pub rank: u32,
    pub tag: Tag,
    /// Length of the message in bytes.
    pub len: u64,
    pub(crate) request: u32,
    pub(crate) body: Option<Body>,
}

/// What came with an envelope.
pub enum Body {
    /// The payload.
    Here(Staging),
    /// Where the payload lies at the sender.
    There(RemoteAddr),
}

impl Body {
    /// Bytes of payload kept here.
    fn len(&self) -> u64 {
        match self {
            Body::Here(payload) => payload.len() as u64,
            Body::There(_) => 0,
        }
    }
}

/// An envelope on its way into the queue of unexpected ones.
pub struct Arrival {
    pub kind: Kind,
    pub context: Context,
    pub rank: u32,
    pub tag: Tag,
    pub peer: usize,
    pub request: u32,
    pub len: u64,
    pub body: Body,
}

/// Both queues; what a message that is awaited needs comes first.
#[repr(C)]
pub struct Matching {
    order: u64,
    any_source: Ends,
    posted: Slab<Posted>,
    by_source: [Ends; CHAINS],
    unexpected: Slab<Unexpected>,
    all_arrived: Ends,
    arrived: [Ends; CHAINS],
    bodies: Vec<Option<Body>>,
    free_bodies: Vec<u32>,
    payload_bytes: u64,
    most_payload_bytes: u64,
}

impl Matching {
    pub fn new() -> Matching {
        Matching {
            posted: Slab::new(),
            by_source: [EMPTY; CHAINS],
            any_source: EMPTY,
            order: 0,
            unexpected: Slab::new(),
            arrived: [EMPTY; CHAINS],
            all_arrived: EMPTY,
            bodies: Vec::new(),
            free_bodies: Vec::new(),
            payload_bytes: 0,
            most_payload_bytes: 0,
        }
    }

    /// No receive is posted and no message waits: the next message may go straight to its buffer.
    pub fn idle(&self) -> bool {
        self.posted.len() == 0 && self.unexpected.len() == 0
    }

    /// Unexpected envelopes now, the most there ever were, and the same for their payload in bytes.
    pub fn load(&self) -> (usize, usize, u64, u64) {
        let entries = &self.unexpected;
        (entries.len(), entries.most(), self.payload_bytes, self.most_payload_bytes)
    }

    /// Posted receives now, and the most there ever were.
    pub fn posted(&self) -> (usize, usize) {
        (self.posted.len(), self.posted.most())
    }

    /// Posted receives and unexpected envelopes of the contexts that `ours` names. Walks both queues.
    pub fn load_of(&self, ours: impl Fn(Context) -> bool) -> (usize, usize) {
        let (mut posted, mut unexpected) = (0, 0);
        for ends in self.by_source.iter().chain([&self.any_source]) {
            let mut at = ends.first;
            while at != NONE {
                posted += usize::from(ours(self.posted[at].context));
                at = self.posted[at].next;
            }
        }
        let mut at = self.all_arrived.first;
        while at != NONE {
            unexpected += usize::from(ours(self.unexpected[at].context));
            at = self.unexpected[at].later;
        }
        (posted, unexpected)
    }

    /// Begins all that says "the most" anew, from what there is now.
    pub fn restart_most(&mut self) {
        self.posted.restart_most();
        self.unexpected.restart_most();
        self.most_payload_bytes = self.payload_bytes;
    }

    // ---- posted receives ----

    /// Adds a receive; `rank` or `tag` of `None` match anything.
    pub fn post(&mut self, context: Context, rank: Option<u32>, tag: Option<Tag>, request: u32) {
        self.order += 1;
        let index = self.posted.take();
        let order = self.order;
        let last = self.posted_ends(context, rank).last;
        self.posted[index] = Posted { context, rank, tag, order, request, next: NONE, prev: last };
        if last != NONE {
            self.posted[last].next = index;
        }
        let ends = self.posted_ends(context, rank);
        ends.last = index;
        if ends.first == NONE {
            ends.first = index;
        }
    }

    fn posted_ends(&mut self, context: Context, rank: Option<u32>) -> &mut Ends {
        match rank {
            Some(rank) => &mut self.by_source[chain(context, rank)],
            None => &mut self.any_source,
        }
    }

    fn first_posted(&self, from: u32, context: Context, rank: u32, tag: Tag) -> Option<u32> {
        let mut at = from;
        while at != NONE {
            let p = &self.posted[at];
            let fits = p.context == context
                && p.rank.is_none_or(|r| r == rank)
                && p.tag.is_none_or(|t| t == tag);
            if fits {
                return Some(at);
            }
            at = p.next;
        }
        None
    }

    /// Takes the receive that an arrived envelope matches; its request.
    pub fn match_posted(&mut self, context: Context, rank: u32, tag: Tag) -> Option<u32> {
        let found = self.fitting(context, rank, tag)?;
        Some(self.unpost(found))
    }

    /// The request of that receive, which stays posted.
    pub fn find_posted(&self, context: Context, rank: u32, tag: Tag) -> Option<u32> {
        self.fitting(context, rank, tag).map(|found| self.posted[found].request)
    }

    #[inline]
    fn fitting(&self, context: Context, rank: u32, tag: Tag) -> Option<u32> {
        let one = self.first_posted(self.by_source[chain(context, rank)].first, context, rank, tag);
        let any = self.first_posted(self.any_source.first, context, rank, tag);
        let found = match (one, any) {
            (Some(a), Some(b)) if self.posted[b].order < self.posted[a].order => b,
            (Some(a), _) => a,
            (None, b) => b?,
        };
        Some(found)
    }

    fn unpost(&mut self, index: u32) -> u32 {
        let Posted { context, rank, request, next, prev, .. } = self.posted[index];
        match prev {
            NONE => self.posted_ends(context, rank).first = next,
            _ => self.posted[prev].next = next,
        }
        match next {
            NONE => self.posted_ends(context, rank).last = prev,
            _ => self.posted[next].prev = prev,
        }
        self.posted.give(index);
        request
    }

    /// Withdraws the receive of `request`; false if it is no longer posted.
    pub fn withdraw(&mut self, context: Context, rank: Option<u32>, request: u32) -> bool {
        let mut at = self.posted_ends(context, rank).first;
        while at != NONE {
            if self.posted[at].request == request {
                self.unpost(at);
                return true;
            }
            at = self.posted[at].next;
        }
        false
    }

    // ---- unexpected messages ----

    /// Keeps an envelope (and its payload) for a later receive.
    pub fn keep(&mut self, a: Arrival) {
        self.payload_bytes += a.body.len();
        self.most_payload_bytes = self.most_payload_bytes.max(self.payload_bytes);
        let (place, stored) = match a.body {
            Body::There(RemoteAddr { addr, key: Key([key, 0, 0]) }) => ([key, addr], 0),
            body => ([u64::from(self.store(body)), 0], STORED),
        };
        let index = self.unexpected.take();
        let ends = &mut self.arrived[chain(a.context, a.rank)];
        let (prev, earlier) = (ends.last, self.all_arrived.last);
        ends.last = index;
        if ends.first == NONE {
            ends.first = index;
        }
        self.all_arrived.last = index;
        if self.all_arrived.first == NONE {
            self.all_arrived.first = index;
        }
        if prev != NONE {
            self.unexpected[prev].next = index;
        }
        if earlier != NONE {
            self.unexpected[earlier].later = index;
        }
        self.unexpected[index] = Unexpected {
            context: a.context,
            rank: a.rank,
            tag: a.tag,
            peer: a.peer as u32,
            request: a.request,
            len_kind: a.len | (a.kind as u64) << 56 | stored,
            place,
            next: NONE,
            prev,
            later: NONE,
            earlier,
        };
    }

    fn store(&mut self, body: Body) -> u32 {
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

    fn find(&self, context: Context, source: Source, tag: Option<Tag>) -> Option<u32> {
        let rank = match source {
            Source::Rank { rank, .. } => Some(rank),
            Source::Any => None,
        };
        let mut at = match rank {
            Some(rank) => self.arrived[chain(context, rank)].first,
            None => self.all_arrived.first,
        };
        while at != NONE {
            let u = &self.unexpected[at];
            let fits = u.context == context
                && rank.is_none_or(|r| r == u.rank)
                && tag.is_none_or(|t| t == u.tag);
            if fits {
                return Some(at);
            }
            at = if rank.is_some() { u.next } else { u.later };
        }
        None
    }

    /// Rank, tag and length in bytes of the first message that a receive would take.
    pub fn peek(
        &self,
        context: Context,
        source: Source,
        tag: Option<Tag>,
    ) -> Option<(u32, Tag, u64)> {
        let u = &self.unexpected[self.find(context, source, tag)?];
        Some((u.rank, u.tag, u.len_kind & LEN_MASK))
    }

    /// Takes the first message that a receive matches.
    pub fn take(&mut self, context: Context, source: Source, tag: Option<Tag>) -> Option<Matched> {
        if self.unexpected.len() == 0 {
            return None;
        }
        let index = self.find(context, source, tag)?;
        Some(self.unkeep(index))
    }

    /// Takes back the message that `peer` sent as its `request`, if it is still unmatched.
    pub fn take_back(&mut self, peer: usize, request: u32) -> bool {
        let mut at = self.all_arrived.first;
        while at != NONE {
            let u = &self.unexpected[at];
            let kind = ((u.len_kind & !STORED) >> 56) as u8;
            let cancellable = kind == Kind::Rts as u8 || kind == Kind::EagerSync as u8;
            if cancellable && u.peer as usize == peer && u.request == request {
                self.unkeep(at);
                return true;
            }
            at = u.later;
        }
        false
    }

    fn unkeep(&mut self, index: u32) -> Matched {
        let u = self.unexpected[index];
        let chain = chain(u.context, u.rank);
        match u.prev {
            NONE => self.arrived[chain].first = u.next,
            _ => self.unexpected[u.prev].next = u.next,
        }
        match u.next {
            NONE => self.arrived[chain].last = u.prev,
            _ => self.unexpected[u.next].prev = u.prev,
        }
        match u.earlier {
            NONE => self.all_arrived.first = u.later,
            _ => self.unexpected[u.earlier].later = u.later,
        }
        match u.later {
            NONE => self.all_arrived.last = u.earlier,
            _ => self.unexpected[u.later].earlier = u.earlier,
        }
        self.unexpected.give(index);
        let (kind, len) = ((u.len_kind & !STORED) >> 56, u.len_kind & LEN_MASK);
        let [first, addr] = u.place;
        let body = if u.len_kind & STORED == 0 {
            Some(Body::There(RemoteAddr::new(first, addr)))
        } else {
            self.free_bodies.push(first as u32);
            self.bodies[first as usize].take()
        };
        self.payload_bytes -= body.as_ref().map_or(0, Body::len);
        let kind = match kind {
            kind if kind == Kind::Rts as u64 => Kind::Rts,
            kind if kind == Kind::EagerSync as u64 => Kind::EagerSync,
            _ => Kind::Eager,
        };
        let (rank, tag, request) = (u.rank, u.tag, u.request);
        Matched { kind, peer: u.peer as usize, rank, tag, len, request, body }
    }
}

const LEN_MASK: u64 = (1 << 56) - 1;

/// The envelope has a [`Body`] of its own.
const STORED: u64 = 1 << 63;

#[cfg(test)]
mod tests;
