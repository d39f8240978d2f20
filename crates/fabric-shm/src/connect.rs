//! The protocol by which the ranks of one machine come to map the same segment.
//!
//! ```text
//!   lowest rank                              others
//!   begin to find the costs of copies
//!   create the segment, listen on an
//!   abstract socket, put its name
//!   ─────────────────────────── fence ───────────────────────────
//!   accept: same user? send descriptor       get the name, connect, receive, map
//!   write own facts, and the costs           write own facts
//!   ─────────────────────────── fence ───────────────────────────
//! ```
//! If the lowest rank fails, it publishes the reason instead of the name, so that all ranks can report it.

use crate::control::{CPUS_MAX, RANKS_MAX, RankControl};
use crate::layout::{ARENA_MIN, LANES_MAX, SegmentShape};
use crate::options::ShmOptions;
use crate::segment::{self, Segment, SegmentRefusal, random};
use crate::socket;
use crate::sync::Ordering;
use std::fmt;
use std::io;
use weft_bootstrap::{Bootstrap, BootstrapError, Fingerprint, limits};
use weft_fabric::CopyModel;
use weft_intranode::ModelLoader;

/// The reason why the ranks of a machine could not be connected.
#[derive(Debug)]
pub enum ShmConnectError {
    /// The launcher's services failed.
    Bootstrap(BootstrapError),
    /// The job has processes on other machines.
    OtherMachine {
        /// The lowest rank in the job of a process on another machine.
        rank: usize,
    },
    /// There are more ranks than the segment has room for.
    TooManyRanks {
        /// Number of processes that the job has on this machine.
        ranks: usize,
        /// Maximum number of processes that shared memory connects.
        limit: usize,
    },
    /// The limits on this process leave no room for the segment.
    NoRoom {
        /// Maximum number of bytes that this process may have in one segment.
        limit: u64,
        /// Number of processes that the segment was to connect.
        ranks: usize,
    },
    /// The operating system refused `what`.
    System {
        /// Description of the action that failed.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// The lowest rank failed, for this reason.
    Lowest(String),
    /// The model of copies that this rank was to use cannot be used, for this reason.
    Model(String),
    /// The received segment is not the announced segment.
    Mismatch,
}

impl ShmConnectError {
    /// Returns true if the failure of another process has caused this error.
    pub fn is_of_peer(&self) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, UnexpectedEof};
        match self {
            ShmConnectError::Lowest(_) => true,
            ShmConnectError::System { error, .. } => {
                matches!(
                    error.kind(),
                    BrokenPipe | ConnectionRefused | ConnectionReset | UnexpectedEof
                )
            }
            _ => false,
        }
    }
}

impl fmt::Display for ShmConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use ShmConnectError::*;
        match self {
            Bootstrap(error) => write!(f, "connecting through shared memory: {error}"),
            OtherMachine { rank } => write!(
                f,
                "process {rank} runs on another machine, which shared memory does not reach; start \
                 all processes on one machine"
            ),
            TooManyRanks { ranks, limit } => write!(
                f,
                "{ranks} processes on one machine, but shared memory connects at most {limit}; start \
                 fewer on each machine"
            ),
            NoRoom { limit, ranks } => write!(
                f,
                "{limit} bytes of shared memory are too little for {ranks} processes: {}",
                limits::of_shared_memory()
            ),
            System { what, error } => {
                write!(f, "connecting through shared memory: {what}: {}", limits::explain(error))?;
                match error.raw_os_error() {
                    Some(libc::ECONNREFUSED) => {
                        write!(
                            f,
                            " (the process that made it has failed, or is in another network name space)"
                        )
                    }
                    _ => Ok(()),
                }
            }
            Lowest(message) | Model(message) => f.write_str(message),
            Mismatch => write!(
                f,
                "the shared segment is not one of this version; all processes must use the same \
                 Weft library"
            ),
        }
    }
}

impl std::error::Error for ShmConnectError {}

impl From<SegmentRefusal> for ShmConnectError {
    fn from(refused: SegmentRefusal) -> ShmConnectError {
        ShmConnectError::System { what: refused.what, error: refused.error }
    }
}

/// Number of fences that several ranks make while they connect, including the closing fence. A job of one rank makes fewer.
pub const FENCES: usize = 2;

