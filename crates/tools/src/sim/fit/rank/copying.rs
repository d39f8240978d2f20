//! Measurements of copies: of both ranks at once, of memory that ranks share, and by a processor.
//!
//! ```text
//!   exchange   both ranks send and receive at the same time: no rank waits, and helps the other rank
//!   reads      rank 1 writes blocks of a window and sends a message; rank 0 gets the blocks, and answers
//!   entry      an operation on MPI_COMM_SELF
//! ```

use super::{
    BYTE, FitProgram, INFO_NULL, LAPS, LENGTHS, READS, ROUNDS, SHORT, SUM, TAG, WORLD, quickest,
    rounds, timed,
};

/// Maximum number of blocks of a window, and of their bytes together. All of them fit in a processor's own caches.
const BLOCKS: usize = 8;
const BLOCK_BYTES: usize = 256 << 10;

/// Handles of the standard ABI.
const SELF: usize = 0x102;
const DOUBLE: usize = 0x214;

/// Calls the function at `address`.
///
/// # Safety
/// The function is an MPI function with these arguments.
unsafe fn called(address: usize, arguments: &[usize]) -> Result<(), String> {
    // SAFETY: the caller promises that the function has these arguments.
    let code = unsafe { weft_client::call(address, arguments) } as i32;
    if code == 0 { Ok(()) } else { Err(format!("an MPI function returned {code}")) }
}

impl FitProgram {
    /// Returns the time of an exchange of `bytes` bytes.
    pub(super) fn exchange(&mut self, bytes: usize) -> Result<f64, String> {
        let (out, into) = (self.out.as_ptr() as usize, self.into.as_mut_ptr() as usize);
        let peer = 1 - self.program.me;
        let exchange = self.program.library.address("MPI_Sendrecv")?;
        let arguments = [out, bytes, BYTE, peer, TAG, into, bytes, BYTE, peer, TAG, WORLD, 0];
        quickest(rounds(bytes), || {
            let us = timed(|| {
                // SAFETY: MPI_Sendrecv has these parameters, and both buffers have at least `bytes` bytes.
                (0..LAPS).try_for_each(|_| unsafe { called(exchange, &arguments) })
            })?;
            Ok(us / LAPS as f64)
        })
    }

    /// Returns the times of reads of shared memory that the other rank has just written.
    pub(super) fn reads(&mut self) -> Result<[f64; READS.len()], String> {
        let mut base = 0usize;
        let allocated = [BLOCK_BYTES, 1, INFO_NULL, WORLD, &raw mut base as usize];
        let window = self.program.made("MPI_Win_allocate", &allocated)?;
        self.program.call("MPI_Win_lock_all", &[0, window])?;
        let mut times = [0.0; READS.len()];
        for (time, bytes) in times.iter_mut().zip(READS) {
            *time = self.reads_of(bytes, window, base)?;
        }
        self.program.call("MPI_Win_unlock_all", &[window])?;
        self.program.free("MPI_Win_free", window)?;
        Ok(times)
    }

    /// Returns the time of a read of `bytes` bytes of a window, whose memory of this rank is at `base`.
    fn reads_of(&mut self, bytes: usize, window: usize, base: usize) -> Result<f64, String> {
        let blocks = (BLOCK_BYTES / bytes).clamp(1, BLOCKS);
        quickest(rounds(bytes), || {
            if !self.is_first() {
                // SAFETY: the window has BLOCK_BYTES bytes at `base`, and the other rank reads them only after the message below.
                let memory =
                    unsafe { std::slice::from_raw_parts_mut(base as *mut u8, BLOCK_BYTES) };
                memory[..blocks * bytes].fill(std::hint::black_box(1));
                self.send(SHORT)?;
                self.receive(SHORT)?;
                return Ok(0.0);
            }
            self.receive(SHORT)?;
            let into = self.into.as_mut_ptr() as usize;
            let us = timed(|| {
                (0..blocks).try_for_each(|block| {
                    let get = [into, bytes, BYTE, 1, block * bytes, bytes, BYTE, window];
                    self.program.call("MPI_Get", &get)?;
                    self.program.call("MPI_Win_flush", &[1, window])
                })
            })?;
            self.send(SHORT)?;
            Ok(us / blocks as f64)
        })
    }

    /// Returns the time of a copy of `bytes` bytes by the processor. Both ranks copy, as both ranks of a program do.
    pub(super) fn copy(&mut self, bytes: usize) -> Result<f64, String> {
        let words = bytes / 8;
        quickest(rounds(bytes), || {
            self.program.barrier()?;
            timed(|| {
                self.into[..words].copy_from_slice(std::hint::black_box(&self.out[..words]));
                std::hint::black_box(&mut self.into);
                Ok(())
            })
        })
    }

    /// Returns the time of a reduction that needs no other rank.
    pub(super) fn entry(&mut self) -> Result<f64, String> {
        let (out, into) = (self.out.as_ptr() as usize, self.into.as_mut_ptr() as usize);
        let allreduce = self.program.library.address("MPI_Allreduce")?;
        let arguments = [out, into, 1, DOUBLE, SUM, SELF];
        quickest(ROUNDS, || {
            let us = timed(|| {
                // SAFETY: MPI_Allreduce has these parameters, and both buffers have a number.
                (0..LAPS).try_for_each(|_| unsafe { called(allreduce, &arguments) })
            })?;
            Ok(us / LAPS as f64)
        })
    }
}

const _: () = assert!(READS[READS.len() - 1] <= BLOCK_BYTES && LENGTHS[0] >= SHORT);
