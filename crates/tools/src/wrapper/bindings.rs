//! Fortran's library and modules for the compiler in use: built from the installed sources the first time, and reused later.
//!
//! Modules can be read only by the compiler that wrote them, in the same version. So each compiler has a folder, in the
//! installation if this can be written, else in the user's cache. A folder is built under another name and then renamed, so that it
//! is always complete. A lock makes a second `mpifort` wait until the first has built the folder.

use crate::tree::Tree;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

/// Advice in messages if there is no compiler.
pub(super) const INSTALL: &str = "install one (Debian and Ubuntu: apt-get install gfortran; Fedora: dnf install gcc-gfortran) or ";

/// Names of compilers. The first that exists is used.
const COMPILERS: [&str; 6] = ["gfortran", "flang-new", "flang-new-19", "flang", "ifx", "nagfor"];

/// Fortran sources in the order in which they must be compiled.
const MODULES: [&str; 5] = ["mpi_f08_types", "mpi_f08_callbacks", "mpi_f08", "mpi", "logicals"];
/// C sources.
const C_SOURCES: [&str; 11] = [
    "requests",
    "sections",
    "callbacks",
    "attributes",
    "values",
    "mpi",
    "mpi_f08",
    "mpi_f08_large",
    "pmpi",
    "pmpi_f08",
    "pmpi_f08_large",
];

/// Use of the folder with the bindings by the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Need {
    /// Nothing is compiled: the folder need not exist.
    Path,
    /// A program is compiled.
    Built,
    /// A program is compiled, and a build system reads all output, so no other text may be printed.
    Silently,
}

/// Returns the compiler that is called if none is named.
pub(super) fn default_compiler() -> &'static str {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = |name: &&str| std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
    COMPILERS.into_iter().find(|name| there(name)).unwrap_or(COMPILERS[0])
}

/// Fortran's bindings for a program.
pub(super) struct Bindings {
    /// Folder with library, modules and `mpif.h`.
    pub folder: PathBuf,
    /// Options that come before all other options on the compiler's command line.
    pub options: Vec<OsString>,
}

/// Finds the bindings for `compiler`, and builds them if necessary.
pub(super) fn find(tree: &Tree, compiler: &[OsString], need: Need) -> Result<Bindings, String> {
    let prefix = tree.lib.parent().unwrap_or(&tree.lib);
    let sources = prefix.join("share/weft/fortran");
    if need == Need::Path {
        return Ok(Bindings { folder: sources, options: Vec::new() });
    }
    let version = version(compiler)?;
    let options = leniency(&String::from_utf8_lossy(&version.stdout));
    let folder = folder(tree, compiler, need, &sources, &version)?;
    Ok(Bindings { folder, options })
}

/// Returns the option by which gfortran accepts calls with buffers of different types. Without the option, gfortran from version 10
/// on reports an error for such calls if there is no interface, as with `mpif.h`. Other compilers accept such calls. Every source
/// is compiled with the option, because a source may include `mpif.h` through another file.
fn leniency(version: &str) -> Vec<OsString> {
    let release = version.strip_prefix("GNU Fortran").and_then(|rest| rest.split_once(')'));
    let release = release.and_then(|(_, rest)| rest.trim_start().split('.').next()?.parse().ok());
    match release {
        Some(10u32..) => vec!["-fallow-argument-mismatch".into()],
        _ => Vec::new(),
    }
}

fn folder(
    tree: &Tree,
    compiler: &[OsString],
    need: Need,
    sources: &Path,
    version: &Output,
) -> Result<PathBuf, String> {
    let prefix = tree.lib.parent().unwrap_or(&tree.lib);
    if !sources.join("mpif.h").is_file() {
        return Err(format!(
            "the Fortran sources are not in {}: run `cargo xtask install`",
            sources.display()
        ));
    }
    let key = key(compiler, sources, &tree.include, version)?;
    let mut places = vec![(tree.lib.join("fortran"), key.clone())];
    if let Some(cache) = cache() {
        // In the cache, the name also identifies the installation.
        let mut hasher = DefaultHasher::new();
        (&key, prefix).hash(&mut hasher);
        places.push((cache, format!("{key}-{:08x}", hasher.finish() as u32)));
    }
    if let Some((parent, name)) =
        places.iter().find(|(parent, name)| parent.join(name).join("mpif.h").is_file())
    {
        return Ok(parent.join(name));
    }
    let mut why = String::new();
    for (parent, name) in &places {
        match Lock::take(parent, name) {
            Ok(lock) => return build(&lock, compiler, tree, sources, need),
            Err(error) => why = format!("{}: {error}", parent.display()),
        }
    }
    Err(format!("no place for Fortran's library and modules can be written: {why}"))
}

