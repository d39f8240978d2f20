//! Stages that are cargo's own commands: builds, lints, models of Loom, and Miri.

use super::programs;
use super::tally::{Tally, cargo};
use super::tools::{self, step};
use crate::install;
use std::thread::ScopedJoinHandle;

/// Builds and installs the library, and builds the programs of the quick stages. These stages can then spend their time on tests.
pub fn build() -> Result<(), String> {
    // The end of the library's build uses only one thread, so test programs are built at the same time.
    let (installed, built) = std::thread::scope(|scope| {
        let built = scope.spawn(|| {
            programs::oracles()?;
            install::test_programs()
        });
        (crate::demo::install(), built.join().expect("it returns its errors"))
    });
    installed.and(built).map(drop)
}

/// Checks format, layers, documents and lints of the whole workspace.
pub fn lint() -> Result<(), String> {
    step(cargo().args(["fmt", "--all", "--check"]))?;
    crate::layers::check()?;
    crate::clean::check()?;
    crate::documents::check()?;
    crate::house::check()?;
    // A folder of its own, because cargo locks the folder during a build, and other stages would wait.
    let folder = crate::root().join("target/lint");
    let all = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    step(cargo().args(all).env("CARGO_TARGET_DIR", &folder))?;
    // Links of the documentation must lead to existing items.
    let mut documents = cargo();
    documents.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
    step(documents.env("CARGO_TARGET_DIR", &folder))
}

/// Runs the models of the lock-free parts.
pub fn loom(tally: &mut Tally) -> Result<(), String> {
    let mut command = cargo();
    command
        .args(["test", "--release", "-p", "weft-fabric", "-p", "weft-intranode"])
        .args(["-p", "weft-fabric-shm", "-p", "weft-collective", "-p", "weft-rma"])
        .args(["-p", "weft-fabric-sim-client", "--lib", "loom"])
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", crate::root().join("target/loom"));
    let output = tools::captured(&mut command)?;
    tally.passed += tools::count_cargo_tests(&output)?;
    Ok(())
}

/// Crates whose tests Miri can run. The tests of these crates must stay short.
const MIRI: &[&str] =
    &["weft-fabric", "weft-intranode", "weft-fabric-shm", "weft-datatype", "weft-p2p"];

/// Runs the tests that Miri can run.
pub fn miri(tally: &mut Tally) -> Result<(), String> {
    if !tools::have_miri() {
        tally.not_run.push(
            "Miri: no nightly toolchain with the component miri (rustup toolchain install nightly \
             --component miri,rust-src)"
                .to_owned(),
        );
        return Ok(());
    }
    let miri = |arguments: &[&str]| {
        let mut command = cargo();
        command.args(["+nightly", "miri"]).args(arguments);
        command.env("CARGO_TARGET_DIR", crate::root().join("target/miri")).env(
            "MIRIFLAGS",
            "-Zmiri-disable-isolation -Zmiri-ignore-leaks -Zmiri-permissive-provenance",
        );
        command
    };
    // All runs need Miri's setup. It is made first, because several runs at the same time would each build it.
    step(&mut miri(&["setup"]))?;
    // Miri uses one processor, so several crates run in parallel.
    let outputs: Vec<Result<String, String>> = std::thread::scope(|scope| {
        let test = |name| move || tools::captured(&mut miri(&["test", "-p", name, "--lib"]));
        let threads: Vec<_> = MIRI.iter().map(|&name| scope.spawn(test(name))).collect();
        let ended =
            |thread: ScopedJoinHandle<_>| thread.join().map_err(|_| "Miri's output".to_owned())?;
        threads.into_iter().map(ended).collect()
    });
    for output in outputs {
        tally.passed += tools::count_cargo_tests(&output?)?;
    }
    Ok(())
}
