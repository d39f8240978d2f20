//! Sensitivity of the results to parameters that no document gives: each assumed parameter of a machine file is reduced and
//! increased by 30 %.

use super::digits::digits;
use super::figure::{Document, Headline};
use super::lab::Lab;
use super::series::Quotient;
use std::path::Path;
use std::rc::Rc;
use weft_fabric_sim::Machine;

/// Factors by which the assumed parameters are multiplied.
pub const FACTORS: [f64; 2] = [0.7, 1.3];

/// The variation of one machine's parameters.
pub struct Study {
    pub machine: &'static str,
    /// Results with the unchanged machine file: name, value and unit.
    pub results: Vec<(&'static str, f64, &'static str)>,
    /// Parameters that change a result. The parameter with the largest change comes first.
    pub rows: Vec<Moved>,
    /// Parameters that change no result.
    pub still: Vec<String>,
}

/// Effect of one parameter on the results.
pub struct Moved {
    pub parameter: String,
    /// Change of each result at each of [`FACTORS`], in percent, or in percentage points for a result that is a percentage.
    pub changes: Vec<[f64; 2]>,
}

impl Moved {
    fn most(&self) -> f64 {
        self.changes.iter().flatten().map(|c| c.abs()).fold(0.0, f64::max)
    }
}

fn unit(headline: &Headline) -> &'static str {
    match headline.of {
        Quotient::One(workload, _) => workload.unit(),
        Quotient::Ratio(_) => "x",
    }
}

/// Returns the number of simulations of the studies of a document.
pub fn count(lab: &Lab, document: &Document) -> Result<u64, String> {
    let mut count = 0;
    for name in document.machines {
        let results = document.headlines.iter().filter(|h| h.machine == *name).count();
        let parameters = lab.machine(name)?.evidence.assumed.len();
        count += results * (1 + parameters * FACTORS.len());
    }
    Ok(count as u64)
}

/// Returns a study for each machine that has headlines.
pub fn studies(lab: &Lab, document: &Document) -> Result<Vec<Study>, String> {
    let mut studies = Vec::new();
    for &name in document.machines {
        let of_it = |h: &&Headline| h.machine == name;
        let headlines: Vec<_> = document.headlines.iter().filter(of_it).collect();
        if !headlines.is_empty() {
            lab.announce(&format!("{name}, varied"));
            studies.push(study(lab, name, &headlines)?);
        }
    }
    Ok(studies)
}

fn study(lab: &Lab, name: &'static str, headlines: &[&Headline]) -> Result<Study, String> {
    let machine = lab.machine(name)?;
    let results = headlines
        .iter()
        .map(|h| Ok((h.name, lab.result(&machine, &h.of)?, unit(h))))
        .collect::<Result<Vec<_>, String>>()?;
    let (mut rows, mut still) = (Vec::new(), Vec::new());
    for parameter in &machine.evidence.assumed {
        let mut changes = vec![[0.0; 2]; headlines.len()];
        for (at, factor) in FACTORS.into_iter().enumerate() {
            let varied = Machine::load_varied(name, parameter, factor);
            let varied = Rc::new(varied.map_err(|e| e.to_string())?);
            for ((headline, (_, base, unit)), change) in
                headlines.iter().zip(&results).zip(&mut changes)
            {
                let moved = lab.result(&varied, &headline.of)? - base;
                change[at] = if *unit == "%" { moved } else { 100.0 * moved / base };
            }
        }
        let moved = Moved { parameter: parameter.clone(), changes };
        // A change below the precision of the tables counts as no change.
        if moved.most() < 0.05 { still.push(moved.parameter) } else { rows.push(moved) }
    }
    rows.sort_by(|a, b| b.most().total_cmp(&a.most()).then(a.parameter.cmp(&b.parameter)));
    Ok(Study { machine: name, results, rows, still })
}

/// Writes `sensitivity.csv`: one row for each combination of a machine, a parameter that changes a result, and a result.
pub fn write(file: &Path, studies: &[&Study]) -> Result<(), String> {
    let failed = |e: csv::Error| format!("cannot write {}: {e}", file.display());
    let mut writer = csv::Writer::from_path(file).map_err(failed)?;
    let head = ["machine", "parameter", "result", "value", "unit", "change_at_70", "change_at_130"];
    writer.write_record(head).map_err(failed)?;
    for study in studies {
        for row in &study.rows {
            for ((name, base, unit), [less, more]) in study.results.iter().zip(&row.changes) {
                let (base, less, more) = (digits(*base), change(*less), change(*more));
                let record = [study.machine, &row.parameter, name, &base, unit, &less, &more];
                writer.write_record(record).map_err(failed)?;
            }
        }
    }
    writer.flush().map_err(|e| format!("cannot write {}: {e}", file.display()))
}

/// Formats a change with its sign, to a tenth.
pub fn change(percent: f64) -> String {
    let rounded = (percent * 10.0).round() / 10.0;
    if rounded == 0.0 { "0".to_owned() } else { format!("{rounded:+.1}") }
}
