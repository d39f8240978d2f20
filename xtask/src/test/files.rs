//! Tests of files while something else fails: a file system or a quota becomes full in the middle of a write, or ranks are killed
//! while they use a file. Tests that need only a folder are in tests/c.

use super::c_programs::{compile, folder};
use super::jobs::JobProgram;
use super::tally::Tally;
use super::tools::{quiet, strace_runs};
use crate::root;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Number of jobs, each of which is killed while its ranks use a file.
const KILLS: usize = 12;

/// Exit code of [`MOUNT`] if the system forbids mounts.
const NOT_HERE: i32 = 77;

/// Shell script that mounts a file system of the kind `$1` with about 5 MiB in the folder `$2`, and replaces itself by the command
/// in its other arguments. Only the script and its children see the file system. If a quota is used, it applies to a user other
/// than root.
const MOUNT: &str = r#"kind=$1 folder=$2
shift 2
case $kind in
tmpfs) mount -t tmpfs -o size=5m,mode=777 none "$folder" || exit 77 ;;
ext4)
    truncate -s 8M "$folder.image" && mkfs.ext4 -q -O ^has_journal -m 0 "$folder.image" || exit 77
    mount -o loop "$folder.image" "$folder" || { rm "$folder.image"; exit 77; }
    rm "$folder.image"
    dd if=/dev/zero of="$folder/taken" bs=1M count=2 status=none ;;
quota)
    mount -t tmpfs -o size=64m,mode=777,usrquota,usrquota_block_hardlimit=5m none "$folder" || exit 77
    exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@" ;;
esac
exec "$@"
"#;

pub(super) fn run(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let full = built(prefix, "full")?;
    for kind in ["tmpfs", "ext4", "quota"] {
        for ranks in [1, 2, 4] {
            match overfilled(prefix, &full, kind, ranks)? {
                None => {
                    println!("ok   a full file system, {kind}, on {ranks} ranks");
                    tally.passed += 1;
                }
                Some(reason) => {
                    tally.not_run.push(format!("a full file system, {kind}: {reason}"));
                    break;
                }
            }
        }
    }
    by_ring(prefix, tally)?;
    let file = folder()?.join("killed-over").display().to_string();
    let program = JobProgram { path: &built(prefix, "killed")?, arguments: &[&file] };
    super::jobs::kills(prefix, program, KILLS)?;
    std::fs::remove_file(&file).map_err(|e| format!("{file}: {e}"))?;
    println!("ok   {KILLS} jobs with a rank killed over a file");
    tally.passed += 1;
    Ok(())
}

/// Tests the choice between io_uring and threads for background operations. io_uring must be used unless the system forbids it or a
/// setting disables it.
fn by_ring(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let program = folder()?.join("files_beside");
    compile(prefix, &root().join("tests/c/files_beside.c"), &program)?;
    const FORBIDDEN: &[&str] = &["-e", "inject=io_uring_setup:error=EPERM"];
    for (name, words, setting, uses) in [
        ("as it is", &[][..], "1", true),
        ("forbidden", FORBIDDEN, "1", false),
        ("not wanted", &[][..], "0", false),
    ] {
        let entered = match traced(prefix, &program, words, setting)? {
            Ok(entered) => entered,
            Err(reason) => {
                tally.not_run.push(format!("io_uring, {name}: {reason}"));
                continue;
            }
        };
        if (entered > 0) != uses {
            return Err(format!("io_uring, {name}: {entered} calls of io_uring_enter"));
        }
        println!("ok   io_uring, {name}: {entered} calls of io_uring_enter");
        tally.passed += 1;
    }
    Ok(())
}

/// Runs `program` under strace, which also gets the arguments `words`. Returns the number of calls of io_uring_enter. The inner
/// error is the reason why the calls cannot be counted.
fn traced(
    prefix: &Path,
    program: &Path,
    words: &[&str],
    setting: &str,
) -> Result<Result<usize, String>, String> {
    let log = folder()?.join("files_beside.log");
    let mut command = Command::new(prefix.join("bin/mpiexec"));
    command.args(["--timeout", "120", "-n", "1", "strace", "-f", "-o"]).arg(&log);
    command.args(["-e", "trace=io_uring_setup,io_uring_enter"]).args(words).arg(program);
    command.env("WEFT_IO_URING", setting);
    if !strace_runs() {
        return Ok(Err("strace does not run here".to_owned()));
    }
    quiet(&mut command)?;
    let text = std::fs::read_to_string(&log).map_err(|e| format!("{}: {e}", log.display()))?;
    let made = |line: &&str| line.contains("io_uring_setup(") && line.contains(" = -1 ");
    match text.lines().find(made) {
        Some(line) if words.is_empty() => Ok(Err(format!("not allowed here: {line}"))),
        _ => Ok(Ok(text.lines().filter(|line| line.contains("io_uring_enter(")).count())),
    }
}

/// Builds a program of tests/c/files.
pub(super) fn built(prefix: &Path, name: &str) -> Result<PathBuf, String> {
    let source = root().join("tests/c/files").join(name).with_extension("c");
    let program = folder()?.join(format!("files-{name}"));
    compile(prefix, &source, &program)?;
    Ok(program)
}

/// Runs tests/c/files/full.c in a small file system. If this machine cannot make the file system, returns the reason.
fn overfilled(
    prefix: &Path,
    program: &Path,
    kind: &str,
    ranks: usize,
) -> Result<Option<String>, String> {
    let place = folder()?.join("small");
    std::fs::create_dir_all(&place).map_err(|e| format!("{}: {e}", place.display()))?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", MOUNT, "sh", kind]).arg(&place);
    command.arg(prefix.join("bin/mpiexec")).args(["--timeout", "120", "-n", &ranks.to_string()]);
    command.arg(program).arg(&place).arg(kind).env_remove("TMPDIR");
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => return Ok(Some(format!("unshare: {error}"))),
    };
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    let denied = err.starts_with("unshare:");
    match output.status.code() {
        Some(0) if out.contains("correct") => Ok(None),
        Some(NOT_HERE) => Ok(Some(err.lines().next().unwrap_or("not allowed here").to_owned())),
        Some(1) if denied => Ok(Some(err.trim().to_owned())),
        _ => Err(format!("{kind} on {ranks} ranks: {}\n{out}{err}", output.status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Useful during work on files: `cargo test -p xtask beneath -- --ignored --nocapture`.
    #[test]
    #[ignore = "a part of cargo xtask test --only limits, which installs the library"]
    fn what_goes_wrong_beneath_a_file_is_told() {
        let mut tally = Tally::default();
        run(&crate::demo::prefix(), &mut tally).unwrap();
        assert!(tally.passed > 0);
        println!("NOT RUN: {:?}", tally.not_run);
    }
}
