//! `weft explain`: the algorithm of a collective call, the path of a message, the expected cost, and the reasons.

mod check;
mod check_table;
mod file;
mod hosts;
mod levels;
mod message;
mod predict;
mod single;
mod subject;

use crate::library_selection::{MapChoice, RankPlaces};
use crate::sim::{NumberList, SimFailure};
use crate::tune::real::site_between;
use crate::tune::{grid, workload};
use clap::{Parser, ValueEnum};
use hosts::ExplainedHosts;
use predict::{Prediction, PredictionSources};
use std::rc::Rc;
use weft_collective::algorithm_trials::TrialKey;
use weft_collective::{
    AlgorithmChoice, CallKey, CollectiveKind, RankPlacement, SelectionKey, SelectionMap,
    SelectionReason, candidates, installed_maps,
};
use weft_fabric::CopyModel;
use weft_fabric_sim::Machine;
use weft_intranode::{ModelLoader, ModelSource};

/// Arguments of `weft explain`.
#[derive(Parser, Debug)]
pub struct ExplainArgs {
    /// Collective operation, as in allreduce; or send, put, get, accumulate; or file_write_all, file_read_all.
    #[arg(value_name = "OPERATION", value_delimiter = ',', value_parser = ExplainSubject::named, required_unless_present = "check")]
    pub operations: Vec<ExplainSubject>,
    /// Run each algorithm on this machine, and print the predicted times next to the measured times. OPERATION may be a list.
    #[arg(long, conflicts_with_all = ["algorithm", "op", "Message", "File"])]
    pub check: bool,
    /// With --check: milliseconds for each algorithm at each size [default: 20].
    #[arg(long, value_name = "MS", requires = "check")]
    pub time: Option<u64>,
    /// With --check: send the same data again and again, as most benchmarks do. Without it, the ranks write their data before each
    /// call, as programs do.
    #[arg(long, requires = "check")]
    pub unchanged: bool,
    /// Number of ranks. Of a message, and with --check: 2, if it is not given.
    #[arg(short = 'n', long = "ranks", value_name = "N")]
    pub ranks: Option<usize>,
    /// Bytes; `weft info --algorithms` explains of which data. Of a message: its length. With --check: a list [default: 8 B to 1 MiB].
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
    pub bytes: Option<NumberList>,
    /// Machine file with the nodes of the ranks, and with its map. Default: ranks that share memory.
    #[arg(long, value_name = "NAME|FILE")]
    pub machine: Option<String>,
    /// Number of hosts, each with the same number of ranks, which the kernel's network code connects. With --check: their names, as
    /// in node0,node1. The machine file is `ethernet`, unless --machine names another.
    #[arg(long, value_name = "N|A,B", value_parser = ExplainedHosts::parse, conflicts_with = "map")]
    pub hosts: Option<ExplainedHosts>,
    /// Map: the name of a shipped map, or a file.
    #[arg(long, value_name = "NAME|FILE")]
    pub map: Option<String>,
    /// Algorithm to explain as if it had been requested, as in RGM:7. Default: the setting's.
    #[arg(long, value_name = "NAME")]
    pub algorithm: Option<String>,
    /// Properties of the reduction's operator.
    #[arg(long, value_enum, default_value_t = OperatorFacts::Commutative)]
    pub op: OperatorFacts,
    // No doc comment, here and at `OperatorFacts`, because it would be printed as help.
    #[allow(missing_docs)]
    #[command(flatten)]
    pub message: message::MessageArgs,
    #[allow(missing_docs)]
    #[command(flatten)]
    pub file: file::FileArgs,
}

/// Subject of an explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExplainSubject {
    /// Algorithm of a collective operation.
    Collective(CollectiveKind),
    /// Path of a message or of a one-sided operation.
    Message(message::MessageCall),
    /// Method of a collective access of a file.
    File(file::FileCall),
}

/// Properties of an operator.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum OperatorFacts {
    Commutative,
    Noncommutative,
}

/// Loads a map by the name of a shipped map, or from a file.
pub fn map(name: &str) -> Result<SelectionMap, String> {
    installed_maps::load(name).map_err(|e| e.to_string())
}

