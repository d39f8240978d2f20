//! C programs under our mpiexec: the examples and tests/c, each on the numbers of ranks that its first lines name.
//!
//! ```c
//! // ranks: 1 2 4        how often it runs, and on how many ranks (default: 2)
//! // args: -x 3          its arguments
//! // expect: 1           its exit code, if not 0
//! // says: text          a text that its output must contain
//! // once: text          a text that its output must contain once
//! // timeout: 300        seconds after which it is killed, if not 120
//! // alone: text         reason why no other program may run at the same time
//! // sim-args: 1         its arguments on simulated ranks, if others
//! // env: A=1 B=2 | C=3  variables of each run; an empty place means a run without variables
//! ```

use super::jobs::JobProgram;
use super::lanes::two_at_a_time;
use super::tally::Tally;
use super::tools::{quiet, step};
use crate::root;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Requirements in a program's comments.
pub(super) struct ProgramPlan {
    pub(super) ranks: Vec<usize>,
    pub(super) args: Vec<String>,
    /// Arguments on simulated ranks, if they differ.
    pub(super) sim_args: Option<Vec<String>>,
    pub(super) expect: i32,
    pub(super) says: Vec<String>,
    once: Vec<String>,
    pub(super) timeout: u32,
    alone: bool,
    pub(super) environments: Vec<Settings>,
}

/// Environment variables of one run.
pub(super) type Settings = Vec<(String, String)>;

impl ProgramPlan {
    fn new() -> ProgramPlan {
        let (args, sim_args) = (Vec::new(), None);
        let (says, once) = (Vec::new(), Vec::new());
        let environments = vec![Vec::new()];
        ProgramPlan {
            ranks: vec![2],
            args,
            sim_args,
            expect: 0,
            says,
            once,
            timeout: 120,
            alone: false,
            environments,
        }
    }
}

fn settings(text: &str) -> Result<Settings, String> {
    let setting = |word: &str| {
        let (key, value) = word.split_once('=').ok_or(format!("'{word}': not NAME=VALUE"))?;
        Ok((key.to_owned(), value.to_owned()))
    };
    text.split_whitespace().map(setting).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

pub(super) fn plan(source: &str) -> Result<ProgramPlan, String> {
    let mut plan = ProgramPlan::new();
    for line in source.lines() {
        let Some((key, value)) = line.strip_prefix("// ").and_then(|l| l.split_once(": ")) else {
            continue;
        };
        let value = value.trim();
        let bad = |_| format!("'{line}': not a number");
        match key {
            "ranks" => {
                plan.ranks = value
                    .split_whitespace()
                    .map(str::parse)
                    .collect::<Result<_, _>>()
                    .map_err(bad)?
            }
            "args" => plan.args = words(value),
            "sim-args" => plan.sim_args = Some(words(value)),
            "expect" => plan.expect = value.parse().map_err(bad)?,
            "says" => plan.says.push(value.to_owned()),
            "timeout" => plan.timeout = value.parse().map_err(bad)?,
            "alone" => plan.alone = true,
            "once" => plan.once.push(value.to_owned()),
            "env" => {
                plan.environments = value.split('|').map(settings).collect::<Result<_, _>>()?
            }
            _ => {}
        }
    }
    Ok(plan)
}

pub fn run(tally: &mut Tally) -> Result<(), String> {
    let prefix = crate::demo::install()?;
    programs(&prefix, &[], tally)?;
    examples(&prefix, &folder()?, tally)?;
    super::abuse::run(&prefix, tally)?;
    super::random::run(&prefix, tally)
}

/// Runs the tests that depend on chance for longer: `cargo xtask soak`.
pub fn soak(prefix: &Path, times: usize) -> Result<(), String> {
    let mut tally = Tally::default();
    programs(prefix, &[], &mut tally)?;
    other_machines(prefix, &mut tally)?;
    let program = JobProgram { path: &folder()?.join("halo"), arguments: &[] };
    super::jobs::kills(prefix, program, times)?;
    println!("ok   {times} jobs with a rank killed");
    let halo = ProgramPlan { args: vec!["200000".to_owned()], ..ProgramPlan::new() };
    one(prefix, &folder()?.join("halo"), 4, &halo, &[])?;
    println!("ok   200000 steps of a halo exchange");
    let whole =
        ProgramPlan { says: vec!["correct".to_owned()], timeout: 900, ..ProgramPlan::new() };
    let output = one(prefix, &folder()?.join("huge"), 2, &whole, &[])?;
    match output.lines().find(|line| line.starts_with("NOT RUN: ")) {
        Some(reason) => println!("{reason}"),
        None => println!("ok   messages and collective calls of more than 2^31 bytes"),
    }
    let many = ProgramPlan { args: vec!["all".to_owned()], timeout: 900, ..ProgramPlan::new() };
    let output = one(prefix, &folder()?.join("many"), 1024, &many, &[])?;
    print!("{output}");
    println!("ok   1024 ranks on this machine");
    for name in ["semantics", "collectives", "threads", "children"] {
        for _ in 0..times / 10 {
            one(prefix, &folder()?.join(name), 3, &ProgramPlan::new(), &[])?;
        }
        println!("ok   {name}, {} times", times / 10);
    }
    Ok(())
}

/// Returns the folder of the test programs.
pub(super) fn folder() -> Result<PathBuf, String> {
    let out = root().join("target/test-programs");
    fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    Ok(out)
}

/// Runs the programs of tests/c with the choices that the library makes on machines with other costs of copies.
pub fn other_machines(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let mut files = list(&root().join("tests/copy-models"), "toml")?;
    if files.is_empty() {
        return Err("no model in tests/copy-models".to_owned());
    }
    files.sort();
    let files = files.iter().map(|file| file.display().to_string());
    for model in std::iter::once("generic".to_owned()).chain(files) {
        println!("\n-- copies cost what this says: {model}");
        programs(prefix, &[("WEFT_COPY_MODEL".to_owned(), model)], tally)?;
    }
    Ok(())
}

/// A program of tests/c.
pub(super) struct CSource {
    pub(super) name: String,
    path: PathBuf,
    pub(super) program: PathBuf,
    pub(super) plan: ProgramPlan,
}

impl CSource {
    /// Returns the runs that the program's comments ask for. The program's own settings override `base`.
    fn runs(&self, base: &[(String, String)]) -> impl Iterator<Item = Run<'_>> {
        let with = move |own: &Settings| [base, own.as_slice()].concat();
        let settings = self.plan.environments.iter().map(with);
        settings.flat_map(move |settings| {
            let run = move |&ranks: &usize| Run { source: self, ranks, settings: settings.clone() };
            self.plan.ranks.iter().map(run)
        })
    }
}

