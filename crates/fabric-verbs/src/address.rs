//! How a [`RemoteAddr`] names memory: enough to post at once, whatever rail the peers share, and to
//! find a wrong address before the adapter does (which would end the connection).
//!
//! ```text
//!   key    63 ........ 32  31 ......... 0
//!          key of rail 1   key of rail 0
//!   addr   63    62       61 ... 57  56 ... 48  47 ............................. 0
//!          wake  program  check      bound      address as the adapter names it
//! ```
//! `bound` is the end of the registration, rounded up to a number with four leading bits; `check` is
//! a digest of the key. Both catch mistakes, not malice: the adapter checks exactly. It names a
//! registration's bytes from the start's offset in its page on, so that addresses are small.

use weft_fabric::{Fault, RemoteAddr};

/// Rouse the owner after the operation (a waking flag).
pub const WAKE: u64 = 1 << 63;
/// The program's memory: no flags and no atomics.
pub const PROGRAM: u64 = 1 << 62;

const LOW: u64 = (1 << 48) - 1;

/// Adapters do not give keys from here on.
const NO_KEY: u32 = 0xffff_ff00;

/// The largest exponent of a bound that makes sense.
const STEEPEST: u32 = 44;

/// Number of the smallest bound that is at least `end`.
fn bound_code(end: u64) -> u64 {
    let mut exponent = 60u32.saturating_sub(end.leading_zeros());
    if end.div_ceil(1 << exponent) > 15 {
        exponent += 1;
    }
    let mantissa = end.div_ceil(1 << exponent).max(8);
    u64::from(exponent) << 3 | (mantissa - 8)
}

fn bound(code: u64) -> Option<u64> {
    let exponent = (code >> 3) as u32;
    (exponent <= STEEPEST).then(|| (8 + (code & 7)) << exponent)
}

/// `len` rounded up so that few different lengths occur.
pub fn rounded(len: usize) -> usize {
    bound(bound_code(len as u64)).map_or(len, |bound| bound as usize)
}

/// A digest of a key that is never zero.
fn check(key: u64) -> u64 {
    1 + (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % 31
}

/// Names byte `at` (as the adapter does) of a registration with these keys that ends at `end`.
pub fn encode(keys: [u32; 2], at: u64, end: u64, kind: u64) -> RemoteAddr {
    let key = u64::from(keys[1]) << 32 | u64::from(keys[0]);
    debug_assert!(at <= LOW && end <= LOW);
    RemoteAddr { key, addr: kind | check(key) << 57 | bound_code(end) << 48 | at }
}

/// A checked address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    pub keys: [u32; 2],
    /// As the adapter names it.
    pub at: u64,
    pub wake: bool,
}

/// Checks that `len` bytes at `at` of process `rank` can exist.
pub fn decode(rank: usize, at: RemoteAddr, len: usize) -> Result<Target, Fault> {
    let keys = [at.key as u32, (at.key >> 32) as u32];
    if keys.iter().any(|&key| key >= NO_KEY) || at.addr >> 57 & 31 != check(at.key) {
        return Err(Fault::Corrupt { rank, what: "memory key" });
    }
    let start = at.addr & LOW;
    let end = bound(at.addr >> 48 & 511).unwrap_or(0);
    if start.checked_add(len as u64).is_none_or(|last| last > end) {
        return Err(Fault::Corrupt { rank, what: "remote address" });
    }
    Ok(Target { keys, at: start, wake: at.addr & WAKE != 0 })
}

/// Checks the address of an aligned word that the fabric allocated.
pub fn decode_word(rank: usize, at: RemoteAddr) -> Result<Target, Fault> {
    let target = decode(rank, at, 8)?;
    if !target.at.is_multiple_of(8) {
        return Err(Fault::Corrupt { rank, what: "address of a word" });
    }
    if at.addr & PROGRAM != 0 {
        let what = "do atomics on memory that it did not allocate";
        return Err(Fault::Unsupported { rank, what });
    }
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_close_and_never_short() {
        for end in (0..5000).chain((3..44).flat_map(|i| [(1 << i) - 1, 1 << i, (1 << i) + 1])) {
            let bound = bound(bound_code(end)).unwrap();
            assert!(bound >= end, "{end}: {bound}");
            assert!(bound <= (end + end / 8).max(8), "{end}: {bound}");
        }
        assert_eq!(rounded(1 << 20), 1 << 20);
        assert_eq!(rounded((1 << 20) + 1), 9 << 17);
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        for keys in [[1, 0], [0x1234_5678, 0x9abc_def0], [7, 7]] {
            let at = encode(keys, 4000, 70_000, WAKE);
            assert_eq!(decode(3, at, 60_000), Ok(Target { keys, at: 4000, wake: true }));
            assert_eq!(decode(3, at.offset(66_000), 0).unwrap().at, 70_000);
            assert!(decode_word(3, at).is_ok() && decode_word(3, at.offset(4)).is_err());
        }
        let exposed = encode([1, 2], 0, 8, PROGRAM);
        assert!(matches!(decode_word(3, exposed), Err(Fault::Unsupported { rank: 3, .. })));
    }

    #[test]
    fn wrong_addresses_are_refused() {
        for key in 1..2000 {
            let at = encode([key << 8, 0], 64, 4096, 0);
            let bad = |at, len| decode(0, at, len).is_err();
            assert!(bad(RemoteAddr { addr: 1 << 62, ..at }, 8), "beyond");
            assert!(bad(RemoteAddr { addr: u64::MAX - 3, ..at }, 8), "around the end");
            assert!(bad(RemoteAddr { key: u64::MAX - 1, ..at }, 8), "no key");
            assert!(bad(RemoteAddr { addr: 0, ..at }, 0), "null");
            assert!(bad(at, 4096) && !bad(at, 4032), "one too far");
        }
    }
}
