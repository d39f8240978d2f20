//! Comparison of each published row with the value of the simulation.

use super::digits::digits;
use super::figure::{Check, Document, Figure, Mark, Simulate};
use super::informed::{self, Move};
use super::lab::Lab;
use super::published::{COLUMNS, FigureValue, PublishedList, PublishedRow};
use super::ranges::{self, Range};
use super::reasons::{self, RowReason};
use std::fmt;
use std::path::Path;
use weft_fabric_sim::machine;

/// Role of a published row in the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Role that a machine file gives to the row.
    Of(machine::EvidenceRole),
    /// Row that repeats a parameter which the machine file assumes.
    Assumed,
    /// Row whose subject is not implemented yet.
    Missing,
}

impl Role {
    /// All roles in the order of a table.
    pub const ALL: [Role; 7] = [
        Role::Of(machine::EvidenceRole::Fitted),
        Role::Of(machine::EvidenceRole::Entailed),
        Role::Of(machine::EvidenceRole::ByConstruction),
        Role::Of(machine::EvidenceRole::Informed),
        Role::Of(machine::EvidenceRole::HeldOut),
        Role::Assumed,
        Role::Missing,
    ];
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Of(role) => role.name(),
            Role::Assumed => "assumed",
            Role::Missing => "missing",
        })
    }
}

/// A published row and the result of its simulation.
pub struct Finding<'p> {
    pub row: &'p PublishedRow,
    pub simulated: Option<FigureValue>,
    pub role: Role,
    /// Changes of the model that were made while the published number was known, and that changed the simulated value.
    pub moves: Vec<&'p Move>,
    /// Results of the row while all assumed parameters vary together.
    pub range: Option<&'p Range>,
    /// Reason why the row disagrees.
    pub reason: Option<&'p RowReason>,
}

/// The project's lists of remarks on published rows.
pub struct Remarks {
    pub moves: Vec<Move>,
    pub ranges: Vec<Range>,
    pub reasons: Vec<RowReason>,
}

impl Remarks {
    /// Loads the lists that come with the project.
    pub fn load() -> Result<Remarks, String> {
        let (moves, ranges, reasons) = (informed::load()?, ranges::load()?, reasons::load()?);
        Ok(Remarks { moves, ranges, reasons })
    }

    /// Returns a finding for `row` with all remarks on the row. The finding has no simulated value yet.
    fn on<'p>(&'p self, row: &'p PublishedRow, role: Role) -> Finding<'p> {
        let moves = self.moves.iter().filter(|moved| moved.name.is_of(row)).collect();
        let range = self.ranges.iter().find(|range| range.name.is_of(row));
        let reason = self.reasons.iter().find(|reason| reason.name.is_of(row));
        Finding { row, simulated: None, role, moves, range, reason }
    }
}

/// Maximum difference at which a row agrees, in percent or percentage points.
pub const APART: f64 = 10.0;

/// Units of counts, which agree only if they are equal.
const COUNTED: [&str; 5] = ["children", "steps", "levels", "KiB", "count"];

