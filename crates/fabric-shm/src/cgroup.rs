//! Limits of the control group and of all groups above it: memory, and processors (`cpu.max` of version 2, the CFS quota of version
//! 1). The smallest limit holds.

use std::path::{Path, PathBuf};

/// Returns the quota in whole processors, at least 1, or `None` if there is no quota.
pub fn quota() -> Option<usize> {
    quota_in(Path::new("/"))
}

/// Returns the quota that the files of the control groups under `root` state.
fn quota_in(root: &Path) -> Option<usize> {
    let mut least: Option<f64> = None;
    let mut consider = |quota: Option<f64>| {
        least = match (least, quota) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    };
    visit(root, "cpu", &["cpu", "cpu,cpuacct"], |dir, unified| {
        consider(if unified { version_2(dir) } else { version_1(dir) });
    });
    least.map(|processors| (processors as usize).max(1))
}

/// Visits the groups of this process that `controller` (mounted as one of `mounts` in version 1) may limit. The second argument
/// of the visitor is true for a group of version 2.
fn visit(root: &Path, controller: &str, mounts: &[&str], mut visit: impl FnMut(&Path, bool)) {
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let path = path.trim_start_matches('/');
        let top = root.join("sys/fs/cgroup");
        if controllers.is_empty() {
            for mount in [top.clone(), top.join("unified")] {
                upward(&mount, path, |dir| visit(dir, true));
            }
        } else if controllers.split(',').any(|c| c == controller) {
            for mount in mounts {
                upward(&top.join(mount), path, |dir| visit(dir, false));
            }
        }
    }
}

/// Minimum value, in bytes, by which version 1 expresses that there is no limit. No machine has so much memory.
const UNLIMITED: u64 = 1 << 60;

/// A group that may limit this process's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryGroup {
    dir: PathBuf,
    unified: bool,
}

/// Returns all groups that may limit this process's memory.
pub fn memories() -> Vec<MemoryGroup> {
    memories_in(Path::new("/"))
}

fn memories_in(root: &Path) -> Vec<MemoryGroup> {
    let mut all = Vec::new();
    visit(root, "memory", &["memory"], |dir, unified| {
        let group = MemoryGroup { dir: dir.to_owned(), unified };
        if dir.join(group.file("max", "limit_in_bytes")).exists() && !all.contains(&group) {
            all.push(group);
        }
    });
    all
}

impl MemoryGroup {
    fn file(&self, version_2: &str, version_1: &str) -> String {
        format!("memory.{}", if self.unified { version_2 } else { version_1 })
    }

    fn number(&self, version_2: &str, version_1: &str) -> Option<u64> {
        let text = std::fs::read_to_string(self.dir.join(self.file(version_2, version_1))).ok()?;
        text.trim().parse().ok()
    }

    pub fn name(&self) -> std::path::Display<'_> {
        self.dir.display()
    }

    /// Returns the number of bytes that the group may still use, if it is less than `others`. Memory that the system can take
    /// back from the group counts as free.
    pub fn left(&self, others: u64) -> Option<u64> {
        let limit = self.number("max", "limit_in_bytes").filter(|&limit| limit < UNLIMITED)?;
        let used = self.number("current", "usage_in_bytes")?;
        let free = limit.saturating_sub(used);
        if free >= others {
            return None;
        }
        let text = std::fs::read_to_string(self.dir.join("memory.stat")).unwrap_or_default();
        let prefix = if self.unified { "" } else { "total_" };
        let cache = |name: &str| {
            let field =
                |line: &str| line.strip_prefix(prefix)?.strip_prefix(name)?.trim().parse().ok();
            text.lines().find_map(field).unwrap_or(0u64)
        };
        let left = free.saturating_add(cache("inactive_file ") + cache("active_file ")).min(limit);
        (left < others).then_some(left)
    }
}

/// Visits the group and the groups above it up to the mount. In a container the path may lead outside of the mount. Then only the
/// mounted group is visited.
fn upward(mount: &Path, path: &str, mut visit: impl FnMut(&Path)) {
    let mut dir: PathBuf = mount.join(path);
    while dir.starts_with(mount) {
        visit(&dir);
        if !dir.pop() {
            break;
        }
    }
}

fn version_2(dir: &Path) -> Option<f64> {
    let text = std::fs::read_to_string(dir.join("cpu.max")).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    ratio(quota, period)
}

fn version_1(dir: &Path) -> Option<f64> {
    let read = |name| std::fs::read_to_string(dir.join(name)).ok();
    ratio(read("cpu.cfs_quota_us")?.trim(), read("cpu.cfs_period_us")?.trim())
}

/// Returns the quota in processors; `None` for `max` and `-1`, which mean no quota.
fn ratio(quota: &str, period: &str) -> Option<f64> {
    let (quota, period) = (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that is removed at the end of the test.
    struct Root(PathBuf);

    impl Root {
        fn new(name: &str, files: &[(&str, &str)]) -> Root {
            let root = std::env::temp_dir().join(format!("weft-{name}-{}", std::process::id()));
            for (path, text) in files {
                let path = root.join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            Root(root)
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs files")]
    fn the_least_quota_on_the_way_up_counts() {
        let root = Root::new(
            "v2",
            &[
                ("proc/self/cgroup", "0::/a/b\n"),
                ("sys/fs/cgroup/a/cpu.max", "350000 100000\n"),
                ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ],
        );
        assert_eq!(quota_in(&root.0), Some(3));
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs files")]
    fn half_a_processor_counts_as_one() {
        let root = Root::new(
            "v1",
            &[
                ("proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/outside/container\n"),
                ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n"),
                ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            ],
        );
        assert_eq!(quota_in(&root.0), Some(1));
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs files")]
    fn memory_that_the_groups_leave() {
        for (name, group, controller, dir, files) in [
            ("m2", "0::/a/b\n", "", "sys/fs/cgroup/a/b", ["memory.max", "memory.current"]),
            (
                "m1",
                "4:memory:/a/b\n",
                "total_",
                "sys/fs/cgroup/memory/a/b",
                ["memory.limit_in_bytes", "memory.usage_in_bytes"],
            ),
        ] {
            let path = |file: &str| format!("{dir}/{file}");
            let stat =
                format!("{controller}inactive_file 20\n{controller}active_file 10\nother 5\n");
            let root = Root::new(
                name,
                &[
                    ("proc/self/cgroup", group),
                    (&path(files[0]), "1000\n"),
                    (&path(files[1]), "900\n"),
                    (&path("memory.stat"), &stat),
                    (&path(&format!("../{}", files[0])), "max\n"),
                    (&path(&format!("../{}", files[1])), "5000\n"),
                ],
            );
            let groups = memories_in(&root.0);
            assert_eq!(groups.len(), 2, "{groups:?}");
            let left = |others| groups.iter().map(|group| group.left(others)).collect::<Vec<_>>();
            assert_eq!(left(u64::MAX), [Some(130), None]);
            assert_eq!(left(110), [None, None]);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs files")]
    fn no_quota_is_no_limit() {
        let root = Root::new(
            "none",
            &[
                ("proc/self/cgroup", "4:cpu:/\n0::/\n"),
                ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
                ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            ],
        );
        assert_eq!(quota_in(&root.0), None);
        assert_eq!(quota_in(Path::new("/nonexistent")), None);
    }
}
