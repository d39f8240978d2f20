//! The folders in which the dynamic loader searches for a library under `mpiexec`, in the loader's order:
//!
//! ```text
//!   DT_RPATH of the file and of the files that loaded it      only if the file has no DT_RUNPATH
//!   LD_LIBRARY_PATH                                           mpiexec puts Weft's libraries for older ABIs first
//!   DT_RUNPATH of the file
//!   the loader's cache, /lib, /usr/lib
//!   lib/ of this installation                                 mpiexec adds the folder for libmpi_abi.so.1
//! ```

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::elf_file::{self, ElfFacts};
use crate::tree::{SONAME, Tree};

/// Folders that the loader searches last.
const DEFAULT_FOLDERS: [&str; 4] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"];
/// Paths of the program that prints the loader's cache.
const LDCONFIG: [&str; 3] = ["/sbin/ldconfig", "/usr/sbin/ldconfig", "ldconfig"];

/// A list of folders in which a library was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundBy {
    /// The file that wants the library names its path.
    Path,
    Rpath,
    LibraryPath,
    Runpath,
    /// The loader's cache or its default folders.
    System,
    /// The folder that `mpiexec` adds.
    Installation,
}

/// The folders that are the same for all files.
#[derive(Debug)]
pub struct LibrarySearch {
    /// Folder of Weft's libraries for older ABIs.
    pub legacy: PathBuf,
    /// Folder of Weft's library.
    pub own: PathBuf,
    /// LD_LIBRARY_PATH without the folder that `mpiexec` adds.
    pub given: Vec<PathBuf>,
    /// The loader's cache: the paths of each name.
    pub cache: HashMap<String, Vec<PathBuf>>,
}

/// A file that wants a library, and its folders.
#[derive(Debug, Clone, Copy)]
pub struct Wanting<'a> {
    pub path: &'a Path,
    pub facts: &'a ElfFacts,
}

impl LibrarySearch {
    /// Returns the folders under `mpiexec` of this installation, with the environment of this process.
    pub fn under_mpiexec(tree: &Tree) -> LibrarySearch {
        let given = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        LibrarySearch {
            legacy: tree.lib.join("weft/legacy"),
            own: tree.lib.clone(),
            given: folders(given.as_bytes()).collect(),
            cache: cache(),
        }
    }

    /// Finds a library for the first file of `chain`. Each file of `chain` was loaded for the next file.
    pub fn find(&self, name: &str, chain: &[Wanting<'_>]) -> Option<(PathBuf, FoundBy)> {
        let first = chain.first()?;
        if name.contains('/') {
            let path = PathBuf::from(replaced(name, &origin(first.path)));
            return elf_file::read(&path).is_ok().then_some((path, FoundBy::Path));
        }
        let mut places: Vec<(PathBuf, FoundBy)> = Vec::new();
        let mut add = |by: FoundBy, folders: &mut dyn Iterator<Item = PathBuf>| {
            places.extend(folders.map(|folder| (folder.join(name), by)));
        };
        let rpaths = chain.iter().filter(|_| first.facts.runpath.is_none());
        for file in rpaths {
            add(FoundBy::Rpath, &mut expanded(&file.facts.rpath, file.path));
        }
        add(FoundBy::LibraryPath, &mut std::iter::once(self.legacy.clone()));
        add(FoundBy::LibraryPath, &mut self.given.iter().cloned());
        let runpath = first.facts.runpath.as_deref().unwrap_or_default();
        add(FoundBy::Runpath, &mut expanded(runpath, first.path));
        let cached = self.cache.get(name).into_iter().flatten();
        places.extend(cached.map(|path| (path.clone(), FoundBy::System)));
        places
            .extend(DEFAULT_FOLDERS.map(|folder| (Path::new(folder).join(name), FoundBy::System)));
        if name == SONAME {
            places.push((self.own.join(name), FoundBy::Installation));
        }
        // The loader skips files of other processors.
        places.into_iter().find(|(path, _)| path.is_file() && elf_file::read(path).is_ok())
    }

    /// Returns true if a file belongs to this installation.
    pub fn is_own(&self, path: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let path = real(path);
        [&self.own, &self.legacy].iter().any(|folder| path.starts_with(real(folder)))
    }
}

/// Returns the folder that `$ORIGIN` means in a file.
fn origin(file: &Path) -> PathBuf {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    file.parent().unwrap_or(Path::new("/")).to_owned()
}

fn replaced(text: &str, origin: &Path) -> String {
    let origin = origin.to_string_lossy();
    text.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin)
}

/// Returns the folders of a list in a file.
fn expanded(list: &str, file: &Path) -> impl Iterator<Item = PathBuf> {
    let list = replaced(list, &origin(file));
    folders(list.as_bytes()).collect::<Vec<_>>().into_iter()
}

/// Returns the folders of a list. An empty entry means the working directory, which this program and the ranks share.
fn folders(list: &[u8]) -> impl Iterator<Item = PathBuf> + '_ {
    let is_empty = list.is_empty();
    let parts = list.split(|&byte| byte == b':' || byte == b';').filter(move |_| !is_empty);
    parts.map(|part| {
        Path::new(if part.is_empty() { OsStr::new(".") } else { OsStr::from_bytes(part) })
            .to_owned()
    })
}

/// Reads the loader's cache. A system without `ldconfig` has no cache.
fn cache() -> HashMap<String, Vec<PathBuf>> {
    let print = |program: &&str| Command::new(program).arg("-p").output().ok();
    let printed = LDCONFIG.iter().find_map(print).map(|output| output.stdout);
    parse_cache(&String::from_utf8_lossy(&printed.unwrap_or_default()))
}

/// Reads lines such as `libz.so.1 (libc6,x86-64) => /lib/libz.so.1`.
fn parse_cache(text: &str) -> HashMap<String, Vec<PathBuf>> {
    let mut all: HashMap<String, Vec<PathBuf>> = HashMap::new();
    for line in text.lines() {
        let Some((name, path)) = line.split_once(" => ") else { continue };
        let name = name.split_whitespace().next().unwrap_or_default();
        all.entry(name.to_owned()).or_default().push(path.trim().into());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_cache_is_read() {
        let text = "2 libs found in cache `/etc/ld.so.cache'\n\tlibz.so.1 (libc6,x86-64) => /a/libz.so.1\n\tlibz.so.1 (libc6) => /b/libz.so.1\n";
        let cache = parse_cache(text);
        assert_eq!(cache["libz.so.1"], [Path::new("/a/libz.so.1"), Path::new("/b/libz.so.1")]);
        assert_eq!(cache.len(), 1);
    }

    #[test]
    fn lists_of_folders_are_read() {
        let all: Vec<_> = folders(b"/a:;$x").collect();
        assert_eq!(all, [Path::new("/a"), Path::new("."), Path::new("$x")]);
        assert_eq!(folders(b"").count(), 0);
        assert_eq!(replaced("$ORIGIN/../lib:${ORIGIN}", Path::new("/o")), "/o/../lib:/o");
    }
}
