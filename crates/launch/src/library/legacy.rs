//! Libraries of older ABIs. A program that was built with MPICH, Intel MPI or Open MPI loads a library of that name, and often a
//! system or an environment has the original. The folder with Weft's comes first in LD_LIBRARY_PATH, for each program: scripts,
//! Python and plug-ins load MPI later. It has only names of older ABIs, so it changes nothing for programs of the standard ABI.
//!
//! A DT_RPATH in a program goes before LD_LIBRARY_PATH. The libraries that such a program loads are preloaded.

use super::{DT_NEEDED, DT_RPATH, DT_RUNPATH, dynamic_texts, folders, searched};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The variable with which a user turns the libraries of older ABIs off, by the value 0.
pub const SWITCH: &str = "WEFT_LEGACY_ABI";
/// The variable with the list of libraries that the loader loads before all others.
pub const PRELOAD: &str = "LD_PRELOAD";

/// Returns the folder of the libraries of older ABIs, if the installation whose libraries are in `lib` has any.
fn folder(lib: &Path) -> Option<PathBuf> {
    let folder = lib.join("weft/legacy");
    folder.is_dir().then_some(folder)
}

/// Returns the list of folders with that of the older ABIs before all others. `None` if the list begins with that folder already,
/// or if there is no such folder.
pub fn search_path(lib: &Path, given: &OsStr) -> Option<OsString> {
    let folder = folder(lib)?;
    (folders(given).next().as_ref() != Some(&folder))
        .then(|| before(folder.into_os_string(), Some(given.to_owned())))
}

/// Returns the libraries to preload: those that the program or its libraries load from a DT_RPATH that has another MPI.
pub fn preloaded(lib: &Path, program: &Path) -> Option<OsString> {
    let folder = folder(lib)?;
    if !searched(program, &[DT_RUNPATH]).is_empty() {
        return None;
    }
    let places = searched(program, &[DT_RPATH]);
    let (mut open, mut seen, mut wanted) =
        (vec![program.to_owned()], BTreeSet::new(), BTreeSet::new());
    while let Some(file) = open.pop() {
        for name in dynamic_texts(&file, &[DT_NEEDED]).unwrap_or_default() {
            let name = OsString::from_vec(name);
            let Some(found) = places.iter().map(|place| place.join(&name)).find(|f| f.is_file())
            else {
                continue;
            };
            if folder.join(&name).is_file() {
                wanted.insert(folder.join(name));
            } else if seen.insert(found.clone()) {
                open.push(found);
            }
        }
    }
    let list: Vec<_> = wanted.into_iter().map(PathBuf::into_os_string).collect();
    (!list.is_empty()).then(|| list.join(OsStr::new(":")))
}

/// Puts a list before another.
pub fn before(mut list: OsString, rest: Option<OsString>) -> OsString {
    if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
        list.push(":");
        list.push(rest);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    #[test]
    fn the_folder_comes_first_and_once() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(search_path(dir.path(), OsStr::new("/a")), None, "no such folder");
        let folder = dir.path().join("weft/legacy");
        fs::create_dir_all(&folder).unwrap();
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let first = search_path(dir.path(), OsStr::new("/a")).unwrap();
        assert_eq!(first.to_str().unwrap(), text(&folder) + ":/a");
        assert_eq!(search_path(dir.path(), &first), None, "an mpiexec within an mpiexec");
        assert_eq!(search_path(dir.path(), OsStr::new("")).unwrap().to_str(), folder.to_str());
    }

    /// Builds a program and a library that it loads, and checks which libraries are preloaded.
    #[test]
    fn a_library_behind_an_rpath_is_preloaded() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for folder in ["weft/legacy", "other"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        fs::write(at("lib.c"), "int f(void) { return 0; }\n").unwrap();
        fs::write(at("program.c"), "int f(void); int main(void) { return f(); }\n").unwrap();
        let cc = |arguments: &str| {
            let mut cc = Command::new("cc");
            cc.current_dir(dir.path()).args(arguments.split_whitespace());
            assert!(cc.status().unwrap().success(), "cc {arguments}");
        };
        cc("-shared -Wl,-soname,libmpi.so.40 -o other/libmpi.so.40 lib.c");
        fs::copy(at("other/libmpi.so.40"), at("weft/legacy/libmpi.so.40")).unwrap();
        let ours = at("weft/legacy/libmpi.so.40").into_os_string();
        for (tags, expected) in [("--disable-new-dtags", Some(ours)), ("--enable-new-dtags", None)]
        {
            cc(&format!("-o program program.c other/libmpi.so.40 -Wl,{tags},-rpath,$ORIGIN/other"));
            assert_eq!(preloaded(dir.path(), &at("program")), expected, "{tags}");
        }
        // The program needs a library that needs MPI.
        cc(
            "-shared -Wl,-soname,libdeep.so -o other/libdeep.so lib.c -Wl,--no-as-needed other/libmpi.so.40",
        );
        cc("-o program program.c other/libdeep.so -Wl,--disable-new-dtags,-rpath,$ORIGIN/other");
        assert!(preloaded(dir.path(), &at("program")).is_some());
    }
}
