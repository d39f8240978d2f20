//! Survey that makes `ranges.csv`. It runs the rows of all documents while all assumed parameters of all machines vary together.
//!
//! ```text
//!   sample s ── each assumed parameter times its own factor ── all rows ── a row agrees: +, a row disagrees: -
//! ```
//! A parameter's factor depends only on the sample, the machine and the parameter's name. So it does not depend on the chosen
//! documents, and a new parameter does not change it.

use super::documents;
use super::figure::Document;
use super::lab::Lab;
use super::published::PublishedList;
use super::ranges::LIST;
use super::sensitivity::FACTORS;
use super::summary::{self, Remarks};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;
use weft_fabric_sim::Machine;

/// Computes the FNV-1a hash.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Returns a machine with each assumed parameter multiplied by a factor of this sample.
fn sampled(machine: &Machine, sample: usize) -> Result<Machine, String> {
    let [least, most] = FACTORS;
    let factor = |parameter: &String| {
        let seed = hash(&format!("{sample} {} {parameter}", machine.name));
        (parameter.clone(), least + (most - least) * fastrand::Rng::with_seed(seed).f64())
    };
    let factors: Vec<_> = machine.evidence.assumed.iter().map(factor).collect();
    Machine::load_scaled(&machine.name, &factors).map_err(|e| e.to_string())
}

/// Creates a laboratory in which all machines of the documents have the factors of one sample.
fn laboratory(
    published: &PublishedList,
    documents: &[Document],
    sample: usize,
) -> Result<Lab, String> {
    let plain = Lab::quick(published);
    let mut machines = BTreeMap::new();
    for &name in documents.iter().flat_map(|document| document.machines) {
        machines.insert(name, Rc::new(sampled(&*plain.machine(name)?, sample)?));
    }
    Ok(plain.with_machines(machines))
}

/// Runs all rows of the chosen documents in `samples` samples and writes `ranges.csv`. Calls `said` after each sample.
pub fn run(
    published: &PublishedList,
    wanted: impl Fn(&Document) -> bool,
    samples: usize,
    file: &Path,
    said: impl Fn(&str),
) -> Result<(), String> {
    let documents: Vec<_> = documents().into_iter().filter(|d| wanted(d)).collect();
    let remarks = Remarks::load()?;
    let begun = Instant::now();
    let mut rows: Vec<(String, String, String)> = Vec::new();
    for sample in 0..samples {
        let lab = laboratory(published, &documents, sample)?;
        let mut findings = summary::rows(&lab, &documents, published, &remarks)?;
        summary::answer(&lab, &documents, &mut findings)?;
        for (at, finding) in findings.iter().enumerate() {
            if sample == 0 {
                let (paper, name) = (finding.row.paper(), published.name(finding.row));
                rows.push((paper.to_owned(), name, String::new()));
            }
            rows[at].2.push(if finding.disagrees() { '-' } else { '+' });
        }
        let (done, left) = (sample + 1, samples - sample - 1);
        let seconds = begun.elapsed().as_secs_f64() / done as f64 * left as f64;
        said(&format!("sample {done} of {samples}, about {:.0} min left", seconds / 60.0));
    }
    let failed = |e: csv::Error| format!("cannot write {}: {e}", file.display());
    let mut writer = csv::Writer::from_path(file).map_err(failed)?;
    writer.write_record(LIST.columns).map_err(failed)?;
    for (paper, row, samples) in &rows {
        writer.write_record([paper, row, samples]).map_err(failed)?;
    }
    writer.flush().map_err(|e| format!("cannot write {}: {e}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_varies_each_assumed_parameter_by_a_factor_of_its_own() {
        let plain = Machine::load("fence").unwrap();
        let [one, two] = [0, 1].map(|sample| sampled(&plain, sample).unwrap());
        let part = |of: &Machine| of.rail[0].write.latency.us() / plain.rail[0].write.latency.us();
        assert!(part(&one) != part(&two) && (0.7..1.3).contains(&part(&one)), "{}", part(&one));
        let other = one.rail[0].read.latency.us() / plain.rail[0].read.latency.us();
        assert_ne!(other, part(&one), "not all by one factor");
        assert_eq!(part(&sampled(&plain, 0).unwrap()), part(&one), "the same again");
        // Parameters that a document gives do not vary.
        let given = Machine::load("kini1").unwrap();
        let varied = sampled(&given, 0).unwrap();
        assert_eq!(varied.rail[0].write.latency.us(), given.rail[0].write.latency.us());
        assert_ne!(varied.rail[0].write.overhead.us(), given.rail[0].write.overhead.us());
    }
}
