//! Threads of a test, placed on nodes that the test chooses.

use std::rc::Rc;
use weft_bootstrap::{Bootstrap, BootstrapError, OnNode, ThreadBootstrap};
use weft_fabric::Counters;
use weft_fabric_shm::{FENCES, Shm, ShmOptions};

/// A thread of the test that sees itself on a node.
pub struct Placed {
    /// World of the thread.
    pub world: ThreadBootstrap,
    /// The node of each rank.
    pub nodes: &'static [usize],
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

/// Connects the ranks of the node by shared memory. Returns it with counters for both fabrics.
pub fn near(world: &mut Placed) -> (Shm, Rc<Counters>) {
    let counters = Rc::new(Counters::new());
    let mut node = OnNode::new(world);
    let options = ShmOptions { polls: true, ..ShmOptions::default() };
    let near = Shm::connect_counting(&mut node, options, counters.clone()).unwrap();
    node.fence_up_to(FENCES).unwrap();
    (near, counters)
}

/// Makes the sleeps of the network `far` end also when the shared memory `near` rings. `far` is any type with the methods `watch`
/// and `watch_for_helper`.
#[macro_export]
macro_rules! watch {
    ($near:expr, $far:expr) => {
        $far.watch($near.descriptor().expect("asked for").try_clone_to_owned().unwrap());
        let bell = $near.helper_descriptor().expect("asked for");
        $far.watch_for_helper(bell.try_clone_to_owned().unwrap());
    };
}
