//! The figures of a run, for the text and for the file of `--report`. Times are microseconds of virtual time.

use super::SimRunArgs;
use super::launch::map_choice;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;
use weft_fabric_sim::Machine;
use weft_fabric_sim::units::{MICROSECOND, Picoseconds};
use weft_sim_job::{CriticalPath, JobAccount, PathPart, SimJobOutcome, TrafficKind, critical_path};

/// Maximum number of pairs in a report.
const MOST_PAIRS: usize = 10_000;

/// Returns microseconds.
pub fn us(time: Picoseconds) -> f64 {
    time as f64 / MICROSECOND as f64
}

/// Returns the share of a part in percent; 0 of nothing.
pub fn percent(part: f64, of: f64) -> f64 {
    if of > 0.0 { 100.0 * part / of } else { 0.0 }
}

/// Time of an MPI function.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FunctionRow {
    /// Name.
    pub function: String,
    /// Number of calls of all ranks.
    pub calls: u64,
    /// Time of all ranks.
    pub total_us: f64,
    /// Maximum time of a rank.
    pub max_us: f64,
    /// The rank with the maximum time.
    pub max_rank: usize,
    /// Part of `total_us` in which ranks waited.
    pub waiting_us: f64,
}

/// Time of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RankRow {
    /// The rank.
    pub rank: usize,
    /// Time outside of MPI.
    pub computing_us: f64,
    /// Time in MPI.
    pub mpi_us: f64,
    /// Part of `mpi_us` in which the rank waited.
    pub waiting_us: f64,
    /// Time at which the rank ended.
    pub end_us: f64,
}

/// Traffic of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PairRow {
    /// The rank that posted.
    pub from: usize,
    /// Its peer.
    pub to: usize,
    /// Number of operations.
    pub operations: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// Operations of one kind and size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SizeRow {
    /// Kind.
    pub kind: &'static str,
    /// Maximum size; the minimum is more than half of it.
    pub up_to_bytes: u64,
    /// Number of operations.
    pub operations: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// Waits of one rank for another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WaitRow {
    /// The rank that waited.
    pub rank: u32,
    /// The rank whose arrival ended the waits. Without it, timers or polls ended them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<u32>,
    /// Function in which the rank waited.
    pub function: String,
    /// Number of waits.
    pub waits: u64,
    /// Time of the waits.
    pub waiting_us: f64,
}

/// Times on the critical path.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PathRow {
    /// Function; empty for all.
    pub function: String,
    /// Computing of the program.
    pub computing_us: f64,
    /// Work of the library.
    pub library_us: f64,
    /// Latency of transfers, and queues at ports.
    pub latency_us: f64,
    /// Bytes on the wire.
    pub bandwidth_us: f64,
    /// Waits that no arrival ended.
    pub timer_us: f64,
}

impl PathRow {
    /// Returns the sum of the times.
    pub fn total_us(&self) -> f64 {
        self.parts().into_iter().sum()
    }

    /// Returns the times in the order of their columns.
    pub fn parts(&self) -> [f64; 5] {
        [self.computing_us, self.library_us, self.latency_us, self.bandwidth_us, self.timer_us]
    }
}

/// The critical path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathReport {
    /// Number of transfers between different ranks.
    pub transfers: usize,
    /// All functions together.
    pub all: PathRow,
    /// By function, in descending order of time.
    pub functions: Vec<PathRow>,
}

