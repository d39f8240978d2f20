//! Moving data between memory and pieces of a file, by as few calls as pay: data sieving.

use crate::bytes::Memory;
use crate::core::Direction;
use crate::cost::Costs;
use crate::failure::Failure;
use crate::found::{Choice, Found, Way};
use crate::storage::{
    Guard, Storage, first_bytes, guarded_anyhow, read_whole, with_gaps, write_whole,
};
use crate::strided_copy::{gather, spread};
use crate::strided_runs::{StridedRun, StridedRuns};
use std::time::Instant;

/// Whether gaps may be moved, too (ROMIO's `romio_ds_read` and `romio_ds_write`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sieving {
    /// Where it is cheaper.
    #[default]
    Auto,
    /// Wherever the buffer is large enough.
    On,
    /// Never.
    Off,
}

/// How pieces are moved.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// Whether gaps are moved.
    pub sieving: Sieving,
    /// Bytes that are moved in one go, gaps included, at most.
    pub buffer: usize,
    /// What the file system costs.
    pub costs: Costs,
    /// Who else may write there meanwhile.
    pub guard: Guard,
}

/// Pieces that follow each other, their data, and the part of the file that has them.
#[derive(Default)]
struct Group {
    runs: Vec<StridedRun>,
    pieces: u64,
    bytes: u64,
}

impl Group {
    fn span(&self) -> (u64, u64) {
        match self.runs[..] {
            [] => (0, 0),
            [first, ..] => (first.offset, self.end() - first.offset),
        }
    }

    fn end(&self) -> u64 {
        self.runs.last().map_or(0, StridedRun::end)
    }

    fn push(&mut self, run: StridedRun) {
        self.runs.push(run);
        self.pieces += run.count;
        self.bytes += run.bytes();
    }
}

/// A group that is written by one call, with or without gaps.
struct InOneGo<'a> {
    runs: &'a [StridedRun],
    first: u64,
    data: Memory,
    scratch: &'a mut [u8],
}

impl Group {
    /// Combines the group with its data, and with room for its part of the file.
    fn whole<'a>(&'a self, (data, buffer): (Memory, &'a mut Vec<u8>)) -> InOneGo<'a> {
        let (first, span) = self.span();
        InOneGo { runs: &self.runs, first, data, scratch: first_bytes(buffer, span as usize) }
    }
}

impl InOneGo<'_> {
    fn fill(&mut self) {
        self.data.read(|data| spread(self.runs, self.first, data, self.scratch));
    }

    fn range(&self) -> (u64, u64) {
        (self.first, self.scratch.len() as u64)
    }

    /// Writes a group without gaps.
    fn write(mut self, storage: &dyn Storage, guard: Guard) -> Result<(), Failure> {
        self.fill();
        guarded_anyhow(storage, guard, self.range(), || {
            write_whole(storage, self.first, self.scratch)
        })
    }

    /// Reads the whole range, changes it and writes it back. Returns false and does nothing if another writer may be in the gaps.
    fn change(mut self, storage: &dyn Storage, guard: Guard) -> Result<bool, Failure> {
        let done = with_gaps(storage, guard, self.range(), || {
            let had = read_whole(storage, self.first, self.scratch)?;
            self.scratch[had..].fill(0);
            self.fill();
            write_whole(storage, self.first, self.scratch)
        })?;
        Ok(done.is_some())
    }
}

