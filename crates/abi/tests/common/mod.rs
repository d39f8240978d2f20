//! Helpers that the tests of the built library share.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, fs};

/// Returns the directory of `libmpi_abi.so`, of `include/mpi.h` beside it and of the links to it. Builds the library, since cargo
/// does not build it for the tests of a package that is only a C library. `TEST_LIBRARY_DIR` names a library that was built
/// together with the tests: this package alone needs its dependencies with other features. (Variables that begin with WEFT_ are
/// settings of the library.)
pub fn library_dir() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        if let Some(built) = env::var_os("TEST_LIBRARY_DIR") {
            return built.into();
        }
        let exe = env::current_exe().expect("the test's own path");
        let dir = exe.ancestors().nth(2).expect("a test lies in target/<profile>/deps").to_owned();
        let profile = match dir.file_name().and_then(|n| n.to_str()) {
            Some("debug") | None => "dev",
            Some(name) => name,
        };
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--package", "weft-abi", "--profile", profile]);
        cargo.arg("--target-dir").arg(dir.parent().expect("target/<profile>"));
        run(cargo.current_dir(env!("CARGO_MANIFEST_DIR")));
        dir
    })
}

/// Runs a command that must succeed. Returns its output.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let (out, err) = (&output.stdout, &output.stderr);
    let (out, err) = (String::from_utf8_lossy(out), String::from_utf8_lossy(err));
    assert!(output.status.success(), "{command:?}: {}\n{out}{err}", output.status);
    out.into_owned()
}

/// Compiles `source` with `compiler` (a program and its first arguments) and every warning an
/// error, and runs the result, with `more` among the arguments of the linker.
#[allow(dead_code)] // not by every test
pub fn compile_and_run(name: &str, compiler: &[&str], source: &str, more: &[&str]) -> String {
    let dir = library_dir();
    let file = scratch(&format!("{name}.c"), source);
    let program = file.with_extension("exe");
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).args(["-Wall", "-Wextra", "-Werror", "-pedantic"]);
    command.arg("-I").arg(dir.join("include")).arg(&file).args(more).arg("-o").arg(&program);
    // The libraries follow a C++ compiler's `-x c++`, which names the language of all later files.
    command.arg("-L").arg(dir).args(["-lmpi_abi", &format!("-Wl,-rpath,{}", dir.display())]);
    run(&mut command);
    run(&mut Command::new(&program))
}

/// Writes a file of this test run.
#[allow(dead_code)] // not by every test
pub fn scratch(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    path
}

/// Returns the rows of `data/<name>.csv` below its heading.
#[allow(dead_code)] // not by every test
pub fn data(name: &str) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    // Commas stand only inside quoted fields, which are the odd parts between quotes.
    let field = |i: usize, part: &str| match i % 2 {
        0 => part.replace(',', "\n"),
        _ => part.to_owned(),
    };
    let rows = text.lines().skip(1).map(|line| {
        let line: String = line.split('"').enumerate().map(|(i, p)| field(i, p)).collect();
        line.split('\n').map(str::to_owned).collect::<Vec<_>>()
    });
    rows.collect()
}
