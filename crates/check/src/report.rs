//! Report of a process's findings: text on standard error, and JSON in a file.

use crate::finding::{CheckFinding, FindingClass, Party};
use crate::shared_reports;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::fs::OpenOptions;
use std::io::Write as _;

/// Exit code of a process with findings.
pub const EXIT_CODE: i32 = 70;

/// Setting with the name of a file for findings, of which each line is a JSON object.
const FILE: &str = "WEFT_CHECK_REPORT";

/// Maximum number of findings of the same call sites with other facts, such as lengths, that are printed.
const PRINTED: u32 = 3;

/// Findings of this process, each with the number of times.
#[derive(Default)]
pub struct Findings {
    times: HashMap<CheckFinding, u64>,
    /// Findings that the user does not want to see.
    suppressed: HashSet<CheckFinding>,
    /// Keys of the findings, each with the number of findings with other facts that this rank still prints. It is 0 if another rank of the
    /// host prints them.
    keys: HashMap<u64, u32>,
    /// The first finding of each key that this rank prints.
    printed: Vec<CheckFinding>,
}

impl Findings {
    /// Adds a finding, and reports it if it is new. Returns false if the user does not want to see it.
    pub fn add(&mut self, class: FindingClass, parties: Vec<Party>) -> bool {
        let finding = CheckFinding { class, parties };
        if self.suppressed.contains(&finding) {
            return false;
        }
        if !self.times.contains_key(&finding) && crate::suppress::is_suppressed(&finding) {
            self.suppressed.insert(finding);
            return false;
        }
        let times = self.times.entry(finding.clone()).or_default();
        *times += 1;
        if *times > 1 {
            return true;
        }
        store(&finding);
        let key = shared_reports::key(&finding);
        let is_new = !self.keys.contains_key(&key);
        let new = || if shared_reports::is_first(key) { PRINTED } else { 0 };
        let left = self.keys.entry(key).or_insert_with(new);
        if *left > 0 {
            *left -= 1;
            print(&finding);
            shared_reports::printed(key);
            self.printed.extend(is_new.then_some(finding));
        }
        true
    }

    /// Prints the number of other ranks of this host that have the findings that this rank has printed. All ranks are at MPI_Finalize.
    pub fn print_ranks(&self) {
        for finding in &self.printed {
            let others = shared_reports::ranks(shared_reports::key(finding)).saturating_sub(1);
            if others == 0 {
                continue;
            }
            let plural = if others == 1 { " has" } else { "s have" };
            let name = finding.class.name();
            let mut text = format!("weft check: {name}\n  {others} other rank{plural} the same at");
            for party in &finding.parties {
                write!(text, " {}", party.site).expect("a string grows");
            }
            eprintln!("{text}");
        }
    }

    /// Returns true if there are no findings.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }
}

/// Prints a finding on standard error.
fn print(finding: &CheckFinding) {
    let (name, remedy) = finding.class.texts();
    let mut text = format!("weft check: {name}\n");
    for party in &finding.parties {
        let rank = party.rank.map_or_else(String::new, |rank| format!("rank {rank}, "));
        writeln!(text, "  {rank}{} at {}: {}", party.function, party.site, party.facts)
            .expect("a string grows");
    }
    writeln!(text, "  remedy: {remedy}").expect("a string grows");
    // One write, so that lines of several ranks do not mix.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Appends a finding to the file of findings, if the user asks for such a file.
fn store(finding: &CheckFinding) {
    append(&json(finding));
}

/// Appends a line of JSON to the file of findings, if the user asks for such a file.
pub fn append(line: &str) {
    if let Some(path) = std::env::var_os(FILE).filter(|path| !path.is_empty()) {
        let file = OpenOptions::new().append(true).create(true).open(&path);
        if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
            let path = path.to_string_lossy();
            eprintln!("weft check: {FILE}={path}: {error}; name a file that can be written");
        }
    }
}

/// Returns a string of JSON.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => write!(out, "\\u{:04x}", u32::from(c)).expect("a string grows"),
            c => out.push(c),
        }
    }
    out + "\""
}

/// Returns a finding as a line of JSON.
fn json(finding: &CheckFinding) -> String {
    let party = |party: &Party| {
        format!(
            "{{\"rank\":{},\"function\":{},\"site\":{},\"facts\":{}}}",
            party.rank.map_or_else(|| "null".to_owned(), |rank| rank.to_string()),
            quoted(&party.function),
            quoted(&party.site.to_string()),
            quoted(&party.facts)
        )
    };
    let parties: Vec<_> = finding.parties.iter().map(party).collect();
    let name = quoted(finding.class.texts().0);
    format!("{{\"class\":{name},\"calls\":[{}]}}\n", parties.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_site::CallSite;

    #[test]
    fn strings_of_json_are_escaped() {
        assert_eq!(quoted("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000a\"");
    }

    #[test]
    fn a_finding_is_one_line_of_json() {
        let party = Party {
            rank: Some(1),
            function: "MPI_Recv".into(),
            site: CallSite::default(),
            facts: "MPI_INT".into(),
        };
        let line = json(&CheckFinding { class: FindingClass::TypeMismatch, parties: vec![party] });
        assert!(line.starts_with("{\"class\":\"type mismatch\",\"calls\":[{\"rank\":1,"), "{line}");
        assert_eq!(line.matches('\n').count(), 1);
    }
}
