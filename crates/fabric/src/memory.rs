//! Names of memory: local pieces, and regions that peers may reach.

use crate::Counter;
use std::any::Any;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

/// A piece of local memory that an operation may read or write until it completes: verbs' scatter
/// gather element. Length in bytes. May be empty, with any pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sge {
    ptr: *mut u8,
    len: usize,
}

impl Sge {
    /// No memory at all.
    pub const EMPTY: Sge = Sge { ptr: std::ptr::NonNull::dangling().as_ptr(), len: 0 };

    /// Names `len` bytes at `ptr`.
    ///
    /// # Safety
    /// Until every operation that was given this element (or a part of it) has completed, the
    /// memory must stay allocated; it must be readable where the element is a source and writable
    /// where it is a destination, and no `&mut` (for a destination: no reference) may be used to it.
    pub const unsafe fn new(ptr: *mut u8, len: usize) -> Sge {
        Sge { ptr, len }
    }

    /// A payload of which only the length exists, for studies in the simulator: copying from or to
    /// it moves nothing.
    pub const fn phantom(len: usize) -> Sge {
        Sge { ptr: std::ptr::null_mut(), len }
    }

    /// Whether only its length exists.
    #[inline]
    pub const fn is_phantom(self) -> bool {
        self.ptr.is_null()
    }

    pub const fn ptr(self) -> *mut u8 {
        self.ptr
    }

    /// Length in bytes.
    pub const fn len(self) -> usize {
        self.len
    }

    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The part of `len` bytes that starts at `offset`.
    ///
    /// # Panics
    /// If the part does not lie inside.
    pub fn part(self, offset: usize, len: usize) -> Sge {
        assert!(
            offset <= self.len && len <= self.len - offset,
            "part {offset}+{len} of {}",
            self.len
        );
        if self.is_phantom() {
            return Sge::phantom(len);
        }
        // SAFETY: the part lies inside the same allocation.
        let ptr = unsafe { self.ptr.add(offset) };
        Sge { ptr, len }
    }

    /// All of `parts` if each begins where the one before ends, as the blocks of one buffer do. Empty
    /// ones count for nothing.
    pub fn join(parts: &[Sge]) -> Option<Sge> {
        let mut some = parts.iter().filter(|part| !part.is_empty());
        let Some(&first) = some.next() else { return Some(Sge::EMPTY) };
        some.try_fold(first, |whole, part| {
            let follows = match whole.is_phantom() {
                true => part.is_phantom(),
                false => whole.ptr.wrapping_add(whole.len) == part.ptr,
            };
            follows.then_some(Sge { ptr: whole.ptr, len: whole.len + part.len })
        })
    }

    /// Copies `source` to `self`; both have the same length and may overlap.
    #[inline]
    pub fn copy_from(self, source: Sge) {
        assert_eq!(self.len, source.len, "copy between elements of different length");
        if self.is_phantom() || source.is_phantom() {
            return;
        }
        // SAFETY: both were promised to be valid for their length; both ways allow overlap.
        unsafe {
            if self.len <= SMALL {
                copy_small(source.ptr, self.ptr, self.len);
            } else {
                std::ptr::copy(source.ptr, self.ptr, self.len);
            }
        }
    }

    /// Copies `source` to `self`, which another processor will read and this one not; both have the same length and
    /// do not overlap. If it is `past` the caches ([`crate::pace::is_past`]), it comes before all stores that follow.
    #[inline]
    pub fn copy_for_others(self, source: Sge, past: bool) {
        if !past {
            self.want_lines();
            return self.copy_from(source);
        }
        assert_eq!(self.len, source.len, "copy between elements of different length");
        if self.is_phantom() || source.is_phantom() {
            return;
        }
        // SAFETY: both were promised to be valid for their length, and the caller says that they do not overlap.
        unsafe { copy_past_caches(source.ptr, self.ptr, self.len) }
    }

