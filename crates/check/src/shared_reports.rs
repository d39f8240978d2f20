//! Reports of the ranks of a host in shared memory, so that an error that many ranks make is printed once.
//!
//! A finding has a key: its class, and the functions and call sites of its calls. The first rank that stores the key in the table prints the
//! report. The others count themselves there, and the first one prints their number at MPI_Finalize.

use crate::finding::CheckFinding;
use crate::library::mpi;
use crate::shadow::MPI_COMM_WORLD;
use std::ffi::c_int;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const MPI_COMM_TYPE_SHARED: usize = 221;
const MPI_INFO_NULL: usize = 0x130;

/// Number of different findings on a host that are counted. All ranks print those that come later.
const SLOTS: usize = 1024;

/// A finding in the table.
#[repr(C)]
struct ReportSlot {
    /// Key of the finding, or 0.
    key: AtomicU64,
    /// Number of ranks.
    ranks: AtomicU64,
    /// 1 after the first rank has printed the finding.
    printed: AtomicU64,
}

/// Number of names on a host. Other ranks cannot print those that come later.
const NAMES: usize = 1024;

/// Maximum length of a name in bytes. A longer one is cut off.
const NAME: usize = 240;

/// A name in the table.
#[repr(C)]
struct SharedName {
    /// Key of the name, or 0.
    key: AtomicU64,
    /// Length of the text and 1; 0 until the text is there.
    length: AtomicU64,
    text: [AtomicU8; NAME],
}

/// Table in shared memory, with the window and the communicator that hold it.
struct SharedReports {
    slots: &'static [ReportSlot],
    names: &'static [SharedName],
    window: usize,
    comm: usize,
}

/// Size of the table in bytes.
const TABLE_SIZE: usize = SLOTS * size_of::<ReportSlot>() + NAMES * size_of::<SharedName>();

static TABLE: OnceLock<SharedReports> = OnceLock::new();

/// Makes the table of this host.
///
/// # Safety
/// MPI is initialized, and all processes call this function.
pub unsafe fn begin() {
    let (mut comm, mut window, mut base, mut rank) = (0usize, 0usize, 0usize, 0 as c_int);
    let (mut bytes, mut unit) = (0i64, 0 as c_int);
    // SAFETY: the results are local variables, and all processes are here.
    let (slots, names) = unsafe {
        let new = &raw mut comm;
        mpi!(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, new));
        mpi!(MPI_Comm_rank(comm, &raw mut rank));
        let size = if rank == 0 { TABLE_SIZE } else { 0 };
        let (to, new) = (&raw mut base, &raw mut window);
        mpi!(MPI_Win_allocate_shared(size, 8usize, MPI_INFO_NULL, comm, to, new));
        let (bytes, unit, to) = (&raw mut bytes, &raw mut unit, &raw mut base);
        if mpi!(MPI_Win_shared_query(window, 0, bytes, unit, to)) != 0 || base == 0 {
            return;
        }
        if rank == 0 {
            std::ptr::write_bytes(base as *mut u8, 0, TABLE_SIZE);
        }
        mpi!(MPI_Barrier(comm));
        // The memory lives until `end`, after which nothing is reported.
        let names = base + SLOTS * size_of::<ReportSlot>();
        let slots = std::slice::from_raw_parts(base as *const ReportSlot, SLOTS);
        (slots, std::slice::from_raw_parts(names as *const SharedName, NAMES))
    };
    TABLE.get_or_init(|| SharedReports { slots, names, window, comm });
}

/// Frees the table. Nothing is reported afterwards.
///
/// # Safety
/// All processes call this function.
pub unsafe fn end() {
    if let Some(table) = TABLE.get() {
        let (mut window, mut comm) = (table.window, table.comm);
        // SAFETY: both are ours.
        unsafe {
            mpi!(MPI_Win_free(&raw mut window));
            mpi!(MPI_Comm_free(&raw mut comm));
        }
    }
}

/// Returns the key of a finding.
pub fn key(finding: &CheckFinding) -> u64 {
    let mut hasher = DefaultHasher::new();
    finding.class.hash(&mut hasher);
    for party in &finding.parties {
        (&party.function, party.site).hash(&mut hasher);
    }
    hasher.finish().max(1)
}

/// Returns the slot of a key, and true if this call has stored the key; `None` if the table is full.
fn slot(slots: &[ReportSlot], key: u64) -> Option<(&ReportSlot, bool)> {
    let start = key as usize % slots.len();
    (0..slots.len()).find_map(|i| {
        let slot = &slots[(start + i) % slots.len()];
        match slot.key.compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Some((slot, true)),
            Err(stored) if stored == key => Some((slot, false)),
            Err(_) => None,
        }
    })
}

/// Maximum time for which a rank waits until another rank has printed a finding.
const PRINTING: Duration = Duration::from_secs(2);

/// Notes that this rank has a finding of a key for the first time. Returns true if this rank must print it. Else another rank has printed it:
/// the error may end the job, so no rank goes on before.
pub fn is_first(key: u64) -> bool {
    let Some(table) = TABLE.get() else { return true };
    let Some((slot, is_first)) = slot(table.slots, key) else { return true };
    slot.ranks.fetch_add(1, Ordering::Relaxed);
    let begin = Instant::now();
    while !is_first && slot.printed.load(Ordering::Relaxed) == 0 && begin.elapsed() < PRINTING {
        std::thread::sleep(Duration::from_millis(1));
    }
    is_first
}

/// Notes that this rank has printed the finding of a key.
pub fn printed(key: u64) {
    if let Some((slot, _)) = TABLE.get().and_then(|table| slot(table.slots, key)) {
        slot.printed.store(1, Ordering::Relaxed);
    }
}

/// Gives the other ranks of this host a name.
pub fn share_name(key: u64, name: &str) {
    let Some(table) = TABLE.get() else { return };
    let key = key.max(1);
    let slot = table.names.iter().find(|slot| {
        let stored = slot.key.compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed);
        stored.is_ok() || stored == Err(key)
    });
    if let Some(slot) = slot {
        // Ranks with the same name write the same bytes.
        let bytes = name.as_bytes().iter().zip(&slot.text);
        bytes.for_each(|(&byte, place)| place.store(byte, Ordering::Relaxed));
        slot.length.store(name.len().min(NAME) as u64 + 1, Ordering::Release);
    }
}

/// Returns a name that a rank of this host has given.
pub fn shared_name(key: u64) -> Option<String> {
    let slot = TABLE.get()?.names.iter().find(|s| s.key.load(Ordering::Relaxed) == key.max(1))?;
    let length = slot.length.load(Ordering::Acquire).checked_sub(1)? as usize;
    let bytes: Vec<u8> = slot.text[..length].iter().map(|b| b.load(Ordering::Relaxed)).collect();
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the number of ranks of this host that have a finding of a key.
pub fn ranks(key: u64) -> u64 {
    let found = TABLE.get().and_then(|table| slot(table.slots, key));
    found.map_or(1, |(slot, _)| slot.ranks.load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_stored_once() {
        let zero = || AtomicU64::new(0);
        let empty = || ReportSlot { key: zero(), ranks: zero(), printed: zero() };
        let slots: Vec<_> = (0..2).map(|_| empty()).collect();
        let stored = |key| slot(&slots, key).map(|(_, is_first)| is_first);
        assert_eq!(
            [stored(5), stored(5), stored(7), stored(7)],
            [true, false, true, false].map(Some)
        );
        assert_eq!(stored(9), None);
    }
}
