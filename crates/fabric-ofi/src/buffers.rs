//! Buffers of one size, for what is sent and for what arrives, registered where the provider wants that.

use crate::ffi::{FI_MR_LOCAL, FI_RECV, FI_TRANSMIT};
use crate::object::{Objects, Registration};
use crate::random::random;
use std::ffi::c_void;
use std::ptr;
use weft_fabric::block::Block;
use weft_fabric::{Fault, Sge};

/// Bytes of a buffer: short enough that providers take it as one piece. What is longer than 16 KiB ofi_rxm asks the receiver for
/// first, and then shorter messages overtake it.
pub const BUFFER: usize = 8192;

/// Buffers that are made at a time.
const CHUNK: usize = 16;

struct Chunk {
    memory: Block<u8>,
    registration: Option<Registration>,
}

#[derive(Default)]
pub struct Buffers {
    chunks: Vec<Chunk>,
    free: Vec<u32>,
}

impl Buffers {
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

    pub fn count(&self) -> usize {
        self.chunks.len() * CHUNK
    }

    fn grow(&mut self, objects: &Objects) -> Result<(), Fault> {
        let memory = Block::new(vec![0u8; CHUNK * BUFFER]);
        let registration = match objects.facts.has(FI_MR_LOCAL) {
            // SAFETY: the chunk lives until its registration is closed: see `drop`.
            true => Some(unsafe {
                let (at, len) = (memory.first().as_ptr(), CHUNK * BUFFER);
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
            let at = chunk.memory.first().add(buffer as usize % CHUNK * BUFFER);
            Sge::new(at.as_ptr(), BUFFER)
        }
    }

    /// What the provider knows its memory by.
    pub fn descriptor(&self, buffer: u32) -> *mut c_void {
        let chunk = &self.chunks[buffer as usize / CHUNK];
        chunk.registration.as_ref().map_or(ptr::null_mut(), Registration::descriptor)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // Before the memory goes.
        self.registration = None;
    }
}