/// Returns `$XDG_CACHE_HOME/weft/fortran`, or its default.
fn cache() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(cache.join("weft/fortran"))
}

/// Returns the output of the compiler's `--version`.
fn version(compiler: &[OsString]) -> Result<Output, String> {
    let mut command = Command::new(&compiler[0]);
    let output = command.args(&compiler[1..]).arg("--version").stdin(Stdio::null()).output();
    output.map_err(|why| {
        format!(
            "cannot run the Fortran compiler {}: {why}; {INSTALL}name one with -fc=COMPILER or WEFT_FC",
            compiler[0].display()
        )
    })
}

/// Returns a key for the compiler with its version, and for the sources.
fn key(
    compiler: &[OsString],
    sources: &Path,
    include: &Path,
    version: &Output,
) -> Result<String, String> {
    let name = compiler.last().map(PathBuf::from).unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    (compiler, found(&name), &version.stdout, &version.stderr).hash(&mut hasher);
    let entries = fs::read_dir(sources).map_err(|e| format!("{}: {e}", sources.display()))?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.push(include.join("mpi.h"));
    files.sort();
    for file in files {
        let text = fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        (file.file_name(), text).hash(&mut hasher);
    }
    let name = name.file_name().unwrap_or(OsStr::new("fortran")).to_string_lossy().into_owned();
    Ok(format!("{name}-{:016x}", hasher.finish()))
}

/// Returns the path of the compiler.
fn found(name: &Path) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::env::split_paths(&path).map(|dir| dir.join(name));
    let there = all.filter(|file| file.is_file()).find_map(|file| file.canonicalize().ok());
    there.unwrap_or_else(|| name.to_owned())
}

/// Lock on a folder that is being built, held until the end of the process or of the build.
struct Lock {
    parent: PathBuf,
    name: String,
    _file: File,
}

impl Lock {
    fn take(parent: &Path, name: &str) -> std::io::Result<Lock> {
        fs::create_dir_all(parent)?;
        let file = File::create(parent.join(format!(".{name}.lock")))?;
        file.lock()?;
        Ok(Lock { parent: parent.to_owned(), name: name.to_owned(), _file: file })
    }
}

fn build(
    lock: &Lock,
    compiler: &[OsString],
    tree: &Tree,
    sources: &Path,
    need: Need,
) -> Result<PathBuf, String> {
    let (parent, name) = (&lock.parent, &lock.name);
    let done = parent.join(name);
    if done.join("mpif.h").is_file() {
        return Ok(done);
    }
    let (began, shown) = (Instant::now(), compiler[0].display());
    let work = parent.join(format!(".{name}.{}", std::process::id()));
    let in_work = |e: std::io::Error| format!("{}: {e}", work.display());
    fs::create_dir_all(&work).map_err(in_work)?;
    let result = compile(&work, compiler, tree, sources, name);
    if let Err(why) = result {
        let _ = fs::remove_dir_all(&work);
        return Err(format!("{shown} cannot build the Fortran bindings:\n{why}"));
    }
    fs::rename(&work, &done).map_err(in_work)?;
    if parent.starts_with(&tree.lib) {
        make_default(parent, name, compiler)?;
    }
    if need != Need::Silently {
        let seconds = began.elapsed().as_secs_f64();
        eprintln!(
            "mpifort: library and modules for {shown} are built in {} ({seconds:.1} s, once)",
            done.display()
        );
    }
    Ok(done)
}

