//! `cargo xtask demo`: builds Weft and mpi4py in a fresh clone, and runs mpi4py and a solver on Weft.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(clap::Args)]
pub struct DemoArgs {
    /// Use the Weft that is installed in PREFIX (default: build Weft and install it in target/weft first).
    #[arg(long, value_name = "PREFIX")]
    weft: Option<PathBuf>,
}

/// Returns the folder of the installation that [`install`] makes.
pub fn prefix() -> PathBuf {
    crate::root().join("target/weft")
}

/// Builds Weft and makes an installation in `target/weft`.
pub fn install() -> Result<PathBuf, String> {
    let prefix = prefix();
    println!("\n== building Weft and installing it in target/weft");
    crate::install::install(&prefix)?;
    Ok(prefix)
}

/// Runs all steps in order, until a step fails.
pub fn run(args: DemoArgs) -> Result<(), String> {
    let root = crate::root();
    let prefix = args.weft.map_or_else(install, Ok)?;
    let prefix = std::path::absolute(&prefix).map_err(|e| format!("{}: {e}", prefix.display()))?;
    let (mpicc, mpiexec) = (prefix.join("bin/mpicc"), prefix.join("bin/mpiexec"));
    let folder = root.join("target/demo");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;

    let python = mpi4py(&folder, &prefix)?;
    let on_four = |title: &str, program: &[&Path], rest: &[&str]| {
        step(title, Command::new(&mpiexec).args(["-n", "4"]).args(program).args(rest))
    };
    on_four(
        "mpi4py: a message goes round a ring of 4 ranks",
        &[&python],
        &["-m", "mpi4py.bench", "ringtest", "-n", "1024", "-l", "1000"],
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
    println!("  ringtest      seconds for 1000 loops of 4 hops round the ring; 4000 hops in all");
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

/// Makes a virtual environment with an mpi4py that our mpicc built from source. Returns its Python.
fn mpi4py(folder: &Path, prefix: &Path) -> Result<PathBuf, String> {
    let venv = folder.join("venv");
    let python = venv.join("bin/python");
    if !venv.join("bin/pip").exists() {
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
    // If Weft has moved or its header has changed, mpi4py is built again.
    let stamp = folder.join("built-for");
    let header = prefix.join("include/mpi.h");
    let built_for =
        format!("{}\n{}", prefix.display(), fs::read_to_string(header).unwrap_or_default());
    if fs::read_to_string(&stamp).is_ok_and(|before| before == built_for) {
        println!("\n== mpi4py is built already");
        return Ok(python);
    }
    step(
        "building mpi4py from its source with Weft's mpicc (a few minutes)",
        Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(["--force-reinstall", "--no-cache-dir", "--no-binary", "mpi4py", "mpi4py"])
            // These options compile faster than Python's own -O3 -g.
            .env("CFLAGS", "-O1 -g0")
            .env("MPICC", prefix.join("bin/mpicc")),
    )?;
    fs::write(&stamp, built_for).map_err(|e| format!("{}: {e}", stamp.display()))?;
    Ok(python)
}

/// Prints the title and the command. Then runs the command and shows its output.
fn step(title: &str, command: &mut Command) -> Result<(), String> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let text = words.map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" ");
    println!("\n== {title}\n   {text}");
    let status = command.status().map_err(|e| format!("cannot start '{text}': {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("'{text}' failed: {status}")) }
}
