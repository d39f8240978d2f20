//! Machines for tests. Those that are written to a directory are seen by programs for which `WEFT_SYSFS` names it.

use crate::processor_list::{ProcessorSet, format_list};
use crate::sysfs::{CacheKind, Sysfs};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A cache of a processor of a fake machine.
#[derive(Debug, Clone)]
pub struct FakeCache {
    /// Level of the cache.
    pub level: u32,
    /// Content of the cache.
    pub kind: CacheKind,
    /// Size in KiB.
    pub kib: usize,
    /// Number of the cache among the caches of its level and kind.
    pub number: usize,
}

/// A processor of a fake machine.
#[derive(Debug, Clone)]
pub struct FakeProcessor {
    /// The system's number of the processor.
    pub number: usize,
    /// Core of the processor, unique in the machine.
    pub core: usize,
    /// Caches of the processor.
    pub caches: Vec<FakeCache>,
    /// NUMA domain of the processor.
    pub numa: Option<usize>,
    /// Socket of the processor.
    pub socket: usize,
}

/// A machine for tests.
#[derive(Debug, Clone)]
pub struct FakeMachine {
    /// The processors that are online.
    pub processors: Vec<FakeProcessor>,
    /// True if there are files about caches.
    pub has_caches: bool,
    /// True if there are files about NUMA domains.
    pub has_numa: bool,
    /// True if there are files about cores and sockets.
    pub has_topology: bool,
}

/// Sizes of the caches of a core, in KiB.
struct CoreCaches {
    data: usize,
    instructions: usize,
    second: usize,
}

/// A machine whose sockets are alike. Numbers are per socket, unless they are named otherwise.
struct RegularMachine {
    sockets: usize,
    cores: usize,
    threads_of_core: usize,
    domains: usize,
    caches: CoreCaches,
    /// Number of cores that share a last cache, and its size in KiB.
    last: Option<LastCache>,
}

struct LastCache {
    cores: usize,
    kib: usize,
}

impl CoreCaches {
    /// Returns the caches of `core`. `second` is the number of its cache of level 2.
    fn of(&self, core: usize, second: usize) -> Vec<FakeCache> {
        let cache = |level, kind, kib, number| FakeCache { level, kind, kib, number };
        vec![
            cache(1, CacheKind::Data, self.data, core),
            cache(1, CacheKind::Instruction, self.instructions, core),
            cache(2, CacheKind::Unified, self.second, second),
        ]
    }
}

impl RegularMachine {
    /// Returns the machine. The second threads of all cores follow the first threads, as Linux numbers them.
    fn machine(&self) -> FakeMachine {
        let cores = self.sockets * self.cores;
        let processor = |number: usize| {
            let core = number % cores;
            let mut caches = self.caches.of(core, core);
            caches.extend(self.last.as_ref().map(|last| FakeCache {
                level: 3,
                kind: CacheKind::Unified,
                kib: last.kib,
                number: core / last.cores,
            }));
            let numa = Some(core * self.domains / self.cores);
            FakeProcessor { number, core, caches, numa, socket: core / self.cores }
        };
        FakeMachine::new((0..cores * self.threads_of_core).map(processor).collect())
    }
}

impl FakeMachine {
    /// Makes a machine of these processors.
    pub fn new(processors: Vec<FakeProcessor>) -> FakeMachine {
        FakeMachine { processors, has_caches: true, has_numa: true, has_topology: true }
    }

    /// Returns two EPYC 9654: each has 96 cores in 12 groups with a cache of 32 MiB, and `domains` NUMA domains (NPS).
    pub fn epyc_genoa(domains: usize) -> FakeMachine {
        let caches = CoreCaches { data: 32, instructions: 32, second: 1024 };
        let last = Some(LastCache { cores: 8, kib: 32 << 10 });
        RegularMachine { sockets: 2, cores: 96, threads_of_core: 2, domains, caches, last }
            .machine()
    }

    /// Returns two EPYC 7742: each has 64 cores in 16 groups with a cache of 16 MiB.
    pub fn epyc_rome() -> FakeMachine {
        let caches = CoreCaches { data: 32, instructions: 32, second: 512 };
        let last = Some(LastCache { cores: 4, kib: 16 << 10 });
        let (sockets, cores, threads_of_core) = (2, 64, 2);
        RegularMachine { sockets, cores, threads_of_core, domains: 1, caches, last }.machine()
    }

    /// Returns two Xeon Platinum 8480+: each has 56 cores, a cache, and `domains` NUMA domains within the cache (SNC).
    pub fn xeon(domains: usize) -> FakeMachine {
        let caches = CoreCaches { data: 48, instructions: 32, second: 2048 };
        let last = Some(LastCache { cores: 56, kib: 105 << 10 });
        RegularMachine { sockets: 2, cores: 56, threads_of_core: 2, domains, caches, last }
            .machine()
    }

