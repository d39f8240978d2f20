//! Waits for the exclusion of a target ([`super::exclusion`]) whose words this process sees: a rank tries a few times, then it
//! sleeps.

use super::Locks;
use super::exclusion::{self, TargetExclusion};
use crate::control::layout::{EXCLUSION, SINGLE};
use std::pin::pin;
use std::sync::atomic::AtomicU64;
use std::task::Poll;
use weft_fabric::Fabric;
use weft_process::{Error, class};

/// The exclusion of a target whose words this process sees.
type MappedExclusion<'w> = TargetExclusion<'w, AtomicU64>;

/// An announced update of one word, which must be recalled.
#[must_use]
pub struct AnnouncedUpdate<'w> {
    exclusion: MappedExclusion<'w>,
    own: &'w AtomicU64,
    /// True if the update may be done; false if there is a holder.
    pub free: bool,
}

/// Maximum number of polls for the end of other ranks' single updates. If single updates are still announced after these polls, the
/// exclusion is given back. A single update takes about ten nanoseconds.
const LOOKS: usize = 100;

/// Maximum number of tries before a waiter enters the queue. All tries together take about as long as a short operation of another
/// origin.
const TRIES: usize = 20;

#[cold]
fn held_soon(exclusion: &MappedExclusion<'_>) -> bool {
    (0..TRIES).any(|_| {
        std::hint::spin_loop();
        exclusion.hold()
    })
}

impl<F: Fabric> Locks<F> {
    /// Returns the exclusion of a rank. Returns `None` if this process does not see the rank's control words.
    #[inline(always)]
    fn exclusion(&self, rank: usize) -> Option<MappedExclusion<'_>> {
        let words = self.control.seen(rank)?;
        let line = &words[EXCLUSION..EXCLUSION + exclusion::WORDS];
        Some(TargetExclusion { line, target: rank, me: self.control.rank() })
    }

    #[inline(always)]
    fn is_announced(&self, exclusion: &MappedExclusion<'_>) -> bool {
        exclusion
            .is_announced(self.control.size(), |origin| Some(&self.control.seen(origin)?[SINGLE]))
    }

    /// Announces that the processor is about to update one word of a rank atomically. Returns `None` if this process does not see
    /// the control words.
    #[inline(always)]
    pub fn announce(&self, rank: usize) -> Option<AnnouncedUpdate<'_>> {
        let exclusion = self.exclusion(rank)?;
        let own = &self.control.seen(exclusion.me)?[SINGLE];
        if !self.ranks[rank].announces.replace(true) {
            exclusion.register();
        }
        let free = exclusion.announce(own);
        Some(AnnouncedUpdate { exclusion, own, free })
    }

    /// Recalls the announcement of an update that was done, or that must not be done. Returns true if there was no holder when the
    /// update was announced.
    #[inline(always)]
    pub fn recall(&self, announced: AnnouncedUpdate<'_>) -> bool {
        if let Some(holder) = announced.exclusion.recall(announced.own) {
            self.ring(holder);
        }
        announced.free
    }

    /// Runs `f`, which changes elements of a rank, under the exclusion. Returns false, without running `f`, if other origins update
    /// elements of the rank.
    #[inline(always)]
    pub fn try_whole(&self, rank: usize, f: impl FnOnce()) -> bool {
        let Some(exclusion) = self.exclusion(rank) else { return false };
        if !exclusion.hold() && !held_soon(&exclusion) {
            return false;
        }
        let free = !self.is_announced(&exclusion) || self.falls_silent(&exclusion);
        if free {
            f();
        }
        self.give_back(&exclusion);
        free
    }

    #[cold]
    fn falls_silent(&self, exclusion: &MappedExclusion<'_>) -> bool {
        (0..LOOKS).any(|_| {
            std::hint::spin_loop();
            !self.is_announced(exclusion)
        })
    }

    #[inline(always)]
    fn give_back(&self, exclusion: &MappedExclusion<'_>) {
        if let Some(first) = exclusion.give_back() {
            self.ring(first);
        }
    }

    /// Runs `f`, which changes elements of a rank, under the exclusion.
    pub async fn whole<R>(&self, rank: usize, f: impl FnOnce() -> R) -> Result<R, Error> {
        let Some(exclusion) = self.exclusion(rank) else {
            let text = "a rank's control words are not seen, although its memory is";
            return Err(Error::new(class::INTERN, text));
        };
        if !exclusion.hold() {
            let first = async {
                exclusion.come_first();
                let mut tried = 0;
                let taken = self.when(|| {
                    tried += 1;
                    exclusion.hold_first(tried)
                });
                taken.await.inspect_err(|_| exclusion.leave())
            };
            self.guarded(rank, first).await?;
        }
        let silent = self.when(|| !self.is_announced(&exclusion)).await;
        let result = silent.map(|()| f());
        self.give_back(&exclusion);
        result
    }

    /// Waits until `look` returns true, with the backoff that all waits have. A rank that changes the state rings this rank's bell.
    async fn when(&self, mut look: impl FnMut() -> bool) -> Result<(), Error> {
        let mut never = pin!(self.core.endpoint().until_any(&[]));
        std::future::poll_fn(|cx| match look() {
            true => Poll::Ready(Ok(())),
            // Only a fault ends this future.
            false => never.as_mut().poll(cx).map_err(Error::from),
        })
        .await
    }
}
