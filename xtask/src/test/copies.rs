//! Tests of measured costs of copies. The library keeps the costs in a cache directory if it can. Jobs must also run without a
//! warning if there is no cache directory.

use super::c_programs;
use super::tally::Tally;
use super::tools::text;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

struct Jobs {
    mpiexec: PathBuf,
    program: PathBuf,
    /// Directory of the kept models.
    cache: PathBuf,
}

/// Costs that a job has printed, by name.
type Costs = BTreeMap<String, u64>;

impl Jobs {
    /// Returns the command of a job of two ranks, with the words `before` before `mpiexec` and the words `args` after the program.
    fn command(&self, before: &[&str], args: &[&str]) -> Command {
        let mpiexec = self.mpiexec.to_string_lossy();
        let words: Vec<&str> = before.iter().copied().chain([&*mpiexec, "-n", "2"]).collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(&self.program).args(args);
        command.env("XDG_CACHE_HOME", &self.cache).env_remove("WEFT_COPY_MODEL");
        command.stdin(Stdio::null());
        command
    }

    /// Runs a job, which must succeed without any message.
    fn run(&self, command: &mut Command) -> Result<Costs, String> {
        let line = text(command);
        let output = command.output().map_err(|e| format!("'{line}': {e}"))?;
        judge(&line, &output)
    }

    /// Returns the path of the only file in the cache.
    fn file(&self) -> Result<PathBuf, String> {
        let folder = self.cache.join("weft");
        let entries = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        match entries.flatten().map(|entry| entry.path()).collect::<Vec<_>>().as_slice() {
            [file] => Ok(file.clone()),
            files => Err(format!("one model should be kept, not {files:?}")),
        }
    }

    fn kept(&self) -> Result<String, String> {
        fs::read_to_string(self.file()?).map_err(|e| e.to_string())
    }

    fn forget(&self) -> Result<(), String> {
        fs::remove_dir_all(&self.cache).map_err(|e| e.to_string())
    }
}

fn judge(line: &str, output: &Output) -> Result<Costs, String> {
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() || !err.is_empty() {
        return Err(format!("'{line}': {}\n{out}{err}", output.status));
    }
    let number = |line: &str| {
        let (name, number) = line.strip_prefix("copy_")?.split_once(' ')?;
        Some((name.to_owned(), number.parse().ok()?))
    };
    Ok(out.lines().filter_map(number).collect())
}

/// Returns an error with this text unless `ok` is true.
fn check(ok: bool, what: &str, seen: &dyn std::fmt::Debug) -> Result<(), String> {
    if ok { Ok(()) } else { Err(format!("{what}: {seen:?}")) }
}

fn ok(what: &str, tally: &mut Tally) {
    println!("ok   {what}");
    tally.passed += 1;
}

pub fn run(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let out = c_programs::folder()?;
    let cache = out.join("copies-cache");
    let _ = fs::remove_dir_all(&cache);
    let jobs = Jobs { mpiexec: prefix.join("bin/mpiexec"), program: out.join("copy_model"), cache };
    measured_once(&jobs, tally)?;
    replaced(&jobs, tally)?;
    at_once(&jobs, tally)?;
    kept_nowhere(&jobs, &out, tally)?;
    one_processor(&jobs, tally)?;
    forbidden(&jobs, tally)?;
    named(&jobs, &out, tally)
}

/// Tests that the first job measures the costs, and that the second job finds the result.
fn measured_once(jobs: &Jobs, tally: &mut Tally) -> Result<(), String> {
    let first = jobs.run(&mut jobs.command(&[], &[]))?;
    let kept = jobs.kept()?;
    let late = !kept.contains("late = []");
    let second = jobs.run(&mut jobs.command(&[], &[]))?;
    check(first.len() == 36, "36 numbers", &first)?;
    // On a busy machine some measurements may be missing, and then the second job measures again.
    check(late || jobs.kept()? == kept, "a model was kept and measured again", &kept)?;
    let near = |a: u64, b: u64| a.abs_diff(b) <= a / 500 + 1;
    let same = second.iter().all(|(name, &value)| near(value, first[name]));
    check(late || same, "kept, but other numbers", &(&first, &second))?;
    ok("a model is measured by the first job and found by the second", tally);
    Ok(())
}

/// Tests that a file is replaced if it is not a model of this machine.
fn replaced(jobs: &Jobs, tally: &mut Tally) -> Result<(), String> {
    let file = jobs.file()?;
    let whole = jobs.kept()?;
    let other = whole.replace("processor = \"", "processor = \"Other ");
    for (what, text) in
        [("another machine's", other), ("half a", whole[..whole.len() / 2].to_owned())]
    {
        fs::write(&file, &text).map_err(|e| e.to_string())?;
        jobs.run(&mut jobs.command(&[], &[]))?;
        let now = jobs.kept()?;
        check(now != text && now.contains("processor = \""), what, &now)?;
        ok(&format!("{what} model is replaced"), tally);
    }
    Ok(())
}

