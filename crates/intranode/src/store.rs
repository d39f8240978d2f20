//! The store of measured models: a file in the user's cache directory for each host.
//!
//! ```text
//!   $XDG_CACHE_HOME/weft/copies-HOST.toml     format, time of the measurement, missing values
//!   (or ~/.cache/weft/...)                    [copies]    the numbers, as in machine files of the simulator
//!                                             [machine]   identity of the machine; last, so that a truncated file lacks it
//! ```
//! A file of another machine or format, or a damaged file, is ignored. The file is replaced as a whole, so that jobs that begin
//! at the same time find either the old or the new file.

use crate::measure::MeasuredModel;
use crate::table::CostTable;
use nix::sys::utsname::uname;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use weft_fabric::CopyModel;
use weft_topology::{Sysfs, format_list};

/// Version of the format. It changes when the set of measured values changes, or the way in which values are measured.
const FORMAT: u32 = 3;

/// Maximum number of bytes that are read of a file. A usual file has a tenth of this number.
const MOST_BYTES: u64 = 64 << 10;

/// The identity of a machine. If any field differs, the costs belong to another machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineKey {
    /// Processors that are online, as Linux lists them.
    online: String,
    /// Sizes of the caches of the first processor.
    caches: String,
    /// Release of the kernel, which determines the cost of system calls.
    kernel: String,
    /// Hash of the kernel's description of the processor: features, defects, microcode.
    features: String,
    processor: String,
}

impl MachineKey {
    /// Returns the identity of this machine.
    pub fn here() -> MachineKey {
        let sysfs = Sysfs::real();
        let sizes = sysfs.caches(0).into_iter().filter_map(|cache| cache.size);
        let caches: Vec<String> = sizes.map(|size| format!("{}K", size >> 10)).collect();
        // Reads only the first processor, because with hundreds of processors it takes long to read this whole file.
        let mut text = Vec::new();
        let _ = fs::File::open("/proc/cpuinfo").map(|file| file.take(8192).read_to_end(&mut text));
        let (processor, features) = of_processor(&String::from_utf8_lossy(&text));
        let kernel = uname().map(|name| name.release().to_string_lossy().into_owned());
        MachineKey {
            online: format_list(sysfs.online().unwrap_or_default()),
            caches: caches.join(" "),
            kernel: kernel.unwrap_or_default(),
            features,
            processor,
        }
    }
}

/// Returns the name of the first processor of /proc/cpuinfo, and the hash of its constant fields.
fn of_processor(text: &str) -> (String, String) {
    const STAYS: [&str; 9] = [
        "model name",
        "stepping",
        "microcode",
        "flags",
        "bugs",
        "Features",
        "CPU implementer",
        "CPU part",
        "CPU variant",
    ];
    let first = text.split("\n\n").next().unwrap_or_default();
    let fields = || first.lines().filter_map(|line| line.split_once(':'));
    // FNV-1a, because it is the same in every version of the library.
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for (_, value) in fields().filter(|(name, _)| STAYS.contains(&name.trim())) {
        for byte in value.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    let find = |wanted: &str| fields().find(|(name, _)| name.trim() == wanted);
    let name = find("model name").or_else(|| find("CPU part")).map_or("", |(_, name)| name);
    (name.trim().to_owned(), format!("{hash:016x}"))
}

/// A measured model, and the time of its measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct CachedModel {
    /// The numbers, rounded to four digits if they come from a file.
    pub measured: MeasuredModel,
    /// Time at which the measurement ended, rounded to seconds if it comes from a file.
    pub when: SystemTime,
}

/// The content of a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoreFile {
    format: u32,
    /// Time of the measurement, in seconds since 1970.
    measured: u64,
    /// Duration of the measurement, in microseconds.
    took: u64,
    absent: BTreeSet<String>,
    late: BTreeSet<String>,
    copies: CostTable,
    machine: MachineKey,
}

const HEAD: &str = "\
# What it costs to move bytes between ranks of this machine: times in us, rates in MB/s (10^6 bytes a second), sizes in
# bytes. `weft info` says what each number means. Measured by Weft, and again when this file is gone or of another machine.

";

/// Returns the path of this host's model; `None` if the user has no cache directory.
pub fn path() -> Option<PathBuf> {
    let host = nix::unistd::gethostname().ok()?;
    let host = host.to_string_lossy().replace(['/', '\0'], "_");
    Some(dirs::cache_dir()?.join("weft").join(format!("copies-{host}.toml")))
}

/// Reads the model at `path`. Returns `None` if there is no model, or if the model belongs to a machine other than `machine`.
pub fn read(path: &Path, machine: &MachineKey) -> Option<CachedModel> {
    let file: StoreFile = toml::from_str(&text(path).ok()?).ok()?;
    let names = || file.absent.iter().chain(&file.late);
    if file.format != FORMAT
        || file.machine != *machine
        || names().any(|name| CopyModel::field(name).is_none())
    {
        return None;
    }
    let measured = MeasuredModel {
        model: file.copies.model(),
        absent: file.absent,
        late: file.late,
        took: Duration::from_micros(file.took),
    };
    Some(CachedModel {
        measured,
        when: UNIX_EPOCH.checked_add(Duration::from_secs(file.measured))?,
    })
}

/// Stores the model at `path`, and replaces the file that is there.
pub fn write(path: &Path, kept: &CachedModel, machine: &MachineKey) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::NotFound)?;
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let file = StoreFile {
        format: FORMAT,
        measured: kept.when.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        took: kept.measured.took.as_micros() as u64,
        absent: kept.measured.absent.clone(),
        late: kept.measured.late.clone(),
        copies: CostTable::of(&kept.measured.model),
        machine: machine.clone(),
    };
    let text = toml::to_string(&file).map_err(io::Error::other)?;
    let mut new = tempfile::Builder::new().prefix(".copies-").tempfile_in(directory)?;
    new.write_all(HEAD.as_bytes())?;
    new.write_all(text.as_bytes())?;
    new.persist(path)?;
    Ok(())
}

