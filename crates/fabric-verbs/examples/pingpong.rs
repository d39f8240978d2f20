//! Measures half a round trip of a message between two processes of one machine, which spin; for a first look at an adapter.
//! The two ranks are threads, on the given adapters (or ports), or on all.
//!
//!     cargo run --release -p weft-fabric-verbs --example pingpong [ADAPTER [ADAPTER]]

use std::time::Instant;
use weft_bootstrap::{Bootstrap, ThreadBootstrap, threads};
use weft_fabric::{Fabric, Head, PostOutcome, Sge};
use weft_fabric_verbs::{Verbs, VerbsOptions};

const ROUNDS: u32 = 1000;

fn take(verbs: &Verbs) {
    loop {
        verbs.progress();
        if let Some(message) = verbs.receive(None) {
            return verbs.release(message);
        }
        if let Some(fault) = verbs.fault() {
            panic!("{fault}: {}", verbs.trouble().unwrap_or_default());
        }
    }
}

fn play(world: &mut ThreadBootstrap, adapter: Option<String>) {
    let options =
        VerbsOptions { devices: adapter.into_iter().collect(), ..VerbsOptions::default() };
    let verbs = Verbs::connect_with(world, options).unwrap_or_else(|error| panic!("{error}"));
    let rank = verbs.rank();
    let mut bytes = vec![1u8; 8192];
    for len in [0, 8, 100, 1024, 8192] {
        // SAFETY: `Sge::new` needs memory that is valid while in use: `bytes` outlives all operations.
        let payload = unsafe { Sge::new(bytes.as_mut_ptr(), len) };
        let send = || {
            let posted = verbs.send(1 - rank, Head::default(), payload, None);
            while posted == PostOutcome::Later && !verbs.idle() {
                verbs.progress();
            }
        };
        let mut start = Instant::now();
        for round in 0..ROUNDS + 100 {
            if round == 100 {
                start = Instant::now();
            }
            if rank == 0 {
                send();
            }
            take(&verbs);
            if rank == 1 {
                send();
            }
        }
        if rank == 0 {
            let half = start.elapsed().as_secs_f64() * 1e6 / f64::from(2 * ROUNDS);
            println!("{len:5} bytes {half:8.2} us");
        }
    }
    while !verbs.idle() {
        verbs.progress();
    }
    if rank == 0 {
        verbs.describe().iter().for_each(|line| println!("{line}"));
    }
    world.fence().expect("the other rank is well");
}

fn main() {
    let mut adapters = std::env::args().skip(1).map(Some).collect::<Vec<_>>();
    adapters.resize(2, None);
    std::thread::scope(|scope| {
        for (mut world, adapter) in threads(2).into_iter().zip(adapters) {
            scope.spawn(move || play(&mut world, adapter));
        }
    });
}
