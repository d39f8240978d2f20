//! Memory of an operation as slices for system calls. No other file of the crate makes such slices.

use weft_fabric::Sge;

/// Memory that may go to another thread. The owner keeps the memory until the operation is complete, and the operation waits for
/// the thread.
#[derive(Clone, Copy)]
pub struct AccessMemory(Sge);

// SAFETY: this is an address with a length. The contract of `Sge::new` keeps the memory for this operation until it is complete,
// and the operation waits for every thread that it gives the memory to.
unsafe impl Send for AccessMemory {}

impl From<Sge> for AccessMemory {
    fn from(sge: Sge) -> AccessMemory {
        AccessMemory(sge)
    }
}

impl AccessMemory {
    /// Returns the length in bytes.
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Returns the address of the first byte, for system calls.
    pub fn ptr(self) -> *mut u8 {
        self.0.ptr()
    }

    /// Returns the part of `len` bytes that starts at `offset`.
    pub fn part(self, offset: usize, len: usize) -> AccessMemory {
        AccessMemory(self.0.part(offset, len))
    }

    /// Lends the bytes to `f` for reading.
    pub fn read<T>(self, f: impl FnOnce(&[u8]) -> T) -> T {
        if self.0.is_empty() {
            return f(&[]);
        }
        // SAFETY: the contract of `Sge::new` promises readable memory that does not change until the operation is complete.
        f(unsafe { std::slice::from_raw_parts(self.0.ptr(), self.0.len()) })
    }

    /// Lends the bytes to `f` for writing.
    pub fn write<T>(self, f: impl FnOnce(&mut [u8]) -> T) -> T {
        if self.0.is_empty() {
            return f(&mut []);
        }
        // SAFETY: the contract of `Sge::new` promises writable memory without another reference until the operation is
        // complete. Parts that threads use at the same time do not overlap.
        f(unsafe { std::slice::from_raw_parts_mut(self.0.ptr(), self.0.len()) })
    }
}