/// Reads the model of a file that the user names. Any file with a table `[copies]` is accepted, from any machine. Also returns the
/// time of the measurement, if the file gives it. The error is a text for the user.
pub fn given(path: &Path) -> Result<(CopyModel, Option<SystemTime>), String> {
    #[derive(Deserialize)]
    struct Given {
        copies: CostTable,
        measured: Option<u64>,
    }
    let named = |why: String| format!("{}: {}", path.display(), why.trim_end());
    let text = text(path).map_err(|error| named(error.to_string()))?;
    let given: Given = toml::from_str(&text).map_err(|error| named(error.to_string()))?;
    let when = given.measured.map(Duration::from_secs);
    Ok((given.copies.model(), when.and_then(|since| UNIX_EPOCH.checked_add(since))))
}

fn text(path: &Path) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a file"));
    }
    let mut text = String::new();
    fs::File::open(path)?.take(MOST_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

// These tests need files, processors and signals of the system, which Miri does not have.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    fn kept() -> CachedModel {
        let mut model = CopyModel::GENERIC;
        model.line.shared = 71.0;
        model.private = 512 << 10;
        let measured = MeasuredModel {
            model: CostTable::of(&model).model(),
            absent: BTreeSet::from(["line.apart".to_owned()]),
            late: BTreeSet::from(["memory".to_owned()]),
            took: Duration::from_micros(2345),
        };
        CachedModel { measured, when: UNIX_EPOCH + Duration::from_secs(1_700_000_000) }
    }

    #[test]
    fn what_is_kept_is_found_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b/copies-x.toml");
        let machine = MachineKey::here();
        assert_eq!(read(&path, &machine), None);
        write(&path, &kept(), &machine).unwrap();
        assert_eq!(read(&path, &machine), Some(kept()));
        let (model, when) = given(&path).unwrap();
        assert_eq!((model, when), (kept().measured.model, Some(kept().when)));
        // Writes the model again, over the old file. The directory then has no other file.
        write(&path, &kept(), &machine).unwrap();
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn another_machines_is_not_used() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("copies-x.toml");
        let machine = MachineKey::here();
        write(&path, &kept(), &machine).unwrap();
        let changes: [fn(&mut MachineKey); 5] = [
            |other| other.online.push_str(",9"),
            |other| other.caches.push('1'),
            |other| other.kernel.push('x'),
            |other| other.features.push('0'),
            |other| other.processor.push('b'),
        ];
        for change in changes {
            let mut other = machine.clone();
            change(&mut other);
            assert_eq!(read(&path, &other), None, "{other:?}");
        }
        // The same file is accepted if the user names it.
        assert!(given(&path).is_ok());
    }

    #[test]
    fn a_file_cut_anywhere_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("copies-x.toml");
        // Sets a processor name, so that this field is not empty wherever the tests run.
        let machine = MachineKey { processor: "a processor".to_owned(), ..MachineKey::here() };
        write(&path, &kept(), &machine).unwrap();
        let whole = fs::read(&path).unwrap();
        for len in 0..whole.len() - 1 {
            fs::write(&path, &whole[..len]).unwrap();
            assert_eq!(read(&path, &machine), None, "{len} of {} bytes", whole.len());
        }
    }

    #[test]
    fn a_damaged_file_is_none_and_named_by_the_user_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("copies-x.toml");
        let machine = MachineKey::here();
        write(&path, &kept(), &machine).unwrap();
        let whole = fs::read_to_string(&path).unwrap();
        for (from, to) in [
            ("format = 3", "format = 2"),
            ("format = 3", "format = 3\nmore = 2"),
            ("cached = ", "cached = -"),
            ("cached = ", "cashed = "),
            ("\"memory\"", "\"memories\""),
            ("[copies]", "[copies"),
        ] {
            assert!(whole.contains(from), "{from}\n{whole}");
            fs::write(&path, whole.replace(from, to)).unwrap();
            assert_eq!(read(&path, &machine), None, "{to}");
        }
        fs::write(&path, [0xff, 0xfe, 0]).unwrap();
        assert_eq!(read(&path, &machine), None);
        for (text, expected) in [
            ("", "missing field `copies`"),
            ("[copies]\ncashed = 1\n", "unknown field `cashed`"),
            ("[copies\n", "TOML"),
        ] {
            fs::write(&path, text).unwrap();
            let error = given(&path).unwrap_err();
            assert!(error.contains(expected) && error.contains("copies-x.toml"), "{error}");
        }
        assert!(given(directory.path()).unwrap_err().contains("not a file"));
        assert!(given(&directory.path().join("none")).is_err());
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_an_error_to_the_writer_alone() {
        let path = Path::new("/proc/self/none/weft/copies-x.toml");
        assert!(write(path, &kept(), &MachineKey::here()).is_err());
        assert_eq!(read(path, &MachineKey::here()), None);
    }

    #[test]
    fn the_first_processor_is_known_by_what_stays() {
        let text = "processor : 0\nmodel name\t: A B\nflags : x y\ncpu MHz : 1\n\nmodel name: C\n";
        let (name, hash) = of_processor(text);
        assert_eq!(name, "A B");
        assert_eq!(hash, of_processor(&text.replace("MHz : 1", "MHz : 2")).1);
        assert_ne!(hash, of_processor(&text.replace("x y", "x z")).1);
        assert_eq!(of_processor("").0, "");
    }
}
