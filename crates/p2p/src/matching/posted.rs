//! Receives that wait for their message.

use super::chains::{Chains, Hash};
use crate::envelope::{Context, Tag};
use crate::slab::{NONE, Slab};

/// A posted receive; `rank` or `tag` of `None` match anything.
#[derive(Debug)]
struct Posted {
    wanted: Wanted,
    order: u64,
    request: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wanted {
    context: Context,
    rank: Option<u32>,
    tag: Option<Tag>,
}

impl Wanted {
    #[inline]
    fn hash(&self) -> Hash {
        let rank = self.rank.unwrap_or(u32::MAX);
        let tag = self.tag.map_or(u32::MAX, |tag| tag as u32);
        Hash::of(self.context.0, rank, tag)
    }

    /// Which of them are open.
    #[inline]
    fn kind(&self) -> usize {
        usize::from(self.rank.is_none()) | usize::from(self.tag.is_none()) << 1
    }
}

impl Default for Posted {
    fn default() -> Self {
        let wanted = Wanted { context: Context(0), rank: None, tag: None };
        Posted { wanted, order: 0, request: NONE }
    }
}

/// All of them: each in the chain of what it asks for, open ranks and tags as such. A message looks for the first of
/// each kind that there is, and takes the one that was posted first.
#[repr(C)]
pub(super) struct Receives {
    order: u64,
    /// How many there are of each kind.
    kinds: [usize; 4],
    slots: Slab<Posted>,
    chains: Chains,
}

impl Receives {
    pub(super) fn new() -> Receives {
        Receives { order: 0, kinds: [0; 4], slots: Slab::new(), chains: Chains::new() }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn most(&self) -> usize {
        self.slots.most()
    }

    pub(super) fn restart_most(&mut self) {
        self.slots.restart_most();
    }

    pub(super) fn passed(&self) -> u64 {
        self.chains.passed()
    }

    pub(super) fn count(&self, ours: impl Fn(Context) -> bool) -> usize {
        self.chains.all().filter(|&slot| ours(self.slots[slot].wanted.context)).count()
    }

    /// Adds a receive; its place, for [`Receives::withdraw`].
    #[inline(always)]
    pub(super) fn post(
        &mut self,
        context: Context,
        rank: Option<u32>,
        tag: Option<Tag>,
        request: u32,
    ) -> u32 {
        self.order += 1;
        let wanted = Wanted { context, rank, tag };
        let place = self.slots.take();
        self.slots[place] = Posted { wanted, order: self.order, request };
        self.kinds[wanted.kind()] += 1;
        let slots = &self.slots;
        self.chains.make_room(|slot| slots[slot].wanted.hash());
        self.chains.push(place, wanted.hash());
        place
    }

    /// Takes the receive that an arrived envelope matches out; its request. Allocates nothing.
    #[inline(always)]
    pub(super) fn take(&mut self, context: Context, rank: u32, tag: Tag) -> Option<u32> {
        if self.kinds[1] + self.kinds[2] + self.kinds[3] != 0 {
            let found = self.fitting(context, rank, tag)?;
            return Some(self.unpost(found));
        }
        let exact = Wanted { context, rank: Some(rank), tag: Some(tag) };
        let hash = exact.hash();
        let found = self.chains.find(hash, |slot| self.slots[slot].wanted == exact)?;
        Some(self.unpost_from(found, exact.kind(), hash))
    }

    #[inline]
    fn first(&self, wanted: Wanted) -> Option<u32> {
        self.chains.find(wanted.hash(), |slot| self.slots[slot].wanted == wanted)
    }

    /// The place of the receive that an arrived envelope matches.
    #[inline]
    pub(super) fn fitting(&self, context: Context, rank: u32, tag: Tag) -> Option<u32> {
        let exact = Wanted { context, rank: Some(rank), tag: Some(tag) };
        let first = self.first(exact);
        if self.kinds[1] + self.kinds[2] + self.kinds[3] == 0 {
            return first;
        }
        let any_rank = Wanted { rank: None, ..exact };
        let any_tag = Wanted { tag: None, ..exact };
        let anything = Wanted { rank: None, ..any_tag };
        let open = [any_rank, any_tag, anything].into_iter();
        let there = open.filter(|wanted| self.kinds[wanted.kind()] > 0);
        let found = first.into_iter().chain(there.filter_map(|wanted| self.first(wanted)));
        found.min_by_key(|&slot| self.slots[slot].order)
    }

    pub(super) fn request(&self, place: u32) -> u32 {
        self.slots[place].request
    }

    /// Takes a receive out; its request. Allocates nothing.
    #[inline]
    pub(super) fn unpost(&mut self, place: u32) -> u32 {
        let wanted = self.slots[place].wanted;
        self.unpost_from(place, wanted.kind(), wanted.hash())
    }

    #[inline(always)]
    fn unpost_from(&mut self, place: u32, kind: usize, hash: Hash) -> u32 {
        let request = std::mem::replace(&mut self.slots[place].request, NONE);
        self.kinds[kind] -= 1;
        self.chains.remove(place, hash);
        self.slots.give(place);
        request
    }

    /// Takes the receive of `request` out, if it is still at its place.
    pub(super) fn withdraw(&mut self, place: u32, request: u32) -> bool {
        let there = self.slots.get(place).is_some_and(|posted| posted.request == request);
        if there {
            self.unpost(place);
        }
        there
    }
}
