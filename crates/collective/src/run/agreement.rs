//! Task of the trials of algorithms in a call: timing the call, or the agreement of the ranks on the quickest algorithm.

use super::CollectiveCall;
use crate::algorithm_trials::{CANDIDATES, DueTrial, TrialAgreement, TrialWatch};
use crate::{CommView, ElementReduction, OperandOrder, ReductionBuffers, allreduce, words};
use weft_fabric::{Fabric, Fault, Sge};

/// Operator that adds words.
struct WordSum;

impl ElementReduction for WordSum {
    fn combine(&self, left: Sge, right: Sge) {
        let sum = |i| words::read(left, i).saturating_add(words::read(right, i));
        words::write((0..right.len() / 8).map(sum), right);
    }

    fn commutes(&self) -> bool {
        true
    }

    fn order(&self) -> OperandOrder {
        OperandOrder::Any
    }
}

impl<'c, F: Fabric> CollectiveCall<'c, F> {
    /// Begins the task of the trials in this call, if there is any, right before the operation. Either the call is timed until the
    /// returned watch is dropped, or the ranks agree on the quickest candidate.
    pub async fn begin_trial(&self) -> Result<Option<TrialWatch<'c>>, Fault> {
        match self.state.due_trial(self.choice) {
            Some(DueTrial::Timed(watch)) => Ok(Some(watch)),
            Some(DueTrial::Agreement(agreement)) => {
                agree(agreement, self.link).await?;
                Ok(None)
            }
            None => Ok(None),
        }
    }
}

/// Adds up the times of all ranks by messages, and chooses the quickest candidate.
async fn agree<F: Fabric>(agreement: TrialAgreement<'_>, link: &CommView<F>) -> Result<(), Fault> {
    let (mine, all) = (link.stage(8 * CANDIDATES), link.stage(8 * CANDIDATES));
    words::write(agreement.medians(), mine.sge());
    let buffers = ReductionBuffers { data: mine.sge(), result: all.sge(), element: 8 };
    allreduce::pairwise_exchange(link, buffers, &WordSum).await?;
    agreement.decide(words::read_array(all.sge()), link.size());
    Ok(())
}
