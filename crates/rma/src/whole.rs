//! Accumulates on memory that this process sees, excluded from each other by [`crate::exclusion`]: with and without waiting.

use crate::Window;
use crate::accumulate::Packed;
use crate::choice::{self, Case, Sight, Way};
use crate::control::{self, Control};
use crate::exclusion::{self, Exclusion};
use crate::place::Words;
use crate::target::Access;
use std::pin::pin;
use std::sync::atomic::AtomicU64;
use std::task::Poll;
use weft_datatype::{Basic, Op};
use weft_fabric::{Fabric, Sge};
use weft_process::{Error, class};

/// The exclusion of a target whose words this process sees.
type Near<'w> = Exclusion<'w, AtomicU64>;

/// Looks for the end of single updates before others are let in: such an update takes some ten nanoseconds.
const LOOKS: usize = 100;

/// Tries for the exclusion before the queue: as long as a short operation of somebody else.
const TRIES: usize = 20;

#[cold]
fn held_soon(exclusion: &Near<'_>) -> bool {
    (0..TRIES).any(|_| {
        std::hint::spin_loop();
        exclusion.hold()
    })
}

/// Whether elements of this type have no gaps.
pub(crate) fn is_solid(basic: Basic) -> bool {
    basic.pair().is_none() && basic.size() == basic.extent()
}

impl<F: Fabric> Window<F> {
    /// `None`: this process does not see the target's control words.
    #[inline(always)]
    fn exclusion(&self, rank: usize) -> Option<Near<'_>> {
        let words = self.seen_words(rank)?;
        let line = &words[control::EXCLUSION..control::EXCLUSION + exclusion::WORDS];
        Some(Exclusion { line, target: rank, me: self.rank() })
    }

    #[inline(always)]
    fn is_announced(&self, exclusion: &Near<'_>) -> bool {
        exclusion.is_announced(self.shown.len(), |origin| {
            Some(&self.seen_words(origin)?[control::SINGLE])
        })
    }

    /// Whether this process alone may access a rank's memory now.
    #[inline(always)]
    pub(crate) fn is_alone(&self, rank: usize) -> bool {
        self.targets[rank].access.get() == Access::Exclusive
    }

    /// Runs `f`, which updates one word of a rank at once. False, and it was not run: somebody holds the exclusion.
    #[inline(always)]
    pub(crate) fn single(&self, rank: usize, f: impl FnOnce()) -> bool {
        let (Some(exclusion), Some(own)) = (self.exclusion(rank), self.seen_words(self.rank()))
        else {
            return false;
        };
        if !self.targets[rank].announces.replace(true) {
            exclusion.register();
        }
        let own = &own[control::SINGLE];
        let free = exclusion.announce(own);
        if free {
            f();
        }
        if let Some(holder) = exclusion.recall(own) {
            self.ring(holder);
        }
        free
    }

    /// Runs `f`, which changes elements of a rank, while nobody else does. False, and it was not run: others do now.
    #[inline(always)]
    fn try_whole(&self, rank: usize, f: impl FnOnce()) -> bool {
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
    fn falls_silent(&self, exclusion: &Near<'_>) -> bool {
        (0..LOOKS).any(|_| {
            std::hint::spin_loop();
            !self.is_announced(exclusion)
        })
    }

    #[inline(always)]
    fn give_back(&self, exclusion: &Near<'_>) {
        if let Some(first) = exclusion.give_back() {
            self.ring(first);
        }
    }

    /// Runs `f`, which changes elements of a rank, while nobody else does.
    pub(crate) async fn whole<R>(&self, rank: usize, f: impl FnOnce() -> R) -> Result<R, Error> {
        let Some(exclusion) = self.exclusion(rank) else {
            let text = "a rank's control words are not seen, although its memory is";
            return Err(self.wrong(class::INTERN, text));
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

    /// Waits until a look finds what it looks for, by the backoff of all waits; whoever changes that rings this rank's bell.
    async fn when(&self, mut look: impl FnMut() -> bool) -> Result<(), Error> {
        let mut never = pin!(self.endpoint().until_any(&[]));
        std::future::poll_fn(|cx| match look() {
            true => Poll::Ready(Ok(())),
            // Nothing but a fault ends this.
            false => never.as_mut().poll(cx).map_err(Error::from),
        })
        .await
    }

    /// Wakes a rank that may sleep in [`Window::when`].
    #[cold]
    fn ring(&self, rank: usize) {
        if rank == self.rank() {
            return self.comm().engine().wake_siblings();
        }
        if rank >= self.shown.len() {
            return;
        }
        let bell = Control::<F>::bell(self.shown[rank].control);
        let (fabric, nothing) = (self.endpoint().fabric(), Sge::EMPTY);
        // Who cannot be rung has ended: the fault is found by whoever waits for it.
        let _ = fabric.write_flag(self.peer(rank), nothing, bell.at, bell, 1, None);
    }

    /// An accumulate of elements without gaps on memory that is seen, in an epoch that is open: all there is to do.
    /// What was there goes to `former`. False: nothing was done, and [`Window::accumulate`] is to be called.
    #[inline]
    pub fn try_accumulate(
        &self,
        (op, basic): (Op, Basic),
        origin: Sge,
        former: Option<Sge>,
        (rank, disp, len): (usize, i64, usize),
    ) -> bool {
        let packed = Packed::Reduce { op, origin };
        packed.is_for(basic, len) && self.try_change(packed, basic, former, (rank, disp, len))
    }

    /// The same for MPI_Compare_and_swap of a word.
    #[inline]
    pub fn try_swap(
        &self,
        basic: Basic,
        (compare, new): (Sge, Sge),
        former: Sge,
        (rank, disp): (usize, i64),
    ) -> bool {
        let len = basic.size();
        self.try_change(Packed::Swap { compare, new }, basic, Some(former), (rank, disp, len))
    }

    #[inline(always)]
    fn try_change(
        &self,
        packed: Packed,
        basic: Basic,
        former: Option<Sge>,
        (rank, disp, len): (usize, i64, usize),
    ) -> bool {
        if len == 0 || !is_solid(basic) {
            return false;
        }
        let Some(memory) = self.seen(rank, disp, len) else { return false };
        let shown = &self.shown[rank];
        if shown.adapters || self.by_processors(shown.within) != Words::Processors {
            return false;
        }
        let case = Case {
            elements: len / basic.size(),
            solid: true,
            word: basic.is_word_at(memory.ptr()),
            adapter: false,
            sight: Sight::Seen,
            words: Words::Processors,
            alone: self.is_alone(rank),
        };
        let mut done = Ok(());
        let ran = match choice::way(&case) {
            Way::Single => {
                return self.single(rank, || packed.try_apply(basic, 0, memory, former));
            }
            Way::Whole => self.try_whole(rank, || done = packed.apply(basic, memory, former)),
            _ => {
                done = packed.apply(basic, memory, former);
                true
            }
        };
        ran && done.is_ok()
    }
}
