//! ThreadSanitizer: C programs with many threads on an instrumented library. Rust's standard library is instrumented too, so the
//! sanitizer sees every access of the programs and of the library.
//!
//! Rust links the sanitizer's runtime only into Rust executables, but the executables here are C programs. So gcc instruments these
//! programs, with calls of the same runtime functions that LLVM uses, and the complete runtime of the Rust toolchain is linked into
//! them. The sanitizer sees only one process at a time, so it cannot check accesses of several processes to shared memory. Loom and
//! Miri check these accesses.

use super::tally::Tally;
use super::tools::{quiet, step};
use crate::root;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Seconds after which a program counts as hanging. Programs are about ten times slower than usual.
const LIMIT: &str = "300";

/// A program of tests/c, its ranks, its arguments and its settings.
type Run = (&'static str, usize, &'static [&'static str], &'static [(&'static str, &'static str)]);

/// Runs of every soak test. In the last runs, a single thread of the program and the helper hand progress over to each other, and
/// use no lock.
const SHORT: &[Run] = &[
    ("threads_stress", 2, &["2"], &[]),
    ("threads_stress", 3, &["2"], &[("WEFT_CMA", "0"), ("WEFT_EAGER", "512")]),
    ("threads_stress", 2, &["2"], &[("WEFT_PROGRESS", "handover"), ("WEFT_EAGER", "512")]),
    ("any_time", 2, &["200"], &[]),
    ("partitioned_threads", 2, &[], &[]),
    ("helper", 2, &["1"], &[("WEFT_PROGRESS", "handover")]),
    ("partitioned", 2, &[], &[("WEFT_PROGRESS", "handover")]),
    ("overlap_stress", 2, &["40"], &[("WEFT_PROGRESS", "handover"), ("WEFT_EAGER", "1000")]),
    ("overlap_stress", 2, &["40"], &[("WEFT_PROGRESS", "signal"), ("WEFT_EAGER", "1000")]),
    ("files_beside", 2, &[], &[]),
    ("files_beside", 2, &[], &[("WEFT_IO_URING", "0")]),
];

/// Additional runs of `cargo xtask soak --tsan`.
const LONG: &[Run] = &[
    ("threads_stress", 2, &["60"], &[]),
    ("threads_stress", 3, &["60"], &[("WEFT_PROGRESS", "handover")]),
    ("threads_stress", 4, &["30"], &[("WEFT_CMA", "0"), ("WEFT_EAGER", "512")]),
    ("any_time", 2, &["2000"], &[("WEFT_PROGRESS", "handover")]),
    ("threads", 3, &[], &[]),
    ("threads", 2, &[], &[("WEFT_PROGRESS", "handover")]),
    ("partitioned_threads", 2, &[], &[("WEFT_PROGRESS", "handover")]),
    ("partitioned_threads", 2, &[], &[("WEFT_CMA", "0")]),
    ("sessions", 4, &[], &[]),
    ("helper_threads", 2, &["3"], &[("WEFT_PROGRESS", "handover")]),
    ("helper", 2, &["5"], &[("WEFT_PROGRESS", "handover"), ("WEFT_CMA", "0")]),
    ("collectives", 2, &[], &[("WEFT_PROGRESS", "handover")]),
    ("semantics", 2, &[], &[("WEFT_PROGRESS", "handover")]),
];

/// The instrumented library, and the folder of its programs.
struct Tsan<'a> {
    mpiexec: PathBuf,
    runtime: PathBuf,
    header: PathBuf,
    out: &'a Path,
}

/// Runs the short programs. A program that reports a race fails. If the sanitizer cannot run, records this in the tally.
pub fn run_short(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    run(prefix, &[], tally)
}

/// Runs all programs, as [`run_short`] does.
pub fn run_all(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    run(prefix, LONG, tally)
}

fn run(prefix: &Path, more: &[Run], tally: &mut Tally) -> Result<(), String> {
    let out = root().join("target/tsan");
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(reason) => {
            tally.not_run.push(format!("ThreadSanitizer: {reason}"));
            return Ok(());
        }
    };
    let tsan = Tsan::build(prefix, runtime, &out)?;
    tsan.planted()?;
    println!("ok   ThreadSanitizer finds two threads in a library without its lock");
    tally.passed += 1;
    for run in SHORT.iter().chain(more) {
        let began = Instant::now();
        tsan.one(run)?;
        println!(
            "ok   {} under ThreadSanitizer ({:.1} s)",
            name(run),
            began.elapsed().as_secs_f64()
        );
        tally.passed += 1;
    }
    Ok(())
}

