//! The maps that come with the library, made by `weft tune` (see `maps/README.md`).

use crate::selection_map::{MapError, SelectionMap};
use std::fmt;
use std::path::Path;

/// Maps, by the name of the machine on which they were measured.
pub const SHIPPED: &[(&str, &str)] = &[
    ("shm", include_str!("../../../maps/shm.map")),
    ("ndr", include_str!("../../../maps/ndr.map")),
    ("ethernet", include_str!("../../../maps/ethernet.map")),
    ("kini1", include_str!("../../../maps/kini1.map")),
    ("kini2", include_str!("../../../maps/kini2.map")),
    ("collgm", include_str!("../../../maps/collgm.map")),
    ("loggp", include_str!("../../../maps/loggp.map")),
    ("fence", include_str!("../../../maps/fence.map")),
    ("rendezvous", include_str!("../../../maps/rendezvous.map")),
    ("ia32", include_str!("../../../maps/ia32.map")),
    ("em64t", include_str!("../../../maps/em64t.map")),
];

/// Name of the map for ranks that share memory, unless a user names another map.
pub const TOGETHER: &str = "shm";
/// Name of the map for ranks that do not share memory, unless a user names another map.
pub const APART: &str = "ndr";
/// Name of the map in place of [`APART`] if the kernel carries messages between the ranks.
pub const BY_KERNEL: &str = "ethernet";

/// Returns the name of the shipped map that was made for the machine file `name`. Returns `None` if there is none, or if the map is one of
/// the usual maps, which the library takes by itself.
pub fn of_machine(name: &str) -> Option<&'static str> {
    let usual = [TOGETHER, APART, BY_KERNEL];
    let mut shipped =
        SHIPPED.iter().map(|(known, _)| *known).filter(|known| !usual.contains(known));
    shipped.find(|known| *known == name)
}

/// Reason why a map could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// The name that the user gave, or the name of the shipped file.
    pub file: String,
    /// The error, with its line.
    pub error: MapError,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.error.line {
            0 => write!(f, "{}: {}", self.file, self.error.what),
            line => write!(f, "{}:{line}: {}", self.file, self.error.what),
        }
    }
}

impl std::error::Error for LoadError {}

/// Returns a shipped map by name, or a map from a file if the name contains `/` or `.`.
///
/// # Errors
/// If there is no such map, or if the map has an error. The message names file and line.
pub fn load(name: &str) -> Result<SelectionMap, LoadError> {
    let file = || name.to_owned();
    if let Some((name, text)) = SHIPPED.iter().find(|(known, _)| *known == name) {
        return Ok(SelectionMap::shipped(name, text));
    }
    let fault = |what| LoadError { file: file(), error: MapError { line: 0, what } };
    if !name.contains(['/', '.']) {
        let known: Vec<_> = SHIPPED.iter().map(|(name, _)| *name).collect();
        let known = known.join(", ");
        return Err(fault(format!(
            "no map of this name; known: {known}; a file's name has a `/` or a `.` in it"
        )));
    }
    let text = std::fs::read_to_string(Path::new(name))
        .map_err(|e| fault(format!("cannot read this map: {e}")))?;
    SelectionMap::parse(&text).map_err(|error| LoadError { file: file(), error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CollectiveKind;

    #[test]
    fn shipped_maps_are_right_and_know_every_operation() {
        for (name, text) in SHIPPED {
            let map = load(name).unwrap();
            let parsed = SelectionMap::parse(text).unwrap();
            assert_eq!([&map.machine, &parsed.machine], [name, name]);
            for operation in CollectiveKind::ALL {
                assert!(map.lines(operation).eq(parsed.lines(operation)), "{name}: {operation}");
                // If the map has no entry for an operation, the model of copies must cover the operation.
                let modelled = || operation.algorithms().any(|a| a.time.is_some());
                let known = map.find(operation, 2, 0).is_some();
                assert!(known || *name == TOGETHER && modelled(), "{name}: {operation}");
            }
        }
    }

    #[test]
    fn errors_name_file_and_line() {
        let error = load("shn").unwrap_err().to_string();
        assert!(
            error.starts_with("shn: no map of this name; known: shm, ndr, ethernet, "),
            "{error}"
        );
        let error = load("./none.map").unwrap_err().to_string();
        assert!(error.starts_with("./none.map: cannot read this map: "), "{error}");
        let file = std::env::temp_dir().join(format!("weft-{}.map", std::process::id()));
        std::fs::write(&file, "# machine: m\n\nbarrier 2 0 FAST 1\n").unwrap();
        let error = load(file.to_str().unwrap()).unwrap_err().to_string();
        std::fs::remove_file(&file).unwrap();
        let begin = format!("{}:3: no algorithm \"FAST\" for barrier; known: ", file.display());
        assert!(error.starts_with(&begin), "{error}");
    }
}
