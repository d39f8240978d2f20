//! The tests that every fabric must pass, on shared memory within nodes and libfabric between them. Without the library the
//! tests say NOT RUN and pass; if `WEFT_TEST_OFI` is set, they fail.

use weft_bootstrap::{ThreadBootstrap, threads};
use weft_fabric_join::Joined;
use weft_fabric_ofi::{Ofi, OfiOptions};
use weft_fabric_shm::Shm;
use weft_fabric_testing::conformance::Maker;
use weft_fabric_testing::placed::{self, Placed};
use weft_fabric_testing::{libfabric, tests, watch};

fn connect(mut world: Placed) -> Joined<Shm, Ofi> {
    let (near, counters) = placed::near(&mut world);
    let far = Ofi::connect_counting(&mut world, OfiOptions::default(), counters.clone());
    let far = far.unwrap_or_else(|error| panic!("{error}"));
    watch!(near, far);
    Joined::new(near, far, world.nodes, counters)
}

fn makers(nodes: &'static [usize]) -> Option<Vec<Maker<Joined<Shm, Ofi>>>> {
    let make =
        |world: ThreadBootstrap| Box::new(move || connect(Placed { world, nodes })) as Maker<_>;
    (!libfabric::missing(None)).then(|| threads(nodes.len()).into_iter().map(make).collect())
}

mod two_ranks_on_each_of_two_nodes {
    super::tests!(|| super::makers(&[0, 0, 1, 1]));
}

mod nodes_that_differ_and_take_turns {
    super::tests!(|| super::makers(&[0, 1, 0, 2, 0]);
        ranks_know_who_they_are
        messages_of_a_peer_keep_their_order
        flags_come_after_their_data
        atomics_are_atomic
        bad_addresses_are_refused
        sleepers_are_woken_by_everything
        helpers_are_woken_by_what_is_theirs
    );
}
