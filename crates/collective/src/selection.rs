//! Selection of the algorithm for a call. The choices in order of precedence: the algorithm asked for by name, the map's entry, the
//! cheapest algorithm by the model of copies, and the algorithm that serves every call.

mod composition;

pub use composition::{Composition, CompositionStep, StepRanks};

use crate::algorithm::{AlgorithmChoice, Method};
use crate::algorithm_trials::{CANDIDATES, TrialCandidates, WITHIN};
use crate::operation::CollectiveKind;
use crate::selection_key::{RankPlacement, SelectionKey};
use crate::selection_map::SelectionMap;
use std::rc::Rc;
use weft_fabric::CopyModel;

/// Selection rules of a communicator, the same on all its ranks.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    forced: [Option<AlgorithmChoice>; CollectiveKind::ALL.len()],
    map: Option<Rc<SelectionMap>>,
    /// Map for ranks that share memory.
    same_node: Option<Rc<SelectionMap>>,
    /// True if no user named a map. Then the map for ranks on several nodes is the default map. That map was measured on adapters
    /// with one rank per node.
    unnamed: bool,
}

/// Reason why a call uses its algorithm.
#[derive(Debug, Clone, PartialEq)]
pub enum SelectionReason {
    /// A user asked for the algorithm by name.
    Asked,
    /// The map names the algorithm.
    Map,
    /// The default map was measured with one rank per node. So the leaders act for their nodes, and the leaders use the map.
    Led,
    /// Neither a user nor a map names an algorithm. The ranks share memory, and the algorithm is the cheapest by the model of
    /// copies.
    Cheapest,
    /// Neither a user nor a map names an algorithm. The algorithm is the first algorithm of the catalogue that is usual and
    /// eligible.
    Usual,
}

/// A choice and its reason.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectedAlgorithm {
    /// The algorithm that serves the call.
    pub choice: AlgorithmChoice,
    /// The reason for this choice.
    pub reason: SelectionReason,
    /// The algorithm asked for, and the reason why it does not serve this call.
    pub refused: Option<(AlgorithmChoice, String)>,
}

impl Selection {
    /// Makes a selection by `map` for all calls for which no algorithm is asked for.
    pub fn by(map: Rc<SelectionMap>) -> Selection {
        Selection { map: Some(map.clone()), same_node: Some(map), ..Selection::default() }
    }

    /// Sets the map for ranks that share memory, and the map for other ranks. The maps apply to calls for which no algorithm is
    /// asked for.
    pub fn use_maps(
        &mut self,
        same_node: Option<Rc<SelectionMap>>,
        apart: Option<Rc<SelectionMap>>,
    ) {
        (self.same_node, self.map, self.unnamed) = (same_node, apart, true);
    }

    /// Returns the map for ranks at `site`.
    pub fn map(&self, site: RankPlacement) -> Option<&Rc<SelectionMap>> {
        if site.same_node { self.same_node.as_ref() } else { self.map.as_ref() }
    }

    /// Asks for an algorithm. `None` withdraws an earlier request. If the algorithm is not eligible for a call, the request has no
    /// effect on this call.
    pub fn ask(&mut self, operation: CollectiveKind, choice: Option<AlgorithmChoice>) {
        self.forced[operation as usize] = choice;
    }

    /// Asks for an algorithm by name (`RGM:7`); `auto` withdraws an earlier request. The error lists the known names.
    pub fn ask_for(&mut self, operation: CollectiveKind, text: &str) -> Result<(), String> {
        let auto = text.trim().eq_ignore_ascii_case("auto");
        let choice = if auto { None } else { Some(AlgorithmChoice::parse(operation, text)?) };
        self.ask(operation, choice);
        Ok(())
    }

    /// Returns the algorithm asked for.
    pub fn asked(&self, operation: CollectiveKind) -> Option<AlgorithmChoice> {
        self.forced[operation as usize]
    }

    /// Returns the algorithm that serves `case`. `model` is the machine's model of copies, for ranks that share memory. All ranks
    /// have the same model.
    pub fn choose(
        &self,
        operation: CollectiveKind,
        case: &SelectionKey,
        model: &CopyModel,
    ) -> SelectedAlgorithm {
        self.choose_if_asked(self.asked(operation), operation, case, model)
    }

    /// Returns the algorithm that serves `case` in a level. A composition of the levels of a node that was asked for serves the whole
    /// communicator. Its levels choose by themselves whether they are composed again.
    pub(crate) fn choose_in_level(
        &self,
        operation: CollectiveKind,
        case: &SelectionKey,
        model: &CopyModel,
    ) -> AlgorithmChoice {
        let asked = self.asked(operation);
        let asked = asked.filter(|choice| !choice.algorithm.method.is_composition_of_node());
        self.choose_if_asked(asked, operation, case, model).choice
    }

