//! Findings, and the report of a process: text on standard error, and JSON in a file.

use crate::call_site::CallSite;
use std::collections::HashMap;
use std::fmt::Write;
use std::fs::OpenOptions;
use std::io::Write as _;

/// Exit code of a process with findings.
pub const EXIT_CODE: i32 = 70;

/// Setting with the name of a file for findings, of which each line is a JSON object.
const FILE: &str = "WEFT_CHECK_REPORT";

/// Class of a finding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FindingClass {
    TypeMismatch,
    CollectiveMismatch,
    BufferInUse,
    BufferChanged,
    RequestNotCompleted,
    MessageNotReceived,
    ObjectNotFreed,
    AccessOutsideEpoch,
    ConflictingAccesses,
    EpochMismatch,
    FalseAssertion,
}

impl FindingClass {
    /// Returns the name in reports, and a remedy.
    fn texts(self) -> (&'static str, &'static str) {
        match self {
            FindingClass::TypeMismatch => (
                "type mismatch",
                "give both calls the same sequence of predefined types (MPI 5.0, section 3.3.1)",
            ),
            FindingClass::CollectiveMismatch => (
                "collective mismatch",
                "call the same operations in the same order on all ranks, with equal arguments (MPI 5.0, section 6.13)",
            ),
            FindingClass::BufferInUse => (
                "buffer in use",
                "wait for the first operation before the buffer is used again (MPI 5.0, section 3.7.2)",
            ),
            FindingClass::BufferChanged => (
                "buffer changed",
                "wait for the operation before the program writes the buffer (MPI 5.0, section 3.7.2)",
            ),
            FindingClass::RequestNotCompleted => (
                "request not completed",
                "call MPI_Wait, or MPI_Test until it succeeds, or MPI_Request_free (MPI 5.0, section 3.7.3)",
            ),
            FindingClass::MessageNotReceived => (
                "message not received",
                "receive each message before MPI_Finalize (MPI 5.0, section 11.2.2)",
            ),
            FindingClass::ObjectNotFreed => {
                ("object not freed", "call the function that frees it before MPI_Finalize")
            }
            FindingClass::AccessOutsideEpoch => (
                "access outside an epoch",
                "access a window between two fences, between start and complete, or under a lock (MPI 5.0, section 12.5)",
            ),
            FindingClass::ConflictingAccesses => (
                "conflicting accesses",
                "put a synchronization between the accesses, or use one operator in MPI_Accumulate (MPI 5.0, section 12.7)",
            ),
            FindingClass::EpochMismatch => (
                "epoch mismatch",
                "begin each epoch once, and end it by the call that belongs to it (MPI 5.0, section 12.5)",
            ),
            FindingClass::FalseAssertion => (
                "false assertion",
                "leave out the assertion, or the access that it excludes (MPI 5.0, section 12.5.5)",
            ),
        }
    }
}

/// A call that takes part in a finding.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Party {
    /// Rank in MPI_COMM_WORLD, if known.
    pub rank: Option<i32>,
    pub function: String,
    pub site: CallSite,
    /// Facts about the call, such as its types.
    pub facts: String,
}

/// An error of the program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CheckFinding {
    pub class: FindingClass,
    pub parties: Vec<Party>,
}

/// Findings of this process, each with the number of times.
#[derive(Default)]
pub struct Findings(HashMap<CheckFinding, u64>);

impl Findings {
    /// Adds a finding, and reports it if it is new.
    pub fn add(&mut self, class: FindingClass, parties: Vec<Party>) {
        let finding = CheckFinding { class, parties };
        let times = self.0.entry(finding.clone()).or_default();
        *times += 1;
        if *times == 1 {
            report(&finding);
        }
    }

    /// Returns true if there are no findings.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn report(finding: &CheckFinding) {
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
    if let Some(path) = std::env::var_os(FILE).filter(|path| !path.is_empty()) {
        let file = OpenOptions::new().append(true).create(true).open(&path);
        let line = json(finding);
        if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
            let path = path.to_string_lossy();
            eprintln!("weft check: {FILE}={path}: {error}; name a file that can be written");
        }
    }
}

/// Returns a string of JSON.
fn quoted(text: &str) -> String {
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
