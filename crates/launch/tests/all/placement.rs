//! Placement of ranks on a large machine, whose description replaces that of this machine.

use std::process::Output;

use crate::common::{agent, mpiexec, stderr, stdout};
use weft_topology::SYSFS_ROOT;
use weft_topology::fake::FakeMachine;

fn run(machine: &FakeMachine, line: &[&str]) -> Output {
    let root = tempfile::tempdir().unwrap();
    machine.write(root.path()).unwrap();
    mpiexec(line).env(SYSFS_ROOT, root.path()).output().expect("mpiexec runs")
}

#[test]
fn all_ranks_of_a_large_node_have_a_core() {
    let line = ["-n", "192", "--map-by", "l3", "--bind-to", "core", "--report-bindings"];
    let script = ["sh", "-c", "echo $WEFT_SYSFS_PROCESSORS"];
    let output = run(&FakeMachine::epyc_genoa(4), &[&line[..], &script].concat());
    let errors = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let report = "mpiexec: rank 25 may use processors 9,201 (core 9, L3 1, NUMA 0, socket 0)\n";
    assert!(errors.contains(report), "{errors}");
    assert_eq!(errors.matches("no rank is bound").count(), 1, "{errors}");
    let mut lists: Vec<String> = stdout(&output).lines().map(str::to_owned).collect();
    lists.sort();
    lists.dedup();
    assert_eq!(lists.len(), 192);
}

#[test]
fn each_host_places_its_own_ranks() {
    let agent = agent();
    let hosts = ["--launch-agent", &agent, "--hosts", "localhost:2,127.0.0.1:2"];
    let line = ["-n", "4", "--map-by", "l2:PE=2", "--report-bindings", "true"];
    let output = run(&FakeMachine::hybrid_laptop(), &[&hosts[..], &line].concat());
    let errors = stderr(&output);
    // The fast cores have an L2 cache each, which has no room for a rank of two cores.
    let [one, other] = ["processors 12-13 (core 6-7,", "processors 16-17 (core 10-11,"];
    for (rank, place) in [(0, one), (1, other), (2, one), (3, other)] {
        let place = format!("{place} L3 0, NUMA 0, socket 0)");
        assert!(errors.contains(&format!("rank {rank} may use {place}\n")), "{errors}");
    }
}

#[test]
fn ranks_that_do_not_fit_are_refused_by_name_and_limit() {
    for (line, words) in [
        (["-n", "9", "--map-by", "slot:PE=2"], ["9 ranks need 18 cores", "this host has 16"]),
        (["-n", "1", "--map-by", "l2:PE=5"], ["PE=5", "largest L2 cache has 4 cores"]),
        (["-n", "10", "--map-by", "ppr:1:l2"], ["10 ranks", "9 L2 caches for 9 ranks"]),
        (["-n", "1", "--bind-to", "user:22"], ["processor 22", "the processors are 0-21"]),
    ] {
        let output = run(&FakeMachine::hybrid_laptop(), &[&line[..], &["true"]].concat());
        let errors = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line:?}: {errors}");
        assert!(words.iter().all(|word| errors.contains(word)), "{line:?}: {errors}");
    }
}