/// Describes the value of `WEFT_MAP`, for `weft info`: the map, and the machine on which it was measured.
pub fn setting() -> String {
    let name = std::env::var("WEFT_MAP").unwrap_or_else(|_| "auto".to_owned());
    match name.trim().to_ascii_lowercase().as_str() {
        "auto" => {
            format!(
                "{} among ranks that share memory, {} where the kernel carries messages, {} elsewhere",
                installed_maps::TOGETHER,
                installed_maps::BY_KERNEL,
                installed_maps::APART
            )
        }
        "none" => "none".to_owned(),
        _ => match installed_maps::load(name.trim()) {
            Ok(map) => format!("{name}, measured on {}", map.machine),
            Err(why) => format!("wrong: {why}"),
        },
    }
}

impl ExplainArgs {
    /// Returns the number of bytes of an explanation, which has a single size.
    fn one_size(&self) -> Result<usize, SimFailure> {
        match self.bytes.as_ref().map_or(&[0][..], |list| &list.0) {
            [bytes] => Ok(*bytes),
            _ => Err(SimFailure::Request("--bytes: several sizes need --check".to_owned())),
        }
    }
}

/// Returns the explanation.
pub fn run(args: &ExplainArgs) -> Result<String, SimFailure> {
    if args.check {
        return check::run(args);
    }
    let [operation] = args.operations[..] else {
        return Err(SimFailure::Request("several operations need --check".to_owned()));
    };
    match operation {
        ExplainSubject::Collective(operation) => collective(args, operation),
        ExplainSubject::Message(kind) => message::run(kind, args),
        ExplainSubject::File(call) => file::run(call, args),
    }
}

fn collective(args: &ExplainArgs, operation: CollectiveKind) -> Result<String, SimFailure> {
    let request = SimFailure::Request;
    let bytes = args.one_size()?;
    let Some(ranks) = args.ranks else {
        return Err(request(format!("{operation}: -n says of how many ranks")));
    };
    if ranks == 0 {
        return Err(request("-n 0: at least 1 rank".to_owned()));
    }
    if operation == CollectiveKind::Barrier && args.bytes.is_some() {
        return Err(request("--bytes: a barrier has none".to_owned()));
    }
    let bytes = if has_size(operation) { bytes } else { 0 };
    if ranks == 1 && args.algorithm.is_none() {
        return single::explain(args, operation, bytes);
    }
    let hosts = args.hosts.as_ref().filter(|hosts| hosts.count > 1);
    let sources = sources(args, ranks)?;
    let PredictionSources { machine, map, model, .. } = &sources;
    let site = match (hosts, machine) {
        (Some(hosts), _) => site_between(ranks, hosts.count).map_err(request)?,
        (None, machine) => site(machine.as_deref(), ranks)?,
    };
    let mut selection = sources.selection.clone();
    // The map by which the selection chooses differs from the map with times if a single rank has a node of its own.
    let choosing = selection.map(site).cloned().unwrap_or_else(|| map.clone());
    let setting = format!("WEFT_{}", operation.name().to_ascii_uppercase());
    let asked = match &args.algorithm {
        Some(text) => Some(("--algorithm".to_owned(), text.clone())),
        None => std::env::var(&setting).ok().map(|text| (setting, text)),
    };
    if let Some((by, text)) = &asked {
        let why = |why| request(format!("{by} {text}: {why}"));
        selection.ask_for(operation, text).map_err(why)?;
    }
    let commutes = args.op == OperatorFacts::Commutative;
    let case = SelectionKey { commutes, ..grid::case(operation, ranks, bytes, site) };
    let chosen = selection.choose(operation, &case, model);
    let mut text = format!("{operation} on {ranks} ranks");
    text += &size(operation, bytes);
    text += &place(machine.as_deref(), map, site);
    if let Some((choice, why)) = &chosen.refused {
        text += &format!("  refused    {choice}, which was asked for: {why}\n");
    }
    let cost = sources.predict(&case, chosen.choice);
    let about = chosen.choice.algorithm;
    text += &format!("  algorithm  {}: {}\n", named(chosen.choice), about.about);
    text += &format!("  steps      {}\n", about.cost);
    text += &format!("  predicted  {}\n", cost.describe());
    if let Some(composition) = selection.steps(chosen.choice, &case, model) {
        text += "  levels\n";
        text += &levels::lines(&composition);
    }
    let by = asked.map_or(String::new(), |(by, text)| format!("{by} {text}"));
    let learns = match chosen.reason {
        SelectionReason::Cheapest => learning(operation, &case, model),
        _ => String::new(),
    };
    text += &format!("  because    {}\n", because(chosen.reason, &choosing, &case, operation, &by));
    text += &learns;
    text += &others(&sources, &case, chosen.choice);
    Ok(text)
}

