//! Folders of the installation and of the unpacked packages, and commands that start a program under each launcher.

use super::super::debian;
use super::super::python::{VERSION, download_source, packages, venv};
use super::super::tools::{quiet, step};
use crate::root;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An MPI library for which a program was built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BuiltFor {
    /// Debian's Open MPI.
    OpenMpi,
    /// Debian's MPICH.
    Mpich,
    /// Intel MPI of PyPI's package impi-rt.
    Intel,
}

/// Packages of Debian 12. The names include libraries whose folder must be the unpacked one.
const DEBIAN: [&str; 17] = [
    "openmpi-bin",
    "openmpi-common",
    "libopenmpi3",
    "mpich",
    "libmpich12",
    "libblas3",
    "liblapack3",
    "lammps",
    "hpcc",
    "scalapack-mpi-test",
    "scalapack-test-common",
    "libscalapack-mpich2.2",
    "libscalapack-openmpi2.2",
    "python3-h5py",
    "python3-h5py-mpi",
    "python3-petsc4py",
    "quantum-espresso",
];

/// Packages of Debian 12 with programs of the soak alone, which are large.
const DEBIAN_SOAK: [&str; 4] = ["openfoam", "cp2k", "cp2k-data", "gromacs"];

/// Packages that the programs need as modules of Python, which may be installed for Debian's Python only.
const DEBIAN_PYTHON: [&str; 4] =
    ["python3-mpi4py", "python3-numpy", "python3-petsc4py-real3.18", "python3-h5py-serial"];

/// Version of mpi4py in Debian 12, whose source has the tests.
const DEBIAN_MPI4PY: &str = "3.1.4";

/// Maximum seconds of a program with its own MPI library. With more ranks than processors, its ranks wait in loops.
const PATIENCE: &str = "200";

/// Folders for the tests. A folder that is not there has the reason.
pub(super) struct PackageFolders {
    prefix: PathBuf,
    /// Folder in which programs run.
    pub work: PathBuf,
    debian: Result<PathBuf, String>,
    /// Unpacked packages of the soak.
    soak: Result<PathBuf, String>,
    intel: Result<PathBuf, String>,
    python: Result<PathBuf, String>,
    mpi4py: Result<PathBuf, String>,
}

impl PackageFolders {
    /// Downloads the packages, unless an earlier run has done so. The soak's packages are not among them.
    pub fn new(prefix: &Path) -> Result<PackageFolders, String> {
        let work = root().join("target/test-built");
        let names: Vec<_> = DEBIAN.into_iter().chain(DEBIAN_PYTHON).collect();
        Ok(PackageFolders {
            prefix: prefix.to_owned(),
            debian: debian::unpacked(&work, &names).map_err(last_line),
            soak: Err("only the soak unpacks the package".to_owned()),
            intel: intel(&work).map_err(last_line),
            python: python(),
            mpi4py: source(&work).map_err(last_line),
            work,
        })
    }

    /// Downloads the soak's packages, too.
    pub fn with_soak(self) -> PackageFolders {
        // Another folder, so that the stage does not download its packages again.
        let soak = debian::unpacked(&self.work.join("soak"), &DEBIAN_SOAK).map_err(last_line);
        PackageFolders { soak, ..self }
    }

    /// Returns a word of a command or a value of a variable, in which names of folders stand in braces.
    ///
    /// # Errors
    /// The folder is not there. The error is the reason.
    pub fn word(&self, word: &str) -> Result<String, String> {
        let folders = [
            ("{debian}", &self.debian),
            ("{soak}", &self.soak),
            ("{intel}", &self.intel),
            ("{python}", &self.python),
            ("{mpi4py}", &self.mpi4py),
        ];
        let mut text = word.to_owned();
        for (name, folder) in folders {
            if word.contains(name) {
                text = text.replace(name, &folder.as_ref()?.display().to_string());
            }
        }
        Ok(text.replace("{xtask}", &root().join("xtask").display().to_string()))
    }

    /// Returns the unpacked packages' folder.
    fn debian(&self) -> Result<&PathBuf, String> {
        self.debian.as_ref().map_err(|reason| format!("no packages of Debian: {reason}"))
    }

    /// Returns the launcher of the installation.
    pub fn ours(&self, mpi: BuiltFor, ranks: usize) -> Result<Command, String> {
        let mut command = Command::new(self.prefix.join("bin/mpiexec"));
        command.args(["--timeout", "100"]);
        self.finish(mpi, ranks, command)
    }

