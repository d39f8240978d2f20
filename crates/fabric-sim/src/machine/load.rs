//! Reading machine files: by name or path, with errors that name file, line and what is allowed.

use super::Machine;
use std::fmt;
use std::path::Path;

/// The machine files that come with the library.
pub const NAMES: &[(&str, &str)] = &[("loggp", include_str!("../../../../machines/loggp.toml"))];

/// Why a machine file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineError {
    pub file: String,
    /// Line in the file, from 1, where one is to blame.
    pub line: Option<usize>,
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

impl Machine {
    /// A machine by its name, or from a file if there is a `/` or a `.` in it.
    pub fn load(name: &str) -> Result<Machine, MachineError> {
        if let Some((_, text)) = NAMES.iter().find(|(known, _)| *known == name) {
            return Machine::parse(&format!("machines/{name}.toml"), text);
        }
        let error = |problem| MachineError { file: name.to_owned(), line: None, problem };
        if !name.contains(['/', '.']) {
            let known: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
            let known = known.join(", ");
            return Err(error(format!("no such machine; known: {known}, or the path of a file")));
        }
        let text = std::fs::read_to_string(Path::new(name)).map_err(|e| error(e.to_string()))?;
        Machine::parse(name, &text)
    }

    /// A machine from the text of `file`.
    pub fn parse(file: &str, text: &str) -> Result<Machine, MachineError> {
        toml::from_str(text).map_err(|e| MachineError {
            file: file.to_owned(),
            line: e.span().map(|span| text[..span.start].matches('\n').count() + 1),
            problem: e.message().to_owned(),
        })
    }
}
