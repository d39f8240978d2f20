//! Ranks with windows: the same program in virtual time and as threads over shared memory.
#![allow(dead_code)] // each test uses its own part

use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use weft_bootstrap::threads;
use weft_datatype::{Basic, Predefined, Type};
use weft_fabric::wait::WaitPolicy;
use weft_fabric::{Fabric, Sge, Staging, boxed};
use weft_fabric_fault::{FaultPlan, FaultyFabric};
use weft_fabric_shm::{Shm, ShmOptions};
use weft_fabric_sim::{Chaos, Machine, SimOptions, run};
use weft_p2p::ProtocolLimits;
use weft_process::{Buffer, Comm, Engine, Single};

/// Program of every rank.
pub trait Program: Copy + Send + Sync + 'static {
    fn run<F: Fabric>(self, comm: Rc<Comm<F>>) -> impl Future<Output = ()> + 'static;
}

const LIMITS: ProtocolLimits =
    ProtocolLimits { eager: 200, credit: 4 << 10, staging: 1 << 20, ..ProtocolLimits::USUAL };

/// Kind of fabric on which ranks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Shared memory, and the program's own memory reached by the system.
    Shared,
    /// Shared memory, but the system does not permit access to the program's own memory.
    Served,
    /// Shared memory that no rank sees directly, with completions that come late.
    Late,
    /// In virtual time, with operations that overtake each other.
    Simulated,
    /// Virtual time, with two rails between the nodes.
    Rails,
}

pub const ALL: [Place; 5] =
    [Place::Shared, Place::Served, Place::Late, Place::Simulated, Place::Rails];

pub fn run_at(place: Place, ranks: usize, program: impl Program) {
    match place {
        Place::Shared => share(ranks, true, |shm| shm, program),
        Place::Served => share(ranks, false, |shm| shm, program),
        Place::Late => {
            let plan: FaultPlan = "completion_delay=0.5,message_delay=0.2".parse().expect("a plan");
            share(ranks, true, move |shm| FaultyFabric::new(shm, plan.clone()), program);
        }
        Place::Simulated => (1..=8).for_each(|seed| simulate("ndr", ranks, seed, program)),
        Place::Rails => (1..=4).for_each(|seed| simulate("em64t", ranks, seed, program)),
    }
}

pub fn simulate(machine: &str, ranks: usize, seed: u64, program: impl Program) {
    let machine = Machine::load_with(machine, &[("nodes", "8")]).expect("a machine");
    let chaos = Chaos { loss: None, ..Chaos::rough() };
    let options = SimOptions::new(ranks).seed(seed).chaos(chaos);
    let outcome = run(&Rc::new(machine), options, |sim| {
        let engine = Engine::new(boxed(sim), WaitPolicy::new(true), LIMITS);
        let comm = Comm::world(&engine);
        engine.run(program.run(comm))
    });
    outcome.unwrap_or_else(|why| panic!("{ranks} ranks, seed {seed}: {why}"));
}

fn share<F: Fabric>(
    ranks: usize,
    cma: bool,
    wrap: impl Fn(Shm) -> F + Sync,
    program: impl Program,
) {
    let through = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for mut bootstrap in threads(ranks) {
            let (through, wrap) = (&through, &wrap);
            scope.spawn(move || {
                let _alarm = Alarm;
                let options = ShmOptions { cma, ..ShmOptions::default() };
                let shm = Shm::connect_with(&mut bootstrap, options).expect("connected");
                let mut policy = WaitPolicy::new(false);
                policy.nap = Duration::from_millis(2);
                let engine = Engine::new(boxed(wrap(shm)), policy, LIMITS);
                let comm = Comm::world(&engine);
                engine.block_on(&Single, program.run(comm));
                through.fetch_add(1, Ordering::SeqCst);
                while through.load(Ordering::SeqCst) < ranks || !engine.endpoint().fabric().idle() {
                    engine.progress();
                    std::thread::yield_now();
                }
            });
        }
    });
}

/// Aborts the process when a rank fails, because the other ranks would wait for it for ever.
struct Alarm;

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

pub fn ty(basic: Basic) -> Type {
    Predefined::new().of(basic).clone()
}

/// Memory of a program: 64-bit numbers.
pub struct Numbers {
    memory: Staging,
}

impl Numbers {
    pub fn new<F: Fabric>(comm: &Comm<F>, values: &[i64]) -> Numbers {
        let memory = comm.engine().endpoint().staging().take(8 * values.len());
        let numbers = Numbers { memory };
        numbers.set(values);
        numbers
    }

    pub fn set(&self, values: &[i64]) {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
        self.memory.sge().fill(&bytes);
    }

    pub fn sge(&self) -> Sge {
        self.memory.sge()
    }

    pub fn buffer(&self) -> Buffer {
        Buffer::over(self.sge(), ty(AINT))
    }

    pub fn get(&self) -> Vec<i64> {
        numbers(self.sge())
    }
}

/// MPI_AINT.
pub const AINT: Basic = match Basic::of_handle(0x201) {
    Some(basic) => basic,
    None => unreachable!(),
};

pub fn numbers(memory: Sge) -> Vec<i64> {
    let mut bytes = vec![0; memory.len()];
    memory.read(&mut bytes);
    bytes.chunks_exact(8).map(|b| i64::from_ne_bytes(b.try_into().unwrap())).collect()
}
