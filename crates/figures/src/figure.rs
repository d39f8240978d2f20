//! What a description of a document's results is made of. Adding a figure is adding a [`Figure`] to
//! its document's file; adding a curve is adding one line to it.

use super::lab::Lab;
use super::published::Value;
use super::workload::Workload;
use weft_collective::CollectiveKind;
use weft_fabric_sim::Machine;

/// A document: its machines, what is drawn of it, what of its text is compared.
pub struct Document {
    /// As `--only` takes it, and the beginning of its files' names.
    pub id: &'static str,
    /// Its name in `published.csv`.
    pub paper: &'static str,
    pub title: &'static str,
    /// Machine files that stand for its clusters.
    pub machines: &'static [&'static str],
    /// What the page says before the figures: what exists already, and how it was measured.
    pub about: &'static str,
    pub figures: Vec<Figure>,
    pub maps: Vec<Map>,
    pub checks: Vec<Check>,
    /// What the assumed parameters are varied for.
    pub headlines: Vec<Headline>,
}

/// A figure or table of a document, or one of our own beside it.
pub struct Figure {
    /// Name of its files, without extension.
    pub id: &'static str,
    pub title: &'static str,
    /// Where it stands in the document.
    pub place: &'static str,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
    /// Published numbers to draw.
    pub marks: Vec<Mark>,
    /// Published rows to list below it, beside those that are marks.
    pub rows: Vec<&'static str>,
    pub note: &'static str,
}

/// Which algorithm is the fastest, over message size and processes.
pub struct Map {
    /// Name of its files, without extension.
    pub id: &'static str,
    pub title: &'static str,
    /// Where it stands in the document.
    pub place: &'static str,
    pub machine: &'static str,
    pub operation: CollectiveKind,
    /// Those that compete, over so many processes.
    pub names: Vec<Contender>,
    pub processes: Vec<usize>,
    /// As the operation's measure counts them.
    pub bytes: Vec<usize>,
    /// Published rows to list below it.
    pub rows: Vec<&'static str>,
    pub note: &'static str,
}

/// A name on a map, and what it stands for on so many processes.
pub type Contender = (&'static str, fn(CollectiveKind, usize) -> Workload);

/// An axis. Times are microseconds, sizes bytes.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    pub label: &'static str,
    pub unit: &'static str,
    /// Powers of two at equal distances.
    pub doubling: bool,
}

/// A curve: one workload on one machine.
#[derive(Clone)]
pub struct Series {
    pub name: &'static str,
    pub machine: &'static str,
    pub workload: Workload,
    /// A factor of improvement is drawn: this workload's value divided by the curve's own.
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

/// How a row of `published.csv` is simulated.
pub struct Check {
    /// The row: see [`super::published::Row::is`].
    pub row: &'static str,
    pub simulate: Simulate,
}

/// A row, and the runs that show it.
pub type Shown = (&'static str, fn(&Lab) -> Result<Value, String>);

/// Where a simulated value comes from.
pub enum Simulate {
    /// One measurement: the machine, what, and x.
    Run(&'static str, Workload, usize),
    /// Several runs, and what they show, in the words of the row.
    Runs(fn(&Lab) -> Result<Value, String>),
    /// No run: what the machine file says at this path.
    Parameter(&'static str, &'static str, fn(&Machine) -> Option<f64>),
}

/// A result that the assumed parameters may move.
pub struct Headline {
    pub name: &'static str,
    pub machine: &'static str,
    pub of: Quotient,
}

/// A measurement, or one divided by another.
pub enum Quotient {
    One(Workload, usize),
    Ratio([(Workload, usize); 2]),
}

/// A number with four significant digits, without zeros at the end.
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
