//! Random numbers that nobody can guess: keys of memory, and the secret of the job.

/// Returns 64 random bits.
///
/// # Panics
/// Panics if the system has no random numbers, which does not happen on Linux.
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
