//! Views: which bytes of a file a rank sees, in what order (MPI 5.0, section 14.3).
//!
//! The file type repeats from the displacement on. What it selects is one stream of bytes, in which all positions are counted: a
//! position is found by the type's compiled loops, in time that does not depend on how many pieces lie before it.

use crate::failure::class;
use crate::strided_runs::{StridedRun, StridedRuns};
use weft_datatype::Type;
use weft_process::Error;

/// A view. Offsets are in bytes, of the file or of the stream.
pub struct View {
    displacement: u64,
    /// As the file has it: of a representation other than "native" not the program's own.
    filetype: Type,
    /// Bytes of the file that an elementary type takes.
    unit: u64,
    /// The stream is the file from the displacement on.
    plain: bool,
    /// Pieces of a tile.
    pieces: u64,
    /// They are one loop, from the tile's beginning.
    regular: Option<StridedRun>,
    /// A second tile comes after the first one: programs make file types of which only one tile is used, with any extent.
    repeats: bool,
}

/// The last byte of a file that there can be: file systems count in 63 bits.
const LAST: u64 = i64::MAX as u64;

impl View {
    /// Creates a view. Errors: TYPE, which the standard has for datatype arguments, if no file can have such a view: a file type
    /// whose displacements are negative or go back, that overlaps itself although `writes`, or that does not hold whole units.
    pub fn new(displacement: u64, unit: u64, filetype: &Type, writes: bool) -> Result<View, Error> {
        filetype.commit();
        let size = filetype.size() as u64;
        if unit == 0 || !size.is_multiple_of(unit) {
            let text = format!(
                "argument filetype has {size} bytes of data, which are no whole elementary types of {unit} bytes"
            );
            return Err(Error::new(weft_process::class::TYPE, text));
        }
        let plain = filetype.contiguous();
        let (mut pieces, mut repeats, mut regular) = (0, true, None);
        if size > 0 && !plain {
            (pieces, repeats) = check(filetype, writes)?;
            regular = one_loop(filetype);
        }
        let filetype = filetype.clone();
        Ok(View { displacement, filetype, unit, plain, pieces, regular, repeats })
    }

    /// Whether it has no gaps.
    pub fn is_plain(&self) -> bool {
        self.plain
    }

    /// Bytes of an elementary type in the file.
    pub fn unit(&self) -> u64 {
        self.unit
    }

    /// Where the view begins in the file.
    pub fn displacement(&self) -> u64 {
        self.displacement
    }

    /// Whether nothing can be read or written through it.
    pub fn is_empty(&self) -> bool {
        self.filetype.size() == 0
    }

    /// About how many pieces so many bytes of the stream lie in.
    pub fn pieces(&self, len: u64) -> u64 {
        let (size, pieces) = (self.filetype.size() as u128, u128::from(self.pieces));
        if self.plain || size == 0 {
            return 1;
        }
        ((u128::from(len) * pieces).div_ceil(size) as u64).max(1)
    }

