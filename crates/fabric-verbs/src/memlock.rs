//! The limit on locked memory. Memory that adapters access must be locked.

use crate::VerbsConnectError;
use crate::memory::pool::RegisteredPool;
use crate::sizes::BUFFER;
use std::fs;

/// Number of bytes that each rail locks: the pool, the buffers for datagrams, and small allocations.
const RAIL: u64 = RegisteredPool::BYTES as u64 + (2 << 20);

/// The limit RLIMIT_MEMLOCK of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memlock {
    /// Current limit in bytes; `u64::MAX` if there is no limit.
    soft: u64,
    /// Maximum to which this process may raise the limit, in bytes; `u64::MAX` if there is no maximum.
    hard: u64,
    /// True if the process may exceed any limit (CAP_IPC_LOCK).
    privileged: bool,
}

impl Memlock {
    pub fn get() -> Memlock {
        let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: u64::MAX };
        // SAFETY: `getrlimit` needs a valid place for the result: `limit`.
        unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) };
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let bits = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
        let privileged = bits >> 14 & 1 == 1;
        Memlock { soft: limit.rlim_cur, hard: limit.rlim_max, privileged }
    }

    /// Returns the maximum number of bytes that this process may lock after it has raised its limit.
    fn most(&self) -> u64 {
        if self.privileged { u64::MAX } else { self.hard }
    }

    /// Returns the maximum number of receive buffers that may be locked in addition to the memory that `rails` rails need.
    pub fn buffers(&self, rails: usize) -> usize {
        (self.most().saturating_sub(rails as u64 * RAIL) / BUFFER as u64) as usize
    }

    /// Checks that this process may lock the memory that `rails` rails and the `buffers` buffers of one peer need. Returns an error
    /// if the limit is too small.
    pub fn check(&self, rails: usize, buffers: usize) -> Result<(), VerbsConnectError> {
        let needed = rails as u64 * RAIL + (buffers * BUFFER) as u64;
        match self.most() {
            limit if limit < needed => Err(VerbsConnectError::Memlock { limit, needed }),
            _ => Ok(()),
        }
    }

    /// Raises the limit to the maximum.
    pub fn raise(&self) {
        if !self.privileged && self.soft < self.hard {
            let limit = libc::rlimit { rlim_cur: self.hard, rlim_max: self.hard };
            // SAFETY: `setrlimit` needs a valid limit. Raising the soft limit up to the hard limit cannot fail.
            unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit) };
        }
    }

    /// Describes the limit for the user.
    pub fn describe(&self) -> String {
        let most = match self.hard {
            _ if self.privileged => return "no limit (this user has CAP_IPC_LOCK)".to_owned(),
            libc::RLIM_INFINITY => "no limit".to_owned(),
            most => format!("at most {} KiB", most >> 10),
        };
        match self.soft < self.hard {
            true => format!("{most} (the limit of {} KiB is raised at start)", self.soft >> 10),
            false => most,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(soft: u64, hard: u64, privileged: bool) -> Memlock {
        Memlock { soft, hard, privileged }
    }

    #[test]
    fn the_limit_is_put_in_words() {
        let max = libc::RLIM_INFINITY;
        assert_eq!(of(max, max, false).describe(), "no limit");
        assert!(of(1, 1, true).describe().contains("CAP_IPC_LOCK"));
        let raised = of(65536, max, false).describe();
        assert_eq!(raised, "no limit (the limit of 64 KiB is raised at start)");
        assert_eq!(of(8 << 20, 8 << 20, false).describe(), "at most 8192 KiB");
    }

    #[test]
    fn what_is_left_goes_into_buffers() {
        let limit = of(0, 8 << 20, false);
        let left = |rails: u64| ((8 << 20) - rails * RAIL) as usize / BUFFER;
        assert_eq!((limit.buffers(1), limit.buffers(2)), (left(1), left(2)));
        assert_eq!(limit.buffers(100), 0);
        assert!(limit.check(2, left(2)).is_ok());
        let error = limit.check(2, left(2) + 1).unwrap_err().to_string();
        assert!(error.contains("8388608 bytes, but verbs need at least"), "{error}");
        assert!(of(0, 1, true).check(2, 1000).is_ok());
    }
}
