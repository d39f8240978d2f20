//! Copies between contiguous data and the places of these data in a part of a file.

use crate::strided_runs::StridedRun;

/// Copies `data` to the places of the pieces in `window`, which begins at byte `first` of the file.
pub fn spread(runs: &[StridedRun], first: u64, data: &[u8], window: &mut [u8]) {
    let mut rest = data;
    for run in runs {
        let (data, after) = rest.split_at(run.bytes() as usize);
        let at = (run.offset - first) as usize;
        let places = &mut window[at..at + (run.end() - run.offset) as usize];
        by_length(run.len, &mut SpreadLoop { data, places, stride: run.stride as usize });
        rest = after;
    }
}

/// Copies pieces from `window`, which begins at byte `first` of the file, to `data`. Returns the number of bytes within the window.
pub fn gather(runs: &[StridedRun], first: u64, window: &[u8], data: &mut [u8]) -> u64 {
    let (mut rest, mut bytes_read) = (data, 0);
    for run in runs {
        let from = (run.offset - first) as usize;
        let there = window.get(from..).unwrap_or_default();
        let (len, stride) = (run.len as usize, run.stride as usize);
        // Complete pieces first, then a part of the next piece.
        let some = if there.len() < len { 0 } else { (there.len() - len) / stride + 1 };
        let some = some.min(run.count as usize);
        let (into, after) = rest.split_at_mut(some * len);
        if some > 0 {
            let places = &there[..(some - 1) * stride + len];
            by_length(run.len, &mut GatherLoop { data: into, places, stride });
        }
        bytes_read += (some * len) as u64;
        if some < run.count as usize {
            let part = there.get(some * stride..).unwrap_or_default();
            let had = part.len().min(len);
            after[..had].copy_from_slice(&part[..had]);
            return bytes_read + had as u64;
        }
        rest = after;
    }
    bytes_read
}

/// Loop over the pieces of a run.
trait PieceLoop {
    /// Copies pieces of `N` bytes. As `N` is a constant, each copy is compiled to a load and a store.
    fn run<const N: usize>(&mut self);

    /// Copies pieces of `len` bytes.
    fn run_any(&mut self, len: usize);
}

/// Runs a loop with common lengths as constants.
#[inline]
fn by_length(len: u64, pieces: &mut impl PieceLoop) {
    match len {
        1 => pieces.run::<1>(),
        2 => pieces.run::<2>(),
        4 => pieces.run::<4>(),
        8 => pieces.run::<8>(),
        16 => pieces.run::<16>(),
        32 => pieces.run::<32>(),
        64 => pieces.run::<64>(),
        other => pieces.run_any(other as usize),
    }
}

struct SpreadLoop<'a> {
    data: &'a [u8],
    places: &'a mut [u8],
    stride: usize,
}

impl PieceLoop for SpreadLoop<'_> {
    fn run<const N: usize>(&mut self) {
        // The last place has no gap after its piece.
        let pieces = self.data.as_chunks::<N>().0;
        for (piece, place) in pieces.iter().zip(self.places.chunks_mut(self.stride)) {
            if let Some(place) = place.first_chunk_mut() {
                *place = *piece;
            }
        }
    }

    fn run_any(&mut self, len: usize) {
        for (piece, place) in self.data.chunks_exact(len).zip(self.places.chunks_mut(self.stride)) {
            place[..len].copy_from_slice(piece);
        }
    }
}

struct GatherLoop<'a> {
    data: &'a mut [u8],
    places: &'a [u8],
    stride: usize,
}

impl PieceLoop for GatherLoop<'_> {
    fn run<const N: usize>(&mut self) {
        let pieces = self.data.as_chunks_mut::<N>().0;
        for (piece, place) in pieces.iter_mut().zip(self.places.chunks(self.stride)) {
            if let Some(place) = place.first_chunk() {
                *piece = *place;
            }
        }
    }

    fn run_any(&mut self, len: usize) {
        for (piece, place) in self.data.chunks_exact_mut(len).zip(self.places.chunks(self.stride)) {
            piece.copy_from_slice(&place[..len]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares copies of random runs with copies of single bytes. Some of the runs have the lengths that are compiled as
    /// constants.
    #[test]
    fn copies_of_runs_equal_copies_of_bytes() {
        let mut rng = fastrand::Rng::with_seed(9);
        for case in 0..500 {
            let (first, mut at, mut runs) = (rng.u64(..50), 0, Vec::new());
            at += first + rng.u64(..9);
            for _ in 0..rng.usize(1..5) {
                let len = if rng.bool() { 1 << rng.u32(..8) } else { rng.u64(1..100) };
                let stride = len + rng.u64(..40) * rng.u64(..2);
                let run = StridedRun { offset: at, len, stride, count: rng.u64(1..20) };
                at = run.end() + rng.u64(..20);
                runs.push(run);
            }
            let places: Vec<usize> = (runs.iter().flat_map(StridedRun::places))
                .flat_map(|(offset, len)| offset - first..offset - first + len)
                .map(|place| place as usize)
                .collect();
            let data: Vec<u8> = places.iter().map(|_| rng.u8(..)).collect();
            let mut whole = vec![0; (at - first) as usize];
            let mut expected = whole.clone();
            spread(&runs, first, &data, &mut whole);
            places.iter().zip(&data).for_each(|(&place, &byte)| expected[place] = byte);
            assert_eq!(whole, expected, "case {case}");
            // The file may end within the window.
            whole.truncate(rng.usize(..whole.len() + 1));
            let mut back = vec![0; data.len()];
            let bytes_read = gather(&runs, first, &whole, &mut back) as usize;
            assert_eq!(bytes_read, places.iter().filter(|&&place| place < whole.len()).count());
            assert_eq!(back[..bytes_read], data[..bytes_read], "case {case}");
        }
    }
}
