//! Names of memory: local pieces, and regions that peers may reach.

use crate::Counter;
use std::any::Any;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A piece of local memory that an operation may read or write until it completes: the scatter/gather element of verbs. Its
/// length is in bytes and may be zero, with any pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sge {
    ptr: *mut u8,
    len: usize,
}

impl Sge {
    /// An element without memory.
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

    /// Creates a phantom: an element with a length but without memory, for the simulator. A copy from or to a phantom moves
    /// nothing.
    pub const fn phantom(len: usize) -> Sge {
        Sge { ptr: std::ptr::null_mut(), len }
    }

    /// Returns true if the element is a phantom, which has only a length.
    #[inline]
    pub const fn is_phantom(self) -> bool {
        self.ptr.is_null()
    }

    /// Returns the address of the first byte; null for a phantom, dangling for [`Sge::EMPTY`].
    pub const fn ptr(self) -> *mut u8 {
        self.ptr
    }

    /// Returns the length in bytes.
    pub const fn len(self) -> usize {
        self.len
    }

    /// Returns true if the length is zero. The pointer means nothing then.
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Returns the part of `len` bytes that starts at `offset`.
    ///
    /// # Panics
    /// If the part does not lie inside the element.
    pub fn part(self, offset: usize, len: usize) -> Sge {
        assert!(
            offset <= self.len && len <= self.len - offset,
            "part {offset}+{len} of {}",
            self.len
        );
        if self.is_phantom() {
            return Sge::phantom(len);
        }
        // SAFETY: `offset <= self.len`, so the result lies inside the same allocation, or at its end.
        let ptr = unsafe { self.ptr.add(offset) };
        Sge { ptr, len }
    }

    /// Returns all of `parts` as a single element if each part begins where the part before ends, as the blocks of one buffer
    /// do. Empty parts are ignored.
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
        // SAFETY: the callers of `Sge::new` promised that `source` is readable and `self` is writable for their length, which is
        // equal. Both copies allow overlap; `copy_small` copies at most `SMALL` bytes.
        unsafe {
            if self.len <= SMALL {
                copy_small(source.ptr, self.ptr, self.len);
            } else {
                std::ptr::copy(source.ptr, self.ptr, self.len);
            }
        }
    }

    /// Copies the bytes of `source` to the start of `self`.
    pub fn fill(self, source: &[u8]) {
        assert!(source.len() <= self.len);
        if self.is_phantom() {
            return;
        }
        // SAFETY: the caller of `Sge::new` promised that a destination is writable for its length, which is at least that of
        // `source`. The promise excludes references to the memory, so `source` does not overlap it.
        unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), self.ptr, source.len()) }
    }

    /// Copies the start of `self` into `out`, which stays as it is if `self` is a phantom.
    pub fn read(self, out: &mut [u8]) {
        assert!(out.len() <= self.len);
        if self.is_phantom() {
            return;
        }
        // SAFETY: the caller of `Sge::new` promised that a source is readable for its length, which is at least that of `out`.
        // `out` is borrowed mutably, so it does not overlap.
        unsafe { std::ptr::copy_nonoverlapping(self.ptr, out.as_mut_ptr(), out.len()) }
    }
}

impl Default for Sge {
    fn default() -> Sge {
        Sge::EMPTY
    }
}

/// Maximum length for [`copy_small`], in bytes.
pub const SMALL: usize = 32;

/// Copies at most [`SMALL`] bytes without a call; the two sides may overlap.
///
/// # Safety
/// `from` is readable and `to` writable for `len` bytes.
#[inline(always)]
pub unsafe fn copy_small(from: *const u8, to: *mut u8, len: usize) {
    debug_assert!(len <= SMALL);
    // A copy of the first `$size` bytes and a copy of the last `$size` bytes cover every length from `$size` to twice `$size`.
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

/// The fabric's own part of a [`RemoteAddr`]: keys of adapters, bounds, the number of a segment. Each fabric encodes it in its
/// own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Key(pub [u64; 3]);

impl Key {
    /// The key of no region.
    pub const NONE: Key = Key([0; 3]);
}

/// A place in a peer's memory on which an operation acts. It is plain data, and can be sent in a message as
/// [`words`](RemoteAddr::words).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemoteAddr {
    /// Virtual address of the owner or offset into a region, in bytes. Only the fabric knows which.
    pub addr: u64,
    /// The data, in addition to `addr`, by which the fabric reaches and checks the memory.
    pub key: Key,
}

impl RemoteAddr {
    /// Number of [`words`](RemoteAddr::words).
    pub const WORDS: usize = 4;

    /// Creates an address for a fabric whose keys are one word.
    pub const fn new(key: u64, addr: u64) -> RemoteAddr {
        RemoteAddr { addr, key: Key([key, 0, 0]) }
    }