    /// Returns the algorithm that serves `case`, if `asked` was asked for.
    fn choose_if_asked(
        &self,
        asked: Option<AlgorithmChoice>,
        operation: CollectiveKind,
        case: &SelectionKey,
        model: &CopyModel,
    ) -> SelectedAlgorithm {
        // The default map has lines for ranks that share memory only where the model knows no times. The model knows the times of ranks
        // at known places in several caches.
        let is_known = self.unnamed && case.site.same_node && case.site.levels.first().is_some();
        let known = || self.cheapest(operation, case, model).filter(|_| is_known);
        let mapped = || self.map(case.site).and_then(|map| map.choose(operation, case));
        let refused =
            asked.and_then(|choice| Some((choice, choice.algorithm.eligible(case).err()?)));
        let (choice, reason) = if let (Some(choice), None) = (asked, &refused) {
            (choice, SelectionReason::Asked)
        } else if let Some(choice) = led(operation, case).filter(|_| self.unnamed) {
            (choice, SelectionReason::Led)
        } else if let Some(choice) = known() {
            (choice, SelectionReason::Cheapest)
        } else if let Some(choice) = mapped() {
            (choice, SelectionReason::Map)
        } else if let Some(choice) = self.cheapest(operation, case, model) {
            (choice, SelectionReason::Cheapest)
        } else {
            (usual(operation, case), SelectionReason::Usual)
        };
        SelectedAlgorithm { choice, reason, refused }
    }

    /// Returns the predicted fastest algorithm among ranks that share memory, if the model predicts a time for any algorithm. If
    /// times are equal, the first algorithm is taken.
    fn cheapest(
        &self,
        operation: CollectiveKind,
        case: &SelectionKey,
        model: &CopyModel,
    ) -> Option<AlgorithmChoice> {
        let able = operation.algorithms().filter(|a| a.competes() && a.eligible(case).is_ok());
        let able = able.map(|a| a.usual());
        let timed = able.filter_map(|a| Some((self.predicted(a, case, model)?, a)));
        timed.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, choice)| choice)
    }
}

/// Returns the default algorithm for ranks that do not share memory. In such an algorithm, no rank waits for another rank's call.
pub fn apart(operation: CollectiveKind, case: &SelectionKey) -> AlgorithmChoice {
    let site = RankPlacement { same_node: false, ..case.site };
    usual(operation, &SelectionKey { site, ..*case })
}

/// Maximum number of bytes of a node's blocks for one destination rank that the node's leader gathers. Beyond this number, the
/// copies cost the leader more than the messages cost all ranks of the node. If a message takes 5 us of a processor and copies run
/// at 5 GB/s, two copies of 12 KiB take as long as one message. The ranks of a node may have several processors, but the leader has
/// only one.
const GATHERED: usize = 64 << 10;

/// Returns TWO-LEVEL if the kernel carries messages and nodes have several ranks. The kernel takes processor time for each message,
/// so a leader sends the data of all ranks of its node in one message.
fn led(operation: CollectiveKind, case: &SelectionKey) -> Option<AlgorithmChoice> {
    use CollectiveKind::{Alltoall, Gather, Scatter};
    let SelectionKey { site, bytes, .. } = *case;
    let moves_blocks = [Gather, Scatter, Alltoall].contains(&operation);
    if !site.by_kernel || moves_blocks && bytes.saturating_mul(site.ranks_per_node) > GATHERED {
        return None;
    }
    let two_level = operation.algorithms().find(|a| a.method == Method::TwoLevel);
    two_level.filter(|a| a.eligible(case).is_ok()).map(|a| a.usual())
}

/// Returns the algorithms whose predicted time is near the lowest time, in ascending order of time. The first algorithm is the
/// choice with the reason [`SelectionReason::Cheapest`]. The other algorithms read data in place, so that a trial takes no memory for
/// buffers.
pub fn candidates(
    operation: CollectiveKind,
    case: &SelectionKey,
    model: &CopyModel,
) -> TrialCandidates {
    let able = operation.algorithms().filter(|a| a.competes() && a.eligible(case).is_ok());
    let mut timed: Vec<_> = able.filter_map(|a| Some((a.predicted(case, model)?, a))).collect();
    // Algorithms with the same time stay in the order of the catalogue, as in the choice of the cheapest algorithm.
    timed.sort_by(|a, b| a.0.total_cmp(&b.0));
    let most = timed.first().map_or(0.0, |(least, _)| least * WITHIN);
    let mut is_first = true;
    let near = timed.into_iter().take_while(|(time, _)| *time <= most).filter(|(_, algorithm)| {
        std::mem::take(&mut is_first)
            || matches!(algorithm.method, Method::Read | Method::ReadWhole)
    });
    near.take(CANDIDATES).map(|(_, algorithm)| algorithm.usual()).collect()
}

