//! Mutation test, which checks that the tests notice a function that does nothing. Each function of the standard in turn is
//! replaced by a function that only returns 0. At least one of the C programs that call the function must then fail.
//!
//! `LD_PRELOAD` puts the replacement before the library's function. The library itself does not call its functions by these names,
//! so everything else works as usual.

use super::c_programs::{ProgramPlan, Settings, folder, list, one, plan};
use super::tools::quiet;
use crate::root;
use clap::Args;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Functions to try, and options.
#[derive(Args)]
pub struct MutationArgs {
    /// Test only functions whose name begins with this text, as in MPI_Type_.
    names: Vec<String>,
    /// Use this installation, instead of building Weft.
    #[arg(long, value_name = "DIR")]
    weft: Option<PathBuf>,
    /// Number of programs that run at the same time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

/// Functions without an effect that a program could see, each with the reason.
const NO_EFFECT: &[(&str, &str)] =
    &[("MPI_Pcontrol", "what it does is left to profiling tools (MPI 5.0, section 15.2.4)")];

/// Programs that are not used: programs in which every call is refused, a long program, and a program that tests functions of
/// mpi.h.
const LEFT_OUT: &[&str] = &[
    "bad_input",
    "bad_input_fatal",
    "before_init",
    "after_finalize",
    "neighbors_mistakes",
    "fatal",
    "huge",
    "older",
];

/// A compiled program, and its run without a replaced function.
struct Program {
    path: PathBuf,
    plan: ProgramPlan,
    ranks: usize,
    settings: Settings,
    calls: BTreeSet<String>,
    takes: Duration,
}

impl Program {
    /// Returns true if the program fails when `library` is loaded before our library.
    fn fails(&self, prefix: &Path, library: &Path) -> bool {
        let mut settings = self.settings.clone();
        settings.push(("LD_PRELOAD".to_owned(), library.display().to_string()));
        one(prefix, &self.path, self.ranks, &self.plan, &settings).is_err()
    }
}

pub fn run(args: &MutationArgs) -> Result<(), String> {
    let prefix = args.weft.clone().map_or_else(crate::demo::install, Ok)?;
    let prefix = std::path::absolute(&prefix).map_err(|e| format!("{}: {e}", prefix.display()))?;
    let programs = programs(&prefix)?;
    let wanted = |name: &String| {
        (args.names.is_empty() || args.names.iter().any(|n| name.starts_with(n)))
            && NO_EFFECT.iter().all(|(exempt, _)| exempt != name)
    };
    let called: BTreeSet<&String> = programs.iter().flat_map(|p| &p.calls).collect();
    let names: Vec<String> = called.into_iter().filter(|n| wanted(n)).cloned().collect();
    println!("{} functions, {} programs", names.len(), programs.len());
    let (next, unnoticed, failure) = (AtomicUsize::new(0), Mutex::new(vec![]), Mutex::new(None));
    let work = || {
        while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
            match noticed(&prefix, &programs, name) {
                Ok(Some(by)) => println!("ok   {name}: {by}"),
                Ok(None) => {
                    println!("FAIL {name}: no program notices that it does nothing");
                    unnoticed.lock().expect("no panic").push(name.clone());
                }
                Err(error) => *failure.lock().expect("no panic") = Some(error),
            }
        }
    };
    std::thread::scope(|scope| (0..args.jobs.max(1)).for_each(|_| drop(scope.spawn(work))));
    if let Some(error) = failure.into_inner().expect("no panic") {
        return Err(error);
    }
    for (name, reason) in NO_EFFECT {
        println!("left out: {name}: {reason}");
    }
    match unnoticed.into_inner().expect("no panic") {
        none if none.is_empty() => Ok(()),
        names => Err(format!(
            "{} functions could do nothing, and no C program would fail: {}",
            names.len(),
            names.join(", ")
        )),
    }
}

/// Returns the name of a program that fails if this function does nothing. Tries the shortest programs first.
fn noticed(prefix: &Path, programs: &[Program], name: &str) -> Result<Option<String>, String> {
    let library = mutated(name)?;
    let by = programs
        .iter()
        .filter(|p| p.calls.contains(name))
        .find(|p| p.fails(prefix, &library))
        .map(|p| p.path.file_name().unwrap_or_default().to_string_lossy().into_owned());
    fs::remove_file(&library).map_err(|e| format!("{}: {e}", library.display()))?;
    Ok(by)
}

/// Builds a library with only this function, which does nothing.
fn mutated(name: &str) -> Result<PathBuf, String> {
    let out = folder()?;
    let (source, library) = (out.join(format!("{name}.c")), out.join(format!("{name}.so")));
    let text = format!("long {name}(void) {{ return 0; }}\n");
    fs::write(&source, text).map_err(|e| format!("{}: {e}", source.display()))?;
    quiet(Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source))?;
    fs::remove_file(&source).map_err(|e| format!("{}: {e}", source.display()))?;
    Ok(library)
}

/// Returns all programs, in ascending order of their time.
fn programs(prefix: &Path) -> Result<Vec<Program>, String> {
    let mut sources = list(&root().join("tests/c"), "c")?;
    let alone = list(&root().join("crates/abi/tests/c"), "c")?;
    sources.extend(alone.iter().cloned());
    let mut programs = Vec::new();
    for source in sources {
        let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if LEFT_OUT.contains(&name.as_str()) {
            continue;
        }
        let text = fs::read_to_string(&source).map_err(|e| format!("{}: {e}", source.display()))?;
        let mut plan = plan(&text)?;
        // Uses the largest number of ranks that the program asks for, up to four, because most communication is between several
        // ranks.
        let most = plan.ranks.iter().copied().filter(|&n| n <= 4).max();
        let ranks = if alone.contains(&source) { 1 } else { most.unwrap_or(plan.ranks[0]) };
        let path = folder()?.join(format!("mutated-{name}"));
        super::c_programs::compile(prefix, &source, &path)?;
        let began = Instant::now();
        // Some programs run only with the settings in their comments.
        let settings = plan.environments.first().cloned().unwrap_or_default();
        one(prefix, &path, ranks, &plan, &settings)
            .map_err(|e| format!("with nothing taken away:\n{e}"))?;
        let takes = began.elapsed();
        plan.timeout = (takes.as_secs() as u32 * 4).max(10);
        let calls = calls(&path)?;
        programs.push(Program { path, plan, ranks, settings, calls, takes });
    }
    programs.sort_by_key(|p| p.takes);
    Ok(programs)
}

/// Returns the functions of the standard that a program is linked to.
fn calls(program: &Path) -> Result<BTreeSet<String>, String> {
    let symbols = quiet(Command::new("nm").arg("-u").arg(program))?;
    let names = symbols.lines().filter_map(|l| l.trim().strip_prefix("U "));
    Ok(names.filter(|n| n.starts_with("MPI_")).map(str::to_owned).collect())
}
