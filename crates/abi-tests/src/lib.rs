//! Declarations and constants of the standard, from its data, for the programs of this crate.
//!
//! - `weft-random`: random MPI programs, each checked byte for byte against an oracle in one process.
//! - `weft-abuse`: bad handles, pointers and numbers to every MPI function, which must give an error or a result, never a crash.

#![warn(missing_docs)]

const FUNCTIONS: &str = include_str!("../../abi/data/functions.csv");
const CONSTANTS: &str = include_str!("../../abi/data/constants.csv");

/// A C function as it is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// Its name.
    pub name: &'static str,
    /// C type of its result.
    pub result: &'static str,
    /// Its parameters, such as `const int displs[]`; `...` counts as a parameter.
    pub parameters: Vec<&'static str>,
}

/// Returns all functions of the standard.
pub fn functions() -> impl Iterator<Item = Declaration> {
    FUNCTIONS.lines().skip(1).filter_map(declaration)
}

fn declaration(line: &'static str) -> Option<Declaration> {
    let (name, rest) = line.split_once(',')?;
    let (result, list) = rest.split_once(',')?;
    let list = match list.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?.0,
        None => list.split_once(',')?.0,
    };
    let parameters = list.split(',').map(str::trim).filter(|p| *p != "void").collect();
    Some(Declaration { name, result, parameters })
}

/// Returns the value of a constant of the standard ABI.
///
/// # Panics
/// Panics if there is no constant of this name.
pub fn constant(name: &str) -> i64 {
    let row = CONSTANTS.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(','));
    let text = row.and_then(|r| r.split(',').nth(1)).unwrap_or_else(|| panic!("no {name}"));
    let value = match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    value.unwrap_or_else(|e| panic!("constants.csv: {name} = '{text}': {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_read() {
        let of = |name| functions().find(|f| f.name == name).expect("a function of the standard");
        assert_eq!(of("MPI_Finalize").parameters, [""; 0]);
        assert_eq!(of("MPI_Init").parameters.len(), 2);
        assert_eq!(of("MPI_Comm_free").parameters, ["MPI_Comm *comm"]);
        assert_eq!(of("MPI_Ialltoallw_c").parameters.len(), 10);
        assert_eq!(of("MPI_Wtime").result, "double");
        assert_eq!(constant("MPI_COMM_WORLD"), 0x101);
    }
}
