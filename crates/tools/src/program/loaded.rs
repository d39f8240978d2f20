//! The program and all libraries that the dynamic loader loads with it under `mpiexec`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::elf_file::{self, ElfFacts, SymbolUse};
use super::library_search::{FoundBy, LibrarySearch, Wanting};
use super::mpi_abi::{self, MpiAbi};

/// A loaded file.
#[derive(Debug)]
pub struct LoadedFile {
    pub path: PathBuf,
    pub facts: ElfFacts,
    /// Device and inode.
    identity: (u64, u64),
    /// Index of the file for which the loader loaded this file.
    loader: Option<usize>,
    /// Names by which other files want this file.
    names: Vec<String>,
    /// ABI, if the file is an MPI library.
    pub abi: Option<MpiAbi>,
}

/// A library that a file wants.
#[derive(Debug)]
pub struct WantedLibrary {
    pub name: String,
    /// Index of the file that wants the library.
    pub by: usize,
    /// Index of the library, and the list of folders that led to the library. `None` if there is no such library.
    pub found: Option<(usize, FoundBy)>,
    /// File that the loader would load if `mpiexec` preloaded nothing, and the list of folders that leads to the file.
    pub instead_of: Option<(PathBuf, FoundBy)>,
}

/// A symbol of MPI that no loaded file defines.
#[derive(Debug, PartialEq, Eq)]
pub struct MissingSymbol {
    pub name: String,
    /// Index of the first file that needs the symbol.
    pub by: usize,
    pub time: SymbolUse,
}

/// All files of a program. The program is the first.
#[derive(Debug)]
pub struct LoadedProgram {
    pub files: Vec<LoadedFile>,
    pub wanted: Vec<WantedLibrary>,
    /// Files that cannot be read, with sentences.
    pub unreadable: Vec<String>,
}

impl LoadedProgram {
    /// Loads a program as the loader does under `mpiexec`.
    pub fn load(program: &Path, search: &LibrarySearch) -> Result<LoadedProgram, String> {
        let plain = Loading::begin(program, search)?.complete();
        // An RPATH counts before LD_LIBRARY_PATH. `mpiexec` preloads Weft's library if an RPATH leads to another MPI.
        let is_other = |wanted: &&WantedLibrary| {
            wanted.found.is_some_and(|(_, by)| by == FoundBy::Rpath)
                && search.legacy.join(&wanted.name).is_file()
        };
        let others: BTreeMap<String, (PathBuf, FoundBy)> = plain
            .wanted
            .iter()
            .filter(is_other)
            .filter_map(|wanted| {
                let (index, by) = wanted.found?;
                let path = plain.files[index].path.clone();
                (!search.is_own(&path)).then(|| (wanted.name.clone(), (path, by)))
            })
            .collect();
        if others.is_empty() {
            return Ok(plain);
        }
        let mut loading = Loading::begin(program, search)?;
        for name in others.keys() {
            loading.add(search.legacy.join(name), 0, name);
        }
        let mut loaded = loading.complete();
        for wanted in &mut loaded.wanted {
            wanted.instead_of = others.get(&wanted.name).cloned();
        }
        Ok(loaded)
    }

    /// Returns the symbols of MPI that files need and no file defines.
    pub fn missing_symbols(&self) -> Vec<MissingSymbol> {
        let mut missing: BTreeMap<&str, MissingSymbol> = BTreeMap::new();
        for (by, file) in self.files.iter().enumerate() {
            for (name, &time) in &file.facts.uses {
                if self.files.iter().any(|other| other.facts.defines.contains(name)) {
                    continue;
                }
                let new = MissingSymbol { name: name.clone(), by, time };
                let known = missing.entry(name).or_insert(new);
                if time == SymbolUse::Start {
                    known.time = time;
                }
            }
        }
        missing.into_values().collect()
    }

    /// Returns functions that files use and that Weft's library only reports, each with the file and a sentence.
    pub fn unsupported(&self) -> Vec<(&str, usize, &str)> {
        let mut all = BTreeMap::new();
        for (by, file) in self.files.iter().enumerate().filter(|(_, file)| file.abi.is_none()) {
            for name in file.facts.uses.keys() {
                let plain = name.strip_prefix('P').filter(|name| name.starts_with("MPI"));
                let plain = plain.unwrap_or(name);
                let sentence = self.files.iter().find_map(|file| file.facts.unsupported.get(plain));
                if let Some(sentence) = sentence {
                    all.entry(name.as_str()).or_insert((by, sentence.as_str()));
                }
            }
        }
        all.into_iter().map(|(name, (by, sentence))| (name, by, sentence)).collect()
    }

