//! Scale: as many ranks as a large machine has, in the memory of a small one.

use std::process::Command;
use std::rc::Rc;
use weft_collective::{CollectiveKind, Selection};
use weft_fabric::Sge;
use weft_fabric::wait::WaitPolicy;
use weft_fabric_sim::{Machine, SimOptions, run};
use weft_p2p::ProtocolLimits;
use weft_process::{Buffer, Comm, Engine, Group};

const RANKS: usize = 65_536;

struct Nothing;

impl weft_collective::ElementReduction for Nothing {
    fn combine(&self, _left: Sge, _right: Sge) {}

    fn commutes(&self) -> bool {
        true
    }
}

/// Returns the peak memory of this process, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// Name of the test that the other test runs in a process of its own.
const MEASURED: &str = "scale::measured";

#[test]
fn ranks_by_the_ten_thousands_fit_a_gibibyte() {
    let mut own = Command::new(std::env::current_exe().unwrap());
    let output = own.args(["--exact", MEASURED, "--ignored", "--nocapture"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "measures its whole process: run by the test above"]
fn measured() {
    let machine = Rc::new(Machine::load("loggp").unwrap());
    let group = Group::new((0..RANKS as u32).collect::<Vec<_>>());
    let int = weft_datatype::Predefined::new().of(weft_datatype::Basic::INT).clone();
    let mut selection = Selection::default();
    selection.ask_for(CollectiveKind::Barrier, "MPI-DS").unwrap();
    selection.ask_for(CollectiveKind::Allreduce, "MPI-PE").unwrap();
    let selection = Rc::new(selection);
    let outcome = run(&machine, SimOptions::new(RANKS), |sim| {
        let engine = Engine::new(sim, WaitPolicy::new(true), ProtocolLimits::default());
        let comm = Comm::world_of(&engine, group.clone());
        comm.select(selection.clone());
        let data = Buffer::phantom(1000, int.clone());
        engine.run(async move {
            comm.barrier().await?;
            comm.allreduce(None, data, Rc::new(Nothing)).await
        })
    })
    .unwrap();
    assert!(outcome.results.iter().all(|r| matches!(r, Some(Ok(())))));
    // 16 rounds each, with a message from every rank in each.
    assert_eq!(outcome.counts.messages, 2 * 16 * RANKS as u64);
    assert!(peak() < 1 << 30, "{} MiB", peak() >> 20);
}
