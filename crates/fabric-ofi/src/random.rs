//! What nobody guesses: keys of memory, and the secret of the job.

/// 64 random bits.
///
/// # Panics
/// If the system has no randomness, which it always has.
pub fn random() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("the system's random numbers");
    u64::from_ne_bytes(bytes)
}
