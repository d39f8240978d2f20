//! Needs of an installation's programs and libraries: the release of glibc, and the system's libraries.

use object::elf::FileHeader64;
use object::read::elf::{Dyn, FileHeader};
use object::{Endianness, elf};
use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A release of glibc, as in 2.28.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Glibc {
    pub major: u32,
    pub minor: u32,
}

impl fmt::Display for Glibc {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for Glibc {
    type Err = String;

    fn from_str(text: &str) -> Result<Glibc, String> {
        // Names of symbol versions may have a third number, as in GLIBC_2.2.5.
        let mut numbers = text.splitn(3, '.').map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) => Ok(Glibc { major, minor }),
            _ => Err(format!("'{text}' is no release of glibc; write it as 2.28")),
        }
    }
}

/// Libraries of every Linux system with glibc, which packages do not contain.
const SYSTEM: [&str; 8] = [
    "libc.so.6",
    "libm.so.6",
    "libgcc_s.so.1",
    "libdl.so.2",
    "libpthread.so.0",
    "librt.so.1",
    "libutil.so.1",
    "ld-linux-x86-64.so.2",
];

/// Folder of Fortran modules that `mpifort` has built for the compilers of this machine. Packages do not contain it.
const MODULES: &str = "lib/fortran";

/// Lists the files of an installation that packages contain, relative to `prefix`.
///
/// # Errors
/// The folder cannot be read.
pub fn packaged_files(prefix: &Path) -> Result<Vec<PathBuf>, String> {
    Ok(crate::files::files(prefix)?.into_iter().filter(|path| !path.starts_with(MODULES)).collect())
}

/// Returns the oldest release of glibc that can run all programs and libraries that packages of the installation in
/// `prefix` contain.
///
/// # Errors
/// A file needs a library that is neither in the installation nor on every system.
pub fn glibc(prefix: &Path) -> Result<Glibc, String> {
    let own = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let all = packaged_files(prefix)?;
    let names: HashSet<String> = all.iter().filter_map(|path| own(path)).collect();
    let mut newest = Glibc { major: 2, minor: 0 };
    for path in all.iter().map(|path| prefix.join(path)).filter(|path| is_elf(path)) {
        let needs = needs(&path)?;
        newest = newest.max(needs.glibc);
        let unknown = |name: &&String| !names.contains(*name) && !SYSTEM.contains(&name.as_str());
        if let Some(library) = needs.libraries.iter().find(unknown) {
            let path = path.display();
            return Err(format!("{path} needs {library}, which not every system has"));
        }
    }
    Ok(newest)
}

/// Returns true if the file is a program or a library, but not a link to either.
pub fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    let is_own = path.is_file() && !path.is_symlink();
    let file = is_own.then(|| fs::File::open(path)).and_then(Result::ok);
    file.is_some_and(|mut file| file.read_exact(&mut magic).is_ok()) && magic == elf::ELFMAG
}

/// Needs of a file.
struct FileNeeds {
    glibc: Glibc,
    libraries: Vec<String>,
}

fn needs(path: &Path) -> Result<FileNeeds, String> {
    let data = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    parsed(&data).map_err(|e| format!("{}: {e}", path.display()))
}

fn parsed(data: &[u8]) -> Result<FileNeeds, object::Error> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut needs = FileNeeds { glibc: Glibc { major: 2, minor: 0 }, libraries: Vec::new() };
    let header = FileHeader64::<Endianness>::parse(data)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, data)?;
    if let Some((entries, link)) = sections.dynamic(endian, data)? {
        let strings = sections.strings(endian, data, link)?;
        for entry in entries.iter().filter(|entry| Dyn::tag(*entry, endian) == elf::DT_NEEDED) {
            needs.libraries.push(text(Dyn::string(entry, endian, strings)?));
        }
    }
    if let Some((mut versions, link)) = sections.gnu_verneed(endian, data)? {
        let strings = sections.strings(endian, data, link)?;
        while let Some((_, mut names)) = versions.next()? {
            while let Some(name) = names.next()? {
                let name = text(name.name(endian, strings)?);
                let release = name.strip_prefix("GLIBC_").and_then(|number| number.parse().ok());
                needs.glibc = needs.glibc.max(release.unwrap_or(needs.glibc));
            }
        }
    }
    Ok(needs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read_and_compared_by_number() {
        let release = |text: &str| text.parse::<Glibc>();
        assert_eq!(release("2.2.5"), Ok(Glibc { major: 2, minor: 2 }));
        assert!(release("2.28") < release("2.34") && release("2.9") < release("2.28"));
        for bad in ["", "2", "2.", "a.b", "2,28"] {
            assert!(release(bad).unwrap_err().contains("2.28"), "{bad}");
        }
    }

    /// Checks that the needs of this test program are found: glibc, and a release of it that this system has.
    #[test]
    fn needs_of_a_program_are_read() {
        let own = std::env::current_exe().unwrap();
        assert!(is_elf(&own) && !is_elf(Path::new(file!())));
        let needs = needs(&own).unwrap();
        assert!(needs.libraries.iter().any(|name| name == "libc.so.6"), "{:?}", needs.libraries);
        assert!(needs.glibc > Glibc { major: 2, minor: 0 } && needs.glibc.major == 2);
    }
}
