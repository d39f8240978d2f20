//! How much memory this process may still take.

use std::fs::read_to_string;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Ranks of this node.
static RANKS: AtomicU64 = AtomicU64::new(1);

/// From now on the memory of the machine is shared among so many ranks.
pub fn share_among(ranks: usize) {
    RANKS.store(ranks.max(1) as u64, Relaxed);
}

/// Bytes that are left by the machine and the control group, shared among this node's ranks, and by the limit on address
/// space (`ulimit -v`); the least of them, and what was freed and is still this process's. What cannot be found out does
/// not bound.
pub fn memory_left() -> u64 {
    let shared = [available(), control_group()]
        .into_iter()
        .flatten()
        .map(|bytes| bytes / RANKS.load(Relaxed));
    shared.chain(address_space()).min().map_or(u64::MAX, |left| left.saturating_add(freed()))
}

/// Bytes that were freed and that malloc keeps, below 4 GiB.
fn freed() -> u64 {
    #[cfg(target_env = "gnu")]
    // SAFETY: a call without arguments that looks at malloc's own words under its lock.
    return u64::from(unsafe { libc::mallinfo() }.fordblks as u32);
    #[cfg(not(target_env = "gnu"))]
    0
}

fn available() -> Option<u64> {
    let text = read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

/// Of version 2; where there is none, or another version, nothing is known.
fn control_group() -> Option<u64> {
    let text = read_to_string("/proc/self/cgroup").ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    let number = |name: &str| {
        let file = format!("/sys/fs/cgroup{}/{name}", path.trim_end_matches('/'));
        read_to_string(file).ok()?.trim().parse::<u64>().ok()
    };
    Some(number("memory.max")?.saturating_sub(number("memory.current")?))
}

fn address_space() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a system call that writes to `limit`.
    let failed = unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) } != 0;
    if failed || limit.rlim_cur == libc::RLIM_INFINITY {
        return None;
    }
    let pages = read_to_string("/proc/self/statm").ok()?;
    let pages = pages.split_whitespace().next()?.parse::<u64>().ok()?;
    // SAFETY: a system call without memory.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    Some(limit.rlim_cur.saturating_sub(pages * page))
}

#[cfg(test)]
mod tests {
    #[test]
    fn something_is_left() {
        assert!(super::memory_left() > 0);
        assert!(super::available().is_some());
    }
}
