//! The report of a run: the time of the ranks by call.

use super::SimRunArgs;
use std::fmt::Write;
use weft_fabric_sim::Machine;
use weft_sim_job::SimJobOutcome;

/// Writes the report.
pub fn text(args: &SimRunArgs, machine: &Machine, outcome: &SimJobOutcome) -> String {
    let mut text = String::new();
    let account = &outcome.account;
    let us = |time: u64| time as f64 / 1e6;
    let end = account.ranks.iter().map(|rank| rank.end).max().unwrap_or(0);
    let each = machine.ranks_per_node.0;
    let nodes = args.ranks.div_ceil(each);
    let _ = writeln!(
        text,
        "{} ranks on {nodes} nodes of {}: {:.3} us of virtual time, {} turns, {} messages, {} writes, {} reads",
        args.ranks,
        args.machine,
        us(end),
        outcome.turns,
        outcome.counts.messages,
        outcome.counts.writes,
        outcome.counts.reads,
    );
    text
}
