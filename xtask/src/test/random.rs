//! Random programs whose results an oracle checks (`weft-random` of crates/abi-tests), on 2 to 9 ranks, with settings that select
//! other protocols. The test must also find bytes that are corrupted on purpose.

use super::tally::Tally;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant, SystemTime};

/// Number of programs in a launch. There are launches with two settings on each of eight numbers of ranks, so about a thousand
/// programs run in all.
const PROGRAMS: u64 = 63;
const RANKS: std::ops::RangeInclusive<usize> = 2..=9;
/// Seconds after which a launch counts as hanging.
const LIMIT: u64 = 300;

/// Kinds of places in which a byte is corrupted, each with the seed of the programs.
const PLANTED: [(&str, &str); 11] = [
    ("message", "1"),
    ("message", "2"),
    ("message", "3"),
    ("message", "4"),
    ("message", "5"),
    ("window", "1"),
    ("window", "2"),
    ("window", "3"),
    ("fetched", "1"),
    ("fetched", "2"),
    ("fetched", "3"),
];

const FAULT: &str = "WEFT_FAULT=seed=7,message_delay=0.3,completion_delay=0.3,reorder=1";
const SETTINGS: [&[&str]; 6] = [
    &[],
    &["WEFT_CMA=0"],
    &["WEFT_CREDIT=4096", "WEFT_STAGING=0"],
    &[FAULT],
    &["WEFT_PROGRESS=handover", "WEFT_EAGER=64"],
    &["WEFT_BARRIER=MPI-DS", "WEFT_ALLREDUCE=MPI-PE", "WEFT_CMA=0", FAULT],
];

struct Random<'a> {
    prefix: &'a Path,
    program: PathBuf,
}