impl Finding<'_> {
    /// Returns the difference between the simulation and the text: in percent of the text's value, or in percentage points if the
    /// text's value is a percentage. For names and orders, returns yes or no. Returns an empty text if there is no simulation.
    pub fn difference(&self) -> String {
        match (&self.simulated, &self.row.value) {
            (None, _) => String::new(),
            (Some(FigureValue::Number(ours)), FigureValue::Number(theirs)) => {
                let points = self.row.unit().starts_with('%');
                let difference = ours - theirs;
                // No published number is more precise than a tenth of a percent.
                let percent = if points { difference } else { 100.0 * difference / theirs };
                let rounded = (percent * 10.0).round() / 10.0;
                format!("{:.1}", if rounded == 0.0 { 0.0 } else { rounded })
            }
            (Some(ours), theirs) => if ours == theirs { "yes" } else { "no" }.to_owned(),
        }
    }

    /// Returns true if the simulation contradicts the text: the word or the count is different, or the number differs by more than
    /// [`APART`].
    pub fn disagrees(&self) -> bool {
        match (&self.simulated, &self.row.value) {
            (None, _) => false,
            (Some(FigureValue::Number(ours)), FigureValue::Number(theirs)) => {
                let most = if COUNTED.contains(&self.row.unit()) { 0.0 } else { APART };
                let points = self.row.unit().starts_with('%');
                let difference = if points { ours - theirs } else { 100.0 * (ours / theirs - 1.0) };
                difference.abs() > most + 1e-9
            }
            (Some(ours), theirs) => ours != theirs,
        }
    }

    /// Returns a sentence for the list below a figure.
    pub fn sentence(&self) -> String {
        let row = self.row;
        let unit = match (row.unit(), &row.value) {
            (_, FigureValue::Word(_)) => String::new(),
            (unit, _) => format!(" {unit}"),
        };
        let what = format!("{} ({})", row.quantity(), row.configuration());
        let Some(simulated) = &self.simulated else {
            return format!("{what}: published {}{unit}; not built yet.", row.value);
        };
        let difference = match (&row.value, row.unit().starts_with('%')) {
            (FigureValue::Word(_), _) => match simulated == &row.value {
                true => "agrees".to_owned(),
                false => "does not agree".to_owned(),
            },
            (_, true) => format!("{} percentage points apart", self.difference()),
            _ => format!("differs by {} %", self.difference()),
        };
        let (role, value) = (self.role, &row.value);
        format!(
            "{what}: simulated {simulated}{unit}, published {value}{unit}: {difference} ({role})."
        )
    }
}

/// Returns a sentence that compares the published number of a mark with the curve on which the mark lies, even if the row itself is
/// not simulated.
pub fn beside(figure: &Figure, mark: &Mark, simulated: f64, row: &PublishedRow) -> String {
    let (what, unit) = (figure.x.label.to_lowercase(), figure.x.unit);
    let x =
        if unit.is_empty() { format!("{} {what}", mark.x) } else { format!("{} {unit}", mark.x) };
    let ours = Some(FigureValue::Number(simulated));
    let finding = Finding {
        row,
        simulated: ours,
        role: Role::Missing,
        moves: Vec::new(),
        range: None,
        reason: None,
    };
    let apart = if row.unit().starts_with('%') { "percentage points apart" } else { "% apart" };
    format!(
        "The cross at {x} and the curve {}: {} and {} {}, {} {apart}.",
        mark.series,
        row.value,
        digits(simulated),
        figure.y.unit,
        finding.difference()
    )
}

/// Returns the role that the machine files of a document give to a row.
fn evidence(
    lab: &Lab,
    document: &Document,
    published: &PublishedList,
    row: &PublishedRow,
) -> Result<Role, String> {
    for name in document.machines {
        let machine = lab.machine(name)?;
        let (place, quantity, configuration) = (row.place(), row.quantity(), row.configuration());
        if let Some(role) = machine.evidence.role(row.paper(), place, quantity, configuration) {
            return Ok(Role::Of(role));
        }
    }
    let files: Vec<_> = document.machines.iter().map(|m| format!("machines/{m}.toml")).collect();
    Err(format!(
        "{}:{}: no machine file of {} has \"{}; {}\" in its [evidence]; put it into `held_out`, \
         `informed`, `by_construction` or `fitted` of one of {}",
        published.file,
        row.line,
        row.paper(),
        row.quantity(),
        row.configuration(),
        files.join(", ")
    ))
}