/// Tests that jobs that begin at the same time leave one file, which is complete.
fn at_once(jobs: &Jobs, tally: &mut Tally) -> Result<(), String> {
    jobs.forget()?;
    let start = |_| jobs.command(&[], &[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let started: Result<Vec<Child>, _> = (0..4).map(start).collect();
    for job in started.map_err(|e| e.to_string())? {
        let output = job.wait_with_output().map_err(|e| e.to_string())?;
        judge("one of four jobs", &output)?;
    }
    check(jobs.kept()?.contains("processor = \""), "a whole file", &jobs.kept())?;
    ok("four jobs at once leave one model", tally);
    Ok(())
}

/// Tests jobs that cannot keep a model.
fn kept_nowhere(jobs: &Jobs, out: &Path, tally: &mut Tally) -> Result<(), String> {
    let blocked = out.join("copies-blocked");
    fs::write(&blocked, "no directory").map_err(|e| e.to_string())?;
    jobs.run(jobs.command(&[], &[]).env("XDG_CACHE_HOME", &blocked))?;
    jobs.run(jobs.command(&[], &[]).env_remove("XDG_CACHE_HOME").env("HOME", &blocked))?;
    jobs.run(jobs.command(&["env", "-u", "HOME"], &[]).env("XDG_CACHE_HOME", "/proc/none"))?;
    ok("jobs without a cache directory", tally);
    Ok(())
}

/// Tests that a job on one processor measures no pairs of processors, and that a job on two processors does.
fn one_processor(jobs: &Jobs, tally: &mut Tally) -> Result<(), String> {
    jobs.forget()?;
    let processor = first_processor().ok_or("no processor allowed")?.to_string();
    jobs.run(&mut jobs.command(&["taskset", "-c", &processor], &[]))?;
    let alone = jobs.kept()?;
    check(alone.contains("\"line.shared\""), "one processor has no pair", &alone)?;
    if std::thread::available_parallelism().is_ok_and(|n| n.get() > 1) {
        // On a busy machine the measurement must be forced.
        jobs.run(jobs.command(&[], &[]).env("WEFT_COPY_MODEL", "measure"))?;
        let pairs = jobs.kept()?;
        let absent = absent(&pairs);
        let both = absent.contains("line.shared") && absent.contains("line.apart");
        check(!both, "with more processors a pair is measured", &pairs)?;
    }
    ok("on one processor, then on all", tally);
    Ok(())
}

/// Tests a system that forbids reading another process's memory.
fn forbidden(jobs: &Jobs, tally: &mut Tally) -> Result<(), String> {
    jobs.forget()?;
    let mut forbidden = jobs.command(&[], &["forbid"]);
    // On a busy machine the measurement must be forced.
    forbidden.env("WEFT_COPY_MODEL", "measure");
    let output = forbidden.output().map_err(|e| e.to_string())?;
    judge(&text(&forbidden), &output)?;
    if String::from_utf8_lossy(&output.stdout).contains("cannot forbid") {
        tally.not_run.push("a job without CMA: no seccomp here".to_owned());
        return Ok(());
    }
    let kept = jobs.kept()?;
    let absent = absent(&kept);
    check(absent.contains("cma_call") && absent.contains("cma_page"), "no CMA", &kept)?;
    // The next job must not try to read the memory again.
    jobs.run(&mut jobs.command(&[], &["forbid"]))?;
    let late = !kept.contains("late = []");
    check(late || jobs.kept()? == kept, "measured again", &kept)?;
    ok("where CMA is forbidden", tally);
    Ok(())
}

/// Tests a file that the user names, and a file that does not exist.
fn named(jobs: &Jobs, out: &Path, tally: &mut Tally) -> Result<(), String> {
    let mine = out.join("copies-mine.toml");
    fs::write(&mine, "[copies]\nswitch = 7\n").map_err(|e| e.to_string())?;
    let costs = jobs.run(jobs.command(&[], &[]).env("WEFT_COPY_MODEL", &mine))?;
    check(costs.get("switch") == Some(&7_000_000), "the number of a file", &costs)?;
    let mut none = jobs.command(&[], &[]);
    let output = none.env("WEFT_COPY_MODEL", "/none.toml").output().map_err(|e| e.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    check(!output.status.success() && said.contains("/none.toml"), "a file that is none", &said)?;
    ok("a model from a file", tally);
    Ok(())
}

/// Returns the line of a kept model that names the missing measurements.
fn absent(kept: &str) -> &str {
    kept.lines().find(|line| line.starts_with("absent")).unwrap_or_default()
}

fn first_processor() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    list.trim().split([',', '-']).next()?.parse().ok()
}
