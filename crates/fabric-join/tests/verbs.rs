//! The tests that every fabric must pass, on shared memory within nodes and verbs between them. They need an adapter; soft-RoCE
//! will do. Without an adapter the tests say NOT RUN and pass; if `WEFT_TEST_VERBS` is set, they fail.

use weft_bootstrap::{Bootstrap, ThreadBootstrap, threads};
use weft_fabric_join::Joined;
use weft_fabric_shm::Shm;
use weft_fabric_testing::conformance::Maker;
use weft_fabric_testing::placed::{self, Placed};
use weft_fabric_testing::{adapters, tests, watch};
use weft_fabric_verbs::Verbs;

fn connect(mut world: Placed, adapters: &[Vec<String>]) -> Joined<Shm, Verbs> {
    let (near, counters) = placed::near(&mut world);
    let options = adapters::options(adapters, world.nodes[world.rank()]);
    let far = Verbs::connect_counting(&mut world, options, counters.clone());
    let far = far.unwrap_or_else(|error| panic!("{error}"));
    watch!(near, far);
    Joined::new(near, far, world.nodes, counters)
}

fn makers(nodes: &'static [usize]) -> Option<Vec<Maker<Joined<Shm, Verbs>>>> {
    let adapters = adapters::nodes()?;
    let make = |world: ThreadBootstrap| {
        let adapters = adapters.clone();
        Box::new(move || connect(Placed { world, nodes }, &adapters)) as Maker<_>
    };
    Some(threads(nodes.len()).into_iter().map(make).collect())
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
