//! Steps of LEVELS and LEVEL-SLICES: the groups at each level of the machine, the algorithm that serves them, and its predicted
//! time.

use super::Selection;
use crate::algorithm::{Algorithm, AlgorithmChoice, Carrier, Method};
use crate::costs::CallCosts;
use crate::operation::CollectiveKind;
use crate::selection_key::{RankPlacement, SelectionKey};
use weft_fabric::CopyModel;
use weft_fabric::arithmetic::in_usual_arithmetic;
use weft_fabric::copies::TopologyLevel;

/// Ranks among which a step runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepRanks {
    /// The ranks of each group of the level, in all groups at the same time.
    Group,
    /// The leaders of all groups of the level.
    Leaders,
    /// The ranks at the same place in all groups of the level, for all places at the same time.
    Column,
}

/// A step: a collective operation within groups, or between ranks of all groups.
#[derive(Debug, Clone, PartialEq)]
pub struct CompositionStep {
    /// Operation of the step.
    pub operation: CollectiveKind,
    /// Level of the groups.
    pub level: TopologyLevel,
    /// Ranks of the step.
    pub part: StepRanks,
    /// Number of groups.
    pub groups: usize,
    /// Maximum number of ranks that take part: of a group, or one of each group.
    pub ranks: usize,
    /// Number of bytes, in the measure of the operation.
    pub bytes: usize,
    /// Algorithm of the step.
    pub choice: AlgorithmChoice,
    /// Number of runs of the step that follow each other, as a mean over all roots.
    pub runs: f64,
    /// Predicted nanoseconds of a run, if the model predicts a time.
    pub time: Option<f64>,
}

/// All steps of a call, in their order, from the innermost level to the outermost and back.
#[derive(Debug, Clone, PartialEq)]
pub struct Composition {
    /// The steps.
    pub steps: Vec<CompositionStep>,
    /// Nanoseconds of a message from a leader to the root, as a mean over all roots.
    pub to_root: f64,
    /// Nanoseconds in which leaders sort blocks by their destinations.
    pub sorting: f64,
}

impl Composition {
    /// Returns the predicted nanoseconds of the call, if the model predicts a time for every step.
    pub fn time(&self) -> Option<f64> {
        let times: Option<Vec<f64>> =
            self.steps.iter().map(|step| Some(step.runs * step.time?)).collect();
        let times = times?;
        Some(in_usual_arithmetic(|| times.iter().sum::<f64>() + self.to_root + self.sorting))
    }
}

/// The groups of the first step of a case, and the calls of their ranks and of one rank of each group, with the whole payload.
struct StepCases {
    level: TopologyLevel,
    groups: usize,
    group: SelectionKey,
    between: SelectionKey,
}

impl StepCases {
    /// Returns the calls of both steps. Returns `None` if there are no groups, or if the operator does not commute and groups do not
    /// have consecutive ranks.
    fn of(case: &SelectionKey) -> Option<StepCases> {
        let step = case.site.levels.first().filter(|step| case.commutes || step.contiguous)?;
        // A level selects its algorithms without facts that the ranks exchange. It uses no multicast.
        let alike = RankPlacement { near: Default::default(), multicast: 0, ..case.site };
        let among = |ranks: u16, levels| {
            let ranks = usize::from(ranks);
            let site = RankPlacement { ranks_per_node: ranks, levels, ..alike };
            SelectionKey { ranks, site, ..*case }
        };
        Some(StepCases {
            level: step.level,
            groups: step.groups.into(),
            group: among(step.largest, case.site.levels.of_group()),
            between: among(step.groups, case.site.levels.of_leaders()),
        })
    }
}

/// Steps within groups before and after the step between the groups, and that step.
struct StepPlan {
    before: Option<CompositionStep>,
    between: CompositionStep,
    after: [Option<CompositionStep>; 2],
    to_root: f64,
    sorting: f64,
}