    /// Returns a machine with 80 Neoverse N1, whose system-level cache Linux does not report.
    pub fn neoverse() -> FakeMachine {
        let caches = CoreCaches { data: 64, instructions: 64, second: 1024 };
        let (sockets, cores, threads_of_core) = (1, 80, 1);
        RegularMachine { sockets, cores, threads_of_core, domains: 1, caches, last: None }.machine()
    }

    /// Returns a virtual machine with two processors that share a cache.
    pub fn small_vm() -> FakeMachine {
        let caches = CoreCaches { data: 48, instructions: 64, second: 2048 };
        let last = Some(LastCache { cores: 2, kib: 480 << 10 });
        let (sockets, cores, threads_of_core) = (1, 2, 1);
        RegularMachine { sockets, cores, threads_of_core, domains: 1, caches, last }.machine()
    }

    /// Returns a laptop: 6 fast cores with two threads (processors 0 to 11), 8 slow cores in two groups with a cache of level 2
    /// (12 to 19), and 2 slow cores without a cache of level 3 (20 and 21).
    pub fn hybrid_laptop() -> FakeMachine {
        let fast = CoreCaches { data: 48, instructions: 64, second: 2048 };
        let slow = CoreCaches { data: 32, instructions: 64, second: 2048 };
        let last = FakeCache { level: 3, kind: CacheKind::Unified, kib: 24 << 10, number: 0 };
        let processor = |number: usize| {
            let core = if number < 12 { number / 2 } else { number - 6 };
            let mut caches = match number {
                0..12 => fast.of(core, core),
                _ => slow.of(core, 6 + (number - 12) / 4),
            };
            if number < 20 {
                caches.push(last.clone());
            }
            FakeProcessor { number, core, caches, numa: Some(0), socket: 0 }
        };
        FakeMachine::new((0..22).map(processor).collect())
    }

    /// Removes processors. Their numbers become holes.
    pub fn set_offline(&mut self, numbers: &[usize]) {
        self.processors.retain(|processor| !numbers.contains(&processor.number));
    }

    /// Lists the processors that `is_in` selects.
    fn list(&self, is_in: impl Fn(&FakeProcessor) -> bool) -> String {
        let all = self.processors.iter().filter(|processor| is_in(processor));
        let all: ProcessorSet = all.map(|processor| processor.number).collect();
        format_list(all)
    }

    /// Returns the description of this machine.
    pub fn sysfs(&self) -> Sysfs {
        Sysfs::of_files(self.files())
    }

    /// Writes the description of this machine below `root`, which stands for /sys.
    pub fn write(&self, root: &Path) -> io::Result<()> {
        let system = root.join("devices/system");
        let mut made = PathBuf::new();
        for (path, text) in self.files() {
            let path = system.join(path);
            let folder = path.parent().unwrap_or(&system);
            if made != folder {
                fs::create_dir_all(folder)?;
                made = folder.to_owned();
            }
            fs::write(path, text + "\n")?;
        }
        Ok(())
    }

    /// Returns the files that Linux has for such a machine below `devices/system`, with their contents.
    fn files(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::from([("cpu/online".to_owned(), self.list(|_| true))]);
        for processor in &self.processors {
            let folder = format!("cpu/cpu{}", processor.number);
            files.insert(format!("{folder}/uevent"), String::new());
            if self.has_topology {
                let core = self.list(|other| other.core == processor.core);
                let socket = self.list(|other| other.socket == processor.socket);
                files.insert(format!("{folder}/topology/core_cpus_list"), core);
                files.insert(format!("{folder}/topology/package_cpus_list"), socket);
            }
            for (index, cache) in processor.caches.iter().enumerate().filter(|_| self.has_caches) {
                let key = |cache: &FakeCache| (cache.level, cache.kind, cache.number);
                let is_same = |other: &FakeCache| key(other) == key(cache);
                let sharing = self.list(|other| other.caches.iter().any(is_same));
                for (name, text) in [
                    ("level", cache.level.to_string()),
                    ("type", format!("{:?}", cache.kind)),
                    ("size", format!("{}K", cache.kib)),
                    ("shared_cpu_list", sharing),
                ] {
                    files.insert(format!("{folder}/cache/index{index}/{name}"), text);
                }
            }
        }
        if self.has_numa {
            self.add_domains(&mut files);
        }
        files
    }

    fn add_domains(&self, files: &mut BTreeMap<String, String>) {
        let domains: ProcessorSet = self.processors.iter().filter_map(|p| p.numa).collect();
        let socket = |domain: usize| {
            let first = self.processors.iter().find(|p| p.numa == Some(domain));
            first.map(|processor| processor.socket)
        };
        files.insert("node/online".to_owned(), format_list(domains.iter().copied()));
        for &domain in &domains {
            let folder = format!("node/node{domain}");
            let distance = |&other: &usize| match other {
                other if other == domain => "10",
                other if socket(other) == socket(domain) => "12",
                _ => "32",
            };
            let row: Vec<&str> = domains.iter().map(distance).collect();
            files.insert(format!("{folder}/cpulist"), self.list(|p| p.numa == Some(domain)));
            files.insert(format!("{folder}/distance"), row.join(" "));
        }
    }
}
