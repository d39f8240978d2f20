//! Parts of the description of a document's results. To add a figure, add a [`Figure`] to its document's file. To add a curve,
//! add one line to the figure.

use super::lab::Lab;
use super::published::CheckResult;
use super::series::{Quotient, Series};
use super::workload::Workload;
use weft_collective::CollectiveKind;
use weft_fabric_sim::Machine;

/// A document: its machines, the figures to draw, and the statements to compare.
pub struct Document {
    /// Name for the option `--only`. The document's files begin with this name.
    pub id: &'static str,
    /// Name of the document in `published.csv`.
    pub paper: &'static str,
    pub title: &'static str,
    /// Machine files that model the document's clusters.
    pub machines: &'static [&'static str],
    /// Text before the figures on the page. It describes the state of the implementation and the method of measurement.
    pub about: &'static str,
    pub figures: Vec<Figure>,
    pub maps: Vec<AlgorithmMap>,
    pub checks: Vec<Check>,
    /// Results for which the effect of the assumed parameters is measured.
    pub headlines: Vec<Headline>,
}

/// Names of a figure or a map.
pub struct FigureHeading {
    /// Name, without extension, of the files that contain the drawing and its data.
    pub id: &'static str,
    pub title: &'static str,
    /// Place in the document.
    pub place: &'static str,
}

impl FigureHeading {
    pub fn new(id: &'static str, title: &'static str, place: &'static str) -> FigureHeading {
        FigureHeading { id, title, place }
    }
}

/// A figure or table of a document, or an additional figure of our own.
pub struct Figure {
    /// Name, without extension, of the files that contain the drawing and its data.
    pub id: &'static str,
    pub title: &'static str,
    /// Place in the document.
    pub place: &'static str,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
    /// Published numbers to draw.
    pub marks: Vec<Mark>,
    /// Published rows to list below the figure, besides the rows of the marks.
    pub rows: Vec<&'static str>,
    pub note: &'static str,
}

/// A map of the fastest algorithm over message size and processes.
pub struct AlgorithmMap {
    /// Name, without extension, of the files that contain the drawing and its data.
    pub id: &'static str,
    pub title: &'static str,
    /// Place in the document.
    pub place: &'static str,
    pub machine: &'static str,
    pub operation: CollectiveKind,
    /// Algorithms that compete, each as a function of the number of processes.
    pub names: Vec<Contender>,
    pub processes: Vec<usize>,
    /// Message sizes in bytes, as [`CollectiveKind::measure`] counts them.
    pub bytes: Vec<usize>,
    /// Published rows to list below the map.
    pub rows: Vec<&'static str>,
    pub note: &'static str,
}

/// A name on a map, and the function that returns its workload for an operation and a number of processes.
pub type Contender = (&'static str, fn(CollectiveKind, usize) -> Workload);

/// An axis. Times are in microseconds, sizes in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    pub label: &'static str,
    pub unit: &'static str,
    /// True to draw powers of two at equal distances.
    pub doubling: bool,
}

/// A published number, drawn on the curve `series` at `x`.
pub struct Mark {
    /// Name of the row of `published.csv`: see [`super::published::PublishedRow::is`].
    pub row: &'static str,
    pub series: &'static str,
    pub x: usize,
}

/// Simulation of a row of `published.csv`.
pub struct Check {
    /// Name of the row: see [`super::published::PublishedRow::is`].
    pub row: &'static str,
    pub simulate: Simulate,
}

/// Name of a row, and the function that runs workloads to check the row.
pub type Shown = (&'static str, fn(&Lab) -> CheckResult);

/// Source of a simulated value.
pub enum Simulate {
    /// One measurement: the machine, the workload, and x.
    Run(&'static str, Workload, usize),
    /// Several runs. The function returns their result in the same words as the row.
    Runs(fn(&Lab) -> CheckResult),
    /// No run: the value of a parameter in a machine file. The first text names the machine, and the second names the parameter.
    Parameter(&'static str, &'static str, fn(&Machine) -> Option<f64>),
}

/// A result that may depend on the assumed parameters.
pub struct Headline {
    pub name: &'static str,
    pub machine: &'static str,
    pub of: Quotient,
}
