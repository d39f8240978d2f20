//! Choice of the algorithm for a communicator's call: [`weft_collective::Selection`], by the placement of its ranks.

use crate::Comm;
use crate::comm_selection::CallKey;
use weft_collective::algorithm::Requirement;
use weft_collective::selection_key::Near;
use weft_collective::{
    AlgorithmChoice, CollectiveKind, RankPlacement, SelectedAlgorithm, SelectionKey,
    SelectionReason, apart,
};
use weft_fabric::Fabric;

impl<F: Fabric> Comm<F> {
    /// Returns the placement of the communicator's ranks, without the facts that the ranks exchange later.
    pub fn site(&self) -> RankPlacement {
        self.choices.site(|| {
            let mut site = self.group().members().topology(self.engine.endpoint().fabric());
            site.same_node &= !self.state.is_lean();
            site.same_arithmetic &= !self.state.is_unlike();
            if !self.state.may_multicast() {
                site.multicast = 0;
            }
            site
        })
    }

    /// Returns the facts that the communicator's ranks know of each other right before the next operation. All ranks know the same
    /// facts.
    fn near(&self) -> Near {
        self.state.area.near(self.rank())
    }

    /// Returns the algorithm for a call, and the reason for it.
    pub fn chosen(&self, operation: CollectiveKind, case: &SelectionKey) -> SelectedAlgorithm {
        let model = self.engine.endpoint().fabric().copies().model();
        self.selection().choose(operation, case, model)
    }

    pub(crate) fn choose(&self, operation: CollectiveKind, asked: CallKey) -> AlgorithmChoice {
        let near = self.near();
        if let Some(choice) = self.choices.last(operation, asked, near) {
            return choice;
        }
        let CallKey { bytes, element, commutes, equal } = asked;
        let site = RankPlacement { near, ..self.site() };
        let case = SelectionKey { ranks: self.size(), bytes, element, commutes, equal, site };
        let SelectedAlgorithm { mut choice, reason, .. } = self.chosen(operation, &case);
        // In such an algorithm ranks wait for each other, and a rank that computes would delay all other ranks. Operations in the
        // background use algorithms that send messages, which are stored for such a rank.
        let meets = choice.algorithm.meets() && reason != SelectionReason::Asked
            || reason == SelectionReason::Led;
        if meets && !self.is_foreground() {
            choice = apart(operation, &case);
        }
        self.choices.keep(operation, asked, near, choice);
        if choice.algorithm.needs.contains(&Requirement::Multicast) {
            // While a root computes, its helper must repair losses.
            self.engine.want_helper();
        }
        choice
    }
}