/// Report of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunReport {
    /// Program with its arguments.
    pub program: Vec<String>,
    /// Machine, as the command line names it.
    pub machine: String,
    /// Maps by which the ranks choose collective algorithms.
    pub map: String,
    /// Number of nodes.
    pub nodes: usize,
    /// Virtual time at the end.
    pub end_us: f64,
    /// Time outside of MPI of all ranks.
    pub computing_us: f64,
    /// Time in MPI of all ranks.
    pub mpi_us: f64,
    /// Waiting of all ranks.
    pub waiting_us: f64,
    /// Number of turns of ranks.
    pub turns: u64,
    /// Number of turns that the simulation took for ranks.
    pub quiet_turns: u64,
    /// Number of turns in which a rank did other work than the simulation had charged. The times are wrong if there are any.
    pub wrong_turns: u64,
    /// Number of requests for which ranks stopped.
    pub requests: u64,
    /// Number of operations.
    pub operations: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// Number of bytes that writes and reads have copied between ranks.
    pub copied_bytes: u64,
    /// Number of bytes of phantom payloads that were not copied (`--phantom`).
    pub phantom_bytes: u64,
    /// True if the run was too long for a critical path.
    pub is_cut: bool,
    /// Times by function, in descending order.
    pub functions: Vec<FunctionRow>,
    /// Times by rank.
    pub ranks: Vec<RankRow>,
    /// The busiest pairs by bytes.
    pub pairs: Vec<PairRow>,
    /// Operations by kind and size.
    pub sizes: Vec<SizeRow>,
    /// Waits by pair and function, in descending order of time.
    pub waits: Vec<WaitRow>,
    /// The critical path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub critical_path: Option<PathReport>,
    /// Names of functions, by number.
    #[serde(skip)]
    pub names: Vec<String>,
    /// Steps of the path.
    #[serde(skip)]
    pub path: Option<CriticalPath>,
}

/// Returns the name of a function by its number plus 1.
pub fn function_name(names: &[String], call: u64) -> String {
    let Some(index) = call.checked_sub(1) else { return "outside of calls".to_owned() };
    names.get(index as usize).cloned().unwrap_or_else(|| format!("function {index}"))
}

impl RunReport {
    /// Makes the report.
    pub fn new(args: &SimRunArgs, machine: &Machine, outcome: &SimJobOutcome) -> RunReport {
        let account = &outcome.account;
        let names = &outcome.names;
        let path = critical_path(&account.record);
        let ranks = rank_rows(account);
        let sum = |of: fn(&RankRow) -> f64| ranks.iter().map(of).sum();
        RunReport {
            program: args.program.clone(),
            machine: args.machine.clone(),
            map: map_choice(args, machine).describe(),
            nodes: args.ranks.div_ceil(machine.ranks_per_node.0),
            end_us: ranks.iter().map(|rank| rank.end_us).fold(0.0, f64::max),
            computing_us: sum(|rank| rank.computing_us),
            mpi_us: sum(|rank| rank.mpi_us),
            waiting_us: sum(|rank| rank.waiting_us),
            turns: outcome.turns,
            quiet_turns: outcome.quiet_turns,
            wrong_turns: outcome.wrong_turns,
            requests: outcome.requests,
            operations: account.pairs.values().map(|pair| pair.operations).sum(),
            bytes: account.pairs.values().map(|pair| pair.bytes).sum(),
            copied_bytes: outcome.copied.copied,
            phantom_bytes: outcome.copied.spared,
            is_cut: account.record.is_cut,
            functions: function_rows(account, names),
            ranks,
            pairs: pair_rows(account),
            sizes: size_rows(account),
            waits: wait_rows(account, names),
            critical_path: path.as_ref().map(|path| path_report(path, names)),
            names: names.clone(),
            path,
        }
    }

    /// Returns the report as JSON or TOML, by the ending of `path`.
    pub fn file_text(&self, path: &Path) -> String {
        let is_toml = path.extension().is_some_and(|ending| ending == "toml");
        match is_toml {
            true => toml::to_string(self).expect("a report has only tables and numbers"),
            false => {
                let text = serde_json::to_string_pretty(self);
                text.expect("a report has only tables and numbers") + "\n"
            }
        }
    }
}

fn function_rows(account: &JobAccount, names: &[String]) -> Vec<FunctionRow> {
    let mut rows: BTreeMap<u64, FunctionRow> = BTreeMap::new();
    for (rank, of_rank) in account.ranks.iter().enumerate() {
        for (&call, time) in &of_rank.calls {
            let row = rows.entry(call).or_insert_with(|| FunctionRow {
                function: function_name(names, call),
                calls: 0,
                total_us: 0.0,
                max_us: 0.0,
                max_rank: rank,
                waiting_us: 0.0,
            });
            row.calls += time.calls;
            row.total_us += us(time.time);
            row.waiting_us += us(time.waiting);
            if us(time.time) > row.max_us {
                (row.max_us, row.max_rank) = (us(time.time), rank);
            }
        }
    }
    let mut rows: Vec<FunctionRow> = rows.into_values().collect();
    rows.retain(|row| row.calls > 0 || row.total_us > 0.0);
    rows.sort_by(|a, b| b.total_us.total_cmp(&a.total_us));
    rows
}

