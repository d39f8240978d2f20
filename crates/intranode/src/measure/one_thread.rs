//! The measurements of one thread.

use super::{Outcome, sampled, timed, within};
use crate::{CacheLines, CachePath};
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::getpid;
use std::hint::black_box;
use std::io::IoSliceMut;
use std::sync::Arc;
use std::time::Instant;
use weft_fabric::copies::PAGE;
use weft_fabric::{Copies, CopyModel, Sge};

/// Size of a block that fits a processor's own caches, in bytes.
const BLOCK: usize = 64 << 10;
/// Size of a block that is fetched from memory, in bytes.
const LARGE: usize = 128 << 10;

/// Allocates `len` bytes and writes them. Returns `None` if there is no memory.
pub fn block(len: usize, with: u8) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).ok()?;
    bytes.resize(len, with);
    Some(bytes)
}

pub fn measure(end: Instant, all: &mut Vec<(String, Outcome)>) {
    let blocks = block(BLOCK, 1).zip(block(BLOCK, 2));
    let Some((from, mut to)) = blocks else {
        let names = ["cached", "past", "reduce", "yielding", "cma_call", "cma_page"];
        return all.extend(names.map(|name| (name.to_owned(), Outcome::Absent)));
    };
    let cached = sampled(24, within(end, 300), || {
        let time = timed(|| {
            for _ in 0..4 {
                black_box(&mut to[..]).copy_from_slice(black_box(&from));
            }
        });
        Some(time / (4 * BLOCK) as f64)
    });
    let past = past(&mut to, &from, end);
    let yielding = sampled(16, within(end, 200), || {
        let time = timed(|| (0..8).for_each(|_| std::thread::yield_now()));
        Some(time / 8.0)
    });
    let rate = if let Outcome::Had(rate) = cached { rate } else { 0.0 };
    let (call, page) = cma(&mut to, &from, rate, end);
    let had = [
        ("cached", cached),
        ("past", past),
        ("reduce", reduce(end)),
        ("yielding", yielding),
        ("cma_call", call),
        ("cma_page", page),
    ];
    all.extend(had.map(|(name, outcome)| (name.to_owned(), outcome)));
}

fn past(to: &mut [u8], from: &[u8], end: Instant) -> Outcome {
    // SAFETY: both slices outlive the `Sge`s, have the given lengths, and only `to` is written, which is borrowed mutably.
    let (to, from) = unsafe {
        (Sge::new(to.as_mut_ptr(), to.len()), Sge::new(from.as_ptr().cast_mut(), from.len()))
    };
    let copies = Copies::new(Arc::new(CopyModel::GENERIC));
    sampled(16, within(end, 400), || {
        Some(timed(|| to.copy_for_others(from, CachePath::Past, &copies)) / to.len() as f64)
    })
}

/// Measures sums of doubles, with half a block for each operand.
fn reduce(end: Instant) -> Outcome {
    const COUNT: usize = BLOCK / 2 / size_of::<f64>();
    let mut sums = Vec::new();
    if sums.try_reserve_exact(2 * COUNT).is_err() {
        return Outcome::Absent;
    }
    sums.resize(2 * COUNT, 1.0);
    let (sums, with) = sums.split_at_mut(COUNT);
    sampled(16, within(end, 200), || {
        let time = timed(|| add(black_box(sums), black_box(with)));
        Some(time / (COUNT * size_of::<f64>()) as f64)
    })
}

#[inline(always)]
fn add_all(sums: &mut [f64], with: &[f64]) {
    for (sum, with) in sums.iter_mut().zip(with) {
        *sum += with;
    }
}

fn add(sums: &mut [f64], with: &[f64]) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn wide(sums: &mut [f64], with: &[f64]) {
            add_all(sums, with);
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2, as was just detected.
            return unsafe { wide(sums, with) };
        }
    }
    add_all(sums, with);
}

/// Reads the beginning of `from` by the system call that reads another process's memory. Returns false if this is not permitted.
pub fn cma_reads(to: &mut [u8], from: &[u8]) -> bool {
    let len = to.len().min(from.len());
    let there = [RemoteIoVec { base: from.as_ptr().addr(), len }];
    process_vm_readv(getpid(), &mut [IoSliceMut::new(&mut to[..len])], &there) == Ok(len)
}

/// Measures the cost of the system call, and the cost of each page in addition to a copy at `rate`. The measurement makes a call
/// for one page and a call for a whole block.
fn cma(to: &mut [u8], from: &[u8], rate: f64, end: Instant) -> (Outcome, Outcome) {
    let mut read = |len: usize, micros| {
        sampled(16, within(end, micros), || {
            let mut moved = false;
            let time = timed(|| moved = cma_reads(&mut to[..len], from));
            moved.then_some(time)
        })
    };
    let (short, long) = (read(8, 100), read(BLOCK, 500));
    match (short, long) {
        (Outcome::Had(short), Outcome::Had(long)) => {
            let further = (BLOCK / PAGE - 1) as f64;
            let page = ((long - short - rate * BLOCK as f64) / further).max(1.0);
            (Outcome::Had((short - page).max(1.0)), Outcome::Had(page))
        }
        (Outcome::Absent, _) | (_, Outcome::Absent) => (Outcome::Absent, Outcome::Absent),
        _ => (Outcome::Late, Outcome::Late),
    }
}

/// Measures a copy of data that are in no cache, to memory that is in no cache. The time until written data reach memory is not
/// included.
#[cfg(target_arch = "x86_64")]
pub fn memory(end: Instant) -> Outcome {
    use std::arch::x86_64::{_mm_clflush, _mm_mfence};
    let Some((from, mut to)) = block(LARGE, 1).zip(block(LARGE, 2)) else {
        return Outcome::Absent;
    };
    let flush = |bytes: &[u8]| {
        for line in bytes.chunks(64) {
            // SAFETY: the address lies in a live slice. clflush does not change the content.
            unsafe { _mm_clflush(line.as_ptr()) };
        }
        // SAFETY: mfence is a fence, and SSE2 is always available on x86-64.
        unsafe { _mm_mfence() };
    };
    sampled(6, within(end, 2000), || {
        flush(&from);
        flush(&to);
        let time = timed(|| black_box(&mut to[..]).copy_from_slice(black_box(&from)));
        Some(time / LARGE as f64)
    })
}

/// Returns that the value is absent. On this target, lines only leave the caches when other memory is read, which takes too long.
#[cfg(not(target_arch = "x86_64"))]
pub fn memory(_end: Instant) -> Outcome {
    let _ = (block, LARGE);
    Outcome::Absent
}
