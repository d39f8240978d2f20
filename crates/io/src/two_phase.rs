//! Collective access in two phases: ranks hand their pieces to a few aggregators, each of which reads or writes a part of the
//! file, its domain, in large steps.
//!
//! ```text
//!   all       hulls are gathered, and what either way was found to take; all choose the same way, by costs or to try it once more
//!             in phases: all find the same domains, aligned to stripes or blocks, and the same rounds
//!   a round   rank ── head: which pieces, as runs ──▶ aggregator of each window that the rank's bounds touches
//!             write:  rank ── data ──▶ aggregator: writes its window by a thread, while the next round is exchanged
//!                     rank ◀── what became of its data
//!             read:   aggregator: reads its window by a thread, likewise; rank ◀── what became of it, and the data
//! ```
//! What an aggregator has in its own window, it neither tells nor sends itself. A rank's pieces in a window are one part of its data, as the view's order is the file's: data are sent from where they lie.

mod coverage;
mod domains;
mod message;
mod reading;
mod writing;

use crate::bounds::Bounds;
use crate::core::{Core, Direction};
use crate::failure::{Act, Failure};
use crate::found::{Choice, Way as How};
use crate::hints::Buffering;
use crate::operation::Operation;
use crate::storage::Storage;
use crate::storage::disk::Kind;
use crate::strided_runs::StridedRuns;
use crate::transfer::Sieving;
use domains::Domains;
use message::{Line, Part};
use std::time::Instant;
use weft_fabric::arithmetic::in_usual_arithmetic;
use weft_fabric::{Fabric, Sge};
use weft_process::{Comm, Error};

/// One rank's side of a collective access.
struct Side<'a, F: Fabric> {
    core: &'a Core<F>,
    line: Line<'a, F>,
    /// Whether the program goes on meanwhile.
    beside: bool,
    operation: &'a Operation,
    /// This rank's data, as the file has them.
    data: Sge,
    hulls: Vec<Bounds>,
    domains: Domains,
}

impl<F: Fabric> Side<'_, F> {
    /// This rank's data in a window of the file.
    fn part(&self, window: (u64, u64)) -> Option<Part> {
        let mine = self.hulls[self.line.rank()];
        if !mine.touches(window) {
            return None;
        }
        let Operation { view, from, len, .. } = self.operation;
        let at = |offset| view.before(offset).clamp(*from, from + len);
        let (start, end) = (at(window.0), at(window.1));
        let data = self.data.part((start - from) as usize, (end - start) as usize);
        Some(Part { runs: view.runs(start, end - start), data })
    }

    /// Whose pieces may lie in a window.
    fn contributors(&self, window: (u64, u64)) -> Vec<usize> {
        (0..self.hulls.len()).filter(|&rank| self.hulls[rank].touches(window)).collect()
    }
}

/// Whose data, their places in the file, and where they are: of this rank's own.
type Wanted = (usize, StridedRuns, Option<Sge>);

impl<F: Fabric> Side<'_, F> {
    /// What all have in a window of this rank's, those aside who have nothing. This rank need not tell itself.
    async fn wanted(&self, window: (u64, u64)) -> Result<Vec<Wanted>, Error> {
        let me = self.line.rank();
        let mut from = self.contributors(window);
        from.retain(|&rank| rank != me);
        let heads = self.line.receive_heads(&from).await?;
        let mut all: Vec<Wanted> =
            from.into_iter().zip(heads).map(|(rank, runs)| (rank, runs, None)).collect();
        all.extend(self.part(window).map(|part| (me, part.runs, Some(part.data))));
        all.retain(|(_, runs, _)| runs.bytes() > 0);
        all.sort_unstable_by_key(|&(rank, ..)| rank);
        Ok(all)
    }
}

/// Bytes that were moved, of a read before the end of the file; or why some of this rank's own were not.
pub type Moved = Result<u64, Failure>;

/// Chooses the method of a collective access, with its cost by the model: [`How::Whole`] in two phases, else each rank for
/// itself, which may sieve if all ranks may. All ranks choose the same.
fn chosen<F: Fabric>(
    core: &Core<F>,
    (direction, sieving): (Direction, bool),
    hulls: &[Bounds],
    choice: &Choice,
) -> (How, f64) {
    let hints = core.hints.get();
    let asked = match direction {
        Direction::Read => hints.cb_read,
        Direction::Write => hints.cb_write,
    };
    let costs = core.costs;
    in_usual_arithmetic(|| {
        let alone = costs.alone(direction, hulls, sieving);
        let aggregators = core.aggregators().len() as u64;
        let phases = costs.phases(direction, hulls, aggregators, hints.cb_buffer_size as u64);
        let how = match asked {
            Buffering::On => How::Whole,
            _ => choice.way(alone, phases),
        };
        (how, [alone, phases][how as usize])
    })
}