/// Algorithm of an operation in which rank 0 does other work, and its predicted nanoseconds without this work.
pub(crate) struct AroundChoice {
    pub choice: AlgorithmChoice,
    pub time: f64,
}

impl Selection {
    /// Returns the steps of a call by `choice`, as its levels select their algorithms. Returns `None` if `choice` is no composition
    /// of the levels of a node, or if the ranks have no levels.
    pub fn steps(
        &self,
        choice: AlgorithmChoice,
        case: &SelectionKey,
        model: &CopyModel,
    ) -> Option<Composition> {
        let StepPlan { before, between, after, to_root, sorting } = match choice.algorithm.method {
            Method::Levels => self.steps_of_leaders(choice.algorithm.operation, case, model)?,
            Method::LevelSlices => self.steps_of_slices(case, model)?,
            _ => return None,
        };
        let mut all = Composition { steps: before.into_iter().collect(), to_root, sorting };
        let inner = SelectionKey { bytes: between.bytes, ..StepCases::of(case)?.between };
        match self.steps(between.choice, &inner, model) {
            Some(inner) => {
                all.steps.extend(inner.steps);
                all.to_root += inner.to_root;
                all.sorting += inner.sorting;
            }
            None => all.steps.push(between),
        }
        all.steps.extend(after.into_iter().flatten());
        Some(all)
    }

    /// Returns the steps of LEVELS.
    fn steps_of_leaders(
        &self,
        operation: CollectiveKind,
        case: &SelectionKey,
        model: &CopyModel,
    ) -> Option<StepPlan> {
        use CollectiveKind::{Allreduce, Barrier, Bcast, Exscan, Reduce, Scan};
        let cases = StepCases::of(case)?;
        if let Some(plan) = self.steps_of_blocks(operation, case, &cases, model) {
            return Some(plan);
        }
        let group = |operation| self.step(&cases, operation, StepRanks::Group, case.bytes, model);
        let around = self.around(operation, &cases.group, model).map(|around| {
            let AroundChoice { choice, time } = around;
            CompositionStep { operation, choice, time: Some(time), ..group(operation) }
        });
        let among_leaders = match operation {
            Scan => Exscan,
            _ => operation,
        };
        let between = self.step(&cases, among_leaders, StepRanks::Leaders, case.bytes, model);
        // The root is rarely the leader of its group.
        let runs = 1.0 - 1.0 / cases.group.ranks as f64;
        let costs = CallCosts::of(&cases.group, model);
        let (before, after) = match operation {
            Barrier | Allreduce if around.is_some() => (around?, [None, None]),
            Barrier => (group(Barrier), [Some(group(Barrier)), None]),
            Bcast => (CompositionStep { runs, ..group(Bcast) }, [Some(group(Bcast)), None]),
            Reduce => (group(Reduce), [None, None]),
            Allreduce => (group(Reduce), [Some(group(Bcast)), None]),
            // All lower groups come first in the order of ranks.
            Scan | Exscan if case.site.levels.first()?.contiguous => {
                (group(Reduce), [Some(group(Bcast)), Some(group(operation))])
            }
            _ => return None,
        };
        let to_root = match operation {
            Reduce => runs * costs.message(case.bytes as f64),
            _ => 0.0,
        };
        Some(StepPlan { before: Some(before), between, after, to_root, sorting: 0.0 })
    }

