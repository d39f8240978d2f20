//! Loading of machine files by name or path, with errors that name the file, the line and the allowed values.

use super::Machine;
use super::check::{check, check_form};
use super::document::MachineDocument;
use std::borrow::Cow;
use std::fmt;

/// Names and texts of the machine files that are compiled into the library.
pub const NAMES: &[(&str, &str)] = &[
    ("kini1", include_str!("../../../../machines/kini1.toml")),
    ("kini2", include_str!("../../../../machines/kini2.toml")),
    ("collgm", include_str!("../../../../machines/collgm.toml")),
    ("ia32", include_str!("../../../../machines/ia32.toml")),
    ("em64t", include_str!("../../../../machines/em64t.toml")),
    ("fence", include_str!("../../../../machines/fence.toml")),
    ("rendezvous", include_str!("../../../../machines/rendezvous.toml")),
    ("ndr", include_str!("../../../../machines/ndr.toml")),
    ("epyc9654", include_str!("../../../../machines/epyc9654.toml")),
    ("rome", include_str!("../../../../machines/rome.toml")),
    ("xeon56", include_str!("../../../../machines/xeon56.toml")),
    ("xeon24", include_str!("../../../../machines/xeon24.toml")),
    ("neoverse80", include_str!("../../../../machines/neoverse80.toml")),
    ("ethernet", include_str!("../../../../machines/ethernet.toml")),
    ("loggp", include_str!("../../../../machines/loggp.toml")),
];

/// Reason why a machine file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineError {
    /// The path of the file (`machines/NAME.toml` for files of [`NAMES`]), or a name that is unknown.
    pub file: String,
    /// Line in the file, from 1, if the error lies in one line.
    pub line: Option<usize>,
    /// Text for the user with the problem and the allowed values.
    pub problem: String,
}

impl fmt::Display for MachineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.problem),
            None => write!(f, "{}: {}", self.file, self.problem),
        }
    }
}

impl std::error::Error for MachineError {}

/// A changed value: its path, and the new value as TOML or a word.
type Change = (String, String);

impl Machine {
    /// Loads a machine by its name, or from a file if the name contains a `/` or a `.`.
    pub fn load(name: &str) -> Result<Machine, MachineError> {
        Machine::load_with::<&str>(name, &[])
    }

    /// Loads a machine as [`load`](Self::load), with changed values, such as `("rail.gap_in", "1.5")` for all rails,
    /// `("rail.0.gap_in", "1.5")` for the first rail, or `("scheduler.policy", "fifo")`.
    pub fn load_with<S: AsRef<str>>(
        name: &str,
        changes: &[(S, S)],
    ) -> Result<Machine, MachineError> {
        let (file, text) = find(name)?;
        Machine::parse_with(&file, &text, changes)
    }

    /// Loads a machine as [`load`](Self::load), with the number at `path` multiplied by `factor`.
    pub fn load_varied(name: &str, path: &str, factor: f64) -> Result<Machine, MachineError> {
        let (file, text) = find(name)?;
        Machine::parse_varied(&file, &text, path, factor)
    }

    /// Loads a machine as [`load`](Self::load), with several numbers, each multiplied by its own factor: see
    /// [`parse_varied`](Self::parse_varied).
    pub fn load_scaled<S: AsRef<str>>(
        name: &str,
        factors: &[(S, f64)],
    ) -> Result<Machine, MachineError> {
        let (file, text) = find(name)?;
        let document = MachineDocument::parse(&file, &text)?;
        let mut changes: Vec<Change> = Vec::new();
        for (path, factor) in factors {
            changes.extend(document.scaled(path.as_ref(), *factor)?);
        }
        Machine::parse_with(&file, &text, &changes)
    }

    /// Reads a machine from `text`, the content of `file`.
    pub fn parse(file: &str, text: &str) -> Result<Machine, MachineError> {
        Machine::parse_with::<&str>(file, text, &[])
    }

    /// Reads a machine as [`parse`](Self::parse), with changed values: see [`load_with`](Self::load_with).
    pub fn parse_with<S: AsRef<str>>(
        file: &str,
        text: &str,
        changes: &[(S, S)],
    ) -> Result<Machine, MachineError> {
        let read = || {
            let mut document = MachineDocument::parse(file, text)?;
            for (path, value) in changes {
                document.set(path.as_ref(), value.as_ref())?;
            }
            check_form(&document)?;
            let machine = document.read()?;
            check(&machine, &document)?;
            Ok(machine)
        };
        read().map_err(|mut error: MachineError| {
            for (at, (path, value)) in changes.iter().enumerate() {
                let before = if at == 0 { "; with " } else { ", " };
                error.problem += &format!("{before}{} = {}", path.as_ref(), value.as_ref());
            }
            error
        })
    }

    /// Reads a machine as [`parse`](Self::parse), with the number at `path` multiplied by `factor`: in all rails for `rail.gap_in`,
    /// in one rail for `rail.0.gap_in`. Sizes and counts are rounded.
    pub fn parse_varied(
        file: &str,
        text: &str,
        path: &str,
        factor: f64,
    ) -> Result<Machine, MachineError> {
        let changes: Vec<Change> = MachineDocument::parse(file, text)?.scaled(path, factor)?;
        Machine::parse_with(file, text, &changes)
    }
}

/// Returns the name of a machine's file, for errors, and the file's text.
fn find(name: &str) -> Result<(String, Cow<'static, str>), MachineError> {
    if let Some((_, text)) = NAMES.iter().find(|(known, _)| *known == name) {
        return Ok((format!("machines/{name}.toml"), Cow::Borrowed(text)));
    }
    let error = |problem| MachineError { file: name.to_owned(), line: None, problem };
    if !name.contains(['/', '.']) {
        let known: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
        let known = known.join(", ");
        return Err(error(format!("no such machine; known: {known}, or the path of a file")));
    }
    let text = std::fs::read_to_string(name).map_err(|e| error(e.to_string()))?;
    Ok((name.to_owned(), Cow::Owned(text)))
}
