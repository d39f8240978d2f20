//! Posted receives: receives that wait for their message.

use super::chains::{Chains, Hash};
use crate::envelope::{MatchingContext, Tag};

/// A posted receive.
#[derive(Debug, Default)]
struct PostedReceive {
    wanted: Wanted,
    /// Number in the order of posting; 0: no receive is posted here.
    order: u64,
}

/// Pattern for which a receive asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Wanted {
    context: MatchingContext,
    /// Rank in the low half, tag in the high half. [`OPEN`] matches anything; no rank or tag has that value.
    which: u64,
}

/// A posted receive: its request, and the pattern for which it asks. `None` matches anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostedPattern {
    pub request: u32,
    pub context: MatchingContext,
    pub rank: Option<u32>,
    pub tag: Option<Tag>,
}

const OPEN: u32 = u32::MAX;

impl Wanted {
    #[inline(always)]
    fn new(context: MatchingContext, rank: Option<u32>, tag: Option<Tag>) -> Wanted {
        let (rank, tag) = (rank.unwrap_or(OPEN), tag.map_or(OPEN, |tag| tag as u32));
        Wanted { context, which: u64::from(tag) << 32 | u64::from(rank) }
    }

    #[inline(always)]
    fn hash(&self) -> Hash {
        Hash::of(self.context.0, self.which as u32, (self.which >> 32) as u32)
    }

    /// Returns the kind: bit 0 is set if the rank is a wildcard, and bit 1 if the tag is a wildcard.
    #[inline(always)]
    fn kind(&self) -> usize {
        usize::from(self.which as u32 == OPEN) | usize::from((self.which >> 32) as u32 == OPEN) << 1
    }
}

/// All posted receives. Receives with the same pattern of context, rank and tag are in one chain. A wildcard is a value of rank or
/// tag like any other. A message is looked up once for each kind of pattern. Of the receives found, the one that was posted first
/// is taken.
#[repr(C)]
pub struct PostedReceives {
    order: u64,
    /// Number of receives of each kind.
    kinds: [usize; 4],
    /// Number of receives whose rank or tag is a wildcard.
    open: usize,
    len: usize,
    most: usize,
    slots: Slots,
    chains: Chains,
}

/// Number of slots in a chunk.
const CHUNK: usize = 16;

/// Slots by request number. So a posted receive needs no number besides the number of its request.
#[derive(Default)]
#[allow(clippy::vec_box)] // existing chunks must not move when chunks are added
struct Slots(Vec<Box<[PostedReceive; CHUNK]>>);

impl Slots {
    #[inline(always)]
    fn at(&self, request: u32) -> &PostedReceive {
        &self.0[request as usize / CHUNK][request as usize % CHUNK]
    }

    #[inline(always)]
    fn at_mut(&mut self, request: u32) -> &mut PostedReceive {
        &mut self.0[request as usize / CHUNK][request as usize % CHUNK]
    }

    fn get(&self, request: u32) -> Option<&PostedReceive> {
        self.0.get(request as usize / CHUNK).map(|chunk| &chunk[request as usize % CHUNK])
    }

    /// Returns the slot of a request. Adds slots if the request's number is beyond the last slot.
    #[inline(always)]
    fn made(&mut self, request: u32) -> &mut PostedReceive {
        if self.0.len() <= request as usize / CHUNK {
            self.grow(request);
        }
        self.at_mut(request)
    }

    #[cold]
    fn grow(&mut self, request: u32) {
        while self.0.len() <= request as usize / CHUNK {
            self.0.push(Box::new(std::array::from_fn(|_| PostedReceive::default())));
        }
    }
}

impl PostedReceives {
    pub fn new() -> PostedReceives {
        PostedReceives {
            order: 0,
            kinds: [0; 4],
            open: 0,
            len: 0,
            most: 0,
            slots: Slots::default(),
            chains: Chains::new(),
        }
    }

