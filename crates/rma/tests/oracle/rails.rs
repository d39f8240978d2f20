//! Windows over several rails: unequal rails add up, and a rail that dies in an epoch loses nothing.

use crate::common::*;
use fastrand::Rng;
use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;
use weft_datatype::PredefinedOp;
use weft_fabric::wait::WaitPolicy;
use weft_fabric::{Fabric, FabricExt, boxed};
use weft_fabric_sim::units::{MICROSECOND, Picoseconds, Rate};
use weft_fabric_sim::{Chaos, Death, Machine, Sim, SimOptions, run};
use weft_p2p::ProtocolLimits;
use weft_process::{Buffer, Comm, Engine};
use weft_rma::{
    Atomics, EpochEnding, TargetChange, TargetLocation, Window, WindowOffer, WindowOptions,
};

// ---- random programs --------------------------------------------------------------------------------

/// Number of 64-bit numbers in each window. Operations are whole, in fragments, and in many chunks.
const LEN: usize = 12_000;
const EPOCHS: u64 = 6;
/// Number of random programs. Each runs with all rails, and again with a rail that dies.
const SEEDS: u64 = 40;

#[derive(Debug, Clone, Copy)]
enum Epoch {
    Fence,
    Post,
    Lock,
}

#[derive(Debug, Clone, Copy)]
enum Work {
    Put,
    Get,
    /// All ranks add.
    Sum,
}

/// An operation of one rank, or of every rank for sums, on a part of one window.
#[derive(Debug, Clone, Copy)]
struct Step {
    origin: usize,
    target: usize,
    first: usize,
    len: usize,
    work: Work,
}

/// Returns the steps of one epoch. Parts of a window do not overlap, so their order does not matter.
fn steps(rng: &mut Rng, ranks: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    for target in 0..ranks {
        let mut cuts: Vec<usize> = (0..rng.usize(1..8)).map(|_| rng.usize(0..LEN)).collect();
        cuts.extend([0, LEN]);
        cuts.sort_unstable();
        for ends in cuts.windows(2) {
            let (first, len) = (ends[0], ends[1] - ends[0]);
            // In half of the cases parts are short.
            let len = if rng.bool() { len } else { len.min(rng.usize(0..600)) };
            let work = [Work::Put, Work::Put, Work::Get, Work::Sum][rng.usize(0..4)];
            let len = if matches!(work, Work::Sum) { len.min(100) } else { len };
            steps.push(Step { origin: rng.usize(0..ranks), target, first, len, work });
        }
    }
    rng.shuffle(&mut steps);
    steps
}

/// Returns the value of `origin` for number `i` of a step's part in an epoch.
fn value(epoch: u64, origin: usize, i: usize) -> i64 {
    (epoch * 1_000_000_007 + origin as u64 * 100_003 + i as u64) as i64
}

/// Computes all windows after an epoch.
fn replay(model: &mut [Vec<i64>], epoch: u64, steps: &[Step]) {
    for step in steps {
        let ranks = model.len();
        let part = &mut model[step.target][step.first..step.first + step.len];
        for (i, number) in part.iter_mut().enumerate() {
            match step.work {
                Work::Put => *number = value(epoch, step.origin, i),
                Work::Get => {}
                Work::Sum => *number += (0..ranks).map(|r| value(epoch, r, i)).sum::<i64>(),
            }
        }
    }
}

/// Runs the program of a seed on one rank. Every rank draws the same steps and knows all windows. Writes the time at which the last
/// rank has its window to `made`.
async fn program(sim: Sim, seed: u64, made: Rc<Cell<Picoseconds>>) {
    let engine = engine(sim.clone());
    engine
        .run(run_steps(Comm::world(&engine), seed, move || made.set(made.get().max(sim.clock()))))
        .await;
}

