//! Choice of the algorithm for a call on a communicator. [`weft_collective::Selection`] makes the choice, and needs the placement
//! of the communicator's ranks.

use crate::Comm;
use weft_collective::algorithm::Requirement;
use weft_collective::algorithm_trials::{AlgorithmTrials, TrialKey, TriedAlgorithm};
use weft_collective::{
    AlgorithmChoice, CallKey, CollectiveKind, RankPlacement, SelectedAlgorithm, SelectionKey,
    SelectionReason, apart, candidates,
};
use weft_fabric::Fabric;

impl<F: Fabric> Comm<F> {
    /// Returns the placement of the communicator's ranks, without the facts that the ranks exchange later.
    pub fn site(&self) -> RankPlacement {
        let fabric = self.engine.endpoint().fabric();
        self.choices.site(|| self.state.placement(self.group().members(), fabric))
    }

    /// Returns a line for each call whose algorithm was chosen because of the measured times of earlier calls.
    pub fn learned(&self) -> Vec<String> {
        self.state.trials().map_or_else(Vec::new, AlgorithmTrials::report)
    }

    /// Returns the algorithm for a call, and the reason for it.
    pub fn chosen(&self, operation: CollectiveKind, case: &SelectionKey) -> SelectedAlgorithm {
        let model = self.state.area.model(self.engine.endpoint().fabric());
        self.selection().choose(operation, case, model)
    }

    pub(crate) fn choose(&self, operation: CollectiveKind, asked: CallKey) -> AlgorithmChoice {
        // Facts about the ranks, right before this operation. All ranks know the same facts.
        let near = self.state.area.near(self.rank());
        if let Some(choice) = self.choices.last(operation, asked, near) {
            return choice;
        }
        let trials = self.state.trials();
        let key = TrialKey { operation, asked, near };
        match trials.and_then(|trials| trials.next(key)) {
            // A choice that tries an algorithm holds for this call only, so the choice is not kept.
            Some(TriedAlgorithm::Now(choice)) => return choice,
            Some(TriedAlgorithm::Learned(choice)) => {
                self.choices.keep(operation, asked, near, choice);
                return choice;
            }
            None => {}
        }
        let case = asked.among(self.size(), RankPlacement { near, ..self.site() });
        let SelectedAlgorithm { mut choice, reason, .. } = self.chosen(operation, &case);
        // In an algorithm that `meets`, ranks wait for each other, so a rank that computes would delay all other ranks. Operations
        // in the background use algorithms that send messages, because messages are stored until the rank takes them.
        let meets = choice.algorithm.meets() && reason != SelectionReason::Asked
            || reason == SelectionReason::Led;
        if meets && !self.is_foreground() {
            choice = apart(operation, &case);
        }
        if let Some(trials) = trials
            && reason == SelectionReason::Cheapest
            && key.may_try(self.size())
        {
            let model = self.state.area.model(self.engine.endpoint().fabric());
            let candidates = candidates(operation, &case, model);
            if candidates.first() == Some(&choice) {
                trials.open(key, candidates);
                return choice;
            }
        }
        self.choices.keep(operation, asked, near, choice);
        if choice.algorithm.needs.contains(&Requirement::Multicast) {
            // While a root computes, the root's helper thread must repair losses.
            self.engine.want_helper();
        }
        choice
    }
}
