//! Accumulates of 8-byte integers, by adapters and under the guard: results and costs.

use crate::common::*;
use fastrand::Rng;
use std::collections::BTreeSet;
use std::rc::Rc;
use weft_datatype::{Basic, Datatype, PredefinedOp, Type, Width};
use weft_fabric::wait::WaitPolicy;
use weft_fabric::{Fabric, FabricExt, boxed};
use weft_fabric_sim::{Chaos, Machine, RunCounts, SimOptions, run};
use weft_p2p::ProtocolLimits;
use weft_process::{Buffer, Comm, Engine};
use weft_rma::{
    Atomics, FenceDesign, LockKind, TargetChange, TargetLocation, Window, WindowOffer,
    WindowOptions,
};

fn options(atomics: Atomics) -> WindowOptions {
    WindowOptions { atomics, ..WindowOptions::default() }
}

async fn allocated<F: Fabric>(
    comm: &Rc<Comm<F>>,
    len: usize,
    options: WindowOptions,
) -> Rc<Window<F>> {
    let brings = WindowOffer::Allocate { len, align: 8 };
    let window = Window::create(comm, brings, 1, options).await.unwrap();
    window.memory().fill(&vec![0; len]);
    comm.barrier().await.unwrap();
    window
}

/// Runs a program on nodes of two ranks each, with operations that overtake each other.
fn on_pairs(ranks: usize, seed: u64, program: impl Program) {
    let sets = [("nodes", "8"), ("ranks_per_node", "2")];
    let machine = Rc::new(Machine::load_with("ndr", &sets).expect("a machine"));
    let chaos = Chaos { loss: None, ..Chaos::rough() };
    let outcome = run(&machine, SimOptions::new(ranks).seed(seed).chaos(chaos), |sim| {
        let engine = Engine::new(boxed(sim), WaitPolicy::new(true), ProtocolLimits::USUAL);
        engine.run(program.run(Comm::world(&engine)))
    });
    outcome.unwrap_or_else(|why| panic!("{ranks} ranks, seed {seed}: {why}"));
}

// ---- cost of an operation ---------------------------------------------------------------------------

#[derive(Debug, Clone, Copy)]
enum What {
    Op(PredefinedOp),
    Swap,
}

const KEPT: [i64; 1] = [1 << 40];

/// Changes `count` words of rank 1 `times` times from rank 0. Returns the time in nanoseconds.
async fn changes(
    comm: Rc<Comm<Box<dyn Fabric>>>,
    what: What,
    ty: Type,
    count: usize,
    atomics: Atomics,
    times: usize,
) -> f64 {
    let window = allocated(&comm, 8 * count, options(atomics)).await;
    window.memory().fill(&KEPT[0].to_ne_bytes().repeat(count));
    comm.barrier().await.unwrap();
    let (mine, was) = (vec![3; count], vec![0; count]);
    let (mine, was) = (Numbers::new(&comm, &mine), Numbers::new(&comm, &was));
    // The values do not matter, only the bits.
    let of = |numbers: &Numbers| Buffer::over(numbers.sge(), ty.clone());
    let (mine, was) = (of(&mine), of(&was));
    window.lock_all(0).await.unwrap();
    let fabric = comm.engine().endpoint().fabric();
    let start = fabric.now();
    if comm.rank() == 0 {
        for _ in 0..times {
            let change = match what {
                What::Op(PredefinedOp::NoOp) => {
                    TargetChange::Reduce { op: PredefinedOp::NoOp, origin: None }
                }
                What::Op(op) => TargetChange::Reduce { op, origin: Some(&mine) },
                What::Swap => TargetChange::Swap { compare: &mine, new: &mine },
            };
            let location = TargetLocation { rank: 1, disp: 0, count, ty: &ty };
            window.accumulate(change, Some(&was), &location).await.unwrap();
        }
    }
    let time = (fabric.now() - start).as_secs_f64() * 1e9;
    window.unlock_all().await.unwrap();
    comm.barrier().await.unwrap();
    window.free().await.unwrap();
    time
}

