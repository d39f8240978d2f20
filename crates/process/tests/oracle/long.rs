//! Every algorithm with long data: beyond eager messages, in many segments, in every size of slots, and longer than slots.

use crate::simulated::calls::{self, Form};
use crate::simulated::memory::Layout::{Dense, Gaps};
use crate::simulated::ops::Op;
use crate::simulated::world::{Blocking, Notes, name, share, share_to_the_end, simulate};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weft_collective::algorithm::{Algorithm, Carrier, Requirement};
use weft_collective::arena::ROOMS;
use weft_collective::catalog::ALGORITHMS;
use weft_collective::{CollectiveKind, slots};
use weft_fabric::copies::{Caches, PastCaches};
use weft_fabric::{Fabric, boxed};
use weft_fabric_shm::Shm;
use weft_fabric_sim::{Chaos, SimOptions};
use weft_fabric_testing::machine::{machine, together};
use weft_p2p::stream::StreamSizes;

const fn form(count: usize, op: Op, gaps: bool, in_place: bool, varying: bool) -> Form {
    let layouts = if gaps { (Dense, Gaps) } else { (Dense, Dense) };
    Form { count, op, layouts, in_place, varying }
}

/// Lengths around the sizes of slots, for sums of elements of 8 bytes. Elements that are only moved have 3 bytes.
const LONG: [Form; 7] = [
    form(ROOMS[1] / 8, Op::Sum, false, false, false),
    form(ROOMS[1] / 8 + 1, Op::Float, true, true, true),
    form(ROOMS[2] / 32, Op::Product, false, true, true),
    form(ROOMS[2] / 8 + 1, Op::Sum, true, false, false),
    form(slots::MOST / 8, Op::Float, false, true, false),
    form(slots::MOST / 8 + 1, Op::Sum, false, false, false),
    form(slots::MOST / 3 + 1, Op::Float, true, false, true),
];

#[test]
fn long_data_in_virtual_time() {
    let notes = Arc::new(Notes::default());
    for n in [3, 4] {
        simulate(&machine(1), SimOptions::new(n), Blocking, calls::all(n, &LONG), &notes);
    }
    let refused = notes.refused.lock().unwrap();
    let too_long = format!("{} bytes: at most {}", slots::MOST + 8, slots::MOST);
    assert!(refused.contains(&too_long), "{refused:?}");
}

/// Sums of elements of 8 bytes, longer than the data that a rank puts down for other ranks.
const LONGER: [Form; 3] = [
    form(270_001, Op::Sum, false, false, false),
    form(263_000, Op::Float, false, true, false),
    form(70_003, Op::Product, true, false, true),
];

/// Returns the algorithms in which ranks that share memory wait for each other.
fn memory() -> impl Iterator<Item = &'static Algorithm> {
    ALGORITHMS.iter().filter(|a| a.meets())
}

#[test]
fn longer_data_that_are_combined_where_they_are() {
    let notes = Arc::new(Notes::default());
    let combine = || {
        use CollectiveKind::{Allreduce, Exscan, Reduce, ReduceScatter, Scan};
        let operations = [Allreduce, Exscan, Reduce, ReduceScatter, Scan];
        memory().filter(move |a| operations.contains(&a.operation))
    };
    for n in [2, 3, 7] {
        let calls: Vec<_> = combine().flat_map(|a| calls::of(a, n, &LONGER)).collect();
        share(n, "", Blocking, calls.clone(), &notes);
        // Seven ranks would take minutes, and find no more than three.
        if n < 7 {
            simulate(&together(n), SimOptions::new(n), Blocking, calls, &notes);
        }
    }
    let served = notes.served.lock().unwrap();
    let reads = combine().filter(|a| a.name.starts_with("SHM-READ"));
    reads.for_each(|a| assert!(served.contains(&name(a.usual())), "{}", name(a.usual())));
}

/// Two ranks that are sometimes far from each other, sometimes near: both ranks choose the same algorithm, whatever distance each
/// rank finds.
#[test]
fn two_ranks_whose_distance_changes() {
    let notes = Arc::new(Notes::default());
    let forms: Vec<_> = LONG.into_iter().chain(LONGER).cycle().take(40).collect();
    let calls: Vec<_> = memory().flat_map(|a| calls::of(a, 2, &forms)).collect();
    let far = AtomicU64::new(0);
    let changing = |shm: Shm| {
        shm.copies().assume(Caches::Changing, true);
        boxed(shm)
    };
    let count = |fabric: &dyn Fabric| {
        far.fetch_add(fabric.copies().count_far(), Ordering::Relaxed);
    };
    share_to_the_end(2, (changing, count), Blocking, calls, &notes);
    let far = far.into_inner();
    assert!(far > 20, "far {far} times");
}

