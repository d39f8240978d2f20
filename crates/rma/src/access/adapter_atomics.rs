//! Accumulates between nodes by the adapters' atomics: elements that are 8-byte integers.
//!
//! ```text
//!   SUM                fetch-add ──▶ former value                                       1 round trip
//!   NO_OP              fetch-add of 0 ──▶ value                                         1
//!   compare-and-swap   compare-swap ──▶ former value                                    1
//!   MAX, REPLACE, ...  fetch-add of 0 ──▶ v    compare-swap v, op(v) ──▶ v: done        2, or 1 if op(v) = v
//!                                                        ▲────────────── w: again with w
//!   several elements   the same, with at most [`UNDER_WAY`] elements under way at once; reads of whole runs guess v,
//!                      and an element is done only when a compare-swap has found its v
//! ```
//! Under the guard ([`super::accumulate`]) an operation takes 6 round trips, during which other origins wait. Here no origin waits.
//! Of the origins that swap the same word, one origin always succeeds.
//!
//! **One domain per element.** MPI requires this among accumulates of the same predefined type at the same place (MPI 5.0, section
//! 12.7.1). Every origin, including the target itself and the ranks on its node, uses the fabric, in which the adapter performs all
//! atomics on memory that several nodes access. The choice depends on facts that are the same for all origins: the target's
//! information ([`crate::memory::exposed::ExposedWindow::adapters`]), the element's type ([`is_for`]), and the element's address (a
//! multiple of 8). Operator, count and origin do not matter. All other elements are updated under the guard.
//!
//! Used in windows of MPI_Win_allocate whose ranks are on several nodes, if the rank's part is short ([`crate::options::SHORT`]) or
//! the program asks for adapters. The guard pays off if accumulates are long and origins rarely use the same target at once: the
//! guard updates n elements in 6 round trips, while adapters need n atomic operations. The length of later accumulates is unknown,
//! so the choice must not depend on it. On the simulated machine `ndr`, 1 element takes 2.3 us by adapters and 13.5 us under the
//! guard, and 64 elements take 8.6 us and 13.8 us. From about 120 elements on, the guard is faster.

use super::WindowAccess;
use crate::control::packed_change::{ElementChange, PackedChange};
use crate::core::exchange::named;
use crate::core::target_location::TargetLocation;
use crate::memory::target_address::TargetAddress;
use std::rc::Rc;
use weft_collective::words;
use weft_datatype::{Basic, PredefinedOp, Repr};
use weft_fabric::{
    CompareSwap, Completion, Counter, Fabric, FabricExt, Fault, FetchAdd, RemoteAddr, RemoteRead,
    Sge, Work,
};
use weft_p2p::Endpoint;
use weft_process::Error;

/// Size of a word, in bytes.
const WORD: usize = 8;
/// Maximum number of atomics under way. The simulated machines post about 20 in a round trip, so a larger limit changes nothing; an
/// adapter executes about 16 at a time.
const UNDER_WAY: u64 = 64;
/// Maximum number of bytes that are read at once before their words are swapped. In longer groups, other origins change more words
/// between the read and the swap. For a group of this size, two round trips are a tenth of the time.
const GROUP: usize = 512 * WORD;

/// Returns true if adapters update elements of this type, provided that the elements are aligned.
pub fn is_for(basic: Basic) -> bool {
    matches!(basic.repr(), Repr::I64 | Repr::U64 | Repr::Bool64)
}

/// Contiguous elements at the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdjacentElements {
    /// Offset from the start of the memory, in bytes.
    pub offset: i64,
    /// Offset among the packed bytes of all elements.
    pub skip: usize,
    /// Length in bytes, a multiple of 8.
    pub len: usize,
}

impl AdjacentElements {
    fn at(&self, base: RemoteAddr, skip: usize) -> RemoteAddr {
        base.offset(self.offset.wrapping_add(skip as i64) as u64)
    }

