//! A hash that only those can compute who know its keys.

use std::hash::{Hash, Hasher};

/// The keyed hash of `what`: a proof that whoever made it knows `keys`. The same in processes of one build of the library.
pub fn keyed_hash(keys: [u64; 2], what: impl Hash) -> u64 {
    // The one keyed hash of the standard library: a keyed hash is all that is asked for.
    #[allow(deprecated)]
    let mut hasher = std::hash::SipHasher::new_with_keys(keys[0], keys[1]);
    what.hash(&mut hasher);
    hasher.finish()
}