/// Returns the atomics, reads, writes and messages of one change, and its time in nanoseconds.
fn cost(what: What, ty: &Type, count: usize, atomics: Atomics) -> ([u64; 4], f64) {
    const TIMES: usize = 10;
    let machine = Rc::new(Machine::load_with("ndr", &[("nodes", "2")]).expect("a machine"));
    let counted = |times| -> (RunCounts, f64) {
        let outcome = run(&machine, SimOptions::new(2), |sim| {
            let engine = Engine::new(boxed(sim), WaitPolicy::new(true), ProtocolLimits::USUAL);
            engine.run(changes(Comm::world(&engine), what, ty.clone(), count, atomics, times))
        })
        .unwrap_or_else(|why| panic!("{what:?}: {why}"));
        (outcome.counts, outcome.results[0].unwrap())
    };
    // The first change also takes the lock of MPI_Win_lock_all, so it is subtracted.
    let ((none, idle), (all, time)) = (counted(1), counted(1 + TIMES));
    let of = |counts: RunCounts| [counts.atomics, counts.reads, counts.writes, counts.messages];
    let [none, all] = [none, all].map(of);
    let each = std::array::from_fn(|i| {
        let more = all[i] - none[i];
        assert_eq!(more % TIMES as u64, 0, "{what:?}: each costs the same");
        more / TIMES as u64
    });
    (each, (time - idle) / TIMES as f64)
}

#[test]
fn an_integer_takes_one_operation_or_two() {
    let word = ty(AINT);
    // The words are above 3, so MAX leaves them as they are.
    let cases = [
        (What::Op(PredefinedOp::Sum), 1, [4, 1, 1, 0]),
        (What::Op(PredefinedOp::NoOp), 1, [4, 1, 0, 0]),
        (What::Swap, 1, [4, 1, 1, 0]),
        (What::Op(PredefinedOp::Max), 1, [4, 1, 1, 0]),
    ];
    for (what, atomics, guarded) in cases {
        let adapter = cost(what, &word, 1, Atomics::Adapter);
        let guard = cost(what, &word, 1, Atomics::Guarded);
        println!("{what:?}: {adapter:?}, under the guard {guard:?}");
        assert_eq!(adapter.0, [atomics, 0, 0, 0], "{what:?}");
        assert_eq!(guard.0, guarded, "{what:?} under the guard");
        assert!(4.0 * adapter.1 < guard.1, "{what:?}: {} and {} ns", adapter.1, guard.1);
    }
    // A product is a new value each time: the word is read, and swapped.
    let product = cost(What::Op(PredefinedOp::Prod), &word, 1, Atomics::Adapter);
    assert_eq!(product.0, [2, 0, 0, 0], "{product:?}");
}

#[test]
fn several_integers_are_under_way_together() {
    let word = ty(AINT);
    let time = |what, count| cost(what, &word, count, Atomics::Adapter);
    let ((one, alone), (many, together)) =
        (time(What::Op(PredefinedOp::Sum), 1), time(What::Op(PredefinedOp::Sum), 16));
    assert_eq!((one, many), ([1, 0, 0, 0], [16, 0, 0, 0]));
    assert!(together < 3.0 * alone, "16 sums take {together} ns, one {alone}");
    let ((one, alone), (many, together)) =
        (time(What::Op(PredefinedOp::Prod), 1), time(What::Op(PredefinedOp::Prod), 16));
    assert_eq!((one, many), ([2, 0, 0, 0], [16, 1, 0, 0]), "one read brings all");
    assert!(together < 3.0 * alone, "16 products take {together} ns, one {alone}");
    for count in [16, 64, 100, 1000] {
        for what in [What::Op(PredefinedOp::Sum), What::Op(PredefinedOp::Prod)] {
            let guard = cost(what, &word, count, Atomics::Guarded);
            println!("{count} of {what:?}: {:?}, under the guard {guard:?}", time(what, count));
        }
    }
}

#[test]
fn other_elements_stay_under_the_guard() {
    let double = ty(Basic::DOUBLE);
    for atomics in Atomics::ALL {
        assert_eq!(cost(What::Op(PredefinedOp::Sum), &double, 1, atomics).0, [4, 1, 1, 0]);
    }
}

// ---- one word, many origins -------------------------------------------------------------------------

/// Counters, maxima, tickets and a spin lock, all on rank 0.
#[derive(Clone, Copy)]
struct OneWord(fn(usize) -> Atomics);

