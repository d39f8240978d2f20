//! Mistakes in a machine file: each is an error with the file, the line and the allowed values.

use weft_fabric_sim::machine::Machine;

/// A file without a mistake; the lines are counted in the table below.
const GOOD: &str = r#"name = "test"
about = "a file to break"
nodes = 4
ranks_per_node = 2

[host]
copy = 1000
reduce = 1000

[[rail]]
bus = "slot"
bandwidth = 1000
mtu = 2048
inline = 64
gap_in = 0.1
burst = { messages = 8, gap = 0.5 }
write = { overhead = 0.5, latency = 2 }
second = { overhead = 0.1, latency = 0.1 }
read = { overhead = 0.5, latency = 4 }
atomic = { overhead = 0.5, latency = 4 }
send = { overhead = 0.5, latency = 2 }
receive = { matching = 0.25 }

[[bus]]
name = "slot"
both = 1500

[local]
overhead = 0.1
latency = 0.2
bandwidth = 10000

[multicast]
overhead = 0.5
latency = 3
loss = 0.01
largest = 2048

[scheduler]
policy = "fifo"
slice = 100

[evidence]
fitted = ["a; b"]
held_out = ["c; d"]
assumed = ["rail.gap_in"]
"#;

#[test]
fn the_file_is_good_before_it_is_broken() {
    let machine = Machine::parse("good.toml", GOOD).unwrap();
    assert_eq!((machine.nodes.0, machine.ranks_per_node.0), (4, 2));
}

