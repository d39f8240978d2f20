//! Buffers for what is sent, or read, without registration of its own.

use crate::VerbsConnectError;
use crate::ffi::ibv_sge;
use crate::memory::Memories;
use crate::rail::BUFFER;
use weft_fabric::Sge;

/// Buffers of a process.
const BUFFERS: usize = 128;

pub struct RegisteredPool {
    registration: u32,
    memory: Sge,
    free: Vec<u32>,
}

impl RegisteredPool {
    /// Memory of a pool.
    pub const BYTES: usize = BUFFERS * BUFFER;

    pub fn new(memories: &mut Memories) -> Result<RegisteredPool, VerbsConnectError> {
        let (registration, start) =
            memories.buffers(RegisteredPool::BYTES, None).map_err(|fault| {
                VerbsConnectError::from_fault(&fault, "registering buffers", "all rails")
            })?;
        // SAFETY: fresh memory of that length, which lives as long as `memories`.
        let memory = unsafe { Sge::new(start, RegisteredPool::BYTES) };
        Ok(RegisteredPool { registration, memory, free: (0..BUFFERS as u32).collect() })
    }

    #[inline]
    pub fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// Few are left: whoever takes one must hear soon when it is free again.
    #[inline]
    pub fn is_low(&self) -> bool {
        self.free.len() < BUFFERS / 2
    }

    #[inline]
    pub fn give_back(&mut self, buffer: u32) {
        self.free.push(buffer);
    }

    /// The first `len` bytes of a buffer.
    #[inline]
    pub fn part(&self, buffer: u32, offset: usize, len: usize) -> Sge {
        self.memory.part(buffer as usize * BUFFER, BUFFER).part(offset, len)
    }

    /// The same as an operation on `rail` calls it.
    #[inline]
    pub fn sge(&self, memories: &Memories, rail: usize, buffer: u32, len: usize) -> ibv_sge {
        memories.sge(self.registration, rail, self.part(buffer, 0, len))
    }
}
