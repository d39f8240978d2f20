//! The file that the simulation and all ranks map: a header, and a slot for each rank.
//!
//! Contract. The header is written before the first rank starts, and only read afterwards. The fields of a slot belong to the side
//! that runs ([`Turn`]); they are atomics only because two processes map them, and are accessed with relaxed order. Exceptions:
//! `pid`, `arena_base` and `arena_file` are written by the rank before its first request, `call`, `compute` and `slept` by a layer
//! above MPI, and `file_accesses` and `file_bytes` by any thread, in the rank's process while the rank runs. The layer above MPI also
//! lets the simulation carry out the journal between two calls ([`RankSlot::settle`]).

use crate::home::ThreadStay;
use crate::inbox::{PAYLOAD, SlotInbox};
use crate::journal::Journal;
use crate::request::{SimRequest, SlotWords, WORDS};
use crate::slot_wait::SlotWait;
use crate::turn::{Turn, TurnSide};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;
use weft_fabric::copies::CopyModel;

/// Variable that names the directory of the simulation to the ranks of its job.
pub const SIMULATION_VARIABLE: &str = "WEFT_SIMULATION";

/// First word of the file: "wfts", and numbers that change with the layout, so that libraries of other versions refuse the file.
const MAGIC: u64 = 0x7766_7473
    | (std::mem::offset_of!(RankSlot, payload) as u64) << 32
    | (size_of::<JobHeader>() as u64) << 48;

/// Maximum number of counters in a reply.
pub const MOST_ADVANCES: usize = 256;

/// Number of words of the copy model.
const MODEL: usize = CopyModel::FIELDS.len();

/// The abilities of the paths within a node or between nodes. See [`weft_fabric::Capabilities`] for the fields.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
#[expect(missing_docs, reason = "the fields are those of `Capabilities`")]
pub struct PathHeader {
    pub send_max: u64,
    pub inline_max: u64,
    pub mtu: u64,
    pub multicast_max: u64,
    pub rails: u64,
    pub round_trip: u64,
    pub direct: u64,
    pub in_order_placement: u64,
    pub shares_memory: u64,
    pub coherent_atomics: u64,
}

/// Facts about the job and its machine.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct JobHeader {
    /// Magic number and version.
    pub magic: u64,
    /// Number of ranks.
    pub ranks: u64,
    /// Number of ranks of a node. Nodes are filled in order.
    pub ranks_per_node: u64,
    /// Paths within a node.
    pub local: PathHeader,
    /// Paths between nodes.
    pub remote: PathHeader,
    /// Minimum length in bytes of an operation that is worth spreading over rails, plus 1; 0 if the machine file names none.
    pub fragment_min: u64,
    /// Simulated time over the program's processor time, as the bits of a number; 0 if computing takes no time.
    pub compute_factor: u64,
    /// 1 if all processes compute with the same arithmetic.
    pub same_arithmetic: u64,
    /// 1 if accesses to files take time.
    pub times_files: u64,
    /// The copy model, as [`CopyModel::words`].
    pub model: [u64; MODEL],
}

impl JobHeader {
    /// Returns an empty header with the magic number.
    pub fn new() -> JobHeader {
        JobHeader {
            magic: MAGIC,
            ranks: 0,
            ranks_per_node: 0,
            local: PathHeader::default(),
            remote: PathHeader::default(),
            fragment_min: 0,
            compute_factor: 0,
            same_arithmetic: 0,
            times_files: 0,
            model: [0; MODEL],
        }
    }
}

impl Default for JobHeader {
    fn default() -> JobHeader {
        JobHeader::new()
    }
}

/// The slot of a rank.
#[repr(C, align(4096))]
pub struct RankSlot {
    /// The side that runs.
    pub turn: Turn,
    /// Process of the rank; 0 until it has attached.
    pub pid: AtomicU32,
    /// Number of words of the request or reply.
    pub used: AtomicU32,
    /// Number of payload bytes of the requests in the journal.
    pub posted: AtomicU32,
    /// Number of counters that advanced, up to [`MOST_ADVANCES`].
    pub advanced: AtomicU32,
    /// The processor on which the rank is to sleep, plus 1; 0 for any.
    pub home: AtomicU32,
    /// Number of messages that have arrived.
    pub messages: AtomicU32,
    /// Number of the first of these messages that were quiet.
    pub quiet: AtomicU32,
    /// Number of rounds of progress that the rank would have made for quiet arrivals.
    pub quiet_rounds: AtomicU32,
    /// Number of datagrams that have arrived.
    pub datagrams: AtomicU32,
    /// The rank's clock in picoseconds.
    pub clock: AtomicU64,
    /// Address and length of the arena in the rank's address space.
    pub arena_base: AtomicU64,
    /// Descriptor of the arena in the rank's process.
    pub arena_file: AtomicU64,
    /// Processor time in nanoseconds that the program has taken since the last request or entry of the journal.
    pub compute: AtomicU64,
    /// Time in nanoseconds that the program has slept in virtual time since the last request or entry of the journal.
    pub slept: AtomicU64,
    /// Number of accesses to files since the last request, and of their bytes.
    pub file_accesses: AtomicU64,
    /// See [`RankSlot::file_accesses`].
    pub file_bytes: AtomicU64,
    /// Number of the MPI call that runs, plus 1, by the names of the tracing layer; 0 outside of calls.
    pub call: AtomicU64,
    /// Fault of the rank: 0, or the lost peer plus 1, or `u64::MAX` for another fault.
    pub fault: AtomicU64,
    /// The request, then the reply.
    pub words: [AtomicU64; WORDS],
    /// Work of the rank since its last request, and requests without a reply.
    pub journal: Journal,
    /// Counters that advanced by one, in order: the number of a completion, or an immediate with bit 32 set.
    pub advances: [AtomicU64; MOST_ADVANCES],
    /// The wait of a rank that rests.
    pub wait: SlotWait,
    payload: std::cell::UnsafeCell<[u8; PAYLOAD]>,
    /// Messages that have arrived.
    pub inbox: SlotInbox,
}

