//! The choice on invented machines, as tables. Each row is a protocol and the maximum size in bytes for which it is chosen.

mod parts;

use super::table::{ProtocolTable, Tables};
use super::*;
use MessageProtocol::{CoCopy, Eager, Pieces, Read, Staged, Written};
use TransferPattern::{Exchange, Forwarded, ManyToOne, OneToMany, Plain, Synchronous};
use weft_fabric::ByDistance;

/// Two processors with a shared cache, and a system that reads another process's memory quickly.
const NEAR: CopyModel = CopyModel {
    line: ByDistance { shared: 50.0, apart: 200.0 },
    rewrite: ByDistance { shared: 2.0, apart: 30.0 },
    rewrite_asked: ByDistance { shared: 2.0, apart: 30.0 },
    rewrite_returned: ByDistance { shared: 2.0, apart: 6.0 },
    fetch: ByDistance { shared: 0.05, apart: 0.2 },
    fetch_pages: ByDistance { shared: 0.05, apart: 0.2 },
    cma_fetch: ByDistance { shared: 0.05, apart: 0.2 },
    cached: 0.04,
    memory: 0.12,
    past: 0.15,
    cma_call: 500.0,
    cma_page: 100.0,
    switch: 1500.0,
    yielding: 300.0,
    reduce: 0.05,
    clock: 25.0,
    private: 1 << 20,
    last: 32 << 20,
    ..CopyModel::GENERIC
};
/// A page of another process's memory costs more than two copies of the page.
const DEAR_PAGES: CopyModel = CopyModel { cma_page: 800.0, ..NEAR };
/// Memory beyond the caches is slow to copy, and the caches are small.
const SLOW_MEMORY: CopyModel =
    CopyModel { memory: 1.0, past: 1.0, private: 64 << 10, last: 256 << 10, ..NEAR };

const USUAL: PeerPath = PeerPath {
    place: Locality::SameNode,
    direct: true,
    send_max: 16 << 10,
    eager: 16 << 10,
    staging: 1 << 20,
    synchronous: true,
    threads_each: 1,
    distance: CacheDistance::Shared,
    writes: false,
    asked: None,
};
const FAR: PeerPath = PeerPath { distance: CacheDistance::Apart, ..USUAL };
const NO_CMA: PeerPath = PeerPath { direct: false, ..USUAL };
const CROWD: PeerPath = PeerPath { threads_each: 4, ..USUAL };
const HERE: PeerPath = PeerPath { place: Locality::Here, ..USUAL };
const NETWORK: PeerPath =
    PeerPath { place: Locality::Elsewhere, staging: 0, synchronous: false, ..USUAL };
/// A peer of a simulated node: time passes between a call and its completion.
const SIMULATED: PeerPath = PeerPath { staging: 0, synchronous: false, ..USUAL };
const PLACES: [PeerPath; 7] = [USUAL, FAR, NO_CMA, CROWD, HERE, NETWORK, SIMULATED];

const ALL: usize = usize::MAX;

fn table(
    model: &CopyModel,
    path: PeerPath,
    pattern: TransferPattern,
    rows: &[(usize, MessageProtocol)],
) {
    assert_eq!(limits(model, path, pattern), rows, "{path:?}, {pattern:?}");
}

/// Short messages go eagerly. If the two ends wait for each other anyway, both ends copy. An end that serves several peers leaves
/// the copying to the other end.
#[test]
fn near_caches() {
    table(&NEAR, USUAL, Plain, &[(5600, Eager), (44096, Staged), (ALL, CoCopy)]);
    table(&NEAR, USUAL, Synchronous, &[(11904, Eager), (26000, Read), (ALL, CoCopy)]);
    table(&NEAR, USUAL, OneToMany, &[(5952, Eager), (ALL, Read)]);
    table(&NEAR, USUAL, ManyToOne, &[(10304, Eager), (ALL, Written)]);
    table(&NEAR, USUAL, Forwarded, &[(5600, Eager), (32214, Staged), (ALL, CoCopy)]);
}