/// One run of a [`CSource`].
struct Run<'a> {
    source: &'a CSource,
    ranks: usize,
    settings: Settings,
}

impl Run<'_> {
    /// Runs the program. Returns the reasons why parts of the program could not run.
    fn run(&self, prefix: &Path) -> Result<Vec<String>, String> {
        let CSource { name, program, plan, .. } = self.source;
        let began = Instant::now();
        let output = one(prefix, program, self.ranks, plan, &self.settings)?;
        let (ranks, seconds) = (self.ranks, began.elapsed().as_secs_f64());
        let with: String = self.settings.iter().map(|(k, v)| format!(", {k}={v}")).collect();
        println!("ok   {name} on {ranks} ranks{with} ({seconds:.1} s)");
        let reasons = output.lines().filter_map(|line| line.strip_prefix("NOT RUN: "));
        Ok(reasons.map(str::to_owned).collect())
    }

    /// Returns true if another run can run at the same time.
    fn is_small(&self) -> bool {
        self.ranks <= 2 && !self.source.plan.alone
    }
}

/// Returns the programs of tests/c, in the order of their names.
pub(super) fn sources() -> Result<Vec<CSource>, String> {
    let mut paths = list(&root().join("tests/c"), "c")?;
    paths.sort();
    let out = folder()?;
    let source = |path: PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(CSource { program: out.join(&name), plan: plan(&text)?, name, path })
    };
    paths.into_iter().map(source).collect()
}