    /// Takes the cache lines of what has been read here, unchanged, to this processor alone. For memory that another
    /// wrote and will write again, and that nobody else uses now: it gets each line by one transfer then, where
    /// it would first have to take it away from those who only read it, which is 4 to 10 times as slow.
    ///
    /// ```text
    ///   64 KiB, us           written again after it was read    after that and this    this takes
    ///   a cache in common    7.1                                1.6                    0.6
    ///   none                 28                                 4.1                    1.0
    /// ```
    #[inline]
    pub fn take_lines(self) {
        // SAFETY: inside of the element, which the caller says nobody else uses.
        self.each_line(|at| unsafe { at.cast_mut().write_volatile(at.read_volatile()) });
    }

    /// Asks for the cache lines of what is about to be written here and has been read elsewhere, all at once: stores
    /// would ask for one after the other.
    ///
    /// ```text
    ///   us, caches 0.2 us apart      512 B   1 KiB   4 KiB   8 KiB   16 KiB   64 KiB
    ///   one after another, without   0.12    0.22    0.66    1.12    1.08     4.5
    ///   with this                    0.06    0.12    0.45    0.93    0.95     4.6
    ///   there and back, half of it   0.34    0.53    1.24    1.71    2.92     9.0
    ///   with this                    0.30    0.47    1.05    1.55    2.78     9.4
    /// ```
    #[inline]
    pub fn want_lines(self) {
        /// One alone gains nothing.
        const LEAST: usize = 64;
        /// More would drive each other out before they are written.
        const MOST: usize = 16 << 10;
        if self.len > LEAST && self.len <= MOST {
            self.each_line(ask_for_line);
        }
    }

    /// Lets go of the cache lines of what was written here and another processor has just been told of: it finds them in
    /// the cache behind both, and need not ask for each. Only for caches that are far from each other.
    ///
    /// ```text
    ///   us, caches 0.2 us apart              256 B   512 B   1 KiB   2 KiB   4 KiB   8 KiB   16 KiB
    ///   there and back, half of it           0.26    0.29    0.46    0.55    0.85    1.42    2.75
    ///   with this after the news             0.23    0.25    0.37    0.50    0.73    1.33    2.75
    ///   with this before it                                                  1.10            3.6
    /// ```
    #[inline]
    pub fn hand_over_lines(self) {
        const MOST: usize = 8 << 10;
        if self.len > MOST {
            return;
        }
        self.each_line(let_go_of_line);
    }

    /// Reads a byte of each cache line.
    pub(crate) fn look_at_lines(self) {
        // SAFETY: inside of the element, which was promised to be valid for reading.
        self.each_line(|at| unsafe { _ = at.read_volatile() });
    }

    /// Runs `touch` for a byte of each cache line.
    #[inline(always)]
    fn each_line(self, touch: impl Fn(*const u8)) {
        const LINE: usize = 64;
        if self.is_phantom() {
            return;
        }
        let mut at = 0;
        while at < self.len {
            touch(self.ptr.wrapping_add(at));
            at += LINE - (self.ptr.addr() + at) % LINE;
        }
    }

    /// Copies the bytes of `source` to the start of `self`.
    pub fn fill(self, source: &[u8]) {
        assert!(source.len() <= self.len);
        if self.is_phantom() {
            return;
        }
        // SAFETY: `self` was promised to be valid for writing its length.
        unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), self.ptr, source.len()) }
    }

    /// Copies the start of `self` into `out`, which stays as it is if `self` is a phantom.
    pub fn read(self, out: &mut [u8]) {
        assert!(out.len() <= self.len);
        if self.is_phantom() {
            return;
        }
        // SAFETY: `self` was promised to be valid for reading its length.
        unsafe { std::ptr::copy_nonoverlapping(self.ptr, out.as_mut_ptr(), out.len()) }
    }
}

/// Asks for the cache line of `at`, to be written. Any address will do.
#[inline(always)]
fn ask_for_line(at: *const u8) {
    // SAFETY: a hint, which neither fails nor changes anything; processors that do not have it take it for nothing.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    // SAFETY: the same.
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = at;
}

/// Whether this processor has the instruction for [`Sge::hand_over_lines`].
#[inline]
pub(crate) fn can_hand_over() -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        const FEATURES: u32 = 7;
        const CLDEMOTE: u32 = 1 << 25;
        static HAS: OnceLock<bool> = OnceLock::new();
        use std::arch::x86_64::__cpuid_count;
        *HAS.get_or_init(|| {
            __cpuid_count(0, 0).eax >= FEATURES && __cpuid_count(FEATURES, 0).ecx & CLDEMOTE != 0
        })
    }
    #[cfg(any(miri, not(target_arch = "x86_64")))]
    false
}

