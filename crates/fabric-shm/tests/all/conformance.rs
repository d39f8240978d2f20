//! The tests that every fabric must pass, on shared memory.

use weft_bootstrap::threads;
use weft_fabric_shm::{Shm, ShmOptions};
use weft_fabric_testing::conformance::Maker;
use weft_fabric_testing::tests;

fn makers(n: usize, options: ShmOptions) -> Vec<Maker<Shm>> {
    let make = |mut world| {
        let options = options.clone();
        Box::new(move || Shm::connect_with(&mut world, options).expect("connected")) as Maker<Shm>
    };
    threads(n).into_iter().map(make).collect()
}

mod one_rank {
    super::tests!(|| super::makers(1, super::ShmOptions::default()));
}

mod two_ranks {
    super::tests!(|| super::makers(2, super::ShmOptions::default()));
}

mod three_ranks_without_cma {
    super::tests!(|| super::makers(3, super::ShmOptions { cma: false, ..Default::default() }));
}

/// The smallest possible boxes, which often overflow.
mod four_ranks_in_small_boxes {
    super::tests!(|| super::makers(4, super::ShmOptions { box_budget: 0, ..Default::default() }));
}
