//! Machine files: each one parses, is honest about its numbers, and can be varied. Every mistake in a machine file is an error
//! that names the line.

use std::collections::HashMap;
use std::rc::Rc;
use weft_fabric::Fabric;
use weft_fabric_sim::machine::{EvidenceRole, Machine, NAMES, SchedulerPolicy};
use weft_fabric_sim::{Cluster, SimOptions};
use weft_intranode::CostTable;

fn all() -> Vec<Machine> {
    NAMES.iter().map(|(name, _)| Machine::load(name).unwrap_or_else(|e| panic!("{e}"))).collect()
}

fn text(name: &str) -> &'static str {
    NAMES.iter().find(|(known, _)| *known == name).unwrap().1
}

#[test]
fn every_file_parses_and_has_its_own_name() {
    for (machine, (name, _)) in all().iter().zip(NAMES) {
        assert_eq!(machine.name, *name);
        assert!(!machine.about.is_empty(), "{name} says nothing about itself");
    }
}

/// Splits one line of CSV into fields. A field in quotes may hold commas.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => fields.last_mut().unwrap().push(c),
        }
    }
    fields
}

/// Reads the rows of `published.csv`: paper, where, quantity, configuration, value, unit. If the document has a word of degree,
/// the row also has the number that the word stands for and the reason.
fn published() -> Vec<Vec<String>> {
    let text = include_str!("../../../../figures/published.csv");
    let mut lines = text.lines().map(fields);
    let header = lines.next().unwrap();
    let facts = ["paper", "where", "quantity", "configuration", "value", "unit"];
    assert_eq!(header, [&facts[..], &["threshold", "why"]].concat());
    let rows: Vec<_> = lines.collect();
    for row in &rows {
        assert!(row.len() == 8 && row[..6].iter().all(|field| !field.is_empty()), "{row:?}");
        assert_eq!(row[6].is_empty(), row[7].is_empty(), "a threshold has a reason: {row:?}");
    }
    rows
}

#[test]
fn every_published_number_has_one_role_in_one_file() {
    let (machines, rows) = (all(), published());
    let mut entries = HashMap::new();
    for machine in &machines {
        let evidence = &machine.evidence;
        for entry in evidence.lists().iter().flat_map(|(_, list)| list.iter()) {
            let key = (evidence.paper.clone(), entry.clone());
            let before = entries.insert(key, &machine.name);
            assert_eq!(before, None, "{entry} is in two files or twice in {}", machine.name);
        }
    }
    assert_eq!(entries.len(), rows.len(), "as many entries as rows");
    let mut shares: HashMap<&str, (usize, usize)> = HashMap::new();
    for row in &rows {
        let [paper, place, quantity, configuration, ..] = &row[..] else { unreachable!() };
        let role = |m: &Machine| m.evidence.role(paper, place, quantity, configuration);
        let roles: Vec<EvidenceRole> = machines.iter().filter_map(role).collect();
        let [role] = roles[..] else { panic!("{row:?} is in {} machine files", roles.len()) };
        let share = shares.entry(paper).or_default();
        share.0 += usize::from(role == EvidenceRole::Fitted);
        share.1 += 1;
    }
    assert!(shares.len() > 1, "several documents: {shares:?}");
    for (paper, (fitted, rows)) in shares {
        assert!(fitted * 2 <= rows, "{paper}: {fitted} of {rows} fitted; at most half");
    }
}

#[test]
fn two_rows_that_differ_in_their_section_alone_are_told_apart() {
    let mut evidence = Machine::load("fence").unwrap().evidence;
    let place = "Halo Communication Pattern";
    let row = format!("{place}; fastest design; 64 nodes");
    evidence.informed.retain(|entry| *entry != row);
    evidence.fitted.push(row);
    let role = |place| evidence.role("Fence", place, "fastest design", "64 nodes");
    assert_eq!(role(place), Some(EvidenceRole::Fitted));
    assert_eq!(role("Latency of Fence (Zero-put)"), Some(EvidenceRole::HeldOut));
    assert_eq!(role("Overlap"), None);
    assert_eq!(evidence.role("Kini", place, "fastest design", "64 nodes"), None);
}

#[test]
fn every_assumed_number_exists_and_can_be_varied() {
    for (name, _) in NAMES {
        let machine = Machine::load(name).unwrap();
        let plain = format!("{machine:?}");
        for path in &machine.evidence.assumed {
            for factor in [0.7, 1.3] {
                let varied = Machine::load_varied(name, path, factor);
                let varied = varied.unwrap_or_else(|e| panic!("{path} x {factor}: {e}"));
                assert_ne!(format!("{varied:?}"), plain, "{name}: {path} x {factor}: no change");
            }
        }
    }
}

#[test]
fn the_bases_that_kini_gives_are_met() {
    let machine = Machine::load("kini1").unwrap();
    let (host, rail) = (&machine.host, &machine.rail[0]);
    let multicast = machine.multicast.as_ref().unwrap();
    let write = rail.write.overhead.0 + rail.write.latency.0 + host.poll.0;
    assert_eq!(write, 5_800_000);
    let one = multicast.overhead.0 + multicast.latency.0 + multicast.receive.0;
    assert_eq!(one, 9_600_000);
    let seven = one + 6 * multicast.member.0;
    assert!(seven.abs_diff(9_800_000) < 1000, "{seven} ps to 7 nodes");
    assert_eq!(host.entry.0, 500_000);
}

