//! The slot of this process, and the calls that are written there.

use crate::thread_clock::ThreadClock;
use std::cell::Cell;
use std::path::PathBuf;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize};
use std::sync::{Once, OnceLock};
use weft_fabric_sim_client::{RankSlot, SIMULATION_VARIABLE, SlotsFile};

/// Returns true if the clocks of the system follow virtual time.
pub fn follows_clocks() -> bool {
    static WANTED: OnceLock<bool> = OnceLock::new();
    *WANTED.get_or_init(|| std::env::var_os("WEFT_SIM_CLOCKS").is_some_and(|value| value == "1"))
}

/// Returns the directory of the simulation; `None` if the job does not run in virtual time.
fn directory() -> Option<&'static PathBuf> {
    static DIRECTORY: OnceLock<Option<PathBuf>> = OnceLock::new();
    DIRECTORY.get_or_init(|| std::env::var_os(SIMULATION_VARIABLE).map(PathBuf::from)).as_ref()
}

/// Rank of this process and number of ranks, once [`own_slot`] has found the slot.
static RANK: AtomicUsize = AtomicUsize::new(0);
static RANKS: AtomicUsize = AtomicUsize::new(0);

static FILE: OnceLock<Option<SlotsFile>> = OnceLock::new();

/// Returns the simulated time over the program's processor time; 0 if computing takes no time.
pub fn compute_factor() -> f64 {
    let file = FILE.get().and_then(Option::as_ref);
    file.map_or(0.0, |file| f64::from_bits(file.header().compute_factor))
}

/// True in a process that was forked from a rank.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Notes in a forked child that the process is no rank.
extern "C" fn note_fork() {
    FORKED.store(true, Relaxed);
}

/// Returns the slot of this process, once the process has joined the job.
pub fn own_slot() -> Option<&'static RankSlot> {
    static OWN: AtomicPtr<RankSlot> = AtomicPtr::new(std::ptr::null_mut());
    let found = OWN.load(Acquire);
    // SAFETY: the pointer leads into the mapped file, which is never unmapped.
    if let Some(slot) = unsafe { found.as_ref() } {
        // A forked child is no rank. Its system call getpid would take longer than all else in this function.
        return (!FORKED.load(Relaxed)).then_some(slot);
    }
    let file = FILE.get_or_init(|| SlotsFile::open(&directory()?.join("ranks")).ok()).as_ref()?;
    let pid = std::process::id();
    let rank = (0..file.ranks()).find(|&rank| file.slot(rank).pid.load(Acquire) == pid)?;
    let slot = file.slot(rank);
    RANK.store(rank, Relaxed);
    RANKS.store(file.ranks(), Relaxed);
    // SAFETY: the handler is a function of this library, which is never unloaded, and only stores to an atomic.
    if unsafe { libc::pthread_atfork(None, None, Some(note_fork)) } != 0 {
        return None;
    }
    OWN.store(std::ptr::from_ref(slot).cast_mut(), std::sync::atomic::Ordering::Release);
    Some(slot)
}

/// Writes the names of the functions for the report, unless another rank has done so.
fn write_names() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Some(directory) = directory() else { return };
        let path = directory.join("calls");
        let text = crate::NAMES.join("\n");
        let file = std::fs::File::options().write(true).create_new(true).open(path);
        // Another rank may have written the names. Without them the report shows numbers.
        let _ = file.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
    });
}

thread_local! {
    /// End of the thread's last call, or the last look at its computing; `None` before its first call.
    static LAST: Cell<Option<ThreadClock>> = const { Cell::new(None) };
    /// Number of calls in which the thread is: a callback of the library may call MPI again.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Adds the thread's computing since its last call to the slot.
pub fn add_computing(slot: &RankSlot) {
    if let Some(last) = LAST.get()
        && DEPTH.get() == 0
    {
        slot.compute.fetch_add(last.computed(), Relaxed);
    }
    LAST.set(Some(ThreadClock::after(LAST.get())));
}

/// Returns true if the thread is inside of an MPI call.
pub fn is_in_call() -> bool {
    DEPTH.get() > 0
}

/// Number of threads that are inside of an MPI call.
static CALLS: AtomicU32 = AtomicU32::new(0);

/// True while a thread lets the simulation carry out the journal between two calls.
static SETTLING: AtomicBool = AtomicBool::new(false);

/// Lets the simulation carry out the journal, before a thread reads the clock. Does nothing while another thread is inside of a call: the
/// slot belongs to that call.
///
/// Contract: a thread announces its call and then looks whether another thread settles; a thread announces that it settles and then looks
/// for calls. All four are sequentially consistent, so at least one of the two threads sees the other.
pub fn settle(slot: &RankSlot) {
    if SETTLING.swap(true, SeqCst) {
        return;
    }
    if CALLS.load(SeqCst) == 0 {
        slot.settle();
    }
    SETTLING.store(false, SeqCst);
}

/// Counts a call of this rank.
fn count(index: u64) {
    if let Some(directory) = directory() {
        crate::counts::add(directory, RANK.load(Relaxed), RANKS.load(Relaxed), index);
    }
}

/// A call of the program that runs.
pub struct TracedCall {
    index: u64,
    outermost: bool,
    is_counted: bool,
}

impl TracedCall {
    /// Begins a call of the function with this number.
    pub fn begin(index: u64) -> TracedCall {
        let outermost = DEPTH.get() == 0;
        let mut is_counted = false;
        if outermost {
            CALLS.fetch_add(1, SeqCst);
            while SETTLING.load(SeqCst) {
                std::thread::yield_now();
            }
        }
        if outermost && let Some(slot) = own_slot() {
            add_computing(slot);
            slot.call.store(index + 1, Relaxed);
            is_counted = true;
            count(index);
        }
        DEPTH.set(DEPTH.get() + 1);
        TracedCall { index, outermost, is_counted }
    }

    /// Ends the call.
    pub fn end(self) {
        DEPTH.set(DEPTH.get() - 1);
        if self.outermost
            && let Some(slot) = own_slot()
        {
            write_names();
            // The call that made this process a rank, such as MPI_Init.
            if !self.is_counted {
                count(self.index);
            }
            slot.call.store(0, Relaxed);
            LAST.set(Some(ThreadClock::after(LAST.get())));
        }
        if self.outermost {
            CALLS.fetch_sub(1, SeqCst);
        }
    }
}
