//! Buffers of one size for sent and arriving messages. They are registered if the provider needs that.

use crate::ffi::{FI_MR_LOCAL, FI_RECV, FI_TRANSMIT};
use crate::object::{MemoryRegistration, Objects};
use crate::random::random;
use std::ffi::c_void;
use std::ptr;
use weft_fabric::block::OwnedBlock;
use weft_fabric::{Fault, Sge};

/// Number of buffers that are allocated at a time.
const CHUNK: usize = 16;

struct Chunk {
    memory: OwnedBlock<u8>,
    registration: Option<MemoryRegistration>,
}

pub struct MessageBuffers {
    /// Size of each buffer, in bytes.
    size: usize,
    chunks: Vec<Chunk>,
    free: Vec<u32>,
}

impl MessageBuffers {
    /// Returns an empty pool of buffers of `size` bytes each.
    pub fn new(size: usize) -> MessageBuffers {
        MessageBuffers { size, chunks: Vec::new(), free: Vec::new() }
    }

    /// Takes a free buffer. Allocates more buffers if no buffer is free.
    pub fn take(&mut self, objects: &Objects) -> Result<u32, Fault> {
        if self.free.is_empty() {
            self.grow(objects)?;
        }
        Ok(self.free.pop().expect("has just grown"))
    }

    pub fn give_back(&mut self, buffer: u32) {
        self.free.push(buffer);
    }

    /// Returns the total size of all buffers, in bytes.
    pub fn bytes(&self) -> usize {
        self.chunks.len() * CHUNK * self.size
    }

    fn grow(&mut self, objects: &Objects) -> Result<(), Fault> {
        let memory = OwnedBlock::new(vec![0u8; CHUNK * self.size]);
        let registration = match objects.facts.has(FI_MR_LOCAL) {
            // SAFETY: `register` needs memory that stays mapped until the registration is closed. `Chunk::drop` closes the
            // registration before it frees the memory.
            true => Some(unsafe {
                let (at, len) = (memory.first().as_ptr(), CHUNK * self.size);
                objects.register(at, len, FI_TRANSMIT | FI_RECV, random() >> 1)
            }?),
            false => None,
        };
        let first = (self.chunks.len() * CHUNK) as u32;
        self.chunks.push(Chunk { memory, registration });
        self.free.extend((first..first + CHUNK as u32).rev());
        Ok(())
    }

    /// Returns the memory of a buffer.
    pub fn memory(&self, buffer: u32) -> Sge {
        let chunk = &self.chunks[buffer as usize / CHUNK];
        // SAFETY: the buffer lies inside its chunk, which lives as long as the pool. Only the taker of the buffer touches it.
        unsafe {
            let at = chunk.memory.first().add(buffer as usize % CHUNK * self.size);
            Sge::new(at.as_ptr(), self.size)
        }
    }

    /// Returns the provider's descriptor for the memory of a buffer.
    pub fn descriptor(&self, buffer: u32) -> *mut c_void {
        let chunk = &self.chunks[buffer as usize / CHUNK];
        chunk.registration.as_ref().map_or(ptr::null_mut(), MemoryRegistration::descriptor)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // The registration is closed before its memory is freed.
        self.registration = None;
    }
}
