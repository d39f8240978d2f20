//! `cargo xtask bench`: runs Weft and its peers in turn with the same programs, and compares them.

#![warn(missing_docs)]

mod args;
mod cable;
mod cases;
mod checking;
mod cliffs;
mod cold;
mod distance;
mod files;
mod hosts;
mod job;
mod library;
mod library_kind;
mod limits;
mod machine;
mod machine_run;
mod output;
mod plan;
mod plot;
mod prediction;
mod ratios;
mod report;
mod results;
mod rows;
mod run;
mod table;
mod variants;

pub use args::BenchArgs;
use cable::Cable;
use hosts::Hosts;
use indicatif::{ProgressBar, ProgressStyle};
use job::BenchJob;
use library::BenchLibrary;
use library_kind::LibraryKind;
use plan::BenchCase;
use results::Results;
use run::LineDistance;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum load at which a machine counts as quiet.
const QUIET: f64 = 0.5;

/// Number of failed runs after which a library is skipped in a case.
const PATIENCE: usize = 2;

/// Runs the requested benchmarks and reports the results. If the command line does not name an installation of Weft, `installed`
/// returns one: it builds Weft or, if its argument is `true`, only returns the place of an earlier build.
///
/// # Errors
/// A text with the reason for the failure.
pub fn run(
    mut args: BenchArgs,
    installed: impl Fn(bool) -> Result<PathBuf, String>,
) -> Result<(), String> {
    if args.quick {
        args.rounds = Some(args.rounds().min(3) as u32);
        args.seconds = args.seconds.min(0.03);
    }
    if args.cable.is_some() && args.benchmarks.is_empty() {
        args.benchmarks = ["overlap_receiver", "overlap_sender"].map(str::to_owned).to_vec();
    }
    if args.progress && args.benchmarks.is_empty() {
        args.benchmarks = plan::PROGRESS.map(str::to_owned).to_vec();
    }
    let out = args.out.clone().unwrap_or_else(|| root().join("target/bench"));
    if args.inside.is_none() {
        std::fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    }
    if args.check {
        args.variant.push(checking::variant());
    }
    if args.prediction && args.rounds.is_none() {
        args.rounds = Some(prediction::ROUNDS);
    }
    if args.cliffs {
        let weft = weft(&args, &installed)?;
        return cliffs::run(args, out, weft);
    }
    let mut cases = cases::requested(&args)?;
    cases.retain(|case| {
        let asked = args.ranks.is_empty() || args.ranks.contains(&case.ranks);
        asked && !(args.no_busy && case.loaded)
    });
    if args.cable.is_some() {
        cases.retain(|case| case.ranks == 2 && !case.loaded);
    }
    for case in &mut cases {
        if let Some(sizes) = &args.sizes {
            case.sizes.clone_from(sizes);
        }
    }
    if cases.is_empty() {
        return Err("no case is left: no benchmark runs on so many ranks".to_owned());
    }
    let libraries = libraries(&args, &installed)?;
    let mut session = Session::new(cases, libraries, out, args);
    match (&session.args.cable, session.args.inside.take()) {
        (Some(_), None) => {
            session.build()?;
            let repetition = session.args.repetition();
            return machine_run::outside(repetition, &session.libraries, &session.out);
        }
        (Some(rate), Some(built)) => {
            session.cable = Some(Cable::shape(rate)?);
            session.out = built;
        }
        (None, _) if !session.args.on_hosts => session.build()?,
        (None, _) => session.hosts = Some(Hosts::find()?),
    }
    if let (Some(hosts), None) = (session.args.hosts, &session.hosts) {
        return hosts::outside(&session.args, hosts, session.runs());
    }
    if session.args.prediction {
        prediction::fit(&mut session)?;
    }
    session.measure()?;
    session.report()
}

/// Returns the libraries: Weft first, then its peers.
fn libraries(
    args: &BenchArgs,
    installed: &impl Fn(bool) -> Result<PathBuf, String>,
) -> Result<Vec<BenchLibrary>, String> {
    if let Some(folder) = &args.make_peers {
        library::make_peers(folder)?;
    }
    let without_peers = args.check || args.prediction;
    let peers = match without_peers {
        true => Vec::new(),
        false => library::find_peers(&args.peer, args.make_peers.as_deref())?,
    };
    let mut libraries = Vec::new();
    if !args.no_weft {
        libraries.push(weft(args, installed)?);
    }
    libraries.extend(peers);
    if libraries.len() < 2 && !without_peers {
        eprintln!("no other MPI found: nothing to compare with; try --make-peers target/peers");
    }
    if libraries.is_empty() {
        return Err("nothing to run".to_owned());
    }
    for library in &libraries {
        eprintln!("{:>10}  {}  ({})", library.name, library.prefix.display(), library.version);
    }
    if args.progress {
        libraries = variants::progress(&libraries);
    }
    if args.prediction {
        libraries.push(prediction::column(&libraries[0]));
    }
    variants::add(&mut libraries, &args.variant)?;
    eprint!("{}", variants::heading(&libraries, args.progress));
    Ok(libraries)
}

