//! Resources of this machine for a job: cores, the cores that the caller may use, and memory.

use std::fs;
use std::path::Path;
use weft_topology::{NodeTopology, Sysfs, TopologyLevel, format_list};

/// The machine as this process sees it. Absent values could not be read.
#[derive(Debug)]
pub struct MachineInfo {
    /// Model of the processors, as they report it.
    pub processor: Option<String>,
    /// The release of the kernel.
    pub kernel: Option<String>,
    /// The processors that are online.
    pub topology: NodeTopology,
    /// Number of cores (hardware threads) that are online.
    pub online: usize,
    /// The cores that this process may use, as a list like `0-3,8`.
    pub affinity: Option<String>,
    /// Number of cores that this process may use.
    pub allowed: usize,
    /// Smallest limit of processor time (`cpu.max`) of the control groups that contain this process, in cores.
    pub cgroup_limit: Option<f64>,
    /// Number of bytes of memory.
    pub memory: Option<u64>,
}

impl MachineInfo {
    /// Reads the present values.
    pub fn look() -> MachineInfo {
        let sysfs = Sysfs::here();
        let affinity = sysfs.allowed();
        let known = affinity.clone().unwrap_or_default();
        let topology = NodeTopology::read(&sysfs, &known);
        let online = topology.count(TopologyLevel::Thread).max(1);
        let memory = field(&read("/proc/meminfo"), "MemTotal");
        let memory = memory.and_then(|m| m.trim_end_matches(" kB").parse::<u64>().ok());
        MachineInfo {
            processor: field(&read("/proc/cpuinfo"), "model name"),
            kernel: Some(read("/proc/sys/kernel/osrelease").trim().to_owned())
                .filter(|k| !k.is_empty()),
            online,
            topology,
            allowed: affinity.as_ref().map_or(online, |set| set.len()),
            affinity: affinity.map(format_list),
            cgroup_limit: cgroup_limit(&read("/proc/self/cgroup"), Path::new("/sys/fs/cgroup")),
            memory: memory.map(|kib| kib * 1024),
        }
    }

    /// Returns the number of ranks that can each have their own core.
    pub fn cores_for_ranks(&self) -> usize {
        let limit = self.cgroup_limit.map_or(usize::MAX, |l| (l.floor() as usize).max(1));
        self.allowed.min(limit)
    }
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Returns the value of the first line `name : value`.
fn field(text: &str, name: &str) -> Option<String> {
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.into_iter().find(|(n, _)| n.trim() == name).map(|(_, value)| value.trim().to_owned())
}

/// Returns the smallest limit of a group (a line of /proc/self/cgroup) and of all groups that contain it. In version 2 the limit is
/// in `cpu.max`, in version 1 it is in two files of the `cpu` controller.
fn cgroup_limit(groups: &str, root: &Path) -> Option<f64> {
    let mut limits = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { continue };
        let root = match controllers {
            "" => root.to_owned(),
            list if list.split(',').any(|c| c == "cpu") => root.join(list),
            _ => continue,
        };
        let inside = group.trim_start_matches('/');
        for dir in Path::new(inside).ancestors() {
            limits.extend(limit_of(&root.join(dir)));
        }
    }
    limits.into_iter().min_by(f64::total_cmp)
}

fn limit_of(dir: &Path) -> Option<f64> {
    let text = match read(dir.join("cpu.max")) {
        text if !text.is_empty() => text,
        _ => read(dir.join("cpu.cfs_quota_us")) + " " + &read(dir.join("cpu.cfs_period_us")),
    };
    let mut numbers = text.split_whitespace().map(|n| n.parse::<f64>());
    // If there is no limit, the value is `max` in version 2 and -1 in version 1.
    let (quota, period) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_group_counts() {
        let root = std::env::temp_dir().join(format!("weft-cgroup-{}", std::process::id()));
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir_all(root.join("cpu,cpuacct/old")).unwrap();
        fs::write(root.join("a/b/cpu.max"), "max 100000\n").unwrap();
        assert_eq!(cgroup_limit("0::/a/b\n", &root), None);
        fs::write(root.join("a/cpu.max"), "150000 100000\n").unwrap();
        assert_eq!(cgroup_limit("0::/a/b\n", &root), Some(1.5));
        fs::write(root.join("cpu,cpuacct/old/cpu.cfs_quota_us"), "-1\n").unwrap();
        fs::write(root.join("cpu,cpuacct/old/cpu.cfs_period_us"), "100000\n").unwrap();
        assert_eq!(cgroup_limit("3:cpu,cpuacct:/old\n", &root), None);
        fs::write(root.join("cpu,cpuacct/old/cpu.cfs_quota_us"), "200000\n").unwrap();
        assert_eq!(cgroup_limit("3:cpu,cpuacct:/old\n2:pids:/x\n", &root), Some(2.0));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn this_machine_is_seen() {
        let machine = MachineInfo::look();
        let list = machine.affinity.as_deref().and_then(weft_topology::parse_list);
        assert_eq!(list.map(|list| list.len()), Some(machine.allowed));
        assert!(machine.allowed >= 1 && machine.online >= 1);
        assert!(machine.memory.is_some_and(|bytes| bytes > 1 << 20));
    }
}
