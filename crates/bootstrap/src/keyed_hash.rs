//! A hash that only a process with its keys can compute.

use std::hash::{Hash, Hasher};
use subtle::ConstantTimeEq;

/// Computes the keyed hash of `what`, which proves that its author knows `keys`. Equal in processes of the same build of the
/// library.
pub fn keyed_hash(keys: [u64; 2], what: impl Hash) -> u64 {
    // The deprecated type is the only keyed hash of the standard library.
    #[allow(deprecated)]
    let mut hasher = std::hash::SipHasher::new_with_keys(keys[0], keys[1]);
    what.hash(&mut hasher);
    hasher.finish()
}

/// Reports whether two proofs, or two secrets, are equal. Takes the same time wherever they differ, so that the time reveals
/// nothing.
pub fn is_same_secret(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

#[cfg(test)]
mod tests {
    use super::*;

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