fn weft(
    args: &BenchArgs,
    installed: &impl Fn(bool) -> Result<PathBuf, String>,
) -> Result<BenchLibrary, String> {
    let prefix = match &args.weft {
        Some(prefix) => prefix.clone(),
        None => installed(args.inside.is_some())?,
    };
    let weft = BenchLibrary::open("weft", &prefix)?;
    Ok(BenchLibrary { kind: LibraryKind::Weft, ..weft })
}

struct Session {
    cases: Vec<BenchCase>,
    libraries: Vec<BenchLibrary>,
    /// Folder of the programs.
    out: PathBuf,
    args: BenchArgs,
    /// Connection between the ranks, unless it is this machine's memory.
    cable: Option<Cable>,
    hosts: Option<Hosts>,
    results: Results,
    /// All runs, for results.json.
    raw: Vec<Value>,
    /// Load of the machine before the session began.
    loaded_by: f64,
}

impl Session {
    fn new(
        cases: Vec<BenchCase>,
        libraries: Vec<BenchLibrary>,
        out: PathBuf,
        args: BenchArgs,
    ) -> Session {
        let results = Results::new(args.quickest);
        let (raw, loaded_by) = (Vec::new(), machine::load());
        let (cable, hosts) = (None, None);
        Session { cases, libraries, out, args, cable, hosts, results, raw, loaded_by }
    }

    /// Returns the number of runs of all libraries together.
    fn runs(&self) -> usize {
        self.args.rounds() * self.cases.len() * self.libraries.len()
    }

    /// Returns true if all ranks are on this machine, with nothing between them.
    fn here(&self) -> bool {
        self.cable.is_none() && self.hosts.is_none()
    }

    /// Returns the number of bytes that the connection between the ranks has carried, if there is one.
    fn carried(&self) -> Result<Option<u64>, String> {
        match (&self.cable, &self.hosts) {
            (Some(cable), _) => cable.carried().map(Some),
            (_, Some(hosts)) => hosts.carried().map(Some),
            (None, None) => Ok(None),
        }
    }

    fn program(&self, library: &BenchLibrary, name: &str) -> PathBuf {
        self.out.join(&library.folder).join(name)
    }

    fn limit(&self) -> PathBuf {
        self.out.join("limit")
    }

    /// Builds the programs. A program that does not compile with a library counts as failed there. The other programs are still
    /// run.
    fn build(&mut self) -> Result<(), String> {
        let source = |name: &str| root().join("bench").join(name).with_extension("c");
        for name in ["limit", "busy"] {
            library::compile_plain(&source(name), &self.out.join(name))?;
        }
        // The variants of a library share its programs.
        let mut built: HashMap<PathBuf, Result<(), String>> = HashMap::new();
        for (place, library) in self.libraries.iter().enumerate() {
            let folder = self.out.join(&library.folder);
            std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
            for (number, case) in self.cases.iter().enumerate() {
                let program = self.program(library, case.program);
                let outcome = built.entry(program.clone()).or_insert_with(|| {
                    let _ = std::fs::remove_file(&program); // one of an earlier session
                    library.compile(&source(case.program), &program)
                });
                if let Err(error) = outcome {
                    self.results.failures.push((number, place, error.clone()));
                }
            }
        }
        if let Some(weft) = self.libraries.iter().find(|l| l.kind == LibraryKind::Weft)
            && self.args.cable.is_some()
        {
            weft.compile(&source("latency"), &self.program(weft, "latency"))?;
        }
        Ok(())
    }

