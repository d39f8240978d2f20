//! Tests of memory: programs under tools that watch all memory, with all memory locked, with little address space, and in a control
//! group with a limit. Also tests the message if no rank can start because of a limit.

use super::tally::Tally;
use super::tools::{quiet, step};
use crate::root;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Maximum resident memory in KiB of the largest process under a tool. The tool itself uses most of this memory.
const RESIDENT: u64 = 512 << 10;

/// Address space in KiB that must be enough for each of four ranks (`ulimit -v`).
const SPACE: u64 = 400 << 10;

/// Memory limit of the control group, in MiB.
const GROUP: u64 = 300;
/// Size of each window that the program requests in the control group, in MiB.
const WINDOW: u64 = 50;

/// Settings that make peers write into this process's memory, for messages, windows and collective operations.
const WAYS: [&str; 2] = [
    "WEFT_PROTOCOL=co-copy WEFT_ALLREDUCE=SHM-READ WEFT_SCAN=SHM-READ",
    "WEFT_PROTOCOL=written WEFT_RENDEZVOUS=write WEFT_BCAST=BINOMIAL WEFT_ALLREDUCE=RECURSIVE-DOUBLING",
];

/// Program that runs a command and prints the size of the largest of its processes.
const MEASURE: &str = "import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
print('resident', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)";

/// A tool, its arguments before the program, and its messages about a correct program.
const TOOLS: [(&str, &[&str], &[&str]); 6] = [
    ("valgrind", &["--leak-check=full"], &["definitely lost: 0 bytes", "indirectly lost: 0 bytes"]),
    ("valgrind", &["--tool=callgrind", "--callgrind-out-file=/dev/null"], &["Collected"]),
    ("gdb", &["-q", "-batch", "-ex", "run", "--args"], &["exited normally"]),
    ("strace", &["-f", "-o", "/dev/null"], &[]),
    ("perf", &["stat", "-o", "/dev/null"], &[]),
    ("env", &["ASAN_OPTIONS=detect_leaks=0"], &[]),
];

pub fn run(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let out = super::c_programs::folder()?;
    let watched = out.join("watched");
    let mpiexec = prefix.join("bin/mpiexec");
    install(tally);
    for (tool, arguments, says) in TOOLS {
        let program = if tool == "env" { sanitized(prefix, &out)? } else { watched.clone() };
        let works = Command::new(tool).args(arguments).arg("true").stdin(Stdio::null()).output();
        if !works.is_ok_and(|output| output.status.success()) {
            tally.not_run.push(format!("programs under {tool}: it does not run here"));
            continue;
        }
        let mut command = Command::new(&mpiexec);
        command
            .args(["--timeout", "120", "-n", "2", "python3", "-c", MEASURE, tool])
            .args(arguments);
        let text = spoken(command.arg(program).arg("watched"))?;
        let what = format!("{tool} {}", arguments.join(" "));
        for word in says.iter().chain(&["correct"]) {
            if !text.contains(word) {
                return Err(format!("under {what}, watched does not say '{word}':\n{text}"));
            }
        }
        let sizes =
            text.lines().filter_map(|line| line.strip_prefix("resident ")?.parse::<u64>().ok());
        match sizes.max() {
            Some(most) if most <= RESIDENT => println!("ok   watched under {what} ({most} KiB)"),
            most => return Err(format!("under {what}: {most:?} KiB resident, limit {RESIDENT}")),
        }
        tally.passed += 1;
    }
    defined(prefix, &out, tally)?;
    for when in ["early", "late"] {
        let mut command = Command::new(&mpiexec);
        let output = command.args(["-n", "2"]).arg(&watched).arg(when).output();
        let output = output.map_err(|e| format!("mpiexec: {e}"))?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.code() {
            Some(0) => println!("ok   all memory locked, {when}"),
            Some(9) => tally.not_run.push(format!("all memory locked, {when}: {}", text.trim())),
            code => return Err(format!("all memory locked, {when}: {code:?}\n{text}")),
        }
        tally.passed += 1;
    }
    let script = format!("ulimit -v {SPACE}; exec \"$0\" -n 4 \"$1\" watched");
    quiet(Command::new("sh").arg("-c").arg(script).arg(&mpiexec).arg(&watched))?;
    println!("ok   four ranks with {SPACE} KiB of addresses each");
    tally.passed += 1;
    refused(&mpiexec, &out.join("many"), tally)?;
    limited(&mpiexec, &out.join("promised_limit"), tally)
}

