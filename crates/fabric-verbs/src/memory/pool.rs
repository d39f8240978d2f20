//! Bounce buffers for data whose own memory is not registered.

use crate::VerbsConnectError;
use crate::ffi::ibv_sge;
use crate::memory::Memories;
use crate::sizes::BUFFER;
use weft_fabric::Sge;

/// Number of buffers of a process.
const BUFFERS: usize = 128;

pub struct RegisteredPool {
    registration: u32,
    memory: Sge,
    free: Vec<u32>,
}

impl RegisteredPool {
    /// Size of a pool in bytes.
    pub const BYTES: usize = BUFFERS * BUFFER;

    pub fn new(memories: &mut Memories) -> Result<RegisteredPool, VerbsConnectError> {
        let (registration, start) =
            memories.buffers(RegisteredPool::BYTES, None).map_err(|fault| {
                VerbsConnectError::from_fault(&fault, "registering buffers", "all rails")
            })?;
        // SAFETY: `Sge::new` needs `BYTES` valid bytes: `memories.buffers` has just mapped them, and they live as long as
        // `memories`.
        let memory = unsafe { Sge::new(start, RegisteredPool::BYTES) };
        Ok(RegisteredPool { registration, memory, free: (0..BUFFERS as u32).collect() })
    }

    #[inline]
    pub fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// Returns true if few buffers are free. A request that takes a buffer must then be signaled, so that the buffer comes back
    /// soon.
    #[inline]
    pub fn is_low(&self) -> bool {
        self.free.len() < BUFFERS / 2
    }

    #[inline]
    pub fn give_back(&mut self, buffer: u32) {
        self.free.push(buffer);
    }

    /// Returns `len` bytes of a buffer, starting at `offset`.
    #[inline]
    pub fn part(&self, buffer: u32, offset: usize, len: usize) -> Sge {
        self.memory.part(buffer as usize * BUFFER, BUFFER).part(offset, len)
    }

    /// Returns the scatter/gather element of the first `len` bytes of a buffer, for an operation on `rail`.
    #[inline]
    pub fn sge(&self, memories: &Memories, rail: usize, buffer: u32, len: usize) -> ibv_sge {
        memories.sge(self.registration, rail, self.part(buffer, 0, len))
    }
}
