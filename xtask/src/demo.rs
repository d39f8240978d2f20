//! `cargo xtask demo`: from a fresh clone to mpi4py and a solver running on Weft.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds Weft and lays out an installation in `target/weft`.
pub fn install() -> Result<PathBuf, String> {
    let prefix = crate::root().join("target/weft");
    let own = std::env::current_exe().map_err(|e| format!("where am I: {e}"))?;
    step(
        "building Weft and installing it in target/weft",
        Command::new(own).arg("install").arg("--prefix").arg(&prefix),
    )?;
    Ok(prefix)
}

/// Everything, in order; the first thing that goes wrong ends it.
pub fn run() -> Result<(), String> {
    let root = crate::root();
    let prefix = install()?;
    let (mpicc, mpiexec) = (prefix.join("bin/mpicc"), prefix.join("bin/mpiexec"));
    let folder = root.join("target/demo");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;

    let python = mpi4py(&folder, &mpicc)?;
    let on_four = |title: &str, program: &[&Path], rest: &[&str]| {
        step(title, Command::new(&mpiexec).args(["-n", "4"]).args(program).args(rest))
    };
    on_four(
        "mpi4py: a message goes round a ring of 4 ranks",
        &[&python],
        &["-m", "mpi4py.bench", "ringtest"],
    )?;
    on_four("mpi4py: Monte Carlo", &[&python, &root.join("examples/pi.py")], &[])?;

    for name in ["cg", "heat"] {
        let (source, program) =
            (root.join("examples").join(name).with_extension("c"), folder.join(name));
        step(
            &format!("compiling examples/{name}.c"),
            Command::new(&mpicc).arg("-O2").arg(&source).arg("-o").arg(&program).arg("-lm"),
        )?;
    }
    let matrix = root.join("examples/poisson32.mtx");
    on_four(
        "conjugate gradient on a sparse matrix",
        &[&folder.join("cg"), Path::new("--matrix"), &matrix],
        &[],
    )?;
    on_four("heat equation with halo exchange", &[&folder.join("heat")], &[])?;

    println!(
        "\nAll of it ran on Weft, and each example found its own answer correct. What to look at:"
    );
    println!(
        "  ringtest      its last line: seconds for all its loops round the ring; every hop is a send and a receive"
    );
    println!("  cg            'residual': computed anew from the whole matrix, without MPI");
    println!("  pi, heat      the word 'correct' at the end of the line");
    println!("Go on with your own programs:");
    println!(
        "  {} -O2 program.c -o program && {} -n 4 ./program",
        mpicc.display(),
        mpiexec.display()
    );
    println!("  {} -n 4 {} program.py", mpiexec.display(), python.display());
    Ok(())
}

/// A virtual environment whose mpi4py was built from source by our mpicc; returns its Python.
fn mpi4py(folder: &Path, mpicc: &Path) -> Result<PathBuf, String> {
    let venv = folder.join("venv");
    let python = venv.join("bin/python");
    if !python.exists() {
        step(
            "making a Python environment",
            Command::new("python3").args(["-m", "venv"]).arg(&venv),
        )
        .map_err(|e| {
            format!(
                "{e}\n(on Debian and Ubuntu, Python's venv module is in the package python3-venv)"
            )
        })?;
    }
    // Built anew each time: it is Weft's compiler wrapper and header that are shown at work.
    step(
        "building mpi4py from its source with Weft's mpicc (a minute)",
        Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(["--force-reinstall", "--no-cache-dir", "--no-binary", "mpi4py", "mpi4py"])
            .env("MPICC", mpicc),
    )?;
    Ok(python)
}

/// Says what is done, shows the command, runs it with our own output.
fn step(title: &str, command: &mut Command) -> Result<(), String> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let text = words.map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" ");
    println!("\n== {title}\n   {text}");
    let status = command.status().map_err(|e| format!("cannot start '{text}': {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("'{text}' failed: {status}")) }
}
