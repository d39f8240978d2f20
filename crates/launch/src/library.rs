//! The folder in which ranks find the MPI library. Programs that `mpicc` links contain the path of the folder (an rpath). Programs
//! that are linked only with `-L` and `-l` do not contain this path, and would not start. Programs that were built with another MPI
//! load a library of its name, which lies in a folder of its own ([`legacy`]).

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, FileHeader64};
use object::read::elf::{Dyn, FileHeader};
use object::{Endianness, ReadCache};

use crate::checks;
use crate::options::App;

mod legacy;

/// File name of the library. Programs contain this name, and the loader searches for it.
const NAME: &str = "libmpi_abi.so.1";
/// The variable with the list of folders in which the loader searches.
const VARIABLE: &str = "LD_LIBRARY_PATH";
/// The loader's cache, which lists the libraries in the system's folders.
const CACHE: &str = "/etc/ld.so.cache";

/// Returns the variables by which the ranks of `app` find Weft's libraries.
pub fn variables(app: &App) -> Vec<(&'static str, OsString)> {
    let own = std::env::current_exe().ok();
    let Some(folder) = own.as_deref().and_then(Path::parent).and_then(Path::parent) else {
        return Vec::new();
    };
    let folder = folder.join("lib");
    let value = |name: &str| {
        let given = app.environment.iter().rev().find(|(given, _)| given == name);
        given.map(|(_, value)| value.clone()).or_else(|| std::env::var_os(name))
    };
    let program = program(app, value("PATH"));
    let (check, simulation) = (value(checks::SWITCH), value(checks::SIMULATION));
    let checks = checks::layers(&folder, check.as_deref(), simulation.as_deref());
    let path = search_path(&folder, value(VARIABLE).unwrap_or_default(), program.as_deref());
    if value(legacy::SWITCH).is_some_and(|value| value == "0") {
        let checks =
            checks.map(|list| (legacy::PRELOAD, legacy::before(list, value(legacy::PRELOAD))));
        return path.map(|path| (VARIABLE, path)).into_iter().chain(checks).collect();
    }
    let given = path.clone().or_else(|| value(VARIABLE)).unwrap_or_default();
    let path = legacy::search_path(&folder, &given).or(path).map(|path| (VARIABLE, path));
    let preloaded = program.and_then(|program| legacy::preloaded(&folder, &program));
    let preloaded = match (checks, preloaded) {
        (Some(checks), more) => Some(legacy::before(checks, more)),
        (None, preloaded) => preloaded,
    };
    let preloaded =
        preloaded.map(|list| (legacy::PRELOAD, legacy::before(list, value(legacy::PRELOAD))));
    path.into_iter().chain(preloaded).collect()
}

/// Returns the value of [`VARIABLE`] with which a program finds the library of the standard ABI, or `None` if it finds that library
/// without the variable.
fn search_path(folder: &Path, given: OsString, program: Option<&Path>) -> Option<OsString> {
    let cache = fs::read(CACHE).unwrap_or_default();
    let is_found = !folder.join(NAME).is_file()
        || folders(&given).any(|folder| folder.join(NAME).exists())
        || knows(&cache)
        || program.is_some_and(says_where);
    (!is_found).then(|| extended(given, folder))
}

/// Appends a folder to a list.
fn extended(mut given: OsString, folder: &Path) -> OsString {
    // An empty list gets no colon, because an empty entry would mean the working directory.
    if !given.is_empty() {
        given.push(":");
    }
    given.push(folder);
    given
}

/// Returns the folders of a list. Reads the list as the loader does.
fn folders(list: &OsStr) -> impl Iterator<Item = PathBuf> {
    let parts = list.as_bytes().split(|&byte| byte == b':' || byte == b';');
    parts.filter(|part| !part.is_empty()).map(|part| OsStr::from_bytes(part).into())
}

/// Returns true if the loader's cache has the library.
fn knows(cache: &[u8]) -> bool {
    let end = [b"/", NAME.as_bytes(), b"\0"].concat();
    cache.windows(end.len()).any(|window| window == end)
}