/// Returns the first algorithm of the catalogue that is eligible and marked as usual: the choice without a map.
fn usual(operation: CollectiveKind, case: &SelectionKey) -> AlgorithmChoice {
    let eligible = operation.algorithms().find(|a| a.usual && a.eligible(case).is_ok());
    eligible.expect("every operation has one that always serves").usual()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(commutes: bool) -> SelectionKey {
        let site = RankPlacement {
            same_node: false,
            nodes: 4,
            ranks_per_node: 1,
            by_kernel: false,
            multicast: 0,
            same_arithmetic: true,
            atomics: true,
            levels: Default::default(),
            in_place: None,
            near: Default::default(),
        };
        SelectionKey { ranks: 4, bytes: 100, element: 4, commutes, equal: true, site }
    }

    #[test]
    fn what_is_asked_for_comes_first_and_is_refused_with_the_reason() {
        let mut selection = Selection::default();
        let name = |s: &Selection, commutes| {
            let chosen = s.choose(CollectiveKind::Allreduce, &case(commutes), &CopyModel::GENERIC);
            (chosen.choice.to_string(), chosen.reason, chosen.refused.map(|(_, why)| why))
        };
        assert_eq!(name(&selection, true), ("MPI-PE".into(), SelectionReason::Usual, None));
        selection.ask_for(CollectiveKind::Allreduce, "rpe").unwrap();
        assert_eq!(name(&selection, true), ("RPE".into(), SelectionReason::Asked, None));
        let why = Some("the operator does not commute".to_owned());
        assert_eq!(name(&selection, false), ("MPI-GB".into(), SelectionReason::Usual, why));
        selection.ask_for(CollectiveKind::Allreduce, "AUTO").unwrap();
        assert_eq!(selection.asked(CollectiveKind::Allreduce), None);
        let map = SelectionMap::parse("# machine: m\nallreduce 2 0 RPE 1 MPI-GB 2\n").unwrap();
        let mapped = Selection::by(Rc::new(map));
        assert_eq!(name(&mapped, true), ("RPE".into(), SelectionReason::Map, None));
        assert_eq!(name(&mapped, false), ("MPI-GB".into(), SelectionReason::Map, None));
    }

    #[test]
    fn nodes_of_several_ranks_are_led_where_the_kernel_carries_messages() {
        let map = Rc::new(SelectionMap::parse("# machine: m\nallreduce 2 0 RPE 1\n").unwrap());
        let mut usual = Selection::default();
        usual.use_maps(None, Some(map.clone()));
        let named = Selection::by(map);
        let chosen = |selection: &Selection, operation, bytes, by_kernel, ranks_per_node| {
            let mut case = SelectionKey { bytes, ..case(true) };
            (case.site.by_kernel, case.site.ranks_per_node) = (by_kernel, ranks_per_node);
            let chosen = selection.choose(operation, &case, &CopyModel::GENERIC);
            (chosen.choice.to_string(), chosen.reason)
        };
        let allreduce =
            |s, by_kernel, each| chosen(s, CollectiveKind::Allreduce, 8, by_kernel, each);
        let (led, mapped) =
            (("TWO-LEVEL".into(), SelectionReason::Led), ("RPE".into(), SelectionReason::Map));
        assert_eq!(allreduce(&usual, true, 2), led);
        assert_eq!(allreduce(&usual, true, 1), mapped);
        assert_eq!(allreduce(&usual, false, 2), mapped);
        assert_eq!(allreduce(&named, true, 2), mapped);
        let alltoall = |bytes| chosen(&usual, CollectiveKind::Alltoall, bytes, true, 16).1;
        assert_eq!(
            (alltoall(1024), alltoall(8192)),
            (SelectionReason::Led, SelectionReason::Usual)
        );
    }

    #[test]
    fn ranks_that_share_memory_have_a_map_of_their_own() {
        let map = |name: &str| {
            Rc::new(
                SelectionMap::parse(&format!("# machine: m\nallreduce 2 0 {name} 1\n")).unwrap(),
            )
        };
        let mut selection = Selection::default();
        selection.use_maps(Some(map("RPE")), Some(map("MPI-GB")));
        let chosen = |same_node| {
            let mut case = case(true);
            case.site.same_node = same_node;
            selection
                .choose(CollectiveKind::Allreduce, &case, &CopyModel::GENERIC)
                .choice
                .to_string()
        };
        assert_eq!((chosen(true), chosen(false)), ("RPE".into(), "MPI-GB".into()));
    }
}