/// Key under which the lowest rank publishes `+` and the name of the socket, or `-` and the reason of a failure.
const KEY: &str = "shm";

/// Creates or receives the segment and maps it. The lowest rank begins to measure the costs of copies. The measurement takes
/// little longer, if at all, than the other ranks take to connect.
pub fn segment(
    bootstrap: &mut dyn Bootstrap,
    options: &ShmOptions,
) -> Result<(Segment, Option<ModelLoader>), ShmConnectError> {
    let (rank, ranks) = (bootstrap.rank(), bootstrap.size());
    let nodes = bootstrap.nodes();
    if let Some(other) = nodes.iter().position(|&node| node != nodes[rank]) {
        return Err(ShmConnectError::OtherMachine { rank: other });
    }
    if ranks > RANKS_MAX {
        return Err(ShmConnectError::TooManyRanks { ranks, limit: RANKS_MAX });
    }
    if rank != 0 {
        return Ok((visit(bootstrap, ranks, options)?, None));
    }
    let loader = ModelLoader::start(&options.copies, ranks)
        .map_err(|why| ShmConnectError::Model(format!("the model of copies: {why}")));
    if ranks == 1 {
        let loader = loader?;
        return Ok((found(1, options)?, Some(loader)));
    }
    let (loader, refused) = match loader {
        Ok(loader) => (Some(loader), None),
        Err(refused) => (None, Some(refused)),
    };
    Ok((host(bootstrap, ranks, options, refused)?, loader))
}

/// Stores the costs of copies in the segment for all ranks. The lowest rank calls this.
pub fn tell_costs(segment: &Segment, loader: ModelLoader) {
    let words = &segment.header().copies.0;
    for (word, value) in words.iter().zip(loader.wait().model.words()) {
        word.store(value, Ordering::Relaxed);
    }
}

/// Returns the costs that the lowest rank has stored. Call only after the closing fence.
pub fn costs(segment: &Segment) -> CopyModel {
    let words = segment.header().copies.0.each_ref().map(|word| word.load(Ordering::Relaxed));
    CopyModel::from_words(words).unwrap_or(CopyModel::GENERIC)
}

/// Returns true if all ranks compute with the same arithmetic. Call only after the closing fence.
pub fn same_arithmetic(segment: &Segment) -> bool {
    let of = |rank| segment.control(rank).facts.0.arithmetic.load(Ordering::Relaxed);
    (1..segment.shape().ranks).all(|rank| of(rank) == of(0))
}

/// Creates the segment and hands it out, as the lowest rank. `refused`: a failure that the lowest rank had before.
fn host(
    bootstrap: &mut dyn Bootstrap,
    ranks: usize,
    options: &ShmOptions,
    refused: Option<ShmConnectError>,
) -> Result<Segment, ShmConnectError> {
    let name = format!("weft-{}-{:016x}{:016x}", bootstrap.job(), random(), random());
    let founded = refused.map_or_else(|| found(ranks, options), Err);
    let made = founded.and_then(|segment| {
        let listener = socket::listen(&name);
        let what = "listening on an abstract socket";
        Ok((segment, listener.map_err(|error| ShmConnectError::System { what, error })?))
    });
    let text = match &made {
        Ok(_) => format!("+{name}"),
        Err(error) => format!("-{error}"),
    };
    bootstrap.put(KEY, text.as_bytes()).map_err(ShmConnectError::Bootstrap)?;
    bootstrap.fence().map_err(ShmConnectError::Bootstrap)?;
    let (segment, listener) = made?;
    let shape = segment.shape();
    socket::serve(&listener, ranks - 1, segment.files(), shape.words(), options.patience)
        .map_err(|error| ShmConnectError::System { what: "handing out the segment", error })?;
    Ok(segment)
}

