//! Programs under every available launcher: ours, on one host and on several hosts; Hydra's mpiexec (PMI-1) and PRRTE's prterun
//! (PMIx) from the wheels of MPICH and Open MPI; a real Slurm (PMI-2 and PMIx) if this machine has one.

use super::jobs::marked;
use super::slurm::{NODES, Slurm, TWO_NODES};
use super::tally::Tally;
use super::tools::{quiet, step};
use crate::root;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Maximum time of a job that should end. If it takes longer, the job counts as hanging.
const LIMIT: Duration = Duration::from_secs(60);
/// Maximum time for which ranks may outlive a launcher of ours that was killed.
const AFTER_KILL: Duration = Duration::from_secs(5);
/// Variable that marks the processes of a job, because all of them inherit it.
const MARK: &str = "WEFT_TEST_JOB";

/// A launcher. The words `-n N program` complete its command line.
struct Launcher {
    name: String,
    /// The program and its first arguments.
    line: Vec<String>,
    environment: Vec<(String, String)>,
    /// True if the code of MPI_Abort becomes the exit code of the job.
    tells_code: bool,
    /// True for our launchers, which no rank may outlive.
    ours: bool,
}

impl Launcher {
    fn new(name: &str, line: &[&str]) -> Launcher {
        Launcher {
            name: name.to_owned(),
            line: line.iter().map(|&word| word.to_owned()).collect(),
            environment: Vec::new(),
            tells_code: true,
            ours: false,
        }
    }

    fn command(&self, ranks: usize, program: &Path, args: &[&str], mark: &str) -> Command {
        let mut command = Command::new(&self.line[0]);
        command.args(&self.line[1..]).arg("-n").arg(ranks.to_string()).arg(program).args(args);
        command.envs(self.environment.iter().map(|(k, v)| (k, v))).env(MARK, mark);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn start(&self, ranks: usize, program: &Path, args: &[&str]) -> Result<Running, String> {
        let stamp = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |d| d.as_nanos());
        let mark = format!("{}-{stamp}", std::process::id());
        let what = format!("{}: {} on {ranks} ranks", self.name, program.display());
        let child = self.command(ranks, program, args, &mark).spawn();
        let child = child.map_err(|e| format!("{what}: cannot start {}: {e}", self.line[0]))?;
        Ok(Running { child, mark, what })
    }
}