/// Returns the file that execvp(3) would run for the program.
fn program(app: &App, path: Option<OsString>) -> Option<PathBuf> {
    let name = Path::new(&app.command[0]);
    let from = app.directory.as_ref().map(PathBuf::from).unwrap_or_default();
    if name.as_os_str().as_bytes().contains(&b'/') {
        return Some(from.join(name));
    }
    let path = path.unwrap_or_else(|| "/bin:/usr/bin".into());
    folders(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Returns true if the program's file names a folder that has the library. A script never names such a folder.
fn says_where(program: &Path) -> bool {
    let mut folders = searched(program, &[DT_RPATH, DT_RUNPATH]).into_iter();
    folders.any(|folder| folder.join(NAME).exists())
}

/// Returns the folders that a program's file names under some tags.
fn searched(program: &Path, tags: &[i64]) -> Vec<PathBuf> {
    let Ok(program) = fs::canonicalize(program) else { return Vec::new() };
    let origin = program.parent().unwrap_or(Path::new("/")).as_os_str().as_bytes();
    let all = dynamic_texts(&program, tags).unwrap_or_default();
    let all = all.iter().map(|list| {
        let list = replaced(&replaced(list, b"$ORIGIN", origin), b"${ORIGIN}", origin);
        folders(&OsString::from_vec(list)).collect::<Vec<_>>()
    });
    all.flatten().collect()
}

/// Returns the texts in the dynamic section of an ELF file that have one of the tags.
fn dynamic_texts(program: &Path, tags: &[i64]) -> Option<Vec<Vec<u8>>> {
    let file = ReadCache::new(File::open(program).ok()?);
    let header = FileHeader64::<Endianness>::parse(&file).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, &file).ok()?;
    let (entries, link) = sections.dynamic(endian, &file).ok()??;
    let strings = sections.strings(endian, &file, link).ok()?;
    let is_wanted = |entry: &&_| tags.contains(&Dyn::tag(*entry, endian));
    let text = |entry| Dyn::string(entry, endian, strings).ok().map(<[u8]>::to_vec);
    Some(entries.iter().filter(is_wanted).filter_map(text).collect())
}

fn replaced(text: &[u8], what: &[u8], by: &[u8]) -> Vec<u8> {
    let mut new = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.windows(what.len()).position(|window| window == what) {
        new.extend([&rest[..at], by].concat());
        rest = &rest[at + what.len()..];
    }
    new.extend(rest);
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_folders_grow_at_their_end() {
        let folder = Path::new("/w/lib");
        assert_eq!(extended(OsString::new(), folder), "/w/lib");
        assert_eq!(extended("/a:/b".into(), folder), "/a:/b:/w/lib");
        let all: Vec<_> = folders(OsStr::new(":/a;/b:")).collect();
        assert_eq!(all, [Path::new("/a"), Path::new("/b")]);
        assert_eq!(replaced(b"$ORIGIN/../lib:$ORIGIN", b"$ORIGIN", b"/o"), b"/o/../lib:/o");
    }

    #[test]
    fn the_cache_is_known_by_whole_names() {
        assert!(knows(b"x\0/usr/lib/libmpi_abi.so.1\0y"));
        assert!(!knows(b"/usr/lib/libmpi_abi.so.12\0/usr/lib/notlibmpi_abi.so.1\0"));
    }

    #[test]
    fn programs_are_found_as_the_system_finds_them() {
        let app = |command: &str, directory: Option<&str>| App {
            command: vec![command.into()],
            directory: directory.map(Into::into),
            ..App::default()
        };
        assert_eq!(program(&app("sh", None), Some("/no:/bin".into())), Some("/bin/sh".into()));
        assert_eq!(program(&app("./x", Some("/d")), None), Some("/d/./x".into()));
        assert_eq!(program(&app("no-such-program", None), Some("/bin".into())), None);
    }

    #[test]
    fn the_rpath_of_a_program_is_read() {
        let folder = std::env::temp_dir().join(format!("weft-rpath-{}", std::process::id()));
        fs::create_dir_all(folder.join("lib")).unwrap();
        let (source, program) = (folder.join("x.c"), folder.join("x"));
        fs::write(&source, "int main(void) { return 0; }\n").unwrap();
        for (link, expected) in [("", false), ("-Wl,-rpath,/no:$ORIGIN/lib", true)] {
            let mut cc = std::process::Command::new("cc");
            cc.arg(&source).arg("-o").arg(&program).args(link.split_whitespace());
            assert!(cc.status().unwrap().success());
            assert!(!says_where(&program), "there is no library yet");
            fs::write(folder.join("lib").join(NAME), "").unwrap();
            assert_eq!(says_where(&program), expected, "{link}");
            fs::remove_file(folder.join("lib").join(NAME)).unwrap();
        }
        assert!(!says_where(&source), "a script");
        fs::remove_dir_all(folder).unwrap();
    }
}
