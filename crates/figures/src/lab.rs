//! Laboratory that runs all measurements. It reads each machine file once, and repeats no measurement.

use super::published::PublishedList;
use super::series::{Quotient, Series};
use super::workload::{Effort, Workload};
use indicatif::{ProgressBar, ProgressStyle};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use weft_fabric_sim::Machine;

/// Parameters that identify a measurement. The effort is the same for all measurements of a lab.
type MeasurementKey = (&'static str, Workload, usize);

pub struct Lab {
    effort: Effort,
    /// Effort of measurements that vary parameters.
    study: Effort,
    machines: RefCell<BTreeMap<&'static str, Rc<Machine>>>,
    known: RefCell<HashMap<MeasurementKey, f64>>,
    published: PublishedList,
    progress: ProgressBar,
}

impl Lab {
    /// Creates a lab that measures with few iterations.
    pub fn quick(published: &PublishedList) -> Lab {
        Lab::with_efforts(Effort::QUICK, Effort::QUICK, published)
    }

    /// Creates a lab that measures with all iterations.
    pub fn full(published: &PublishedList) -> Lab {
        Lab::with_efforts(Effort::FULL, Effort::STUDY, published)
    }

    fn with_efforts(effort: Effort, study: Effort, published: &PublishedList) -> Lab {
        let (machines, known) = (RefCell::default(), RefCell::default());
        let (published, progress) = (published.clone(), ProgressBar::hidden());
        Lab { effort, study, machines, known, published, progress }
    }

    /// Replaces machines by variants of the same names.
    pub fn with_machines(mut self, machines: BTreeMap<&'static str, Rc<Machine>>) -> Lab {
        self.machines = RefCell::new(machines);
        self
    }

    /// Returns the number that stands for a word of `row` in the list of published values.
    pub fn threshold(&self, paper: &str, row: &str) -> Result<f64, String> {
        let found = self.published.find(paper, row)?;
        let (file, line) = (&self.published.file, found.line);
        found.threshold.ok_or_else(|| format!("{file}:{line}: \"{row}\" needs a threshold"))
    }

    /// Shows a progress bar for `total` measurements, if standard error is a terminal.
    pub fn show_progress(&mut self, total: u64) {
        let style = "{msg:24} [{bar:40}] {pos}/{len} measurements, {eta} left";
        let style = ProgressStyle::with_template(style).expect("a template of known parts");
        self.progress = ProgressBar::new(total).with_style(style.progress_chars("=> "));
    }

    /// Shows `what` as the subject of the next measurements.
    pub fn announce(&self, what: &str) {
        self.progress.set_message(what.to_owned());
    }

    pub fn end_progress(&self) {
        self.progress.finish_and_clear();
    }

    pub fn machine(&self, name: &'static str) -> Result<Rc<Machine>, String> {
        if let Some(machine) = self.machines.borrow().get(name) {
            return Ok(machine.clone());
        }
        let machine = Rc::new(Machine::load(name).map_err(|e| e.to_string())?);
        self.machines.borrow_mut().insert(name, machine.clone());
        Ok(machine)
    }

    /// Measures one point of a curve.
    pub fn measure(
        &self,
        machine: &'static str,
        workload: Workload,
        x: usize,
    ) -> Result<f64, String> {
        let key = (machine, workload, x);
        let known = self.known.borrow().get(&key).copied();
        let value = match known {
            Some(value) => value,
            None => match workload.contenders(x) {
                // A competing workload may also be a curve of its own. Its measurement is then reused.
                Some(all) => {
                    let times = all.into_iter().map(|workload| self.measure(machine, workload, x));
                    times.collect::<Result<Vec<_>, _>>()?.into_iter().fold(f64::INFINITY, f64::min)
                }
                None => workload.run(&self.machine(machine)?, x, self.effort)?,
            },
        };
        self.known.borrow_mut().insert(key, value);
        Ok(value)
    }

    /// Measures a point of a curve and advances the progress bar. The bar's total includes the point.
    pub fn of(&self, series: &Series, x: usize) -> Result<f64, String> {
        let own = self.measure(series.machine, series.workload, x);
        let value = match series.over {
            None => own,
            Some(other) => Ok(self.measure(series.machine, other, x)? / own?),
        };
        self.progress.inc(1);
        value
    }

    /// Measures a point of a map and advances the progress bar. The bar's total includes the point.
    pub fn point(
        &self,
        machine: &'static str,
        workload: Workload,
        x: usize,
    ) -> Result<f64, String> {
        let value = self.measure(machine, workload, x);
        self.progress.inc(1);
        value
    }

    /// Measures a result on a machine whose parameters may have been varied.
    pub fn result(&self, machine: &Rc<Machine>, of: &Quotient) -> Result<f64, String> {
        let run = |&(workload, x): &(Workload, usize)| workload.run(machine, x, self.study);
        let value = match of {
            Quotient::One(workload, x) => run(&(*workload, *x)),
            Quotient::Ratio([above, below]) => Ok(run(above)? / run(below)?),
        };
        self.progress.inc(1);
        value
    }
}