/// Calls `f` with groups of pieces whose gaps are at most `gap`, in order, each with its place in the data. Groups span at
/// most `most` bytes; a longer piece is one for itself.
fn grouped(
    runs: &StridedRuns,
    (gap, most): (u64, u64),
    mut f: impl FnMut(&Group, usize) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let mut group = Group::default();
    let mut at = 0;
    for run in runs.list() {
        let mut rest = *run;
        while rest.count > 0 {
            let mut first = rest.offset;
            if !group.runs.is_empty() {
                first = group.span().0;
                let fits = rest.offset + rest.len - first <= most;
                if !fits || rest.offset.saturating_sub(group.end()) > gap {
                    if !f(&group, at)? {
                        return Ok(());
                    }
                    at += group.bytes as usize;
                    group = Group { runs: group.runs, ..Group::default() };
                    group.runs.clear();
                    first = rest.offset;
                }
            }
            // As many of a run's pieces as fit, too.
            let room = most.saturating_sub(rest.offset + rest.len - first) / rest.stride;
            let more = if rest.stride - rest.len > gap { 0 } else { room };
            let some = rest.count.min(1 + more);
            group.push(StridedRun { count: some, ..rest });
            rest.offset += some * rest.stride;
            rest.count -= some;
        }
    }
    if !group.runs.is_empty() {
        f(&group, at)?;
    }
    Ok(())
}

impl Manner {
    /// What is chosen by. The model alone decides where the program has said what it wants, and where other ranks write, too: there
    /// each time depends on what they have chosen, and ranks that learn from each other's waits end in a bad mixture.
    fn choice(&self, (found, direction): (&Found, Direction)) -> Choice {
        let beside_others = direction == Direction::Write && self.guard == Guard::Ranks;
        match self.sieving {
            Sieving::Auto if !beside_others => found.choice(),
            _ => Choice::MODEL,
        }
    }

    fn gap(&self, choice: &Choice, usual: u64) -> u64 {
        match self.sieving {
            Sieving::Auto => choice.gap(usual),
            Sieving::On => u64::MAX,
            Sieving::Off => 0,
        }
    }

    /// How a group is moved.
    fn way(&self, choice: &Choice, group: &Group, (apart, whole): (f64, f64)) -> Way {
        match self.sieving {
            _ if group.pieces == 1 => Way::Apart,
            Sieving::On => Way::Whole,
            _ => choice.way(apart, whole + group.pieces as f64 * self.costs.piece),
        }
    }
}

/// A piece of more bytes takes as long as its copy does, which teaches nothing about calls.
const LONG: u64 = 64 << 10;

/// Does `move_them`, and notes what it took if pieces are short enough.
fn timed<T>(
    found: &Found,
    (way, cost): (Way, f64),
    (pieces, bytes): (u64, u64),
    move_them: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    if pieces < 2 || bytes / pieces > LONG {
        return move_them();
    }
    let begin = Instant::now();
    let value = move_them()?;
    found.note(way, cost, begin.elapsed());
    Ok(value)
}

/// Pieces to be written by themselves, under one guard.
#[derive(Default)]
struct Singles {
    places: Vec<(u64, u64)>,
    bytes: u64,
    /// Where their data begin.
    from: usize,
}

impl Singles {
    fn push(&mut self, group: &Group, at: usize) {
        if self.places.is_empty() {
            self.from = at;
        }
        self.places.extend(group.runs.iter().flat_map(StridedRun::places));
        self.bytes += group.bytes;
    }

    fn write(
        &mut self,
        (storage, found): (&dyn Storage, &Found),
        data: Memory,
        manner: &Manner,
    ) -> Result<(), Failure> {
        let Singles { places, bytes, from } = std::mem::take(self);
        if places.is_empty() {
            return Ok(());
        }
        let data = data.part(from, bytes as usize);
        let size = (places.len() as u64, bytes);
        let cost = manner.costs.writes(size.0, size.1);
        timed(found, (Way::Apart, cost), size, || one_by_one(storage, &places, data, manner.guard))
    }
}

