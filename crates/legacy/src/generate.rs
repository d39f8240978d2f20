//! Writes the entry points and tables of one older ABI as Rust.

mod argument;
mod constants;
mod extensions;
mod function;
mod handles;
mod removed;

use extensions::UnsupportedFunction;
use std::path::Path;
use weft_abi_data::removed::{RemovedFunction, removed_functions};
use weft_abi_data::{Abi, Kinds, rows};

/// An older ABI.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LegacyTarget {
    /// MPICH's: handles are `int`, except those of files.
    Mpich,
    /// Open MPI's: handles are addresses of objects.
    OpenMpi,
}

/// A constant of the standard and of an older ABI.
struct LegacyConstant {
    name: String,
    /// Value in the standard ABI. `None` for constants that only older ABIs have.
    standard: Option<i64>,
    /// Value in C: a number, or the name of an exported object.
    legacy: String,
    /// Size of the exported object in bytes.
    bytes: usize,
    /// Value in Fortran, if it is a plain number.
    fortran: Option<i64>,
}

/// Returns the value of a constant, if its text is a number.
fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The data from which one older ABI is generated.
struct Source {
    target: LegacyTarget,
    abi: Abi,
    kinds: Kinds,
    constants: Vec<LegacyConstant>,
    /// Functions of either ABI that do not work.
    unsupported: Vec<UnsupportedFunction>,
    removed: Vec<RemovedFunction>,
}

impl Source {
    fn read(target: LegacyTarget, crates: &Path) -> Source {
        let abi = Abi::read(&crates.join("abi/data"));
        let kinds = Kinds::read(&crates.join("fortran/data/parameters.csv"));
        let all = rows::<7>(&crates.join("legacy/data/legacy.csv"));
        let standard = |value: &str| match value.starts_with("MPI_") {
            true => all.iter().find(|row| row[0] == value).and_then(|row| number(&row[1])),
            false => number(value),
        };
        let constants = all.iter().map(|row| {
            let [name, value, mpich, mpich_fortran, open, bytes, open_fortran] = row;
            let (legacy, fortran) = match target {
                LegacyTarget::Mpich => (mpich, mpich_fortran),
                LegacyTarget::OpenMpi => (open, open_fortran),
            };
            LegacyConstant {
                name: name.clone(),
                standard: standard(value),
                legacy: legacy.clone(),
                bytes: bytes.parse().unwrap_or(0),
                fortran: number(fortran),
            }
        });
        let unsupported = rows::<5>(&crates.join("legacy/data/unsupported.csv"));
        let unsupported = unsupported.into_iter().map(UnsupportedFunction::new).collect();
        let removed = removed_functions(&crates.join("abi/data"));
        Source { target, abi, kinds, constants: constants.collect(), unsupported, removed }
    }

    /// Returns a constant's value in the older ABI, if it is a number there.
    fn legacy(&self, name: &str) -> Option<i64> {
        self.constants.iter().find(|c| c.name == name)?.legacy.parse().ok()
    }
}

/// Returns the text of a library's generated module. `crates` is the folder of all crates.
pub fn library(target: LegacyTarget, crates: &Path) -> String {
    let source = Source::read(target, crates);
    let mut out = handles::write(&source);
    out += &constants::write(&source);
    out += &function::write(&source);
    out += &removed::write(&source);
    out + &extensions::write(&source)
}