/// How a collective access is under way.
pub struct Way<'a, F: Fabric> {
    /// The file's communicator, or the view of it for operations in the background.
    pub comm: &'a Comm<F>,
    /// The operation's number, the same on all ranks.
    pub number: u32,
    /// Others may run meanwhile, and the program.
    pub beside: bool,
}

/// Moves a rank's data together with all others'.
pub async fn run<F: Fabric>(
    core: &Core<F>,
    way: &Way<'_, F>,
    operation: &Operation,
    data: Sge,
) -> Result<Moved, Error> {
    if core.is_each_its_own(operation.direction) {
        return operation.moved(core, data, way.beside).await;
    }
    let found = &core.found[operation.direction as usize];
    let [first, end, bytes, pieces] = Bounds::of(operation).words();
    // Ranks that take turns on processors wait for each other by chance: that teaches nothing.
    let learns = core.comm.engine().policy().fits();
    let [factors, tried] = if learns { found.choice() } else { Choice::MODEL }.words();
    // All ranks have to agree: hosts may see a file system as different kinds, and the ranks' permissions may differ.
    let sieves = core.manner(operation.direction).sieving != Sieving::Off;
    let said = [first, end, bytes, pieces, factors, tried, u64::from(sieves)];
    let told = weft_rma::gather(way.comm, said).await?;
    let choice = Choice::of_all(told.iter().map(|&[.., factors, tried, _]| [factors, tried]));
    let all_sieve = told.iter().all(|&[.., sieves]| sieves == 1);
    let bounds =
        |[first, end, bytes, pieces, ..]: [u64; 7]| Bounds::from_words([first, end, bytes, pieces]);
    let hulls: Vec<Bounds> = told.into_iter().map(bounds).collect();
    let (how, cost) = chosen(core, (operation.direction, all_sieve), &hulls, &choice);
    // All are here.
    let begin = Instant::now();
    let moved = match how {
        How::Apart => operation.moved(core, data, way.beside).await?,
        How::Whole => in_phases(core, way, operation, (data, hulls)).await?,
    };
    // What goes on beside the program waits for it.
    if learns && !way.beside && moved.is_ok() {
        found.note(how, cost, begin.elapsed());
    }
    Ok(moved)
}

async fn in_phases<F: Fabric>(
    core: &Core<F>,
    way: &Way<'_, F>,
    operation: &Operation,
    (data, hulls): (Sge, Vec<Bounds>),
) -> Result<Moved, Error> {
    let hints = core.hints.get();
    let Some(domains) =
        Domains::new(&hulls, core.aggregators(), core.alignment(), hints.cb_buffer_size as u64)
    else {
        return Ok(Ok(0));
    };
    let handed = by_others(core, operation.direction, false).await?;
    let line = Line::new(&core.comm, &core.byte, way.number);
    let side = Side { core, line, beside: way.beside, operation, data, hulls, domains };
    let moved = match operation.direction {
        Direction::Write => writing::run(&side).await?,
        Direction::Read => reading::run(&side).await?,
    };
    by_others(core, operation.direction, true).await?.ok();
    Ok(handed.and(moved))
}

/// What a rank wrote, it reads, whoever moves its data: where hosts keep pages of their own, it hands over what it wrote alone before
/// others read or write in its place, and looks anew when they have written (`done`). An aggregator does its part with each window.
async fn by_others<F: Fabric>(
    core: &Core<F>,
    direction: Direction,
    done: bool,
) -> Result<Result<(), Failure>, Error> {
    if !core.is_kept_apart() || done && direction == Direction::Read {
        return Ok(Ok(()));
    }
    let (storage, kind) = (core.storage.clone(), core.kind());
    let work = move || match done {
        true => {
            kind.look_anew(&*storage);
            Ok(())
        }
        false => handed_over(&*storage, kind),
    };
    core.pool.run(false, work).await
}

fn handed_over(storage: &dyn Storage, kind: Kind) -> Result<(), Failure> {
    kind.hand_over(storage).map_err(|error| Failure::new(Act::Sync, &error, 0, 0))
}
