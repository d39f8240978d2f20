//! The steps of LEVELS, a line each: its ranks, its algorithm and its predicted time.

use weft_collective::{Composition, CompositionStep, StepRanks};
use weft_fabric::copies::TopologyLevel;

/// Returns the name of several groups of a level.
fn plural(level: TopologyLevel) -> &'static str {
    match level {
        TopologyLevel::Numa => "NUMA domains",
        TopologyLevel::Socket => "sockets",
        TopologyLevel::Node => "nodes",
        _ => "caches",
    }
}

/// Describes the ranks of a step. Groups of the level `inner` consist of ranks, and groups of other levels of leaders.
fn ranks(step: &CompositionStep, inner: Option<TopologyLevel>) -> String {
    let CompositionStep { groups, ranks, .. } = *step;
    let name = plural(step.level);
    match step.part {
        StepRanks::Group if Some(step.level) == inner => {
            format!("in {groups} {name} of {ranks} ranks")
        }
        StepRanks::Group => format!("in {groups} {name} of {ranks} leaders"),
        StepRanks::Leaders => format!("between the leaders of {groups} {name}"),
        StepRanks::Column => format!("between {groups} {name}, by slice"),
    }
}

fn time(step: &CompositionStep) -> String {
    match step.time {
        Some(ns) => format!("{:.2} us", step.runs * ns / 1e3),
        None => "no time".to_owned(),
    }
}

/// Returns the lines of all steps.
pub fn lines(composition: &Composition) -> String {
    let inner = composition.steps.first().map(|step| step.level);
    let line = |step: &CompositionStep| {
        let ranks = ranks(step, inner);
        let (operation, choice) = (step.operation.name(), step.choice.to_string());
        let bytes = format!("{} B", step.bytes);
        let text = format!("    {operation:14} {ranks:36} {bytes:>10} {choice:14} {}", time(step));
        text + "\n"
    };
    let mut text: String = composition.steps.iter().map(line).collect();
    let more = [
        ("message", "from a leader to the root", composition.to_root),
        ("copies", "blocks that leaders sort", composition.sorting),
    ];
    for (name, about, ns) in more.into_iter().filter(|(_, _, ns)| *ns > 0.0) {
        let us = ns / 1e3;
        text += &format!("    {name:14} {about:36} {:>10} {:14} {us:.2} us\n", "", "");
    }
    text
}