    /// Iterates over the words: the address of each word, and its offset among the packed bytes.
    fn words(self, base: RemoteAddr) -> impl Iterator<Item = (RemoteAddr, usize)> {
        (0..self.len).step_by(WORD).map(move |skip| (self.at(base, skip), self.skip + skip))
    }
}

/// Separates the runs whose elements are aligned from the other runs.
pub fn aligned(
    base: RemoteAddr,
    runs: impl Iterator<Item = AdjacentElements>,
) -> (Vec<AdjacentElements>, Vec<AdjacentElements>) {
    runs.partition(|run| run.at(base, 0).addr.is_multiple_of(WORD as u64))
}

/// Divides runs into groups of at most `most` bytes, a multiple of 8.
fn groups(runs: &[AdjacentElements], most: usize) -> Vec<Vec<AdjacentElements>> {
    let (mut groups, mut group, mut room) = (Vec::new(), Vec::new(), most);
    for &run in runs {
        let mut rest = run;
        while rest.len > 0 {
            let len = rest.len.min(room);
            group.push(AdjacentElements { len, ..rest });
            let offset = rest.offset + len as i64;
            rest = AdjacentElements { offset, skip: rest.skip + len, len: rest.len - len };
            room -= len;
            if room == 0 {
                groups.push(std::mem::take(&mut group));
                room = most;
            }
        }
    }
    groups.extend((!group.is_empty()).then_some(group));
    groups
}

fn word(at: Sge) -> u64 {
    words::read(at, 0)
}

/// Operations that are posted without waiting for each other.
struct Flow<'w, F: Fabric> {
    endpoint: &'w Rc<Endpoint<F>>,
    done: Counter,
    /// Value of the counter when all operations are complete.
    due: u64,
}

impl<'w, F: Fabric> Flow<'w, F> {
    fn new(endpoint: &'w Rc<Endpoint<F>>) -> Flow<'w, F> {
        let counters = endpoint.fabric().counters();
        let done = counters.allocate();
        Flow { endpoint, done, due: counters.value(done) }
    }

    /// Posts an operation, as soon as fewer than [`UNDER_WAY`] operations are under way.
    async fn post(
        &mut self,
        f: impl FnOnce(&F, Completion) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let fabric = self.endpoint.fabric();
        if self.due - fabric.counters().value(self.done) >= UNDER_WAY {
            self.endpoint.until(self.done, self.due + 1 - UNDER_WAY).await?;
        }
        f(fabric, Some(self.done))?;
        self.due += 1;
        Ok(())
    }

    async fn all(&self) -> Result<(), Fault> {
        self.endpoint.until(self.done, self.due).await
    }

    /// Frees the counter, when no operation is under way. Must not be called after a fault, because operations may still advance
    /// the counter.
    fn end(self) {
        self.endpoint.fabric().counters().free(self.done);
    }
}

/// A change of words of one process's memory.
pub struct WordChange {
    pub peer: usize,
    /// Address from which the offsets of runs count.
    pub base: RemoteAddr,
    pub change: ElementChange,
}

impl WordChange {
    /// Changes the words of `runs`, each atomically.
    pub async fn run<F: Fabric>(
        &self,
        endpoint: &Rc<Endpoint<F>>,
        runs: &[AdjacentElements],
    ) -> Result<(), Error> {
        let mut flow = Flow::new(endpoint);
        match self.change.packed {
            PackedChange::Reduce { op: PredefinedOp::NoOp, .. } => {
                self.add(&mut flow, runs, None).await?
            }
            PackedChange::Reduce { op: PredefinedOp::Sum, origin } => {
                self.add(&mut flow, runs, Some(origin)).await?;
            }
            PackedChange::Swap { compare, new } => self.swap(&mut flow, runs, compare, new).await?,
            PackedChange::Reduce { .. } => {
                for group in groups(runs, GROUP) {
                    self.reduce(&mut flow, &group).await?;
                }
            }
        }
        flow.end();
        Ok(())
    }