/// In an exchange, neither end waits for the other. So the protocols with one copy cost less than two copies at the same time, unless
/// pages are dear. Turns cost less than in other patterns, because messages share them.
#[test]
fn both_ends_have_other_work() {
    let most = USUAL.staging;
    table(&NEAR, USUAL, Exchange, &[(14016, Eager), (ALL, Read)]);
    table(&NEAR, FAR, Exchange, &[(8960, Eager), (ALL, Read)]);
    table(&NEAR, CROWD, Exchange, &[(16384, Eager), (18944, Staged), (ALL, Read)]);
    table(&DEAR_PAGES, USUAL, Exchange, &[(16384, Eager), (most, Staged), (ALL, Read)]);
    let rest = [(65536, Pieces), (most, Staged), (ALL, Pieces)];
    table(&NEAR, NO_CMA, Exchange, &[&[(16384, Eager)], &rest[..]].concat());
    for model in [&NEAR, &DEAR_PAGES, &SLOW_MEMORY] {
        for path in [HERE, NETWORK, SIMULATED] {
            let plain = limits(model, path, Plain);
            assert_eq!(limits(model, path, Exchange), plain, "nothing else is known: {path:?}");
        }
    }
}

/// The cost of an exchange is the sum of the work of both ends, whichever model, and never less than the cost of other patterns in
/// which the ends work at the same time.
#[test]
fn an_exchange_costs_the_work_of_both_ends() {
    for model in [&NEAR, &DEAR_PAGES, &SLOW_MEMORY, &CopyModel::GENERIC] {
        for path in [USUAL, FAR, CROWD] {
            for bytes in [100, 20_000, 65_536, 1 << 20] {
                let case = |pattern| MessageCase { bytes, pattern, path };
                for protocol in MessageProtocol::ALL {
                    let Ok(cost) = protocol.cost(model, &case(Exchange)) else { continue };
                    let ProtocolWork { sender, receiver, latency, .. } =
                        protocol.work(model, &case(Exchange));
                    assert!(cost >= sender + receiver, "{protocol:?} {path:?}");
                    if path.threads_each == 1 {
                        assert_eq!(cost, latency + sender + receiver, "{protocol:?} {path:?}");
                        assert!(Ok(cost) >= protocol.cost(model, &case(Plain)));
                    } else {
                        assert!(Ok(cost) < protocol.cost(model, &case(Plain)), "shared turns");
                    }
                }
            }
        }
    }
}

/// Between far caches, a second copy becomes more expensive than a system call at a smaller size than between near caches.
#[test]
fn far_caches() {
    table(&NEAR, FAR, Plain, &[(8960, Eager), (22000, Read), (ALL, CoCopy)]);
    table(&NEAR, FAR, Synchronous, &[(6720, Eager), (22000, Read), (ALL, CoCopy)]);
    table(&NEAR, FAR, OneToMany, &[(4850, Eager), (ALL, Read)]);
    table(&NEAR, FAR, ManyToOne, &[(7488, Eager), (ALL, Written)]);
}

/// Two copies are cheaper than a single copy with its cost for each page.
#[test]
fn dear_pages() {
    let most = USUAL.staging;
    table(&DEAR_PAGES, USUAL, Plain, &[(5600, Eager), (most, Staged), (ALL, CoCopy)]);
    table(&DEAR_PAGES, USUAL, OneToMany, &[(6144, Eager), (most, Staged), (ALL, Read)]);
    table(&DEAR_PAGES, USUAL, ManyToOne, &[(14016, Eager), (most, Staged), (ALL, Written)]);
    table(&DEAR_PAGES, CROWD, Plain, &[(16384, Eager), (most, Staged), (ALL, Read)]);
    table(&DEAR_PAGES, FAR, ManyToOne, &[(16384, Eager), (ALL, Written)]);
}

#[test]
fn no_cma() {
    let most = USUAL.staging;
    for model in [&NEAR, &DEAR_PAGES, &SLOW_MEMORY] {
        table(model, NO_CMA, Plain, &[(5600, Eager), (most, Staged), (ALL, Pieces)]);
        table(model, NO_CMA, Synchronous, &[(16384, Eager), (ALL, Pieces)]);
        let unstaged = PeerPath { staging: 0, ..NO_CMA };
        table(model, unstaged, Plain, &[(16384, Eager), (ALL, Pieces)]);
    }
}