    /// Returns the steps of LEVELS for an operation with a block for each rank. Blocks of a group travel together.
    fn steps_of_blocks(
        &self,
        operation: CollectiveKind,
        case: &SelectionKey,
        cases: &StepCases,
        model: &CopyModel,
    ) -> Option<StepPlan> {
        use CollectiveKind::{
            Allgather, Alltoall, Alltoallv, Bcast, Gather, Gatherv, Reduce, ReduceScatter, Scatter,
            Scatterv,
        };
        let (bytes, all, here) = (case.bytes, case.ranks * case.bytes, cases.group.ranks);
        let group = |operation, bytes| self.step(cases, operation, StepRanks::Group, bytes, model);
        let leaders =
            |operation, bytes| self.step(cases, operation, StepRanks::Leaders, bytes, model);
        let (before, between, after) = match operation {
            Gather => {
                let group = group(Gather, bytes);
                let root = self.step_at_root(&group, cases, model)?;
                (Some(group), root, None)
            }
            Scatter => {
                let group = CompositionStep { operation, ..group(Scatterv, bytes) };
                let root = self.step_at_root(&group, cases, model)?;
                (None, root, Some(CompositionStep { operation: Scatterv, ..group }))
            }
            Allgather => {
                let between = leaders(Allgather, here * bytes);
                (Some(group(Gatherv, bytes)), between, Some(group(Bcast, all)))
            }
            Alltoall => {
                let between = leaders(Alltoallv, here * here * bytes);
                (Some(group(Gather, all)), between, Some(group(Scatterv, all)))
            }
            ReduceScatter => {
                let share = bytes / case.ranks;
                let between = leaders(ReduceScatter, bytes);
                (Some(group(Reduce, bytes)), between, Some(group(Scatterv, share)))
            }
            _ => return None,
        };
        // The leader sorts the blocks that leave its group, and those that enter.
        let sorted = if operation == Alltoall { 2.0 * (here * case.ranks) as f64 } else { 0.0 };
        let sorting = CallCosts::of(&cases.group, model).copy_blocks(sorted, bytes as f64);
        Some(StepPlan { before, between, after: [after, None], to_root: 0.0, sorting })
    }

    /// Returns the step between the root of a gather or a scatter and the leaders of other groups. While these groups carry out their
    /// step `group`, the root exchanges a block with each rank of its own group.
    fn step_at_root(
        &self,
        group: &CompositionStep,
        cases: &StepCases,
        model: &CopyModel,
    ) -> Option<CompositionStep> {
        let &CompositionStep { operation, bytes, .. } = group;
        let flat = |a: &&Algorithm| a.method == Method::Flat && a.carrier == Carrier::Messages;
        let choice = operation.algorithms().find(flat)?.usual();
        let of_group = cases.group.ranks * bytes;
        let near = choice.algorithm.predicted(&SelectionKey { bytes, ..cases.group }, model);
        let far = SelectionKey { bytes: of_group, ..cases.between };
        let far = choice.algorithm.predicted(&far, model);
        let beside = group.time.unwrap_or(0.0);
        let time = near.zip(far);
        let time = time.map(|(near, far)| in_usual_arithmetic(|| (near - beside).max(0.0) + far));
        Some(CompositionStep {
            operation,
            level: cases.level,
            part: StepRanks::Leaders,
            groups: cases.groups,
            ranks: cases.groups,
            bytes: of_group,
            choice,
            runs: 1.0,
            time,
        })
    }

    /// Returns the algorithm of a barrier or an allreduce in which rank 0 does other work, if it is predicted to be faster than a step
    /// before and a step after the work.
    pub(crate) fn around(
        &self,
        operation: CollectiveKind,
        case: &SelectionKey,
        model: &CopyModel,
    ) -> Option<AroundChoice> {
        use CollectiveKind::{Allreduce, Barrier, Bcast, Reduce};
        let steps = match operation {
            Barrier => [Barrier, Barrier],
            Allreduce => [Reduce, Bcast],
            _ => return None,
        };
        let lines = operation.algorithms().find(|a| a.method == Method::Lines)?;
        lines.eligible(case).ok()?;
        let time =
            in_usual_arithmetic(|| CallCosts::of(case, model).leader_lines(case.bytes as f64));
        let step = |operation| {
            let choice = self.choose_in_level(operation, case, model);
            self.predicted(choice, case, model).unwrap_or(f64::INFINITY)
        };
        let both = in_usual_arithmetic(|| steps.map(step).iter().sum::<f64>());
        (time < both).then(|| AroundChoice { choice: lines.usual(), time })
    }