impl<'a> Random<'a> {
    fn build(prefix: &'a Path) -> Result<Random<'a>, String> {
        let folder = crate::install::test_programs()?;
        Ok(Random { prefix, program: folder.join("weft-random") })
    }

    fn launch(&self, ranks: usize, settings: &[&str], args: &[String]) -> Result<Output, String> {
        let pairs = settings.iter().filter_map(|s| s.split_once('='));
        Command::new(self.prefix.join("bin/mpiexec"))
            .args(["--timeout", &LIMIT.to_string(), "-n", &ranks.to_string()])
            .arg(&self.program)
            .arg("--library")
            .arg(self.prefix.join("lib/libmpi_abi.so.1"))
            .args(args)
            .envs(pairs)
            .output()
            .map_err(|e| format!("mpiexec: {e}"))
    }

    /// Launches programs in the checking mode, which must report nothing. The programs take the functions from the process, where the
    /// layer of the checks comes first.
    fn checked(&self, ranks: usize, args: &[String]) -> Result<String, String> {
        let library = |name: &str| self.prefix.join("lib").join(name).display().to_string();
        let [check, library] = ["weft/libweft_check.so", "libmpi_abi.so.1"].map(library);
        let mut mpiexec = Command::new(self.prefix.join("bin/mpiexec"));
        mpiexec.args(["-check", "--timeout", &LIMIT.to_string(), "-n", &ranks.to_string()]);
        mpiexec.arg("env").arg(format!("LD_PRELOAD={check}:{library}")).arg(&self.program);
        let output = mpiexec.args(["--library", ""]).args(args).output();
        let output = output.map_err(|e| format!("mpiexec: {e}"))?;
        let out = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        match out.lines().find_map(|l| l.strip_prefix("correct: ")) {
            Some(told) if output.status.success() && !errors.contains("weft check:") => {
                Ok(told.to_owned())
            }
            _ => Err(format!(
                "random programs on {ranks} ranks in the checking mode: {}\n{out}{errors}",
                output.status
            )),
        }
    }

    /// Launches programs that must find no error. Returns the text after `correct: ` in their output.
    fn correct(&self, ranks: usize, settings: &[&str], args: &[String]) -> Result<String, String> {
        let output = self.launch(ranks, settings, args)?;
        let out = String::from_utf8_lossy(&output.stdout);
        match out.lines().find_map(|l| l.strip_prefix("correct: ")) {
            Some(told) if output.status.success() => Ok(told.to_owned()),
            _ => Err(format!(
                "random programs on {ranks} ranks, settings {settings:?}: {}\n{out}{}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            )),
        }
    }

    /// Corrupts a byte after a step, and tests that this is reported and ends the job.
    fn planted(&self) -> Result<(), String> {
        for (kind, seed) in PLANTED {
            let args = ["--plant", kind, "--seed", seed].map(str::to_owned);
            let output = self.launch(3, &[], &args)?;
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            let spoilt = text.lines().find_map(|l| l.strip_prefix("planted: "));
            let place =
                spoilt.and_then(|l| l.split(", ").nth(1)).and_then(|l| l.split(" of ").next());
            let found = place.is_some_and(|place| {
                let wrong = format!("({place} with its guards;");
                text.contains(&wrong) && text.contains("1 bytes differ")
            });
            if !found || output.status.code() != Some(1) {
                return Err(format!(
                    "a byte was to be spoilt and found ({kind}, seed {seed}): {}\n{text}",
                    output.status
                ));
            }
        }
        Ok(())
    }
}

/// Numbers of ranks of the programs that run in the checking mode, too.
const CHECKED_RANKS: [usize; 3] = [2, 3, 5];

/// Returns the arguments for programs of a seed.
fn of_seed(seed: usize) -> Vec<String> {
    let (seed, programs) = (seed.to_string(), PROGRAMS.to_string());
    ["--seed", &seed, "--programs", &programs].map(str::to_owned).to_vec()
}

/// Adds arguments to the launch of another test, so that it runs `programs` random programs.
pub(super) fn words(
    command: &mut Command,
    program: &Path,
    prefix: &Path,
    programs: u64,
    seed: &str,
) {
    command.arg(program).arg("--library").arg(prefix.join("lib/libmpi_abi.so.1"));
    command.args(["--seed", seed, "--programs", &programs.to_string()]);
}

/// Runs a thousand programs, always with the same seeds.
pub fn run(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let random = Random::build(prefix)?;
    random.planted()?;
    println!("ok   random programs: {} bytes spoilt on purpose were found", PLANTED.len());
    tally.passed += 1;
    let began = Instant::now();
    let mut programs = 0;
    for ranks in RANKS {
        for half in 0..2 {
            let settings = SETTINGS[(ranks * 2 + half) % SETTINGS.len()];
            let args = of_seed(100 * ranks + half);
            let told = random.correct(ranks, settings, &args)?;
            println!("ok   {told} {}", settings.join(" "));
            programs += PROGRAMS;
            tally.passed += 1;
        }
    }
    println!("ok   {programs} random programs ({:.1} s)", began.elapsed().as_secs_f64());
    for ranks in CHECKED_RANKS {
        let told = random.checked(ranks, &of_seed(100 * ranks))?;
        println!("ok   {told} in the checking mode");
        tally.passed += 1;
    }
    Ok(())
}

/// Runs programs with new seeds for `seconds` seconds, on all numbers of ranks, with all settings in turn.
pub fn soak(prefix: &Path, seconds: u64) -> Result<(), String> {
    let random = Random::build(prefix)?;
    let end = Instant::now() + Duration::from_secs(seconds);
    let first = SystemTime::UNIX_EPOCH.elapsed().map_or(1, |d| d.as_secs());
    for turn in 0.. {
        let left = end.saturating_duration_since(Instant::now()).as_secs();
        if left == 0 {
            break;
        }
        let ranks = RANKS.start() + turn as usize % RANKS.count();
        // Each number of ranks gets the next settings in the next round over the numbers of ranks.
        let settings = SETTINGS[(turn as usize / RANKS.count() + ranks) % SETTINGS.len()];
        let part = left.clamp(1, 20);
        let args = [
            "--seed".to_owned(),
            (first + turn).to_string(),
            "--seconds".to_owned(),
            part.to_string(),
        ];
        let told = random.correct(ranks, settings, &args)?;
        println!("ok   {told} {}", settings.join(" "));
        let told = random.checked(ranks, &args)?;
        println!("ok   {told} in the checking mode");
    }
    Ok(())
}
