//! Start of jobs: a library outside of its installation, programs without an rpath, the room for processes, ranks with different
//! settings, small limits on open files, and the last words of processes that could not start.

use super::c_programs::{compile, folder, one, plan};
use super::lanes::two_at_a_time;
use super::tally::Tally;
use super::tools::quiet;
use super::{alike, bound_ranks, checking_mode, deadlocks, open_files};
use crate::root;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Programs of tests/c that run here with arguments or settings that differ from their comments.
const PROGRAMS: [&str; 6] =
    ["collectives", "hello", "ring", "spawn", "spawn_last_words", "universe"];

pub fn run(tally: &mut Tally) -> Result<(), String> {
    let prefix = &crate::demo::install()?;
    let built = two_at_a_time(&PROGRAMS, |name| {
        let source = root().join("tests/c").join(name).with_extension("c");
        compile(prefix, &source, &folder()?.join(name))
    });
    built.into_iter().collect::<Result<(), String>>()?;
    library_apart(prefix, tally)?;
    without_rpath(prefix, tally)?;
    universe(prefix, tally)?;
    last_words_of_other_hosts(prefix, tally)?;
    alike::run(prefix, tally)?;
    bound_ranks::run(prefix, tally)?;
    open_files::run(prefix, tally)?;
    deadlocks::run(prefix, tally)?;
    checking_mode::run(prefix, tally)
}

/// Tests a library that is not in the folder of its installation, if PATH contains no folder of the installation. The mpiexec that
/// has started the job must also start spawned processes.
fn library_apart(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let apart = tempfile::tempdir_in(folder()?).map_err(|e| format!("a folder: {e}"))?;
    let name = "libmpi_abi.so.1";
    let copied = fs::copy(prefix.join("lib").join(name), apart.path().join(name));
    copied.map_err(|e| format!("copying {name}: {e}"))?;
    let apart = apart.path().display().to_string();
    let settings = [("LD_LIBRARY_PATH", apart), ("PATH", "/nowhere".to_owned())];
    let settings = settings.map(|(name, value)| (name.to_owned(), value));
    let plan = plan("// args: few\n// says: correct\n")?;
    one(prefix, &folder()?.join("spawn"), 2, &plan, &settings)?;
    println!("ok   spawn with a library apart from its installation");
    tally.passed += 1;
    Ok(())
}

/// Tests programs that were linked only with `-L` and `-l`. `mpiexec` must give them the folder of the library, on this host and on
/// other hosts.
fn without_rpath(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let folder = tempfile::tempdir_in(folder()?).map_err(|e| format!("a folder: {e}"))?;
    let agent = folder.path().join("agent");
    let script = "#!/bin/sh\nshift\nexec env -i PATH=/usr/bin:/bin sh -c \"exec $*\"\n";
    fs::write(&agent, script).map_err(|e| format!("{}: {e}", agent.display()))?;
    for name in ["mpi", "mpi_abi"] {
        let program = folder.path().join(name);
        let mut cc = Command::new("cc");
        cc.arg(root().join("tests/c/ring.c")).arg("-o").arg(&program);
        cc.arg("-I").arg(prefix.join("include")).arg("-L").arg(prefix.join("lib"));
        quiet(cc.args([&format!("-l{name}"), "-lm", "-lpthread"]))?;
        let reach = format!("sh {}", agent.display());
        for hosts in [&[][..], &["--launch-agent", &reach, "-hosts", "a,b"]] {
            let mut mpiexec = Command::new(prefix.join("bin/mpiexec"));
            mpiexec.args(["--timeout", "60"]).args(hosts).args(["-n", "2"]).arg(&program);
            quiet(mpiexec.env_remove("LD_LIBRARY_PATH"))?;
        }
        // A list that already contains the folder of the library gets only the libraries of older ABIs, unless they are turned off.
        let list = format!("/nowhere:{}", prefix.join("lib").display());
        let longer = format!("{}:{list}", prefix.join("lib/weft/legacy").display());
        for (setting, expected) in [("1", &longer), ("0", &list)] {
            let mut mpiexec = Command::new(prefix.join("bin/mpiexec"));
            mpiexec.args(["sh", "-c", "test \"$LD_LIBRARY_PATH\" = \"$LIST\""]);
            mpiexec.env("LD_LIBRARY_PATH", &list).env("LIST", expected);
            quiet(mpiexec.env("WEFT_LEGACY_ABI", setting))?;
        }
    }
    println!("ok   programs without an rpath");
    tally.passed += 1;
    Ok(())
}

/// Tests the maximum number of processes (MPI_UNIVERSE_SIZE), with the options of the launcher, and in spawned processes.
fn universe(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let program = folder()?.join("universe");
    for (options, parent, child) in [
        (&["-hosts", "localhost:16"][..], "16", "16"),
        (&["-usize", "20", "-hosts", "localhost:16"], "20", "20"),
        (&["--universe-size", "2"], "2", "3"),
        (&["-usize", "INFINITE"], "none", "none"),
    ] {
        let mut mpiexec = Command::new(prefix.join("bin/mpiexec"));
        mpiexec.args(["--timeout", "60"]).args(options).args(["-n", "2"]).arg(&program);
        quiet(mpiexec.args([parent, child])).map_err(|e| format!("{options:?}: {e}"))?;
    }
    println!("ok   room for processes");
    tally.passed += 1;
    Ok(())
}

/// Tests that the last words of spawned processes reach their parents from other hosts, through the agents there.
fn last_words_of_other_hosts(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let place = tempfile::tempdir_in(folder()?).map_err(|e| format!("a folder: {e}"))?;
    let agent = place.path().join("agent");
    let script = "#!/bin/sh\nshift\nexec sh -c \"exec $*\"\n";
    fs::write(&agent, script).map_err(|e| format!("{}: {e}", agent.display()))?;
    let reach = format!("sh {}", agent.display());
    let mut mpiexec = Command::new(prefix.join("bin/mpiexec"));
    mpiexec.args(["--timeout", "120", "--launch-agent", &reach, "-hosts", "a,b", "-n", "2"]);
    mpiexec.arg(folder()?.join("spawn_last_words")).args([") on a ", ") on b "]);
    quiet(mpiexec.env("WEFT_FABRIC", "shm+ofi"))?;
    println!("ok   last words of spawned processes on other hosts");
    tally.passed += 1;
    Ok(())
}
