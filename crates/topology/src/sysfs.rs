//! The files in which Linux describes processors, caches and NUMA domains.

use crate::processor_list::{ProcessorSet, allowed, parse_list};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The variable that names a directory in place of /sys. It is an aid for tests.
pub const SYSFS_ROOT: &str = "WEFT_SYSFS";

/// The variable that lists the processors of a process on the machine that `WEFT_SYSFS` names. `mpiexec` sets it.
pub const SYSFS_PROCESSORS: &str = "WEFT_SYSFS_PROCESSORS";

/// Content of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheKind {
    /// The cache holds data only.
    Data,
    /// The cache holds instructions only.
    Instruction,
    /// The cache holds data and instructions.
    Unified,
}

/// A cache of a processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessorCache {
    /// Level of the cache; 1 is the nearest.
    pub level: u32,
    /// Content of the cache.
    pub kind: CacheKind,
    /// Size in bytes, if the system reports it.
    pub size: Option<usize>,
    /// Processors that share the cache.
    pub processors: ProcessorSet,
}

/// Processors that the system lists for each processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Siblings {
    /// The hardware threads of the core.
    Core,
    /// The processors of the die. Old kernels do not list them.
    Die,
    /// The processors of the socket.
    Package,
}

/// A NUMA domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumaDomain {
    /// The system's number of the domain.
    pub number: usize,
    /// Processors of the domain; none if the domain has only memory.
    pub processors: ProcessorSet,
    /// Distance from this domain to each domain, as the firmware reports it. The distance to the domain itself is 10.
    pub distances: BTreeMap<usize, u32>,
}

/// The directory in which a system describes its devices.
#[derive(Debug, Clone)]
pub struct Sysfs {
    files: SystemFiles,
    is_fake: bool,
}

/// Files below `devices/system`.
#[derive(Debug, Clone)]
enum SystemFiles {
    Directory(PathBuf),
    /// Contents by path.
    Memory(BTreeMap<String, String>),
}

impl SystemFiles {
    fn text(&self, path: &str) -> Option<String> {
        match self {
            SystemFiles::Directory(root) => {
                Some(fs::read_to_string(root.join(path)).ok()?.trim().to_owned())
            }
            SystemFiles::Memory(files) => files.get(path).cloned(),
        }
    }

    fn list(&self, path: &str) -> Option<ProcessorSet> {
        parse_list(&self.text(path)?)
    }

    /// Returns the numbers of the entries of `folder` whose names are `prefix` and a number.
    fn numbers(&self, folder: &str, prefix: &str) -> ProcessorSet {
        let number = |name: &str| name.strip_prefix(prefix)?.parse().ok();
        match self {
            SystemFiles::Directory(root) => {
                let entries = fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
                entries.filter_map(|entry| number(entry.file_name().to_str()?)).collect()
            }
            SystemFiles::Memory(files) => {
                let inside = |path: &str| {
                    number(path.strip_prefix(folder)?.strip_prefix('/')?.split('/').next()?)
                };
                files.keys().filter_map(|path| inside(path)).collect()
            }
        }
    }
}

impl Sysfs {
    /// Returns the directory of this machine, or the directory that `WEFT_SYSFS` names.
    pub fn here() -> Sysfs {
        match env::var_os(SYSFS_ROOT).filter(|root| !root.is_empty()) {
            Some(root) => Sysfs::at(Path::new(&root)),
            None => Sysfs::real(),
        }
    }

    /// Returns the directory of this machine even if `WEFT_SYSFS` is set, for callers that bind threads or measure.
    pub fn real() -> Sysfs {
        Sysfs { is_fake: false, ..Sysfs::at(Path::new("/sys")) }
    }

    /// Returns a directory that replaces /sys.
    pub fn at(root: &Path) -> Sysfs {
        Sysfs { files: SystemFiles::Directory(root.join("devices/system")), is_fake: true }
    }

    /// Returns a directory of the files below `devices/system`, without writing them.
    pub fn of_files(files: BTreeMap<String, String>) -> Sysfs {
        Sysfs { files: SystemFiles::Memory(files), is_fake: true }
    }

    /// Returns true if the directory does not describe this machine. Then its processors cannot be used.
    pub fn is_fake(&self) -> bool {
        self.is_fake
    }