/// Tests that memcheck reports nothing for a program whose decisions depend on each byte that a peer has written into the program's
/// memory.
fn defined(prefix: &Path, out: &Path, tally: &mut Tally) -> Result<(), String> {
    if !Command::new("valgrind").arg("true").output().is_ok_and(|output| output.status.success()) {
        tally.not_run.push("defined under valgrind: it does not run here".to_owned());
        return Ok(());
    }
    for way in WAYS {
        let mut command = Command::new(prefix.join("bin/mpiexec"));
        command.args(["--timeout", "120", "-n", "2", "valgrind", "-q", "--error-exitcode=9"]);
        command.arg(out.join("defined")).envs(way.split(' ').filter_map(|w| w.split_once('=')));
        spoken(&mut command)?;
        println!("ok   defined under valgrind, {way}");
        tally.passed += 1;
    }
    Ok(())
}

/// Tests that only one message is printed if no rank can start and all ranks fail for the same reason.
fn refused(mpiexec: &Path, program: &Path, tally: &mut Tally) -> Result<(), String> {
    let script = "ulimit -Sn 6; exec \"$0\" -n 40 \"$1\"";
    let output = Command::new("sh").arg("-c").arg(script).arg(mpiexec).arg(program).output();
    let output = output.map_err(|e| format!("mpiexec: {e}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() || said.lines().count() != 1 || !said.contains("ulimit -n") {
        return Err(format!("40 ranks with too few descriptors: {}\n{said}", output.status));
    }
    println!("ok   40 ranks that cannot start for one cause: one message");
    tally.passed += 1;
    Ok(())
}

/// Runs the program in a control group whose memory is enough for some of the requested windows, but not for all.
fn limited(mpiexec: &Path, program: &Path, tally: &mut Tally) -> Result<(), String> {
    let Some((group, limit)) = group() else {
        tally
            .not_run
            .push("windows in a control group with a limit: none can be made here".to_owned());
        return Ok(());
    };
    let made = fs::write(group.join(limit), format!("{}", GROUP << 20)).map_err(|e| e.to_string());
    let script = "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"";
    let many = (2 * GROUP / WINDOW).to_string();
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(&group).arg(mpiexec).args(["-n", "2"]).arg(program);
    let said = made.and_then(|()| spoken(command.args([&WINDOW.to_string(), &many])));
    // The last process may not have left the group yet, so the removal is tried several times.
    for _ in 0..50 {
        if fs::remove_dir(&group).is_ok() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let said = said?;
    let count =
        said.lines().find_map(|line| line.split_once(" windows, the limit is")?.0.parse().ok());
    match count {
        Some(count) if (1..=GROUP / WINDOW).contains(&count) && said.contains("correct") => {
            println!(
                "ok   {count} windows of {WINDOW} MiB in a control group of {GROUP} MiB, the next is refused"
            );
            tally.passed += 1;
            Ok(())
        }
        _ => Err(format!("windows in a control group of {GROUP} MiB:\n{said}")),
    }
}

/// Makes a new control group below the group of this process. Returns its folder, and the name of the file that limits its memory.
fn group() -> Option<(PathBuf, &'static str)> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let name = format!("weft-test-{}", std::process::id());
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?.trim_start_matches('/'));
        let (mount, limit) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => return None,
        };
        let group = Path::new(mount).join(path).join(&name);
        fs::create_dir(&group).ok()?;
        if group.join(limit).exists() {
            return Some((group, limit));
        }
        let _ = fs::remove_dir(&group);
        None
    })
}

/// Builds `watched` with AddressSanitizer.
fn sanitized(prefix: &Path, out: &Path) -> Result<PathBuf, String> {
    let program = out.join("watched-sanitized");
    let mut command = Command::new(prefix.join("bin/mpicc"));
    command.args(["-fsanitize=address", "-g", "-o"]).arg(&program);
    quiet(command.arg(root().join("tests/c/watched.c"))).map(|_| program)
}

/// Returns the standard output and the standard error of a command that succeeds.
fn spoken(command: &mut Command) -> Result<String, String> {
    let text = super::tools::text(command);
    let output = command.stdin(Stdio::null()).output().map_err(|e| format!("'{text}': {e}"))?;
    let all = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    if output.status.success() {
        Ok(all)
    } else {
        Err(format!("'{text}': {}\n{all}", output.status))
    }
}

/// Installs missing tools, if the user is root on a Debian system.
fn install(tally: &mut Tally) {
    let is_there = |tool: &&str| Command::new(tool).arg("--version").output().is_ok();
    let missing: Vec<&str> =
        ["valgrind", "gdb", "strace"].into_iter().filter(|t| !is_there(t)).collect();
    if missing.is_empty() {
        return;
    }
    let mut apt = Command::new("apt-get");
    apt.args(["-qq", "-o", "DPkg::Lock::Timeout=300", "install", "-y", "--no-install-recommends"]);
    apt.args(&missing).env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null());
    if let Err(why) = step(&mut apt) {
        tally.not_run.push(format!("installing {}: {why}", missing.join(", ")));
    }
}
