//! Types of handles, their conversions, and the objects that Open MPI's library exports.

use super::{LegacyConstant, LegacyTarget, Source};
use std::collections::HashSet;
use std::fmt::Write;

/// A class of handles: its C type without `MPI_`, and the name of its null handle.
pub struct HandleClass(pub &'static str, pub &'static str);

pub const CLASSES: [HandleClass; 11] = [
    HandleClass("Op", "MPI_OP_NULL"),
    HandleClass("Comm", "MPI_COMM_NULL"),
    HandleClass("Group", "MPI_GROUP_NULL"),
    HandleClass("Win", "MPI_WIN_NULL"),
    HandleClass("File", "MPI_FILE_NULL"),
    HandleClass("Session", "MPI_SESSION_NULL"),
    HandleClass("Message", "MPI_MESSAGE_NULL"),
    HandleClass("Info", "MPI_INFO_NULL"),
    HandleClass("Errhandler", "MPI_ERRHANDLER_NULL"),
    HandleClass("Request", "MPI_REQUEST_NULL"),
    HandleClass("Datatype", "MPI_DATATYPE_NULL"),
];

/// Returns the predefined handles of a class, each value of the older ABI once.
fn predefined<'a>(source: &'a Source, class: &HandleClass) -> Vec<&'a LegacyConstant> {
    let mut seen = HashSet::new();
    let c_type = format!("MPI_{}", class.0);
    let is_handle = |c: &&LegacyConstant| {
        let mut all = source.abi.constants.iter();
        let known = match all.clone().find(|standard| standard.name == c.name) {
            Some(standard) => standard.c_type == c_type,
            // An extension of the older ABI, which may be another name of one of the standard's handles.
            None => c.standard.is_some_and(|value| {
                all.any(|s| s.c_type == c_type && super::number(&s.value) == Some(value))
            }),
        };
        known && !c.legacy.is_empty() && seen.insert(c.legacy.clone())
    };
    source.constants.iter().filter(is_handle).collect()
}

/// Returns the handles of which each has another value in the standard: the first name of each.
fn distinct<'a>(constants: &[&'a LegacyConstant]) -> impl Iterator<Item = &'a LegacyConstant> {
    let mut seen = HashSet::new();
    constants.iter().copied().filter(move |c| seen.insert(c.standard))
}

pub fn write(source: &Source) -> String {
    let mut out = String::from("use super::*;\nuse std::ffi::{c_char, c_int, c_void};\n\n");
    for class in &CLASSES {
        let constants = predefined(source, class);
        match source.target {
            LegacyTarget::Mpich => numbers(&mut out, class, &constants),
            LegacyTarget::OpenMpi => objects(&mut out, class, &constants),
        }
        // Other handles of MPICH have the same number in Fortran.
        if source.target == LegacyTarget::OpenMpi || class.0 == "File" {
            fortran(&mut out, class, &constants);
        }
    }
    if source.target == LegacyTarget::OpenMpi {
        exported(&mut out, source);
    }
    out
}

/// Writes a class of handles that are numbers. Handles of files are addresses, and only the null handle is predefined.
fn numbers(out: &mut String, class: &HandleClass, constants: &[&LegacyConstant]) {
    let HandleClass(name, null) = class;
    let (mut to, mut from) = (String::new(), String::new());
    for c in constants {
        let (legacy, standard) = (&c.legacy, c.standard.unwrap());
        writeln!(to, "            {legacy} => {standard:#x},").unwrap();
    }
    for c in distinct(constants) {
        let (legacy, standard) = (&c.legacy, c.standard.unwrap());
        writeln!(from, "            {standard:#x} => {legacy},").unwrap();
    }
    let (kind, object, back) = match *name {
        "File" => ("usize", "dynamic => dynamic,".to_owned(), "dynamic => dynamic,".to_owned()),
        _ => (
            "c_int",
            format!(
                "dynamic if dynamics::is(dynamic) => dynamics::{name}::to_standard(dynamic),\n            other => dynamics::unknown(other),"
            ),
            format!(
                "dynamic if dynamic >= 0x1000 => dynamics::{name}::from_standard(dynamic),\n            _ => {},",
                constants.iter().find(|c| c.name == *null).map_or("0", |c| &c.legacy)
            ),
        ),
    };
    write!(
        out,
        "/// `MPI_{name}`\n#[repr(transparent)]\n#[derive(Clone, Copy)]\npub struct {name}(pub {kind});\n\n\
         impl LegacyHandle for {name} {{\n    #[inline(always)]\n    fn to_standard(self) -> usize {{\n        match self.0 {{\n{to}            {object}\n        }}\n    }}\n\n    \
         #[inline(always)]\n    fn from_standard(standard: usize) -> {name} {{\n        {name}(match standard {{\n{from}            {back}\n        }})\n    }}\n}}\n\n"
    )
    .unwrap();
}

/// Writes a class of handles that are addresses. A predefined object begins with the standard's handle; the address of any other
/// object is the standard's handle itself, in which the lowest four bits are not 0.
fn objects(out: &mut String, class: &HandleClass, constants: &[&LegacyConstant]) {
    let HandleClass(name, null) = class;
    let mut from = String::new();
    for c in distinct(constants) {
        let (symbol, standard) = (&c.legacy, c.standard.unwrap());
        writeln!(from, "            {standard:#x} => address(&raw const {symbol}),").unwrap();
    }
    let null =
        constants.iter().find(|c| c.name == *null).map_or("ompi_mpi_comm_null", |c| &c.legacy);
    write!(
        out,
        "/// `MPI_{name}`\n#[repr(transparent)]\n#[derive(Clone, Copy)]\npub struct {name}(pub usize);\n\n\
         impl LegacyHandle for {name} {{\n    #[inline(always)]\n    fn to_standard(self) -> usize {{\n        objects::to_standard(self.0)\n    }}\n\n    \
         #[inline(always)]\n    fn from_standard(standard: usize) -> {name} {{\n        if standard >= 0x1000 {{\n            return {name}(standard);\n        }}\n        \
         {name}(match standard {{\n{from}            _ => address(&raw const {null}),\n        }})\n    }}\n}}\n\n"
    )
    .unwrap();
}

/// Writes the predefined handles of Fortran.
fn fortran(out: &mut String, class: &HandleClass, constants: &[&LegacyConstant]) {
    let name = class.0.to_uppercase();
    let pairs = constants.iter().filter_map(|c| Some((c.fortran?, c.standard?)));
    let pairs: Vec<_> =
        pairs.map(|(fortran, standard)| format!("({fortran}, {standard})")).collect();
    writeln!(out, "pub static FORTRAN_{name}: NumberMap = &[{}];\n", pairs.join(", ")).unwrap();
}

/// Writes the objects that programs name, with the size that copy relocations need.
fn exported(out: &mut String, source: &Source) {
    let mut seen = HashSet::new();
    for c in source.constants.iter().filter(|c| c.bytes > 0) {
        let LegacyConstant { name, standard, legacy, bytes, .. } = c;
        if seen.insert(legacy) {
            let value = standard.unwrap_or(0);
            writeln!(
                out,
                "/// {name}\n#[unsafe(no_mangle)]\npub static {legacy}: PredefinedObject<{bytes}> = PredefinedObject::new({value});"
            )
            .unwrap();
        }
    }
    out.push('\n');
}