fn visit(
    bootstrap: &mut dyn Bootstrap,
    ranks: usize,
    options: &ShmOptions,
) -> Result<Segment, ShmConnectError> {
    bootstrap.fence().map_err(ShmConnectError::Bootstrap)?;
    let value = bootstrap.get(0, KEY).map_err(ShmConnectError::Bootstrap)?;
    let text = String::from_utf8_lossy(&value);
    let name = match text.split_at_checked(1) {
        Some(("+", name)) => name,
        Some((_, reason)) => return Err(ShmConnectError::Lowest(reason.to_owned())),
        None => return Err(ShmConnectError::Mismatch),
    };
    let (files, words) = socket::fetch(name, options.patience)
        .map_err(|error| ShmConnectError::System { what: "receiving the segment", error })?;
    let shape = SegmentShape::from_words(words);
    if shape.ranks != ranks || !shape.is_sound() {
        return Err(ShmConnectError::Mismatch);
    }
    let segment = Segment::map(files, shape)?;
    if segment.is_founded() { Ok(segment) } else { Err(ShmConnectError::Mismatch) }
}

/// Creates a segment for `ranks` ranks. Memory and limits determine the size of the segment.
fn found(ranks: usize, options: &ShmOptions) -> Result<Segment, ShmConnectError> {
    found_with(ranks, options, memory())
}

/// Creates a segment as [`found`] does, with arenas of at most `arena` bytes.
pub fn found_with(
    ranks: usize,
    options: &ShmOptions,
    arena: u64,
) -> Result<Segment, ShmConnectError> {
    // Half of the address space is left to the program.
    let limit = options
        .segment_limit
        .min(limit(libc::RLIMIT_AS).saturating_sub(1) / 2)
        .min(limit(libc::RLIMIT_FSIZE));
    let shape = SegmentShape::fit(ranks, options.box_budget, arena, limit)
        .with_lanes(options.lanes.clamp(1, LANES_MAX), limit);
    if !shape.is_sound() {
        return Err(ShmConnectError::NoRoom { limit, ranks });
    }
    let segment = Segment::map(segment::create(&shape)?, shape)?;
    segment.found();
    Ok(segment)
}

/// Returns a resource limit of this process; `u64::MAX` if there is none.
fn limit(resource: libc::__rlimit_resource_t) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: u64::MAX, rlim_max: u64::MAX };
    // SAFETY: `limit` is a valid rlimit that the call fills in.
    unsafe { libc::getrlimit(resource, &mut limit) };
    limit.rlim_cur
}

/// Returns the size of the machine's memory in bytes, rounded up to a gigabyte.
fn memory() -> u64 {
    // SAFETY: sysconf takes no pointers.
    let (pages, page) =
        unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    let bytes = pages.max(0) as u64 * page.max(0) as u64;
    bytes.max(ARENA_MIN).next_multiple_of(1 << 30)
}

/// Writes the facts that other ranks need to know about this process.
pub fn introduce(control: &RankControl, probe: &u64, base: *const u8) {
    // Yama permits attaching only to descendants, unless the target agrees. On a system without Yama, this call fails and is not
    // needed.
    // SAFETY: PR_SET_PTRACER takes no pointers.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY, 0, 0, 0) };
    let facts = &control.facts.0;
    facts.pid.store(u64::from(std::process::id()), Ordering::Relaxed);
    let at = std::ptr::from_ref(probe).expose_provenance();
    facts.probe_at.store(at as u64, Ordering::Relaxed);
    facts.probe.store(*probe, Ordering::Relaxed);
    facts.base.store(base.addr() as u64, Ordering::Relaxed);
    facts.arithmetic.store(Fingerprint::arithmetic_hash(), Ordering::Relaxed);
    for (word, bits) in control.affinity.0.iter().zip(affinity()) {
        word.store(bits, Ordering::Release);
    }
}

/// Returns the processors that this process may run on, as a bit mask.
fn affinity() -> [u64; CPUS_MAX / 64] {
    let mut mask = [0u64; CPUS_MAX / 64];
    // SAFETY: the call fills in at most `size_of_val(&mask)` bytes of `mask`, which is writable.
    let failed =
        unsafe { libc::sched_getaffinity(0, size_of_val(&mask), mask.as_mut_ptr().cast()) } != 0;
    if failed {
        // The call fails if the system has more processors than the mask holds. Then the mask names the first processors, as many
        // as this process may use.
        let n = std::thread::available_parallelism().map_or(1, usize::from);
        for bit in 0..n.min(CPUS_MAX) {
            mask[bit / 64] |= 1 << (bit % 64);
        }
    }
    mask
}
