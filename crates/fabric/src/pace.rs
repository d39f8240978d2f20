//! Copies that a processor makes for others of its machine, near or far: into the caches, or past them.
//!
//! ```text
//!   64 KiB written here and read there   by usual stores   past the caches
//!   two that share a cache                   3.7 us             7 us
//!   two that do not                         34                  7            read line by line from the other's cache
//! ```
//! Which of them it is may change while a program runs: a virtual machine's processors move. So whoever reads what
//! others have put down times it, and tells them if it was slow (`Pace`):
//!
//! ```text
//!   score: + a weight for each slow copy, - 1 for each other one; from FAR on copies go past the caches
//!   then every PROBE-th does not: while that is slow at the reader the score stays up, else it falls
//! ```
//! Where a piece of memory has one reader, that can take its lines when it has read them, so that they come back to
//! the writer quickly ([`Sge::take_lines`]). That is as good between far caches, and costs little between near ones.
//! Readers find out by themselves which it is ([`take_fresh`]): every 16th block is timed, or where each rank has a processor
//! of its own, a look at the lines of every 16th message ([`sense_sent`]). There a writer hands short payloads over once it has
//! told the reader of them ([`told_of`]): the reader need not get them out of the writer's cache. What is best then is not the
//! same everywhere:
//!
//! ```text
//!   between far caches   long payloads                                           lines to be written
//!   Intel                fetched from where they are, many pages at once         all asked for at once
//!   AMD                  put down past the caches ([`pour`]): a line that        as they come
//!                        another has read takes 36 ns to be written again
//! ```
//!
//! Nobody waits for any of this, and a wrong guess costs time alone.

mod score;

use crate::afar;
use crate::lines::{can_hand_over, gains_ahead, gains_past};
use crate::memory::Sge;
use score::{Pace, SLOW, SLOW_LOOK};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Shorter copies say little and gain little, in bytes.
pub const LEAST: usize = 16 << 10;

/// A copy below so many bytes a microsecond is slow: a far cache gives 2,000 to 8,000, memory 15,000, a near one 30,000.
const RATE: u128 = 10_000;

/// The same for copies of [`FRESH_LEAST`] bytes that are still in the other's cache: a far one gives 7,000 to 11,000, a
/// near one or the one behind both 20,000 to 35,000.
const FRESH_RATE: u128 = 11_500;
pub(crate) const FRESH_LEAST: usize = 4 << 10;

/// Messages of fewer bytes say nothing.
const SENT_LEAST: usize = 64;

/// Copies for far caches, in bytes, that gain by going past the own.
const FAR_LEAST: usize = 2 << 10;

/// The same of those whose beginning does not.
const POURED_LEAST: usize = 2 * FRESH_LEAST;

/// Which copies for others go past the caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PastCaches {
    Never,
    /// Those of so many bytes and more.
    From(usize),
    /// As readers are found to be near or far.
    AsFound,
}

/// How far caches are taken to be from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Caches {
    AsFound,
    Near,
    Far,
    /// For tests: now and then the other way.
    Changing,
}

/// This process's, and bytes from which copies go past the caches without asking it.
static PACE: Pace = Pace::new(SLOW);
/// How this process reads what lies in others' caches.
static FRESH: Pace = Pace::new(SLOW_LOOK);
/// Counts what is fetched while that is so.
static FETCHED: Pace = Pace::new(SLOW);
static FROM: AtomicUsize = AtomicUsize::new(usize::MAX);
/// [`LEAST`], if the score is asked.
static ASKED: AtomicUsize = AtomicUsize::new(usize::MAX);

static COUNT: AtomicU64 = AtomicU64::new(0);
/// One of [`Caches`].
static ASSUMED: AtomicU32 = AtomicU32::new(Caches::AsFound as u32);
static COUNT_FAR: AtomicU64 = AtomicU64::new(0);
static WIDE: AtomicBool = AtomicBool::new(false);
/// Whether the processor can; asked once, which takes long in a virtual machine.
static HANDS_OVER: AtomicBool = AtomicBool::new(false);
/// Whether it gains by asking for many lines at once.
static AHEAD: AtomicBool = AtomicBool::new(false);
/// Whether what is far is best written past the caches.
static AROUND: AtomicBool = AtomicBool::new(false);
static QUESTIONS: AtomicU32 = AtomicU32::new(0);

