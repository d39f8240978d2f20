//! Posted receives: receives that wait for their message.

use super::chains::{Chains, Hash};
use crate::envelope::{MatchingContext, Tag};
use crate::slab::NONE;

/// A posted receive.
#[derive(Debug)]
struct PostedReceive {
    wanted: Wanted,
    order: u64,
    request: u32,
}

/// Pattern for which a receive asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wanted {
    context: MatchingContext,
    /// Rank in the low half, tag in the high half. [`OPEN`] matches anything; no rank or tag has that value.
    which: u64,
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

    /// Returns the kind: bit 0 is set if the rank is open, bit 1 if the tag is open.
    #[inline(always)]
    fn kind(&self) -> usize {
        usize::from(self.which as u32 == OPEN) | usize::from((self.which >> 32) as u32 == OPEN) << 1
    }
}

impl Default for PostedReceive {
    fn default() -> Self {
        let wanted = Wanted::new(MatchingContext(0), None, None);
        PostedReceive { wanted, order: 0, request: NONE }
    }
}

/// All posted receives. Each is in the chain of its pattern, in which an open rank or tag is a value of its own. A message looks
/// for the first receive of each kind that exists, and takes the receive that was posted first.
#[repr(C)]
pub(super) struct PostedReceives {
    order: u64,
    /// Number of receives of each kind.
    kinds: [usize; 4],
    /// Number of receives whose rank or tag is open.
    open: usize,
    len: usize,
    most: usize,
    slots: Slots,
    chains: Chains,
}

/// Number of slots in a chunk.
const CHUNK: usize = 16;

/// Slots by the numbers of their requests, so that a posted receive needs no further number.
#[derive(Default)]
#[allow(clippy::vec_box)] // chunks stay where they are when there are more
struct Slots(Vec<Box<[PostedReceive; CHUNK]>>);

impl Slots {
    #[inline(always)]
    fn at(&self, place: u32) -> &PostedReceive {
        &self.0[place as usize / CHUNK][place as usize % CHUNK]
    }

    #[inline(always)]
    fn at_mut(&mut self, place: u32) -> &mut PostedReceive {
        &mut self.0[place as usize / CHUNK][place as usize % CHUNK]
    }

    fn get(&self, place: u32) -> Option<&PostedReceive> {
        self.0.get(place as usize / CHUNK).map(|chunk| &chunk[place as usize % CHUNK])
    }

    /// Returns the slot of a request, whose number may be higher than all before.
    #[inline(always)]
    fn made(&mut self, place: u32) -> &mut PostedReceive {
        if self.0.len() <= place as usize / CHUNK {
            self.grow(place);
        }
        self.at_mut(place)
    }

    #[cold]
    fn grow(&mut self, place: u32) {
        while self.0.len() <= place as usize / CHUNK {
            self.0.push(Box::new(std::array::from_fn(|_| PostedReceive::default())));
        }
    }
}

impl PostedReceives {
    pub(super) fn new() -> PostedReceives {
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

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }

    pub(super) fn restart_most(&mut self) {
        self.most = self.len;
    }

    pub(super) fn passed(&self) -> u64 {
        self.chains.passed()
    }

    pub(super) fn count(&self, ours: impl Fn(MatchingContext) -> bool) -> usize {
        self.chains.all().filter(|&slot| ours(self.slots.at(slot).wanted.context)).count()
    }

    /// Adds a receive. Returns its place, for [`PostedReceives::withdraw`].
    #[inline(always)]
    pub(super) fn post(
        &mut self,
        context: MatchingContext,
        rank: Option<u32>,
        tag: Option<Tag>,
        request: u32,
    ) -> u32 {
        self.order += 1;
        let wanted = Wanted::new(context, rank, tag);
        let place = request;
        *self.slots.made(place) = PostedReceive { wanted, order: self.order, request };
        self.len += 1;
        self.most = self.most.max(self.len);
        let kind = wanted.kind();
        self.kinds[kind] += 1;
        self.open += usize::from(kind != 0);
        let slots = &self.slots;
        self.chains.make_room(|slot| slots.at(slot).wanted.hash());
        self.chains.push(place, wanted.hash());
        place
    }

    /// Removes the receive that an arrived envelope matches. Returns its request. Allocates nothing.
    #[inline(always)]
    pub(super) fn take(&mut self, context: MatchingContext, rank: u32, tag: Tag) -> Option<u32> {
        if self.open != 0 {
            let found = self.fitting(context, rank, tag)?;
            return Some(self.unpost(found));
        }
        let exact = Wanted::new(context, Some(rank), Some(tag));
        let hash = exact.hash();
        let found = self.chains.find(hash, |slot| self.slots.at(slot).wanted == exact)?;
        Some(self.unpost_from(found, 0, hash))
    }

    #[inline]
    fn first(&self, wanted: Wanted) -> Option<u32> {
        self.chains.find(wanted.hash(), |slot| self.slots.at(slot).wanted == wanted)
    }

    /// Returns the place of the receive that an arrived envelope matches.
    #[inline]
    pub(super) fn fitting(&self, context: MatchingContext, rank: u32, tag: Tag) -> Option<u32> {
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

    pub(super) fn request(&self, place: u32) -> u32 {
        self.slots.at(place).request
    }

    /// Removes a receive. Returns its request. Allocates nothing.
    #[inline]
    pub(super) fn unpost(&mut self, place: u32) -> u32 {
        let wanted = self.slots.at(place).wanted;
        self.unpost_from(place, wanted.kind(), wanted.hash())
    }

    #[inline(always)]
    fn unpost_from(&mut self, place: u32, kind: usize, hash: Hash) -> u32 {
        let request = std::mem::replace(&mut self.slots.at_mut(place).request, NONE);
        self.len -= 1;
        self.kinds[kind] -= 1;
        self.open -= usize::from(kind != 0);
        self.chains.remove(place, hash);
        request
    }

    /// Removes the receive of `request`, if it is still at its place. Returns true if it was.
    pub(super) fn withdraw(&mut self, place: u32, request: u32) -> bool {
        let there = self.slots.get(place).is_some_and(|posted| posted.request == request);
        if there {
            self.unpost(place);
        }
        there
    }
}
