//! Verbs pass the tests for every fabric. Needs an adapter; soft-RoCE suffices.
//!
//! Without an adapter the tests say NOT RUN and pass; if `WEFT_TEST_VERBS` is set they fail.

use weft_bootstrap::threads;
use weft_fabric::Fabric;
use weft_fabric_testing::adapters;
use weft_fabric_testing::conformance::Maker;
use weft_fabric_testing::tests;
use weft_fabric_verbs::{Verbs, VerbsOptions};

/// Change of the options of a rank.
type Change = fn(&mut VerbsOptions);

fn makers(n: usize, change: Change) -> Option<Vec<Maker<Verbs>>> {
    let nodes = adapters::nodes()?;
    let make = |(rank, mut world): (usize, _)| {
        let mut options = adapters::options(&nodes, rank);
        change(&mut options);
        Box::new(move || match Verbs::connect_with(&mut world, options) {
            Ok(verbs) => {
                // The suite skips abilities that a fabric does not have, so this ability is required here.
                let able = verbs.capabilities(rank);
                assert!(able.multicast_max > 0, "{}", verbs.describe().join("\n"));
                verbs
            }
            Err(error) => panic!("{error}"),
        }) as Maker<Verbs>
    };
    Some(threads(n).into_iter().enumerate().map(make).collect())
}

mod one_rank {
    super::tests!(|| super::makers(1, |_| ()));
}

mod two_ranks {
    super::tests!(|| super::makers(2, |_| ()));
}

/// The minimum number of credits, so that messages often find no room.
mod three_ranks_with_few_credits {
    super::tests!(|| super::makers(3, |options| options.credits = 4));
}

/// All traffic goes over one rail, whatever the ranks.
mod two_ranks_on_the_first_rail {
    super::tests!(|| super::makers(2, |options| {
        options.rail = Some(0);
    });
        every_length_arrives
        messages_of_a_peer_keep_their_order
        flags_come_after_their_data
        atomics_are_atomic
        reads_and_writes_reach_exposed_memory
        sleepers_are_woken_by_everything
        helpers_are_woken_by_what_is_theirs
    );
}

/// Over IPv6, which the first address of a port (the interface's own) uses.
mod two_ranks_over_ipv6 {
    super::tests!(|| super::makers(2, |options| options.gid_index = Some(0));
        every_length_arrives
        datagrams_reach_members_only
        sleepers_are_woken_by_everything
        helpers_are_woken_by_what_is_theirs
    );
}

/// Groups are joined through the connection manager, as on InfiniBand.
mod three_ranks_with_the_connection_manager {
    super::tests!(|| super::makers(3, |options| options.manager = true);
        datagrams_reach_members_only
        datagrams_survive_a_flood_whole
        sleepers_are_woken_by_everything
    );
}

mod five_ranks {
    super::tests!(|| super::makers(5, |_| ());
        messages_of_a_peer_keep_their_order
        nobody_is_starved
        flags_come_after_their_data
        immediates_are_counted_even_before_they_are_asked_for
        datagrams_reach_members_only
        sleepers_are_woken_by_everything
        helpers_are_woken_by_what_is_theirs
    );
}