/// Sets it for this process; and whether all other ranks are on other processors, so that what is read of them is as far as
/// their caches (measured, 8 ranks on 2 processors, of which each finds half of what it reads in its own: alltoall of 256 KiB
/// 1.28 ms page by page, 1.39 many at once).
pub fn assume(caches: Caches, apart: bool) {
    ASSUMED.store(caches as u32, Relaxed);
    WIDE.store(apart, Relaxed);
    HANDS_OVER.store(can_hand_over(), Relaxed);
    AHEAD.store(gains_ahead(), Relaxed);
    AROUND.store(gains_past(), Relaxed);
}

/// Sets it for this process. Until then never.
pub fn past_caches(which: PastCaches) {
    let (from, asked) = match which {
        PastCaches::Never => (usize::MAX, usize::MAX),
        PastCaches::From(bytes) => (bytes, usize::MAX),
        PastCaches::AsFound => (usize::MAX, LEAST),
    };
    FROM.store(from, Relaxed);
    ASKED.store(asked, Relaxed);
}

/// Whether a copy of `len` bytes for others goes past the caches.
#[inline]
pub fn is_past(len: usize) -> bool {
    count_past(len >= FROM.load(Relaxed) || len >= ASKED.load(Relaxed) && PACE.is_past())
}

/// The same where readers see to it that lines come back ([`crate::flow`]): only if somebody says so.
#[inline]
pub fn is_told_past(len: usize) -> bool {
    count_past(len >= FROM.load(Relaxed))
}

/// The same of what one writes and one other reads, who are far from each other as far as this process knows, but for its
/// beginning ([`pour`]).
#[inline]
pub(crate) fn is_poured_past(len: usize) -> bool {
    AROUND.load(Relaxed)
        && len >= POURED_LEAST
        && ASKED.load(Relaxed) != usize::MAX
        && is_wide_far()
}

/// Copies `from` to `to`, as long, for one other process that reads it ([`take_fresh`]): `past` the caches, or as is best for
/// how far they are from each other. Then the beginning goes through them all the same, from which the reader learns how
/// far that is.
pub fn pour(to: Sge, from: Sge, past: bool) {
    let len = from.len();
    let head = if !past && is_poured_past(len) { FRESH_LEAST } else { len };
    to.part(0, head).copy_for_others(from.part(0, head), past);
    if head < len {
        count_past(true);
        to.part(head, len - head).copy_for_others(from.part(head, len - head), true);
    }
}

/// The same of what this process also reads of others ([`sense`], [`take_fresh`]), and if somebody says so.
#[inline]
pub fn is_past_far(len: usize) -> bool {
    let asked = ASKED.load(Relaxed) != usize::MAX && len >= FAR_LEAST;
    count_past(len >= FROM.load(Relaxed) || asked && is_far())
}

#[inline]
fn count_past(past: bool) -> bool {
    if past {
        COUNT.fetch_add(1, Relaxed);
    }
    past
}

/// Copies that went past the caches so far.
pub fn count() -> u64 {
    COUNT.load(Relaxed)
}

/// Runs `copy` of `len` bytes that another process has put down, and learns from how long it takes. True: it was slow,
/// which the other is to be [`told`].
#[inline]
pub fn read_from_others(len: usize, copy: impl FnOnce()) -> bool {
    if len < ASKED.load(Relaxed) {
        copy();
        return false;
    }
    PACE.time(len, RATE, copy)
}