/// Writes `data` to the pieces. Errors say where it stopped; what lies before is written.
pub fn write(
    storage: &dyn Storage,
    runs: &StridedRuns,
    data: Memory,
    manner: &Manner,
) -> Result<(), Failure> {
    let (costs, kept) = (&manner.costs, storage.kept());
    let found = &kept.found[1];
    let choice = manner.choice((found, Direction::Write));
    let limits = (manner.gap(&choice, costs.gap_to_write()), manner.buffer as u64);
    let mut singles = Singles::default();
    // False as soon as another opening is seen, which may write in the gaps.
    let mut alone = true;
    kept.with_buffer(|buffer| {
        grouped(runs, limits, |group, at| {
            let (_, span) = group.span();
            let (apart, whole) =
                (costs.writes(group.pieces, group.bytes), costs.write_sieved(span));
            let full = span == group.bytes && group.pieces > 1;
            let sieved = alone && manner.way(&choice, group, (apart, whole)) == Way::Whole;
            if !full && !sieved {
                singles.push(group, at);
                return Ok(true);
            }
            singles.write((storage, found), data, manner)?;
            let piece = Group::whole(group, (data.part(at, group.bytes as usize), buffer));
            if full {
                piece.write(storage, manner.guard)?;
                return Ok(true);
            }
            let begin = Instant::now();
            alone = piece.change(storage, manner.guard)?;
            match alone {
                true if group.bytes / group.pieces <= LONG => {
                    let cost = whole + group.pieces as f64 * costs.piece;
                    found.note(Way::Whole, cost, begin.elapsed());
                }
                true => {}
                false => singles.push(group, at),
            }
            Ok(true)
        })
    })?;
    singles.write((storage, found), data, manner)
}

/// Writes pieces by themselves, while nobody writes back what lies around them.
fn one_by_one(
    storage: &dyn Storage,
    pieces: &[(u64, u64)],
    data: Memory,
    guard: Guard,
) -> Result<(), Failure> {
    let (first, (last, len)) = (pieces[0].0, pieces[pieces.len() - 1]);
    let range = (first, last + len - first);
    let go = || {
        let mut at = 0;
        for &(offset, len) in pieces {
            let len = len as usize;
            data.part(at, len).read(|piece| write_whole(storage, offset, piece))?;
            at += len;
        }
        Ok(())
    };
    guarded_anyhow(storage, guard, range, go)
}

/// Reads the pieces to `data`; how many bytes of it came before the end of the file.
pub fn read(
    storage: &dyn Storage,
    runs: &StridedRuns,
    data: Memory,
    manner: &Manner,
) -> Result<u64, Failure> {
    let (costs, kept) = (&manner.costs, storage.kept());
    let found = &kept.found[0];
    let choice = manner.choice((found, Direction::Read));
    let limits = (manner.gap(&choice, costs.gap_to_read()), manner.buffer as u64);
    let mut come = 0;
    kept.with_buffer(|buffer| {
        grouped(runs, limits, |group, at| {
            let data = data.part(at, group.bytes as usize);
            let (first, span) = group.span();
            let (apart, whole) = (costs.reads(group.pieces, group.bytes), costs.read_sieved(span));
            let way = manner.way(&choice, group, (apart, whole));
            let cost = match way {
                Way::Apart => apart,
                Way::Whole => whole + group.pieces as f64 * costs.piece,
            };
            let got = timed(found, (way, cost), (group.pieces, group.bytes), || match way {
                Way::Apart => data.write(|data| read_one_by_one(storage, &group.runs, data)),
                Way::Whole => {
                    let scratch = first_bytes(buffer, span as usize);
                    let had = read_whole(storage, first, scratch)?;
                    Ok(data.write(|data| gather(&group.runs, first, &scratch[..had], data)))
                }
            })?;
            come += got;
            Ok(got == group.bytes)
        })
    })?;
    Ok(come)
}