/// Runs the program of [`program`]. Calls `made` when all ranks have their window.
async fn run_steps(comm: Rc<Comm<Box<dyn Fabric>>>, seed: u64, made: impl Fn()) {
    let (me, ranks) = (comm.rank(), comm.size());
    let mut rng = Rng::with_seed(seed);
    let mut model = vec![vec![0i64; LEN]; ranks];
    let word = ty(AINT);
    let brings = WindowOffer::Allocate { len: 8 * LEN, align: 8 };
    let ending = EpochEnding::ALL[seed as usize % EpochEnding::ALL.len()];
    let atomics = [Atomics::Guarded, Atomics::Adapter][seed as usize / 2 % 2];
    let options = WindowOptions { ending, atomics, ..WindowOptions::default() };
    let window = Window::create(&comm, brings, 8, options).await.unwrap();
    window.memory().fill(&vec![0; 8 * LEN]);
    comm.barrier().await.unwrap();
    made();
    for epoch in 0..EPOCHS {
        let kind = [Epoch::Fence, Epoch::Post, Epoch::Lock][rng.usize(0..3)];
        let mut steps = steps(&mut rng, ranks);
        if matches!(kind, Epoch::Post) && rng.bool() {
            // Without gets, the flag of the epoch's end may go behind the data.
            steps.retain(|step| !matches!(step.work, Work::Get));
        }
        let all: Rc<[usize]> = (0..ranks).collect();
        match kind {
            Epoch::Fence => window.fence(0).await.unwrap(),
            Epoch::Post => {
                window.post(all.clone(), 0).unwrap();
                window.start(all, 0).await.unwrap();
            }
            Epoch::Lock => window.lock_all(0).await.unwrap(),
        }
        let mut held = Vec::new();
        for step in &steps {
            let numbers = match step.work {
                Work::Sum => (0..step.len).map(|i| value(epoch, me, i)).collect(),
                _ if step.origin != me => continue,
                Work::Put => (0..step.len).map(|i| value(epoch, me, i)).collect(),
                Work::Get => vec![-1; step.len],
            };
            let data = Numbers::new(&comm, &numbers);
            let buffer = data.buffer();
            let location = TargetLocation {
                rank: step.target,
                disp: step.first as i64,
                count: step.len,
                ty: &word,
            };
            match step.work {
                Work::Put => drop(window.put(&buffer, &location).await.unwrap()),
                Work::Get => drop(window.get(&buffer, &location).await.unwrap()),
                Work::Sum => {
                    let add = TargetChange::Reduce { op: PredefinedOp::Sum, origin: Some(&buffer) };
                    window.accumulate(add, None, &location).await.unwrap();
                }
            }
            held.push((*step, data));
        }
        match kind {
            Epoch::Fence => window.fence(weft_rma::assert::NOSUCCEED).await.unwrap(),
            Epoch::Post => {
                window.complete().await.unwrap();
                window.wait().await.unwrap();
            }
            Epoch::Lock => {
                window.unlock_all().await.unwrap();
                comm.barrier().await.unwrap();
            }
        }
        for (step, data) in held {
            if let Work::Get = step.work {
                let part = &model[step.target][step.first..step.first + step.len];
                assert!(data.get() == part, "seed {seed}, epoch {epoch}: rank {me} {step:?}");
            }
        }
        replay(&mut model, epoch, &steps);
        let now = numbers(window.memory());
        if let Some(at) = (0..LEN).find(|&i| now[i] != model[me][i]) {
            let found = (now[at], model[me][at]);
            panic!("seed {seed}, {kind:?} {epoch}: window of {me} at {at}: {found:?}\n{steps:#?}");
        }
        comm.barrier().await.unwrap();
    }
    window.free().await.unwrap();
}

fn engine(sim: Sim) -> Rc<Engine<Box<dyn Fabric>>> {
    let limits =
        ProtocolLimits { eager: 200, credit: 4 << 10, staging: 1 << 20, ..ProtocolLimits::USUAL };
    Engine::new(boxed(sim), WaitPolicy::new(true), limits)
}

/// Draws the deaths of one rail at some nodes, while the window is used.
fn deaths(
    rng: &mut Rng,
    ranks: usize,
    used: Range<Picoseconds>,
) -> (usize, Vec<(Picoseconds, Death)>) {
    let rail = rng.usize(0..2);
    let mut nodes: Vec<usize> = (0..ranks).collect();
    rng.shuffle(&mut nodes);
    nodes.truncate(rng.usize(1..=ranks));
    // No rail dies while the window is made or freed: no epoch is open then.
    let last = used.end - (used.end - used.start) / 10;
    let kill = |node| (rng.u64(used.start..last), Death::Rail { node, rail });
    (rail, nodes.into_iter().map(kill).collect())
}

