//! What nobody guesses: keys of memory, and the secret of the job.

/// 64 random bits.
///
/// # Panics
/// If the system has no randomness, which it always has.
pub fn random() -> u64 {
    u64::from_ne_bytes(bytes())
}

/// Returns random bytes from the system.
///
/// # Panics
/// Panics if the system has no random numbers, which does not happen on Linux.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system's random numbers");
    bytes
}
