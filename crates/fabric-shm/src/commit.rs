//! Commitment of the arenas' memory. Memory is committed, not filled: a page comes into existence at its first touch. To make sure
//! that the first touch succeeds, all ranks of the node count in the segment the bytes that they have committed. They commit at
//! most the memory that the machine, its control groups and the file system have left, minus the bytes that were committed and not
//! touched yet.
//!
//! No rank sees the bytes that other jobs have committed, and a program's own memory is not committed at all. If the system turns
//! out to have less memory, its OOM killer acts, or a touch ends with SIGBUS. If the system counts committed memory itself
//! (`vm.overcommit_memory` is 2), it counts a page of the arenas when the page is filled. In this case, the pages are filled when
//! they are committed.

use crate::cgroup;
use crate::segment::Segment;
use crate::sync::Ordering;
use std::cell::{Cell, OnceCell};
use std::os::fd::AsRawFd;
use weft_fabric::{Fault, FaultCause};

/// Number of bytes that are requested at once if there is room, so that small allocations need not read the limits.
const CHUNK: u64 = 256 << 10;

/// Divisor: 1/[`KEEP_BACK`] of the remaining memory is not committed, because page tables and the program need memory, too.
const KEEP_BACK: u64 = 64;

/// Account of the bytes that this rank has committed, and the limits that it must respect.
#[derive(Debug, Default)]
pub struct CommitAccount {
    /// Number of committed bytes that are not used for pages yet.
    credit: Cell<u64>,
    limits: OnceCell<Limits>,
}

#[derive(Debug)]
struct Limits {
    fills: bool,
    groups: Vec<cgroup::MemoryGroup>,
}

/// The number of bytes that a limit leaves, and the name of the limit.
struct Left {
    bytes: u64,
    bound: String,
}

impl CommitAccount {
    fn limits(&self) -> &Limits {
        self.limits.get_or_init(|| Limits {
            fills: std::fs::read_to_string("/proc/sys/vm/overcommit_memory")
                .is_ok_and(|mode| mode.trim() == "2"),
            groups: cgroup::memories(),
        })
    }

    /// Returns true if memory is filled when it is committed.
    pub fn fills(&self) -> bool {
        self.limits().fills
    }

    /// Commits `bytes` of fresh pages. Fails if the bytes that no earlier call has committed are more than 1/`parts` of the
    /// remaining memory.
    pub fn commit(&self, segment: &Segment, bytes: u64, parts: u64) -> Result<(), Fault> {
        let credit = &self.credit;
        if let Some(missing) = bytes.checked_sub(credit.get()).filter(|&missing| missing > 0) {
            let asked = match self.ask(segment, missing.next_multiple_of(CHUNK), parts) {
                Ok(asked) => asked,
                Err(_) => self.ask(segment, missing, parts).map_err(|left| left.refuse(bytes))?,
            };
            credit.set(credit.get() + asked);
        }
        credit.set(credit.get() - bytes);
        Ok(())
    }

    /// Takes back the commitment of `bytes` in pages that are fresh again.
    pub fn uncommit(&self, segment: &Segment, bytes: u64) {
        let credit = self.credit.get() + bytes;
        let keep = credit.min(CHUNK);
        self.credit.set(keep);
        segment.committed().fetch_sub(credit - keep, Ordering::AcqRel);
    }

    /// Adds `bytes` to the committed bytes. Fails if `bytes` are more than 1/`parts` of the remaining memory.
    fn ask(&self, segment: &Segment, bytes: u64, parts: u64) -> Result<u64, Left> {
        let committed = segment.committed();
        let known = committed.load(Ordering::Acquire);
        let mut left = self.left(segment, known);
        // If the bytes are refused here, they are not added even for a moment: a request of another rank could fail meanwhile.
        if left.bytes / parts >= bytes {
            let since = committed.fetch_add(bytes, Ordering::AcqRel).saturating_sub(known);
            left.bytes = left.bytes.saturating_sub(since);
            if left.bytes / parts >= bytes {
                return Ok(bytes);
            }
            committed.fetch_sub(bytes, Ordering::AcqRel);
        }
        left.bytes /= parts;
        Err(left)
    }

    /// Returns the number of bytes that may still be committed if `committed` bytes are committed already, and the limit that
    /// leaves the fewest bytes.
    fn left(&self, segment: &Segment, committed: u64) -> Left {
        let owed = committed.saturating_sub(touched(segment));
        let mut least = Left { bytes: machine(), bound: "the machine's free memory".to_owned() };
        for group in &self.limits().groups {
            if let Some(bytes) = group.left(least.bytes) {
                let bound = format!("the memory limit of the control group {}", group.name());
                least = Left { bytes, bound };
            }
        }
        if let Some(bytes) = file_system(segment).filter(|&bytes| bytes < least.bytes) {
            least = Left { bytes, bound: "the file system of shared memory".to_owned() };
        }
        least.bytes = (least.bytes - least.bytes / KEEP_BACK).saturating_sub(owed);
        least
    }

    /// Returns the reason why there are no `len` bytes: there is too little memory, or only `space` bytes are left of the
    /// arena.
    pub fn no_room(&self, segment: &Segment, len: u64, space: u64) -> Fault {
        let left = self.left(segment, segment.committed().load(Ordering::Acquire));
        if left.bytes < len {
            return left.refuse(len);
        }
        let bound =
            "what was reserved of this process's addresses (ulimit -v, the machine's memory)";
        FaultCause::NoRoom { asked: len, left: space, memory: false, bound: bound.to_owned() }
            .into()
    }
}

/// Returns the number of bytes of the arenas that have been touched.
fn touched(segment: &Segment) -> u64 {
    use std::os::unix::fs::MetadataExt;
    segment.files().arenas.metadata().map_or(0, |file| file.blocks() * 512)
}

/// Returns the number of bytes that the file system of the arenas has left, if the size of the file system is limited.
fn file_system(segment: &Segment) -> Option<u64> {
    let mut room = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    let file = segment.files().arenas.as_raw_fd();
    // SAFETY: the descriptor is open, and `room` is writable for a statvfs.
    if unsafe { libc::fstatvfs(file, room.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: the call succeeded, so it has filled `room` in.
    let room = unsafe { room.assume_init() };
    (room.f_blocks > 0).then(|| room.f_bavail.saturating_mul(room.f_frsize))
}

impl Left {
    #[cold]
    fn refuse(self, asked: u64) -> Fault {
        FaultCause::NoRoom { asked, left: self.bytes, memory: true, bound: self.bound }.into()
    }
}

/// Returns the number of bytes that the machine can give without killing processes.
fn machine() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()
    };
    match field("MemAvailable:") {
        Some(available) => (available + field("SwapFree:").unwrap_or(0)) << 10,
        None => u64::MAX,
    }
}