#[test]
fn a_rail_that_dies_in_an_epoch_loses_no_byte() {
    // Registration costs nothing, so that data are under way most of the time.
    let free = [("nodes", "8"), ("host.registration", "0"), ("host.registration_page", "0")];
    let machine = Rc::new(Machine::load_with("em64t", &free).expect("a machine"));
    let mut repeated = 0u64;
    for seed in 0..SEEDS {
        let mut rng = Rng::with_seed(seed ^ 0xdead);
        let ranks = rng.usize(2..=6);
        let options = |deaths| {
            let chaos = (seed % 2 == 1).then(|| Chaos { loss: None, ..Chaos::rough() });
            SimOptions { deaths, chaos, ..SimOptions::new(ranks).seed(seed) }
        };
        let made = Rc::new(Cell::new(0));
        let alive = run(&machine, options(Vec::new()), |sim| program(sim, seed, made.clone()))
            .unwrap_or_else(|why| panic!("{ranks} ranks, seed {seed}, all rails: {why}"));
        let (rail, deaths) = deaths(&mut rng, ranks, made.get()..alive.end());
        let victim = match deaths[0].1 {
            Death::Rail { node, .. } => node,
            Death::Rank(_) => unreachable!("rails only"),
        };
        let outcome = run(&machine, options(deaths.clone()), |sim| async move {
            program(sim.clone(), seed, Rc::default()).await;
            sim.rank() == victim || !sim.rail_works(rail, victim)
        })
        .unwrap_or_else(|why| panic!("{ranks} ranks, seed {seed}, {deaths:?}: {why}"));
        assert!(outcome.results.iter().all(|seen| *seen == Some(true)), "seed {seed}: {deaths:?}");
        // Data under way are sent again only after the death has been detected.
        repeated += u64::from(outcome.end() > alive.end() + 900 * MICROSECOND);
    }
    assert!(repeated >= SEEDS / 3, "only {repeated} of {SEEDS} deaths hit something under way");
}

// ---- the end of an epoch ----------------------------------------------------------------------------

/// Returns the time, in seconds, that rank 1 waits for the end of an epoch in which rank 0 puts `len` bytes.
fn epoch(machine: &Rc<Machine>, ending: EpochEnding, len: usize) -> f64 {
    let outcome = run(machine, SimOptions::new(2), |sim| {
        let engine = engine(sim);
        async move {
            let comm = Comm::world(&engine);
            let body = async move {
                let brings = WindowOffer::Allocate { len: LONG, align: 64 };
                let options = WindowOptions { ending, ..WindowOptions::default() };
                let window = Window::create(&comm, brings, 1, options).await.unwrap();
                let word = ty(AINT);
                let data = Buffer::phantom(len / 8, word.clone());
                let location = TargetLocation { rank: 1, disp: 0, count: len / 8, ty: &word };
                let now = || comm.engine().endpoint().fabric().now();
                let mut shortest = f64::INFINITY;
                for _ in 0..4 {
                    comm.barrier().await.unwrap();
                    let start = now();
                    if comm.rank() == 0 {
                        window.start([1].into(), 0).await.unwrap();
                        window.put(&data, &location).await.unwrap();
                        window.complete().await.unwrap();
                    } else {
                        window.post([0].into(), 0).unwrap();
                        window.wait().await.unwrap();
                    }
                    shortest = (now() - start).as_secs_f64().min(shortest);
                }
                comm.barrier().await.unwrap();
                window.free().await.unwrap();
                shortest
            };
            engine.run(body).await
        }
    });
    outcome.unwrap_or_else(|why| panic!("{ending:?}, {len} bytes: {why}")).results[1]
        .expect("alive")
}