    /// Returns the steps of an allreduce by LEVEL-SLICES.
    fn steps_of_slices(&self, case: &SelectionKey, model: &CopyModel) -> Option<StepPlan> {
        use CollectiveKind::{Allgather, Allreduce, ReduceScatter};
        let cases = StepCases::of(case)?;
        let slice = case.bytes.div_ceil(cases.group.ranks).next_multiple_of(case.element.max(1));
        let group = |operation, bytes| self.step(&cases, operation, StepRanks::Group, bytes, model);
        Some(StepPlan {
            before: Some(group(ReduceScatter, case.bytes)),
            between: self.step(&cases, Allreduce, StepRanks::Column, slice, model),
            after: [Some(group(Allgather, slice)), None],
            to_root: 0.0,
            sorting: 0.0,
        })
    }

    fn step(
        &self,
        cases: &StepCases,
        operation: CollectiveKind,
        part: StepRanks,
        bytes: usize,
        model: &CopyModel,
    ) -> CompositionStep {
        let case = match part {
            StepRanks::Group => cases.group,
            StepRanks::Leaders | StepRanks::Column => cases.between,
        };
        let case = SelectionKey { bytes, ..case };
        let choice = self.choose_in_level(operation, &case, model);
        // A step selects its algorithm, and makes a view of its ranks.
        let begin = CallCosts::of(&case, model).handling();
        let time = self.predicted(choice, &case, model);
        let time = time.map(|time| in_usual_arithmetic(|| begin + time));
        let (&StepCases { level, groups, .. }, ranks) = (cases, case.ranks);
        CompositionStep { operation, level, part, groups, ranks, bytes, choice, runs: 1.0, time }
    }

    /// Returns the predicted time of `choice` in nanoseconds, if the model of copies predicts a time. The time of a composition of
    /// levels is the sum of its steps. The result is `None` if several ranks
    /// share a processor, because the groups do not say which ranks these are.
    pub fn predicted(
        &self,
        choice: AlgorithmChoice,
        case: &SelectionKey,
        model: &CopyModel,
    ) -> Option<f64> {
        let is_known = case.site.same_node && case.site.near.each <= 1;
        match choice.algorithm.method {
            method if method.is_composition_of_node() => {
                let steps = || self.steps(choice, case, model);
                steps().filter(|_| case.site.near.each <= 1)?.time()
            }
            Method::Allgather if is_known => {
                let gathered = self.predicted_whole(&[CollectiveKind::Allgather], case, model)?;
                // Each rank needs memory for all blocks.
                let (ranks, bytes) = (case.ranks as f64, case.bytes as f64);
                let room = || CallCosts::of(case, model).copy_blocks(ranks, bytes);
                Some(in_usual_arithmetic(|| gathered + room()))
            }
            Method::ReduceBroadcast if is_known => {
                let both = [CollectiveKind::Reduce, CollectiveKind::Bcast];
                self.predicted_whole(&both, case, model)
            }
            _ => choice.algorithm.predicted(case, model),
        }
    }

    /// Returns the predicted nanoseconds of operations of all ranks of `case` one after the other, by the algorithms that a level selects.
    /// Returns `None` unless the ranks are at known places in several caches.
    fn predicted_whole(
        &self,
        operations: &[CollectiveKind],
        case: &SelectionKey,
        model: &CopyModel,
    ) -> Option<f64> {
        case.site.levels.first()?;
        let site = RankPlacement { near: Default::default(), ..case.site };
        let case = SelectionKey { site, ..*case };
        let time = |&operation: &CollectiveKind| {
            self.predicted(self.choose_in_level(operation, &case, model), &case, model)
        };
        let times: Option<Vec<f64>> = operations.iter().map(time).collect();
        times.map(|times| in_usual_arithmetic(|| times.iter().sum()))
    }
}