    fn words(&self, runs: &[AdjacentElements]) -> impl Iterator<Item = (RemoteAddr, usize)> {
        runs.iter().flat_map(|run| run.words(self.base))
    }

    /// Adds `origin` to the words; adds 0 if there is no origin.
    async fn add<F: Fabric>(
        &self,
        flow: &mut Flow<'_, F>,
        runs: &[AdjacentElements],
        origin: Option<Sge>,
    ) -> Result<(), Error> {
        // If no caller needs the former values, all of them land in one scratch word.
        let unasked = flow.endpoint.staging().take(WORD);
        for (at, skip) in self.words(runs) {
            let operand = origin.map_or(0, |origin| word(origin.part(skip, WORD)));
            let into = self.change.former.map_or(unasked.sge(), |former| former.part(skip, WORD));
            flow.post(|fabric, done| {
                fabric.fetch_add(self.peer, &FetchAdd { target: at, operand, result: into, done })
            })
            .await?;
        }
        Ok(flow.all().await?)
    }

    async fn swap<F: Fabric>(
        &self,
        flow: &mut Flow<'_, F>,
        runs: &[AdjacentElements],
        compare: Sge,
        new: Sge,
    ) -> Result<(), Error> {
        let (compare, new) = (word(compare), word(new));
        let into = self.change.former.expect("a swap says what was there");
        for (at, _) in self.words(runs) {
            flow.post(|fabric, done| {
                let swap = CompareSwap { target: at, compare, swap: new, result: into, done };
                fabric.compare_swap(self.peer, &swap)
            })
            .await?;
        }
        Ok(flow.all().await?)
    }

