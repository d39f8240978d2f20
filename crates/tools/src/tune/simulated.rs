//! Measurement on a machine file in virtual time.

use super::sweep::{MapCell, Measure};
use super::workload;
use std::rc::Rc;
use weft_collective::{AlgorithmChoice, RankPlacement, Selection, SelectionMap};
use weft_fabric_sim::Machine;

pub struct SimulatedTuning {
    pub machine: Rc<Machine>,
    /// Map found so far. Algorithms that consist of other operations choose the algorithms of these operations by the map.
    pub found: Rc<SelectionMap>,
}

impl Measure for SimulatedTuning {
    fn site(&mut self, ranks: usize) -> Result<RankPlacement, String> {
        workload::site(&self.machine, ranks)
    }

    fn noise(&self) -> f64 {
        0.005
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn learn(&mut self, map: SelectionMap) {
        self.found = Rc::new(map);
    }

    fn measure(
        &mut self,
        place: MapCell,
        choices: &[AlgorithmChoice],
        done: &dyn Fn(),
    ) -> Result<Vec<Result<f64, String>>, String> {
        let MapCell { operation, ranks, bytes } = place;
        let one = |&choice: &AlgorithmChoice| {
            let mut selection = Selection::by(self.found.clone());
            selection.ask(operation, Some(choice));
            let us = workload::measure(&self.machine, ranks, operation, bytes, &Rc::new(selection));
            done();
            us
        };
        Ok(choices.iter().map(one).collect())
    }
}
