//! Collective access in two phases (ROMIO's collective buffering): ranks exchange their pieces with a few aggregators, each of
//! which reads or writes a contiguous part of the file, its file domain, in large steps.
//!
//! ```text
//!   all       exchange the extents of their parts and the measured costs of both methods; all choose the same method, by the
//!             costs or to try a method again
//!             in two phases: all compute the same file domains, aligned to stripes or blocks, and the same rounds
//!   a round   rank ── head: pieces as runs ──▶ aggregator of each window that the rank's extent touches
//!             write:  rank ── data ──▶ aggregator: a thread writes the window, while the next round is exchanged
//!                     rank ◀── result
//!             read:   aggregator: a thread reads the window, in the same way; rank ◀── result and data
//! ```
//! An aggregator sends no messages to itself. The pieces of a view are in the order of the file, so a rank's pieces in a window are
//! one contiguous part of its data. The data are sent without a copy.

mod aggregator_messages;
mod collective_read;
mod collective_write;
mod coverage;
mod file_domains;

use crate::access_direction::AccessDirection;
use crate::access_extent::AccessExtent;
use crate::access_policy::Synchronism;
use crate::adaptive_cost::{AccessMethod, MethodChoice};
use crate::byte_range::ByteRange;
use crate::failure::{FileAction, FileFailure};
use crate::file_access::FileAccess;
use crate::file_costs::Aggregation;
use crate::hints::{CollectiveBuffering, Sieving};
use crate::open_file::OpenFile;
use crate::storage::Storage;
use crate::storage::disk::FileSystemKind;
use crate::strided_runs::StridedRuns;
use aggregator_messages::{AggregatorMessages, WindowPart};
use file_domains::FileDomains;
use std::time::Instant;
use weft_fabric::arithmetic::in_usual_arithmetic;
use weft_fabric::{Fabric, Sge};
use weft_process::{Comm, Error};

/// One rank's side of an access in two phases.
struct TwoPhaseAccess<'a, F: Fabric> {
    open: &'a OpenFile<F>,
    messages: AggregatorMessages<'a, F>,
    synchronism: Synchronism,
    access: &'a FileAccess,
    /// This rank's data, in the file's representation.
    data: Sge,
    /// Extents of all ranks.
    extents: Vec<AccessExtent>,
    domains: FileDomains,
}

/// A rank's pieces in a window of this aggregator.
struct Contribution {
    rank: usize,
    runs: StridedRuns,
    /// The data, if the pieces are this rank's own.
    own: Option<Sge>,
}

impl<F: Fabric> TwoPhaseAccess<'_, F> {
    /// Returns this rank's part of a window.
    fn part(&self, window: ByteRange) -> Option<WindowPart> {
        let mine = self.extents[self.messages.rank()];
        if !mine.touches(window) {
            return None;
        }
        let FileAccess { view, from, len, .. } = self.access;
        let at = |offset| view.stream_offset(offset).clamp(*from, from + len);
        let (start, end) = (at(window.first), at(window.end));
        let data = self.data.part((start - from) as usize, (end - start) as usize);
        Some(WindowPart { runs: view.runs(start, end - start), data })
    }

    /// Receives the pieces of all ranks in a window that this rank aggregates. Ranks without data in the window are left out.
    async fn contributions(&self, window: ByteRange) -> Result<Vec<Contribution>, Error> {
        let me = self.messages.rank();
        let may_contribute = |&rank: &usize| rank != me && self.extents[rank].touches(window);
        let from: Vec<usize> = (0..self.extents.len()).filter(may_contribute).collect();
        let heads = self.messages.receive_heads(&from).await?;
        let foreign =
            from.into_iter().zip(heads).map(|(rank, runs)| Contribution { rank, runs, own: None });
        let mut all: Vec<Contribution> = foreign.collect();
        all.extend(self.part(window).map(|part| {
            let WindowPart { runs, data } = part;
            Contribution { rank: me, runs, own: Some(data) }
        }));
        all.retain(|contribution| contribution.runs.bytes() > 0);
        all.sort_unstable_by_key(|contribution| contribution.rank);
        Ok(all)
    }

    /// Returns the synchronism of reads and writes of windows. If there are several windows, the accesses are nonblocking, so that
    /// the next window is exchanged meanwhile.
    fn window_synchronism(&self) -> Synchronism {
        match self.domains.rounds() {
            0 | 1 => self.synchronism,
            _ => Synchronism::Nonblocking,
        }
    }
}

/// Returns the range of all pieces in a window.
fn hull<'a>(all: impl Iterator<Item = &'a StridedRuns>) -> Option<ByteRange> {
    ByteRange::hull(all.filter_map(StridedRuns::bounds))
}

/// Number of bytes moved, or the failure of some of this rank's data. A read stops at the end of the file.
pub type AccessResult = Result<u64, FileFailure>;

/// Chooses the method of a collective access, which is the same on all ranks. Returns the method, and its cost by the model.
/// `sieving`: use of data sieving by ranks that move their own data.
fn choose_method<F: Fabric>(
    open: &OpenFile<F>,
    direction: AccessDirection,
    sieving: Sieving,
    extents: &[AccessExtent],
    choice: &MethodChoice,
) -> (AccessMethod, f64) {
    let hints = open.hints.get();
    let costs = open.costs;
    in_usual_arithmetic(|| {
        let independent = costs.independent_cost(direction, extents, sieving);
        let aggregators = open.aggregators().len() as u64;
        let aggregation = Aggregation { aggregators, step: hints.cb_buffer_size as u64 };
        let two_phase = costs.two_phase_cost(direction, extents, aggregation);
        let method = match hints.collective_buffering(direction) {
            CollectiveBuffering::On => AccessMethod::Combined,
            _ => choice.method(independent, two_phase),
        };
        (method, [independent, two_phase][method as usize])
    })
}