impl RankSlot {
    /// Makes a request of the rank, and waits for the reply: looks for `spin` if it comes at once, then sleeps. Only the thread that runs
    /// for the rank may call this.
    pub fn ask(&self, request: SimRequest, spin: Duration) -> SlotWords {
        let used = request.words().store(&self.words);
        self.used.store(used, Relaxed);
        let home = (self.home.load(Relaxed) as usize).checked_sub(1);
        let stay = home.and_then(ThreadStay::on);
        self.turn.pass(TurnSide::Simulation);
        // Other ranks run during a rest, and need the processor. Other replies come at once, unless the simulation runs here, too.
        let rests = matches!(request, SimRequest::Rest { .. } | SimRequest::Look);
        let spin = if rests || stay.is_some() { Duration::ZERO } else { spin };
        while !self.turn.wait(TurnSide::Rank, spin, Duration::from_secs(1)) {
            // If the simulation process is gone, the launcher ends this process, too.
        }
        SlotWords::load(&self.words, self.used.load(Relaxed))
    }

    /// Lets the simulation carry out the journal, so that the clock is that of the rank. The rank's fabric finds the news of the reply
    /// when it next looks.
    pub fn settle(&self) {
        if !self.journal.is_empty() {
            self.ask(SimRequest::Clock, Duration::ZERO);
        }
    }

    /// Returns the address of the payloads of the requests in the journal, or of the payload of a reply.
    pub fn payload(&self) -> *mut u8 {
        self.payload.get().cast()
    }
}

/// The mapped file of a job.
pub struct SlotsFile {
    base: NonNull<u8>,
    len: usize,
    ranks: usize,
}

// SAFETY: the file stays mapped as long as the value lives, and its fields are atomics, except for the header, which is only read
// after the start, and the payload, which is accessed through raw pointers by the side that runs.
unsafe impl Send for SlotsFile {}
// SAFETY: as for `Send`.
unsafe impl Sync for SlotsFile {}

/// Size of the header in the file.
const HEADER: usize = size_of::<JobHeader>().next_multiple_of(4096);

impl SlotsFile {
    /// Creates the file for a job.
    pub fn create(path: &Path, header: &JobHeader) -> io::Result<SlotsFile> {
        let ranks = header.ranks as usize;
        let len = HEADER + ranks * size_of::<RankSlot>();
        let file = File::options().read(true).write(true).create_new(true).open(path)?;
        file.set_len(len as u64)?;
        let mapped = SlotsFile::map(&file, len, ranks)?;
        // SAFETY: the header lies at the start of the mapping, which is large enough and aligned to a page.
        unsafe { mapped.base.cast::<JobHeader>().write(*header) };
        // Each rank runs until its first request.
        (0..ranks).for_each(|rank| mapped.slot(rank).turn.pass(TurnSide::Rank));
        Ok(mapped)
    }

    /// Maps the file of the job to which this process belongs.
    pub fn open(path: &Path) -> io::Result<SlotsFile> {
        let wrong = || io::Error::other("no file of a simulation of this version of Weft");
        let file = File::options().read(true).write(true).open(path)?;
        let len = file.metadata()?.len() as usize;
        if len < HEADER {
            return Err(wrong());
        }
        let ranks = (len - HEADER) / size_of::<RankSlot>();
        let mapped = SlotsFile::map(&file, len, ranks)?;
        let header = mapped.header();
        match header.magic == MAGIC && header.ranks == ranks as u64 && header.ranks_per_node > 0 {
            true => Ok(mapped),
            false => Err(wrong()),
        }
    }

    fn map(file: &File, len: usize, ranks: usize) -> io::Result<SlotsFile> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: without MAP_FIXED, mmap(2) makes a new mapping that replaces nothing.
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), len, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).expect("mmap does not map address 0");
        Ok(SlotsFile { base, len, ranks })
    }

    /// Returns the facts about the job.
    pub fn header(&self) -> JobHeader {
        // SAFETY: the mapping begins with the header, all bit patterns of which are valid.
        unsafe { self.base.cast::<JobHeader>().read() }
    }

    /// Returns the number of slots.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Returns the slot of `rank`.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn slot(&self, rank: usize) -> &RankSlot {
        assert!(rank < self.ranks, "no slot of rank {rank}");
        // SAFETY: the slot lies within the mapping, at a multiple of its alignment, and all bit patterns of atomics are valid.
        unsafe { self.base.add(HEADER + rank * size_of::<RankSlot>()).cast::<RankSlot>().as_ref() }
    }
}

impl Drop for SlotsFile {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map`, and nothing refers to it after this value.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}