/// Moves the cache line of `at` to a cache behind this processor's own. Any address will do.
#[inline(always)]
fn let_go_of_line(at: *const u8) {
    // SAFETY: a hint, which neither fails nor changes anything; processors that do not have it take it for nothing.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe {
        std::arch::asm!("cldemote [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(target_arch = "x86_64")))]
    let _ = at;
}

/// Copies by stores that no cache keeps; they are ordered before all stores that follow.
///
/// # Safety
/// `from` is readable and `to` writable for `len` bytes, and they do not overlap.
#[cfg(all(target_arch = "x86_64", not(miri)))]
unsafe fn copy_past_caches(from: *const u8, to: *mut u8, len: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    const LINE: usize = 64;
    let head = to.align_offset(LINE).min(len);
    let lines = (len - head) / LINE;
    let tail = head + lines * LINE;
    // SAFETY: head, lines and tail are the `len` bytes; stores of lines are aligned.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, head);
        for line in 0..lines {
            let source = from.add(head + line * LINE).cast::<__m128i>();
            let target = to.add(head + line * LINE).cast::<__m128i>();
            let four = [0, 1, 2, 3].map(|i| _mm_loadu_si128(source.add(i)));
            for (i, part) in four.into_iter().enumerate() {
                _mm_stream_si128(target.add(i), part);
            }
        }
        std::ptr::copy_nonoverlapping(from.add(tail), to.add(tail), len - tail);
        // Such stores are not ordered by themselves.
        _mm_sfence();
    }
}

/// The same without such stores.
///
/// # Safety
/// As there.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
unsafe fn copy_past_caches(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: by contract.
    unsafe { std::ptr::copy_nonoverlapping(from, to, len) }
}

/// Largest length for [`copy_small`], in bytes.
pub const SMALL: usize = 32;

/// Copies at most [`SMALL`] bytes without a call; the two sides may overlap.
///
/// # Safety
/// `from` is readable and `to` writable for `len` bytes.
#[inline(always)]
pub unsafe fn copy_small(from: *const u8, to: *mut u8, len: usize) {
    debug_assert!(len <= SMALL);
    // Two copies of a fixed size that may overlap cover every length in a range.
    macro_rules! ends {
        ($size:literal) => {{
            type Unit = [u8; $size];
            // SAFETY: `len >= size`, so both units lie inside the `len` bytes of either side.
            unsafe {
                let first = from.cast::<Unit>().read();
                let last = from.add(len - $size).cast::<Unit>().read();
                to.cast::<Unit>().write(first);
                to.add(len - $size).cast::<Unit>().write(last);
            }
        }};
    }
    match len {
        0 => {}
        16.. => ends!(16),
        8.. => ends!(8),
        4.. => ends!(4),
        2.. => ends!(2),
        1 => ends!(1),
    }
}

/// The fabric's own part of a [`RemoteAddr`]: keys of adapters, bounds, a segment's number. No two
/// fabrics read it alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Key(pub [u64; 3]);

impl Key {
    /// Names nothing: no region has this key.
    pub const NONE: Key = Key([0; 3]);
}

/// Where in a peer's memory an operation acts. Plain data: it may be sent in a message, by its
/// [`words`](RemoteAddr::words). `addr` is a virtual address of the owner or an offset, as the
/// fabric likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemoteAddr {
    pub addr: u64,
    pub key: Key,
}

impl RemoteAddr {
    /// Number of [`words`](RemoteAddr::words).
    pub const WORDS: usize = 4;

    /// For fabrics whose keys are one word.
    pub const fn new(key: u64, addr: u64) -> RemoteAddr {
        RemoteAddr { addr, key: Key([key, 0, 0]) }
    }

    /// The address `bytes` further on.
    pub fn offset(self, bytes: u64) -> RemoteAddr {
        RemoteAddr { addr: self.addr.wrapping_add(bytes), ..self }
    }

