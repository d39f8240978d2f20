//! `weft explain --check`: the predicted times next to the times of real jobs on this machine or between hosts, for each algorithm
//! and size.

use super::check_table::{self, CheckedCase, CheckedChoice};
use super::hosts::ExplainedHosts;
use super::predict::{self, PredictionSources};
use super::{ExplainArgs, ExplainSubject, message, sources};
use crate::sim::SimFailure;
use crate::tune::grid;
use crate::tune::real::{Here, SentData, site, site_between};
use crate::tune::sweep::{MapCell, Measure, progress};
use indicatif::ProgressBar;
use weft_collective::{AlgorithmChoice, CollectiveKind, RankPlacement, SelectionKey};
use weft_p2p::protocol::{MessageCase, MessageProtocol, choose};

/// Operations that are checked if none is named.
const OPERATIONS: [ExplainSubject; 8] = {
    use CollectiveKind::*;
    use ExplainSubject::{Collective, Message};
    [
        Collective(Bcast),
        Collective(Reduce),
        Collective(Allreduce),
        Collective(Allgather),
        Collective(Alltoall),
        Collective(Gather),
        Collective(Scatter),
        Message(message::MessageCall::Send),
    ]
};

/// Sizes that are checked if none is given.
const BYTES: [usize; 8] = [8, 64, 512, 4 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20];

/// Milliseconds for each algorithm at each size, if no time is given.
const TIME: u64 = 20;

/// A collective call to check: its algorithms, and the algorithm that the library chooses.
struct CollectiveCheck {
    place: MapCell,
    key: SelectionKey,
    choices: Vec<AlgorithmChoice>,
    chosen: AlgorithmChoice,
}

/// Parameters of the prediction.
struct Predictor {
    sources: PredictionSources,
    site: RankPlacement,
}

/// Runs the checks and returns the tables.
pub fn run(args: &ExplainArgs) -> Result<String, SimFailure> {
    let request = SimFailure::Request;
    let ranks = args.ranks.unwrap_or(2);
    if ranks < 2 {
        return Err(request(format!("-n {ranks}: --check needs at least 2 ranks")));
    }
    let named = !args.operations.is_empty();
    let operations = if named { args.operations.clone() } else { OPERATIONS.to_vec() };
    let bytes = args.bytes.as_ref().map_or(BYTES.to_vec(), |list| list.0.clone());
    let names = match &args.hosts {
        Some(ExplainedHosts { names, .. }) if names.is_empty() => {
            return Err(request("--check --hosts: names of hosts, as in node0,node1".to_owned()));
        }
        Some(ExplainedHosts { names, .. }) => &names[..],
        None if args.machine.is_some() => {
            return Err(request("--check --machine: needs --hosts".to_owned()));
        }
        None => &[],
    };
    let site = match names.len() {
        0 | 1 => Ok(site(ranks)),
        hosts => site_between(ranks, hosts),
    };
    let site = site.map_err(request)?;
    let predictor = Predictor { sources: sources(args, ranks)?, site };
    let (mut calls, mut sends) = (Vec::new(), Vec::new());
    for operation in operations {
        match operation {
            ExplainSubject::Collective(operation) => {
                for bytes in grid::sizes(operation, ranks, &bytes) {
                    calls.push(predictor.call(MapCell { operation, ranks, bytes })?);
                }
            }
            ExplainSubject::Message(message::MessageCall::Send) => sends.clone_from(&bytes),
            _ => {
                let text = "--check runs collective operations and send, no other operation";
                return Err(request(text.to_owned()));
            }
        }
    }
    let data = if args.unchanged { SentData::Unchanged } else { SentData::Written };
    let time = args.time.unwrap_or(TIME);
    let mut here = Here::new(time, names, data).map_err(SimFailure::Run)?;
    let protocols = predictor.protocols(&sends)?;
    let jobs = protocols.len() as u64 * Here::JOBS;
    let bar = progress(calls.iter().map(|call| call.choices.len() as u64).sum::<u64>() + jobs);
    let mut cases = Vec::new();
    for call in &calls {
        cases.push(predictor.measure(call, &mut here, &bar).map_err(SimFailure::Run)?);
    }
    if !protocols.is_empty() {
        bar.set_message("send");
        let times = here.messages(&protocols, &sends, &|| bar.inc(1));
        for (at, &bytes) in sends.iter().enumerate() {
            let time = |result: &Result<Vec<f64>, String>| result.clone().map(|list| list[at]);
            let measured: Vec<_> = times.iter().map(time).collect();
            cases.push(predictor.send(bytes, &protocols, measured)?);
        }
    }
    bar.finish_and_clear();
    let mut results = cases.iter().flat_map(|case| &case.choices).map(|choice| &choice.measured);
    match results.clone().any(Result::is_ok) {
        true => Ok(check_table::print(&cases)),
        false => {
            let why = results.find_map(|result| result.as_ref().err());
            let why = why.map_or("no algorithm serves the calls", String::as_str);
            Err(SimFailure::Run(format!("no job has succeeded: {why}")))
        }
    }
}