    /// Returns the launcher of the MPI library that a program was built for.
    pub fn theirs(&self, mpi: BuiltFor, ranks: usize) -> Result<Command, String> {
        let mut command = Command::new("timeout");
        command.arg(PATIENCE);
        match mpi {
            BuiltFor::OpenMpi => {
                let usr = self.debian()?.join("usr");
                let libraries = usr.join(TRIPLET);
                command.arg(usr.join("bin/orterun"));
                command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]);
                command.env("OPAL_PREFIX", &usr).env("OPAL_LIBDIR", &libraries);
                command.env("OPAL_PKGLIBDIR", libraries.join("openmpi/lib/openmpi3"));
                // No rank is started on another machine.
                command.env("OMPI_MCA_plm_rsh_agent", "/bin/false");
            }
            BuiltFor::Mpich => {
                command.arg(self.debian()?.join("usr/bin/mpiexec.hydra"));
                command.args(["-launcher", "fork"]);
            }
            BuiltFor::Intel => {
                let intel = self.intel.as_ref().map_err(String::clone)?;
                command.arg(intel.join("bin/mpiexec.hydra"));
                command.env("I_MPI_FABRICS", "shm");
            }
        }
        self.finish(mpi, ranks, command)
    }

    fn finish(&self, mpi: BuiltFor, ranks: usize, mut command: Command) -> Result<Command, String> {
        command.arg("-n").arg(ranks.to_string());
        let libraries = match mpi {
            BuiltFor::Intel => {
                self.intel.as_ref().map_err(String::clone)?.join("lib").into_os_string()
            }
            BuiltFor::OpenMpi | BuiltFor::Mpich => self.libraries()?,
        };
        // Threads of a library for linear algebra would take the other ranks' processors.
        command.env("LD_LIBRARY_PATH", libraries).env("OMP_NUM_THREADS", "1");
        Ok(command)
    }

    /// Returns the folders of Debian's libraries. Installed packages would have links to the libraries for linear algebra.
    fn libraries(&self) -> Result<OsString, String> {
        let folder = self.debian()?.join("usr").join(TRIPLET);
        let mut folders = vec![folder.clone(), folder.join("blas"), folder.join("lapack")];
        if let Ok(soak) = &self.soak {
            // OpenFOAM's libraries lie in usr/lib.
            folders.extend([soak.join("usr").join(TRIPLET), soak.join("usr/lib")]);
        }
        std::env::join_paths(folders).map_err(|e| e.to_string())
    }
}

/// Folder of Debian's libraries in `usr`.
const TRIPLET: &str = "lib/x86_64-linux-gnu";

/// Returns the last line of an error.
fn last_line(reason: String) -> String {
    reason.lines().last().unwrap_or_default().to_owned()
}

/// Installs Intel MPI from PyPI. Returns the folder of the environment.
fn intel(work: &Path) -> Result<PathBuf, String> {
    std::fs::create_dir_all(work).map_err(|e| format!("{}: {e}", work.display()))?;
    let python = venv(work, "intel")?;
    packages(&python, &work.join("intel.packages"), &["impi-rt"])?;
    Ok(work.join("intel"))
}

/// Finds Debian's Python, for which Debian's modules were built.
fn python() -> Result<PathBuf, String> {
    let python = PathBuf::from("/usr/bin/python3");
    let version = quiet(Command::new(&python).arg("--version")).unwrap_or_default();
    match version.starts_with("Python 3.11.") {
        true => Ok(python),
        false => Err(format!("/usr/bin/python3 is '{}', not Debian 12's 3.11", version.trim())),
    }
}

/// Unpacks the source of Debian's mpi4py. Returns its folder.
fn source(work: &Path) -> Result<PathBuf, String> {
    assert_ne!(VERSION, DEBIAN_MPI4PY, "the folders have the same name");
    let unpacked = work.join(format!("mpi4py-{DEBIAN_MPI4PY}"));
    if unpacked.join("test/runtests.py").exists() {
        return Ok(unpacked);
    }
    download_source(work, DEBIAN_MPI4PY)?;
    let archive = work.join(format!("mpi4py-{DEBIAN_MPI4PY}.tar.gz"));
    step(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(work))?;
    Ok(unpacked)
}
