//! The launcher's services for the ranks of one node among themselves.

use crate::{Bootstrap, BootstrapError, Report};

/// The ranks of this process's node as a job, numbered in their order. A fence here is a fence of the complete job, so all nodes
/// must make the same number of fences ([`OnNode::fence_up_to`]).
pub struct OnNode<'b> {
    job: &'b mut dyn Bootstrap,
    /// Ranks in the job, by rank on the node.
    ranks: Vec<usize>,
    fences: usize,
}

impl<'b> OnNode<'b> {
    /// Restricts `job` to this node. No fence is counted yet.
    pub fn new(job: &'b mut dyn Bootstrap) -> OnNode<'b> {
        let nodes = job.nodes();
        let mine = nodes[job.rank()];
        let ranks = (0..nodes.len()).filter(|&rank| nodes[rank] == mine).collect();
        OnNode { job, ranks, fences: 0 }
    }

    /// Makes fences until their number is `count`. Nodes with fewer ranks may need fewer fences for their own purposes.
    pub fn fence_up_to(&mut self, count: usize) -> Result<(), BootstrapError> {
        while self.fences < count {
            self.fence()?;
        }
        Ok(())
    }
}

impl Bootstrap for OnNode<'_> {
    fn rank(&self) -> usize {
        let me = self.job.rank();
        self.ranks.iter().position(|&rank| rank == me).expect("a rank is on its node")
    }

    fn size(&self) -> usize {
        self.ranks.len()
    }

    fn job(&self) -> &str {
        self.job.job()
    }

    fn app_number(&self) -> Option<usize> {
        self.job.app_number()
    }

    fn report(&self) -> Option<Report> {
        self.job.report()
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), BootstrapError> {
        self.job.put(key, value)
    }

    fn get(&mut self, rank: usize, key: &str) -> Result<Vec<u8>, BootstrapError> {
        self.job.get(self.ranks[rank], key)
    }

    fn fence(&mut self) -> Result<(), BootstrapError> {
        self.fences += 1;
        self.job.fence()
    }

    fn finalized(&mut self) -> Result<(), BootstrapError> {
        self.job.finalized()
    }

    fn abort(&mut self, code: i32, message: &str) {
        self.job.abort(code, message);
    }
}
