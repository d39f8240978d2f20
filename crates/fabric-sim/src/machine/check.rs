//! Checks of conditions between the tables of a machine file.

use super::document::{MachineDocument, ValueForm};
use super::{Machine, MachineError, MeasuredTransfer, SEND_MAX};
use crate::units::Rate;

/// Checks that tables are written as tables, because the types would also accept lists of values.
pub(super) fn check_form(file: &MachineDocument) -> Result<(), MachineError> {
    for (path, form) in [
        ("rail", ValueForm::Tables),
        ("bus", ValueForm::Tables),
        ("level", ValueForm::Tables),
        ("host", ValueForm::Table("[host], once")),
        ("local", ValueForm::Table("[local], once")),
        ("local.transfers", ValueForm::Tables),
        ("local.reads", ValueForm::Tables),
        ("local.writes", ValueForm::Tables),
        ("local.unaided", ValueForm::Tables),
        ("host.copies", ValueForm::Tables),
        ("multicast", ValueForm::Table("[multicast], once")),
        ("file", ValueForm::Table("[file], once")),
        ("scheduler", ValueForm::Table("[scheduler], once")),
        ("copies", ValueForm::Table("[copies], once")),
        ("copies.line", ValueForm::Table("{ shared = MICROSECONDS, apart = MICROSECONDS }")),
        ("copies.rewrite", ValueForm::Table("{ shared = MICROSECONDS, apart = MICROSECONDS }")),
        (
            "copies.rewrite_asked",
            ValueForm::Table("{ shared = MICROSECONDS, apart = MICROSECONDS }"),
        ),
        (
            "copies.rewrite_returned",
            ValueForm::Table("{ shared = MICROSECONDS, apart = MICROSECONDS }"),
        ),
        ("copies.fetch_pages", ValueForm::Table("{ shared = MB/S, apart = MB/S }")),
        ("copies.cma_fetch", ValueForm::Table("{ shared = MB/S, apart = MB/S }")),
        ("copies.fetch", ValueForm::Table("{ shared = MB/S, apart = MB/S }")),
        ("evidence", ValueForm::Table("[evidence], once")),
        ("rail.burst", ValueForm::Table("{ messages = COUNT, gap = MICROSECONDS }")),
        ("rail.bucket", ValueForm::Table("{ bytes = COUNT, line = MB/S }")),
        (
            "rail.receive",
            ValueForm::Table("{ descriptor = MICROSECONDS, matching = MICROSECONDS }"),
        ),
    ] {
        file.expect(path, form)?;
    }
    for operation in ["write", "second", "read", "atomic", "send"] {
        let form = ValueForm::Table("{ overhead = MICROSECONDS, latency = MICROSECONDS }");
        file.expect(&format!("rail.{operation}"), form)?;
    }
    Ok(())
}

/// Checks conditions that the types cannot express. Errors name the line of the file.
pub(super) fn check(machine: &Machine, file: &MachineDocument) -> Result<(), MachineError> {
    if machine.rail.is_empty() {
        return Err(file.error_at("rail", "no rail; a machine needs a [[rail]] or more".into()));
    }
    buses(machine, file)?;
    rails(machine, file)?;
    levels(machine, file)?;
    transfers("local.transfers", &machine.local.transfers, file)?;
    transfers("local.reads", &machine.local.reads, file)?;
    transfers("local.writes", &machine.local.writes, file)?;
    transfers("local.unaided", &machine.local.unaided, file)?;
    transfers("host.copies", &machine.host.copies, file)?;
    if machine.scheduler.slice.0 == 0 {
        let problem = "a time slice of 0; it must be above 0 us";
        return Err(file.error_at("scheduler.slice", problem.into()));
    }
    evidence(machine, file)
}

fn buses(machine: &Machine, file: &MachineDocument) -> Result<(), MachineError> {
    let names: Vec<&str> = machine.bus.iter().map(|bus| bus.name.as_str()).collect();
    for (at, rail) in machine.rail.iter().enumerate() {
        if let Some(bus) = rail.bus.as_deref().filter(|bus| !names.contains(bus)) {
            let known =
                if names.is_empty() { "no [[bus]] at all".into() } else { names.join(", ") };
            let problem = format!("no bus `{bus}`; the file has: {known}");
            return Err(file.error_at(&format!("rail.{at}.bus"), problem));
        }
    }
    for (at, bus) in machine.bus.iter().enumerate() {
        let name = &bus.name;
        if names[..at].contains(&name.as_str()) {
            let problem = format!("a second bus `{name}`; each needs a name of its own");
            return Err(file.error_at(&format!("bus.{at}.name"), problem));
        }
        if !machine.rail.iter().any(|rail| rail.bus.as_ref() == Some(name)) {
            let problem = format!("no rail is on bus `{name}`; say bus = \"{name}\" in a [[rail]]");
            return Err(file.error_at(&format!("bus.{at}.name"), problem));
        }
        if bus.out.is_none() && bus.into.is_none() && bus.both.is_none() {
            let problem = format!("bus `{name}` limits nothing; give it out, in or both, in MB/s");
            return Err(file.error_at(&format!("bus.{at}.name"), problem));
        }
    }
    Ok(())
}

