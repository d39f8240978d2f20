//! Memory of a program in a test: elements side by side or with gaps, its contents before a call, and its expected contents after
//! the call, to the last byte of the gaps.

use weft_datatype::{Basic, Datatype, Predefined, Type, Width};
use weft_fabric::{Staging, StagingPool};
use weft_process::Buffer;

/// Layout of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Side by side.
    Dense,
    /// One byte, a gap of one byte, the rest, a gap of two bytes.
    Gaps,
}

impl Layout {
    /// Returns the number of bytes from one element of `unit` bytes to the next.
    fn extent(self, unit: usize) -> usize {
        match self {
            Layout::Dense => unit,
            Layout::Gaps => unit + 3,
        }
    }

    /// Stores the elements of `unit` bytes in `data` at their places in `image`.
    fn rank_buffers(self, unit: usize, data: &[u8], image: &mut [u8]) {
        match self {
            Layout::Dense => image[..data.len()].copy_from_slice(data),
            Layout::Gaps => {
                let places = image.chunks_exact_mut(self.extent(unit));
                for (place, element) in places.zip(data.chunks(unit)) {
                    place[0] = element[0];
                    place[2..][..element.len() - 1].copy_from_slice(&element[1..]);
                }
            }
        }
    }

    /// Returns the elements of `unit` bytes that lie in `image`.
    fn gather(self, unit: usize, image: &[u8]) -> Vec<u8> {
        match self {
            Layout::Dense => image.to_vec(),
            Layout::Gaps => {
                let places = image.chunks_exact(self.extent(unit));
                let mut data = Vec::with_capacity(places.len() * unit);
                for place in places {
                    data.push(place[0]);
                    data.extend_from_slice(&place[2..][..unit - 1]);
                }
                data
            }
        }
    }

    /// Returns the datatype of one element.
    fn ty(self, unit: usize) -> Type {
        let byte = Predefined::new().of(Basic::BYTE).clone();
        let made = match self {
            Layout::Dense => Datatype::contiguous_of(Width::Int, unit as i64, &byte),
            Layout::Gaps => Datatype::hindexed(Width::Int, &[1, unit as i64 - 1], &[0, 2], &byte)
                .and_then(|ty| Datatype::resized(Width::Int, &ty, 0, unit as i64 + 3)),
        };
        made.expect("a datatype")
    }
}

/// Byte in gaps, and in places to which nothing was written.
const UNTOUCHED: u8 = 0xa5;

/// Expected data after a call.
#[derive(Debug, Clone)]
pub enum Expected {
    These(Vec<u8>),
    /// Sums of floating-point numbers, up to rounding.
    Near(Vec<u8>),
    /// Not defined by the standard. Gaps must still be unchanged.
    Anything,
}

/// A buffer of `len` elements.
pub struct Memory {
    what: &'static str,
    staging: Staging,
    layout: Layout,
    unit: usize,
    len: usize,
    ty: Type,
    before: Vec<u8>,
    expected: Expected,
}

impl Memory {
    /// Makes a buffer. `before`: the initial data. If they are shorter than the buffer, the rest is untouched.
    pub fn new(
        pool: &StagingPool,
        what: &'static str,
        (layout, unit, len): (Layout, usize, usize),
        before: Vec<u8>,
        expected: Expected,
    ) -> Memory {
        let staging = pool.take(layout.extent(unit) * len);
        let memory =
            Memory { what, staging, layout, unit, len, ty: layout.ty(unit), before, expected };
        memory.reset();
        memory
    }

    /// Restores everything as it was before the call.
    pub fn reset(&self) {
        self.staging.sge().fill(&self.image(&self.before));
    }

    /// Returns the memory with `data` in its elements from the first on.
    fn image(&self, data: &[u8]) -> Vec<u8> {
        let mut image = vec![UNTOUCHED; self.staging.len()];
        self.layout.rank_buffers(self.unit, data, &mut image);
        image
    }

    /// Returns `count` elements from element `first` on.
    pub fn block(&self, first: usize, count: usize) -> Buffer {
        assert!(first + count <= self.len, "{}: {first} + {count} of {}", self.what, self.len);
        let start = self.staging.sge().ptr().wrapping_add(first * self.layout.extent(self.unit));
        // SAFETY: the memory holds these elements, as just asserted, and lives as long as the test
        // keeps `self`: until the call is complete.
        unsafe { Buffer::new(start, count, self.ty.clone()) }
    }

    pub fn whole(&self) -> Buffer {
        self.block(0, self.len)
    }

    /// Returns the present data.
    pub fn data(&self) -> Vec<u8> {
        self.layout.gather(self.unit, &self.now())
    }

    fn now(&self) -> Vec<u8> {
        let mut now = vec![0; self.staging.len()];
        self.staging.sge().read(&mut now);
        now
    }

    /// Returns an error if something is wrong after the call.
    pub fn check(&self) -> Result<(), String> {
        let data = self.data();
        let expected = match &self.expected {
            Expected::These(expected) => expected.clone(),
            Expected::Near(expected) => {
                near(&data, expected).map_err(|why| format!("{}: {why}", self.what))?;
                data
            }
            Expected::Anything => data,
        };
        let (now, right) = (self.now(), self.image(&expected));
        // The memory is first compared as a whole, because a comparison byte by byte takes most of a test's time.
        let differs = || now.iter().zip(&right).position(|(a, b)| a != b);
        match if now == right { None } else { differs() } {
            None => Ok(()),
            Some(at) => Err(format!(
                "{}: byte {at} of {} ({} elements of {} bytes, {:?}) is {:#04x}, not {:#04x}",
                self.what,
                now.len(),
                self.len,
                self.unit,
                self.layout,
                now[at],
                right[at]
            )),
        }
    }
}

/// Compares results of sums of at most some dozens of numbers below 1, with a tolerance for rounding.
fn near(data: &[u8], expected: &[u8]) -> Result<(), String> {
    for (i, (a, b)) in data.chunks_exact(8).zip(expected.chunks_exact(8)).enumerate() {
        let number = |word: &[u8]| f64::from_ne_bytes(word.try_into().expect("8 bytes"));
        let (a, b) = (number(a), number(b));
        if (a - b).abs() > 1e-12 || a.is_nan() {
            return Err(format!("number {i} is {a}, not {b}"));
        }
    }
    Ok(())
}
