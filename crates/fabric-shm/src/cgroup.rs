//! How many processors the control group pays for: `cpu.max` (version 2) or the CFS quota
//! (version 1), the least of the group and all groups above it.

use std::path::{Path, PathBuf};

/// Whole processors of quota, at least 1; `None` without a quota.
pub fn quota() -> Option<usize> {
    quota_in(Path::new("/"))
}

/// The same on the file system under `root`.
fn quota_in(root: &Path) -> Option<usize> {
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mut least: Option<f64> = None;
    let mut consider = |quota: Option<f64>| {
        least = match (least, quota) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    };
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let path = path.trim_start_matches('/');
        if controllers.is_empty() {
            for mount in ["sys/fs/cgroup", "sys/fs/cgroup/unified"] {
                upward(&root.join(mount), path, |dir| consider(version_2(dir)));
            }
        } else if controllers.split(',').any(|c| c == "cpu") {
            for mount in ["sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"] {
                upward(&root.join(mount), path, |dir| consider(version_1(dir)));
            }
        }
    }
    least.map(|processors| (processors as usize).max(1))
}

/// Visits the group and those above it up to the mount. In a container the path may lead outside;
/// then the group is what is mounted.
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

/// `None` for `max` and `-1`: no quota.
fn ratio(quota: &str, period: &str) -> Option<f64> {
    let (quota, period) = (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that goes with the test.
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