fn levels(machine: &Machine, file: &MachineDocument) -> Result<(), MachineError> {
    for (at, pair) in machine.level.windows(2).enumerate() {
        let (near, far) = (&pair[0], &pair[1]);
        let (name, least, count) = (far.name.as_str(), near.processors.0, far.processors.0);
        if near.name >= far.name {
            let problem = format!("`{name}` is not farther than the level before it");
            return Err(file.error_at(&format!("level.{}.name", at + 1), problem));
        }
        if count <= least || !count.is_multiple_of(least) {
            let problem =
                format!("{count} processors in groups of {least}; whole groups, 2 or more");
            return Err(file.error_at(&format!("level.{}.processors", at + 1), problem));
        }
    }
    let (each, at) = (machine.ranks_per_node.0, machine.level.len().saturating_sub(1));
    if let Some(last) = machine.level.last().filter(|last| last.processors.0 < each) {
        let problem = format!("{} processors for {each} ranks of a node", last.processors.0);
        return Err(file.error_at(&format!("level.{at}.processors"), problem));
    }
    Ok(())
}

/// Checks that the transfers of the list at `path` are longer and longer, and none takes less time than the transfer before it.
fn transfers(
    path: &str,
    list: &[MeasuredTransfer],
    file: &MachineDocument,
) -> Result<(), MachineError> {
    for (at, pair) in list.windows(2).enumerate() {
        let (short, long) = (pair[0], pair[1]);
        if long.bytes <= short.bytes || long.time < short.time {
            let problem = format!(
                "{} bytes in {} us after {} bytes in {} us; longer and longer transfers, none of which takes less time",
                long.bytes,
                long.time.us(),
                short.bytes,
                short.time.us()
            );
            return Err(file.error_at(&format!("{path}.{}", at + 1), problem));
        }
    }
    Ok(())
}

fn rails(machine: &Machine, file: &MachineDocument) -> Result<(), MachineError> {
    for (at, rail) in machine.rail.iter().enumerate() {
        let mtu = rail.mtu.0;
        if rail.inline > mtu {
            let problem = format!("inline {} above the MTU; at most {mtu}", rail.inline);
            return Err(file.error_at(&format!("rail.{at}.inline"), problem));
        }
        if let Some(burst) = rail.burst.filter(|burst| burst.gap < rail.gap_in) {
            let (gap, least) = (burst.gap.us(), rail.gap_in.us());
            let problem = format!("gap {gap} us after a burst; at least gap_in, {least} us");
            return Err(file.error_at(&format!("rail.{at}.burst.gap"), problem));
        }
        // A slower line takes longer for any number of bytes.
        let mib = |rate: Rate| rate.time(1 << 20);
        if mib(rail.line()) > mib(rail.bandwidth) {
            let problem = "a line slower than the rail's bandwidth; at least as fast";
            return Err(file.error_at(&format!("rail.{at}.bucket.line"), problem.into()));
        }
        // A datagram is one packet, so its payload is limited by the MTU.
        if let Some(largest) = machine.multicast.as_ref().map(|m| m.largest.0).filter(|l| *l > mtu)
        {
            let problem = format!("multicast of {largest} bytes; at most the rails' MTU, {mtu}");
            return Err(file.error_at("multicast.largest", problem));
        }
        if let Some(largest) =
            machine.multicast.as_ref().map(|m| m.largest.0).filter(|&largest| largest > SEND_MAX)
        {
            let problem = format!("multicast of {largest} bytes; at most {SEND_MAX}");
            return Err(file.error_at("multicast.largest", problem));
        }
    }
    Ok(())
}

fn evidence(machine: &Machine, file: &MachineDocument) -> Result<(), MachineError> {
    let evidence = &machine.evidence;
    let mut before: Vec<&String> = Vec::new();
    let lists = [
        ("fitted", &evidence.fitted),
        ("informed", &evidence.informed),
        ("entailed", &evidence.entailed),
        ("by_construction", &evidence.by_construction),
        ("held_out", &evidence.held_out),
    ];
    for (name, list) in lists {
        for (at, row) in list.iter().enumerate() {
            if before.contains(&row) {
                let problem = format!(
                    "`{row}` a second time; a value is fitted, informed, entailed, by construction or held out, once"
                );
                return Err(file.error_at(&format!("evidence.{name}.{at}"), problem));
            }
            before.push(row);
        }
    }
    if evidence.assumed.is_empty() {
        return Ok(());
    }
    let known = file.numbers();
    for (at, path) in evidence.assumed.iter().enumerate() {
        if !known.contains(path) {
            let problem = format!("no number `{path}`; there are: {}", known.join(", "));
            return Err(file.error_at(&format!("evidence.assumed.{at}"), problem));
        }
    }
    Ok(())
}