/// Properties of one collective access that all ranks share.
pub struct CollectiveAccess<'a, F: Fabric> {
    /// The file's communicator, or the communicator's context for operations in the background.
    pub comm: &'a Comm<F>,
    /// Number of the operation.
    pub number: u32,
    /// Distinction between a blocking and a nonblocking access.
    pub synchronism: Synchronism,
}

/// Values of a rank from which all ranks choose a method.
struct RankFacts {
    extent: AccessExtent,
    choice: [u64; MethodChoice::WORDS],
    sieves: bool,
}

impl RankFacts {
    const WORDS: usize = AccessExtent::WORDS + MethodChoice::WORDS + 1;

    fn words(&self) -> [u64; RankFacts::WORDS] {
        let [first, end, bytes, pieces] = self.extent.words();
        let [factors, try_ratios] = self.choice;
        [first, end, bytes, pieces, factors, try_ratios, u64::from(self.sieves)]
    }

    fn from_words(words: [u64; RankFacts::WORDS]) -> RankFacts {
        let [first, end, bytes, pieces, factors, try_ratios, sieves] = words;
        let extent = AccessExtent::from_words([first, end, bytes, pieces]);
        RankFacts { extent, choice: [factors, try_ratios], sieves: sieves == 1 }
    }
}

/// Moves a rank's data together with the data of all other ranks.
pub async fn run<F: Fabric>(
    open: &OpenFile<F>,
    collective: &CollectiveAccess<'_, F>,
    access: &FileAccess,
    data: Sge,
) -> Result<AccessResult, Error> {
    let (direction, synchronism) = (access.direction, collective.synchronism);
    if open.is_collective_independent(direction) {
        return access.move_contiguous(open, data, synchronism).await;
    }
    let measured = open.collective.adaptive_cost(direction);
    // If ranks share processors, they wait for each other by chance, so measurements are useless.
    // In simulated time measurements are those of another machine.
    let engine = open.comm.engine();
    let simulated = engine.endpoint().fabric().facets().simulated.is_some();
    let learns = engine.policy().fits() && !simulated;
    let choice = if learns { measured.choice() } else { MethodChoice::MODEL };
    // All ranks have to agree: hosts may see a file system as different kinds, and the ranks' permissions may differ.
    let sieves = open.access_policy(direction).sieving != Sieving::Off;
    let own = RankFacts { extent: access.extent(), choice: choice.words(), sieves };
    let all = weft_rma::gather(collective.comm, own.words()).await?;
    let all: Vec<RankFacts> = all.into_iter().map(RankFacts::from_words).collect();
    let choice = MethodChoice::of_all(all.iter().map(|facts| facts.choice));
    let all_sieve = all.iter().all(|facts| facts.sieves);
    let sieving = if all_sieve { Sieving::Auto } else { Sieving::Off };
    let extents: Vec<AccessExtent> = all.into_iter().map(|facts| facts.extent).collect();
    let (method, cost) = choose_method(open, direction, sieving, &extents, &choice);
    // The measured time begins when all ranks have called the access.
    let begin = Instant::now();
    let moved = match method {
        AccessMethod::Separate => access.move_contiguous(open, data, synchronism).await?,
        AccessMethod::Combined => in_two_phases(open, collective, access, data, extents).await?,
    };
    // The time of a nonblocking access is not measured, because it includes the time in which the program computes.
    if learns && synchronism == Synchronism::Blocking && moved.is_ok() {
        measured.note(method, cost, begin.elapsed());
    }
    Ok(moved)
}

async fn in_two_phases<F: Fabric>(
    open: &OpenFile<F>,
    collective: &CollectiveAccess<'_, F>,
    access: &FileAccess,
    data: Sge,
    extents: Vec<AccessExtent>,
) -> Result<AccessResult, Error> {
    let step = open.hints.get().cb_buffer_size as u64;
    let Some(domains) = FileDomains::new(&extents, open.aggregators(), open.alignment(), step)
    else {
        return Ok(Ok(0));
    };
    // Aggregators on other hosts read and write for this rank. They revalidate their caches with each window.
    let published = on_host_cache(open, publish).await?;
    let messages = AggregatorMessages::new(&open.comm, &open.byte, collective.number);
    let synchronism = collective.synchronism;
    let side = TwoPhaseAccess { open, messages, synchronism, access, data, extents, domains };
    let moved = match access.direction {
        AccessDirection::Write => {
            let moved = collective_write::run(&side).await?;
            // This rank must see the data that aggregators on other hosts have written for it.
            let revalidate = |storage: &dyn Storage, kind: FileSystemKind| {
                kind.revalidate(storage);
                Ok(())
            };
            let _ = on_host_cache(open, revalidate).await?;
            moved
        }
        AccessDirection::Read => collective_read::run(&side).await?,
    };
    Ok(published.and(moved))
}

/// Runs `job` on a thread if the hosts have page caches of their own. Otherwise does nothing.
async fn on_host_cache<F: Fabric>(
    open: &OpenFile<F>,
    job: fn(&dyn Storage, FileSystemKind) -> Result<(), FileFailure>,
) -> Result<Result<(), FileFailure>, Error> {
    if !open.has_host_caches() {
        return Ok(Ok(()));
    }
    let (storage, kind) = (open.storage.clone(), open.kind());
    open.pool.run(move || job(&*storage, kind)).await
}

fn publish(storage: &dyn Storage, kind: FileSystemKind) -> Result<(), FileFailure> {
    kind.publish(storage).map_err(|error| FileFailure::new(FileAction::Sync, &error, 0, 0))
}
