//! Layout of a [`RemoteAddr`]. An address has enough detail to post an operation at once, and to reject a wrong address before the
//! provider does.
//!
//! ```text
//!   addr     virtual address at the owner
//!   key 0    63 62   61        60 .. 58   57 .. 48   47 ........................... 0
//!            free    program   zero       check      length of the registration
//!   key 1    the provider's key                      key 2: first byte of the registration, as an address at the owner
//! ```
//! `check` is a digest of all the other bits. The digest catches mistakes. It need not stop an attacker, because an attacker cannot
//! guess a key: if the provider lets this library choose a key, the key has 64 random bits. The two free bits are zero; a fabric
//! that wraps this fabric may use them.

use weft_fabric::{Fault, Key, RemoteAddr};

/// Bit that marks memory of the program. Such memory has no flags and no atomics.
const PROGRAM: u64 = 1 << 61;

/// Upper bound of lengths and addresses (exclusive), in bytes.
const TOP: u64 = 1 << 48;

/// The part of a registration that peers know. Each address contains this part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryName {
    pub key: u64,
    pub start: u64,
    pub len: u64,
    pub program: bool,
}

/// A checked address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfiTarget {
    pub key: u64,
    /// Virtual address at the owner.
    pub at: u64,
    /// Distance from the start of the registration, in bytes.
    pub offset: u64,
}

impl OfiTarget {
    /// Returns the target that lies `bytes` bytes after this target.
    pub fn further(self, bytes: usize) -> OfiTarget {
        OfiTarget { at: self.at + bytes as u64, offset: self.offset + bytes as u64, ..self }
    }
}

impl MemoryName {
    fn check(&self) -> u64 {
        let mixed = self.key.rotate_left(29) ^ self.start.rotate_left(7) ^ self.len;
        let mixed = (mixed ^ u64::from(self.program)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        1 + (mixed >> 32) % 1023
    }

    /// Returns the name of the byte at address `at`.
    pub fn encode(&self, at: u64) -> RemoteAddr {
        debug_assert!(self.len < TOP && self.start < TOP);
        let kind = if self.program { PROGRAM } else { 0 };
        let first = kind | self.check() << 48 | self.len;
        RemoteAddr { addr: at, key: Key([first, self.key, self.start]) }
    }

    /// Returns the registration that an address names, or `None` if the address is malformed.
    pub fn of(at: RemoteAddr) -> Option<MemoryName> {
        let Key([first, key, start]) = at.key;
        let (program, len) = (first & PROGRAM != 0, first & (TOP - 1));
        let named = MemoryName { key, start, len, program };
        let whole = first == (first & PROGRAM) | named.check() << 48 | len;
        (whole && start < TOP).then_some(named)
    }
}

/// Returns true if a [`RemoteAddr`] can name memory that ends at `end`.
pub fn can_name(end: usize) -> bool {
    (end as u64) < TOP
}

/// Checks that `len` bytes at `at` of process `rank` lie in a registration that can exist.
pub fn decode(rank: usize, at: RemoteAddr, len: usize) -> Result<OfiTarget, Fault> {
    let named = MemoryName::of(at).ok_or_else(|| Fault::corrupt(rank, "memory key"))?;
    let end = named.start + named.len;
    let inside = at.addr.checked_add(len as u64).is_some_and(|last| last <= end);
    if !inside || at.addr < named.start {
        return Err(Fault::corrupt(rank, "remote address"));
    }
    Ok(OfiTarget { key: named.key, at: at.addr, offset: at.addr - named.start })
}

/// Checks the address of an aligned word in memory that a fabric allocated.
pub fn decode_word(rank: usize, at: RemoteAddr) -> Result<OfiTarget, Fault> {
    let target = decode(rank, at, 8)?;
    if !target.at.is_multiple_of(8) {
        return Err(Fault::corrupt(rank, "address of a word"));
    }
    if MemoryName::of(at).is_some_and(|named| named.program) {
        let what = "do atomics on memory that it did not allocate";
        return Err(Fault::unsupported(rank, what));
    }
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMED: MemoryName =
        MemoryName { key: !5, start: 0x7f00_0000_1000, len: 4096, program: false };

    #[test]
    fn what_is_encoded_is_decoded() {
        let at = NAMED.encode(NAMED.start + 64);
        let target = OfiTarget { key: !5, at: NAMED.start + 64, offset: 64 };
        assert_eq!(decode(1, at, 4032), Ok(target));
        assert!(decode_word(1, at).is_ok() && decode_word(1, at.offset(4)).is_err());
        let Key([first, ..]) = at.key;
        assert_eq!(first >> 62, 0, "the bits that are left free");
        let program = MemoryName { program: true, ..NAMED };
        assert!(decode_word(1, program.encode(program.start)).is_err());
        assert!(decode(1, program.encode(program.start), 8).is_ok());
    }

    #[test]
    fn wrong_addresses_are_refused() {
        let at = NAMED.encode(NAMED.start + 64);
        let bad = |at, len| decode(0, at, len).is_err();
        assert!(bad(RemoteAddr { addr: 1 << 62, ..at }, 8), "beyond");
        assert!(bad(RemoteAddr { addr: u64::MAX - 3, ..at }, 8), "around the end");
        assert!(bad(RemoteAddr { addr: NAMED.start - 8, ..at }, 8), "before");
        assert!(bad(RemoteAddr { key: Key::NONE, ..at }, 0), "no key");
        assert!(bad(RemoteAddr { key: Key([5; 3]), ..at }, 8), "another key");
        assert!(bad(at, 4033), "one too far");
    }
}