    /// What travels. The last words are often zero, and need not be sent then.
    pub const fn words(self) -> [u64; Self::WORDS] {
        let Key([first, second, third]) = self.key;
        [first, self.addr, second, third]
    }

    /// The address of these words.
    pub const fn from_words([first, addr, second, third]: [u64; Self::WORDS]) -> RemoteAddr {
        RemoteAddr { addr, key: Key([first, second, third]) }
    }
}

/// Words of a peer that this process sees ([`crate::Fabric::words`]), and which stay mapped while it has this.
#[derive(Clone)]
pub struct Words {
    first: NonNull<AtomicU64>,
    count: usize,
    _mapping: Arc<dyn Any + Send + Sync>,
}

impl Words {
    /// `count` words from `first` on.
    ///
    /// # Safety
    /// They are aligned, stay mapped as long as `mapping` lives, and are reached by atomics alone.
    pub unsafe fn new(
        first: NonNull<AtomicU64>,
        count: usize,
        mapping: Arc<dyn Any + Send + Sync>,
    ) -> Words {
        Words { first, count, _mapping: mapping }
    }
}

impl Deref for Words {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: by the contract of `new`.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

/// A counter in a peer's memory, as that peer's [`crate::Fabric::flag`] can be seen by it. `waking`
/// flags rouse a sleeping peer on every fabric; silent ones only where
/// [`crate::Capabilities::flags_wake`] says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteFlag {
    pub at: RemoteAddr,
    pub waking: bool,
}

/// Memory that peers may reach: allocated by the fabric ([`crate::Fabric::allocate`]) and zeroed,
/// or the program's own, exposed by [`crate::Fabric::expose`]. It stays reachable until
/// [`crate::Fabric::withdraw`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// The memory as this process sees it.
    pub local: Sge,
    /// The first byte as peers name it.
    pub remote: RemoteAddr,
}

impl Region {
    /// The address of byte `offset` as peers name it.
    pub fn at(&self, offset: usize) -> RemoteAddr {
        assert!(offset <= self.local.len());
        self.remote.offset(offset as u64)
    }
}

/// A flag inside a region: the local counter to wait for, and its name for peers.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    pub local: Counter,
    pub remote: RemoteFlag,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_taken_keep_what_is_in_them() {
        let mut bytes: Vec<u8> = (0..1000).map(|i| i as u8).collect();
        // SAFETY: `bytes` outlives it.
        let all = unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) };
        let parts = [all, all.part(3, 1), all.part(63, 130), Sge::EMPTY, Sge::phantom(100)];
        parts.into_iter().for_each(Sge::take_lines);
        assert!(bytes.iter().enumerate().all(|(i, &byte)| byte == i as u8));
    }

    #[test]
    fn neighbours_are_joined() {
        let mut memory = [0u8; 16];
        // SAFETY: nobody reads or writes it.
        let all = unsafe { Sge::new(memory.as_mut_ptr(), 16) };
        let [a, b, c] = [(0, 4), (4, 0), (4, 12)].map(|(at, len)| all.part(at, len));
        assert_eq!(Sge::join(&[a, b, c]), Some(all));
        assert_eq!(Sge::join(&[c, a]), None);
        assert_eq!(Sge::join(&[all.part(0, 4), all.part(5, 2)]), None);
        assert_eq!(Sge::join(&[]), Some(Sge::EMPTY));
        assert_eq!(Sge::join(&[Sge::phantom(3), Sge::phantom(4)]), Some(Sge::phantom(7)));
        assert_eq!(Sge::join(&[Sge::phantom(3), a]), None);
    }

    #[test]
    fn copies_past_caches_are_whole() {
        let from: Vec<u8> = (0..1000).map(|i| (i * 7 + 3) as u8).collect();
        for (skip, len) in [(0, 1000), (1, 999), (63, 500), (64, 64), (5, 40), (7, 0), (60, 130)] {
            let mut to = vec![0; 1100];
            // SAFETY: both are long enough.
            unsafe { copy_past_caches(from.as_ptr(), to.as_mut_ptr().add(skip), len) };
            assert_eq!(to[skip..skip + len], from[..len], "{skip} {len}");
            assert!(to[..skip].iter().chain(&to[skip + len..]).all(|&byte| byte == 0));
        }
    }
}