#[test]
fn each_mistake_is_named_with_file_line_and_what_is_allowed() {
    // Text to replace, its replacement, then the line and words of the error.
    let mistakes: &[(&str, &str, usize, &[&str])] = &[
        // Not TOML.
        ("copy = 1000", "copy 1000", 7, &["="]),
        ("[host]", "[host", 6, &["]"]),
        ("nodes = 4", "nodes = 4\nnodes = 5", 4, &["duplicate key"]),
        ("latency = 0.2", "latency = 0.2us", 30, &["not TOML", "float"]),
        // Keys.
        ("copy = 1000", "cpy = 1000", 7, &["`cpy`", "`copy`", "`reduce`"]),
        ("gap_in = 0.1", "gapin = 0.1", 15, &["`gapin`", "`gap_in`"]),
        ("latency = 2 }\nsecond", "latncy = 2 }\nsecond", 17, &["`latncy`", "`latency`"]),
        ("[local]", "[locl]", 28, &["`locl`", "`local`"]),
        ("mtu = 2048\n", "", 10, &["`mtu`", "README"]),
        ("nodes = 4\n", "", 1, &["`nodes`"]),
        ("largest = 2048\n", "", 33, &["`largest`"]),
        // Types.
        ("copy = 1000", "copy = \"fast\"", 7, &["\"fast\"", "MB/s"]),
        ("nodes = 4", "nodes = true", 3, &["true", "whole number"]),
        ("gap_in = 0.1", "gap_in = [0.1]", 15, &["sequence", "microseconds"]),
        (
            "write = { overhead = 0.5, latency = 2 }",
            "write = 2.5",
            17,
            &["`rail.write` is a table", "overhead"],
        ),
        ("[host]", "[[host]]", 6, &["`host` is a table", "once"]),
        ("{ matching = 0.25 }", "[0.1, 0.25]", 22, &["`rail.receive`", "matching = MICROSECONDS"]),
        ("[[bus]]", "[bus]", 24, &["`bus` is a list", "[[bus]]"]),
        // Ranges.
        ("nodes = 4", "nodes = 0", 3, &["`0`", "1 to 1000000"]),
        ("nodes = 4", "nodes = 2.5", 3, &["2.5", "whole number"]),
        ("ranks_per_node = 2", "ranks_per_node = 0", 4, &["`0`", "1 to 1000000"]),
        ("copy = 1000", "copy = 0", 7, &["0.001 to 1e9"]),
        ("reduce = 1000", "reduce = -5", 8, &["`-5`", "0.001 to 1e9"]),
        ("gap_in = 0.1", "gap_in = -0.1", 15, &["-0.1", "0 to 1e9"]),
        ("gap_in = 0.1", "gap_in = nan", 15, &["NaN", "0 to 1e9"]),
        ("mtu = 2048", "mtu = 0", 13, &["`rail.mtu`", "`0`", "1 to 1000000"]),
        ("inline = 64", "inline = -1", 14, &["`-1`", "0 to 1000000"]),
        ("gap = 0.5", "gap = -1", 16, &["`rail.burst.gap`", "`-1`", "0 to 1e9"]),
        (
            "inline = 64",
            "inline = 64\nbucket = { bytes = 4000, line = 999 }",
            15,
            &["a line slower", "at least as fast"],
        ),
        ("inline = 64", "inline = 64\nbucket = { bytes = 0, line = 1 }", 15, &["`0`", "1 to"]),
        ("inline = 64", "inline = 64\nbucket = 9", 15, &["{ bytes = COUNT, line = MB/S }"]),
        ("messages = 8", "messages = 0", 16, &["`0`", "1 to 1000000"]),
        ("loss = 0.01", "loss = 1.5", 36, &["`multicast.loss`", "1.5", "from 0 to 1"]),
        ("policy = \"fifo\"", "policy = \"fair\"", 40, &["`fair`", "`round-robin`"]),
        ("slice = 100", "slice = 0", 41, &["above 0"]),
        // Values that do not fit together.
        ("bus = \"slot\"", "bus = \"slt\"", 11, &["no bus `slt`", "slot"]),
        ("bus = \"slot\"\n", "", 24, &["no rail is on bus `slot`"]),
        ("both = 1500", "", 25, &["`slot`", "out, in or both"]),
        ("[[bus]]\nname = \"slot\"\nboth = 1500", "", 11, &["no bus `slot`", "no [[bus]]"]),
        ("inline = 64", "inline = 4096", 14, &["4096", "at most 2048"]),
        ("gap = 0.5", "gap = 0.05", 16, &["0.05", "at least gap_in, 0.1"]),
        ("largest = 2048", "largest = 4096", 37, &["4096", "2048"]),
        (
            "both = 1500",
            "both = 1500\n[[bus]]\nname = \"slot\"\nout = 1",
            28,
            &["second bus `slot`"],
        ),
        (
            "latency = 0.2",
            "latency = 0.2\ntransfers = [\n{ bytes = 9, time = 2 },\n{ bytes = 9, time = 3 }]",
            33,
            &["9 bytes in 3 us", "longer and longer"],
        ),
        (
            "latency = 0.2",
            "latency = 0.2\ntransfers = [\n{ bytes = 9, time = 2 },\n{ bytes = 10, time = 1 }]",
            33,
            &["10 bytes in 1 us", "less time"],
        ),
        ("latency = 0.2", "latency = 0.2\ntransfers = [9]", 31, &["`local.transfers` is a list"]),
        // Evidence.
        ("[\"c; d\"]", "[\"c; d\", \"a; b\"]", 45, &["`a; b`", "once"]),
        ("[\"c; d\"]", "[\n\"c; d\",\n\"c; d\"]", 47, &["`c; d`", "once"]),
        ("[\"c; d\"]", "[\"c; d\"]\ninformed = [\"a; b\"]", 46, &["`a; b`", "informed", "once"]),
        ("[\"c; d\"]", "[\"c; d\"]\nentailed = [\"a; b\"]", 46, &["`a; b`", "entailed", "once"]),
        (
            "[\"c; d\"]",
            "[\"c; d\"]\nby_construction = [\"e; f\", \"e; f\"]",
            46,
            &["`e; f`", "once"],
        ),
        ("\"rail.gap_in\"", "\"rail.gapin\"", 46, &["`rail.gapin`", "rail.gap_in"]),
        ("\"rail.gap_in\"", "\n\"host.call\"", 47, &["`host.call`", "host.copy"]),
    ];
    for (replace, by, line, words) in mistakes {
        assert_eq!(GOOD.matches(replace).count(), 1, "{replace} is not once in the good file");
        let broken = GOOD.replace(replace, by);
        let Err(error) = Machine::parse("broken.toml", &broken) else {
            panic!("{by} for {replace} is taken")
        };
        let message = error.to_string();
        println!("{message}");
        let place = format!("broken.toml:{line}: ");
        assert!(message.starts_with(&place), "{by} for {replace}: {message}; not {place}");
        for word in *words {
            assert!(message.contains(word), "{by} for {replace}: {message}; no {word}");
        }
    }
}