/// A job. The job and all its remaining processes are killed when this value is dropped.
struct Running {
    child: Child,
    mark: String,
    what: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for (pid, _) in marked(&self.mark) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

/// Result of a job.
struct Outcome {
    code: Option<i32>,
    out: String,
    err: String,
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // A broken pipe also ends the output, so the error is ignored.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl Running {
    fn end(mut self) -> Result<Outcome, String> {
        let (out, err) = (drain(self.child.stdout.take()), drain(self.child.stderr.take()));
        let deadline = Instant::now() + LIMIT;
        let status = loop {
            match self.child.try_wait().map_err(|e| format!("{}: {e}", self.what))? {
                Some(status) => break Some(status),
                None if Instant::now() > deadline => break None,
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let left = if status.is_some() { self.left(Duration::from_secs(10)) } else { Vec::new() };
        let what = self.what.clone();
        drop(self);
        let text = |thread: std::thread::JoinHandle<String>| thread.join().unwrap_or_default();
        let (out, err) = (text(out), text(err));
        let Some(status) = status else {
            return Err(format!("{what}: not done after {LIMIT:?}\n{out}{err}"));
        };
        if !left.is_empty() {
            return Err(format!("{what}: processes left behind: {left:?}\n{out}{err}"));
        }
        Ok(Outcome { code: status.code(), out, err })
    }

    /// Waits up to the time `patience` for the end of the job's processes. Returns the processes that still exist.
    fn left(&self, patience: Duration) -> Vec<(i32, Option<PathBuf>)> {
        let deadline = Instant::now() + patience;
        loop {
            let left = marked(&self.mark);
            if left.is_empty() || Instant::now() > deadline {
                return left;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

pub fn run(tally: &mut Tally) -> Result<(), String> {
    let prefix = crate::demo::install()?;
    let folder = root().join("target/test-launchers");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let (hello, ring) = (compile(&prefix, &folder, "hello")?, compile(&prefix, &folder, "ring")?);
    let spawn = compile(&prefix, &folder, "spawn")?;
    let mut launchers = vec![];
    let ours = prefix.join("bin/mpiexec").display().to_string();
    launchers.push(Launcher { ours: true, ..Launcher::new("Weft's mpiexec", &[&ours]) });
    let agent = agent(&folder)?;
    let line = [&ours, "--launch-agent", &agent, "--hosts", "localhost:2,127.0.0.1:2"];
    launchers.push(Launcher { ours: true, ..Launcher::new("Weft's mpiexec, two hosts", &line) });
    wheels(&folder, &mut launchers, tally);
    let slurm = match Slurm::start() {
        Ok(slurm) => Some(slurm),
        Err(reason) => {
            tally.not_run.push(format!("programs under Slurm: {reason}"));
            None
        }
    };
    if let Some(slurm) = &slurm {
        for interface in ["pmi2", "pmix"] {
            let option = format!("--mpi={interface}");
            let mut launcher = Launcher::new(&format!("srun {option}"), &["srun", "-O", &option]);
            launcher.environment.push(slurm.variable());
            // Slurm kills the step, so the exit code is either the code of SIGKILL or the code of the first task.
            launcher.tells_code = false;
            launchers.push(launcher);
        }
        without_interface(slurm, &hello)?;
        without_options(slurm, &ours)?;
        tally.passed += 2;
        let line = ["salloc", "-Q", "-p", TWO_NODES, "-N", "2", "-n", "3", &ours];
        let name = "Weft's mpiexec, in a Slurm job of two nodes";
        let environment = vec![slurm.variable()];
        // SIGKILL ends salloc, and Slurm then ends the job in its own time.
        launchers.push(Launcher { environment, ..Launcher::new(name, &line) });
    }
    for launcher in &launchers {
        let outcome = jobs(launcher, &hello, &ring)
            .and_then(|()| abort(launcher, &hello))
            .and_then(|()| spawned(launcher, &spawn))
            .and_then(|()| killed(launcher, &hello));
        outcome.map_err(|error| match &slurm {
            Some(slurm) if ["srun", "salloc"].contains(&&*launcher.line[0]) => {
                format!("{error}\n{}", slurm.logs())
            }
            _ => error,
        })?;
        tally.passed += 4;
    }
    Ok(())
}

fn compile(prefix: &Path, folder: &Path, name: &str) -> Result<PathBuf, String> {
    let program = folder.join(name);
    let source = root().join("tests/c").join(name).with_extension("c");
    let mut cc = Command::new(prefix.join("bin/mpicc"));
    quiet(cc.args(["-O1", "-g"]).arg(source).arg("-o").arg(&program))?;
    Ok(program)
}

/// Writes a script that replaces ssh, for host names that all stand for this machine. The script ignores the host's name, and runs
/// a command line with few environment variables.
fn agent(folder: &Path) -> Result<String, String> {
    let path = folder.join("agent.sh");
    let text = "#!/bin/sh\nshift\nexec env -i PATH=\"$PATH\" HOME=\"$HOME\" sh -c \"exec $*\"\n";
    let written = fs::write(&path, text)
        .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)));
    written.map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path.display().to_string())
}

/// Finds or installs the launchers in the wheels of MPICH and Open MPI, in virtual environments.
fn wheels(folder: &Path, launchers: &mut Vec<Launcher>, tally: &mut Tally) {
    let made = |name: &str, tool: &str| -> Result<PathBuf, String> {
        for place in [root().join("target/peers").join(name), folder.join(name)] {
            if place.join("bin").join(tool).exists() {
                return Ok(place);
            }
        }
        let place = folder.join(name);
        step(Command::new("python3").args(["-m", "venv"]).arg(&place))?;
        let options = ["install", "--quiet", "--disable-pip-version-check"];
        step(Command::new(place.join("bin/pip")).args(options).arg(name))?;
        Ok(place)
    };
    let tool = |place: &Path, name: &str| place.join("bin").join(name).display().to_string();
    match made("mpich", "mpiexec.hydra") {
        Ok(place) => {
            let hydra = tool(&place, "mpiexec.hydra");
            launchers.push(Launcher::new("Hydra's mpiexec", &[&hydra]));
            launchers.push(Launcher::new("Hydra's mpiexec -pmi-port", &[&hydra, "-pmi-port"]));
        }
        Err(error) => tally.not_run.push(format!("Hydra's mpiexec: {error}")),
    }
    match made("openmpi", "prterun") {
        Ok(place) => {
            let prterun = tool(&place, "prterun");
            let line = [&prterun, "--allow-run-as-root", "--map-by", ":OVERSUBSCRIBE"];
            let mut launcher = Launcher::new("PRRTE's prterun", &line);
            // The wheel was built for another folder. These variables contain its present folder.
            for name in ["OPAL_PREFIX", "PRTE_PREFIX", "PMIX_PREFIX"] {
                launcher.environment.push((name.to_owned(), place.display().to_string()));
            }
            launchers.push(launcher);
        }
        Err(error) => tally.not_run.push(format!("PRRTE's prterun: {error}")),
    }
}

/// Tests programs that end well, on 1 to 64 ranks.
fn jobs(launcher: &Launcher, hello: &Path, ring: &Path) -> Result<(), String> {
    for ranks in [1, 2, 4, 64] {
        let began = Instant::now();
        let said = |outcome: &Outcome, line: &dyn Fn(usize) -> String| {
            let mut lines: Vec<String> = outcome.out.lines().map(str::to_owned).collect();
            let mut expected: Vec<String> = (0..ranks).map(line).collect();
            lines.sort();
            expected.sort();
            outcome.code == Some(0) && lines == expected
        };
        let outcome = launcher.start(ranks, hello, &[])?.end()?;
        if !said(&outcome, &|rank| format!("rank {rank} of {ranks}")) {
            return Err(wrong(launcher, &format!("hello on {ranks} ranks"), &outcome));
        }
        if ranks > 1 {
            let sum = ranks * (ranks - 1) / 2;
            let outcome = launcher.start(ranks, ring, &[])?.end()?;
            if !said(&outcome, &|rank| format!("rank {rank} of {ranks} sum {sum}")) {
                return Err(wrong(launcher, &format!("ring on {ranks} ranks"), &outcome));
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        println!("ok   {}: hello and ring on {ranks} ranks ({seconds:.1} s)", launcher.name);
    }
    Ok(())
}

fn wrong(launcher: &Launcher, what: &str, outcome: &Outcome) -> String {
    let Outcome { code, out, err } = outcome;
    format!("{}: {what}: exit code {code:?}, and this output:\n{out}{err}", launcher.name)
}

/// Tests that MPI_Abort of one rank ends all ranks.
fn abort(launcher: &Launcher, hello: &Path) -> Result<(), String> {
    let outcome = launcher.start(4, hello, &["abort"])?.end()?;
    let words = "MPI_Abort with code 7";
    let fits = if launcher.tells_code {
        outcome.code == Some(7)
    } else {
        outcome.code.is_some_and(|code| code != 0)
    };
    if !fits || outcome.err.matches(words).count() != 1 {
        return Err(wrong(launcher, "MPI_Abort on 4 ranks", &outcome));
    }
    println!("ok   {}: MPI_Abort ends the job (exit code {:?})", launcher.name, outcome.code);
    Ok(())
}

/// Tests a job that spawns other jobs, under any launcher.
fn spawned(launcher: &Launcher, spawn: &Path) -> Result<(), String> {
    let began = Instant::now();
    let outcome = launcher.start(2, spawn, &[])?.end()?;
    let lines = outcome.out.lines().filter(|line| line.ends_with("correct")).count();
    if outcome.code != Some(0) || lines < 3 {
        return Err(wrong(launcher, "processes that spawn others", &outcome));
    }
    let seconds = began.elapsed().as_secs_f64();
    println!("ok   {}: processes that spawn others ({seconds:.1} s)", launcher.name);
    Ok(())
}

/// Tests SIGKILL to the launcher. The ranks of our launchers must also end. For other launchers, the result is only printed.
fn killed(launcher: &Launcher, hello: &Path) -> Result<(), String> {
    let mut job = launcher.start(4, hello, &["wait"])?;
    let mut line = String::new();
    let out = job.child.stdout.take().ok_or("no output")?;
    let err = drain(job.child.stderr.take());
    let mut out = BufReader::new(out);
    out.read_line(&mut line).map_err(|e| format!("{}: {e}", job.what))?;
    if line != "running\n" {
        let what = job.what.clone();
        drop(job);
        let said = err.join().unwrap_or_default();
        return Err(format!("{what}: began with {line:?}, and said:\n{said}"));
    }
    let began = Instant::now();
    job.child.kill().map_err(|e| format!("{}: {e}", job.what))?;
    let _ = job.child.wait();
    let is_rank = |(_, exe): &(i32, Option<PathBuf>)| {
        exe.as_deref().and_then(Path::file_name) == hello.file_name()
    };
    let left = job.left(AFTER_KILL).into_iter().filter(is_rank).count();
    let seconds = began.elapsed().as_secs_f64();
    match left {
        0 => println!("ok   {}: killed, no rank left after {seconds:.1} s", launcher.name),
        _ if launcher.ours => {
            return Err(format!(
                "{}: killed, {left} ranks left after {seconds:.1} s",
                launcher.name
            ));
        }
        _ => println!("note {}: killed, {left} ranks left after {seconds:.1} s", launcher.name),
    }
    Ok(())
}

/// Tests that `srun --mpi=none` with several tasks fails with an error that names the remedy.
fn without_interface(slurm: &Slurm, hello: &Path) -> Result<(), String> {
    let mut launcher = Launcher::new("srun --mpi=none", &["srun", "-O", "--mpi=none"]);
    launcher.environment.push(slurm.variable());
    let outcome = launcher.start(2, hello, &[])?.end()?;
    if outcome.code == Some(0) || !outcome.err.contains("--mpi=pmi2") {
        return Err(wrong(&launcher, "hello on 2 ranks", &outcome));
    }
    println!("ok   {}: an error that names --mpi=pmi2", launcher.name);
    Ok(())
}

/// Tests that our `mpiexec` without options takes all slots of a Slurm job, and starts its processes on the job's nodes.
fn without_options(slurm: &Slurm, ours: &str) -> Result<(), String> {
    let mut command = Command::new("salloc");
    command.args(["-Q", "-p", TWO_NODES, "-N", "2", "-n", "3", ours, "sh", "-c"]);
    let text = quiet(command.arg("echo $SLURMD_NODENAME").envs([slurm.variable()]))?;
    let mut nodes: Vec<&str> = text.lines().collect();
    nodes.sort_unstable();
    let are_all = nodes.len() == 3 && NODES.iter().all(|node| nodes.contains(node));
    if !are_all {
        return Err(format!("mpiexec in a Slurm job of two nodes and three tasks: {nodes:?}"));
    }
    println!("ok   Weft's mpiexec, in a Slurm job of two nodes: all slots without options");
    Ok(())
}
