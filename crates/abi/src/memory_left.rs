//! Number of bytes of memory that this process may still allocate.

use std::fs::read_to_string;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Number of ranks of this node.
static RANKS: AtomicU64 = AtomicU64::new(1);

/// Divides the memory of the machine among `ranks` ranks from now on.
pub fn share_among(ranks: usize) {
    RANKS.store(ranks.max(1) as u64, Relaxed);
}

/// Returns the number of bytes that this process may still allocate: the minimum of two bounds, plus the freed bytes that malloc
/// keeps. The first bound is the memory that the machine and the control group have left, divided among this node's ranks. The
/// second bound is the rest of the limit on address space (`ulimit -v`). A bound that cannot be read is ignored.
pub fn memory_left() -> u64 {
    let shared = [available(), control_group()]
        .into_iter()
        .flatten()
        .map(|bytes| bytes / RANKS.load(Relaxed));
    shared.chain(address_space()).min().map_or(u64::MAX, |left| left.saturating_add(freed()))
}

/// Returns the number of freed bytes that malloc keeps, modulo 4 GiB.
fn freed() -> u64 {
    #[cfg(target_env = "gnu")]
    // SAFETY: `mallinfo` takes no arguments, and reads malloc's own counters under its lock.
    return u64::from(unsafe { libc::mallinfo() }.fordblks as u32);
    #[cfg(not(target_env = "gnu"))]
    0
}

fn available() -> Option<u64> {
    let text = read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

/// Returns the number of bytes that the control group (version 2) has left, or `None` if there is no such group or no limit.
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
    // SAFETY: `limit` is valid for writes of an `rlimit`.
    let failed = unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) } != 0;
    if failed || limit.rlim_cur == libc::RLIM_INFINITY {
        return None;
    }
    let pages = read_to_string("/proc/self/statm").ok()?;
    let pages = pages.split_whitespace().next()?.parse::<u64>().ok()?;
    // SAFETY: `sysconf` takes no pointers.
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