/// Returns the sanitizer's runtime of the nightly toolchain, or the reason why there is none.
fn runtime() -> Result<PathBuf, String> {
    let advice = "(rustup toolchain install nightly --component rust-src)";
    let mut rustc = Command::new("rustc");
    rustc.args(["+nightly", "--print", "sysroot"]).env_remove("RUSTUP_TOOLCHAIN");
    let sysroot = quiet(&mut rustc).map_err(|_| format!("no nightly toolchain {advice}"))?;
    let lib = Path::new(sysroot.trim()).join("lib/rustlib");
    if !lib.join("src/rust/library/std/Cargo.toml").is_file() {
        return Err(format!("the nightly toolchain is without rust-src {advice}"));
    }
    let folder = lib.join(TARGET).join("lib");
    let files = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut paths = files.flatten().map(|e| e.path());
    let found = paths.find(|p| p.to_string_lossy().ends_with("_rt.tsan.a"));
    found.ok_or_else(|| {
        format!("the nightly toolchain has no runtime of it in {}", folder.display())
    })
}

impl<'a> Tsan<'a> {
    /// Builds the library with debug assertions, and without optimization, so that reports name lines.
    fn build(prefix: &Path, runtime: PathBuf, out: &'a Path) -> Result<Tsan<'a>, String> {
        step(
            super::cargo()
                .args(["+nightly", "build", "-Zbuild-std", "--target", TARGET, "-p", "weft-abi"])
                .env("CARGO_TARGET_DIR", out)
                .env("RUSTFLAGS", "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer"),
        )?;
        let built = out.join(TARGET).join("debug");
        let lib = out.join("lib");
        let copy = |from: PathBuf, to: PathBuf| {
            fs::copy(&from, &to).map_err(|e| format!("{} to {}: {e}", from.display(), to.display()))
        };
        for folder in [&lib, &out.join("programs")] {
            fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
        copy(built.join("libmpi_abi.so"), lib.join("libmpi_abi.so.1"))?;
        Ok(Tsan {
            mpiexec: prefix.join("bin/mpiexec"),
            runtime,
            header: prefix.join("include"),
            out,
        })
    }

    /// Compiles an instrumented program with the runtime and the library.
    fn compile(&self, source: &Path) -> Result<PathBuf, String> {
        let name = source.file_stem().unwrap_or_default();
        let program = self.out.join("programs").join(name);
        let object = program.with_extension("o");
        let mut compile = Command::new("cc");
        compile.args(["-fsanitize=thread", "-O1", "-g", "-Wall", "-Werror", "-c", "-I"]);
        quiet(compile.arg(&self.header).arg(source).arg("-o").arg(&object))?;
        let lib = self.out.join("lib");
        let mut link = Command::new("cc");
        link.arg(&object).arg("-o").arg(&program);
        // The program exports the runtime's symbols, so that the library finds the runtime in the program.
        link.args(["-Wl,--export-dynamic", "-Wl,--whole-archive"]).arg(&self.runtime);
        link.arg("-Wl,--no-whole-archive").arg(lib.join("libmpi_abi.so.1"));
        link.arg(format!("-Wl,-rpath,{}", lib.display()));
        quiet(link.args(["-lm", "-lpthread", "-ldl", "-lrt"]))?;
        Ok(program)
    }

    /// Runs a program. Returns its exit code and its output.
    fn launch(&self, source: &Path, run: &Run) -> Result<(Option<i32>, String), String> {
        let (_, ranks, args, settings) = run;
        let output = Command::new(&self.mpiexec)
            .args(["--timeout", LIMIT, "-n", &ranks.to_string()])
            .arg(self.compile(source)?)
            .args(*args)
            .envs(settings.iter().copied())
            .env("TSAN_OPTIONS", "exitcode=66 second_deadlock_stack=1")
            .output()
            .map_err(|e| format!("{}: {e}", self.mpiexec.display()))?;
        let texts = [&output.stdout, &output.stderr].map(|t| String::from_utf8_lossy(t));
        Ok((output.status.code(), texts.concat()))
    }

    fn one(&self, run: &Run) -> Result<(), String> {
        let source = root().join("tests/c").join(run.0).with_extension("c");
        let (code, told) = self.launch(&source, run)?;
        if code == Some(0) && told.contains("correct") && !told.contains("ThreadSanitizer") {
            return Ok(());
        }
        Err(format!("{} under ThreadSanitizer: exit code {code:?}\n{told}", name(run)))
    }

    /// Tests that the sanitizer reports two threads that use the library without its lock.
    fn planted(&self) -> Result<(), String> {
        let run: Run = ("no_lock", 1, &[], &[]);
        let source = root().join("tests/tsan/no_lock.c");
        let (code, told) = self.launch(&source, &run)?;
        if told.contains("WARNING: ThreadSanitizer: data race")
            && told.contains("MPI_Info_get_nkeys")
        {
            return Ok(());
        }
        Err(format!(
            "ThreadSanitizer found no race in {}, where there is one: exit code {code:?}\n{told}",
            source.display()
        ))
    }
}

fn name((program, ranks, _, settings): &Run) -> String {
    let with: String = settings.iter().map(|(k, v)| format!(", {k}={v}")).collect();
    format!("{program} on {ranks} ranks{with}")
}