/// Flags behind the data save the return of the acknowledgements, and the latency of a later flag.
#[test]
fn a_target_hears_of_the_end_of_an_epoch_behind_its_data() {
    for name in ["em64t", "ndr"] {
        let machine = Rc::new(Machine::load_with(name, &[("nodes", "2")]).expect("a machine"));
        for len in [8, 64 << 10, 1 << 20] {
            let times = EpochEnding::ALL.map(|ending| epoch(&machine, ending, len));
            println!(
                "{name}, {len} bytes: {:?}",
                EpochEnding::ALL.map(EpochEnding::name).into_iter().zip(times).collect::<Vec<_>>()
            );
            let [used, every, acknowledged] = times;
            assert!(used <= every && every < acknowledged, "{name}, {len} bytes: {times:?}");
            assert!(len > 8 || used < 0.8 * acknowledged, "{name}, {len} bytes: {times:?}");
        }
    }
}

/// Data under way on a rail that dies arrive again later than a flag on another rail.
#[test]
fn the_end_of_an_epoch_is_not_heard_before_data_that_are_repeated() {
    let machine = Rc::new(Machine::load_with("em64t", &[("nodes", "2")]).expect("a machine"));
    let mut late = 0;
    for (at, ending) in (0..40).flat_map(|i| EpochEnding::ALL.map(|ending| (10 * i, ending))) {
        let deaths = vec![(at * MICROSECOND, Death::Rail { node: 0, rail: 1 })];
        let outcome = run(&machine, SimOptions { deaths, ..SimOptions::new(2) }, |sim| {
            let engine = engine(sim);
            async move {
                let comm = Comm::world(&engine);
                let body = async move {
                    let brings = WindowOffer::Allocate { len: 8 * LEN, align: 64 };
                    let options = WindowOptions { ending, ..WindowOptions::default() };
                    let window = Window::create(&comm, brings, 8, options).await.unwrap();
                    window.memory().fill(&vec![0; 8 * LEN]);
                    comm.barrier().await.unwrap();
                    let content: Vec<i64> = (0..LEN).map(|i| value(1, 0, i)).collect();
                    let fabric = comm.engine().endpoint().fabric();
                    let start = fabric.now();
                    if comm.rank() == 0 {
                        let (data, word) = (Numbers::new(&comm, &content), ty(AINT));
                        let location = TargetLocation { rank: 1, disp: 0, count: LEN, ty: &word };
                        window.start([1].into(), 0).await.unwrap();
                        window.put(&data.buffer(), &location).await.unwrap();
                        fabric.charge(weft_fabric::Work::Compute(90 * MICROSECOND));
                        std::future::poll_fn(|cx| fabric.poll_clock(cx)).await;
                        window.complete().await.unwrap();
                    } else {
                        window.post([0].into(), 0).unwrap();
                        window.wait().await.unwrap();
                        let now = numbers(window.memory());
                        assert!(now == content, "{ending:?}, dead at {at} us: not all is there");
                    }
                    let time = fabric.now() - start;
                    comm.barrier().await.unwrap();
                    window.free().await.unwrap();
                    time
                };
                engine.run(body).await
            }
        });
        let outcome = outcome.unwrap_or_else(|why| panic!("{ending:?}, dead at {at} us: {why}"));
        late += u32::from(outcome.results[1].expect("alive").as_micros() > 900);
    }
    assert!(late >= 10, "only {late} deaths hit data under way");
}

// ---- unequal rails ----------------------------------------------------------------------------------

/// Length of a long operation, in bytes.
const LONG: usize = 4 << 20;