#[test]
fn a_machine_without_rails_is_none() {
    let start = GOOD.find("[[rail]]").unwrap();
    let end = GOOD.find("[local]").unwrap();
    let without = format!("{}{}", &GOOD[..start], &GOOD[end..]);
    let error = Machine::parse("m.toml", &without).unwrap_err().to_string();
    assert!(error.starts_with("m.toml:1: missing field `rail`"), "{error}");
    let empty = without.replace("nodes = 4", "nodes = 4\nrail = []");
    let error = Machine::parse("m.toml", &empty).unwrap_err().to_string();
    assert!(error.starts_with("m.toml:4: no rail"), "{error}");
}

#[test]
fn a_machine_that_cannot_be_found_is_named_with_those_there_are() {
    let error = Machine::load("kini3").unwrap_err().to_string();
    for word in ["kini3", "kini1", "loggp", "path"] {
        assert!(error.contains(word), "{error}");
    }
    let error = Machine::load("no/such.toml").unwrap_err().to_string();
    assert!(error.starts_with("no/such.toml: "), "{error}");
}

#[test]
fn a_file_cut_anywhere_is_an_error_at_a_line_of_it() {
    let end = GOOD.find("[multicast]").unwrap();
    for cut in 0..end {
        match Machine::parse("cut.toml", &GOOD[..cut]) {
            Ok(_) => assert!(cut >= GOOD.find("bandwidth = 10000").unwrap(), "cut at {cut}"),
            Err(error) => {
                let lines = GOOD[..cut].matches('\n').count() + 1;
                let line = error.line.unwrap_or_else(|| panic!("{error}: no line"));
                assert!((1..=lines).contains(&line), "{error}: of {lines} lines");
            }
        }
    }
}

#[test]
fn numbers_are_varied_as_toml_writes_them_and_lines_end_as_files_do() {
    let text = GOOD.replace("copy = 1000", "copy = 1_000").replace("mtu = 2048", "mtu = 0x800");
    let vary = |text: &str, path, factor| Machine::parse_varied("m.toml", text, path, factor);
    let copy = |machine: Machine| machine.host.copy.time(1_000_000);
    assert_eq!(copy(vary(&text, "host.copy", 2.0).unwrap()), 500_000_000);
    assert_eq!(vary(&text, "rail.mtu", 2.0).unwrap().rail[0].mtu.0, 4096);
    let broken = GOOD.replace("mtu = 2048", "mtu = 0").replace('\n', "\r\n");
    assert_eq!(Machine::parse("m.toml", &broken).unwrap_err().line, Some(13));
}

#[test]
fn the_manual_has_every_key() {
    let manual = include_str!("../../../../machines/README.md");
    for table in [
        "",
        "host.",
        "rail.",
        "rail.write.",
        "rail.burst.",
        "rail.bucket.",
        "rail.receive.",
        "bus.",
    ]
    .iter()
    .chain(&["local.", "multicast.", "scheduler."])
    {
        // The error for an unknown key lists all known keys.
        let error = Machine::parse_with("m.toml", GOOD, &[(format!("{table}none"), "1".into())]);
        let problem = error.unwrap_err().problem;
        let (_, keys) = problem.split_once("expected ").unwrap();
        let keys: Vec<_> = keys.split('`').skip(1).step_by(2).collect();
        assert!(keys.len() >= 2, "{problem}");
        for key in keys {
            let known = |c: char| !c.is_alphanumeric() && c != '_';
            assert!(
                manual.split(known).any(|word| word == key),
                "{table}{key} is not in README.md"
            );
        }
    }
}