    /// Returns the number of MPI functions that the program and its libraries use.
    pub fn functions(&self) -> usize {
        let files = self.files.iter().filter(|file| file.abi.is_none());
        let names = files.flat_map(|file| file.facts.uses.keys());
        let functions = names.filter(|name| mpi_abi::is_function(name));
        functions.collect::<std::collections::BTreeSet<_>>().len()
    }

    /// Returns the ABIs of the libraries that files want, each once.
    pub fn abis(&self) -> Vec<MpiAbi> {
        let mut all: Vec<_> = self.wanted.iter().filter_map(|w| MpiAbi::of(&w.name)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Returns true if the program contains MPI and wants no MPI library.
    pub fn has_static_mpi(&self) -> bool {
        let program = &self.files[0];
        program.facts.has_mpi_init && program.abi.is_none() && self.abis().is_empty()
    }

    /// Returns a short name of a file.
    pub fn name(&self, index: usize) -> String {
        let path = &self.files[index].path;
        path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
    }
}

/// A program whose libraries are being loaded.
struct Loading<'a> {
    search: &'a LibrarySearch,
    loaded: LoadedProgram,
}

impl<'a> Loading<'a> {
    fn begin(program: &Path, search: &'a LibrarySearch) -> Result<Loading<'a>, String> {
        let facts = elf_file::read(program)
            .map_err(|why| format!("{}: the file {why}.", program.display()))?;
        let abi = facts.soname.as_deref().and_then(MpiAbi::of);
        let file = LoadedFile {
            path: program.to_owned(),
            facts,
            identity: identity(program),
            loader: None,
            names: Vec::new(),
            abi,
        };
        let loaded =
            LoadedProgram { files: vec![file], wanted: Vec::new(), unreadable: Vec::new() };
        Ok(Loading { search, loaded })
    }

    /// Loads the libraries of each file, and those of the libraries after them.
    fn complete(mut self) -> LoadedProgram {
        let mut index = 0;
        while index < self.loaded.files.len() {
            for name in self.loaded.files[index].facts.needed.clone() {
                let found = self.find(&name, index);
                let wanted = WantedLibrary { name, by: index, found, instead_of: None };
                self.loaded.wanted.push(wanted);
            }
            index += 1;
        }
        self.loaded
    }

    fn find(&mut self, name: &str, by: usize) -> Option<(usize, FoundBy)> {
        let has_name = |file: &LoadedFile| {
            file.names.iter().any(|known| known == name)
                || file.facts.soname.as_deref() == Some(name)
        };
        if let Some(index) = self.loaded.files.iter().position(has_name) {
            let wanted = self.loaded.wanted.iter();
            let by = wanted.filter_map(|w| w.found).find(|(known, _)| *known == index);
            return Some((index, by.map_or(FoundBy::LibraryPath, |(_, by)| by)));
        }
        let files = &self.loaded.files;
        let chain = std::iter::successors(Some(by), |&index| files[index].loader);
        let chain: Vec<_> =
            chain.map(|i| Wanting { path: &files[i].path, facts: &files[i].facts }).collect();
        let (path, found_by) = self.search.find(name, &chain)?;
        Some((self.add(path, by, name)?, found_by))
    }

    /// Adds a file, or a name to a file that is loaded already.
    fn add(&mut self, path: PathBuf, loader: usize, name: &str) -> Option<usize> {
        let identity = identity(&path);
        if let Some(index) = self.loaded.files.iter().position(|file| file.identity == identity) {
            self.loaded.files[index].names.push(name.to_owned());
            return Some(index);
        }
        let facts = match elf_file::read(&path) {
            Ok(facts) => facts,
            Err(why) => {
                self.loaded.unreadable.push(format!("{}: the file {why}.", path.display()));
                return None;
            }
        };
        let abi = MpiAbi::of(name).or_else(|| facts.soname.as_deref().and_then(MpiAbi::of));
        let names = vec![name.to_owned()];
        self.loaded.files.push(LoadedFile {
            path,
            facts,
            identity,
            loader: Some(loader),
            names,
            abi,
        });
        Some(self.loaded.files.len() - 1)
    }
}

/// Returns device and inode of a file.
fn identity(path: &Path) -> (u64, u64) {
    fs::metadata(path).map_or((0, 0), |facts| (facts.dev(), facts.ino()))
}
