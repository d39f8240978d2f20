//! A hash that only a process with its keys can compute.

use std::hash::{Hash, Hasher};
use subtle::ConstantTimeEq;

/// Computes the keyed hash of `what`, which proves that its author knows `secret`. The hash is equal in all processes of the same
/// build of the library.
pub fn keyed_hash(secret: u128, what: impl Hash) -> u64 {
    // The deprecated type is the only keyed hash of the standard library.
    #[allow(deprecated)]
    let mut hasher = std::hash::SipHasher::new_with_keys(secret as u64, (secret >> 64) as u64);
    what.hash(&mut hasher);
    hasher.finish()
}

/// Computes a keyed hash of 128 bits, like [`keyed_hash`].
pub fn keyed_hash_128(secret: u128, what: impl Hash) -> u128 {
    let half = |half: u8| u128::from(keyed_hash(secret, (half, &what)));
    half(0) | half(1) << 64
}

/// Returns true if two proofs, or two secrets, are equal. The time does not depend on the place where they differ, so that it
/// reveals nothing.
pub fn is_same_secret(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bit_of_the_secret_counts_in_each_half() {
        let halves = |secret| {
            let hash = keyed_hash_128(secret, "what");
            [hash as u64, (hash >> 64) as u64]
        };
        for bit in 0..128 {
            assert!(halves(1 << bit).iter().all(|half| !halves(0).contains(half)), "bit {bit}");
        }
        assert_ne!(keyed_hash_128(7, "what"), keyed_hash_128(7, "why"));
    }

    #[test]
    fn secrets_are_the_same_to_the_last_bit() {
        let secret = [7u8; 16];
        assert!(is_same_secret(&secret, &[7; 16]) && is_same_secret(&[], &[]));
        assert!(!is_same_secret(&secret, &[7; 15]));
        for bit in 0..128 {
            let mut other = secret;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_same_secret(&secret, &other), "bit {bit}");
        }
    }
}