    /// Lists the posted receives, in the order of posting.
    pub fn list(&self) -> Vec<PostedPattern> {
        let mut all: Vec<u32> = self.chains.all().collect();
        all.sort_unstable_by_key(|&request| self.slots.at(request).order);
        let pattern = |request| {
            let Wanted { context, which } = self.slots.at(request).wanted;
            let named = |half: u32| (half != OPEN).then_some(half);
            let (rank, tag) = (named(which as u32), named((which >> 32) as u32));
            PostedPattern { request, context, rank, tag: tag.map(|tag| tag as Tag) }
        };
        all.into_iter().map(pattern).collect()
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn most(&self) -> usize {
        self.most
    }

    pub fn restart_most(&mut self) {
        self.most = self.len;
    }

    pub fn passed(&self) -> u64 {
        self.chains.passed()
    }

    pub fn count(&self, ours: impl Fn(MatchingContext) -> bool) -> usize {
        self.chains.all().filter(|&slot| ours(self.slots.at(slot).wanted.context)).count()
    }

    /// Adds the receive of `request`. A `rank` or `tag` of `None` matches anything.
    #[inline(always)]
    pub fn post(
        &mut self,
        context: MatchingContext,
        rank: Option<u32>,
        tag: Option<Tag>,
        request: u32,
    ) {
        self.order += 1;
        let wanted = Wanted::new(context, rank, tag);
        *self.slots.made(request) = PostedReceive { wanted, order: self.order };
        self.len += 1;
        self.most = self.most.max(self.len);
        let kind = wanted.kind();
        self.kinds[kind] += 1;
        self.open += usize::from(kind != 0);
        let slots = &self.slots;
        self.chains.make_room(|slot| slots.at(slot).wanted.hash());
        self.chains.push(request, wanted.hash());
    }

    /// Removes the receive that an arrived envelope matches. Returns the request of the receive. Allocates nothing.
    #[inline(always)]
    pub fn take(&mut self, context: MatchingContext, rank: u32, tag: Tag) -> Option<u32> {
        if self.open != 0 {
            let found = self.find(context, rank, tag)?;
            self.unpost(found);
            return Some(found);
        }
        let exact = Wanted::new(context, Some(rank), Some(tag));
        let hash = exact.hash();
        let found = self.chains.find(hash, |slot| self.slots.at(slot).wanted == exact)?;
        self.unpost_from(found, 0, hash);
        Some(found)
    }

    #[inline]
    fn first(&self, wanted: Wanted) -> Option<u32> {
        self.chains.find(wanted.hash(), |slot| self.slots.at(slot).wanted == wanted)
    }

    /// Returns the request of the receive that an arrived envelope matches. The receive stays posted.
    #[inline]
    pub fn find(&self, context: MatchingContext, rank: u32, tag: Tag) -> Option<u32> {
        let exact = Wanted::new(context, Some(rank), Some(tag));
        let first = self.first(exact);
        if self.open == 0 {
            return first;
        }
        let any_rank = Wanted::new(context, None, Some(tag));
        let any_tag = Wanted::new(context, Some(rank), None);
        let anything = Wanted::new(context, None, None);
        let open = [any_rank, any_tag, anything].into_iter();
        let there = open.filter(|wanted| self.kinds[wanted.kind()] > 0);
        let found = first.into_iter().chain(there.filter_map(|wanted| self.first(wanted)));
        found.min_by_key(|&slot| self.slots.at(slot).order)
    }

    /// Removes a receive. Allocates nothing.
    #[inline]
    fn unpost(&mut self, request: u32) {
        let wanted = self.slots.at(request).wanted;
        self.unpost_from(request, wanted.kind(), wanted.hash());
    }

    #[inline(always)]
    fn unpost_from(&mut self, request: u32, kind: usize, hash: Hash) {
        self.slots.at_mut(request).order = 0;
        self.len -= 1;
        self.kinds[kind] -= 1;
        self.open -= usize::from(kind != 0);
        self.chains.remove(request, hash);
    }

    /// Removes the receive of `request`, if the receive is still posted. Returns true if a receive was removed.
    pub fn withdraw(&mut self, request: u32) -> bool {
        let there = self.slots.get(request).is_some_and(|posted| posted.order != 0);
        if there {
            self.unpost(request);
        }
        there
    }
}