    /// Returns the processors that this process may use, or `None` if they are unknown. On a fake machine these are the processors
    /// that `mpiexec` has chosen, else all.
    pub fn allowed(&self) -> Option<ProcessorSet> {
        match self.is_fake {
            true => {
                env::var(SYSFS_PROCESSORS).map_or_else(|_| self.online(), |list| parse_list(&list))
            }
            false => allowed(),
        }
    }

    /// Returns the processors that are online, or `None` if the system lists none.
    pub fn online(&self) -> Option<ProcessorSet> {
        self.files.list("cpu/online")
    }

    /// Returns the processors that the system describes, in case it does not say which of them are online.
    pub fn described(&self) -> ProcessorSet {
        self.files.numbers("cpu", "cpu")
    }

    /// Returns true if the system describes `processor`.
    pub fn describes(&self, processor: usize) -> bool {
        match &self.files {
            SystemFiles::Directory(root) => root.join(format!("cpu/cpu{processor}")).is_dir(),
            SystemFiles::Memory(_) => self.described().contains(&processor),
        }
    }

    /// Returns the processors in the same part of the machine as `processor`, or `None` if the system does not list them.
    pub fn siblings(&self, processor: usize, part: Siblings) -> Option<ProcessorSet> {
        // The second name of each pair is the name before Linux 5.3.
        let names: &[&str] = match part {
            Siblings::Core => &["core_cpus_list", "thread_siblings_list"],
            Siblings::Die => &["die_cpus_list"],
            Siblings::Package => &["package_cpus_list", "core_siblings_list"],
        };
        let list = |name| self.files.list(&format!("cpu/cpu{processor}/topology/{name}"));
        names.iter().find_map(list)
    }

    /// Returns the caches of `processor`, in the system's order.
    pub fn caches(&self, processor: usize) -> Vec<ProcessorCache> {
        self.caches_from(processor, 0)
    }

    /// Returns the caches of `processor` whose level is at least `least`. Other caches take a single read.
    pub fn caches_from(&self, processor: usize, least: u32) -> Vec<ProcessorCache> {
        let mut caches = Vec::new();
        for index in 0.. {
            let folder = format!("cpu/cpu{processor}/cache/index{index}");
            let read = |name: &str| self.files.text(&format!("{folder}/{name}"));
            let Some(level) = read("level") else { break };
            let Some(level) = level.parse().ok().filter(|&level| level >= least) else { continue };
            let cache = || {
                let kind = match read("type")?.as_str() {
                    "Data" => CacheKind::Data,
                    "Instruction" => CacheKind::Instruction,
                    "Unified" => CacheKind::Unified,
                    _ => return None,
                };
                let processors = parse_list(&read("shared_cpu_list")?)?;
                let size = read("size").and_then(|text| bytes(&text));
                Some(ProcessorCache { level, kind, size, processors })
            };
            caches.extend(cache());
        }
        caches
    }

    /// Returns the NUMA domains that are online, in ascending order of their numbers.
    pub fn numa_domains(&self) -> Vec<NumaDomain> {
        let online = self.files.list("node/online");
        let online = online.unwrap_or_else(|| self.files.numbers("node", "node"));
        let domain = |number: usize| {
            let processors = self.files.list(&format!("node/node{number}/cpulist"));
            // The row has one number per online domain.
            let row = self.files.text(&format!("node/node{number}/distance")).unwrap_or_default();
            let distances = online.iter().copied().zip(row.split_whitespace());
            let distances = distances.filter_map(|(other, text)| Some((other, text.parse().ok()?)));
            NumaDomain {
                number,
                processors: processors.unwrap_or_default(),
                distances: distances.collect(),
            }
        };
        online.iter().copied().map(domain).collect()
    }
}

/// Parses a size such as `32K` or `16M`.
fn bytes(text: &str) -> Option<usize> {
    let (number, unit) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    number.parse::<usize>().ok()?.checked_mul(unit).filter(|&size| size > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(
            (bytes("32K"), bytes("2M"), bytes("512")),
            (Some(32768), Some(2 << 20), Some(512))
        );
        assert_eq!((bytes(""), bytes("K"), bytes("0K"), bytes("x")), (None, None, None, None));
    }
}
