//! Collective writes: data come together at aggregators, and a window is written while the next one is exchanged.

use super::coverage::covers;
use super::message::Post;
use super::{Moved, Side, handed_over};
use crate::bytes::Memory;
use crate::core::Direction;
use crate::failure::Failure;
use crate::pool::Started;
use crate::storage::disk::Kind;
use crate::storage::{Guard, Storage, guarded_anyhow, read_whole, with_gaps, write_whole};
use crate::strided_copy::spread;
use crate::strided_runs::StridedRuns;
use crate::transfer::{self, Manner, Sieving};
use std::sync::Arc;
use weft_fabric::{Fabric, Staging};
use weft_process::Error;

/// What one rank has in a window.
struct Piece {
    runs: StridedRuns,
    /// `None`: they lie in the window's buffer already.
    data: Option<Memory>,
}

/// A window that is written, with all that the writing thread reads.
struct Write {
    storage: Arc<dyn Storage>,
    pieces: Vec<Piece>,
    first: u64,
    buffer: Memory,
    how: How,
    manner: Manner,
}

/// How a window is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// No byte of it is left out.
    Whole,
    /// It is read, changed and written.
    Sieved,
    /// The pieces of each rank by themselves.
    Apart,
}

impl How {
    fn of(pieces: &[StridedRuns], bounds: (u64, u64), manner: &Manner) -> How {
        let Manner { sieving, costs, guard, .. } = manner;
        if covers(pieces, bounds) {
            return How::Whole;
        }
        let all = |f: fn(&StridedRuns) -> u64| pieces.iter().map(f).sum();
        let apart = costs.writes(all(StridedRuns::pieces), all(StridedRuns::bytes));
        let sieved = costs.write_sieved(bounds.1 - bounds.0) < apart;
        match sieving {
            // A gapless view needs no guard, as nobody reads and writes back.
            _ if *guard == Guard::Free => How::Apart,
            Sieving::Off => How::Apart,
            _ if sieved => How::Sieved,
            _ => How::Apart,
        }
    }
}

impl Write {
    /// Writes the window; the failure of each rank, in the order of the pieces.
    fn run(self) -> Vec<Option<Failure>> {
        let whole = match self.how {
            How::Apart => Ok(false),
            How::Whole => self.write_whole().map(|()| true),
            How::Sieved => self.change(),
        };
        let failure = match whole {
            Ok(true) => None,
            // The pieces were kept where they came.
            Ok(false) => return self.pieces.iter().map(|piece| self.write_apart(piece)).collect(),
            Err(failure) => Some(failure),
        };
        // What lies before the place of a failure has been written.
        let concerns = |piece: &Piece, failure: Failure| {
            piece.runs.bounds().is_some_and(|(_, end)| end > failure.offset)
        };
        let each = |piece| failure.filter(|&failure| concerns(piece, failure));
        self.pieces.iter().map(each).collect()
    }

    /// The same; ranks of other hosts find what is written, or hear that it is lost.
    fn run_for_others(self, kind: Kind) -> Vec<Option<Failure>> {
        let storage = self.storage.clone();
        let each = self.run();
        let lost = handed_over(&*storage, kind).err();
        each.into_iter().map(|failure| failure.or(lost)).collect()
    }

    fn range(&self) -> (u64, u64) {
        (self.first, self.buffer.len() as u64)
    }

    fn write_whole(&self) -> Result<(), Failure> {
        self.buffer.write(|buffer| self.fill(buffer));
        let write = || self.buffer.read(|buffer| write_whole(&*self.storage, self.first, buffer));
        guarded_anyhow(&*self.storage, self.manner.guard, self.range(), write)
    }

    /// Reads the window, changes it and writes it back. Returns false and does nothing if another writer may be in its gaps.
    fn change(&self) -> Result<bool, Failure> {
        let storage = &*self.storage;
        let done = with_gaps(storage, self.manner.guard, self.range(), || {
            self.buffer.write(|buffer| {
                let had = read_whole(storage, self.first, buffer)?;
                buffer[had..].fill(0);
                self.fill(buffer);
                write_whole(storage, self.first, buffer)
            })
        })?;
        Ok(done.is_some())
    }

    fn fill(&self, buffer: &mut [u8]) {
        for piece in &self.pieces {
            if let Some(data) = piece.data {
                data.read(|data| spread(piece.runs.list(), self.first, data, buffer));
            }
        }
    }

    fn write_apart(&self, piece: &Piece) -> Option<Failure> {
        let data = piece.data?;
        transfer::write(&*self.storage, &piece.runs, data, &self.manner).err()
    }
}

/// A window under way to the file.
struct Writing {
    job: Started<Vec<Option<Failure>>>,
    ranks: Vec<usize>,
    /// What the thread reads.
    _kept: (Staging, Vec<Staging>),
}

pub async fn run<F: Fabric>(side: &Side<'_, F>) -> Result<Moved, Error> {
    let mut under_way = None;
    let done = all_rounds(side, &mut under_way).await;
    // Whatever went wrong: its thread reads data that are the program's again after this.
    if let Some(left) = under_way {
        side.core.pool.end(left.job).await?;
    }
    done
}