impl Program for OneWord {
    async fn run<F: Fabric>(self, comm: Rc<Comm<F>>) {
        const TIMES: usize = 25;
        let (me, size) = (comm.rank(), comm.size());
        let window = allocated(&comm, 48, options(self.0(me))).await;
        let word = ty(AINT);
        let (mine, was) = (Numbers::new(&comm, &[1]), Numbers::new(&comm, &[0]));
        let at = |index: i64| TargetLocation { rank: 0, disp: 8 * index, count: 1, ty: &word };
        let fetch = async |op: PredefinedOp, value: i64, index: i64| {
            mine.set(&[value]);
            let buffer = mine.buffer();
            let origin = (op != PredefinedOp::NoOp).then_some(&buffer);
            let change = TargetChange::Reduce { op, origin };
            window.accumulate(change, Some(&was.buffer()), &at(index)).await.unwrap();
            was.get()[0]
        };
        window.lock_all(0).await.unwrap();
        // All former values differ, and are the values of a counter.
        let mut seen = Vec::new();
        for _ in 0..TIMES {
            seen.push(fetch(PredefinedOp::Sum, 1, 0).await);
        }
        assert!(seen.is_sorted_by(|a, b| a < b), "one origin's are in order: {seen:?}");
        let (own, all) = (Numbers::new(&comm, &seen), Numbers::new(&comm, &vec![0; TIMES * size]));
        let blocks: Vec<_> =
            (0..size).map(|r| all.buffer().block((r * TIMES) as i64, TIMES)).collect();
        comm.allgather(Some(own.buffer()), blocks.into()).await.unwrap();
        let values: BTreeSet<i64> = all.get().into_iter().collect();
        assert!(values.into_iter().eq(0..(TIMES * size) as i64), "{:?}", all.get());
        // The maximum never decreases, and ends as the maximum of all values.
        let mut rng = Rng::with_seed(me as u64);
        let mut last = i64::MIN;
        for i in 0..TIMES {
            let value = (i * size + me) as i64 * 8 + rng.i64(0..8);
            let before = fetch(PredefinedOp::Max, value, 1).await;
            assert!(before >= last, "{before} after {last}");
            last = before.max(value);
        }
        // Each replacement is taken out by a rank exactly once, except the last.
        let mut sum = 0;
        for i in 0..TIMES {
            let value = (me * TIMES + i + 1) as i64;
            sum += value - fetch(PredefinedOp::Replace, value, 2).await;
        }
        fetch(PredefinedOp::Sum, sum, 3).await;
        // A lock by compare-and-swap; the data that it guards are put and got.
        let (free, taken) = (Numbers::new(&comm, &[0]), Numbers::new(&comm, &[me as i64 + 1]));
        let (free, taken) = (free.buffer(), taken.buffer());
        for _ in 0..TIMES {
            loop {
                let swap = TargetChange::Swap { compare: &free, new: &taken };
                window.accumulate(swap, Some(&was.buffer()), &at(4)).await.unwrap();
                if was.get()[0] == 0 {
                    break;
                }
            }
            let issued = window.get(&was.buffer(), &at(5)).await.unwrap();
            window.until_over(issued).await.unwrap();
            mine.set(&[was.get()[0] + 1]);
            window.put(&mine.buffer(), &at(5)).await.unwrap();
            window.flush(0).await.unwrap();
            assert_eq!(
                fetch(PredefinedOp::Replace, 0, 4).await,
                me as i64 + 1,
                "the lock was ours"
            );
        }
        window.unlock_all().await.unwrap();
        comm.barrier().await.unwrap();
        if me == 0 {
            let [count, most, replaced, out, lock, locked] = numbers(window.memory())[..] else {
                unreachable!()
            };
            let all = (TIMES * size) as i64;
            assert_eq!((count, locked, lock), (all, all, 0));
            assert!((8 * (all - 1)..8 * all).contains(&most), "{most}");
            assert_eq!(replaced, out, "what was not taken out is there");
        }
        comm.barrier().await.unwrap();
        window.free().await.unwrap();
    }
}

#[test]
fn one_word_is_updated_by_all_as_if_alone() {
    // In the last case ranks have different settings: the target's setting counts.
    let ways: [fn(usize) -> Atomics; 3] =
        [|_| Atomics::Adapter, |_| Atomics::Guarded, |rank| Atomics::ALL[rank % 3]];
    for way in ways {
        for place in ALL {
            for ranks in [1, 3] {
                run_at(place, ranks, OneWord(way));
            }
        }
        for seed in 0..20 {
            on_pairs(4, seed, OneWord(way));
        }
    }
}