/// Name of the link to the bindings for the compiler that `mpifort` calls without options. The installation's `mpi-fort.pc` for
/// pkg-config names it, because that file cannot know which compiler will be used.
const DEFAULT_LINK: &str = "default";

/// Links the new bindings `name` in the folder `parent` by the name [`DEFAULT_LINK`], if they are for the default compiler or the
/// first ones.
fn make_default(parent: &Path, name: &str, compiler: &[OsString]) -> Result<(), String> {
    let link = parent.join(DEFAULT_LINK);
    let is_default = matches!(compiler, [word] if word == default_compiler());
    if !is_default && link.exists() {
        return Ok(());
    }
    let new = parent.join(format!(".{DEFAULT_LINK}.{}", std::process::id()));
    let linked = std::os::unix::fs::symlink(name, &new).and_then(|()| fs::rename(&new, &link));
    linked.map_err(|e| format!("cannot link {}: {e}", link.display()))
}

/// Builds everything in `work`: objects, library, modules, `mpif.h`, and the file for pkg-config.
fn compile(
    work: &Path,
    compiler: &[OsString],
    tree: &Tree,
    sources: &Path,
    name: &str,
) -> Result<(), String> {
    let c_compiler = c_compiler(work, compiler, tree, sources)?;
    let in_c = |name: &&str| {
        let mut command = words(&c_compiler, work);
        // Profiling names are compiled with less optimization: only tools call them, and optimization takes time at each
        // installation.
        let optimized = if name.starts_with('p') { "-O1" } else { "-O2" };
        command.args([optimized, "-fPIC", "-fno-plt", "-w", "-c", "-I"]).arg(&tree.include);
        command.arg(sources.join(name).with_extension("c")).arg("-o").arg(format!("c_{name}.o"));
        start(command)
    };
    let children: Vec<_> = C_SOURCES.iter().map(in_c).collect::<Result<_, _>>()?;
    let in_fortran = MODULES.iter().try_for_each(|name| {
        let mut command = words(compiler, work);
        command.args(["-O2", "-fPIC", "-w", "-c"]).arg(sources.join(name).with_extension("f90"));
        end(start(command)?)
    });
    // Waits for all compilers, even if one failed.
    let ends: Vec<_> = children.into_iter().map(end).collect();
    in_fortran?;
    ends.into_iter().collect::<Result<(), _>>()?;
    let library = format!("libweft_fortran-{name}.so");
    let mut command = words(compiler, work);
    command.args(["-shared", "-o", &library, &format!("-Wl,-soname,{library}")]);
    command.args(C_SOURCES.map(|name| format!("c_{name}.o")));
    command.args(MODULES.map(|name| format!("{name}.o")));
    // In an installation, the path to the library is relative, so that the installation can be moved. A folder in a cache has an
    // absolute path.
    let own = work.starts_with(&tree.lib);
    let path = if own { OsStr::new("$ORIGIN/../..") } else { tree.lib.as_os_str() };
    let mut rpath = OsString::from("-Wl,-rpath,");
    rpath.push(path);
    command.arg(rpath).args(["-Wl,--enable-new-dtags", "-Wl,--no-as-needed", "-L"]);
    command.arg(&tree.lib).arg("-lmpi_abi");
    end(start(command)?)?;
    let place = |e: std::io::Error| format!("{}: {e}", work.display());
    std::os::unix::fs::symlink(&library, work.join("libweft_fortran.so")).map_err(place)?;
    for entry in fs::read_dir(work).map_err(place)?.flatten() {
        if entry.path().extension().is_some_and(|ending| ending == "o") {
            fs::remove_file(entry.path()).map_err(place)?;
        }
    }
    fs::write(work.join("weft-fort.pc"), pkg_config(tree)).map_err(place)?;
    fs::copy(sources.join("mpif.h"), work.join("mpif.h")).map_err(place)?;
    Ok(())
}

