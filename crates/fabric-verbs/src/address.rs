//! The encoding of memory in a [`RemoteAddr`]. From the encoding alone, an operation can be posted at once on any rail that the
//! peers share. A wrong address can usually be rejected before it reaches the adapter. An error of the adapter would end the
//! connection.
//!
//! ```text
//!   addr     virtual address at the owner
//!   key 0    63 62   61     60      59 .. 57  56 .. 48  47 ........................... 0
//!            free    wake   program  check     length    end of the registration
//!   key 1    63 ........ 32  31 ......... 0
//!            key of rail 1   key of rail 0        key 2: keys of rails 3 and 2
//! ```
//! `length` is the length of the registration, rounded up to a number with four leading bits. `check` is a digest of the keys. Both
//! detect accidental errors, but not malicious addresses. The check of the adapter is exact. The two free bits are zero. A fabric
//! that wraps this fabric may use them.

use crate::RAILS_MAX;
use weft_fabric::{Fault, Key, Region, RemoteAddr};

/// Mark in an address: the operation wakes the owner afterwards, because the address is a waking flag of the fabric.
const WAKE: u64 = 1 << 61;
/// Mark in an address: the memory belongs to the program, so it has neither flags nor atomics.
const PROGRAM: u64 = 1 << 60;

/// Virtual addresses are below this limit.
const TOP: u64 = 1 << 48;

/// Keys are below this limit. Adapters give only such keys.
const NO_KEY: u32 = 0xffff_ff00;

/// Maximum exponent of a valid length code.
const STEEPEST: u32 = 44;

/// Keys by rail. A rail without a key has the key 0.
type RailKeys = [u32; RAILS_MAX];

const _: () = assert!(RAILS_MAX == 4, "two words of keys");

/// Returns the code of the smallest representable length that is at least `len`.
fn length_code(len: u64) -> u64 {
    let mut exponent = 60u32.saturating_sub(len.leading_zeros());
    if len.div_ceil(1 << exponent) > 15 {
        exponent += 1;
    }
    let mantissa = len.div_ceil(1 << exponent).max(8);
    u64::from(exponent) << 3 | (mantissa - 8)
}

fn length(code: u64) -> Option<u64> {
    let exponent = (code >> 3) as u32;
    (exponent <= STEEPEST).then(|| (8 + (code & 7)) << exponent)
}

/// Returns `len` rounded up. Rounding reduces the number of different lengths.
pub fn rounded(len: usize) -> usize {
    length(length_code(len as u64)).map_or(len, |len| len as usize)
}

/// Returns a digest of the keys, from 1 to 7.
fn check(first: u64, second: u64) -> u64 {
    let mixed = (first ^ second.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    1 + (mixed >> 32) % 7
}

fn pack(keys: RailKeys) -> [u64; 2] {
    let pair = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
    [pair(keys[0], keys[1]), pair(keys[2], keys[3])]
}

/// Returns true if memory that ends at `end` can be encoded.
pub fn can_name(end: usize) -> bool {
    (end as u64) < TOP
}

/// Owner of memory that peers may access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryOwner {
    /// A fabric has allocated the memory, which may have flags and atomics.
    Fabric,
    Program,
}

/// Encodes address `at`, which lies in a registration of `len` bytes that begins at `start`.
pub fn encode(keys: RailKeys, start: u64, len: u64, at: u64, owner: MemoryOwner) -> RemoteAddr {
    let [first, second] = pack(keys);
    let end = start + len;
    debug_assert!(end < TOP && (start..=end).contains(&at));
    let kind = if owner == MemoryOwner::Program { PROGRAM } else { 0 };
    let bounds = kind | check(first, second) << 57 | length_code(len) << 48 | end;
    RemoteAddr { addr: at, key: Key([bounds, first, second]) }
}

/// Encodes the address of an empty piece, which refers to no memory of the program.
pub fn empty(at: u64) -> RemoteAddr {
    RemoteAddr { addr: at, key: Key([PROGRAM, 0, 0]) }
}

/// Returns true if the region is memory of the program.
pub fn is_programs(region: &Region) -> bool {
    let Key([bounds, ..]) = region.remote.key;
    bounds & PROGRAM != 0
}

/// Returns the same address with the mark of a waking flag.
pub fn waking(at: RemoteAddr) -> RemoteAddr {
    let Key([bounds, first, second]) = at.key;
    RemoteAddr { key: Key([bounds | WAKE, first, second]), ..at }
}

/// Returns the keys of the region's registration. All regions of one registration have the same keys.
pub fn registration(region: &Region) -> [u64; 2] {
    let Key([_, first, second]) = region.remote.key;
    [first, second]
}