fn rank_rows(account: &JobAccount) -> Vec<RankRow> {
    let row = |(rank, of_rank): (usize, &weft_sim_job::RankAccount)| RankRow {
        rank,
        computing_us: us(of_rank.computing),
        mpi_us: us(of_rank.calls.values().map(|call| call.time).sum()),
        waiting_us: us(of_rank.calls.values().map(|call| call.waiting).sum()),
        end_us: us(of_rank.end),
    };
    account.ranks.iter().enumerate().map(row).collect()
}

fn pair_rows(account: &JobAccount) -> Vec<PairRow> {
    let row = |(&(from, to), pair): (&(usize, usize), &weft_sim_job::PairTraffic)| PairRow {
        from,
        to,
        operations: pair.operations,
        bytes: pair.bytes,
    };
    let mut rows: Vec<PairRow> = account.pairs.iter().map(row).collect();
    rows.sort_by_key(|row| Reverse((row.bytes, row.operations)));
    rows.truncate(MOST_PAIRS);
    rows
}

fn size_rows(account: &JobAccount) -> Vec<SizeRow> {
    let name = |kind| match kind {
        TrafficKind::Message => "message",
        TrafficKind::Write => "write",
        TrafficKind::Read => "read",
        TrafficKind::Atomic => "atomic",
    };
    let rows = account.sizes.iter().map(|(&(kind, class), traffic)| SizeRow {
        kind: name(kind),
        up_to_bytes: class.map_or(0, |exponent| 1 << exponent),
        operations: traffic.operations,
        bytes: traffic.bytes,
    });
    rows.collect()
}

fn wait_rows(account: &JobAccount, names: &[String]) -> Vec<WaitRow> {
    let mut rows: Vec<_> = account.waits.iter().collect();
    rows.sort_by_key(|(_, waits)| Reverse(waits.time));
    let rows = rows.into_iter().take(MOST_PAIRS).map(|(pair, waits)| WaitRow {
        rank: pair.rank,
        waits_for: pair.peer,
        function: function_name(names, pair.call),
        waits: waits.waits,
        waiting_us: us(waits.time),
    });
    rows.collect()
}

