//! If a rank lacks memory that ranks share in collective operations, all ranks report this in the same call, and the communicator
//! works again once there is memory.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use weft_bootstrap::threads;
use weft_collective::catalog::ALGORITHMS;
use weft_collective::{AlgorithmChoice, CollectiveKind, Selection};
use weft_datatype::{Basic, ElementSpacing, Predefined, PredefinedOp};
use weft_fabric::wait::WaitPolicy;
use weft_fabric::{Fabric, Sge, boxed};
use weft_fabric_fault::{FaultPlan, FaultyFabric};
use weft_fabric_shm::Shm;
use weft_p2p::ProtocolLimits;
use weft_process::{Buffer, Comm, Engine, Error, Group, RankBuffers, Root, Single, class};

/// Result of each call on the first rank that completed it.
type Outcomes = Mutex<HashMap<(usize, usize), bool>>;

struct Sum;

impl weft_collective::ElementReduction for Sum {
    fn combine(&self, left: Sge, right: Sge) {
        let count = right.len() / 4;
        assert!(
            PredefinedOp::Sum.apply(Basic::INT, ElementSpacing::Packed, count, left, right).is_ok()
        );
    }

    fn commutes(&self) -> bool {
        true
    }
}

/// Returns algorithms that need memory of their own.
fn wishes() -> Vec<AlgorithmChoice> {
    let named = |operation, name| {
        let mut all = ALGORITHMS.iter().filter(move |a| a.operation == operation);
        all.find(|a| a.name == name).unwrap_or_else(|| panic!("{name}")).usual()
    };
    vec![
        named(CollectiveKind::Barrier, "CENTRAL"),
        named(CollectiveKind::Barrier, "RDS"),
        named(CollectiveKind::Allreduce, "CENTRAL"),
        named(CollectiveKind::Allreduce, "SHM-SLICES"),
        named(CollectiveKind::Bcast, "SHM-RING"),
        named(CollectiveKind::Allgather, "SHM-STAGED"),
    ]
}

const COUNT: usize = 3000;

async fn call<F: Fabric>(comm: &Comm<F>, wish: usize) -> Result<(), Error> {
    let (me, size) = (comm.rank(), comm.size());
    // The central algorithm takes only short data.
    let count = if wish == 2 { 4 } else { COUNT };
    let memory = comm.engine().endpoint().staging().take(4 * count * size);
    let words = |value: i32| value.to_ne_bytes().repeat(count);
    let part = |rank: usize| memory.sge().part(4 * count * rank, 4 * count);
    let ints = |sge: Sge| Buffer::over(sge, Predefined::new().of(Basic::INT).clone());
    let (mut parts, mut value) = (0..0, 0);
    match wish {
        0 | 1 => comm.barrier().await?,
        2 | 3 => {
            part(0).fill(&words(me as i32 + 1));
            comm.allreduce(None, ints(part(0)), Rc::new(Sum)).await?;
            (parts, value) = (0..1, (size * (size + 1) / 2) as i32);
        }
        4 => {
            part(0).fill(&words(if me == 0 { 77 } else { -1 }));
            comm.bcast(ints(part(0)), Root::Rank(0)).await?;
            (parts, value) = (0..1, 77);
        }
        _ => {
            part(me).fill(&words(5));
            comm.allgather(None, RankBuffers::Equal { first: ints(part(0)), ranks: size }).await?;
            (parts, value) = (0..size, 5);
        }
    }
    for rank in parts {
        let mut found = vec![0; 4 * count];
        part(rank).read(&mut found);
        assert!(found == words(value), "wish {wish}: rank {me} has other data");
    }
    Ok(())
}

async fn program<F: Fabric>(world: Rc<Comm<F>>, outcomes: &Outcomes) {
    let everybody = Group::new((0..world.size() as u32).collect::<Vec<_>>());
    for round in 0..20 {
        let comm = match round % 2 {
            0 => world.dup().await,
            _ => world.create_group(&everybody, 1).await,
        };
        let comm = comm.expect("messages need no memory of the fabric");
        let mut selection = Selection::default();
        wishes().iter().for_each(|&wish| selection.ask(wish.algorithm.operation, Some(wish)));
        for step in 0..30 {
            let wish = (step * 7 + round) % wishes().len();
            selection.ask(wishes()[wish].algorithm.operation, Some(wishes()[wish]));
            comm.select(Rc::new(selection.clone()));
            let ended = call(&comm, wish).await;
            if let Err(error) = &ended {
                assert_eq!(error.class(), class::NO_MEM, "{error:?}");
            }
            let mut outcomes = outcomes.lock().expect("no panic");
            let first = *outcomes.entry((round, step)).or_insert(ended.is_ok());
            assert_eq!(first, ended.is_ok(), "round {round}, step {step}, wish {wish}: {ended:?}");
        }
        comm.close().await.expect("an end");
    }
}

fn short(ranks: usize) {
    let (outcomes, through) = (Outcomes::default(), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for mut bootstrap in threads(ranks) {
            let (outcomes, through) = (&outcomes, &through);
            scope.spawn(move || {
                let _alarm = Alarm;
                let plan: FaultPlan = "seed=5,memory_failure=0.3".parse().expect("a plan");
                let fabric =
                    FaultyFabric::new(Shm::connect(&mut bootstrap).expect("connected"), plan);
                let mut policy = WaitPolicy::new(false);
                policy.nap = std::time::Duration::from_millis(2);
                let engine = Engine::new(boxed(fabric), policy, ProtocolLimits::default());
                engine.block_on(&Single, program(Comm::world(&engine), outcomes));
                through.fetch_add(1, Ordering::SeqCst);
                while through.load(Ordering::SeqCst) < ranks || !engine.endpoint().fabric().idle() {
                    engine.progress();
                    std::thread::yield_now();
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().expect("no panic");
    let failed = outcomes.values().filter(|&&well| !well).count();
    assert!(failed > 20 && failed < outcomes.len() / 2, "{failed} of {}", outcomes.len());
}

/// Ends the process when a rank fails, since the other ranks would wait for it for ever.
struct Alarm;

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

#[test]
fn all_ranks_hear_that_one_has_no_memory() {
    for ranks in [2, 3, 5] {
        short(ranks);
    }
}