/// Three ranks whose copies for each other go past the caches: no rank sees a flag before the data.
#[test]
fn three_ranks_that_copy_past_the_caches() {
    let notes = Arc::new(Notes::default());
    let calls: Vec<_> = memory().flat_map(|a| calls::of(a, 3, &LONG)).collect();
    let past = AtomicU64::new(0);
    let copying = |shm: Shm| {
        shm.copies().past_caches(PastCaches::From(64));
        boxed(shm)
    };
    let count = |fabric: &dyn Fabric| {
        past.fetch_add(fabric.copies().counted_past(), Ordering::Relaxed);
    };
    share_to_the_end(3, (copying, count), Blocking, calls, &notes);
    let past = past.into_inner();
    assert!(past > 20, "{past} copies past the caches");
}

#[test]
fn long_data_in_trouble() {
    let notes = Arc::new(Notes::default());
    let options = SimOptions::new(5).seed(7).chaos(Chaos::rough());
    simulate(&machine(2), options, Blocking, calls::all(5, &LONG), &notes);
}

#[test]
fn long_data_on_shared_memory() {
    let notes = Arc::new(Notes::default());
    for n in [2, 3] {
        share(n, "", Blocking, calls::all(n, &LONG), &notes);
    }
}

/// Minimal resources, so that each of them runs out: see `native.rs` of the crate below.
const SCARCE: StreamSizes = StreamSizes {
    small: 128,
    credit: 4,
    segment: 512,
    slots: 8,
    tokens: 2,
    allowance: 2,
    window: 4,
    rendezvous: 4 << 10,
    block: 2048,
    blocks: 2,
    flags: 3,
};

#[test]
fn streams_with_too_little_of_everything() {
    let notes = Arc::new(Notes::default());
    for n in [3, 6] {
        let streams = ALGORITHMS.iter().filter(|a| a.carrier == Carrier::Streams);
        let calls = streams.flat_map(|a| calls::of(a, n, &LONG[..4])).collect();
        crate::simulated::world::simulate_with(
            &machine(1),
            SimOptions::new(n),
            Some(SCARCE),
            Blocking,
            calls,
            &notes,
        );
    }
}

const WRITES: [Carrier; 2] = [Carrier::Writes, Carrier::Immediates];

/// Algorithms named after reads and atomics use them.
#[test]
fn reads_are_reads_and_atomics_are_atomics() {
    for algorithm in ALGORITHMS {
        for n in [2, 7, 8] {
            let (reads, atomics) =
                (algorithm.carrier == Carrier::Reads, algorithm.carrier == Carrier::Atomics);
            if !reads && !atomics {
                continue;
            }
            let notes = Arc::new(Notes::default());
            let calls: Vec<_> = calls::of(algorithm, n, &LONG[..5]);
            let moves = calls.iter().filter(|call| call.moves(n)).count() as u64;
            let counts = simulate(&machine(1), SimOptions::new(n), Blocking, calls, &notes);
            let who = format!("{} on {n} ranks: {counts:?}", name(algorithm.usual()));
            let each = (n * (n - 1)) as u64;
            assert!(moves > 0, "{who}");
            assert!(!reads || counts.reads >= each, "{who}");
            // Every rank except the root adds once per barrier.
            assert!(!atomics || counts.atomics >= n as u64 - 1, "{who}");
        }
    }
}

/// Algorithms named after RDMA writes, immediates and multicast use them: none falls back unnoticed.
#[test]
fn writes_are_writes_and_multicasts_are_datagrams() {
    for algorithm in ALGORITHMS.iter().filter(|a| WRITES.contains(&a.carrier)) {
        for n in [2, 7, 8] {
            let notes = Arc::new(Notes::default());
            let calls: Vec<_> = calls::of(algorithm, n, &LONG[..5]);
            let counts = simulate(&machine(1), SimOptions::new(n), Blocking, calls, &notes);
            let who = format!("{} on {n} ranks: {counts:?}", name(algorithm.usual()));
            let announced = counts.immediates > 0;
            let multicast = algorithm.needs.contains(&Requirement::Multicast);
            assert_eq!(counts.datagrams > 0, multicast, "{who}");
            let gathers =
                matches!(algorithm.operation, CollectiveKind::Barrier | CollectiveKind::Allreduce);
            if gathers || !multicast {
                assert!(counts.writes > 0, "{who}");
                assert_eq!(announced, algorithm.carrier == Carrier::Immediates, "{who}");
            }
        }
    }
}