// ---- random programs --------------------------------------------------------------------------------

/// Size of each window, in bytes.
const LEN: usize = 16 << 10;
const ROUNDS: u64 = 4;

/// A change that all ranks make at the same place, in any order: the result is the same in all orders.
#[derive(Debug, Clone)]
struct Step {
    target: usize,
    disp: i64,
    count: usize,
    kind: usize,
    op: PredefinedOp,
    fetches: bool,
}

const OPS: [PredefinedOp; 9] = [
    PredefinedOp::Sum,
    PredefinedOp::Sum,
    PredefinedOp::Min,
    PredefinedOp::Max,
    PredefinedOp::Prod,
    PredefinedOp::BitAnd,
    PredefinedOp::BitOr,
    PredefinedOp::BitXor,
    PredefinedOp::LogicalXor,
];

/// Returns datatypes of words: contiguous; with a gap; with an aligned and a misaligned word in 32 bytes.
fn types() -> [Type; 3] {
    let word = ty(AINT);
    let gap = Datatype::resized(Width::Int, &word, 0, 24).unwrap();
    let odd = Datatype::hindexed(Width::Int, &[1, 1], &[0, 12], &word).unwrap();
    let odd = Datatype::resized(Width::Int, &odd, 0, 32).unwrap();
    [&gap, &odd].into_iter().for_each(|ty| ty.commit());
    [word, gap, odd]
}

const EXTENTS: [i64; 3] = [8, 24, 32];

/// Returns the places of a step's words, in bytes, in packed order.
fn places(step: &Step) -> Vec<usize> {
    let of: &[usize] = if step.kind == 2 { &[0, 12] } else { &[0] };
    let at = |i: usize| step.disp as usize + i * EXTENTS[step.kind] as usize;
    let element = |i: usize| of.iter().map(move |offset| at(i) + offset);
    (0..step.count).flat_map(element).collect()
}

fn steps(rng: &mut Rng, ranks: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    for target in 0..ranks {
        let mut next = 0;
        while next < LEN {
            // Long steps exceed the maximum number of atomics under way, and of bytes read at once.
            let longest = [2, 20, 200, 800][rng.usize(0..4)];
            let step = Step {
                target,
                disp: (next + [0, 0, 8, 4, 3][rng.usize(0..5)]) as i64,
                count: rng.usize(1..=longest),
                kind: rng.usize(0..3),
                op: OPS[rng.usize(0..OPS.len())],
                fetches: rng.bool(),
            };
            let end = places(&step).last().unwrap() + 8;
            if end > LEN {
                break;
            }
            next = end.next_multiple_of(8);
            steps.push(step);
        }
    }
    rng.shuffle(&mut steps);
    steps
}

/// Returns the origin's value of `rank` for word `i` of a step.
fn value(round: u64, rank: usize, i: usize) -> i64 {
    let mut rng = Rng::with_seed(round << 40 | (rank as u64) << 20 | i as u64);
    if rng.bool() { rng.i64(..) } else { rng.i64(-3..4) }
}

fn apply(op: PredefinedOp, a: i64, b: i64) -> i64 {
    match op {
        PredefinedOp::Sum => a.wrapping_add(b),
        PredefinedOp::Min => a.min(b),
        PredefinedOp::Max => a.max(b),
        PredefinedOp::Prod => a.wrapping_mul(b),
        PredefinedOp::BitAnd => a & b,
        PredefinedOp::BitOr => a | b,
        PredefinedOp::BitXor => a ^ b,
        PredefinedOp::LogicalXor => i64::from((a != 0) != (b != 0)),
        _ => unreachable!("not drawn"),
    }
}

/// All ranks make the same steps of a seed, each rank in an order of its own.
#[derive(Clone, Copy)]
struct Random(WindowOptions, u64);

