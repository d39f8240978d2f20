//! Buffers: pieces of data of some datatype, in memory whose other bytes are checked, too.

use crate::types::SharedType;
use std::fmt;

/// Number of bytes on both sides of a buffer that nobody may touch.
pub const GUARD: usize = 32;
/// Alignment of the addresses of buffers, in bytes.
const ALIGN: usize = 16;

/// `count` elements of a datatype at a displacement in bytes from the buffer's address.
#[derive(Clone)]
pub struct Piece {
    pub ty: SharedType,
    pub count: i64,
    pub at: i64,
    /// Number of basic datatypes in its data (fewer than in its elements, for a short message).
    pub items: usize,
}

impl Piece {
    pub fn new(ty: SharedType, count: i64, at: i64) -> Piece {
        let items = count as usize * ty.map.len();
        Piece { ty, count, at, items }
    }

    /// Returns the number of bytes of data.
    pub fn size(&self) -> usize {
        self.count as usize * self.ty.size()
    }

    /// Returns the runs of bytes of all elements, in the order of the type map, relative to the address.
    fn runs(&self) -> impl Iterator<Item = (i64, usize)> + '_ {
        let extent = self.ty.extent();
        let element = move |i: i64| self.at + i * extent;
        (0..self.count)
            .flat_map(move |i| self.ty.runs.iter().map(move |(d, n)| (element(i) + d, *n)))
    }

    /// Returns the first byte relative to the address, and the byte after the last.
    pub fn bounds(&self) -> Option<(i64, i64)> {
        let first = self.at;
        let last = self.at + (self.count - 1) * self.ty.extent();
        (self.count > 0)
            .then(|| (first.min(last) + self.ty.true_lb, first.max(last) + self.ty.true_ub))
    }
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} x {}", self.count, self.ty)?;
        if self.at != 0 { write!(f, " at {}", self.at) } else { Ok(()) }
    }
}

/// Returns the number of bytes of a buffer of these pieces, guards included, and the offset of its address.
fn extent(pieces: &[Piece]) -> (usize, i64) {
    let bounds = || pieces.iter().filter_map(Piece::bounds);
    let lo = bounds().map(|b| b.0).min().unwrap_or(0);
    let hi = bounds().map(|b| b.1).max().unwrap_or(0);
    (2 * GUARD + (hi - lo) as usize, GUARD as i64 - lo)
}

/// Contents of a buffer, wherever it lies.
#[derive(Clone)]
pub struct Image {
    pub bytes: Vec<u8>,
    /// Offset of the buffer's address in the bytes. It may be outside of them.
    pub origin: i64,
}

impl Image {
    /// Returns bytes that depend only on `key`.
    pub fn random(pieces: &[Piece], key: u64) -> Image {
        let (len, origin) = extent(pieces);
        let mut bytes = vec![0; len];
        fastrand::Rng::with_seed(key).fill(&mut bytes);
        Image { bytes, origin }
    }

    /// Returns the data of a piece, packed.
    pub fn pack(&self, piece: &Piece) -> Vec<u8> {
        let mut out = Vec::with_capacity(piece.size());
        for (at, len) in piece.runs() {
            let from = (self.origin + at) as usize;
            out.extend_from_slice(&self.bytes[from..from + len]);
        }
        out
    }

    /// Stores packed data, at most as much as the piece holds, in its place.
    pub fn unpack(&mut self, piece: &Piece, mut data: &[u8]) {
        assert!(data.len() <= piece.size(), "{} bytes do not fit into {piece}", data.len());
        for (at, len) in piece.runs() {
            let (now, rest) = data.split_at(len.min(data.len()));
            let to = (self.origin + at) as usize;
            self.bytes[to..to + now.len()].copy_from_slice(now);
            data = rest;
        }
    }
}

/// A buffer in memory.
pub struct GuardedBuffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
    origin: i64,
}

impl GuardedBuffer {
    pub fn new(pieces: &[Piece]) -> GuardedBuffer {
        let (len, origin) = extent(pieces);
        let memory = vec![0; len + ALIGN];
        let address = (memory.as_ptr() as i64 + origin).rem_euclid(ALIGN as i64) as usize;
        GuardedBuffer { memory, start: (ALIGN - address) % ALIGN, len, origin }
    }

    /// Returns the address that MPI gets.
    pub fn address(&mut self) -> usize {
        (self.memory.as_mut_ptr() as i64 + self.start as i64 + self.origin) as usize
    }

    /// Returns all bytes, with the guards.
    pub fn bytes(&mut self) -> &mut [u8] {
        // The library wrote through the address, so the compiler must not assume the bytes that it last saw.
        let memory = std::hint::black_box(&mut self.memory);
        &mut memory[self.start..self.start + self.len]
    }

    pub fn fill(&mut self, image: &Image) {
        assert_eq!((self.len, self.origin), (image.bytes.len(), image.origin));
        self.bytes().copy_from_slice(&image.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::basic::ElementType;
    use crate::mpi::CountWidth;
    use crate::types::{Shape, TypeModel};

    #[test]
    fn data_land_in_their_places_alone() {
        let child = TypeModel::basic(ElementType::named("SHORT"));
        let shape = Shape::Vector { count: 2, block: 1, stride: -3, child };
        let piece = Piece::new(TypeModel::new(shape, CountWidth::Int), 2, 4);
        let mut image = Image::random(std::slice::from_ref(&piece), 1);
        let before = image.clone();
        image.unpack(&piece, &[1, 2, 3, 4, 5, 6]);
        assert_eq!(image.pack(&piece)[..6], [1, 2, 3, 4, 5, 6]);
        // Elements begin at 4 and -2, and an extent (8 bytes) behind.
        let at = |n: i64| (image.origin + n) as usize;
        assert_eq!(image.bytes[at(4)..at(6)], [1, 2]);
        assert_eq!(image.bytes[at(-2)..at(0)], [3, 4]);
        assert_eq!(image.bytes[at(12)..at(14)], [5, 6]);
        let written = [at(4), at(5), at(-2), at(-1), at(12), at(13)];
        for i in (0..image.bytes.len()).filter(|i| !written.contains(i)) {
            assert_eq!(image.bytes[i], before.bytes[i], "byte {i}");
        }
    }

    #[test]
    fn addresses_are_aligned() {
        for at in -20..20 {
            let piece = Piece::new(TypeModel::basic(ElementType::named("BYTE")), 3, at);
            assert_eq!(GuardedBuffer::new(&[piece]).address() % ALIGN, 0);
        }
    }
}
