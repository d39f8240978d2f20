//! The choice on machines that are made up, as tables: each row is a protocol, up to and with so many bytes.

use super::*;
use Pattern::{Forwarded, ManyToOne, OneToMany, Plain, Synchronous};
use Protocol::{CoCopy, Eager, Pieces, Read, Staged, Written};
use weft_fabric::By;

/// Two processors with a cache in common, and a system that reads another's memory quickly.
const NEAR: CopyModel = CopyModel {
    line: By { shared: 50.0, apart: 200.0 },
    rewrite: By { shared: 2.0, apart: 30.0 },
    rewrite_asked: By { shared: 2.0, apart: 30.0 },
    rewrite_returned: By { shared: 2.0, apart: 6.0 },
    fetch: By { shared: 0.05, apart: 0.2 },
    fetch_pages: By { shared: 0.05, apart: 0.2 },
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
};
/// A page of another's memory costs more than to copy it twice.
const DEAR_PAGES: CopyModel = CopyModel { cma_page: 800.0, ..NEAR };
/// What the caches do not hold is slow to copy, and they hold little.
const SLOW_MEMORY: CopyModel =
    CopyModel { memory: 1.0, past: 1.0, private: 64 << 10, last: 256 << 10, ..NEAR };

const USUAL: Path = Path {
    place: Place::SameNode,
    direct: true,
    send_max: 16 << 10,
    eager: 16 << 10,
    staging: 1 << 20,
    ranks_each: 1,
    distance: Distance::Shared,
    writes: false,
    asked: None,
};
const FAR: Path = Path { distance: Distance::Apart, ..USUAL };
const NO_CMA: Path = Path { direct: false, ..USUAL };
const CROWD: Path = Path { ranks_each: 4, ..USUAL };
const HERE: Path = Path { place: Place::Here, ..USUAL };
const NETWORK: Path = Path { place: Place::Elsewhere, staging: 0, ..USUAL };
const PLACES: [Path; 6] = [USUAL, FAR, NO_CMA, CROWD, HERE, NETWORK];

const ALL: usize = usize::MAX;

fn table(model: &CopyModel, path: Path, pattern: Pattern, rows: &[(usize, Protocol)]) {
    assert_eq!(limits(model, path, pattern), rows, "{path:?}, {pattern:?}");
}

#[test]
fn print_all() {
    for (name, m) in [("NEAR", &NEAR), ("DEAR_PAGES", &DEAR_PAGES), ("SLOW_MEMORY", &SLOW_MEMORY)] {
        for (n, path) in [
            ("USUAL", USUAL),
            ("FAR", FAR),
            ("NO_CMA", NO_CMA),
            ("CROWD", CROWD),
            ("HERE", HERE),
            ("NETWORK", NETWORK),
        ] {
            for p in Pattern::ALL {
                println!(
                    "    table(&{name}, {n}, {p:?}, &{});",
                    format!("{:?}", limits(m, path, p)).replace("18446744073709551615", "ALL")
                );
            }
        }
    }
}