    /// Returns the address that lies `bytes` bytes behind this address.
    pub fn offset(self, bytes: u64) -> RemoteAddr {
        RemoteAddr { addr: self.addr.wrapping_add(bytes), ..self }
    }

    /// Returns the words that a message carries. The last words are often zero, and a message may omit zeros at the end.
    pub const fn words(self) -> [u64; Self::WORDS] {
        let Key([first, second, third]) = self.key;
        [first, self.addr, second, third]
    }

    /// Returns the address that these words encode.
    pub const fn from_words([first, addr, second, third]: [u64; Self::WORDS]) -> RemoteAddr {
        RemoteAddr { addr, key: Key([first, second, third]) }
    }
}

/// Words of a peer that this process sees ([`crate::FabricExt::words`]). They stay mapped while this value lives.
#[derive(Clone)]
pub struct PeerWords {
    first: NonNull<AtomicU64>,
    count: usize,
    _mapping: Arc<dyn Any + Send + Sync>,
}

impl PeerWords {
    /// Names `count` words from `first` on.
    ///
    /// # Safety
    /// The words are aligned, stay mapped as long as `mapping` lives, and are accessed only by atomics.
    pub unsafe fn new(
        first: NonNull<AtomicU64>,
        count: usize,
        mapping: Arc<dyn Any + Send + Sync>,
    ) -> PeerWords {
        PeerWords { first, count, _mapping: mapping }
    }
}

impl Deref for PeerWords {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the caller of `new` promised that `count` aligned words from `first` on stay mapped while `_mapping` lives,
        // and that only atomics access them.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

/// A counter in a peer's memory: the peer's [`crate::Fabric::flag`] as this process names it. `waking` flags wake a sleeping peer
/// on every fabric; silent flags wake a peer only if [`crate::Capabilities::flags_wake`] is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteFlag {
    /// The 8-byte aligned word that is written.
    pub at: RemoteAddr,
    /// True if a write to the flag must wake a sleeping peer on every fabric.
    pub waking: bool,
}

/// Kind of a flag, by whether a write to it must wake a sleeping owner on every fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagKind {
    /// A write wakes the owner.
    Waking,
    /// A write need not wake the owner.
    Silent,
}

/// Memory that peers may reach: zeroed memory from [`crate::Fabric::allocate`], or memory of the program that was exposed by
/// [`crate::Fabric::expose`]. The memory stays reachable until [`crate::Fabric::withdraw`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// The memory as this process sees it.
    pub local: Sge,
    /// The first byte as peers name it.
    pub remote: RemoteAddr,
}

impl Region {
    /// Alignment, in bytes, of all memory that fabrics allocate.
    pub const ALIGN: usize = 64;
    /// Maximum alignment in bytes that holds in all processes: the address of shared memory modulo this number is equal in all
    /// processes that see it.
    pub const ALIGN_SEEN: usize = 2 << 20;

    /// Returns the number of bytes to allocate so that `len` bytes at a multiple of `align`, a power of two, fit. Returns `None`
    /// on overflow.
    pub fn room(len: usize, align: usize) -> Option<usize> {
        len.checked_add(align.saturating_sub(Region::ALIGN))
    }

    /// Returns the offset of the first byte whose address is a multiple of `align`, in memory of the size from [`Region::room`].
    pub fn first_at(&self, align: usize) -> usize {
        self.local.ptr().addr().wrapping_neg() & (align.max(1) - 1)
    }

    /// Returns the address of byte `offset` as peers name it.
    pub fn at(&self, offset: usize) -> RemoteAddr {
        assert!(offset <= self.local.len());
        self.remote.offset(offset as u64)
    }
}

/// A flag inside a region: the local counter to wait for, and its name for peers.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// The counter that the owner waits for. Its value is the value that a peer last wrote.
    pub local: Counter,
    /// The name of the flag that the owner sends to peers, so that they can write to it.
    pub remote: RemoteFlag,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_joined() {
        let mut memory = [0u8; 16];
        // SAFETY: the test never reads or writes through the element.
        let all = unsafe { Sge::new(memory.as_mut_ptr(), 16) };
        let [a, b, c] = [(0, 4), (4, 0), (4, 12)].map(|(at, len)| all.part(at, len));
        assert_eq!(Sge::join(&[a, b, c]), Some(all));
        assert_eq!(Sge::join(&[c, a]), None);
        assert_eq!(Sge::join(&[all.part(0, 4), all.part(5, 2)]), None);
        assert_eq!(Sge::join(&[]), Some(Sge::EMPTY));
        assert_eq!(Sge::join(&[Sge::phantom(3), Sge::phantom(4)]), Some(Sge::phantom(7)));
        assert_eq!(Sge::join(&[Sge::phantom(3), a]), None);
    }
}