/// Checks the role of a row. The list of changes must contain a change that has moved an "informed" row, and must not contain a
/// change that has moved a "held out" row.
fn told(row: &PublishedRow, role: Role, moves: &[&Move]) -> Result<(), String> {
    let name = format!("{}; {}", row.quantity(), row.configuration());
    match (role, moves.first()) {
        (Role::Of(machine::EvidenceRole::Informed), None) => Err(format!(
            "\"{name}\" of {} is informed, and figures/informed.csv does not say what moved it",
            row.paper()
        )),
        (Role::Of(machine::EvidenceRole::HeldOut), Some(moved)) => Err(format!(
            "figures/informed.csv:{}: \"{name}\" was moved in sight; its machine file must not call it held_out",
            moved.line
        )),
        _ => Ok(()),
    }
}

fn simulate(lab: &Lab, check: &Check) -> Result<(FigureValue, Option<Role>), String> {
    Ok(match &check.simulate {
        Simulate::Run(machine, workload, x) => {
            (FigureValue::Number(lab.measure(machine, *workload, *x)?), None)
        }
        Simulate::Runs(runs) => (runs(lab)?, None),
        Simulate::Parameter(name, path, value) => {
            let machine = lab.machine(name)?;
            let value = value(&machine).ok_or(format!("machines/{name}.toml has no {path}"))?;
            let assumed = machine.evidence.assumed.iter().any(|p| p == path);
            (FigureValue::Number(value), assumed.then_some(Role::Assumed))
        }
    })
}

/// Returns a finding for each published row of the documents, in the order of `published`. Nothing is simulated here, so errors in
/// descriptions and machine files are reported before anything is measured.
pub fn rows<'p>(
    lab: &Lab,
    documents: &[Document],
    published: &'p PublishedList,
    remarks: &'p Remarks,
) -> Result<Vec<Finding<'p>>, String> {
    for document in documents {
        for check in &document.checks {
            published.find(document.paper, check.row)?;
        }
    }
    let mut findings = Vec::new();
    for row in &published.rows {
        if let Some(document) = documents.iter().find(|d| d.paper == row.paper()) {
            let role = evidence(lab, document, published, row)?;
            let finding = remarks.on(row, role);
            told(row, role, &finding.moves)?;
            findings.push(finding);
        }
    }
    Ok(findings)
}

/// Simulates the rows that have a check. Rows without a check get the role [`Role::Missing`].
pub fn answer(lab: &Lab, documents: &[Document], findings: &mut [Finding]) -> Result<(), String> {
    for finding in findings {
        let row = finding.row;
        let of_it = |document: &&Document| document.paper == row.paper();
        let mut checks = documents.iter().filter(of_it).flat_map(|d| &d.checks);
        match checks.find(|check| row.is(check.row)) {
            None => finding.role = Role::Missing,
            Some(check) => {
                let (value, instead) = simulate(lab, check)?;
                finding.simulated = Some(value);
                finding.role = instead.unwrap_or(finding.role);
            }
        }
    }
    Ok(())
}

/// Writes `summary.csv`: the first columns of `published.csv`, then `simulated`, `role`, `difference_percent`, `holds` and
/// `reason`.
pub fn write(file: &Path, findings: &[Finding]) -> Result<(), String> {
    let failed = |e: csv::Error| format!("cannot write {}: {e}", file.display());
    let mut writer = csv::Writer::from_path(file).map_err(failed)?;
    let columns =
        COLUMNS.into_iter().chain(["simulated", "role", "difference_percent", "holds", "reason"]);
    writer.write_record(columns).map_err(failed)?;
    for finding in findings {
        let simulated = match &finding.simulated {
            Some(FigureValue::Number(number)) => digits(*number),
            Some(word) => word.to_string(),
            None => String::new(),
        };
        let holds = finding.range.map(Range::to_string).unwrap_or_default();
        let reason = finding.reason.filter(|_| finding.disagrees());
        let reason = reason.map(|reason| reason.reason.clone()).unwrap_or_default();
        let more = [simulated, finding.role.to_string(), finding.difference(), holds, reason];
        writer.write_record(finding.row.fields.iter().chain(&more)).map_err(failed)?;
    }
    writer.flush().map_err(|e| format!("cannot write {}: {e}", file.display()))
}
