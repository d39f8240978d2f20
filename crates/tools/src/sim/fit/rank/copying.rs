//! Measurements of copies: of both ranks at once, of memory that ranks share, and by a processor.
//!
//! ```text
//!   exchange   both ranks send and receive at the same time: no rank waits, and helps the other rank
//!   staging    each rank copies into its part of a window, which the other rank has read before, and gets the other rank's part after a message;
//!              two halves of a part take turns, as in the library's buffers
//!   entry      an operation on MPI_COMM_SELF
//! ```

use super::{
    BYTE, FitProgram, INFO_NULL, LAPS, LENGTHS, READS, ROUNDS, SHORT, SUM, TAG, WORLD, quickest,
    rounds, timed,
};

/// Length of each half of a rank's part of the window.
const HALF: usize = READS[READS.len() - 1];

/// Times of copies into shared memory that the other rank has read, and of reads of what the other rank has just written, by length.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StagingTimes {
    pub writes: [f64; READS.len()],
    pub reads: [f64; READS.len()],
    /// Time of a read of [`SHORT`] bytes.
    pub short_read: f64,
}

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

    /// Returns the times of staging in memory of both ranks.
    pub(super) fn staging(&mut self) -> Result<StagingTimes, String> {
        let mut base = 0usize;
        let allocated = [2 * HALF, 1, INFO_NULL, WORLD, &raw mut base as usize];
        let window = self.program.made("MPI_Win_allocate", &allocated)?;
        self.program.call("MPI_Win_lock_all", &[0, window])?;
        let mut times = StagingTimes::default();
        for (at, bytes) in READS.into_iter().enumerate() {
            (times.writes[at], times.reads[at]) = self.staging_of(bytes, window, base)?;
        }
        (_, times.short_read) = self.staging_of(SHORT, window, base)?;
        self.program.call("MPI_Win_unlock_all", &[window])?;
        self.program.free("MPI_Win_free", window)?;
        Ok(times)
    }

    /// Returns the times of a write and a read of `bytes` bytes of a window, whose memory of this rank is at `base`. The time of a write is
    /// without the time of the clock.
    fn staging_of(
        &mut self,
        bytes: usize,
        window: usize,
        base: usize,
    ) -> Result<(f64, f64), String> {
        let clock = quickest(ROUNDS, || timed(|| Ok(())))?;
        let peer = 1 - self.program.me;
        let (get, flush) = (
            self.program.library.address("MPI_Get")?,
            self.program.library.address("MPI_Win_flush")?,
        );
        let (mut write, mut read) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..rounds(bytes) {
            let (mut written, mut got) = (0.0, 0.0);
            for lap in 0..LAPS {
                let half = lap % 2 * HALF;
                // SAFETY: the window has 2 HALF bytes at `base`, and the other rank reads this half only after the message below.
                let memory =
                    unsafe { std::slice::from_raw_parts_mut((base + half) as *mut u8, bytes) };
                let out = self.out.as_ptr().cast::<u8>();
                written += timed(|| {
                    // SAFETY: `out` has more than HALF bytes, and is no part of the window.
                    memory.copy_from_slice(unsafe { std::slice::from_raw_parts(out, bytes) });
                    std::hint::black_box(memory);
                    Ok(())
                })?;
                self.lap(SHORT)?;
                let into = self.into.as_mut_ptr() as usize;
                let arguments = [into, bytes, BYTE, peer, half, bytes, BYTE, window];
                got += timed(|| {
                    // SAFETY: MPI_Get and MPI_Win_flush have these parameters, and `into` has at least `bytes` bytes.
                    unsafe {
                        called(get, &arguments)?;
                        called(flush, &[peer, window])
                    }
                })?;
            }
            write = write.min(written / LAPS as f64);
            read = read.min(got / LAPS as f64);
        }
        Ok(((write - clock).max(0.0), read))
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

const _: () = assert!(HALF <= LENGTHS[LENGTHS.len() - 1] && LENGTHS[0] >= SHORT);