/// Returns true if algorithms of the operation are chosen by a number of bytes.
fn has_size(operation: CollectiveKind) -> bool {
    !operation.measure().starts_with("nothing")
}

/// Returns the end of the first line: the number of bytes and their meaning.
fn size(operation: CollectiveKind, bytes: usize) -> String {
    match has_size(operation) {
        true => format!(", {bytes} bytes ({})\n", operation.measure()),
        false => "\n".to_owned(),
    }
}

/// Describes the algorithms among which the ranks choose by the times of their calls, if a setting asks for trials.
fn learning(operation: CollectiveKind, case: &SelectionKey, model: &CopyModel) -> String {
    let SelectionKey { bytes, ranks, site, .. } = *case;
    let key = TrialKey { operation, asked: CallKey::of(bytes), near: site.near };
    let tried = candidates(operation, case, model);
    if !key.may_try(ranks) || tried.len() < 2 {
        return String::new();
    }
    let names: Vec<String> = tried.iter().map(AlgorithmChoice::to_string).collect();
    let only = match operation {
        CollectiveKind::Reduce | CollectiveKind::Allreduce if ranks > 2 => " of integers",
        _ => "",
    };
    let names = names.join(", ");
    format!("  learns     repeated calls{only} try {names}, and keep the quickest (WEFT_LEARN)\n")
}

/// Returns the model of copies of the machine file. Without a machine file, returns the model that the library uses on this
/// machine, by the library's setting.
fn model(machine: Option<&Machine>) -> Result<CopyModel, String> {
    if let Some(machine) = machine {
        return Ok(machine.copies.model());
    }
    let text = std::env::var("WEFT_COPY_MODEL").unwrap_or_default();
    let wanted =
        ModelSource::parse(&text).map_err(|why| format!("WEFT_COPY_MODEL {text}: {why}"))?;
    Ok(ModelLoader::start(&wanted, 2)?.wait().model)
}

/// Returns the map, the model and the machine that explain calls of `ranks` ranks.
fn sources(args: &ExplainArgs, ranks: usize) -> Result<PredictionSources, SimFailure> {
    let request = SimFailure::Request;
    let machine = machine(args, ranks)?;
    let model = model(machine.as_ref()).map_err(request)?;
    let machine = machine.map(Rc::new);
    let choice = match &args.map {
        Some(name) => MapChoice::Named(name.clone()),
        None => MapChoice::by_environment(machine.as_deref()),
    };
    let places = RankPlaces::of(machine.as_deref(), ranks);
    let map = Rc::new(choice.times(places).map_err(request)?);
    let selection = choice.selection().map_err(request)?;
    Ok(PredictionSources { selection, map, model, machine })
}

/// Returns the machine of the calls to explain; `None` if it is this machine.
fn machine(args: &ExplainArgs, ranks: usize) -> Result<Option<Machine>, SimFailure> {
    let machine = match (&args.hosts, &args.machine) {
        (Some(hosts), name) if hosts.count > 1 => hosts.machine(name.as_deref(), ranks).map(Some),
        (_, None) => Ok(None),
        (_, Some(name)) => Machine::load(name).map(Some).map_err(|e| e.to_string()),
    };
    machine.map_err(SimFailure::Request)
}

/// Returns the name of the algorithm with its parameter, even if the parameter has the default value.
fn named(choice: AlgorithmChoice) -> String {
    match choice.algorithm.parameter {
        Some(p) => format!("{} ({} {})", choice.algorithm.name, p.what, choice.parameter),
        None => choice.algorithm.name.to_owned(),
    }
}