fn path_report(path: &CriticalPath, names: &[String]) -> PathReport {
    let mut all = PathRow::default();
    let mut functions: BTreeMap<u16, PathRow> = BTreeMap::new();
    for (&(call, part), &time) in &path.parts {
        let function = match (call, part) {
            (0, PathPart::Computing) => "computing".to_owned(),
            _ => function_name(names, u64::from(call)),
        };
        let row =
            functions.entry(call).or_insert_with(|| PathRow { function, ..PathRow::default() });
        for row in [row, &mut all] {
            let place = match part {
                PathPart::Computing => &mut row.computing_us,
                PathPart::Library => &mut row.library_us,
                PathPart::Latency => &mut row.latency_us,
                PathPart::Bandwidth => &mut row.bandwidth_us,
                PathPart::Timer => &mut row.timer_us,
            };
            *place += us(time);
        }
    }
    let mut functions: Vec<PathRow> = functions.into_values().collect();
    functions.sort_by(|a, b| b.total_us().total_cmp(&a.total_us()));
    PathReport { transfers: path.hops(), all, functions }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Returns an account of two ranks with one message.
    pub fn account() -> JobAccount {
        let mut account = JobAccount::new(2);
        account.operation(TrafficKind::Message, 0, 1, 100);
        account.operation(TrafficKind::Write, 1, 0, 5000);
        for (rank, time) in [(0, 3_000_000), (1, 5_000_000)] {
            let call = weft_sim_job::CallTime { calls: 2, time, waiting: 1_000_000 };
            account.ranks[rank].calls.insert(1, call);
            account.ranks[rank].computing = 2_000_000;
            account.ranks[rank].end = time + 2_000_000;
        }
        account
    }

    /// Returns the outcome of two ranks: rank 0 computes and sends `rounds` times, and rank 1 waits for each message.
    pub fn outcome(rounds: u64) -> (RunReport, SimJobOutcome) {
        use std::os::unix::process::ExitStatusExt;
        use weft_fabric_sim::{Arrow, RunCounts, Travel};
        use weft_sim_job::{CopiedBytes, SegmentKind, WaitCause};
        let mut account = account();
        let mut arrows = Vec::new();
        for round in 0..rounds {
            let start = round * 2_000_000;
            let (posted, arrived) = (start + 1_100_000, start + 1_900_000);
            account.record.add(0, SegmentKind::Computing, 0, start + 1_000_000, 1_000_000);
            account.record.add(0, SegmentKind::Library, 1, start + 2_000_000, 1_000_000);
            let cause = WaitCause { from: 0, poster: 0, posted, arrived, wire: 1000 };
            account.record.add_wait(1, 2, arrived, Some(cause));
            account.record.add(1, SegmentKind::Library, 2, start + 2_000_000, 100_000);
            if arrows.len() <= super::super::MOST_ARROWS {
                let what = Travel::Message;
                arrows.push(Arrow { from: 0, to: 1, what, bytes: 8, sent: posted, arrived });
            }
        }
        account.ranks.iter_mut().for_each(|rank| rank.end = rounds * 2_000_000);
        let outcome = SimJobOutcome {
            status: std::process::ExitStatus::from_raw(0),
            account,
            counts: RunCounts::default(),
            trace: None,
            arrows,
            names: vec!["MPI_Send".to_owned(), "MPI_Recv".to_owned()],
            turns: 1,
            quiet_turns: 0,
            wrong_turns: 0,
            requests: 1,
            copied: CopiedBytes { copied: 10, spared: 0 },
        };
        let args = <SimRunArgs as clap::Parser>::parse_from([
            "run",
            "--machine",
            "ndr",
            "--ranks",
            "2",
            "./program",
        ]);
        let machine = Machine::load_with::<&str>("ndr", &[]).unwrap();
        (RunReport::new(&args, &machine, &outcome), outcome)
    }

    #[test]
    fn reports_are_written_as_json_and_toml() {
        let (report, _) = outcome(3);
        let json: serde_json::Value =
            serde_json::from_str(&report.file_text(Path::new("a.json"))).unwrap();
        assert_eq!(json["functions"][0]["function"], "MPI_Send");
        assert_eq!(json["critical_path"]["all"]["timer_us"], 0.0);
        let toml: toml::Table = report.file_text(Path::new("a.toml")).parse().unwrap();
        assert_eq!(toml["end_us"].as_float(), Some(6.0));
        assert_eq!(toml["ranks"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn functions_are_summed_over_ranks() {
        let rows = function_rows(&account(), &["MPI_Barrier".to_owned()]);
        assert_eq!(rows.len(), 1);
        let FunctionRow { function, calls, total_us, max_us, max_rank, waiting_us } = &rows[0];
        assert_eq!((function.as_str(), *calls, *max_rank), ("MPI_Barrier", 4, 1));
        assert_eq!((*total_us, *max_us, *waiting_us), (8.0, 5.0, 2.0));
        assert_eq!(function_name(&[], 0), "outside of calls");
        assert_eq!(function_name(&[], 3), "function 2");
    }

    #[test]
    fn pairs_are_sorted_by_bytes() {
        let rows = pair_rows(&account());
        assert_eq!((rows[0].from, rows[0].bytes), (1, 5000));
        let sizes = size_rows(&account());
        let classes: Vec<_> = sizes.iter().map(|row| (row.kind, row.up_to_bytes)).collect();
        assert_eq!(classes, [("message", 128), ("write", 8192)]);
    }

    #[test]
    fn the_path_is_summed_by_function_and_part() {
        let parts = [
            ((0, PathPart::Computing), 4_000_000),
            ((1, PathPart::Latency), 1_000_000),
            ((1, PathPart::Bandwidth), 2_000_000),
        ];
        let path = CriticalPath { parts: parts.into(), steps: Vec::new() };
        let report = path_report(&path, &["MPI_Recv".to_owned()]);
        assert_eq!(report.all.parts(), [4.0, 0.0, 1.0, 2.0, 0.0]);
        let names: Vec<_> = report.functions.iter().map(|row| row.function.as_str()).collect();
        assert_eq!(names, ["computing", "MPI_Recv"]);
        assert_eq!(report.functions[1].total_us(), 3.0);
    }
}