async fn all_rounds<F: Fabric>(
    side: &Side<'_, F>,
    under_way: &mut Option<Writing>,
) -> Result<Moved, Error> {
    let line = &side.line;
    let (mut sends, mut fates, mut own) = (Vec::new(), Vec::new(), None);
    for round in 0..side.domains.rounds() {
        let mut mine = None;
        for (aggregator, window) in side.domains.windows(round) {
            if aggregator == line.rank() {
                mine = Some(window);
                continue;
            }
            let Some(part) = side.part(window) else { continue };
            line.send_head(aggregator, &part.runs, &mut sends);
            if part.runs.bytes() > 0 {
                sends.push(line.send_data(aggregator, part.data));
                fates.push(line.receive_fate(aggregator));
            }
        }
        if let Some(window) = mine {
            let next = collect(side, window).await?;
            if let Some(before) = std::mem::replace(under_way, next) {
                end(side, before, (&mut sends, &mut own)).await?;
            }
        }
    }
    if let Some(last) = under_way.take() {
        end(side, last, (&mut sends, &mut own)).await?;
    }
    line.end_all(sends).await?;
    let mut outcome = own.map_or(Ok(side.operation.len), Err);
    for fate in fates {
        if let (Some(failure), _) = line.end_fate(fate).await? {
            outcome = outcome.and(Err(failure));
        }
    }
    Ok(outcome)
}

/// Receives the pieces of a window, and has a thread write it.
async fn collect<F: Fabric>(
    side: &Side<'_, F>,
    window: (u64, u64),
) -> Result<Option<Writing>, Error> {
    let Side { core, line, .. } = side;
    let mut ranks = Vec::new();
    let (mut runs, mut own) = (Vec::new(), Vec::new());
    for (rank, theirs, data) in side.wanted(window).await? {
        ranks.push(rank);
        runs.push(theirs);
        own.push(data);
    }
    let hulls = || runs.iter().filter_map(StridedRuns::bounds);
    let (Some(first), Some(end)) = (hulls().map(|h| h.0).min(), hulls().map(|h| h.1).max()) else {
        return Ok(None);
    };
    let manner = core.manner(Direction::Write);
    let count: u64 = runs.iter().map(StridedRuns::pieces).sum();
    let how = How::of(&runs, (first, end), &manner);
    let buffer = line.stage(if how == How::Apart { 0 } else { (end - first) as usize });
    let (mut posts, mut pieces, mut direct) = (Vec::new(), Vec::new(), Vec::new());
    for ((&rank, runs), own) in ranks.iter().zip(runs).zip(own) {
        if let Some(data) = own {
            // The data of who writes stay as they are until the access is over.
            pieces.push(Piece { runs, data: Some(data.into()) });
            continue;
        }
        let len = runs.bytes() as usize;
        // Ranks whose places overlap may each come last in any order, but two receives do not write one place at once.
        let in_place = how == How::Whole && runs.pieces() == 1 && is_free(&direct, &runs);
        if in_place {
            let at = (runs.list()[0].offset - first) as usize;
            posts.push(line.receive_data(rank, buffer.sge().part(at, len), None));
            direct.extend(runs.bounds());
            pieces.push(Piece { runs, data: None });
        } else {
            let staging = line.stage(len);
            pieces.push(Piece { runs, data: Some(staging.sge().into()) });
            posts.push(line.receive_data(rank, staging.sge(), Some(staging)));
        }
    }
    let kept = received(side, posts).await?;
    let storage = core.storage.clone();
    let write = Write { storage, pieces, first, buffer: buffer.sge().into(), how, manner };
    let costs = &write.manner.costs;
    let calls = if how == How::Apart { count } else { 1 };
    let cost = costs.writes(calls, end - first) + count as f64 * costs.piece;
    // With further windows a thread writes while they are exchanged.
    let beside = side.beside || side.domains.rounds() > 1;
    let quick = (how != How::Sieved || !beside) && core.is_quick(cost, beside);
    let apart = core.is_kept_apart().then(|| core.kind());
    let job = core.pool.start(quick, move || match apart {
        None => write.run(),
        Some(kind) => write.run_for_others(kind),
    });
    Ok(Some(Writing { job, ranks, _kept: (buffer, kept) }))
}

fn is_free(taken: &[(u64, u64)], runs: &StridedRuns) -> bool {
    let Some((first, end)) = runs.bounds() else { return true };
    taken.iter().all(|&(from, to)| end <= from || to <= first)
}

async fn received<F: Fabric>(side: &Side<'_, F>, posts: Vec<Post>) -> Result<Vec<Staging>, Error> {
    let mut kept = Vec::new();
    for post in posts {
        kept.extend(side.line.end(post).await?);
    }
    Ok(kept)
}

/// Waits for a window to be written, and tells the ranks; the first failure of this rank's `own` data is kept.
async fn end<F: Fabric>(
    side: &Side<'_, F>,
    writing: Writing,
    (sends, own): (&mut Vec<Post>, &mut Option<Failure>),
) -> Result<(), Error> {
    let Writing { job, ranks, _kept } = writing;
    let failures = side.core.pool.end(job).await?;
    for (&rank, failure) in ranks.iter().zip(failures) {
        match rank == side.line.rank() {
            true => *own = own.or(failure),
            false => sends.push(side.line.send_fate(rank, failure, 0)),
        }
    }
    Ok(())
}
