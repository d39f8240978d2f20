//! `weft sim` as a user runs it.
#![cfg(not(miri))]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

fn weft(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weft")).arg("sim").args(args).output().expect("weft runs")
}

/// Returns the output of a run that succeeds.
fn printed(args: &[&str]) -> String {
    let output = weft(args);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.is_empty(), "{args:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the error of a run that is refused and prints nothing else.
fn refused(args: &[&str]) -> String {
    let output = weft(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    assert!(output.stdout.is_empty(), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Returns the table's head, unit and rows, split at blanks.
fn table(args: &[&str]) -> (String, String, Vec<Vec<String>>) {
    let text = printed(args);
    let lines: Vec<&str> = text.lines().collect();
    let head = lines.iter().position(|line| line.is_empty()).expect("a title, then the table") + 1;
    let cells = |line: &&str| line.split_whitespace().map(str::to_owned).collect();
    let rows = lines[head + 2..].iter().map(cells).collect();
    let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    (squeeze(lines[head]), squeeze(lines[head + 1]), rows)
}

/// Returns an empty directory.
fn scratch(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("sim").join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// Overheads and latency of machines/loggp.toml, and its time for a byte, in microseconds.
const SEND: f64 = 0.5;
const LATENCY: f64 = 2.0;
const RECEIVE: f64 = 0.25;
const BYTE: f64 = 0.001;

/// Returns the time of one message.
fn hop(bytes: f64) -> f64 {
    SEND + LATENCY + bytes * BYTE + RECEIVE
}

#[test]
fn barriers_take_their_rounds() {
    let (head, unit, rows) = table(&[
        "barrier",
        "--machine",
        "loggp",
        "--ranks",
        "2..1024x2",
        "--algorithm",
        "MPI-PE,MPI-DS",
    ]);
    assert_eq!((head.as_str(), unit.as_str()), ("ranks MPI-PE MPI-DS", "us us"));
    assert_eq!(rows.len(), 10);
    for (row, rounds) in rows.iter().zip(1..) {
        let time = format!("{:.3}", f64::from(rounds) * hop(0.0));
        assert_eq!(*row, [(1 << rounds).to_string(), time.clone(), time]);
    }
    // If there is no power of two, there are as many rounds as for the next power.
    let args = ["barrier", "--machine", "loggp", "--ranks", "5,9", "--algorithm", "mpi-ds"];
    let (_, _, rows) = table(&args);
    assert_eq!(rows, [["5", "8.250"], ["9", "11.000"]]);
}

#[test]
fn other_patterns_take_their_formulas() {
    let first = |args: &[&str]| {
        let all = [args, &["--machine", "loggp"]].concat();
        let (_, _, rows) = table(&all);
        rows.into_iter().map(|row| row[1].clone()).collect::<Vec<_>>()
    };
    let us = |times: &[f64]| times.iter().map(|t| format!("{t:.3}")).collect::<Vec<_>>();
    let ping_pong = first(&["ping-pong", "--ranks", "2", "--bytes", "0,8,1024,4096"]);
    assert_eq!(ping_pong, us(&[hop(0.0), hop(8.0), hop(1024.0), hop(4096.0)]));
    // Along the longest branch, every rank forwards at once.
    let bcast =
        first(&["bcast", "--ranks", "2,4,8", "--bytes", "8", "--algorithm", "MPI-BINOMIAL"]);
    assert_eq!(bcast, us(&[hop(8.0), 2.0 * hop(8.0), 3.0 * hop(8.0)]));
    // All messages come at once, and the root receives them one after the other.
    let fan_in = first(&["fan-in", "--ranks", "2,4,8", "--bytes", "8"]);
    let all = |senders: f64| hop(8.0) + (senders - 1.0) * RECEIVE;
    assert_eq!(fan_in, us(&[all(1.0), all(3.0), all(7.0)]));
    // A flag is a word without matching, and without contention it waits nowhere.
    let word = SEND + LATENCY + 8.0 * BYTE;
    assert_eq!(first(&["fabric-write", "--ranks", "2", "--bytes", "0"]), us(&[word]));
    assert_eq!(first(&["fabric-fan-in", "--fan-in", "7", "--bytes", "0"]), us(&[word]));
    assert_eq!(first(&["fabric-send", "--ranks", "2", "--bytes", "8"]), us(&[word]));
}

/// `auto` chooses by the map of the machine, as the library and `weft explain` do.
#[test]
fn the_library_s_choice_is_by_the_map() {
    for (pattern, bytes, machine, algorithm) in [
        ("bcast", "65536", "ndr", "MULTICAST:8192"),
        ("allgather", "8", "ndr", "RDS:4"),
        ("alltoall", "8", "ndr", "RDS:4"),
        ("allreduce", "1024", "collgm", "RPE"),
    ] {
        let both = format!("auto,{algorithm}");
        let ranks = if machine == "ndr" { "16" } else { "8" };
        let args = ["--machine", machine, "--ranks", ranks, "--bytes", bytes, "--algorithm", &both];
        let (_, _, rows) = table(&[&[pattern][..], &args].concat());
        assert_eq!(rows[0][1], rows[0][2], "{pattern} on {machine}");
    }
}

#[test]
fn series_go_across() {
    let args = [
        "allreduce",
        "--machine",
        "loggp",
        "--ranks",
        "2,4",
        "--bytes",
        "8,1000",
        "--algorithm",
        "MPI-PE,MPI-GB",
    ];
    let (head, unit, rows) = table(&args);
    assert_eq!(head, "ranks MPI-PE 8 B MPI-PE 1000 B MPI-GB 8 B MPI-GB 1000 B");
    assert_eq!(unit, "us us us us");
    let times = |log: f64| [log * hop(8.0), log * hop(1000.0)].map(|t| format!("{t:.3}"));
    assert_eq!(rows[0][..3], ["2".to_owned(), times(1.0)[0].clone(), times(1.0)[1].clone()]);
    assert_eq!(rows[1][..3], ["4".to_owned(), times(2.0)[0].clone(), times(2.0)[1].clone()]);
    let args = ["fan-in", "--machine", "loggp", "--ranks", "8", "--fan-in", "1,7"];
    let (head, _, rows) = table(&args);
    assert_eq!(head, "ranks fan-in 1 fan-in 7");
    assert_eq!(rows, [["8", "2.758", "4.258"]]);
    // One number of ranks and several payloads: payloads go down.
    let args = ["bandwidth", "--machine", "loggp", "--ranks", "2", "--bytes", "8,1000"];
    let (head, unit, rows) = table(&args);
    assert_eq!((head.as_str(), unit.as_str()), ("bytes one-way", "MB/s"));
    assert_eq!((rows[0][0].as_str(), rows[1][0].as_str()), ("8", "1000"));
}

#[test]
fn parameters_of_the_machine_are_changed() {
    let args = ["barrier", "--machine", "loggp", "--ranks", "4", "--algorithm", "MPI-DS", "--set"];
    let change = [&args[..], &["rail.send.latency=3", "--set", "rail.receive.matching=0"]].concat();
    let (_, _, rows) = table(&change);
    assert_eq!(rows, [["4", "7.000"]]);
    let title = printed(&change);
    let named =
        "barrier, MPI-DS on loggp, 4 ranks with rail.send.latency = 3, rail.receive.matching = 0";
    assert_eq!(title.lines().next(), Some(named));
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let dir = scratch("seed");
    let run = |seed: &str, number: usize| {
        let (csv, svg) = (dir.join(format!("{number}.csv")), dir.join(format!("{number}.svg")));
        let args = ["allreduce", "--machine", "kini2", "--ranks", "5,16", "--bytes", "256"];
        let noise = ["--jitter", "2.5", "--seed", seed, "--isolated"];
        let files = ["--csv", csv.to_str().unwrap(), "--timeline", svg.to_str().unwrap()];
        let text = printed(&[&args[..], &noise, &files].concat());
        let table = text.lines().take_while(|line| !line.starts_with("timeline"));
        let table: Vec<_> = table.map(str::to_owned).collect();
        (table, fs::read(csv).unwrap(), fs::read(svg).unwrap())
    };
    let (first, second, other) = (run("7", 1), run("7", 2), run("8", 3));
    assert_eq!(first, second);
    assert!(first.1 != other.1 && first.2 != other.2, "another seed is another run");
}

#[test]
fn the_csv_file_has_a_line_a_run() {
    let file = scratch("csv").join("figures.csv");
    let changes = ["--set", "rail.fetch=1", "--set", "host.poll=0"];
    let args =
        ["fan-in", "--machine", "loggp", "--ranks", "4,8", "--fan-in", "1,3", "--repeat", "2"];
    printed(&[&args[..], &["--csv", file.to_str().unwrap()], &changes].concat());
    let head = "pattern,algorithm,machine,changes,jitter_us,seed,ranks,bytes,fan_in,repetitions,unit,\
                mean,least,most";
    let line = |ranks: usize, fan_in: usize, us: &str| {
        format!(
            "fan-in,messages,loggp,rail.fetch=1; host.poll=0,0,1,{ranks},8,{fan_in},2,us,{us},{us},{us}"
        )
    };
    let (one, three) = ("2.758000", "3.258000");
    let lines = [line(4, 1, one), line(4, 3, three), line(8, 1, one), line(8, 3, three)];
    let whole = format!("{head}\n{}\n", lines.join("\n"));
    assert_eq!(fs::read_to_string(file).unwrap(), whole);
}

#[test]
fn the_timeline_shows_lanes_spans_and_messages() {
    let file = scratch("timeline").join("barrier.svg");
    let path = file.to_str().unwrap();
    let args = ["barrier", "--machine", "loggp", "--ranks", "2,8", "--algorithm", "MPI-DS"];
    let text = printed(&[&args[..], &["--timeline", path]].concat());
    assert!(text.ends_with(&format!("timeline of one repetition on 8 ranks: {path}\n")), "{text}");
    let svg = fs::read_to_string(&file).unwrap();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let all = |name: &str| -> Vec<String> {
        let nodes =
            document.descendants().filter(|n| n.has_tag_name(("http://www.w3.org/2000/svg", name)));
        nodes.filter_map(|n| n.text()).map(|t| t.trim().to_owned()).collect()
    };
    let texts = all("text");
    for text in ["rank 0", "rank 7", "post", "receive", "wait", "message"] {
        assert!(texts.iter().any(|t| t == text), "{text} in {texts:?}");
    }
    assert!(texts.contains(&"barrier, MPI-DS, on loggp, 8 ranks".to_owned()), "{texts:?}");
    assert!(texts.contains(&"time since the repetition began, in us".to_owned()), "{texts:?}");
    let titles = all("title");
    let count = |part: &str| titles.iter().filter(|t| t.contains(part)).count();
    // Three rounds: in each every rank posts, waits and receives.
    assert_eq!(count("message of 0 bytes"), 24);
    assert_eq!((count(": post, 0.500 us"), count(": receive, 0.250 us")), (24, 24));
    assert_eq!(count(": wait, 2.000 us"), 24);
    let hover = "message of 0 bytes, rank 7 to rank 0, 2.000 us\nsent 0.500 us, arrived 2.500 us";
    assert!(titles.iter().any(|t| t == hover), "{titles:?}");
    let hover = "rank 3: receive, 0.250 us\n8.000 to 8.250 us";
    assert!(titles.iter().any(|t| t == hover), "{titles:?}");
}

#[test]
fn what_cannot_be_is_refused_with_what_can() {
    let cases: &[(&[&str], &str)] = &[
        (
            &["barier", "--machine", "loggp"],
            "no pattern \"barier\"; known: ping-pong, bandwidth, barrier,",
        ),
        (
            &["barrier", "--machine", "loggp", "--algorithm", "MPI-DS,MPI-XX"],
            "--algorithm: no algorithm \"MPI-XX\" for barrier; known: auto, ",
        ),
        (&["barrier", "--machine", "kini3"], "kini3: no such machine; known: kini1, kini2,"),
        (
            &["barrier", "--machine", "loggp", "--ranks", "0"],
            "--ranks 0: barrier runs on 1 or more",
        ),
        (
            &["ping-pong", "--machine", "loggp", "--ranks", "1"],
            "--ranks 1: ping-pong runs on 2 or more",
        ),
        (
            &["barrier", "--machine", "kini1", "--ranks", "2..9"],
            "--ranks 9: kini1 has room for 1 to 8",
        ),
        (
            &["barrier", "--machine", "loggp", "--ranks", "2..x"],
            "a number is missing; allowed are numbers and ranges",
        ),
        (
            &["barrier", "--machine", "loggp", "--ranks", "-1"],
            "\"-1\" is no whole number; allowed are numbers",
        ),
        (
            &["barrier", "--machine", "loggp", "--ranks", "two"],
            "\"two\" is no whole number; allowed are numbers",
        ),
        (&["barrier", "--machine", "loggp", "--ranks", "8..2"], "8..2 goes down; write 2..8"),
        (&["barrier", "--machine", "loggp", "--bytes", "8"], "--bytes: barrier has no payload"),
        (
            &["barrier", "--machine", "loggp", "--fan-in", "3"],
            "--fan-in: barrier has none; patterns that have one: fan-in, fabric-fan-in",
        ),
        (
            &["fan-in", "--machine", "loggp", "--fan-in", "0"],
            "--fan-in 0: at least 1, and less than the number of ranks",
        ),
        (
            &["fan-in", "--machine", "loggp", "--fan-in", "4", "--ranks", "4"],
            "a fan-in of 4: with 4 ranks it is 1 to 3, as one receives",
        ),
        (
            &["fan-in", "--machine", "kini1", "--fan-in", "8"],
            "--fan-in 8: kini1 has room for 8 ranks, so at most 7",
        ),
        (
            &["allreduce", "--machine", "loggp", "--bytes", "6"],
            "6 bytes: allreduce needs a multiple of 4",
        ),
        (
            &["barrier", "--machine", "loggp", "--repeat", "0"],
            "0 repetitions: at least 1 is measured",
        ),
        (
            &["barrier", "--machine", "loggp", "--jitter", "-1"],
            "a number of microseconds from 0 to 1000000",
        ),
        (&["barrier", "--machine", "loggp", "--set", "rail"], "KEY=VALUE, as in rail.gap_in=1.5"),
        (&["barrier", "--machine", "loggp", "--set", "rail.gap=1"], "expected one of"),
        (&["fabric-multicast", "--machine", "loggp"], "this fabric has no multicast"),
        (
            &["fabric-write", "--machine", "kini1", "--algorithm", "BOTTOM-FILL"],
            "BOTTOM-FILL: this fabric places bytes in any order; use FLAG",
        ),
        (
            &["barrier", "--machine", "loggp", "--ranks", "2,512", "--timeline", "never.svg"],
            "--timeline draws the last run, of 512 ranks, and has room for 256",
        ),
        (&["barrier"], "--machine <NAME|FILE>"),
        (&["--machine", "loggp"], "<PATTERN>"),
    ];
    for (args, part) in cases {
        let said = refused(args);
        assert!(said.contains(part), "{args:?} says: {said}");
    }
    assert!(!PathBuf::from("never.svg").exists(), "a refused request writes nothing");
}

#[test]
fn a_malformed_machine_file_is_named_with_the_line() {
    let dir = scratch("machine");
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../machines/loggp.toml");
    let right = fs::read_to_string(source).unwrap();
    let line = right.lines().position(|l| l.starts_with("bandwidth")).unwrap();
    let file = dir.join("mine.toml");
    let path = file.to_str().unwrap();
    fs::write(&file, &right).unwrap();
    printed(&["barrier", "--machine", path, "--ranks", "2"]);
    let mut lines: Vec<&str> = right.lines().collect();
    lines[line] = "bandwidth = -5";
    fs::write(&file, lines.join("\n")).unwrap();
    let said = refused(&["barrier", "--machine", path, "--ranks", "2"]);
    assert!(said.contains(&format!("{path}:{}: ", line + 1)), "{said}");
    assert!(said.contains("-5") && said.contains("0.001 to 1e9"), "{said}");
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let output = weft(&["barrier", "--machine", "loggp", "--csv", "/no/such/place/figures.csv"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("cannot write /no/such/place/figures.csv: No such file"), "{said}");
}

#[test]
fn patterns_and_machines_are_listed() {
    let list = printed(&["--list"]);
    for name in ["ping-pong", "barrier", "halo", "fabric-multicast", "kini1", "loggp"] {
        assert!(list.lines().any(|line| line.starts_with(&format!("  {name} "))), "{name}: {list}");
    }
}

/// A closed pipe, as in `weft sim --list | head`, is not a failure.
#[test]
fn a_reader_that_leaves_is_no_failure() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    let output = command.args(["sim", "--list"]).stdout(writer).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}
