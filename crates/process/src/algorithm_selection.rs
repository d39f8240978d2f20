//! Which algorithm a communicator's call uses: [`weft_collective::Selection`], with what is known of where its ranks are.

use crate::Comm;
use crate::chosen::CallKey;
use weft_collective::algorithm::Requirement;
use weft_collective::selection_key::Near;
use weft_collective::{
    AlgorithmChoice, CollectiveKind, RankPlacement, SelectedAlgorithm, SelectionKey,
    SelectionReason, apart,
};
use weft_fabric::Fabric;

impl<F: Fabric> Comm<F> {
    /// Where its ranks are; what they tell each other later is not in it.
    pub fn site(&self) -> RankPlacement {
        *self.choices.site.get_or_init(|| {
            let mut site = self.group().members().topology(self.engine.endpoint().fabric());
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
    pub fn chosen(&self, operation: CollectiveKind, case: &SelectionKey) -> SelectedAlgorithm {
        let model = self.engine.endpoint().fabric().copies().model();
        self.choices.selection.borrow().choose(operation, case, model)
    }

    pub(crate) fn choose(&self, operation: CollectiveKind, asked: CallKey) -> AlgorithmChoice {
        let recent = &self.choices.recent[operation as usize];
        let near = self.near();
        let last = recent.get().and_then(|last| last.get());
        if let Some((_, _, choice)) = last.filter(|last| (last.0, last.1) == (asked, near)) {
            return choice;
        }
        let CallKey { bytes, element, commutes, equal } = asked;
        let site = RankPlacement { near, ..self.site() };
        let case = SelectionKey { ranks: self.size(), bytes, element, commutes, equal, site };
        let SelectedAlgorithm { mut choice, reason, .. } = self.chosen(operation, &case);
        // Ranks wait for each other in it, and one that computes would hold the others up: what runs in
        // the background sends messages, which are kept for it.
        let meets = choice.algorithm.meets() && reason != SelectionReason::Asked
            || reason == SelectionReason::Led;
        if meets && !self.is_foreground() {
            choice = apart(operation, &case);
        }
        recent.get_or_init(Box::default).set(Some((asked, near, choice)));
        if choice.algorithm.needs.contains(&Requirement::Multicast) {
            // A root that computes repairs what is lost.
            self.engine.want_helper();
        }
        choice
    }
}