/// Copies what another process has just written and its cache has. True: the caches are far from each other, as far as is
/// known.
#[inline]
fn read_fresh(into: Sge, from: Sge, learns: bool) -> bool {
    let copy = || into.copy_from(from);
    if !learns {
        copy();
    } else if WIDE.load(Relaxed) {
        sense_sent(from);
        copy();
    } else if from.len() >= FRESH_LEAST && FRESH.is_sample() {
        FRESH.time(from.len(), FRESH_RATE, copy);
    } else {
        copy();
    }
    is_far()
}

/// A reader says of a copy of `len` bytes of what this process had put down whether it was slow.
#[inline]
pub fn told(len: usize, slow: bool) {
    if len >= ASKED.load(Relaxed) {
        PACE.note(slow);
    }
}

/// Copies what another process has just written, and will write again, in blocks that the nearest cache holds until
/// their lines are taken ([`Sge::take_lines`]): `soon`, if that will be so soon that they would still be in this one's
/// cache; else if the caches are far from each other.
pub fn take_fresh(into: Sge, from: Sge, soon: bool) {
    if !AROUND.load(Relaxed) {
        return take_by_blocks(into, from, soon, true);
    }
    // What may have gone past the caches says nothing about how far the other is.
    let (head, wide) = (FRESH_LEAST.min(into.len()), WIDE.load(Relaxed));
    sense_sent(from);
    take_by_blocks(into.part(0, head), from.part(0, head), soon, !wide);
    take_more(into.part(head, into.len() - head), from.part(head, into.len() - head), soon);
}

/// The same for what follows that, from which nothing is learnt where it may have gone past the caches.
pub fn take_more(into: Sge, from: Sge, soon: bool) {
    match is_poured_past(into.len()) {
        // It does not come back by being taken.
        true => into.copy_from(from),
        false => take_by_blocks(into, from, soon, !AROUND.load(Relaxed)),
    }
}

fn take_by_blocks(into: Sge, from: Sge, soon: bool, learns: bool) {
    let mut at = 0;
    while into.len() - at >= afar::LEAST && is_wide() && !FRESH.is_sample() {
        let next = (into.len() - at).min(afar::MOST);
        let block = from.part(at, next);
        into.part(at, next).copy_from_afar(block);
        give_back(block);
        at += next;
    }
    while at < into.len() {
        let next = (into.len() - at).min(FRESH_LEAST);
        let block = from.part(at, next);
        if read_fresh(into.part(at, next), block, learns) || soon {
            give_back(block);
        }
        at += next;
    }
}

/// What another process has written has been read here, which it will write again: takes its lines
/// ([`Sge::take_lines`]), unless the two are far from each other and can hand them over. Then all lines are asked for at
/// once ([`Sge::want_lines`]) and that they are taken gains nothing (measured, 0.2 us apart, us with and without: gather of 4
/// KiB 1.04 and 0.96, of 16 KiB 2.8 and 2.5).
#[inline]
pub fn give_back(read: Sge) {
    let poured = if is_poured_past(read.len()) { FRESH_LEAST } else { read.len() };
    if !(HANDS_OVER.load(Relaxed) && is_wide()) {
        read.part(0, poured).take_lines();
    }
}

/// Copies what another process has written and several read, as is best for how far they are from each other.
pub fn read_shared(into: Sge, from: Sge) {
    match into.len() >= afar::LEAST && is_wide() {
        true => into.copy_from_afar(from),
        false => into.copy_from(from),
    }
}

/// Learns from what another process has just written and this one is about to read in place: now and then it copies a
/// block to `spare`, which is as long.
pub fn sense(spare: Sge, from: Sge) {
    if WIDE.load(Relaxed) {
        sense_sent(from);
    } else if from.len() >= FRESH_LEAST && FRESH.is_sample() {
        let [into, from] = [spare, from].map(|whole| whole.part(0, FRESH_LEAST));
        FRESH.time(FRESH_LEAST, FRESH_RATE, || into.copy_from(from));
    }
}