/// If several ranks share a processor, staged payloads have left the processor's cache when the receiver copies them.
#[test]
fn slow_memory() {
    table(&SLOW_MEMORY, CROWD, ManyToOne, &[(8192, Eager), (ALL, Written)]);
    table(&NEAR, CROWD, ManyToOne, &[(16384, Eager), (30511, Staged), (ALL, Written)]);
}

/// Only one end copies at a time, and each turn is a context switch. So a second copy is cheaper than more turns.
#[test]
fn many_ranks_a_processor() {
    table(&NEAR, CROWD, Plain, &[(16384, Eager), (35072, Staged), (ALL, Read)]);
    table(&NEAR, CROWD, Synchronous, &[(14016, Eager), (ALL, Read)]);
    table(&NEAR, CROWD, OneToMany, &[(16384, Eager), (ALL, Read)]);
}

/// A process that sends to itself must not wait for itself if that is avoidable.
#[test]
fn to_oneself() {
    table(&NEAR, HERE, Plain, &[(12250, Eager), (HERE.staging, Staged), (ALL, Read)]);
    table(&NEAR, HERE, Synchronous, &[(1250, Eager), (ALL, Read)]);
}

/// The limits decide, because costs over a network are not known.
#[test]
fn over_a_network() {
    for pattern in TransferPattern::ALL {
        table(&NEAR, NETWORK, pattern, &[(16384, Eager), (ALL, Read)]);
        table(&NEAR, PeerPath { eager: 0, ..NETWORK }, pattern, &[(ALL, Read)]);
        let writes = PeerPath { writes: true, ..NETWORK };
        table(&NEAR, writes, pattern, &[(16384, Eager), (ALL, Written)]);
        let closed = PeerPath { direct: false, send_max: 4096, ..NETWORK };
        table(&NEAR, closed, pattern, &[(4096, Eager), (ALL, Pieces)]);
    }
}

#[test]
fn what_is_asked_for_is_taken_where_it_can_be() {
    let asked = |protocol| PeerPath { asked: Some(protocol), ..USUAL };
    let rest = (ALL, CoCopy);
    table(&NEAR, asked(Staged), Plain, &[(USUAL.staging, Staged), rest]);
    table(&NEAR, asked(Read), Plain, &[(ALL, Read)]);
    table(&NEAR, asked(Eager), Plain, &[(16384, Eager), (44096, Staged), rest]);
    let case = MessageCase { bytes: 1 << 20, pattern: Plain, path: asked(Read) };
    assert_eq!(choose_to_fetch(&NEAR, &case), Read);
}

/// For every machine, peer and limits, some protocol is eligible for every message, also for an empty message, and the tables agree
/// with the costs.
#[test]
fn every_message_goes_the_cheapest_way() {
    let mut rng = fastrand::Rng::with_seed(9);
    for _ in 0..300 {
        let mut cost = |least: f64, most: f64| least * (most / least).powf(rng.f64());
        let by = |shared| ByDistance { shared, apart: 3.0 * shared };
        let model = CopyModel {
            line: by(cost(10.0, 500.0)),
            rewrite_returned: by(cost(0.5, 50.0)),
            fetch: by(cost(0.01, 1.0)),
            cma_fetch: by(cost(0.01, 1.0)),
            memory: cost(0.05, 2.0),
            past: cost(0.05, 2.0),
            cma_call: cost(100.0, 5000.0),
            cma_page: cost(20.0, 2000.0),
            switch: cost(500.0, 20_000.0),
            ..NEAR
        };
        let path = PeerPath {
            eager: [0, 100, 16 << 10][rng.usize(0..3)],
            staging: [0, 10_000, 1 << 20][rng.usize(0..3)],
            writes: rng.u8(0..4) == 0,
            ..PLACES[rng.usize(0..PLACES.len())]
        };
        for pattern in TransferPattern::ALL {
            for bytes in [0, 1, 100, 101, 5000, 1 << 14, 100_000, 1 << 20, 1 << 25] {
                let case = MessageCase { bytes, pattern, path };
                let (chosen, cost) =
                    (choose(&model, &case), |p: MessageProtocol| p.cost(&model, &case));
                let least = cost(chosen).expect("the chosen one is eligible");
                assert!(
                    MessageProtocol::ALL.iter().all(|&p| cost(p).is_err() || cost(p) >= Ok(least))
                );
                assert!(least.is_finite() && least >= 0.0, "{case:?}");
            }
            let range = limits(&model, path, pattern);
            assert!(range.is_sorted_by(|a, b| a.0 < b.0 && a.1 != b.1), "{range:?}");
            for &(most, protocol) in &range[..range.len() - 1] {
                let case = |bytes| MessageCase { bytes, pattern, path };
                assert_eq!(choose(&model, &case(most)), protocol, "{most} bytes, {path:?}");
                assert_ne!(choose(&model, &case(most + 1)), protocol, "{most} bytes, {path:?}");
            }
        }
    }
}

