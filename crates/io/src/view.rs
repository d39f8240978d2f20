//! Views: the bytes of a file that a rank sees, and their order (MPI 5.0, section 14.3).
//!
//! The file type repeats from the displacement on. The bytes that it selects form a stream, and all positions are byte offsets in
//! this stream. The type's compiled loops find a position. The time for this does not depend on the number of pieces before the
//! position.

use crate::byte_range::ByteRange;
use crate::failure::class;
use crate::strided_runs::{StridedRun, StridedRuns};
use weft_datatype::Type;
use weft_process::Error;

/// A view. Offsets are in bytes of the file or of the stream.
pub struct FileView {
    displacement: u64,
    /// File type with the sizes of the file's representation.
    filetype: Type,
    /// Number of bytes of an elementary type in the file.
    etype_size: u64,
    /// True if the stream is the file from the displacement on.
    contiguous: bool,
    /// Number of pieces of a tile, which is one repetition of the file type.
    pieces: u64,
    /// The pieces of a tile, if they are one run.
    regular: Option<StridedRun>,
    /// True if a second tile may follow the first tile. Programs also use file types with an arbitrary extent, of which only one
    /// tile is valid.
    repeats: bool,
}

/// Treatment of file types that overlap themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlaps {
    /// The file is opened only for reading.
    Allowed,
    /// The file may be written.
    Refused,
}

/// Maximum end of a file in bytes. File systems count in 63 bits.
const MAX_END: u64 = i64::MAX as u64;

impl FileView {
    /// Creates a view. Errors: TYPE for a file type that the standard forbids, because it has negative or decreasing displacements,
    /// overlaps that are refused, or an incomplete elementary type.
    pub fn new(
        displacement: u64,
        etype_size: u64,
        filetype: &Type,
        overlaps: Overlaps,
    ) -> Result<FileView, Error> {
        filetype.commit();
        let size = filetype.size() as u64;
        if etype_size == 0 || !size.is_multiple_of(etype_size) {
            let text = format!(
                "argument filetype has {size} bytes of data, which is not a multiple of the etype's {etype_size} bytes"
            );
            return Err(Error::new(weft_process::class::TYPE, text));
        }
        let contiguous = filetype.contiguous();
        let (mut pieces, mut repeats, mut regular) = (0, true, None);
        if size > 0 && !contiguous {
            (pieces, repeats) = check(filetype, overlaps)?;
            regular = as_one_run(filetype);
        }
        let filetype = filetype.clone();
        Ok(FileView { displacement, filetype, etype_size, contiguous, pieces, regular, repeats })
    }

    /// Reports whether the view has no gaps.
    pub fn is_contiguous(&self) -> bool {
        self.contiguous
    }

    /// Returns the number of bytes of an elementary type in the file.
    pub fn etype_size(&self) -> u64 {
        self.etype_size
    }

    /// Returns the start of the view in bytes of the file.
    pub fn displacement(&self) -> u64 {
        self.displacement
    }

    /// Reports whether the view selects no bytes.
    pub fn is_empty(&self) -> bool {
        self.filetype.size() == 0
    }

    /// Estimates the number of pieces of `len` bytes of the stream.
    pub fn pieces(&self, len: u64) -> u64 {
        let (size, pieces) = (self.filetype.size() as u128, u128::from(self.pieces));
        if self.contiguous || size == 0 {
            return 1;
        }
        ((u128::from(len) * pieces).div_ceil(size) as u64).max(1)
    }

    /// Checks that a range of the stream is valid. Errors: ARG beyond the maximum length of a file, TYPE if the range needs a
    /// second tile that would overlap or precede the first.
    pub fn check_range(&self, from: u64, len: u64) -> Result<(), Error> {
        if len == 0 {
            return Ok(());
        }
        if self.is_empty() {
            let text =
                "the view's file type holds no data: nothing can be read or written through it";
            return Err(Error::new(class::IO, text));
        }
        let end = from.checked_add(len).filter(|&end| end <= MAX_END);
        if !self.repeats && end.is_none_or(|end| end > self.filetype.size() as u64) {
            let text = format!(
                "bytes {from} to {from} + {len} of the view need a second tile of the file type, which its extent of {} bytes places \
                 before the end of the first; no file type may do that (MPI 5.0, section 14.3)",
                self.filetype.extent()
            );
            return Err(Error::new(weft_process::class::TYPE, text));
        }
        let far = end.and_then(|end| {
            let tiles = end.div_ceil(self.filetype.size() as u64);
            let extent = self.filetype.extent().max(self.filetype.true_ub()) as u64;
            tiles.checked_mul(extent)?.checked_add(self.displacement)
        });
        match far {
            Some(far) if far <= MAX_END => Ok(()),
            _ => {
                let text = format!(
                    "bytes {from} to {from} + {len} of the view lie beyond byte 2^63 - 1 of the file"
                );
                Err(Error::new(weft_process::class::ARG, text))
            }
        }
    }