    /// Measures round by round, case by case, library by library, so that any drift affects all alike.
    fn measure(&mut self) -> Result<(), String> {
        if self.loaded_by > QUIET {
            eprintln!("this machine is not quiet: load {:.1}", self.loaded_by);
        }
        let rounds = self.args.rounds();
        let count = self.runs();
        let style = "{wide_bar} {pos}/{len} runs, {elapsed} gone, {eta} left  {msg:36}";
        let style = ProgressStyle::with_template(style).map_err(|e| e.to_string())?;
        let bar = ProgressBar::new(count as u64).with_style(style);
        bar.enable_steady_tick(Duration::from_millis(500));
        for round in 0..rounds {
            if self.here() {
                self.measure_limits(&bar);
            }
            for case in 0..self.cases.len() {
                for turn in 0..self.libraries.len() {
                    // The library that goes first changes, so that none always follows the same other library.
                    let library = (turn + round) % self.libraries.len();
                    let name = &self.libraries[library].name;
                    bar.set_message(format!("{name}: {}", self.cases[case].title()));
                    if self.cable.is_some() {
                        let (done, title) = (bar.position() + 1, self.cases[case].title());
                        eprintln!("run {done} of {count}: {name}: {title}");
                    }
                    let program = self.cases[case].program;
                    let built = self.program(&self.libraries[library], program).exists();
                    if built && self.results.failed(case, library) < PATIENCE {
                        self.once(round, case, library, &bar)?;
                    }
                    bar.inc(1);
                }
            }
        }
        bar.finish_and_clear();
        Ok(())
    }

    fn measure_limits(&mut self, bar: &ProgressBar) {
        bar.set_message("the machine's limit");
        let mut limit = BenchJob::new(&self.limit());
        limit.args(["--seconds", &self.args.seconds.to_string()]);
        let told = limit.run(Duration::from_secs(self.args.timeout));
        if let Err(error) = told.and_then(|output| self.results.add_limits(&output)) {
            bar.println(format!("limit: {error}"));
        }
    }

    /// Returns the present distance of the processors (us), or `None` if ranks do not share memory or a processor.
    fn apart(&self) -> Option<f64> {
        if !self.here() {
            return None;
        }
        let mut probe = BenchJob::new(&self.limit());
        probe.args(["--distance", "--seconds", "0.002"]);
        let told = probe.run(Duration::from_secs(self.args.timeout)).ok()?;
        let line: results::LimitLine = serde_json::from_str(told.trim()).ok()?;
        Some(line.best)
    }

    fn once(
        &mut self,
        round: usize,
        case: usize,
        library: usize,
        bar: &ProgressBar,
    ) -> Result<(), String> {
        let (what, who) = (&self.cases[case], &self.libraries[library]);
        let program = self.program(who, what.program);
        let hosts = self.hosts.as_ref().map_or(1, Hosts::count);
        let mut job = match (&who.machine, &self.hosts) {
            (Some(machine), _) => prediction::launch(who, machine, &program, what, hosts),
            (None, Some(hosts)) => hosts.launch(who, &program, what),
            (None, None) => {
                who.launch(what.ranks, &program, &what.arguments(), self.cable.as_ref())
            }
        };
        let command = job.text();
        let threads = library::threads(Path::new(what.program));
        let mut record = json!({ "round": round, "case": what.title(), "library": who.name,
                                 "command": command, "threads": threads });
        let near = self.apart();
        let mut busy = Vec::new();
        if what.loaded {
            for processor in machine::processors() {
                let mut foreign = BenchJob::new(&self.out.join("busy"));
                foreign.args(["--cpu", &processor.to_string()]);
                foreign.args(["--seconds", &(self.args.timeout + 30).to_string()]);
                busy.push(foreign.start()?);
            }
        }
        let before = self.carried()?;
        let mut told = job.run(Duration::from_secs(self.args.timeout));
        if let Some(carried) = before.zip(self.carried()?).map(|(before, after)| after - before) {
            record["carried"] = json!(carried);
            let enough = if self.cable.is_some() { cable::LEAST } else { hosts::LEAST };
            if carried < enough && told.is_ok() && who.machine.is_none() {
                told = Err(format!("the cable carried {carried} bytes: it went another way"));
            }
        }
        for mut child in busy {
            // The time limit of the busy loop may have ended it already.
            let _ = child.kill();
            let _ = child.wait();
        }
        let distance = near.zip(self.apart()).map(|(before, after)| LineDistance { before, after });
        record["apart"] = distance.map_or(Value::Null, LineDistance::describe);
        let told = told.and_then(|output| {
            record["output"] =
                output.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok()).collect();
            self.results.add(case, library, distance, &output)
        });
        if let Err(error) = told {
            bar.println(format!("{}: {} failed: {error}", who.name, what.title()));
            record["error"] = json!(error);
            self.results.failures.push((case, library, error));
        }
        self.raw.push(record);
        Ok(())
    }
}

/// Returns the root of the workspace.
fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).expect("this crate lies in crates/").to_owned()
}