/// The tables hold the result of the choice.
#[test]
fn an_endpoint_asks_the_same() {
    for path in PLACES {
        let table = ProtocolTable::new(&NEAR, path);
        let known = table.choices(&NEAR, path);
        let mut tables = Tables::default();
        let number = tables.number(&NEAR, path);
        let eager = tables.eager(number, path.distance) as usize;
        for pattern in TransferPattern::ALL {
            let short = choose(&NEAR, &MessageCase { bytes: eager.max(1), pattern, path });
            assert_eq!(short, Eager, "{path:?}");
            for bytes in [eager + 1, 50_000, 1 << 20, 1 << 23] {
                let case = MessageCase { bytes, pattern, path };
                assert_eq!(known.choose(pattern, bytes), choose(&NEAR, &case), "{case:?}");
                let full = MessageCase { path: PeerPath { staging: 0, ..path }, ..case };
                assert_eq!(known.choose_unstaged(pattern, bytes), choose(&NEAR, &full));
                let fetched = choose_to_fetch(&NEAR, &case);
                assert_eq!(known.choose_to_fetch(pattern, bytes), fetched, "{case:?}");
            }
        }
    }
}

/// A helper is not woken for copies that would be complete before the helper has begun.
#[test]
fn helpers_are_woken_for_long_copies() {
    let quiet = |model, path| ProtocolTable::new(model, path).choices(model, path).quiet();
    let [near, far] = [USUAL, FAR].map(|path| quiet(&NEAR, path));
    assert!(near > far, "{near} {far}");
    assert!(NEAR.fetch(near, CacheDistance::Shared) > NEAR.switch);
    let eager = CopyModel { switch: 100.0, ..NEAR };
    assert!(quiet(&eager, USUAL) < near);
}

#[test]
fn where_questions_take_long_more_is_sent_at_once() {
    let (limits, long) = (crate::ProtocolLimits::USUAL, 20_000);
    let network = PeerPath { send_max: 1 << 20, ..NETWORK };
    let raised = network.with_round_trip(long, &limits, &NEAR);
    assert!(raised.eager > network.eager, "{raised:?}");
    assert!(2.0 * NEAR.copy(raised.eager) <= f64::from(long), "two copies take no longer");
    assert!(2.0 * NEAR.copy(2 * raised.eager) > f64::from(long), "as much as that allows");
    table(
        &NEAR,
        raised,
        TransferPattern::Plain,
        &[(raised.eager, MessageProtocol::Eager), (ALL, MessageProtocol::Read)],
    );
    let fixed = crate::ProtocolLimits { eager_fixed: true, ..limits };
    assert_eq!(network.with_round_trip(long, &fixed, &NEAR), network);
    assert_eq!(network.with_round_trip(0, &limits, &NEAR), network);
    assert_eq!(USUAL.with_round_trip(long, &limits, &NEAR), USUAL, "on one machine nobody asks");
}