fn read_one_by_one(
    storage: &dyn Storage,
    runs: &[StridedRun],
    data: &mut [u8],
) -> Result<u64, Failure> {
    let (mut rest, mut come) = (data, 0);
    for (offset, len) in runs.iter().flat_map(StridedRun::places) {
        let (piece, after) = rest.split_at_mut(len as usize);
        let had = read_whole(storage, offset, piece)? as u64;
        come += had;
        if had < len {
            break;
        }
        rest = after;
    }
    Ok(come)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::company::Others;
    use crate::storage::disk::Disk;
    use crate::storage::faulty::{Faulty, Plan};
    use weft_fabric::StagingPool;

    fn manner(sieving: Sieving, buffer: usize) -> Manner {
        Manner { sieving, buffer, costs: Costs::default(), guard: Guard::Ranks }
    }

    fn random(rng: &mut fastrand::Rng) -> StridedRuns {
        let (mut runs, mut at) = (StridedRuns::default(), rng.u64(..20));
        for _ in 0..rng.usize(1..30) {
            let len = rng.u64(1..9);
            runs.push(at, len);
            at += len + rng.u64(..12) * rng.u64(..2);
        }
        runs
    }

    #[test]
    fn every_manner_moves_the_same_bytes() {
        let pool = StagingPool::default();
        let mut rng = fastrand::Rng::with_seed(11);
        for case in 0..300 {
            let runs = random(&mut rng);
            let plan =
                Plan { most: rng.usize(..6), interrupt: rng.u64(..4) * 3, ..Plan::default() };
            let storage = Faulty::new(Disk::new(tempfile::tempfile().unwrap()), plan);
            storage.kept().company.learn([Others::Excluded, Others::Unknown][case / 3 % 2]);
            let before: Vec<u8> = (0..rng.usize(..200)).map(|_| rng.u8(..)).collect();
            write_whole(&storage, 0, &before).unwrap();
            let data: Vec<u8> = (0..runs.bytes()).map(|_| rng.u8(..)).collect();
            let memory = pool.take(data.len());
            memory.sge().fill(&data);
            let sieving = [Sieving::Auto, Sieving::On, Sieving::Off][case % 3];
            let manner = manner(sieving, rng.usize(1..64));
            write(&storage, &runs, memory.sge().into(), &manner).unwrap();
            let mut model = before;
            let end = runs.bounds().unwrap().1 as usize;
            model.resize(model.len().max(end), 0);
            spread(runs.list(), 0, &data, &mut model);
            let mut found = vec![0; model.len() + 1];
            assert_eq!(read_whole(&storage, 0, &mut found).unwrap(), model.len(), "case {case}");
            assert_eq!(found[..model.len()], model, "case {case}");
            // Read back, from a file that may end before.
            storage.set_length(rng.u64(..end as u64 + 9)).unwrap();
            let whole = &model[..model.len().min(storage.length().unwrap() as usize)];
            let mut expected = vec![0; data.len()];
            let come = gather(runs.list(), 0, whole, &mut expected);
            let got = read(&storage, &runs, memory.sge().into(), &manner).unwrap();
            let mut found = vec![0; come as usize];
            memory.sge().part(0, found.len()).read(&mut found);
            assert_eq!((got, &found[..]), (come, &expected[..come as usize]), "case {case}");
        }
    }

    #[test]
    fn a_full_file_system_says_where_it_stopped() {
        let plan = Plan { writes: Some((50..1 << 40, libc::ENOSPC)), ..Plan::default() };
        let storage = Faulty::new(Disk::new(tempfile::tempfile().unwrap()), plan);
        let memory = StagingPool::default().take(100);
        let manner = manner(Sieving::Auto, 1 << 20);
        let failure = write(&storage, &StridedRuns::one(10, 100), memory.sge().into(), &manner);
        let failure = failure.expect_err("no room");
        assert_eq!((failure.errno, failure.offset, failure.len), (libc::ENOSPC, 50, 60));
        assert_eq!(storage.length().unwrap(), 50);
    }

    #[test]
    fn small_gaps_are_moved_and_large_ones_are_not() {
        let costs = Costs::default();
        assert!(costs.write_sieved(1000 * 64) < costs.writes(1000, 8000));
        assert!(costs.write_sieved(1000 * 65536) > costs.writes(1000, 8000));
        assert!(costs.gap_to_write() < costs.gap_to_read());
    }
}
