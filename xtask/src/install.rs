//! Makes an MPI installation: bin/, lib/, include/, and in share/ documents, manual pages, completions of shells and module files.

mod pkg_config;

use crate::files::{files, make_folder_of, replace};
use crate::portable::Portable;
use crate::root;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

pub use pkg_config::FILES as PKG_CONFIG;

/// File name of the library (its SONAME), and names of links to the library. The links are for `-lmpi_abi`, for `-lmpi`, and for
/// programs that were linked with MPICH 5.0.0 or 5.0.1, which used the last name by mistake.
const LIBRARY: &str = "libmpi_abi.so.1";
const LIBRARY_LINKS: [&str; 3] = ["libmpi_abi.so", "libmpi.so", "libmpi_abi.so.0"];

/// A library of an older ABI.
struct LegacyLibrary {
    package: &'static str,
    /// File that the build leaves.
    file: &'static str,
    /// Name under which it is installed, its SONAME.
    name: &'static str,
    /// Further names that programs load.
    links: &'static [&'static str],
}

/// A layer between a program and the MPI library, which `mpiexec` preloads.
struct CallLayer {
    package: &'static str,
    /// File that the build leaves, which is also its name in the folder `weft` of the folder of libraries.
    file: &'static str,
}

const CALL_LAYERS: [CallLayer; 2] = [
    CallLayer { package: "weft-check", file: "libweft_check.so" },
    CallLayer { package: "weft-sim-calls", file: "libweft_sim_calls.so" },
];

const LEGACY: [LegacyLibrary; 4] = [
    LegacyLibrary {
        package: "weft-abi-mpich",
        file: "libmpi_mpich.so",
        name: "libmpi.so.12",
        // The name in Debian, and two names of the C++ bindings: their functions are inline in the program, or not there. mpi4py's wheel,
        // which has no module for the standard ABI, loads `libmpi.so` to learn the ABI.
        links: &["libmpich.so.12", "libmpichcxx.so.12", "libmpicxx.so.12", "libmpi.so"],
    },
    LegacyLibrary {
        package: "weft-abi-openmpi",
        file: "libmpi_openmpi.so",
        name: "libmpi.so.40",
        // It has the C++ bindings' functions, too.
        links: &["libmpi_cxx.so.40"],
    },
    LegacyLibrary {
        package: "weft-abi-mpich-fortran",
        file: "libmpi_mpich_fortran.so",
        name: "libmpifort.so.12",
        links: &["libmpichfort.so.12"],
    },
    LegacyLibrary {
        package: "weft-abi-openmpi-fortran",
        file: "libmpi_openmpi_fortran.so",
        name: "libmpi_mpifh.so.40",
        links: &[
            "libmpi_usempif08.so.40",
            "libmpi_usempi_ignore_tkr.so.40",
            "libmpi_mpifh-gfortran.so.40",
            "libmpi_usempif08-gfortran.so.40",
            "libmpi_usempi_ignore_tkr-gfortran.so.40",
        ],
    },
];

/// Packages, each with those of its programs that are installed.
const PROGRAMS: [(&str, &[&str]); 2] = [
    ("weft-tools", &["mpicc", "mpicxx", "mpifort", "weft"]),
    ("weft-launch", &["mpiexec", "mpirun"]),
];

/// Links in bin/, each with its target.
const PROGRAM_LINKS: [(&str, &str); 4] = [
    ("mpic++", "mpicxx"),
    // Meson and CMake search for this name, and would find that of another MPI library behind Weft in PATH.
    ("mpiCC", "mpicxx"),
    ("mpif90", "mpifort"),
    ("mpif77", "mpifort"),
];

/// Files for Environment Modules and Lmod, each with its text.
const MODULE_FILES: [(&str, &str); 2] = [
    ("weft", include_str!("../../packaging/modulefiles/weft")),
    ("weft-legacy", include_str!("../../packaging/modulefiles/weft-legacy")),
];

/// Folders of the repository whose files are installed beside the documents, which have links to them.
const DOCUMENT_FOLDERS: [&str; 2] = ["book/src", "examples"];

/// Files of the repository that are installed if they exist.
const DOCUMENTS: [&str; 9] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "bench/results/all.svg",
    "figures/README.md",
    "machines/README.md",
];

/// Builds Weft and installs it under `prefix`. Replaces each file in one step, so that programs that use an older installation in
/// `prefix` continue to run.
pub fn install(prefix: &Path) -> Result<(), String> {
    install_from(prefix, None)
}

