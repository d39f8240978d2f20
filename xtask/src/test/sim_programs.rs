//! Unmodified programs in virtual time (`weft sim run`): the programs of tests/c, which check their own results; programs of
//! tests/sim, about time itself; the examples.

use super::c_programs::{CSource, compile, folder, sources};
use super::lanes::two_at_a_time;
use super::tally::Tally;
use crate::root;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Maximum number of ranks of a program of tests/c.
const RANKS: usize = 4;

/// Exit code after a deadlock.
const DEADLOCK: i32 = 35;

pub fn run(tally: &mut Tally) -> Result<(), String> {
    let prefix = crate::demo::install()?;
    all_programs(&prefix, tally)?;
    own_programs(&prefix, tally)?;
    examples(&prefix, tally)
}

/// A run of a program in virtual time.
pub(super) struct SimRun<'a> {
    pub machine: &'a str,
    pub ranks: usize,
    pub nodes: usize,
    pub program: &'a Path,
    pub args: &'a [String],
    /// Further options of `weft sim run`.
    pub options: &'a [&'a str],
    pub settings: &'a [(String, String)],
}

impl<'a> SimRun<'a> {
    /// Returns a run on two ranks, each on a node of its own.
    pub fn on(machine: &'a str, program: &'a Path, args: &'a [String]) -> SimRun<'a> {
        SimRun { machine, ranks: 2, nodes: 2, program, args, options: &[], settings: &[] }
    }

    fn command(&self, prefix: &Path) -> Command {
        let mut command = Command::new("timeout");
        command.arg("120").arg(prefix.join("bin/weft"));
        command.args(["sim", "run", "--quiet", "--compute", "none", "--machine", self.machine]);
        command.args(["--ranks", &self.ranks.to_string(), "--nodes", &self.nodes.to_string()]);
        command.args(self.options).arg(self.program).args(self.args);
        command.envs(self.settings.iter().map(|(name, value)| (name, value)));
        command
    }

    fn output(&self, prefix: &Path) -> Result<Output, String> {
        self.command(prefix).output().map_err(|e| format!("timeout: {e}"))
    }

    /// Runs the program, which must end with `code` and print `says`. Returns what it printed, and the report.
    pub fn expect(&self, prefix: &Path, code: i32, says: &[String]) -> Result<String, String> {
        let output = self.output(prefix)?;
        let all = text(&output.stdout) + &text(&output.stderr);
        let who = format!("{} on {} simulated ranks", self.program.display(), self.ranks);
        if output.status.code() != Some(code) {
            return Err(format!("{who}: {}, expected code {code}\n{all}", output.status));
        }
        if all.contains("WRONG TIMES") {
            return Err(format!("{who}: work was charged that a rank did not do\n{all}"));
        }
        match says.iter().find(|text| !all.contains(text.as_str())) {
            Some(text) => Err(format!("{who} does not print '{text}':\n{all}")),
            None => Ok(all),
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the programs that cannot run in virtual time, each with the reason.
fn excluded() -> Result<BTreeMap<String, String>, String> {
    let path = root().join("tests/sim/excluded.csv");
    let table = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let row = |line: &str| {
        let (name, reason) = line.split_once(',').ok_or(format!("'{line}': no reason"))?;
        Ok((name.to_owned(), reason.to_owned()))
    };
    table.lines().skip(1).map(row).collect()
}

/// Runs the programs of tests/c, which the stage has built.
fn all_programs(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let excluded = excluded()?;
    let all = sources()?;
    if let Some(name) = excluded.keys().find(|name| !all.iter().any(|s| s.name == **name)) {
        return Err(format!("tests/sim/excluded.csv: there is no program {name}"));
    }
    let is_wanted = |source: &&CSource| !excluded.contains_key(&source.name);
    let wanted: Vec<&CSource> = all.iter().filter(is_wanted).collect();
    let results = two_at_a_time(&wanted, |source| {
        let ranks = source.plan.ranks.iter().copied().filter(|&ranks| ranks <= RANKS).max();
        let ranks = ranks.unwrap_or(2);
        let nodes = ranks.div_ceil(2);
        let args = source.plan.sim_args.as_ref().unwrap_or(&source.plan.args);
        let program = source.program.as_path();
        let settings = source.plan.environments.first().map_or(&[][..], Vec::as_slice);
        let run = SimRun { ranks, nodes, settings, ..SimRun::on("ndr", program, args) };
        run.expect(prefix, source.plan.expect, &source.plan.says)
            .map(|_| println!("ok   {} on {ranks} simulated ranks", source.name))
            .inspect_err(|error| println!("FAILED {error}"))
    });
    tally.passed += results.iter().filter(|result| result.is_ok()).count();
    let failed: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// Builds a program of tests/sim.
fn built(prefix: &Path, name: &str) -> Result<PathBuf, String> {
    let program = folder()?.join(format!("sim-{name}"));
    compile(prefix, &root().join("tests/sim").join(name).with_extension("c"), &program)?;
    Ok(program)
}

/// Runs the programs of tests/sim.
fn own_programs(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let run =
        |program, ranks, args| SimRun { ranks, nodes: ranks, ..SimRun::on("ndr", program, args) };
    let deadlock = built(prefix, "deadlock")?;
    let cycle = ["these wait for each other: 0 -> 1 -> 0", "deadlock at"].map(str::to_owned);
    run(&deadlock, 2, &[]).expect(prefix, DEADLOCK, &cycle)?;
    println!("ok   a deadlock in virtual time, with its cycle");
    let correct = ["correct".to_owned()];
    let looks = built(prefix, "looks")?;
    run(&looks, 2, &[]).expect(prefix, 0, &correct)?;
    println!("ok   loops that look without waiting");
    let cancels = built(prefix, "cancels")?;
    run(&cancels, 2, &[]).expect(prefix, 0, &correct)?;
    println!("ok   cancelled sends and receives, to oneself and to others");
    let clocks = built(prefix, "clocks")?;
    let followed = SimRun { options: &["--clocks"], ..run(&clocks, 2, &[]) };
    followed.expect(prefix, 0, &correct)?;
    println!("ok   the system's clocks in virtual time");
    like_the_pattern(prefix)?;
    same_bits(prefix)?;
    fitted(prefix)?;
    phantoms(prefix)?;
    files(prefix)?;
    super::sim_choices::run(prefix)?;
    tally.passed += 10;
    Ok(())
}

/// Compares a run whose long payloads are not copied with a run in which they are: times are the same.
fn phantoms(prefix: &Path) -> Result<(), String> {
    let program = built(prefix, "long_messages")?;
    let outputs = [&[][..], &["--phantom"]].map(|options| {
        let run = SimRun { ranks: 4, options, ..SimRun::on("ndr", &program, &[]) };
        run.output(prefix)
    });
    let [copied, phantom] = outputs;
    let (copied, phantom) = (copied?, phantom?);
    let times = [&copied, &phantom].map(|output| {
        let text = text(&output.stdout);
        text.split_once(',').map(|(time, _)| time.to_owned())
    });
    let is_right = text(&copied.stdout).contains("correct");
    let is_spared = text(&phantom.stderr).contains("of them not copied");
    if times[0].is_none() || times[0] != times[1] || !is_right || !is_spared {
        return Err(format!("long_messages: {copied:?}, and with --phantom {phantom:?}"));
    }
    println!("ok   the same times without copies of long payloads");
    Ok(())
}

/// Runs a program whose accesses to a file take the time of the machine's file system.
fn files(prefix: &Path) -> Result<(), String> {
    let program = built(prefix, "files")?;
    let ndr = root().join("machines/ndr.toml");
    let ndr = std::fs::read_to_string(&ndr).map_err(|e| format!("{}: {e}", ndr.display()))?;
    let machine = folder()?.join("files.toml");
    let table = "[file]\nlatency = 50\nbandwidth = 1000\nshared = 1500\n";
    // The last table of the machine file is its evidence, which knows no such numbers.
    let (numbers, _) = ndr.split_once("[evidence]").ok_or("ndr.toml has no evidence")?;
    std::fs::write(&machine, format!("{numbers}{table}"))
        .map_err(|e| format!("{}: {e}", machine.display()))?;
    let args = [folder()?.join("sim-files.data").display().to_string()];
    let machine = machine.display().to_string();
    let run = SimRun { ranks: 4, ..SimRun::on(&machine, &program, &args) };
    // A million bytes take 1000 us of a node, and 667 us of the file system. The ranks that come last have left the barrier later.
    let says = ["alone 1050 node 2050 nodes 1382 all 2716 read 1050", "correct"];
    run.expect(prefix, 0, &says.map(str::to_owned))?;
    println!("ok   files in virtual time");
    Ok(())
}

/// Compares a ping-pong in C with the pattern, which is a program of the simulator itself.
fn like_the_pattern(prefix: &Path) -> Result<(), String> {
    let sizes = ["8", "256", "8192", "262144"].map(str::to_owned);
    let program = built(prefix, "ping_pong")?;
    for machine in ["ndr", "fence", "rendezvous", "ethernet"] {
        let run = SimRun::on(machine, &program, &sizes);
        let output = run.output(prefix)?;
        let csv = folder()?.join("sim-ping-pong.csv");
        let mut pattern = Command::new(prefix.join("bin/weft"));
        pattern.args(["sim", "ping-pong", "--ranks", "2", "--machine", machine]);
        // Ranks of the program are on nodes of their own.
        pattern.args(["--set", "ranks_per_node=1", "--bytes", &sizes.join(","), "--csv"]).arg(&csv);
        super::tools::quiet(&mut pattern)?;
        let table = std::fs::read_to_string(&csv).map_err(|e| e.to_string())?;
        let of_program = figures(&text(&output.stdout));
        for size in &sizes {
            let of_pattern = table.lines().find_map(|row| mean_of(row, size));
            let (Some(c), Some(rust)) = (of_program.get(size), of_pattern) else {
                return Err(format!(
                    "{machine}, {size} bytes: no figure in\n{table}\n{}",
                    text(&output.stdout)
                ));
            };
            if (c / rust - 1.0).abs() > 0.02 {
                return Err(format!(
                    "{machine}, {size} bytes: {c} us in C, {rust} us as a pattern"
                ));
            }
        }
        println!("ok   a ping-pong in C on {machine}, as the pattern");
    }
    Ok(())
}

/// Returns the mean in a row of a pattern's table, if the row is that of `size` bytes.
pub(super) fn mean_of(row: &str, size: &str) -> Option<f64> {
    let fields: Vec<&str> = row.split(',').collect();
    // The row ends with the size, fan-in, repetitions, unit, mean, minimum and maximum.
    let mut last = fields.iter().rev();
    let (mean, bytes) = (last.nth(2)?, last.nth(3)?);
    if *bytes == size { mean.parse().ok() } else { None }
}

/// Reads rows of a program that prints a size and a figure.
fn figures(table: &str) -> BTreeMap<String, f64> {
    let row = |line: &str| {
        let (size, figure) = line.split_once(' ')?;
        Some((size.parse::<usize>().ok()?.to_string(), figure.trim().parse().ok()?))
    };
    table.lines().filter_map(row).collect()
}

/// Returns the length in bytes and the measured time of a message, from a line of a fitted machine file.
fn transfer(line: &str) -> Option<(usize, f64)> {
    let (entry, time) = line.split_once("# a message: ")?;
    let bytes = entry.split_once("bytes = ")?.1.split_once(',')?.0;
    Some((bytes.parse().ok()?, time.strip_suffix(" us")?.parse().ok()?))
}

/// Fits a machine file to this host. Messages on the simulated machine must take as long as the file says that they were measured.
fn fitted(prefix: &Path) -> Result<(), String> {
    let file = folder()?.join("fitted.toml");
    let mut fit = Command::new(prefix.join("bin/weft"));
    super::tools::quiet(fit.args(["sim", "fit"]).arg(&file))?;
    let file_text =
        std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    let table: toml::Table = file_text.parse().map_err(|e| format!("{}: {e}", file.display()))?;
    let number = |value: &toml::Value| value.as_float().or(value.as_integer().map(|n| n as f64));
    let local = |key: &str| number(table.get("local")?.get(key)?);
    let rail = || number(table.get("rail")?.get(0)?.get("receive")?.get("matching")?);
    let call = || Some(2.0 * number(table.get("host")?.get("call")?)?);
    let parts = [local("overhead"), local("latency"), rail(), call()];
    let message: Option<f64> = parts.into_iter().sum();
    let message = message.ok_or(format!("numbers are missing in\n{file_text}"))?;
    let mut messages = vec![(8, message)];
    messages.extend(file_text.lines().filter_map(transfer));
    let (machine, program) = (file.display().to_string(), built(prefix, "ping_pong")?);
    let sizes: Vec<String> = messages.iter().map(|(bytes, _)| bytes.to_string()).collect();
    let run = SimRun { nodes: 1, ..SimRun::on(&machine, &program, &sizes) };
    let figures = figures(&text(&run.output(prefix)?.stdout));
    let mut differences = Vec::new();
    for (bytes, message) in &messages {
        let simulated = figures.get(&bytes.to_string()).copied().unwrap_or(f64::NAN);
        println!("     {bytes} bytes: {simulated} us, measured {message} us");
        differences.push((simulated / message - 1.0).abs());
    }
    if differences.iter().any(|difference| !difference.is_finite()) {
        return Err("a message on the fitted machine has no time".to_owned());
    }
    // The message of 8 bytes is the first, and no other message decides its time.
    if differences[0] > 0.1 {
        return Err(format!("a message of 8 bytes is {} off its measured time", differences[0]));
    }
    differences.sort_by(f64::total_cmp);
    // Noise may make a longer message quicker than a shorter one, which no machine file can meet.
    let median = differences[differences.len() / 2];
    if differences.len() < 8 || median > 0.05 {
        return Err(format!(
            "messages on a fitted machine: {} lengths, {median}",
            differences.len()
        ));
    }
    println!("ok   a machine file of this host, and messages on it");
    Ok(())
}

/// Compares the bits that a program prints under mpiexec and in virtual time, with the same algorithms.
fn same_bits(prefix: &Path) -> Result<(), String> {
    let program = built(prefix, "sums")?;
    let settings = [("WEFT_ALLREDUCE", "MPI-PE"), ("WEFT_REDUCE", "MPI-BINOMIAL")];
    let mut real = Command::new(prefix.join("bin/mpiexec"));
    real.args(["-n", "4"]).arg(&program).envs(settings);
    let real = super::tools::quiet(&mut real)?;
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let run =
        SimRun { ranks: 4, nodes: 4, settings: &settings, ..SimRun::on("ndr", &program, &[]) };
    let simulated = run.output(prefix)?;
    if text(&simulated.stdout) != real || real.lines().count() < 1000 {
        return Err("sums: other bits in virtual time than under mpiexec".to_owned());
    }
    println!("ok   the same bits under mpiexec and in virtual time");
    Ok(())
}

/// Returns the number before a word of a report.
fn number(report: &str, word: &str) -> Option<u64> {
    let before = report.lines().find_map(|line| line.split_once(&format!(" {word}")))?.0;
    before.rsplit(' ').next()?.parse().ok()
}

/// Returns the number of turns of ranks.
fn turns_of(report: &str) -> Option<u64> {
    number(report, "turns,")
}

/// Checks that a rank stops for the simulation only to rest: posts, charges and arrived messages need no request of their own. Joining and
/// leaving the job, and communicators, do.
fn few_requests(name: &str, report: &str) -> Result<(), String> {
    let (Some(turns), Some(requests)) = (turns_of(report), number(report, "requests")) else {
        return Err(format!("{name}: no turns and requests in\n{report}"));
    };
    if requests > turns + turns / 2 {
        return Err(format!("{name}: {requests} requests in {turns} turns"));
    }
    println!("ok   {name}: {requests} requests in {turns} turns");
    Ok(())
}

/// Checks that a rank that awaits several messages has one turn, and not one for each of them: a step of heat, in which up to four
/// neighbours send, takes little more than a turn of each rank.
fn few_turns(prefix: &Path) -> Result<(), String> {
    const RANKS: usize = 16;
    let program = folder()?.join("heat");
    let turns = |steps: &str| {
        let args = ["--points", "64", "--steps", steps].map(str::to_owned);
        let run = SimRun { ranks: RANKS, nodes: 4, ..SimRun::on("ndr", &program, &args) };
        let report = run.expect(prefix, 0, &["correct".to_owned()])?;
        turns_of(&report).ok_or(format!("heat: no turns in\n{report}"))
    };
    let (steps, few, many) = (20, turns("10")?, turns("30")?);
    let most = RANKS as u64 * steps * 5 / 4;
    let turns = many.saturating_sub(few);
    if !(RANKS as u64..=most).contains(&turns) {
        return Err(format!("heat: {turns} turns in {steps} steps, not {RANKS} to {most}"));
    }
    println!("ok   heat: {turns} turns in {steps} steps of {RANKS} ranks");
    Ok(())
}

/// Runs the examples on 64 ranks, twice: the report must not change.
fn examples(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    few_turns(prefix)?;
    let matrix = root().join("examples/poisson32.mtx").display().to_string();
    let programs = [
        ("heat", vec!["--points".to_owned(), "64".into(), "--steps".into(), "20".into()]),
        // Each rank has 16 rows; a third of the iterations suffices.
        ("cg", ["--matrix", &matrix, "--tolerance", "1e-3"].map(str::to_owned).to_vec()),
    ];
    for (name, args) in programs {
        let program = folder()?.join(name);
        let run = SimRun { ranks: 64, nodes: 16, ..SimRun::on("ndr", &program, &args) };
        let correct = ["correct".to_owned()];
        let first = run.expect(prefix, 0, &correct)?;
        if run.expect(prefix, 0, &correct)? != first {
            return Err(format!("{name}: two equal runs in virtual time differ"));
        }
        few_requests(name, &first)?;
        println!("ok   {name} on 64 simulated ranks, twice with the same report");
        tally.passed += 1;
    }
    Ok(())
}
