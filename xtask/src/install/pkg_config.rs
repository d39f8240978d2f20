//! Files for pkg-config, by the names under which Debian's packages of Open MPI and MPICH have theirs. The files find the prefix
//! relative to their own folder, so that an installation can be moved.

use super::link;
use crate::files::replace;
use std::fs;
use std::path::Path;

/// Files with a text of their own, each with the other names of the same file.
pub const FILES: [(&str, &[&str]); 2] =
    [("weft.pc", &["mpi.pc", "mpi-c.pc", "mpi-cxx.pc"]), ("weft-fort.pc", &["mpi-fort.pc"])];

/// Writes all files into `folder`.
pub fn install(folder: &Path) -> Result<(), String> {
    for ((name, links), text) in FILES.iter().zip([library(), fortran()]) {
        replace(&folder.join(name), |to| fs::write(to, &text))?;
        for other in *links {
            link(name, &folder.join(other))?;
        }
    }
    Ok(())
}

/// Parts of a file that differ between languages.
struct LanguageFlags {
    name: &'static str,
    description: &'static str,
    cflags: &'static str,
    libs: &'static str,
}

/// Returns the text of the file for C and C++.
fn library() -> String {
    text(&LanguageFlags {
        name: "Weft",
        description: "MPI library (MPI 5.0 standard ABI)",
        cflags: "",
        libs: "",
    })
}

/// Returns the text of the file for Fortran. `mpifort` builds the library and the modules for each compiler when it first runs, and
/// links the folder `default` to those of the default compiler.
fn fortran() -> String {
    text(&LanguageFlags {
        name: "Weft for Fortran",
        description: "MPI library (MPI 5.0 standard ABI), for the compiler with which mpifort has run",
        cflags: "-I${libdir}/fortran/default ",
        libs: "-L${libdir}/fortran/default -Wl,-rpath,${libdir}/fortran/default -lweft_fortran ",
    })
}

fn text(language: &LanguageFlags) -> String {
    let LanguageFlags { name, description, cflags, libs } = language;
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "prefix=${{pcfiledir}}/../..\n\
         includedir=${{prefix}}/include\n\
         libdir=${{prefix}}/lib\n\
         \n\
         Name: {name}\n\
         Description: {description}\n\
         Version: {version}\n\
         Cflags: {cflags}-I${{includedir}}\n\
         Libs: {libs}-L${{libdir}} -Wl,-rpath,${{libdir}} -lmpi_abi\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Checks that the output of pkg-config consists of words for a shell, even if the installation's path has a blank.
    #[test]
    fn pkg_config_finds_a_prefix_with_a_blank() {
        if Command::new("pkg-config").arg("--version").output().is_err() {
            eprintln!("NOT RUN: there is no pkg-config");
            return;
        }
        let dir = tempfile::Builder::new().prefix("weft pkg config").tempdir().unwrap();
        let (pkgconfig, include) = (dir.path().join("lib/pkgconfig"), dir.path().join("include"));
        for folder in [&pkgconfig, &include, &dir.path().join("lib/fortran/default")] {
            fs::create_dir_all(folder).unwrap();
        }
        for file in [include.join("mpi.h"), dir.path().join("lib/fortran/default/mpi.h")] {
            fs::write(file, "").unwrap();
        }
        install(&pkgconfig).unwrap();
        let script = "eval \"set -- $(pkg-config --cflags --libs $0)\"; for word; do echo \"$word\"; done\n\
            for word; do case $word in -I*) test -f \"${word#-I}/mpi.h\" || exit 1 ;; -L*) test -d \"${word#-L}\" || exit 2 ;;\n\
            -Wl,-rpath,*) test -d \"${word#-Wl,-rpath,}\" || exit 3 ;; esac; done; echo found";
        let languages = [("mpi", 5), ("mpi-c", 5), ("mpi-cxx", 5), ("weft", 5), ("mpi-fort", 9)];
        for (name, lines) in languages {
            let mut sh = Command::new("sh");
            sh.args(["-c", script, name]).env("PKG_CONFIG_PATH", &pkgconfig);
            let words = String::from_utf8(sh.output().unwrap().stdout).unwrap();
            assert!(words.ends_with("-lmpi_abi\nfound\n"), "{name}: {words}");
            assert_eq!(words.lines().count(), lines, "{name}: {words}");
        }
    }
}
