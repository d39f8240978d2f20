//! `weft tune`, `weft explain` and `weft info --algorithms` as a user runs them.
#![cfg(not(miri))]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use weft_collective::{CollectiveKind, SelectionMap};

fn weft(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.env_remove("WEFT_ALLREDUCE").env_remove("WEFT_BARRIER");
    // Otherwise the choice depends on the measured costs of the machine that runs the tests.
    command.env("WEFT_COPY_MODEL", "generic");
    command.args(args).output().expect("weft runs")
}

fn printed(args: &[&str]) -> String {
    let output = weft(args);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

fn refused(args: &[&str]) -> String {
    let output = weft(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn scratch(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("tune").join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

#[test]
fn a_simulated_machine_is_tuned_written_and_drawn() {
    let dir = scratch("kini2");
    let (file, pictures) = (dir.join("my.map"), dir.join("pictures"));
    let (file, pictures) = (file.to_str().unwrap(), pictures.to_str().unwrap());
    let text = printed(&[
        "tune",
        "--machine",
        "kini2",
        "barrier,allreduce",
        "--ranks",
        "2,16",
        "--bytes",
        "8,65536",
        "--out",
        file,
        "--draw",
        pictures,
    ]);
    assert!(text.starts_with("machine kini2\n\nbarrier"), "{text}");
    let map = SelectionMap::parse(&fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(map.machine, "kini2");
    // The barrier has one size. The sums have a size between those with different winners.
    let sizes = |operation, ranks| {
        let row = map.lines(operation).filter(|l| l.ranks == ranks);
        row.map(|line| line.bytes).collect::<Vec<_>>()
    };
    for ranks in [2, 16] {
        assert_eq!(sizes(CollectiveKind::Barrier, ranks), [0]);
        assert_eq!(sizes(CollectiveKind::Allreduce, ranks), [8, 16, 65536]);
    }
    for line in CollectiveKind::ALL.iter().flat_map(|&operation| map.lines(operation)) {
        let times: Vec<f64> = line.choices.iter().map(|c| c.us.unwrap()).collect();
        assert!(times[0] > 0.0 && times.iter().all(|&us| us >= times[0] * 0.99), "{line:?}");
    }
    // Kini's result: on 16 nodes RGM's sums of few bytes take less time than RPE's.
    let small = map.find(CollectiveKind::Allreduce, 16, 8).unwrap();
    let us = |name: &str| {
        small.choices.iter().find(|c| c.choice.algorithm.name == name).and_then(|c| c.us)
    };
    assert!(us("RGM").unwrap() < us("RPE").unwrap_or(f64::INFINITY), "{small:?}");
    let svg = fs::read_to_string(format!("{pictures}/allreduce.svg")).unwrap();
    let svg = roxmltree::Document::parse(&svg).unwrap();
    let words: Vec<_> = svg.descendants().filter_map(|n| n.text()).map(str::trim).collect();
    for word in ["allreduce on kini2: the best algorithm", "processes", "64K", "16"] {
        assert!(words.contains(&word), "{word}: {words:?}");
    }
    // The same grid gives the same map.
    let again = dir.join("again.map");
    let again = again.to_str().unwrap();
    printed(&[
        "tune",
        "--machine",
        "kini2",
        "barrier,allreduce",
        "--ranks",
        "2,16",
        "--bytes",
        "8,65536",
        "--out",
        again,
    ]);
    assert_eq!(fs::read_to_string(file).unwrap(), fs::read_to_string(again).unwrap());
}

#[test]
fn what_cannot_be_tuned_is_refused() {
    let error = refused(&["tune", "--machine", "kini2", "barrier", "--ranks", "17"]);
    assert!(error.contains("--ranks 17: kini2 has room for 2 to 16"), "{error}");
    let error = refused(&["tune", "--machine", "kini2", "barier"]);
    assert!(error.contains("no collective operation \"barier\"; known: barrier"), "{error}");
}

#[test]
fn the_levels_of_a_large_node_are_explained() {
    let explain =
        |args: &[&str]| printed(&[&["explain"], args, &["--machine", "epyc9654"]].concat());
    let text = explain(&["allreduce", "-n", "192", "--bytes", "64"]);
    for line in ["algorithm  LEVELS", "in 24 caches of 8 ranks", "in 8 NUMA domains of 3 leaders"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    // Rows of algorithms that a choice by the model leaves out give the reason. No other row does.
    let reason = |name: &str| {
        let row = text.lines().find(|line| line.trim_start().starts_with(&format!("{name} ")));
        row.expect("a row").split_once("; not chosen: ").map(|(_, why)| why)
    };
    assert_eq!(reason("K-NOMIAL"), Some("streams are not measured on this node"));
    assert_eq!(reason("RPE"), Some("writes are not measured on this node"));
    assert_eq!(reason("MPI-K-NOMIAL"), None);
    // The library does not choose by the map of ranks that share a cache.
    let text = explain(&["allgather", "-n", "192", "--bytes", "1024"]);
    for part in ["algorithm  LEVELS", "because    the model of copies knows the caches"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = explain(&["allreduce", "-n", "192", "--bytes", "65536"]);
    assert!(text.contains("algorithm  LEVEL-SLICES") && text.contains("by slice"), "{text}");
    let text = explain(&["reduce", "-n", "192", "--bytes", "64", "--algorithm", "LEVELS"]);
    assert!(text.contains("from a leader to the root"), "{text}");
    let text = explain(&["allreduce", "-n", "8", "--bytes", "64", "--algorithm", "LEVELS"]);
    assert!(text.contains("refused    LEVELS"), "{text}");
}

#[test]
fn a_choice_is_explained_with_what_speaks_against_the_others() {
    let dir = scratch("explain");
    let file = dir.join("my.map");
    let text = "# machine: kini2\n\
        allreduce 4 0    RPE 10     MPI-PE 20\n\
        allreduce 4 1024 RPE 40     MPI-PE 50, MPI-GB 60\n\
        allreduce 16 0   RPE 20     RGM:3 15\n\
        allreduce 16 1024 RPE 80\n";
    fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let explain = |more: &[&str]| {
        let begin = ["explain", "allreduce", "--map", file, "--machine", "kini2"];
        printed(&[&begin[..], more].concat())
    };
    let text = explain(&["-n", "8", "--bytes", "1024"]);
    for part in [
        "measured on kini2\n",
        "algorithm  RPE: pairwise exchange by RDMA writes",
        "predicted  56.57 us (interpolated between lines of the map)",
        "because    the map says so, from 4 ranks and 1024 bytes on",
        "MPI-PE                 50.00 us at 4 ranks and 1024 bytes, the nearest line",
        "CENTRAL                not eligible: the ranks do not share memory",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    let text = explain(&["-n", "4", "--bytes", "1024", "--op", "noncommutative"]);
    let first = "RPE stands first there, but the operator does not commute";
    assert!(text.contains("algorithm  MPI-GB: ") && text.contains(first), "{text}");
    let text = explain(&["-n", "16", "--bytes", "8", "--algorithm", "rgm:3"]);
    assert!(text.contains("it was asked for: --algorithm rgm:3"), "{text}");
    let text = explain(&["-n", "2", "--bytes", "8"]);
    assert!(text.contains("the map has no line for 2 ranks: the usual one"), "{text}");
    let text = explain(&["-n", "16", "--bytes", "1000000", "--algorithm", "RGM"]);
    assert!(text.contains("refused    RGM, which was asked for: 1000000 bytes: at most"), "{text}");
}

#[test]
fn learning_is_told_where_the_costs_decide() {
    let explain = |args: &[&str]| printed(&[&["explain"], args].concat());
    let text = explain(&["allreduce", "-n", "2", "--bytes", "65536"]);
    assert!(text.contains("  learns     repeated calls try "), "{text}");
    // No other candidate of a broadcast reads in place, and a map has no costs to learn.
    let bcast = ["bcast", "-n", "4", "--bytes", "65536"];
    for args in [&["barrier", "-n", "4"][..], &bcast, &["allreduce", "-n", "2", "--machine", "ndr"]]
    {
        assert!(!explain(args).contains("WEFT_LEARN"), "{args:?}");
    }
}

#[test]
fn leaders_speak_for_hosts_that_the_kernel_connects() {
    let explain =
        |more: &[&str]| printed(&[&["explain", "allreduce", "--bytes", "8"], more].concat());
    let text = explain(&["-n", "64", "--hosts", "4"]);
    assert!(
        text.contains("algorithm  TWO-LEVEL") && text.contains("speak for their nodes"),
        "{text}"
    );
    assert!(text.contains("map        measured on ethernet\n"), "{text}");
    let text = explain(&["-n", "4", "--hosts", "4"]);
    assert!(text.contains("because    the map says so"), "{text}");
    let times = text.lines().filter(|line| line.ends_with(" us (simulated)")).count();
    assert!(times > 5, "{text}");
    let error = refused(&["explain", "allreduce", "-n", "6", "--hosts", "4"]);
    assert!(error.contains("-n 6: not one number of ranks"), "{error}");
}

#[test]
fn a_map_of_another_machine_is_told_and_a_wrong_one_named() {
    let text = printed(&["explain", "bcast", "-n", "2", "--machine", "em64t", "--map", "kini2"]);
    assert!(text.contains("measured on kini2: another machine"), "{text}");
    let error = refused(&["explain", "bcast", "-n", "2", "--map", "kini"]);
    assert!(
        error.contains("kini: no map of this name; known: shm, ndr, ethernet, kini1"),
        "{error}"
    );
    let file = scratch("wrong").join("wrong.map");
    fs::write(&file, "# machine: m\nbcast 2 0 FAST 1\n").unwrap();
    let file = file.to_str().unwrap();
    let error = refused(&["explain", "bcast", "-n", "2", "--map", file]);
    assert!(error.contains(&format!("{file}:2: no algorithm \"FAST\" for bcast")), "{error}");
    let error = refused(&["explain", "barrier", "-n", "17", "--machine", "kini2"]);
    assert!(error.contains("-n 17: kini2 has room for 1 to 16"), "{error}");
    let error = refused(&["explain", "barrier", "-n", "4", "--algorithm", "RGM:5"]);
    assert!(error.contains("\"RGM:5\": the fan-in of RGM is 1 to 63"), "{error}");
}

#[test]
fn all_algorithms_are_listed() {
    let text = printed(&["info", "--algorithms"]);
    for algorithm in weft_collective::catalog::ALGORITHMS {
        assert!(text.contains(algorithm.name) && text.contains(algorithm.about));
    }
    assert!(text.contains("parameter: fan-in, 1 to 63, one less than a power of two, usually 7"));
    assert!(text.contains("needs multicast"), "{text}");
}
