//! Memory that operations were given, as slices that system calls take. The only place that makes them.

use weft_fabric::Sge;

/// Memory that may go to another thread: whoever gave it keeps it until the operation is over, which waits for that thread.
#[derive(Clone, Copy)]
pub struct Memory(Sge);

// SAFETY: an address with a length; `Sge::new` was promised that the memory is this operation's until it is over.
unsafe impl Send for Memory {}

impl From<Sge> for Memory {
    fn from(sge: Sge) -> Memory {
        Memory(sge)
    }
}

impl Memory {
    /// Length in bytes.
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Its first byte, for the system.
    pub fn ptr(self) -> *mut u8 {
        self.0.ptr()
    }

    /// The part of `len` bytes that starts at `offset`.
    pub fn part(self, offset: usize, len: usize) -> Memory {
        Memory(self.0.part(offset, len))
    }

    /// To be read, in `f` alone.
    pub fn read<T>(self, f: impl FnOnce(&[u8]) -> T) -> T {
        if self.0.is_empty() {
            return f(&[]);
        }
        // SAFETY: `Sge::new` was promised memory that is readable and does not change until the operation is over.
        f(unsafe { std::slice::from_raw_parts(self.0.ptr(), self.0.len()) })
    }

    /// To be written, in `f` alone.
    pub fn write<T>(self, f: impl FnOnce(&mut [u8]) -> T) -> T {
        if self.0.is_empty() {
            return f(&mut []);
        }
        // SAFETY: `Sge::new` was promised writable memory to which nobody else has a reference until the operation is
        // over; parts that threads have at once do not overlap.
        f(unsafe { std::slice::from_raw_parts_mut(self.0.ptr(), self.0.len()) })
    }
}