/// Installs Weft as [`install`] does, but for systems with an older glibc than that of this machine.
pub fn install_portable(prefix: &Path, portable: &Portable) -> Result<(), String> {
    install_from(prefix, Some(portable))
}

fn install_from(prefix: &Path, portable: Option<&Portable>) -> Result<(), String> {
    let prefix = std::path::absolute(prefix)
        .map_err(|e| format!("the prefix {} is no path: {e}", prefix.display()))?;
    let (present, absent): (Vec<_>, Vec<_>) =
        PROGRAMS.into_iter().partition(|(package, _)| is_member(package));
    // The end of the library's build uses one processor, so the commands are built at the same time.
    let (library, commands) = std::thread::scope(|scope| {
        let commands = scope.spawn(|| build(BuildProfile::Release, &command_packages(), portable));
        let library = build(BuildProfile::Dist, &["weft-abi"], portable);
        (library, commands.join().expect("it returns its errors"))
    });
    let (library, commands) = (library?, commands?);

    let folders = ["bin", "lib", "include", "lib/pkgconfig", "share/doc/weft", "lib/weft/legacy"];
    let [bin, lib, include, pkgconfig, doc, legacy] = folders.map(|d| prefix.join(d));
    let modules = prefix.join("share/modulefiles");
    for dir in [&bin, &lib, &include, &pkgconfig, &doc, &legacy, &modules] {
        fs::create_dir_all(dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
    }
    for program in present.iter().flat_map(|(_, programs)| *programs) {
        copy(&commands.join(program), &bin.join(program), 0o755)?;
    }
    for (name, target) in PROGRAM_LINKS {
        link(target, &bin.join(name))?;
    }
    copy(&library.join("libmpi_abi.so"), &lib.join(LIBRARY), 0o755)?;
    for name in LIBRARY_LINKS {
        link(LIBRARY, &lib.join(name))?;
    }
    for LegacyLibrary { file, name, links, .. } in &LEGACY {
        copy(&commands.join(file), &lib.join(name), 0o755)?;
        // mpiexec puts this folder before others: it has only names of older ABIs.
        for link_name in std::iter::once(name).chain(*links) {
            link(&format!("../../{name}"), &legacy.join(link_name))?;
        }
    }
    for CallLayer { file, .. } in CALL_LAYERS {
        copy(&commands.join(file), &lib.join("weft").join(file), 0o755)?;
    }
    copy(&library.join("include/mpi.h"), &include.join("mpi.h"), 0o644)?;
    pkg_config::install(&pkgconfig)?;
    for (name, text) in MODULE_FILES {
        replace(&modules.join(name), |to| fs::write(to, text))?;
    }
    fortran(&prefix.join("share/weft/fortran"))?;
    documents(&doc)?;
    if absent.is_empty() {
        crate::manual::install(&prefix)?;
        crate::completions::install(&prefix)?;
    }
    println!("Weft is installed in {}; try {}/weft info", prefix.display(), bin.display());
    for (package, programs) in absent {
        eprintln!("NOTE: {} not installed: there is no package {package}", programs.join(", "));
    }
    Ok(())
}

/// Installs the sources from which `mpifort` builds modules for the compiler in use, so the installation itself needs no Fortran
/// compiler.
fn fortran(to: &Path) -> Result<(), String> {
    fs::create_dir_all(to).map_err(|e| format!("cannot make {}: {e}", to.display()))?;
    for (name, text) in weft_fortran::sources() {
        replace(&to.join(name), |new| fs::write(new, &text))?;
    }
    Ok(())
}

/// Returns true if the workspace has this package.
fn is_member(package: &str) -> bool {
    let dir = package.strip_prefix("weft-").unwrap_or(package);
    root().join("crates").join(dir).join("Cargo.toml").is_file()
}

/// Returns the names of the packages that have programs or libraries of older ABIs to install.
fn command_packages() -> Vec<&'static str> {
    let packages = PROGRAMS.into_iter().map(|(package, _)| package);
    let libraries = LEGACY.iter().map(|library| library.package);
    let layers = CALL_LAYERS.iter().map(|layer| layer.package);
    packages.chain(libraries).chain(layers).filter(|package| is_member(package)).collect()
}

/// Builds the programs that only tests use, in the same command as the installed programs. All these programs then use dependencies
/// with the same features, so no dependency is compiled twice. Returns the directory of the results.
pub fn test_programs() -> Result<PathBuf, String> {
    let mut packages = command_packages();
    packages.push("weft-abi-tests");
    build(BuildProfile::Release, &packages, None)
}