    /// Converts an offset in the stream to an offset in the file. The range must have been checked.
    pub fn file_offset(&self, at: u64) -> u64 {
        if self.contiguous {
            return self.displacement + at;
        }
        let mut place = 0;
        self.each_run(at, 1, |offset, _| place = offset);
        place
    }

    /// Finds `len` bytes from elementary type `offset` on in a contiguous view. Returns their offset in the file and the number of
    /// elementary types. Returns `None` for a view with gaps, for incomplete elementary types, and beyond the maximum length of a
    /// file.
    #[inline]
    pub fn contiguous_range(&self, offset: u64, len: u64) -> Option<(u64, u64)> {
        if !self.contiguous || self.is_empty() {
            return None;
        }
        // The common sizes avoid a division, which takes longer than the rest of this function.
        let (from, elements) = match self.etype_size {
            1 => (offset, len),
            unit if len.is_multiple_of(unit) => (offset.checked_mul(unit)?, len / unit),
            _ => return None,
        };
        let at = from.checked_add(self.displacement)?;
        at.checked_add(len).filter(|&end| end <= MAX_END)?;
        Some((at, elements))
    }

    fn each_run(&self, from: u64, len: u64, mut f: impl FnMut(u64, u64)) {
        let size = self.filetype.size();
        let (from, len) = (from as usize, len as usize);
        let count = (from + len).div_ceil(size);
        self.filetype.runs(count, from, len, |offset, len| {
            f(self.displacement.wrapping_add(offset as u64), len as u64);
        });
    }

    /// Returns the places of `len` bytes of the stream in the file.
    pub fn runs(&self, from: u64, len: u64) -> StridedRuns {
        if self.contiguous {
            return StridedRuns::one(self.displacement + from, len);
        }
        let mut runs = StridedRuns::default();
        match self.regular {
            _ if len == 0 => {}
            Some(pieces) => self.add_tiles(&pieces, ByteRange::at(from, len), &mut runs),
            None => self.each_run(from, len, |offset, len| runs.push(offset, len)),
        }
        runs
    }

    /// Adds the places of a range of the stream, for views in which each tile is one run. Needs no step for each piece.
    fn add_tiles(&self, pieces: &StridedRun, range: ByteRange, runs: &mut StridedRuns) {
        let ByteRange { first: mut at, end } = range;
        let extent = self.filetype.extent() as u64;
        // A run that continues in the next tile is one run over all tiles.
        let size = match extent == pieces.count * pieces.stride {
            true => u64::MAX,
            false => self.filetype.size() as u64,
        };
        while at < end {
            let (tile, mut within) = (at / size, at % size);
            let base = self.displacement + tile * extent + pieces.offset;
            let tile_end = (size - within).min(end - at) + within;
            at += tile_end - within;
            while within < tile_end {
                let (number, skip) = (within / pieces.len, within % pieces.len);
                let offset = base + number * pieces.stride + skip;
                let count = (tile_end - within) / pieces.len;
                if skip == 0 && count > 0 {
                    runs.push_run(StridedRun { offset, count, ..*pieces });
                    within += count * pieces.len;
                } else {
                    let some = (pieces.len - skip).min(tile_end - within);
                    runs.push(offset, some);
                    within += some;
                }
            }
        }
    }

    /// Converts an offset in the file to an offset in the stream. The result is the number of bytes of the stream that lie before
    /// the place in the file.
    pub fn stream_offset(&self, offset: u64) -> u64 {
        if offset <= self.displacement || self.is_empty() {
            return 0;
        }
        let into = offset - self.displacement;
        if self.contiguous {
            return into;
        }
        let (size, extent) = (self.filetype.size() as u64, self.filetype.extent() as u64);
        let (low, high) = (self.filetype.true_lb() as u64, self.filetype.true_ub() as u64);
        // Bounds for a binary search: the tiles that end before the offset, and the tiles that begin before it.
        let (ended, begun) = if self.repeats {
            let ended = if into >= high { (into - high) / extent + 1 } else { 0 };
            (ended, if into > low { (into - low).div_ceil(extent) } else { 0 })
        } else {
            (u64::from(into >= high), u64::from(into > low))
        };
        let (mut lo, mut hi) = (ended.min(begun) * size, begun * size);
        while lo < hi {
            let middle = lo + (hi - lo) / 2;
            if self.file_offset(middle) < offset { lo = middle + 1 } else { hi = middle }
        }
        lo
    }
}