fn site(machine: Option<&Machine>, ranks: usize) -> Result<RankPlacement, SimFailure> {
    let Some(machine) = machine else { return Ok(crate::tune::real::site(ranks)) };
    let most = machine.nodes.0.saturating_mul(machine.ranks_per_node.0);
    if ranks > most {
        let name = &machine.name;
        return Err(SimFailure::Request(format!("-n {ranks}: {name} has room for 1 to {most}")));
    }
    workload::site(&Rc::new(machine.clone()), ranks).map_err(SimFailure::Run)
}

/// Describes the placement of the ranks, and the source of the map.
fn place(machine: Option<&Machine>, map: &SelectionMap, site: RankPlacement) -> String {
    let here = machine.map_or("shm", |m| &m.name);
    let ranks = if site.same_node { "share memory" } else { "are on nodes of their own" };
    let ranks = if site.ranks_per_node > 1 && !site.same_node { "share nodes" } else { ranks };
    let mut text = format!("  machine    {here}: the ranks {ranks}");
    text += if site.multicast > 0 { "; multicast\n" } else { "; no multicast\n" };
    text += &format!("  map        measured on {}", map.machine);
    if map.machine != here {
        text += &format!(": another machine, so that its times are not those of {here}");
    }
    text + "\n"
}

fn because(
    reason: SelectionReason,
    map: &SelectionMap,
    case: &SelectionKey,
    operation: CollectiveKind,
    by: &str,
) -> String {
    match reason {
        SelectionReason::Asked => format!("it was asked for: {by}"),
        SelectionReason::Map => {
            let line = map.find(operation, case.ranks, case.bytes).expect("the map says so");
            let first = line.choices[0].choice;
            let mut text =
                format!("the map says so, from {} ranks and {} bytes on", line.ranks, line.bytes);
            if let Err(why) = first.algorithm.eligible(case) {
                text += &format!("; {first} stands first there, but {why}");
            }
            text
        }
        SelectionReason::Led => {
            let text = "the usual map is of one rank to a node, and the kernel carries messages: leaders speak for their nodes";
            text.to_owned()
        }
        SelectionReason::Cheapest => {
            let why = match map.find(operation, case.ranks, case.bytes) {
                Some(_) => {
                    "the model of copies knows the caches of the ranks, and the map does not"
                }
                None => "the map has no line for it",
            };
            format!("{why}: the cheapest by the model of copies")
        }
        SelectionReason::Usual => match map.find(operation, case.ranks, case.bytes) {
            Some(_) => "nothing that the map names can serve this call: the usual one".to_owned(),
            None => format!("the map has no line for {} ranks: the usual one", case.ranks),
        },
    }
}

/// Lists all other algorithms: first algorithms with a time, in ascending order of time, then algorithms without a time, then
/// algorithms that are not eligible.
fn others(sources: &PredictionSources, case: &SelectionKey, chosen: AlgorithmChoice) -> String {
    let (ranks, bytes, operation) = (case.ranks, case.bytes, chosen.algorithm.operation);
    let mut able: Vec<(String, Prediction)> = Vec::new();
    let mut unable = String::new();
    for algorithm in operation.algorithms() {
        if let Err(why) = algorithm.eligible(case) {
            unable += &format!("  {:22} not eligible: {why}\n", algorithm.name);
            continue;
        }
        if algorithm.name == chosen.algorithm.name {
            continue;
        }
        let choice = predict::parameter(&sources.map, operation, ranks, bytes, algorithm);
        let cost = sources.predict(case, choice);
        // A map names algorithms of all carriers. A choice by the model leaves some out.
        let left_out = algorithm.left_out().filter(|_| matches!(cost, Prediction::Modelled(_)));
        let left_out = left_out.map_or(String::new(), |why| format!("; not chosen: {why}"));
        let name = choice.to_string();
        able.push((format!("  {name:22} {}{left_out}\n", cost.describe()), cost));
    }
    able.sort_by(|a, b| a.1.order().total_cmp(&b.1.order()));
    let mut text = String::from("others\n");
    text.extend(able.into_iter().map(|(line, _)| line));
    text + &unable
}