/// Runs the programs of tests/c as their comments require. The comments may override the settings in `base`. Two small runs of
/// different programs run at the same time. Runs of the same program run one after the other.
fn programs(prefix: &Path, base: &[(String, String)], tally: &mut Tally) -> Result<(), String> {
    let sources = sources()?;
    if sources.is_empty() {
        return Err("no program in tests/c".to_owned());
    }
    two_at_a_time(&sources, |source| compile(prefix, &source.path, &source.program))
        .into_iter()
        .collect::<Result<(), String>>()?;
    let all = sources.iter().map(|source| source.runs(base).partition(Run::is_small));
    let (small, large): (Vec<Vec<Run>>, Vec<Vec<Run>>) = all.unzip();
    let reported = |run: &Run| run.run(prefix).inspect_err(|error| println!("FAILED {error}"));
    let of_program = |runs: &Vec<Run>| runs.iter().map(reported).collect::<Vec<_>>();
    let mut results = two_at_a_time(&small, of_program).concat();
    results.extend(large.iter().flat_map(of_program));
    tally.passed += results.iter().filter(|result| result.is_ok()).count();
    let mut failed = Vec::new();
    for result in results {
        match result {
            Ok(reasons) => tally.not_run.extend(reasons),
            Err(error) => failed.push(error),
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

pub(super) fn compile(prefix: &Path, source: &Path, program: &Path) -> Result<(), String> {
    let mut command = Command::new(prefix.join("bin/mpicc"));
    command.args(["-O1", "-g", "-Wall", "-Werror"]).arg(source).arg("-o").arg(program);
    quiet(command.args(["-lm", "-lpthread"])).map(drop)
}

/// Returns the files of a folder whose names end in `.kind`.
pub(super) fn list(folder: &Path, kind: &str) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let paths = entries.flatten().map(|e| e.path());
    Ok(paths.filter(|p| p.extension().is_some_and(|e| e == kind)).collect())
}

/// Runs a program once. Returns its output if it ended as its plan requires.
pub(super) fn one(
    prefix: &Path,
    program: &Path,
    ranks: usize,
    plan: &ProgramPlan,
    settings: &[(String, String)],
) -> Result<String, String> {
    // A program may start other programs by name. It must find the programs of the installation.
    let mut path = prefix.join("bin").into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let output = Command::new(prefix.join("bin/mpiexec"))
        .args(["--timeout", &plan.timeout.to_string(), "-n", &ranks.to_string()])
        .arg(program)
        .args(&plan.args)
        .env("PATH", path)
        .envs(settings.iter().map(|(k, v)| (k, v)))
        .output()
        .map_err(|e| format!("mpiexec: {e}"))?;
    let all = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let who = format!("{} on {ranks} ranks, settings {settings:?}", program.display());
    if output.status.code() != Some(plan.expect) {
        return Err(format!("{who}: {}, expected code {}\n{all}", output.status, plan.expect));
    }
    if let Some(text) = plan.says.iter().find(|s| !all.contains(s.as_str())) {
        return Err(format!("{who} does not say '{text}':\n{all}"));
    }
    if let Some(text) = plan.once.iter().find(|s| all.matches(s.as_str()).count() != 1) {
        return Err(format!("{who} does not say '{text}' once:\n{all}"));
    }
    Ok(all)
}

/// Runs the examples, which check their own answers.
fn examples(prefix: &Path, out: &Path, tally: &mut Tally) -> Result<(), String> {
    let folder = root().join("examples");
    let matrix = folder.join("poisson32.mtx").display().to_string();
    for (name, args) in [("heat", vec![]), ("cg", vec!["--matrix", matrix.as_str()])] {
        let program = out.join(name);
        step(
            Command::new(prefix.join("bin/mpicc"))
                .args(["-O2", "-Wall", "-Werror"])
                .arg(folder.join(name).with_extension("c"))
                .arg("-o")
                .arg(&program)
                .arg("-lm"),
        )?;
        for ranks in [1, 2, 4, 5] {
            let args = args.iter().map(|a| (*a).to_owned()).collect();
            one(prefix, &program, ranks, &ProgramPlan { args, ..ProgramPlan::new() }, &[])?;
            println!("ok   examples/{name} on {ranks} ranks");
            tally.passed += 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_all_functions_are_tried() {
        let program = fs::read_to_string(root().join("tests/c/strings.c")).unwrap();
        let parameters = root().join("crates/abi/data/parameters.csv");
        let parameters = fs::read_to_string(parameters).unwrap();
        let strings = parameters.lines().filter_map(|line| {
            let mut fields = line.split(',');
            let (function, _, kind, direction) =
                (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
            let is_string = kind.starts_with("STRING") && kind != "STRING_LENGTH";
            (is_string && direction == "in").then_some(function)
        });
        let all: std::collections::BTreeSet<&str> = strings.collect();
        assert!(all.len() > 30, "{all:?}");
        let tried = |name: &&&str| program.contains(&format!("{name}("));
        let missing: Vec<_> = all.iter().filter(|name| !tried(name)).collect();
        assert!(missing.is_empty(), "{missing:?}: not in tests/c/strings.c");
    }

    /// Useful during work on functions of C: `cargo test -p xtask c_programs_run -- --ignored --nocapture`.
    #[test]
    #[ignore = "a part of cargo xtask test --only programs, which installs the library"]
    fn c_programs_run() {
        let mut tally = Tally::default();
        programs(&crate::demo::prefix(), &[], &mut tally).unwrap();
        assert!(tally.passed > 0);
    }

    #[test]
    fn comments_are_understood() {
        let plan = plan("// ranks: 1 4\n// args: -x 3\n// expect: 7\n// says: hello there\nint x;")
            .unwrap();
        assert_eq!(plan.timeout, 120);
        assert_eq!((plan.ranks, plan.args), (vec![1, 4], vec!["-x".to_owned(), "3".to_owned()]));
        assert_eq!((plan.expect, plan.says), (7, vec!["hello there".to_owned()]));
        assert_eq!(plan.environments, vec![Vec::new()]);
        assert!(!plan.alone);
        let plan = super::plan("// env: | A=1 B=2,c=3\n// once: x\n// timeout: 9\n// alone: x\n");
        let plan = plan.unwrap();
        assert_eq!((plan.timeout, plan.alone), (9, true));
        let pair = |k: &str, v: &str| (k.to_owned(), v.to_owned());
        assert_eq!(plan.environments, vec![vec![], vec![pair("A", "1"), pair("B", "2,c=3")]]);
        assert_eq!(plan.once, vec!["x".to_owned()]);
        assert!(super::plan("// env: A\n").is_err());
        assert!(super::plan("// ranks: many\n").is_err());
    }
}
