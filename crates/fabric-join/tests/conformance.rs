//! Shared memory within nodes and verbs between them do together what every fabric must do. Needs an
//! adapter; soft-RoCE will do. Without one the tests say NOT RUN and pass; where `WEFT_TEST_VERBS` is
//! set they fail.

#[path = "../../fabric-verbs/tests/common/mod.rs"]
mod common;

use std::rc::Rc;
use weft_bootstrap::{Bootstrap, BootstrapError, OnNode, ThreadBootstrap, threads};
use weft_fabric::Counters;
use weft_fabric_conformance::{Maker, tests};
use weft_fabric_join::Joined;
use weft_fabric_shm::{FENCES, Options, Shm};
use weft_fabric_verbs::Verbs;

/// A thread of the test that believes to be on a node.
struct Placed {
    world: ThreadBootstrap,
    nodes: &'static [usize],
}

impl Bootstrap for Placed {
    fn rank(&self) -> usize {
        self.world.rank()
    }

    fn size(&self) -> usize {
        self.world.size()
    }

    fn nodes(&self) -> Vec<usize> {
        self.nodes.to_vec()
    }

    fn job(&self) -> &str {
        self.world.job()
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), BootstrapError> {
        self.world.put(key, value)
    }

    fn get(&mut self, rank: usize, key: &str) -> Result<Vec<u8>, BootstrapError> {
        self.world.get(rank, key)
    }

    fn fence(&mut self) -> Result<(), BootstrapError> {
        self.world.fence()
    }

    fn finalized(&mut self) -> Result<(), BootstrapError> {
        self.world.finalized()
    }

    fn abort(&mut self, code: i32, message: &str) {
        self.world.abort(code, message);
    }
}

fn connect(mut world: Placed, adapters: &[Vec<String>]) -> Joined<Shm, Verbs> {
    let counters = Rc::new(Counters::new());
    let near = {
        let mut node = OnNode::new(&mut world);
        let options = Options { polls: true, ..Options::default() };
        let near = Shm::connect_counting(&mut node, options, counters.clone()).unwrap();
        node.fence_up_to(FENCES).unwrap();
        near
    };
    let options = common::options(adapters, world.nodes[world.rank()]);
    let far = match Verbs::connect_counting(&mut world, options, counters.clone()) {
        Ok(far) => far,
        Err(error) => panic!("{error}"),
    };
    let bell = near.descriptor().expect("asked for");
    far.watch(bell.try_clone_to_owned().unwrap());
    let bell = near.helper_descriptor().expect("asked for");
    far.watch_for_helper(bell.try_clone_to_owned().unwrap());
    Joined::new(near, far, world.nodes, counters)
}

fn makers(nodes: &'static [usize]) -> Option<Vec<Maker<Joined<Shm, Verbs>>>> {
    let adapters = common::nodes()?;
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