/// Returns the value that [`registration`] returns for regions with these keys.
pub fn registration_of(keys: RailKeys) -> [u64; 2] {
    pack(keys)
}

/// A checked address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerbsTarget {
    pub keys: RailKeys,
    pub at: u64,
    pub wake: bool,
}

impl VerbsTarget {
    /// An empty address, for operations without data.
    pub const NOWHERE: VerbsTarget = VerbsTarget { keys: [0; RAILS_MAX], at: 0, wake: false };

    /// Returns the target that lies `bytes` bytes after this target.
    pub fn further(self, bytes: usize) -> VerbsTarget {
        VerbsTarget { at: self.at + bytes as u64, ..self }
    }
}

/// Checks that `len` bytes at `at` can lie within a registration of process `rank`.
pub fn decode(rank: usize, at: RemoteAddr, len: usize) -> Result<VerbsTarget, Fault> {
    let Key([bounds, first, second]) = at.key;
    let keys = [first as u32, (first >> 32) as u32, second as u32, (second >> 32) as u32];
    if keys.iter().any(|&key| key >= NO_KEY) || bounds >> 57 & 7 != check(first, second) {
        return Err(Fault::corrupt(rank, "memory key"));
    }
    let end = bounds & (TOP - 1);
    let start = end.saturating_sub(length(bounds >> 48 & 511).unwrap_or(0));
    let inside = at.addr.checked_add(len as u64).is_some_and(|last| last <= end);
    if !inside || at.addr < start {
        return Err(Fault::corrupt(rank, "remote address"));
    }
    Ok(VerbsTarget { keys, at: at.addr, wake: bounds & WAKE != 0 })
}

/// Checks the address of an aligned word that a fabric allocated.
pub fn decode_word(rank: usize, at: RemoteAddr) -> Result<VerbsTarget, Fault> {
    let target = decode(rank, at, 8)?;
    if !target.at.is_multiple_of(8) {
        return Err(Fault::corrupt(rank, "address of a word"));
    }
    let Key([bounds, ..]) = at.key;
    if bounds & PROGRAM != 0 {
        let what = "do atomics on memory that it did not allocate";
        return Err(Fault::unsupported(rank, what));
    }
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_close_and_never_short() {
        for len in (0..5000).chain((3..44).flat_map(|i| [(1 << i) - 1, 1 << i, (1 << i) + 1])) {
            let length = length(length_code(len)).unwrap();
            assert!(length >= len, "{len}: {length}");
            assert!(length <= (len + len / 8).max(8), "{len}: {length}");
        }
        assert_eq!(rounded(1 << 20), 1 << 20);
        assert_eq!(rounded((1 << 20) + 1), 9 << 17);
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let (start, len) = (0x7f12_3456_7000, 70_000);
        for keys in [[1, 0, 0, 0], [0x1234_5678, 0x9abc_def0, 5, 6], [7; 4]] {
            let at = waking(encode(keys, start, len, start + 4000, MemoryOwner::Fabric));
            assert_eq!(
                decode(3, at, 60_000),
                Ok(VerbsTarget { keys, at: start + 4000, wake: true })
            );
            assert_eq!(decode(3, at.offset(66_000), 0).unwrap().at, start + 70_000);
            assert!(decode_word(3, at).is_ok() && decode_word(3, at.offset(4)).is_err());
            let Key([bounds, ..]) = at.key;
            assert_eq!(bounds >> 62, 0, "the bits that are left free");
        }
        let exposed = encode([1, 2, 0, 0], start, 8, start, MemoryOwner::Program);
        let fault = decode_word(3, exposed).unwrap_err();
        assert!(matches!(fault.cause(), weft_fabric::FaultCause::Unsupported { rank: 3, .. }));
    }

    #[test]
    fn wrong_addresses_are_refused() {
        let start = 0x5555_0000_1000;
        for key in 1..2000 {
            let at = encode([key << 8, 0, 0, 0], start, 4096, start + 64, MemoryOwner::Fabric);
            let bad = |at, len| decode(0, at, len).is_err();
            assert!(bad(RemoteAddr { addr: 1 << 62, ..at }, 8), "beyond");
            assert!(bad(RemoteAddr { addr: u64::MAX - 3, ..at }, 8), "around the end");
            assert!(bad(RemoteAddr { addr: 0, ..at }, 0), "null");
            assert!(bad(RemoteAddr { addr: start - 8, ..at }, 8), "before");
            assert!(bad(RemoteAddr { key: Key::NONE, ..at }, 8), "no key");
            assert!(bad(RemoteAddr { key: Key([5; 3]), ..at }, 8), "another key");
            assert!(bad(at, 4096) && !bad(at, 4032), "one too far");
        }
    }
}
