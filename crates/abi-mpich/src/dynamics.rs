//! Handles of objects that the program made. The standard's handle has more bits than an `int`:
//!
//! ```text
//!   standard   lane (4) | generation (24) | index (24) | class (12)
//!   int        1 | lane (4) | 0 (3) | index (24)          the lane is 0 except for requests
//! ```
//! A table by index keeps the generation, and the lane of other objects. An entry is written when the handle is returned to the
//! program, which has the `int` from then on only; so readers need no more than an atomic load. Tables grow by chunks.

use std::ffi::c_int;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

const CHUNK: usize = 1024;
const CHUNKS: usize = (1 << 24) / CHUNK;
const DYNAMIC: u32 = 1 << 31;
const LANE_SHIFT: u32 = 27;
const INDEX: u32 = (1 << 24) - 1;
/// Bits that are 0 in every handle of this module. Predefined datatypes with bit 31 have one of them.
const ZERO: u32 = 0x0700_0000;

/// Returns true if a handle is of an object that the program made.
#[inline(always)]
pub fn is(handle: c_int) -> bool {
    handle as u32 & (DYNAMIC | ZERO) == DYNAMIC
}

/// Returns a handle that no object has, for a number that is no handle. Errors name the number: it lies above the predefined
/// handles and below all others.
#[cold]
pub fn unknown(handle: c_int) -> usize {
    let handle = handle as u32 as usize;
    if handle < 0x1000 { 0 } else { handle }
}

type Chunk = [AtomicU32; CHUNK];

/// Generations and lanes of the objects of one class and lane, by index.
struct Generations([AtomicPtr<Chunk>; CHUNKS]);

impl Generations {
    const fn new() -> Generations {
        Generations([const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS])
    }

    #[inline(always)]
    fn get(&self, index: usize) -> Option<u32> {
        let chunk = self.0[index / CHUNK].load(Ordering::Acquire);
        // SAFETY: a chunk is never freed.
        (!chunk.is_null()).then(|| unsafe { &*chunk }[index % CHUNK].load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn set(&self, index: usize, value: u32) {
        let mut chunk = self.0[index / CHUNK].load(Ordering::Acquire);
        if chunk.is_null() {
            chunk = self.grow(index / CHUNK);
        }
        // SAFETY: a chunk is never freed.
        let chunk = unsafe { &*chunk };
        chunk[index % CHUNK].store(value, Ordering::Relaxed);
    }

    #[cold]
    fn grow(&self, at: usize) -> *mut Chunk {
        let new = Box::into_raw(Box::new([const { AtomicU32::new(0) }; CHUNK]));
        let none = std::ptr::null_mut();
        match self.0[at].compare_exchange(none, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: no other thread has seen `new`.
                drop(unsafe { Box::from_raw(new) });
                other
            }
        }
    }
}

/// The table of one class. `LANES` is 16 if each lane has indices of its own.
struct Dynamics<const LANES: usize> {
    /// Class of the standard's handles, once there is one.
    class: AtomicUsize,
    lanes: [Generations; LANES],
}

impl<const LANES: usize> Dynamics<LANES> {
    const fn new() -> Dynamics<LANES> {
        Dynamics { class: AtomicUsize::new(0), lanes: [const { Generations::new() }; LANES] }
    }

    #[inline(always)]
    fn to_standard(&self, handle: c_int) -> usize {
        let handle = handle as u32;
        let lane = (handle >> LANE_SHIFT & 0xf) as usize;
        let index = (handle & INDEX) as usize;
        let Some(value) = self.lanes.get(lane).and_then(|lane| lane.get(index)) else {
            return unknown(handle as c_int);
        };
        (value as usize) << 36 | index << 12 | self.class.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn of_standard(&self, standard: usize) -> c_int {
        let index = standard >> 12 & INDEX as usize;
        let lane = if LANES == 1 { 0 } else { standard >> 60 };
        self.lanes[lane].set(index, (standard >> 36) as u32);
        let class = standard & 0xfff;
        if self.class.load(Ordering::Relaxed) != class {
            self.class.store(class, Ordering::Relaxed);
        }
        (DYNAMIC | (lane as u32) << LANE_SHIFT | index as u32) as c_int
    }
}

/// Defines the tables, one module per class.
macro_rules! classes {
    ($($name:ident: $lanes:literal),*) => { $(
        #[allow(non_snake_case)]
        pub mod $name {
            static TABLE: super::Dynamics<$lanes> = super::Dynamics::new();

            #[inline(always)]
            pub fn to_standard(handle: super::c_int) -> usize {
                TABLE.to_standard(handle)
            }

            #[inline(always)]
            pub fn from_standard(standard: usize) -> super::c_int {
                TABLE.of_standard(standard)
            }
        }
    )* };
}

classes! {
    Comm: 1, Group: 1, Datatype: 1, Op: 1, Info: 1, Errhandler: 1, Request: 16, Message: 1, Session: 1, Win: 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_return_with_their_generation_and_lane() {
        for standard in [0x1_0000_1007_usize, 0xf << 60 | 0xff_ffff << 36 | 0x12345 << 12 | 7] {
            let handle = Request::from_standard(standard);
            assert!(is(handle), "{handle:#x}");
            assert_eq!(Request::to_standard(handle), standard);
        }
        let standard = 3 << 60 | 5 << 36 | 0x2000 << 12 | 1;
        assert_eq!(Comm::to_standard(Comm::from_standard(standard)), standard);
    }

    #[test]
    fn no_predefined_handle_is_dynamic() {
        for handle in [0x4400_0000_u32, 0x8c00_0004, 0x4c00_0405, 0x2c00_0000, 0] {
            assert!(!is(handle as c_int), "{handle:#x}");
        }
        let absent = DYNAMIC | 77;
        assert_eq!(Win::to_standard(absent as c_int), absent as usize, "it was never returned");
    }
}
