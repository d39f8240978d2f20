//! Number of calls of each function, in a file that the simulation reads at the end of the job. It has a row of 64-bit numbers for each
//! rank.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Maps the row of a rank. Returns `None` if the file cannot be made; then the report has fewer figures.
fn map(directory: &Path, rank: usize, ranks: usize) -> Option<&'static [AtomicU64]> {
    let columns = crate::NAMES.len();
    let len = ranks * columns * size_of::<u64>();
    let options = File::options().read(true).write(true).create(true).truncate(false).clone();
    let file = options.open(directory.join("counts")).ok()?;
    file.set_len(len as u64).ok()?;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: without MAP_FIXED, mmap(2) makes a new mapping that replaces nothing.
    let base = unsafe {
        libc::mmap(std::ptr::null_mut(), len, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
    };
    if base == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the row lies within the mapping, which is never unmapped and is aligned to a page. Atomics have no invalid values.
    Some(unsafe {
        std::slice::from_raw_parts(base.cast::<AtomicU64>().add(rank * columns), columns)
    })
}

/// Counts a call of the function with this number.
pub fn add(directory: &Path, rank: usize, ranks: usize, index: u64) {
    static ROW: OnceLock<Option<&'static [AtomicU64]>> = OnceLock::new();
    let row = ROW.get_or_init(|| map(directory, rank, ranks));
    if let Some(count) = row.and_then(|row| row.get(index as usize)) {
        count.fetch_add(1, Relaxed);
    }
}
