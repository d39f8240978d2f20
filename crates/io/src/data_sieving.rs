//! Transfers between contiguous memory and pieces of a file, by data sieving where that is cheaper (Thakur, Gropp and Lusk, "Data
//! Sieving and Collective I/O in ROMIO").

use crate::access_direction::AccessDirection;
use crate::access_memory::AccessMemory;
use crate::access_policy::AccessPolicy;
use crate::adaptive_cost::{AccessMethod, AdaptiveCost, MethodChoice};
use crate::byte_range::ByteRange;
use crate::failure::FileFailure;
use crate::hints::Sieving;
use crate::storage::{
    Storage, WriteGuard, first_bytes, read_full, with_exclusive_gaps, with_guard, write_full,
};
use crate::strided_copy::{gather, spread};
use crate::strided_runs::{StridedRun, StridedRuns};
use std::time::Instant;

/// Consecutive pieces that one call may move.
#[derive(Default)]
struct PieceGroup {
    runs: Vec<StridedRun>,
    pieces: u64,
    bytes: u64,
}

impl PieceGroup {
    fn range(&self) -> ByteRange {
        let first = self.runs.first().map_or(0, |run| run.offset);
        ByteRange { first, end: self.end().max(first) }
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

/// Limits of a group.
#[derive(Clone, Copy)]
struct GroupLimits {
    /// Maximum gap between two pieces in bytes.
    gap: u64,
    /// Maximum length in bytes from the first to the last piece. A longer piece is a group of its own.
    span: u64,
}

/// Calls `f` for each group of pieces, in order, with the place of the group in the data, until `f` returns false.
fn for_each_group(
    runs: &StridedRuns,
    limits: GroupLimits,
    mut f: impl FnMut(&PieceGroup, usize) -> Result<bool, FileFailure>,
) -> Result<(), FileFailure> {
    let mut group = PieceGroup::default();
    let mut at = 0;
    for run in runs.list() {
        let mut rest = *run;
        while rest.count > 0 {
            let mut first = rest.offset;
            if !group.runs.is_empty() {
                first = group.range().first;
                let fits = rest.offset + rest.len - first <= limits.span;
                if !fits || rest.offset.saturating_sub(group.end()) > limits.gap {
                    if !f(&group, at)? {
                        return Ok(());
                    }
                    at += group.bytes as usize;
                    group = PieceGroup { runs: group.runs, ..PieceGroup::default() };
                    group.runs.clear();
                    first = rest.offset;
                }
            }
            // Adds as many further pieces of the run as fit.
            let room = limits.span.saturating_sub(rest.offset + rest.len - first) / rest.stride;
            let more = if rest.stride - rest.len > limits.gap { 0 } else { room };
            let count = rest.count.min(1 + more);
            group.push(StridedRun { count, ..rest });
            rest.offset += count * rest.stride;
            rest.count -= count;
        }
    }
    if !group.runs.is_empty() {
        f(&group, at)?;
    }
    Ok(())
}

impl AccessPolicy {
    /// Returns the factors by which an access chooses its method. Measurements are not used if a hint asks for a method, or if
    /// other ranks write at the same time. If other ranks write, a measured time also depends on the methods of these ranks. Ranks
    /// that learn from each other's delays settle on a bad mixture of methods.
    fn choice(&self, measured: &AdaptiveCost, direction: AccessDirection) -> MethodChoice {
        let among_writers = direction == AccessDirection::Write && self.guard == WriteGuard::Ranks;
        match self.sieving {
            Sieving::Auto if !among_writers => measured.choice(),
            _ => MethodChoice::MODEL,
        }
    }

    fn limits(&self, choice: &MethodChoice, direction: AccessDirection) -> GroupLimits {
        let gap = match self.sieving {
            Sieving::Auto => choice.max_gap(self.costs.max_gap(direction)),
            Sieving::On => u64::MAX,
            Sieving::Off => 0,
        };
        GroupLimits { gap, span: self.buffer as u64 }
    }

    /// Chooses the method for a group. Returns the method, and its cost by the model.
    fn method(
        &self,
        choice: &MethodChoice,
        direction: AccessDirection,
        group: &PieceGroup,
    ) -> (AccessMethod, f64) {
        let separate = self.costs.separate_cost(direction, group.pieces, group.bytes);
        let sieved = self.costs.sieved_cost(direction, group.range().len());
        let combined = sieved + group.pieces as f64 * self.costs.piece;
        let method = match self.sieving {
            _ if group.pieces == 1 => AccessMethod::Separate,
            Sieving::On => AccessMethod::Combined,
            _ => choice.method(separate, combined),
        };
        (method, [separate, combined][method as usize])
    }
}

/// Maximum mean length in bytes of pieces whose access is measured. The time of longer pieces is mostly the time to copy them,
/// which says nothing about the cost of calls.
const MAX_MEASURED_PIECE: u64 = 64 << 10;

/// An access whose time may be measured.
struct MeasuredAccess {
    method: AccessMethod,
    /// Cost of the access by the model.
    cost: f64,
    pieces: u64,
    bytes: u64,
}

/// Runs `access`, and adds its time to `measured` if the pieces are short enough.
fn measure<T>(
    measured: &AdaptiveCost,
    of: MeasuredAccess,
    access: impl FnOnce() -> Result<T, FileFailure>,
) -> Result<T, FileFailure> {
    let MeasuredAccess { method, cost, pieces, bytes } = of;
    if pieces < 2 || bytes / pieces > MAX_MEASURED_PIECE {
        return access();
    }
    let begin = Instant::now();
    let value = access()?;
    measured.note(method, cost, begin.elapsed());
    Ok(value)
}

/// Pieces to write by one call each. One guard protects all of these calls.
#[derive(Default)]
struct SeparatePieces {
    places: Vec<(u64, u64)>,
    bytes: u64,
    /// Offset of the pieces' data in the data of the access.
    from: usize,
}

impl SeparatePieces {
    fn push(&mut self, group: &PieceGroup, at: usize) {
        if self.places.is_empty() {
            self.from = at;
        }
        self.places.extend(group.runs.iter().flat_map(StridedRun::places));
        self.bytes += group.bytes;
    }

    /// Writes the pieces and forgets them.
    fn write(
        &mut self,
        storage: &dyn Storage,
        data: AccessMemory,
        policy: &AccessPolicy,
    ) -> Result<(), FileFailure> {
        let SeparatePieces { places, bytes, from } = std::mem::take(self);
        let (Some(&(first, _)), Some(&(last, len))) = (places.first(), places.last()) else {
            return Ok(());
        };
        let data = data.part(from, bytes as usize);
        let pieces = places.len() as u64;
        let cost = policy.costs.separate_cost(AccessDirection::Write, pieces, bytes);
        let measured = storage.state().adaptive_cost(AccessDirection::Write);
        let range = ByteRange { first, end: last + len };
        let write_all = || {
            let mut at = 0;
            for &(offset, len) in &places {
                let len = len as usize;
                data.part(at, len).read(|piece| write_full(storage, offset, piece))?;
                at += len;
            }
            Ok(())
        };
        let of = MeasuredAccess { method: AccessMethod::Separate, cost, pieces, bytes };
        measure(measured, of, || with_guard(storage, policy.guard, range, write_all))
    }
}

/// Fills `buffer`, and writes the buffer to the file from byte `first` on.
pub fn write_contiguous(
    storage: &dyn Storage,
    guard: WriteGuard,
    first: u64,
    buffer: &mut [u8],
    fill: impl FnOnce(&mut [u8]),
) -> Result<(), FileFailure> {
    fill(buffer);
    let range = ByteRange::at(first, buffer.len() as u64);
    with_guard(storage, guard, range, || write_full(storage, first, buffer))
}

/// Reads the file from byte `first` on into `buffer`, lets `fill` change the buffer, and writes the buffer back. Returns false and
/// does nothing if another writer may write in the gaps.
pub fn write_sieved(
    storage: &dyn Storage,
    guard: WriteGuard,
    first: u64,
    buffer: &mut [u8],
    fill: impl FnOnce(&mut [u8]),
) -> Result<bool, FileFailure> {
    let range = ByteRange::at(first, buffer.len() as u64);
    let done = with_exclusive_gaps(storage, guard, range, || {
        let had = read_full(storage, first, buffer)?;
        buffer[had..].fill(0);
        fill(buffer);
        write_full(storage, first, buffer)
    })?;
    Ok(done.is_some())
}

/// Writes `data` to the pieces. If this fails, all bytes before the reported place have been written.
pub fn write(
    storage: &dyn Storage,
    runs: &StridedRuns,
    data: AccessMemory,
    policy: &AccessPolicy,
) -> Result<(), FileFailure> {
    let direction = AccessDirection::Write;
    let measured = storage.state().adaptive_cost(direction);
    let choice = policy.choice(measured, direction);
    let mut separate = SeparatePieces::default();
    // Becomes false when another opening is seen, because the other opening may write in the gaps.
    let mut gaps_are_free = true;
    storage.state().with_buffer(|buffer| {
        for_each_group(runs, policy.limits(&choice, direction), |group, at| {
            let ByteRange { first, end } = group.range();
            let (method, cost) = policy.method(&choice, direction, group);
            let contiguous = end - first == group.bytes && group.pieces > 1;
            let sieved = gaps_are_free && method == AccessMethod::Combined;
            if !contiguous && !sieved {
                separate.push(group, at);
                return Ok(true);
            }
            separate.write(storage, data, policy)?;
            let buffer = first_bytes(buffer, (end - first) as usize);
            let data = data.part(at, group.bytes as usize);
            let fill =
                |buffer: &mut [u8]| data.read(|data| spread(&group.runs, first, data, buffer));
            if contiguous {
                write_contiguous(storage, policy.guard, first, buffer, fill)?;
                return Ok(true);
            }
            let begin = Instant::now();
            gaps_are_free = write_sieved(storage, policy.guard, first, buffer, fill)?;
            match gaps_are_free {
                true if group.bytes / group.pieces <= MAX_MEASURED_PIECE => {
                    measured.note(method, cost, begin.elapsed());
                }
                true => {}
                false => separate.push(group, at),
            }
            Ok(true)
        })
    })?;
    separate.write(storage, data, policy)
}

/// Reads the pieces into `data`. Returns the number of bytes of `data` that lie before the end of the file.
pub fn read(
    storage: &dyn Storage,
    runs: &StridedRuns,
    data: AccessMemory,
    policy: &AccessPolicy,
) -> Result<u64, FileFailure> {
    let direction = AccessDirection::Read;
    let measured = storage.state().adaptive_cost(direction);
    let choice = policy.choice(measured, direction);
    let mut bytes_read = 0;
    storage.state().with_buffer(|buffer| {
        for_each_group(runs, policy.limits(&choice, direction), |group, at| {
            let data = data.part(at, group.bytes as usize);
            let (method, cost) = policy.method(&choice, direction, group);
            let of = MeasuredAccess { method, cost, pieces: group.pieces, bytes: group.bytes };
            let got = measure(measured, of, || match method {
                AccessMethod::Separate => {
                    data.write(|data| read_separately(storage, &group.runs, data))
                }
                AccessMethod::Combined => {
                    let range = group.range();
                    let buffer = first_bytes(buffer, range.len() as usize);
                    let had = read_full(storage, range.first, buffer)?;
                    let buffer = &buffer[..had];
                    Ok(data.write(|data| gather(&group.runs, range.first, buffer, data)))
                }
            })?;
            bytes_read += got;
            Ok(got == group.bytes)
        })
    })?;
    Ok(bytes_read)
}

fn read_separately(
    storage: &dyn Storage,
    runs: &[StridedRun],
    data: &mut [u8],
) -> Result<u64, FileFailure> {
    let (mut rest, mut bytes_read) = (data, 0);
    for (offset, len) in runs.iter().flat_map(StridedRun::places) {
        let (piece, after) = rest.split_at_mut(len as usize);
        let had = read_full(storage, offset, piece)? as u64;
        bytes_read += had;
        if had < len {
            break;
        }
        rest = after;
    }
    Ok(bytes_read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faulty::{FaultPlan, FaultyStorage};
    use crate::file_costs::FileCosts;
    use crate::storage::disk::Disk;
    use crate::storage::other_openings::OpeningKnowledge;
    use weft_fabric::StagingPool;

    fn policy(sieving: Sieving, buffer: usize) -> AccessPolicy {
        AccessPolicy { sieving, buffer, costs: FileCosts::default(), guard: WriteGuard::Ranks }
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
    fn every_policy_moves_the_same_bytes() {
        let pool = StagingPool::default();
        let mut rng = fastrand::Rng::with_seed(11);
        for case in 0..300 {
            let runs = random(&mut rng);
            let plan = FaultPlan {
                most: rng.usize(..6),
                interrupt: rng.u64(..4) * 3,
                ..FaultPlan::default()
            };
            let storage = FaultyStorage::new(Disk::new(tempfile::tempfile().unwrap()), plan);
            storage
                .state()
                .other_openings
                .set([OpeningKnowledge::Unique, OpeningKnowledge::Unknown][case / 3 % 2]);
            let before: Vec<u8> = (0..rng.usize(..200)).map(|_| rng.u8(..)).collect();
            write_full(&storage, 0, &before).unwrap();
            let data: Vec<u8> = (0..runs.bytes()).map(|_| rng.u8(..)).collect();
            let memory = pool.take(data.len());
            memory.sge().fill(&data);
            let sieving = [Sieving::Auto, Sieving::On, Sieving::Off][case % 3];
            let policy = policy(sieving, rng.usize(1..64));
            write(&storage, &runs, memory.sge().into(), &policy).unwrap();
            let mut model = before;
            let end = runs.bounds().unwrap().end as usize;
            model.resize(model.len().max(end), 0);
            spread(runs.list(), 0, &data, &mut model);
            let mut found = vec![0; model.len() + 1];
            assert_eq!(read_full(&storage, 0, &mut found).unwrap(), model.len(), "case {case}");
            assert_eq!(found[..model.len()], model, "case {case}");
            // Reads the pieces back. The file may now end before some of the pieces.
            storage.set_length(rng.u64(..end as u64 + 9)).unwrap();
            let whole = &model[..model.len().min(storage.length().unwrap() as usize)];
            let mut expected = vec![0; data.len()];
            let bytes_read = gather(runs.list(), 0, whole, &mut expected);
            let got = read(&storage, &runs, memory.sge().into(), &policy).unwrap();
            let mut found = vec![0; bytes_read as usize];
            memory.sge().part(0, found.len()).read(&mut found);
            assert_eq!(
                (got, &found[..]),
                (bytes_read, &expected[..bytes_read as usize]),
                "case {case}"
            );
        }
    }

    #[test]
    fn a_failed_write_names_its_place() {
        let plan = FaultPlan { writes: Some((50..1 << 40, libc::ENOSPC)), ..FaultPlan::default() };
        let storage = FaultyStorage::new(Disk::new(tempfile::tempfile().unwrap()), plan);
        let memory = StagingPool::default().take(100);
        let policy = policy(Sieving::Auto, 1 << 20);
        let failure = write(&storage, &StridedRuns::one(10, 100), memory.sge().into(), &policy);
        let failure = failure.expect_err("no room");
        assert_eq!((failure.errno, failure.offset, failure.len), (libc::ENOSPC, 50, 60));
        assert_eq!(storage.length().unwrap(), 50);
    }

    #[test]
    fn only_small_gaps_are_moved() {
        let costs = FileCosts::default();
        assert!(
            costs.sieved_cost(AccessDirection::Write, 1000 * 64)
                < costs.separate_cost(AccessDirection::Write, 1000, 8000)
        );
        assert!(
            costs.sieved_cost(AccessDirection::Write, 1000 * 65536)
                > costs.separate_cost(AccessDirection::Write, 1000, 8000)
        );
        assert!(costs.max_gap(AccessDirection::Write) < costs.max_gap(AccessDirection::Read));
    }
}