#[test]
fn varying_multiplies_one_number_in_all_rails_or_in_one() {
    let vary = |path, factor| Machine::parse_varied("ia32.toml", text("ia32"), path, factor);
    let gaps = |path, factor| {
        let machine = vary(path, factor).unwrap();
        [0, 1].map(|rail| machine.rail[rail].gap_out.0)
    };
    assert_eq!(gaps("rail.gap_out", 0.5), [300_000, 300_000]);
    assert_eq!(gaps("rail.1.gap_out", 0.5), [600_000, 300_000]);
    // A number of bytes stays a whole number.
    assert_eq!(vary("rail.mtu", 1.3).unwrap().rail[0].mtu.0, 2662);

    let error = vary("rail.gap", 1.3).unwrap_err();
    assert_eq!((error.file.as_str(), error.line), ("ia32.toml", None));
    for word in ["`rail.gap`", "rail.gap_in", "rail.write.overhead", "bus.both"] {
        assert!(error.problem.contains(word), "{error}");
    }
    for factor in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = vary("rail.gap_out", factor).unwrap_err();
        assert!(error.problem.contains("not above 0"), "{error}");
    }
    // A value that a factor makes impossible keeps its line.
    let error = vary("nodes", 0.1).unwrap_err();
    let line = text("ia32").lines().position(|line| line.starts_with("nodes")).unwrap() + 1;
    assert_eq!(error.line, Some(line), "{error}");
}

#[test]
fn other_values_can_be_set() {
    let set = |changes: &[(&str, &str)]| Machine::load_with("ia32", changes);
    let machine = set(&[
        ("rail.gap_in", "0.5"),
        ("rail.1.gap_in", "0.75"),
        ("scheduler.policy", "fifo"),
        ("host.poll", "0.25"),
        ("nodes", "16"),
    ])
    .unwrap();
    assert_eq!([0, 1].map(|rail| machine.rail[rail].gap_in.0), [500_000, 750_000]);
    assert_eq!(machine.scheduler.policy, SchedulerPolicy::Fifo);
    assert_eq!(machine.host.poll.0, 250_000);
    assert_eq!(machine.nodes.0, 16);
    // A value that the file does not have can be set, too.
    let machine = Machine::load_with("loggp", &[("rail.gap_in", "3")]).unwrap();
    assert_eq!(machine.rail[0].gap_in.0, 3_000_000);
}

#[test]
fn a_value_that_is_set_wrong_is_named_with_the_line_it_replaces() {
    let line_of = |start: &str| {
        Some(text("ia32").lines().position(|line| line.starts_with(start)).unwrap() + 1)
    };
    for (path, value, line, say) in [
        ("host.copy", "-1", line_of("copy"), "0.001 to 1e9"),
        ("host.copy", "fast", line_of("copy"), "\"fast\""),
        ("host.cpy", "1", line_of("[host]"), "unknown field `cpy`, expected one of `copy`"),
        ("rail.bus", "pci", line_of("bus = "), "no bus `pci`; the file has: pci-x 1, pci-x 2"),
        ("multicast.loss", "0.1", Some(1), "missing field"),
        ("rail.2.gap_in", "1", None, "rail.gap_in"),
        ("host.copy.a", "1", None, "no such table"),
        ("evidence.paper", "Mine", None, "cannot set"),
        ("rail..gap_in", "1", None, "cannot set"),
    ] {
        let error = Machine::load_with("ia32", &[(path, value)]).unwrap_err();
        assert_eq!(error.line, line, "{path} = {value}: {error}");
        assert!(error.problem.contains(say), "{error}");
        assert!(error.problem.contains(&format!("{path} = {value}")), "{error}");
    }
}

#[test]
fn copies_within_a_node_cost_what_the_file_says() {
    let plain = Machine::load("loggp").unwrap();
    assert_eq!(plain.copies.model(), CostTable::default().model());
    let ndr = Rc::new(Machine::load("ndr").unwrap());
    let model = ndr.copies.model();
    assert_eq!((model.line.apart, model.switch, model.private), (180.0, 1500.0, 1 << 20));
    // Every rank has this model.
    let cluster = Cluster::new(&ndr, SimOptions::new(2)).unwrap();
    assert!((0..2).all(|rank| *cluster.rank(rank).copies().model() == model));
    for (path, value, line, say) in [
        ("copies.cached", "0", "cached", "a rate in MB/s"),
        ("copies.switch", "-1", "switch = 1.5", "a time in microseconds"),
        ("copies.line", "0.1", "line", "{ shared = MICROSECONDS, apart = MICROSECONDS }"),
        ("copies.line.far", "0.1", "line", "unknown field `far`"),
        ("copies.lines", "1", "[copies]", "unknown field `lines`"),
    ] {
        let error = Machine::load_with("ndr", &[(path, value)]).unwrap_err();
        let place = text("ndr").lines().position(|text| text.starts_with(line)).unwrap() + 1;
        assert!(error.problem.contains(say), "{error}");
        assert_eq!(error.line, Some(place), "{error}");
    }
    let error = Machine::load_with("loggp", &[("copies", "[1]")]).unwrap_err();
    assert!(error.problem.contains("[copies], once"), "{error}");
}
