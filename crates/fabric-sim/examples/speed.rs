//! Speed of the simulator, and memory of a rank:
//! `cargo run --release -p weft-fabric-sim --example speed -- [ranks] [rounds] [machine]`.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;
use weft_collective::{
    CommView, ElementReduction, Members, Reception, ReductionBuffers, Via, allreduce, barrier,
};
use weft_fabric::Sge;
use weft_fabric::wait::WaitPolicy;
use weft_fabric_sim::{Machine, SimOptions, run};
use weft_p2p::{MatchingContext, ProtocolLimits};
use weft_process::Engine;

struct Nothing;

impl ElementReduction for Nothing {
    fn combine(&self, _left: Sge, _right: Sge) {}

    fn commutes(&self) -> bool {
        true
    }
}

/// Returns the peak memory of this process, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10
}

fn main() {
    let mut args = std::env::args().skip(1);
    let ranks: usize = args.next().map_or(1024, |a| a.parse().expect("a number of ranks"));
    let rounds: usize = args.next().map_or(20, |a| a.parse().expect("a number of rounds"));
    let machine = args.next().unwrap_or_else(|| "loggp".to_owned());
    let machine = Rc::new(Machine::load(&machine).expect("a machine"));
    let members = Members::world(ranks);
    let before = peak();
    let start = Instant::now();
    let outcome = run(&machine, SimOptions::new(ranks), |sim| {
        let engine = Engine::new(sim, WaitPolicy::new(true), ProtocolLimits::default());
        let members = members.clone();
        let rank = engine.rank();
        let endpoint = engine.endpoint().clone();
        let tag = Cell::new(0);
        let link = move || {
            tag.set(tag.get() + 1);
            let (endpoint, members) = (endpoint.clone(), members.clone());
            CommView {
                endpoint,
                members,
                rank,
                context: MatchingContext(3),
                tag: tag.get(),
                via: Via::Messages,
                reception: Reception::Marks,
            }
        };
        engine.run(async move {
            let data = Sge::phantom(8);
            let buffers = ReductionBuffers { data, result: data, element: 8 };
            for _ in 0..rounds {
                barrier::dissemination(&link()).await.expect("a barrier");
                allreduce::pairwise_exchange(&link(), buffers, &Nothing).await.expect("a sum");
            }
        })
    })
    .expect("no deadlock");
    let seconds = start.elapsed().as_secs_f64();
    let counts = outcome.counts;
    println!("{ranks} ranks, {rounds} times barrier and allreduce on {}", machine.name);
    println!("virtual time   {:.3} us", outcome.end() as f64 / 1e6);
    println!(
        "messages       {} ({:.2} million/s)",
        counts.messages,
        counts.messages as f64 / seconds / 1e6
    );
    println!("events         {}, polls {}", counts.events, counts.polls);
    println!(
        "memory         {:.1} MiB peak, {} bytes a rank",
        peak() as f64 / 1048576.0,
        (peak() - before) / ranks as u64
    );
    println!("time           {seconds:.3} s");
}
