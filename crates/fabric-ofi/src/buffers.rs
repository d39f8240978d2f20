//! Buffers of one size, for what is sent and for what arrives, registered where the provider wants that.

use crate::ffi::{FI_MR_LOCAL, FI_RECV, FI_TRANSMIT};
use crate::object::{MemoryRegistration, Objects};
use crate::random::random;
use std::ffi::c_void;
use std::ptr;
use weft_fabric::block::OwnedBlock;
use weft_fabric::{Fault, Sge};

/// Buffers that are made at a time.
const CHUNK: usize = 16;

struct Chunk {
    memory: OwnedBlock<u8>,
    registration: Option<MemoryRegistration>,
}

pub struct MessageBuffers {
    /// Bytes of each.
    size: usize,
    chunks: Vec<Chunk>,
    free: Vec<u32>,
}

impl MessageBuffers {
    /// None yet, of `size` bytes each.
    pub fn new(size: usize) -> MessageBuffers {
        MessageBuffers { size, chunks: Vec::new(), free: Vec::new() }
    }

    /// A free buffer; more are made when none is left.
    pub fn take(&mut self, objects: &Objects) -> Result<u32, Fault> {
        if self.free.is_empty() {
            self.grow(objects)?;
        }
        Ok(self.free.pop().expect("has just grown"))
    }

    pub fn give_back(&mut self, buffer: u32) {
        self.free.push(buffer);
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> usize {
        self.chunks.len() * CHUNK * self.size
    }

    fn grow(&mut self, objects: &Objects) -> Result<(), Fault> {
        let memory = OwnedBlock::new(vec![0u8; CHUNK * self.size]);
        let registration = match objects.facts.has(FI_MR_LOCAL) {
            // SAFETY: the chunk lives until its registration is closed: see `drop`.
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

    /// The memory of a buffer.
    pub fn memory(&self, buffer: u32) -> Sge {
        let chunk = &self.chunks[buffer as usize / CHUNK];
        // SAFETY: inside the chunk, which lives as long as this; who takes the buffer has it alone.
        unsafe {
            let at = chunk.memory.first().add(buffer as usize % CHUNK * self.size);
            Sge::new(at.as_ptr(), self.size)
        }
    }

    /// What the provider knows its memory by.
    pub fn descriptor(&self, buffer: u32) -> *mut c_void {
        let chunk = &self.chunks[buffer as usize / CHUNK];
        chunk.registration.as_ref().map_or(ptr::null_mut(), MemoryRegistration::descriptor)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // Before the memory goes.
        self.registration = None;
    }
}
