//! The choice on machines that are made up, as tables: each row is a protocol, up to and with so many bytes.

use super::table::Table;
use super::*;
use Protocol::{CoCopy, Eager, Pieces, Read, Staged, Written};
use weft_fabric::By;

const ALL_BYTES: usize = usize::MAX;

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
/// All that is not short comes from memory.
const SLOW_MEMORY: CopyModel = CopyModel { memory: 1.0, past: 1.0, last: 256 << 10, ..NEAR };

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

#[test]
fn print_all() {
    for (name, m) in [("near", &NEAR), ("dear", &DEAR_PAGES), ("slow", &SLOW_MEMORY), ("generic", &CopyModel::GENERIC)] {
        for (n, path) in [("usual", USUAL), ("far", Path { distance: Distance::Apart, ..USUAL }), ("nocma", Path{direct:false,..USUAL}), ("many", Path{ranks_each:4,..USUAL}), ("two", Path{ranks_each:2,..USUAL}),("nostage",Path{staging:0,..USUAL}), ("here",Path{place:Place::Here,..USUAL})] {
            let t = Table::new(m, path);
            for p in Pattern::ALL {
                println!("{name} {n} {}: {:?}", p.name(), t.steps(p));
            }
        }
    }
}
