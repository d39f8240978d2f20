//! Messages over several rails: the rates of unequal rails add up, and a rail that dies loses nothing.

use fastrand::Rng;
use std::rc::Rc;
use weft_datatype::{Basic, Predefined};
use weft_fabric::wait::WaitPolicy;
use weft_fabric::{Fabric, FabricExt, Staging, boxed};
use weft_fabric_sim::units::{MICROSECOND, Picoseconds, Rate};
use weft_fabric_sim::{Death, Machine, RunOutcome, SimOptions, run};
use weft_p2p::{ProtocolLimits, SendMode};
use weft_process::{Buffer, Comm, Destination, Engine, Origin};

const LONG: usize = 4 << 20;
const ROUNDS: usize = 12;

fn byte() -> weft_datatype::Type {
    Predefined::new().of(Basic::BYTE).clone()
}

/// Returns a machine with a rail of each rate, in MB/s. Host and links are the same as in `ndr`.
fn with(rates: &[f64]) -> Rc<Machine> {
    let mut machine = Machine::load_with("ndr", &[("nodes", "2")]).expect("a machine");
    let first = machine.rail[0].clone();
    let rail = |&rate: &f64| {
        let mut rail = first.clone();
        (rail.bus, rail.bandwidth) = (None, Rate::from_mb_per_s(rate));
        rail
    };
    machine.rail = rates.iter().map(rail).collect();
    Rc::new(machine)
}

async fn move_one(comm: &Rc<Comm<Box<dyn Fabric>>>, data: &Buffer, tag: i32) {
    let active = match comm.rank() {
        0 => comm.isend(data, Destination::Rank(1), tag, SendMode::Standard),
        _ => comm.irecv(data, Origin::Rank(0), Some(tag)),
    };
    comm.finished(active).await.expect("moved");
}

/// Returns the time in seconds of one message of `len` bytes, after some long messages.
fn seconds(machine: &Rc<Machine>, len: usize) -> f64 {
    let outcome = run(machine, SimOptions::new(2), |sim| {
        let engine =
            Engine::new(boxed(sim.clone()), WaitPolicy::new(true), ProtocolLimits::default());
        async move {
            let comm = Comm::world(&engine);
            let body = async move {
                let mut start = sim.now();
                for round in 0..2 * ROUNDS {
                    if round == ROUNDS {
                        start = sim.now();
                    }
                    let bytes = if round < ROUNDS { LONG } else { len };
                    move_one(&comm, &Buffer::phantom(bytes, byte()), 0).await;
                }
                (sim.now() - start).as_secs_f64() / ROUNDS as f64
            };
            engine.run(body).await
        }
    });
    outcome.unwrap_or_else(|why| panic!("{len} bytes: {why}")).results[1].expect("alive")
}

#[test]
fn unequal_rails_add_up() {
    for (fast, slow) in [(900.0, 300.0), (1000.0, 100.0), (971.0, 971.0)] {
        let rate = |rates: &[f64]| LONG as f64 / seconds(&with(rates), LONG);
        let (one, other, both) = (rate(&[fast]), rate(&[slow]), rate(&[fast, slow]));
        println!("{fast} and {slow} MB/s: {:.3} of their sum", both / (one + other));
        assert!(both >= 0.95 * (one + other), "{fast} and {slow}: {both} of {one} + {other}");
        let (alone, beside) = (seconds(&with(&[fast]), 8), seconds(&with(&[fast, slow]), 8));
        assert!(
            beside <= alone * 1.001,
            "8 bytes: {beside} s with a second rail, {alone} s without"
        );
    }
}

/// Two ports of one adapter whose bus carries less than both: the ports take turns, and the later port is not slower for that.
#[test]
fn equal_rails_on_one_bus_carry_equal_fragments() {
    let machine = Rc::new(Machine::load("em64t").expect("a machine"));
    for len in [128 << 10, 256 << 10, 512 << 10] {
        let outcome = run(&machine, SimOptions::new(2).trace(), |sim| {
            let engine = Engine::new(boxed(sim), WaitPolicy::new(true), ProtocolLimits::default());
            async move {
                let comm = Comm::world(&engine);
                let body = async move {
                    for _ in 0..ROUNDS {
                        move_one(&comm, &Buffer::phantom(len, byte()), 0).await;
                    }
                };
                engine.run(body).await
            }
        });
        let trace = outcome.expect("no deadlock").trace.expect("a trace");
        // Control messages are shorter than any part of a fragment.
        let parts: Vec<usize> =
            trace.arrows.iter().map(|arrow| arrow.bytes).filter(|len| *len > 4 << 10).collect();
        assert_eq!(parts, vec![64 << 10; ROUNDS * len / (64 << 10)], "{len} bytes");
    }
}

/// Sends messages of many lengths, and checks each byte.
fn contents(machine: &Rc<Machine>, options: SimOptions) -> RunOutcome<usize> {
    let seed = options.seed;
    let outcome = run(machine, options, |sim| {
        let engine = Engine::new(boxed(sim), WaitPolicy::new(true), ProtocolLimits::default());
        async move {
            let comm = Comm::world(&engine);
            let body = async move {
                let mut rng = Rng::with_seed(seed);
                let mut right = 0;
                for tag in 0..8 {
                    let mut bytes = vec![0u8; rng.usize(1..700_000)];
                    rng.fill(&mut bytes);
                    let memory: Staging = comm.engine().endpoint().staging().take(bytes.len());
                    let sends = comm.rank() == 0;
                    memory.sge().fill(if sends { &bytes[..] } else { &[][..] });
                    move_one(&comm, &Buffer::over(memory.sge(), byte()), tag).await;
                    let mut got = vec![0; bytes.len()];
                    memory.sge().read(&mut got);
                    right += usize::from(got == bytes);
                }
                right
            };
            engine.run(body).await
        }
    });
    outcome.unwrap_or_else(|why| panic!("seed {seed}: {why}"))
}

#[test]
fn a_rail_that_dies_loses_no_byte() {
    let machine = with(&[900.0, 500.0]);
    let mut repeated = 0;
    const SEEDS: u64 = 40;
    for seed in 0..SEEDS {
        let options = SimOptions::new(2).seed(seed);
        let alive = contents(&machine, options.clone());
        let mut rng = Rng::with_seed(seed);
        let when: Picoseconds = rng.u64(1..alive.end());
        let rail = Death::Rail { node: rng.usize(0..2), rail: rng.usize(0..2) };
        let dying = SimOptions { deaths: vec![(when, rail)], ..options };
        let outcome = contents(&machine, dying);
        assert_eq!(outcome.results, [Some(8), Some(8)], "seed {seed}: {rail:?} at {when} ps");
        repeated += u64::from(outcome.end() > alive.end() + 900 * MICROSECOND);
    }
    assert!(repeated >= SEEDS / 2, "only {repeated} of {SEEDS} deaths hit something under way");
}