/// Returns the time of `count` puts of `len` bytes and a flush, in seconds, after long puts.
fn puts(machine: &Rc<Machine>, len: usize, count: usize) -> f64 {
    const ROUNDS: u32 = 20;
    let outcome = run(machine, SimOptions::new(2), |sim| {
        let engine = engine(sim);
        async move {
            let comm = Comm::world(&engine);
            let body = async move {
                let brings = WindowOffer::Allocate { len: LONG, align: 64 };
                let window =
                    Window::create(&comm, brings, 1, WindowOptions::default()).await.unwrap();
                let word = ty(AINT);
                window.lock_all(0).await.unwrap();
                let mut time = 0.0;
                let fabric = comm.engine().endpoint().fabric();
                for round in 0..2 * ROUNDS {
                    // The first half of the rounds learns the rates.
                    let learns = round < ROUNDS;
                    let count_of = if learns { LONG } else { len } / 8;
                    let data = Buffer::phantom(count_of, word.clone());
                    let location = TargetLocation { rank: 1, disp: 0, count: count_of, ty: &word };
                    let start = fabric.now();
                    if comm.rank() == 0 {
                        for _ in 0..count {
                            window.put(&data, &location).await.unwrap();
                        }
                        window.flush(1).await.unwrap();
                    }
                    if !learns {
                        time += (fabric.now() - start).as_secs_f64();
                    }
                }
                window.unlock_all().await.unwrap();
                comm.barrier().await.unwrap();
                window.free().await.unwrap();
                time / f64::from(ROUNDS)
            };
            engine.run(body).await
        }
    });
    outcome.unwrap_or_else(|why| panic!("{len} bytes: {why}")).results[0].expect("alive")
}

#[test]
fn unequal_rails_add_up() {
    let base = Machine::load_with("ndr", &[("nodes", "2")]).expect("a machine");
    for (fast, slow) in [(900.0, 300.0), (1000.0, 100.0), (971.0, 700.0)] {
        let with = |rates: &[f64]| {
            let mut machine = base.clone();
            let rail = |&rate: &f64| {
                let mut rail = machine.rail[0].clone();
                (rail.bus, rail.bandwidth) = (None, Rate::from_mb_per_s(rate));
                rail
            };
            machine.rail = rates.iter().map(rail).collect();
            Rc::new(machine)
        };
        let rate = |rates: &[f64]| LONG as f64 / puts(&with(rates), LONG, 1);
        let (one, other, both) = (rate(&[fast]), rate(&[slow]), rate(&[fast, slow]));
        let share = both / (one + other);
        println!("{fast} and {slow} MB/s, 4 MiB: {both:.3e} of {:.3e}: {share:.3}", one + other);
        assert!(share >= 0.95, "{fast} and {slow} MB/s: {share:.3} of their sum");
        for count in [1, 16] {
            let (one, both) =
                (puts(&with(&[fast]), 8, count), puts(&with(&[fast, slow]), 8, count));
            println!("{fast} and {slow} MB/s, {count} of 8 B: {one:.3e} s alone, {both:.3e} s");
            assert!(both <= one * 1.001, "8 bytes: {both} s over both, {one} s over one");
        }
    }
}

/// Checks that the library spreads a put over the rails if the put has at least the length that the machine's description names.
#[test]
fn puts_are_spread_from_the_length_that_the_network_names() {
    const PUTS: u64 = 64;
    let writes = |fragment: &str, count: usize| {
        let settings = [("nodes", "2"), ("fragment", fragment)];
        let machine = Rc::new(Machine::load_with("ia32", &settings).expect("a machine"));
        let outcome = run(&machine, SimOptions::new(2), |sim| {
            let engine = engine(sim);
            async move {
                let comm = Comm::world(&engine);
                let body = async move {
                    let brings = WindowOffer::Allocate { len: 8 * LEN, align: 64 };
                    let options = WindowOptions::default();
                    let window = Window::create(&comm, brings, 8, options).await.unwrap();
                    let (data, word) = (Numbers::new(&comm, &vec![1; count]), ty(AINT));
                    window.lock_all(0).await.unwrap();
                    for _ in 0..PUTS * u64::from(comm.rank() == 0) {
                        let location = TargetLocation { rank: 1, disp: 0, count, ty: &word };
                        window.put(&data.buffer(), &location).await.unwrap();
                    }
                    window.unlock_all().await.unwrap();
                    comm.barrier().await.unwrap();
                };
                engine.run(body).await
            }
        });
        outcome.unwrap().counts.writes
    };
    // A put has 4,000 bytes.
    let (whole, spread) = (writes("4001", 500), writes("4000", 500));
    assert!(whole >= PUTS && spread >= whole + PUTS, "{whole} writes whole, {spread} in fragments");
}