/// Learns from what another process has just sent and this one is about to copy: now and then it looks at its lines, and
/// always at the beginning of what may be poured past the caches, as that is all there is to learn from: ten such payloads
/// tell what is far, not 160 (measured, far: a gather of 256 KiB 16.6 us for 19.9; near no difference).
#[inline]
pub fn sense_sent(from: Sge) {
    if from.len() < SENT_LEAST || !WIDE.load(Relaxed) {
        return;
    }
    if AROUND.load(Relaxed) && from.len() >= POURED_LEAST || FRESH.is_sample() {
        let seen = from.part(0, from.len().min(FRESH_LEAST));
        let start = Instant::now();
        seen.look_at_lines();
        FRESH.note(is_seen_slowly(seen.len(), start.elapsed()));
    }
}

/// Whether it takes so long to look at `len` bytes as if they were in a far cache, or behind it where the other has let go
/// of them (measured, ns: 512 B 193 and 90, 1 KiB 245 and 103, 4 KiB 545 and 410; from the own cache 27, 28, 41, of which
/// the clock takes most).
fn is_seen_slowly(len: usize, time: Duration) -> bool {
    time.as_nanos() > 50 + len as u128 / 20
}

/// This process has told another one of what it wrote there.
#[inline]
pub fn told_of(memory: Sge) {
    if HANDS_OVER.load(Relaxed) && is_wide() {
        memory.hand_over_lines();
    }
}

/// Whether caches are so far from each other that what is there is best fetched, if [`PastCaches::AsFound`] asks for it: what
/// depends on it may be chosen by it. Not where it is poured past the caches ([`pour`]).
pub fn is_found_far() -> bool {
    if pages_are_dear() {
        return false;
    }
    let assumed = ASSUMED.load(Relaxed);
    let told = assumed != Caches::AsFound as u32;
    let far = (told || ASKED.load(Relaxed) != usize::MAX) && is_far();
    if far {
        COUNT_FAR.fetch_add(1, Relaxed);
    }
    far
}

/// How often that was so.
pub fn count_far() -> u64 {
    COUNT_FAR.load(Relaxed)
}

/// The same where nothing would be learnt if it were always so: now and then not.
pub fn is_still_far() -> bool {
    FETCHED.is_past_if(is_found_far())
}

/// Whether this processor asks for many lines at once.
#[inline]
pub(crate) fn asks_ahead() -> bool {
    AHEAD.load(Relaxed)
}

/// Whether between near caches memory that a reader has read is best left and written again much later, where the reader
/// could take its lines for that to be soon.
#[inline]
pub fn writes_anew() -> bool {
    AROUND.load(Relaxed)
}

/// Whether the system reads another process's own memory so slowly that payloads of any length are put down where others
/// see them: on processors of AMD, where a page costs 0.25 us beside its copy (measured on Zen 4, 4 ranks on 2 processors, read in
/// place and put down: alltoall of 4 MiB 8.3 ms and 5.0, allreduce 2.6 and 1.6; on Intel's the former is the quicker).
pub fn pages_are_dear() -> bool {
    AROUND.load(Relaxed) && ASSUMED.load(Relaxed) != Caches::Changing as u32
}

/// Whether what others have written is copied from many pages at once.
pub(crate) fn is_wide() -> bool {
    asks_ahead() && is_wide_far()
}

fn is_wide_far() -> bool {
    WIDE.load(Relaxed) && is_far()
}

/// Whether caches are far from each other, as far as is known.
pub fn is_far() -> bool {
    const NEAR: u32 = Caches::Near as u32;
    const FAR: u32 = Caches::Far as u32;
    const CHANGING: u32 = Caches::Changing as u32;
    match ASSUMED.load(Relaxed) {
        NEAR => false,
        FAR => true,
        CHANGING => QUESTIONS.fetch_add(1, Relaxed) % 11 < 5,
        _ => FRESH.is_far(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_told_apart() {
        let slow = |len, ns| is_seen_slowly(len, Duration::from_nanos(ns));
        assert!(slow(512, 193) && slow(512, 90) && slow(1024, 103) && slow(4096, 410));
        assert!(!slow(512, 27) && !slow(4096, 150) && !slow(1024, 0));
    }
}
