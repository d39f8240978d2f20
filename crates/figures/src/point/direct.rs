//! Points of curves compared with the simulator itself. A unit test, because unit tests of this crate contain the library for simulated
//! ranks anyway, and another test program would compile the library again.

use super::points;
use std::future::poll_fn;
use std::rc::Rc;
use std::time::Duration;
use weft_collective::{CollectiveKind, Selection};
use weft_datatype::{Basic, ElementSpacing, Predefined, PredefinedOp};
use weft_fabric::wait::WaitPolicy;
use weft_fabric::{FabricExt, Sge};
use weft_fabric_sim::{Machine, SimOptions, run};
use weft_p2p::ProtocolLimits;
use weft_process::{Buffer, Comm, Engine};

/// Numbers of measured iterations of `--quick`, and of iterations before them.
const QUICK: usize = 20;
const WARM_UP: usize = 4;

/// Returns the mean time of a collective operation in microseconds, without any of the tool's code.
fn direct(machine: &str, ranks: usize, selection: Rc<Selection>, integers: Option<usize>) -> f64 {
    struct Sum;
    impl weft_collective::ElementReduction for Sum {
        fn combine(&self, left: Sge, right: Sge) {
            if !left.is_phantom() {
                PredefinedOp::Sum
                    .apply(Basic::INT, ElementSpacing::Packed, left.len() / 4, left, right)
                    .unwrap();
            }
        }
        fn commutes(&self) -> bool {
            true
        }
    }
    let machine = Rc::new(Machine::load(machine).unwrap());
    let outcome = run(&machine, SimOptions::new(ranks), |sim| {
        let engine = Engine::new(sim.clone(), WaitPolicy::new(true), ProtocolLimits::default());
        let comm = Comm::world(&engine);
        comm.select(selection.clone());
        engine.run(async move {
            let int = Predefined::new().of(Basic::INT).clone();
            let (mut start, mut own) = (0, 0);
            for i in 0..WARM_UP + QUICK {
                if i == WARM_UP {
                    start = sim.clock();
                }
                match integers {
                    None => comm.barrier().await.unwrap(),
                    Some(count) => {
                        // Each rank's own time from a common instant.
                        let left = 10_000_000_000 * (i as u64 + 1) - sim.clock();
                        let until = Some(sim.now() + Duration::from_nanos(left.div_ceil(1000)));
                        let _ = poll_fn(|cx| sim.poll_any(&[], until, cx)).await;
                        let begun = sim.clock();
                        let data = || Buffer::phantom(count, int.clone());
                        let done = comm.allreduce(Some(data()), data(), Rc::new(Sum));
                        done.await.unwrap();
                        own += if i < WARM_UP { 0 } else { sim.clock() - begun };
                    }
                }
            }
            let time = if integers.is_some() { own } else { sim.clock() - start };
            time as f64 / 1e6 / QUICK as f64
        })
    });
    let times = outcome.unwrap().results;
    times.iter().map(|t| t.unwrap()).sum::<f64>() / ranks as f64
}

/// Returns the value of a point as the figures have it.
fn drawn(point: &str) -> f64 {
    let text = points(&[point.to_owned()]).unwrap();
    text.trim().rsplit_once(';').unwrap().1.parse().unwrap()
}

#[test]
fn points_are_what_the_simulator_gives() {
    let asked = |operation, name| {
        let mut selection = Selection::default();
        selection.ask_for(operation, name).unwrap();
        Rc::new(selection)
    };
    let barrier = asked(CollectiveKind::Barrier, "MPI-DS");
    let ours = direct("kini1", 7, barrier, None);
    let there = drawn("kini-4.8a;MPI-DS;7");
    assert!((ours - there).abs() < 2e-6, "{ours} against {there}");

    let allreduce = asked(CollectiveKind::Allreduce, "MPI-GB");
    let ours = direct("kini2", 11, allreduce, Some(64));
    let there = drawn("kini-5.14;MPI-GB;11");
    assert!((ours - there).abs() < 2e-6, "{ours} against {there}");
}