impl Program for Random {
    async fn run<F: Fabric>(self, comm: Rc<Comm<F>>) {
        let Random(options, seed) = self;
        let (me, ranks) = (comm.rank(), comm.size());
        let (types, word) = (types(), ty(AINT));
        let window = allocated(&comm, LEN, options).await;
        let mut model = vec![vec![0u8; LEN]; ranks];
        let mut rng = Rng::with_seed(seed);
        for round in 0..ROUNDS {
            let mut steps = steps(&mut rng, ranks);
            let fenced = rng.bool();
            let mut own = Rng::with_seed(seed ^ (me as u64) << 32);
            own.shuffle(&mut steps);
            match fenced {
                true => window.fence(0).await.unwrap(),
                false => window.lock_all(0).await.unwrap(),
            }
            let mut held = Vec::new();
            for step in &steps {
                let n = places(step).len();
                let values: Vec<i64> = (0..n).map(|i| value(round, me, i)).collect();
                let (mine, was) = (Numbers::new(&comm, &values), Numbers::new(&comm, &vec![9; n]));
                let (ty, words) = (&types[step.kind], n / step.count);
                let mut first = 0;
                // Each rank divides the step differently: the protocol of an element must not depend on the number of elements.
                while first < step.count {
                    let count = match own.bool() {
                        true => step.count - first,
                        false => own.usize(1..=step.count - first),
                    };
                    let part = |of: &Numbers| {
                        let bytes = of.sge().part(8 * words * first, 8 * words * count);
                        Buffer::over(bytes, word.clone())
                    };
                    let (origin, result) = (part(&mine), part(&was));
                    let disp = step.disp + first as i64 * EXTENTS[step.kind];
                    let location = TargetLocation { rank: step.target, disp, count, ty };
                    let change = TargetChange::Reduce { op: step.op, origin: Some(&origin) };
                    let result = step.fetches.then_some(&result);
                    window.accumulate(change, result, &location).await.unwrap();
                    first += count;
                }
                held.push((step.clone(), mine, was));
            }
            match fenced {
                true => window.fence(weft_rma::assert::NOSUCCEED).await.unwrap(),
                false => window.unlock_all().await.unwrap(),
            }
            comm.barrier().await.unwrap();
            // The order of the ranks does not matter, because the operators commute.
            for (step, ..) in &held {
                for (i, at) in places(step).into_iter().enumerate() {
                    let there = &mut model[step.target][at..at + 8];
                    let mut now = i64::from_ne_bytes(there.try_into().unwrap());
                    (0..ranks).for_each(|rank| now = apply(step.op, value(round, rank, i), now));
                    there.copy_from_slice(&now.to_ne_bytes());
                }
            }
            let mut found = vec![0; LEN];
            window.memory().read(&mut found);
            if let Some(at) = (0..LEN).find(|&i| found[i] != model[me][i]) {
                panic!("{options:?}, seed {seed}, round {round}: rank {me} at {at}");
            }
            // With a single rank, the former values are known.
            if ranks == 1 && round == 0 {
                let fetched = held.iter().filter(|(step, ..)| step.fetches);
                fetched.for_each(|(_, _, was)| assert!(was.get().iter().all(|&word| word == 0)));
            }
            // Each rank reads the first word of a step by an operation that does not change it.
            if let Some((step, _, was)) = held.first() {
                let at = TargetLocation { rank: step.target, disp: step.disp, count: 1, ty: &word };
                let one = Buffer::over(was.sge().part(0, 8), word.clone());
                let get = TargetChange::Reduce { op: PredefinedOp::NoOp, origin: None };
                window.lock(LockKind::Shared, step.target, 0).await.unwrap();
                window.accumulate(get, Some(&one), &at).await.unwrap();
                window.unlock(step.target).await.unwrap();
                let at = step.disp as usize;
                let there = model[step.target][at..at + 8].try_into().unwrap();
                assert_eq!(was.get()[0], i64::from_ne_bytes(there), "seed {seed}: {step:?}");
            }
            comm.barrier().await.unwrap();
        }
        window.free().await.unwrap();
    }
}

#[test]
fn random_accumulates_come_out_as_the_oracle_says() {
    for atomics in Atomics::ALL {
        for seed in 0..6 {
            let fence = FenceDesign::ALL[seed as usize % FenceDesign::ALL.len()];
            let options = WindowOptions { fence, ..options(atomics) };
            on_pairs(4, seed, Random(options, seed));
            on_pairs(1 + seed as usize % 3, seed, Random(options, seed));
        }
        for place in ALL {
            for fence in [FenceDesign::Acknowledged, FenceDesign::TwoSided] {
                run_at(place, 3, Random(WindowOptions { fence, ..options(atomics) }, 99));
            }
        }
    }
}
