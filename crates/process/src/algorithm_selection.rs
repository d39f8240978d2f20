//! Which algorithm a communicator's call uses: [`weft_collective::Selection`], with what is known of where its ranks are.

use crate::Comm;
use crate::chosen::CallKey;
use weft_collective::algorithm::Need;
use weft_collective::selection_key::Near;
use weft_collective::{
    Choice, Chosen, Operation, Reason, SelectionKey, Topology, all_do_atomics, apart,
    carried_by_kernel, multicast_max, share_memory,
};
use weft_fabric::{Fabric, FabricExt};

impl<F: Fabric> Comm<F> {
    /// Where its ranks are; what they tell each other later is not in it.
    pub fn site(&self) -> Topology {
        *self.choices.site.get_or_init(|| {
            let group = self.group();
            let fabric = self.engine.endpoint().fabric();
            let members = group.ranks();
            let known = group.topology(|| {
                // The result is kept only for members of this job: numbers of processes of other jobs are reused when those
                // processes have left.
                let of_this_job = members.iter().all(|&member| (member as usize) < fabric.size());
                of_this_job.then(|| survey(fabric, members))
            });
            let mut site = known.unwrap_or_else(|| survey(fabric, members));
            site.same_node &= !self.state.is_lean();
            site.same_arithmetic &= !self.state.is_unlike();
            if !self.state.may_multicast() {
                site.multicast = 0;
            }
            site
        })
    }

    /// What its ranks know of each other right before the next operation, all of them the same.
    fn near(&self) -> Near {
        self.state.area.near(self.rank())
    }

    /// What serves a call, and why.
    pub fn chosen(&self, operation: Operation, case: &SelectionKey) -> Chosen {
        let model = self.engine.endpoint().fabric().copies().model();
        self.choices.selection.borrow().choose(operation, case, model)
    }

    pub(crate) fn choose(&self, operation: Operation, asked: CallKey) -> Choice {
        let recent = &self.choices.recent[operation as usize];
        let near = self.near();
        let last = recent.get().and_then(|last| last.get());
        if let Some((_, _, choice)) = last.filter(|last| (last.0, last.1) == (asked, near)) {
            return choice;
        }
        let CallKey { bytes, element, commutes, equal } = asked;
        let site = Topology { near, ..self.site() };
        let case = SelectionKey { ranks: self.size(), bytes, element, commutes, equal, site };
        let Chosen { mut choice, reason, .. } = self.chosen(operation, &case);
        // Ranks wait for each other in it, and one that computes would hold the others up: what runs in
        // the background sends messages, which are kept for it.
        let meets = choice.algorithm.meets() && reason != Reason::Asked || reason == Reason::Led;
        if meets && !self.is_foreground() {
            choice = apart(operation, &case);
        }
        recent.get_or_init(Box::default).set(Some((asked, near, choice)));
        if choice.algorithm.needs.contains(&Need::Multicast) {
            // A root that computes repairs what is lost.
            self.engine.want_helper();
        }
        choice
    }
}

/// Finds the nodes of `members`, by a question for each member.
fn survey<F: Fabric>(fabric: &F, members: &[u32]) -> Topology {
    let mut nodes: Vec<usize> = members.iter().map(|&m| fabric.node(m as usize)).collect();
    nodes.sort_unstable();
    let ranks_by_node = nodes.chunk_by(|a, b| a == b).map(<[usize]>::len);
    Topology {
        same_node: share_memory(fabric, members),
        nodes: ranks_by_node.clone().count(),
        ranks_per_node: ranks_by_node.max().unwrap_or(0),
        by_kernel: carried_by_kernel(fabric, members),
        multicast: multicast_max(fabric, members),
        same_arithmetic: fabric.same_arithmetic(),
        atomics: all_do_atomics(fabric, members),
        near: Near::default(),
    }
}