    /// Applies any operator to one group of words.
    async fn reduce<F: Fabric>(
        &self,
        flow: &mut Flow<'_, F>,
        group: &[AdjacentElements],
    ) -> Result<(), Error> {
        let words: Vec<_> = self.words(group).collect();
        let bytes = WORD * words.len();
        let pool = flow.endpoint.staging();
        let [before, after, found] = [0; 3].map(|_| pool.take(bytes));
        let of = |staging: &weft_fabric::Staging, i: usize| staging.sge().part(WORD * i, WORD);
        // A single word is read by an atomic. Several words are read by plain reads, which may return parts of different values of
        // a word.
        let mut sure = words.len() == 1;
        if sure {
            let (at, into) = (words[0].0, before.sge());
            flow.post(|fabric, done| {
                fabric
                    .fetch_add(self.peer, &FetchAdd { target: at, operand: 0, result: into, done })
            })
            .await?;
        } else {
            let mut next = 0;
            for run in group {
                let (at, into) = (run.at(self.base, 0), before.sge().part(next, run.len));
                flow.post(|fabric, done| fabric.read(self.peer, &RemoteRead::new(into, at, done)))
                    .await?;
                next += run.len;
            }
        }
        flow.all().await?;
        let mut left: Vec<usize> = (0..words.len()).collect();
        while !left.is_empty() {
            flow.endpoint.fabric().charge(Work::Reduce(WORD * left.len()));
            for &i in &left {
                let ((at, skip), after) = (words[i], of(&after, i));
                after.copy_from(of(&before, i));
                let ElementChange { basic, packed, .. } = self.change;
                packed.part(skip, WORD).apply(basic, after, None)?;
                let (old, new, into) = (word(of(&before, i)), word(after), of(&found, i));
                if sure && old == new {
                    into.copy_from(of(&before, i));
                    continue;
                }
                flow.post(|fabric, done| {
                    let (target, result) = (at, into);
                    let swap = CompareSwap { target, compare: old, swap: new, result, done };
                    fabric.compare_swap(self.peer, &swap)
                })
                .await?;
            }
            flow.all().await?;
            left.retain(|&i| {
                let failed = word(of(&found, i)) != word(of(&before, i));
                of(&before, i).copy_from(of(&found, i));
                failed
            });
            sure = true;
        }
        if let Some(former) = self.change.former {
            for (i, &(_, skip)) in words.iter().enumerate() {
                former.part(skip, WORD).copy_from(of(&before, i));
            }
        }
        Ok(())
    }
}

impl<F: Fabric> WindowAccess<F> {
    /// Changes elements of a type for which [`is_for`] is true, at a place whose words adapters update.
    pub(super) async fn change_by_adapters(
        &self,
        place: &TargetAddress,
        location: &TargetLocation<'_>,
        change: ElementChange,
    ) -> Result<(), Error> {
        let mut runs = smallvec::SmallVec::<[AdjacentElements; 1]>::new();
        let mut skip = 0;
        location.ty.runs(location.count, 0, location.len(), |offset, len| {
            runs.push(AdjacentElements { offset: place.offset.wrapping_add(offset), skip, len });
            skip += len;
        });
        let (words, others) = aligned(place.at, runs.into_iter());
        if words.is_empty() {
            let guarded = self.change_guarded(place, location, change);
            return self.locks.guarded(location.rank, guarded).await;
        }
        let of_words = WordChange { peer: place.peer, base: place.at, change };
        of_words.run(self.core.endpoint(), &words).await?;
        if others.is_empty() {
            return Ok(());
        }
        // An operation may have elements at both kinds of addresses, if its type has gaps whose length is not a multiple of 8.
        let ty = named(change.basic);
        let guarded = async {
            for AdjacentElements { offset, skip, len } in others {
                let (place, count) = (TargetAddress { offset, ..*place }, len / WORD);
                let location =
                    TargetLocation { rank: location.rank, disp: location.disp, count, ty: &ty };
                self.change_guarded(&place, &location, change.part(skip, len)).await?;
            }
            Ok(())
        };
        self.locks.guarded(location.rank, guarded).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_8_bytes_are_for_adapters() {
        let mut names: Vec<_> = Basic::all().filter(|&b| is_for(b)).map(Basic::name).collect();
        names.sort_unstable();
        let expected = [
            "MPI_AINT",
            "MPI_COUNT",
            "MPI_INT64_T",
            "MPI_INTEGER8",
            "MPI_LOGICAL8",
            "MPI_LONG",
            "MPI_LONG_LONG_INT",
            "MPI_OFFSET",
            "MPI_UINT64_T",
            "MPI_UNSIGNED_LONG",
            "MPI_UNSIGNED_LONG_LONG",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn alignment_is_that_of_the_address() {
        let base = RemoteAddr::new(1, 1004);
        let run = |offset: i64, skip| AdjacentElements { offset, skip, len: 8 };
        let runs = [run(0, 0), run(4, 8), run(12, 16), run(-3, 24)];
        let (words, others) = aligned(base, runs.into_iter());
        assert_eq!((words, others), (vec![runs[1], runs[2]], vec![runs[0], runs[3]]));
    }

    #[test]
    fn groups_hold_every_word_once() {
        let runs = [(0, 24), (100, 8), (200, 80), (400, 8)].map(|(offset, len)| (offset, len));
        let mut skip = 0;
        let runs = runs.map(|(offset, len)| {
            skip += len;
            AdjacentElements { offset, skip: skip - len, len }
        });
        let base = RemoteAddr::new(1, 0);
        let words = |runs: &[AdjacentElements]| -> Vec<_> {
            runs.iter().flat_map(|r| r.words(base)).collect()
        };
        for most in [8, 16, 32, 40, 1024] {
            let groups = groups(&runs, most);
            let sizes: Vec<usize> =
                groups.iter().map(|group| group.iter().map(|run| run.len).sum()).collect();
            let (last, full) = sizes.split_last().unwrap();
            assert!(full.iter().all(|&len| len == most) && (1..=most).contains(last), "{sizes:?}");
            assert_eq!(words(&groups.concat()), words(&runs));
        }
    }
}