/// Returns the C compiler that uses the array descriptors of this Fortran compiler, because their layout differs between compilers.
/// gfortran compiles C itself. For other Fortran compilers, returns the system's C compiler with the header that comes with the
/// Fortran compiler.
fn c_compiler(
    work: &Path,
    compiler: &[OsString],
    tree: &Tree,
    sources: &Path,
) -> Result<Vec<OsString>, String> {
    let mut command = words(compiler, work);
    command.args(["-w", "-fsyntax-only", "-I"]).arg(&tree.include).arg(sources.join("requests.c"));
    if start(command).and_then(end).is_ok() {
        return Ok(compiler.to_vec());
    }
    let real = found(Path::new(compiler.last().unwrap_or(&OsString::new())));
    let above = real.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    let header = "ISO_Fortran_binding.h";
    let folders = ["include/flang", "include"].map(|folder| above.join(folder));
    let Some(folder) = folders.iter().find(|folder| folder.join(header).is_file()) else {
        return Err(format!(
            "it compiles no C, and its {header} is not in {} (for Debian's flang: package libflang-19-dev)",
            folders[0].display()
        ));
    };
    let mut system = super::command_of(std::env::var_os("WEFT_CC").unwrap_or_else(|| "cc".into()));
    system.push("-I".into());
    system.push(folder.into());
    Ok(system)
}

fn words(compiler: &[OsString], work: &Path) -> Command {
    let mut command = Command::new(&compiler[0]);
    command.args(&compiler[1..]).current_dir(work);
    command
}

fn start(mut command: Command) -> Result<Child, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().map_err(|e| format!("{}: {e}", command.get_program().display()))
}

/// Waits for a compiler. If the compiler failed, the error has the first lines of its output.
fn end(child: Child) -> Result<(), String> {
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stderr, output.stdout].concat();
    let text = String::from_utf8_lossy(&text);
    Err(text.lines().take(20).collect::<Vec<_>>().join("\n"))
}

/// Returns the text of the file for pkg-config, which finds the file if `PKG_CONFIG_PATH` has the folder.
fn pkg_config(tree: &Tree) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let [include, lib] = [&tree.include, &tree.lib].map(|path| path.display().to_string());
    format!(
        "Name: Weft for Fortran\nDescription: MPI library (MPI 5.0 standard ABI), for one compiler\n\
         Version: {version}\nCflags: -I${{pcfiledir}} -I\"{include}\"\n\
         Libs: -L${{pcfiledir}} -Wl,-rpath,${{pcfiledir}} -lweft_fortran -L\"{lib}\" \
         -Wl,-rpath,\"{lib}\" -lmpi_abi\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_link_leads_to_the_first_bindings_and_then_to_those_of_the_default_compiler() {
        let dir = tempfile::tempdir().unwrap();
        let target = || fs::read_link(dir.path().join(DEFAULT_LINK)).unwrap();
        let make = |name: &str, compiler: &str| {
            fs::create_dir(dir.path().join(name)).unwrap();
            make_default(dir.path(), name, &[compiler.into()]).unwrap();
            target()
        };
        assert_eq!(make("flang-1", "flang"), Path::new("flang-1"));
        assert_eq!(make("default-2", default_compiler()), Path::new("default-2"));
        assert_eq!(make("flang-3", "flang"), Path::new("default-2"));
        fs::remove_dir(dir.path().join("default-2")).unwrap();
        assert_eq!(make("flang-4", "flang"), Path::new("flang-4"), "the link led to nothing");
    }

    #[test]
    fn gfortran_alone_needs_an_option_for_unlike_buffers() {
        let lenient = |version: &str| !leniency(version).is_empty();
        assert!(lenient("GNU Fortran (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright"));
        assert!(lenient("GNU Fortran (GCC) 10.2.1 20210130 (Red Hat 10.2.1-11)\n"));
        assert!(!lenient("GNU Fortran (GCC) 9.4.0\n"));
        assert!(
            !lenient("flang-new version 19.1.7\n") && !lenient("ifx (IFX) 2025.0.0 20241008\n")
        );
        assert!(!lenient("\nnvfortran 24.9-0 64-bit target on x86-64 Linux\n") && !lenient(""));
    }
}