/// An optimization profile of Cargo.toml.
#[derive(Clone, Copy)]
enum BuildProfile {
    /// Profile of the installed library.
    Dist,
    /// Profile of commands, of libraries of older ABIs, whose calls need no optimization across crates, and of test programs.
    Release,
}

impl BuildProfile {
    /// Returns the profile's name, which is also the name of its folder.
    fn name(self) -> &'static str {
        match self {
            BuildProfile::Dist => "dist",
            BuildProfile::Release => "release",
        }
    }
}

/// Builds `packages` and returns the directory of the results.
fn build(
    profile: BuildProfile,
    packages: &[&str],
    portable: Option<&Portable>,
) -> Result<PathBuf, String> {
    // This program is in target/xtask. The directories of the other profiles are next to this directory.
    let exe = std::env::current_exe().map_err(|e| format!("where xtask lies: {e}"))?;
    let target = exe.ancestors().nth(2).ok_or("xtask does not lie in target/<profile>")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = portable.map_or_else(
        || {
            let mut command = Command::new(&cargo);
            command.arg("build");
            command
        },
        Portable::build_command,
    );
    command.current_dir(root()).args(["--profile", profile.name()]);
    // Builds that run at the same time would overwrite each other's progress bars.
    command.env("CARGO_TERM_PROGRESS_WHEN", "never");
    for package in packages {
        command.args(["--package", package]);
    }
    let status = command.arg("--target-dir").arg(target).status();
    let status = status.map_err(|e| format!("cannot run {}: {e}", Path::new(&cargo).display()))?;
    if !status.success() {
        return Err("the build failed".into());
    }
    let of_target = portable.map_or("", |_| Portable::TARGET);
    Ok(target.join(of_target).join(profile.name()))
}

/// Installs the documents, and the files to which the documents have links.
fn documents(doc: &Path) -> Result<(), String> {
    let mut names: Vec<PathBuf> = DOCUMENTS.iter().map(PathBuf::from).collect();
    for folder in DOCUMENT_FOLDERS.map(Path::new) {
        names.extend(files(&root().join(folder))?.into_iter().map(|name| folder.join(name)));
    }
    for name in names.iter().filter(|name| root().join(name).is_file()) {
        make_folder_of(&doc.join(name))?;
        copy(&root().join(name), &doc.join(name), 0o644)?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path, mode: u32) -> Result<(), String> {
    if !from.is_file() {
        return Err(format!("the build has left no {}", from.display()));
    }
    replace(to, |new| {
        fs::copy(from, new)?;
        fs::set_permissions(new, fs::Permissions::from_mode(mode))
    })
}

fn link(target: &str, name: &Path) -> Result<(), String> {
    replace(name, |new| symlink(target, new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_readme_and_book_lead_to_installed_files() {
        let dir = std::env::temp_dir().join(format!("weft-documents-{}", std::process::id()));
        documents(&dir).unwrap();
        let pages = files(&dir).unwrap().into_iter().filter(|page| {
            page.extension().is_some_and(|end| end == "md")
                && (page.starts_with("book") || page.ends_with("README.md"))
        });
        let mut links = 0;
        for page in pages {
            let text = fs::read_to_string(dir.join(&page)).unwrap();
            let folder = dir.join(page.parent().unwrap());
            for (line, link) in crate::documents::links(&text) {
                assert!(folder.join(&link).exists(), "{}:{line}: {link}", page.display());
                links += 1;
            }
        }
        fs::remove_dir_all(&dir).unwrap();
        assert!(links > 30, "{links} links");
    }

    #[test]
    fn files_and_links_are_replaced_in_one_step() {
        let dir = std::env::temp_dir().join(format!("weft-install-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let (from, to, name) = (dir.join("from"), dir.join("to"), dir.join("name"));
        for text in ["old", "new"] {
            fs::write(&from, text).unwrap();
            // A process that has opened the old file keeps the old file.
            let open = fs::File::open(&to);
            copy(&from, &to, 0o755).unwrap();
            link("to", &name).unwrap();
            assert_eq!(fs::read_to_string(&name).unwrap(), text);
            assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o755);
            if let Ok(open) = open {
                assert_eq!(std::io::read_to_string(open).unwrap(), "old");
            }
        }
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 3, "nothing else is left");
        let error = copy(&dir.join("absent"), &to, 0o644).unwrap_err();
        assert!(error.contains("absent"), "{error}");
        fs::remove_dir_all(dir).unwrap();
    }
}