/// Returns the pieces of a tile, if they are one run.
fn as_one_run(filetype: &Type) -> Option<StridedRun> {
    let (mut run, mut regular) = (None::<StridedRun>, true);
    filetype.runs(1, 0, filetype.size(), |offset, len| {
        let (offset, len) = (offset as u64, len as u64);
        match &mut run {
            None => run = Some(StridedRun { offset, len, stride: len, count: 1 }),
            Some(run) if run.count == 1 => {
                regular &= run.len == len && offset > run.end();
                (run.stride, run.count) = (offset.saturating_sub(run.offset), 2);
            }
            Some(run) => {
                regular &= run.len == len && offset == run.offset + run.count * run.stride;
                run.count += 1;
            }
        }
    });
    let run = run.filter(|_| regular)?;
    // For a single piece, the extent determines the stride.
    match run.count {
        1 => Some(StridedRun { stride: filetype.extent() as u64, ..run })
            .filter(|run| run.stride > run.len),
        _ => Some(run),
    }
}

/// Checks that displacements are not negative and never decrease, as the standard requires of a file type. Returns the number of
/// pieces, and true if the type's repetitions also satisfy this rule.
fn check(filetype: &Type, overlaps: Overlaps) -> Result<(u64, bool), Error> {
    let refuse = |why: &str| {
        let text =
            format!("argument filetype {why}, which no file type may (MPI 5.0, section 14.3)");
        Err(Error::new(weft_process::class::TYPE, text))
    };
    if filetype.true_lb() < 0 {
        return refuse("has a negative displacement");
    }
    let (mut last, mut end, mut decreases, mut has_overlaps) = (i64::MIN, i64::MIN, false, false);
    let mut pieces = 0;
    filetype.runs(1, 0, filetype.size(), |offset, len| {
        decreases |= offset < last;
        has_overlaps |= offset < end;
        pieces += u64::from(offset != end);
        (last, end) = (offset, offset + len as i64);
    });
    let (first, extent) = (filetype.true_lb(), filetype.extent());
    if decreases {
        return refuse("has decreasing displacements");
    }
    if has_overlaps && overlaps == Overlaps::Refused {
        return refuse("overlaps itself, and the file is opened to be written");
    }
    let separate = extent >= end - first;
    Ok((
        pieces,
        extent > 0 && extent >= last - first && (separate || overlaps == Overlaps::Allowed),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_datatype::{Basic, Datatype, Predefined, Width};

    fn byte() -> Type {
        Predefined::new().of(Basic::BYTE).clone()
    }

    /// Returns a type with an extent of 13 bytes. Bytes 1, 2, 6, 7 and 9, counted from 0, are data, and the other bytes are gaps.
    fn holes() -> Type {
        let ty = Datatype::indexed(Width::Int, &[2, 2, 1], &[1, 6, 9], &byte()).unwrap();
        Datatype::resized(Width::Int, &ty, 0, 13).unwrap()
    }

    #[test]
    fn stream_offset_inverts_file_offset() {
        for (displacement, ty) in [(0, holes()), (7, holes()), (3, byte())] {
            let view = FileView::new(displacement, 1, &ty, Overlaps::Refused).unwrap();
            let places: Vec<u64> = (0..40).map(|at| view.file_offset(at)).collect();
            for offset in 0..100 {
                let before = places.iter().filter(|&&place| place < offset).count() as u64;
                if before < 40 {
                    assert_eq!(view.stream_offset(offset), before, "byte {offset}");
                }
            }
            let runs = view.runs(3, 20);
            let listed: Vec<u64> = runs.iter().flat_map(|(at, len)| at..at + len).collect();
            assert_eq!(listed, places[3..23]);
        }
    }

    #[test]
    fn contiguous_range_agrees_with_file_offset() {
        let four = Datatype::vector(Width::Int, 1, 4, 4, &byte()).unwrap();
        for (displacement, unit, ty) in [(0, 1, byte()), (7, 4, four.clone()), (9, 2, four)] {
            let view = FileView::new(displacement, unit, &ty, Overlaps::Refused).unwrap();
            for (offset, len) in [(0, 4), (3, 8), (1 << 40, 4)] {
                let place = view.file_offset(offset * unit);
                assert_eq!(view.contiguous_range(offset, len), Some((place, len / unit)));
            }
            assert_eq!(view.contiguous_range(0, 5).is_some(), unit == 1, "no whole elements");
            assert_eq!(view.contiguous_range(MAX_END / unit, 4), None, "beyond any file");
        }
        let view = FileView::new(0, 1, &holes(), Overlaps::Refused).unwrap();
        assert_eq!(view.contiguous_range(0, 1), None);
    }

    #[test]
    fn a_column_of_a_matrix_is_one_run() {
        let column = Datatype::vector(Width::Int, 100, 1, 64, &byte()).unwrap();
        let view = FileView::new(0, 1, &column, Overlaps::Refused).unwrap();
        assert_eq!(view.runs(0, 100).list().len(), 1);
    }

    #[test]
    fn runs_of_tiles_equal_the_list_of_pieces() {
        let mut rng = fastrand::Rng::with_seed(8);
        for case in 0..500 {
            let (count, len, gap) = (rng.i64(1..6), rng.i64(1..6), rng.i64(1..6));
            let ty = Datatype::vector(Width::Int, count, len, len + gap, &byte()).unwrap();
            let more = [0, gap, rng.i64(0..9)][case % 3];
            let ty = Datatype::resized(Width::Int, &ty, 0, ty.extent() + more).unwrap();
            let view = FileView::new(rng.u64(..9), 1, &ty, Overlaps::Refused).unwrap();
            let (from, len) = (rng.u64(..60), rng.u64(..60));
            let mut each = StridedRuns::default();
            if len > 0 {
                view.each_run(from, len, |offset, len| each.push(offset, len));
            }
            let bytes = |runs: &StridedRuns| -> Vec<u64> {
                runs.iter().flat_map(|(at, len)| at..at + len).collect()
            };
            let found = view.runs(from, len);
            assert_eq!(bytes(&found), bytes(&each), "case {case}");
            assert_eq!(found.bytes(), len);
            assert!(view.is_contiguous() || view.regular.is_some());
            if more == gap {
                assert!(found.list().len() <= 3, "{found:?}");
            }
        }
        assert!(FileView::new(0, 1, &holes(), Overlaps::Refused).unwrap().regular.is_none());
    }

    #[test]
    fn a_file_type_without_valid_repetitions_is_used_once() {
        for extent in [-5, 0, 3] {
            let ty = Datatype::resized(Width::Int, &holes(), 0, extent).unwrap();
            let view = FileView::new(7, 1, &ty, Overlaps::Refused).unwrap();
            let places: Vec<u64> = (0..5).map(|at| view.file_offset(at)).collect();
            assert_eq!(places, [8, 9, 13, 14, 16]);
            assert!(view.check_range(0, 5).is_ok() && view.check_range(2, 4).is_err());
            for offset in 0..40 {
                let before = places.iter().filter(|&&place| place < offset).count() as u64;
                assert_eq!(view.stream_offset(offset), before, "byte {offset}, extent {extent}");
            }
            let listed: Vec<u64> =
                view.runs(1, 4).iter().flat_map(|(at, len)| at..at + len).collect();
            assert_eq!(listed, places[1..]);
        }
    }

    #[test]
    fn invalid_file_types_are_refused() {
        let of = |lengths: &[i64], places: &[i64]| {
            Datatype::indexed(Width::Int, lengths, places, &byte()).unwrap()
        };
        let refused =
            |ty: &Type, overlaps| FileView::new(0, 1, ty, overlaps).err().expect("refused");
        assert!(refused(&of(&[1, 1], &[5, 2]), Overlaps::Allowed).text().contains("decreasing"));
        assert!(refused(&of(&[1], &[-1]), Overlaps::Allowed).text().contains("negative"));
        let overlapping = of(&[3, 3], &[0, 2]);
        assert!(refused(&overlapping, Overlaps::Refused).text().contains("overlaps"));
        assert!(FileView::new(0, 1, &overlapping, Overlaps::Allowed).is_ok());
        let no_units =
            FileView::new(0, 4, &of(&[3], &[1]), Overlaps::Refused).err().expect("refused");
        for error in [
            refused(&overlapping, Overlaps::Refused),
            refused(&of(&[1], &[-1]), Overlaps::Allowed),
            no_units,
        ] {
            assert_eq!(error.class(), weft_process::class::TYPE);
        }
        let view = FileView::new(0, 1, &holes(), Overlaps::Refused).unwrap();
        assert!(
            view.check_range(1 << 61, 1 << 61).is_err() && view.check_range(0, 1 << 40).is_ok()
        );
    }
}
