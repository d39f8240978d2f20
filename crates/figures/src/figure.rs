//! Parts of the description of a document's results. To add a figure, add a [`Figure`] to its document's file. To add a curve,
//! add one line to the figure.

use super::lab::Lab;
use super::published::Value;
use super::workload::Workload;
use weft_collective::CollectiveKind;
use weft_fabric_sim::Machine;

/// A document: its machines, the figures that are drawn, and the statements that are compared.
pub struct Document {
    /// Name for the option `--only`. The document's files begin with this name.
    pub id: &'static str,
    /// Name of the document in `published.csv`.
    pub paper: &'static str,
    pub title: &'static str,
    /// Machine files that model the document's clusters.
    pub machines: &'static [&'static str],
    /// Text of the page before the figures: the state of the implementation and the method of measurement.
    pub about: &'static str,
    pub figures: Vec<Figure>,
    pub maps: Vec<Map>,
    pub checks: Vec<Check>,
    /// Results whose sensitivity to the assumed parameters is measured.
    pub headlines: Vec<Headline>,
}

/// A figure or table of a document, or an additional figure of our own.
pub struct Figure {
    /// Name of the files with the drawing and its data, without extension.
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
pub struct Map {
    /// Name of the files with the drawing and its data, without extension.
    pub id: &'static str,
    pub title: &'static str,
    /// Place in the document.
    pub place: &'static str,
    pub machine: &'static str,
    pub operation: CollectiveKind,
    /// Algorithms that compete, each as a function of the number of processes.
    pub names: Vec<Contender>,
    pub processes: Vec<usize>,
    /// Message sizes, as the operation's measure counts them.
    pub bytes: Vec<usize>,
    /// Published rows to list below the map.
    pub rows: Vec<&'static str>,
    pub note: &'static str,
}

/// A name on a map, and the function that returns its workload for an operation and a number of processes.
pub type Contender = (&'static str, fn(CollectiveKind, usize) -> Workload);

/// An axis. Times are microseconds, sizes bytes.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    pub label: &'static str,
    pub unit: &'static str,
    /// True to draw powers of two at equal distances.
    pub doubling: bool,
}

/// A curve: one workload on one machine.
#[derive(Clone)]
pub struct Series {
    pub name: &'static str,
    pub machine: &'static str,
    pub workload: Workload,
    /// Baseline of a curve that shows a factor of improvement: the baseline's value is divided by the curve's own value.
    pub over: Option<Workload>,
    pub x: Vec<usize>,
}

/// A published number, drawn at `x` of the series that it belongs to.
pub struct Mark {
    /// The row of `published.csv`: see [`super::published::Row::is`].
    pub row: &'static str,
    pub series: &'static str,
    pub x: usize,
}

/// Simulation of a row of `published.csv`.
pub struct Check {
    /// The row: see [`super::published::Row::is`].
    pub row: &'static str,
    pub simulate: Simulate,
}

/// A row, and the function that runs workloads to check it.
pub type Shown = (&'static str, fn(&Lab) -> Result<Value, String>);

/// Source of a simulated value.
pub enum Simulate {
    /// One measurement: the machine, the workload, and x.
    Run(&'static str, Workload, usize),
    /// Several runs. The function returns their result in the words of the row.
    Runs(fn(&Lab) -> Result<Value, String>),
    /// No run: the value of the machine file at this path.
    Parameter(&'static str, &'static str, fn(&Machine) -> Option<f64>),
}

/// A result that the assumed parameters may change.
pub struct Headline {
    pub name: &'static str,
    pub machine: &'static str,
    pub of: Quotient,
}

/// A measurement, or the ratio of two.
pub enum Quotient {
    One(Workload, usize),
    Ratio([(Workload, usize); 2]),
}

/// Formats a number with four significant digits, without trailing zeros.
pub fn digits(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return format!("{}", number.abs());
    }
    let before = number.abs().log10().floor() as i32 + 1;
    let places = (4 - before).max(0) as usize;
    let text = format!("{number:.places$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::digits;

    #[test]
    fn numbers_have_four_digits() {
        for (number, text) in
            [(5.80934, "5.809"), (9.6, "9.6"), (2049.0, "2049"), (-0.03217, "-0.03217")]
        {
            assert_eq!(digits(number), text);
        }
        assert_eq!(
            (digits(0.0), digits(-0.0), digits(1234567.0)),
            ("0".into(), "0".into(), "1234567".into())
        );
    }
}
