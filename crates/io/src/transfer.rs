//! Moving data between memory and pieces of a file, by as few calls as pay: data sieving.

use crate::bytes::Memory;
use crate::cost::Costs;
use crate::failure::Failure;
use crate::storage::{Guard, Storage, guarded, read_whole, write_whole};
use crate::strided_runs::StridedRuns;

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
struct Group {
    pieces: Vec<(u64, u64)>,
    bytes: u64,
}

impl Group {
    fn span(&self) -> (u64, u64) {
        let first = self.pieces[0].0;
        let (last, len) = self.pieces[self.pieces.len() - 1];
        (first, last + len - first)
    }
}

/// Calls `f` with groups of pieces whose gaps are at most `gap`, in order, each with its place in the data. Groups span at
/// most `most` bytes; a longer piece is one for itself.
fn grouped(
    runs: &StridedRuns,
    (gap, most): (u64, u64),
    mut f: impl FnMut(&Group, usize) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let mut group = Group { pieces: Vec::new(), bytes: 0 };
    let mut at = 0;
    for (offset, len) in runs.iter() {
        if let Some(&(last, its)) = group.pieces.last() {
            let fits = offset + len - group.pieces[0].0 <= most;
            if !fits || offset - (last + its).min(offset) > gap {
                if !f(&group, at)? {
                    return Ok(());
                }
                at += group.bytes as usize;
                group.pieces.clear();
                group.bytes = 0;
            }
        }
        group.pieces.push((offset, len));
        group.bytes += len;
    }
    if !group.pieces.is_empty() {
        f(&group, at)?;
    }
    Ok(())
}

impl Manner {
    fn gap(&self, usual: u64) -> u64 {
        match self.sieving {
            Sieving::Auto => usual,
            Sieving::On => u64::MAX,
            Sieving::Off => 0,
        }
    }
}

/// Writes `data` to the pieces. Errors say where it stopped; what lies before is written.
pub fn write(
    storage: &dyn Storage,
    runs: &StridedRuns,
    data: Memory,
    manner: &Manner,
) -> Result<(), Failure> {
    let limits = (manner.gap(manner.costs.gap_to_write()), manner.buffer as u64);
    let mut scratch = Vec::new();
    // Pieces to be written by themselves, under one guard, and where their data begin.
    let (mut singles, mut from) = (Vec::new(), 0);
    let flush = |singles: &mut Vec<(u64, u64)>, from: usize| {
        if singles.is_empty() {
            return Ok(());
        }
        let data = data.part(from, data.len() - from);
        let written = one_by_one(storage, singles, data, manner.guard);
        singles.clear();
        written
    };
    grouped(runs, limits, |group, at| {
        let data = data.part(at, group.bytes as usize);
        let (first, span) = group.span();
        let pieces = group.pieces.len() as u64;
        let full = span == group.bytes;
        let costs = &manner.costs;
        let sieved = costs.write_sieved(span) < costs.writes(pieces, group.bytes);
        let apart = || one_by_one(storage, &group.pieces, data, manner.guard);
        if pieces == 1 || !full && !sieved && manner.sieving != Sieving::On {
            if singles.is_empty() {
                from = at;
            }
            singles.extend_from_slice(&group.pieces);
            return Ok(true);
        }
        flush(&mut singles, from)?;
        scratch.resize(span as usize, 0);
        let change = || {
            if !full {
                let had = read_whole(storage, first, &mut scratch)?;
                scratch[had..].fill(0);
            }
            data.read(|data| spread(&group.pieces, first, data, &mut scratch));
            write_whole(storage, first, &scratch)
        };
        match guarded(storage, manner.guard, (first, span), !full, change) {
            // Nobody else can read and write back either.
            Err(failure) if failure.is_without_locks() => apart()?,
            changed => changed?,
        }
        Ok(true)
    })?;
    flush(&mut singles, from)
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
    match guarded(storage, guard, range, false, go) {
        Err(failure) if failure.is_without_locks() => {
            guarded(storage, Guard::Threads, range, false, go)
        }
        written => written,
    }
}

/// Copies data to the places of their pieces in `whole`, which begins at byte `first` of the file.
pub fn spread(pieces: &[(u64, u64)], first: u64, data: &[u8], whole: &mut [u8]) {
    let mut rest = data;
    for &(offset, len) in pieces {
        let (piece, after) = rest.split_at(len as usize);
        whole[(offset - first) as usize..][..len as usize].copy_from_slice(piece);
        rest = after;
    }
}

/// Reads the pieces to `data`; how many bytes of it came before the end of the file.
pub fn read(
    storage: &dyn Storage,
    runs: &StridedRuns,
    data: Memory,
    manner: &Manner,
) -> Result<u64, Failure> {
    let limits = (manner.gap(manner.costs.gap_to_read()), manner.buffer as u64);
    let mut scratch = Vec::new();
    let mut come = 0;
    grouped(runs, limits, |group, at| {
        let data = data.part(at, group.bytes as usize);
        let (first, span) = group.span();
        let costs = &manner.costs;
        let pieces = group.pieces.len() as u64;
        let sieved = costs.read_sieved(span) < costs.reads(pieces, group.bytes);
        let got = if pieces == 1 || !sieved && manner.sieving != Sieving::On {
            data.write(|data| read_one_by_one(storage, &group.pieces, data))?
        } else {
            scratch.resize(span as usize, 0);
            let had = read_whole(storage, first, &mut scratch)?;
            data.write(|data| gather(&group.pieces, first, &scratch[..had], data))
        };
        come += got;
        Ok(got == group.bytes)
    })?;
    Ok(come)
}

fn read_one_by_one(
    storage: &dyn Storage,
    pieces: &[(u64, u64)],
    data: &mut [u8],
) -> Result<u64, Failure> {
    let (mut rest, mut come) = (data, 0);
    for &(offset, len) in pieces {
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

/// Copies the pieces that lie in `whole`, which begins at byte `first` of the file, to `data`; how many bytes there were.
pub fn gather(pieces: &[(u64, u64)], first: u64, whole: &[u8], data: &mut [u8]) -> u64 {
    let (mut rest, mut come) = (data, 0);
    for &(offset, len) in pieces {
        let from = (offset - first) as usize;
        let had = whole.len().saturating_sub(from).min(len as usize);
        let (piece, after) = rest.split_at_mut(len as usize);
        if had > 0 {
            piece[..had].copy_from_slice(&whole[from..from + had]);
        }
        come += had as u64;
        if had < len as usize {
            break;
        }
        rest = after;
    }
    come
}

#[cfg(test)]
mod tests {
    use super::*;
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
            let pieces: Vec<_> = runs.iter().collect();
            spread(&pieces, 0, &data, &mut model);
            let mut found = vec![0; model.len() + 1];
            assert_eq!(read_whole(&storage, 0, &mut found).unwrap(), model.len(), "case {case}");
            assert_eq!(found[..model.len()], model, "case {case}");
            // Read back, from a file that may end before.
            storage.set_length(rng.u64(..end as u64 + 9)).unwrap();
            let whole = &model[..model.len().min(storage.length().unwrap() as usize)];
            let mut expected = vec![0; data.len()];
            let come = gather(&pieces, 0, whole, &mut expected);
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