    /// Checks that the view reaches a range. Errors: ARG if a file cannot be so long, TYPE if the next tile of the file type goes
    /// back.
    pub fn check_range(&self, from: u64, len: u64) -> Result<(), Error> {
        if len == 0 {
            return Ok(());
        }
        if self.is_empty() {
            let text =
                "the view's file type holds no data: nothing can be read or written through it";
            return Err(Error::new(class::IO, text));
        }
        let end = from.checked_add(len).filter(|&end| end <= LAST);
        if !self.repeats && end.is_none_or(|end| end > self.filetype.size() as u64) {
            let text = format!(
                "byte {from} of the view, and {len} more, go beyond the first tile of the view's file type, whose extent of {} \
                 bytes has the next one go back, which no file type may (MPI 5.0, section 14.3)",
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
            Some(far) if far <= LAST => Ok(()),
            _ => {
                let text = format!(
                    "byte {from} of the view, and {len} more, lie beyond byte 2^63 - 1 of the file"
                );
                Err(Error::new(weft_process::class::ARG, text))
            }
        }
    }

    /// The place of a byte of the stream in the file. The range must have been checked.
    pub fn place(&self, at: u64) -> u64 {
        if self.plain {
            return self.displacement + at;
        }
        let mut place = 0;
        self.each_run(at, 1, |offset, _| place = offset);
        place
    }

    /// Where `len` bytes lie in the file from element `offset` of the view on, and how many elements they are: of a view without
    /// gaps. `None` of any other, and if they are no whole elements, or beyond any file.
    #[inline]
    pub fn one_piece(&self, offset: u64, len: u64) -> Option<(u64, u64)> {
        if !self.plain || self.is_empty() {
            return None;
        }
        // A division takes longer than all the rest.
        let (from, elements) = match self.unit {
            1 => (offset, len),
            unit if len.is_multiple_of(unit) => (offset.checked_mul(unit)?, len / unit),
            _ => return None,
        };
        let at = from.checked_add(self.displacement)?;
        at.checked_add(len).filter(|&end| end <= LAST)?;
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

    /// The places of `len` bytes of the stream.
    pub fn runs(&self, from: u64, len: u64) -> StridedRuns {
        if self.plain {
            return StridedRuns::one(self.displacement + from, len);
        }
        let mut runs = StridedRuns::default();
        match self.regular {
            _ if len == 0 => {}
            Some(pieces) => self.by_loops(&pieces, (from, len), &mut runs),
            None => self.each_run(from, len, |offset, len| runs.push(offset, len)),
        }
        runs
    }

    /// The same without a look at each piece.
    fn by_loops(&self, pieces: &StridedRun, (from, len): (u64, u64), runs: &mut StridedRuns) {
        let (mut at, end) = (from, from + len);
        let extent = self.filetype.extent() as u64;
        // A loop that goes on in the next tile is one over all of them.
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

    /// How many bytes of the stream lie before byte `offset` of the file.
    pub fn before(&self, offset: u64) -> u64 {
        if offset <= self.displacement || self.is_empty() {
            return 0;
        }
        let into = offset - self.displacement;
        if self.plain {
            return into;
        }
        let (size, extent) = (self.filetype.size() as u64, self.filetype.extent() as u64);
        let (low, high) = (self.filetype.true_lb() as u64, self.filetype.true_ub() as u64);
        // Tiles that end before it, and those that begin before it.
        let (whole, begun) = if self.repeats {
            let whole = if into >= high { (into - high) / extent + 1 } else { 0 };
            (whole, if into > low { (into - low).div_ceil(extent) } else { 0 })
        } else {
            (u64::from(into >= high), u64::from(into > low))
        };
        let (mut lo, mut hi) = (whole.min(begun) * size, begun * size);
        while lo < hi {
            let middle = lo + (hi - lo) / 2;
            if self.place(middle) < offset { lo = middle + 1 } else { hi = middle }
        }
        lo
    }
}

/// The pieces of a tile, if they are one loop.
fn one_loop(filetype: &Type) -> Option<StridedRun> {
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
    // What a single piece is followed by, the extent says.
    match run.count {
        1 => Some(StridedRun { stride: filetype.extent() as u64, ..run })
            .filter(|run| run.stride > run.len),
        _ => Some(run),
    }
}

/// What the standard asks of a file type: places that are not negative and never go back. Its pieces, and whether that is so of its
/// repetitions, too.
fn check(filetype: &Type, writes: bool) -> Result<(u64, bool), Error> {
    let refuse = |why: &str| {
        let text =
            format!("argument filetype {why}, which no file type may (MPI 5.0, section 14.3)");
        Err(Error::new(weft_process::class::TYPE, text))
    };
    if filetype.true_lb() < 0 {
        return refuse("has data before its beginning");
    }
    let (mut last, mut end, mut back, mut twice) = (i64::MIN, i64::MIN, false, false);
    let mut pieces = 0;
    filetype.runs(1, 0, filetype.size(), |offset, len| {
        back |= offset < last;
        twice |= offset < end;
        pieces += u64::from(offset != end);
        (last, end) = (offset, offset + len as i64);
    });
    let (first, extent) = (filetype.true_lb(), filetype.extent());
    if back {
        return refuse("has displacements that go back");
    }
    if twice && writes {
        return refuse("overlaps itself, and the file is opened to be written");
    }
    let next_to = extent >= end - first;
    Ok((pieces, extent > 0 && extent >= last - first && (next_to || !writes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_datatype::{Basic, Datatype, Predefined, Width};

    fn byte() -> Type {
        Predefined::new().of(Basic::BYTE).clone()
    }

    /// Two bytes of every five, then one more, in tiles of 13.
    fn holes() -> Type {
        let ty = Datatype::indexed(Width::Int, &[2, 2, 1], &[1, 6, 9], &byte()).unwrap();
        Datatype::resized(Width::Int, &ty, 0, 13).unwrap()
    }

    #[test]
    fn positions_and_places_are_inverse() {
        for (displacement, ty) in [(0, holes()), (7, holes()), (3, byte())] {
            let view = View::new(displacement, 1, &ty, true).unwrap();
            let places: Vec<u64> = (0..40).map(|at| view.place(at)).collect();
            for offset in 0..100 {
                let before = places.iter().filter(|&&place| place < offset).count() as u64;
                if before < 40 {
                    assert_eq!(view.before(offset), before, "byte {offset}");
                }
            }
            let runs = view.runs(3, 20);
            let listed: Vec<u64> = runs.iter().flat_map(|(at, len)| at..at + len).collect();
            assert_eq!(listed, places[3..23]);
        }
    }

    #[test]
    fn one_piece_is_what_the_stream_says() {
        let four = Datatype::vector(Width::Int, 1, 4, 4, &byte()).unwrap();
        for (displacement, unit, ty) in [(0, 1, byte()), (7, 4, four.clone()), (9, 2, four)] {
            let view = View::new(displacement, unit, &ty, true).unwrap();
            for (offset, len) in [(0, 4), (3, 8), (1 << 40, 4)] {
                let place = view.place(offset * unit);
                assert_eq!(view.one_piece(offset, len), Some((place, len / unit)));
            }
            assert_eq!(view.one_piece(0, 5).is_some(), unit == 1, "no whole elements");
            assert_eq!(view.one_piece(LAST / unit, 4), None, "beyond any file");
        }
        let view = View::new(0, 1, &holes(), true).unwrap();
        assert_eq!(view.one_piece(0, 1), None);
    }

    #[test]
    fn a_column_of_a_matrix_is_one_train() {
        let column = Datatype::vector(Width::Int, 100, 1, 64, &byte()).unwrap();
        let view = View::new(0, 1, &column, true).unwrap();
        assert_eq!(view.runs(0, 100).list().len(), 1);
    }

    #[test]
    fn loops_are_what_a_look_at_each_piece_finds() {
        let mut rng = fastrand::Rng::with_seed(8);
        for case in 0..500 {
            let (count, len, gap) = (rng.i64(1..6), rng.i64(1..6), rng.i64(1..6));
            let ty = Datatype::vector(Width::Int, count, len, len + gap, &byte()).unwrap();
            let more = [0, gap, rng.i64(0..9)][case % 3];
            let ty = Datatype::resized(Width::Int, &ty, 0, ty.extent() + more).unwrap();
            let view = View::new(rng.u64(..9), 1, &ty, true).unwrap();
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
            assert!(view.is_plain() || view.regular.is_some());
            if more == gap {
                assert!(found.list().len() <= 3, "{found:?}");
            }
        }
        assert!(View::new(0, 1, &holes(), true).unwrap().regular.is_none());
    }

    #[test]
    fn a_tile_whose_repetition_would_go_back_is_used_once() {
        for extent in [-5, 0, 3] {
            let ty = Datatype::resized(Width::Int, &holes(), 0, extent).unwrap();
            let view = View::new(7, 1, &ty, true).unwrap();
            let places: Vec<u64> = (0..5).map(|at| view.place(at)).collect();
            assert_eq!(places, [8, 9, 13, 14, 16]);
            assert!(view.check_range(0, 5).is_ok() && view.check_range(2, 4).is_err());
            for offset in 0..40 {
                let before = places.iter().filter(|&&place| place < offset).count() as u64;
                assert_eq!(view.before(offset), before, "byte {offset}, extent {extent}");
            }
            let listed: Vec<u64> =
                view.runs(1, 4).iter().flat_map(|(at, len)| at..at + len).collect();
            assert_eq!(listed, places[1..]);
        }
    }

    #[test]
    fn what_no_file_can_have_is_refused() {
        let of = |lengths: &[i64], places: &[i64]| {
            Datatype::indexed(Width::Int, lengths, places, &byte()).unwrap()
        };
        let refused = |ty: &Type, writes| View::new(0, 1, ty, writes).err().expect("refused");
        assert!(refused(&of(&[1, 1], &[5, 2]), false).text().contains("go back"));
        assert!(refused(&of(&[1], &[-1]), false).text().contains("before its beginning"));
        let overlapping = of(&[3, 3], &[0, 2]);
        assert!(refused(&overlapping, true).text().contains("overlaps"));
        assert!(View::new(0, 1, &overlapping, false).is_ok());
        let no_units = View::new(0, 4, &of(&[3], &[1]), true).err().expect("refused");
        for error in [refused(&overlapping, true), refused(&of(&[1], &[-1]), false), no_units] {
            assert_eq!(error.class(), weft_process::class::TYPE);
        }
        let view = View::new(0, 1, &holes(), true).unwrap();
        assert!(
            view.check_range(1 << 61, 1 << 61).is_err() && view.check_range(0, 1 << 40).is_ok()
        );
    }
}