impl Predictor {
    /// Returns the algorithms that may serve a call, and the algorithm that the settings, the map and the model choose.
    fn call(&self, place: MapCell) -> Result<CollectiveCheck, SimFailure> {
        let MapCell { operation, ranks, bytes } = place;
        let key = grid::case(operation, ranks, bytes, self.site);
        let able = operation.algorithms().filter(|a| a.eligible(&key).is_ok());
        let choice = |a| predict::parameter(&self.sources.map, operation, ranks, bytes, a);
        let mut choices: Vec<AlgorithmChoice> = able.map(choice).collect();
        let mut selection = self.sources.selection.clone();
        let setting = format!("WEFT_{}", operation.name().to_ascii_uppercase());
        if let Ok(text) = std::env::var(&setting) {
            let wrong = |why| SimFailure::Request(format!("{setting} {text}: {why}"));
            selection.ask_for(operation, &text).map_err(wrong)?;
        }
        let chosen = selection.choose(operation, &key, &self.sources.model).choice;
        if !choices.contains(&chosen) {
            choices.push(chosen);
        }
        Ok(CollectiveCheck { place, key, choices, chosen })
    }

    /// Measures the algorithms of a call.
    fn measure(
        &self,
        call: &CollectiveCheck,
        here: &mut Here,
        bar: &ProgressBar,
    ) -> Result<CheckedCase, String> {
        let MapCell { operation, ranks, bytes } = call.place;
        let title = match operation.measure().starts_with("nothing") {
            true => format!("{operation} on {ranks} ranks"),
            false => format!("{operation} on {ranks} ranks, {bytes} bytes"),
        };
        bar.set_message(title.clone());
        let times = here.measure(call.place, &call.choices, &|| bar.inc(1))?;
        let checked = |(&choice, us): (&AlgorithmChoice, Result<f64, String>)| CheckedChoice {
            name: choice.to_string(),
            predicted: self.sources.predict(&call.key, choice).microseconds(),
            measured: us,
        };
        let choices: Vec<CheckedChoice> = call.choices.iter().zip(times).map(checked).collect();
        Ok(CheckedCase { title, chosen: call.chosen.to_string(), choices })
    }

    /// Returns the case of a message of `bytes` bytes from rank 0 to rank 1, which is on another host if there are several.
    fn message(&self, bytes: usize) -> Result<MessageCase, SimFailure> {
        match &self.sources.machine {
            Some(machine) => message::case_between(machine, bytes),
            None => message::neighbour_case(&self.sources.model, bytes),
        }
    }

    /// Returns the protocols that may carry a message of any of these sizes.
    fn protocols(&self, bytes: &[usize]) -> Result<Vec<MessageProtocol>, SimFailure> {
        let mut able = Vec::new();
        for protocol in MessageProtocol::ALL {
            for &bytes in bytes {
                let case = self.message(bytes)?;
                if protocol.eligible(&case).is_ok() && !able.contains(&protocol) {
                    able.push(protocol);
                }
            }
        }
        Ok(able)
    }

    /// Returns the case of a message of `bytes` bytes, whose times by each of `protocols` are `measured`.
    fn send(
        &self,
        bytes: usize,
        protocols: &[MessageProtocol],
        measured: Vec<Result<f64, String>>,
    ) -> Result<CheckedCase, SimFailure> {
        let (case, model) = (self.message(bytes)?, &self.sources.model);
        let able = protocols.iter().zip(measured).filter(|(p, _)| p.eligible(&case).is_ok());
        let predicted = |protocol: MessageProtocol| match &self.sources.machine {
            Some(machine) => message::simulated(machine, 1, bytes, protocol),
            None => protocol.cost(model, &case).ok().map(|ns| ns / 1e3),
        };
        let checked = |(&protocol, us): (&MessageProtocol, _)| CheckedChoice {
            name: protocol.name().to_owned(),
            predicted: predicted(protocol),
            measured: us,
        };
        Ok(CheckedCase {
            title: format!("send from rank 0 to rank 1, {bytes} bytes"),
            chosen: choose(model, &case).name().to_owned(),
            choices: able.map(checked).collect(),
        })
    }
}
