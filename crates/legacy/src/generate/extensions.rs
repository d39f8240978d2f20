//! Functions that only MPICH or Open MPI has, and that do not work. A program that needs such a function starts, and gets a sentence
//! where it calls the function.

use super::function::both;
use super::{LegacyTarget, Source};
use std::fmt::Write;

/// A function that does not work.
pub struct UnsupportedFunction {
    name: String,
    targets: Vec<LegacyTarget>,
    /// Name of the entry in [`RESULTS`].
    result: String,
    /// The reason, and what a program can do instead.
    sentence: String,
}

impl UnsupportedFunction {
    pub fn new([name, mpich, openmpi, result, sentence]: [String; 5]) -> UnsupportedFunction {
        let all = [(mpich, LegacyTarget::Mpich), (openmpi, LegacyTarget::OpenMpi)];
        let targets = all.into_iter().filter(|(mark, _)| !mark.is_empty()).map(|(_, t)| t);
        UnsupportedFunction { name, targets: targets.collect(), result, sentence }
    }
}

/// A way to fail: name in the data, parameters, their names, body.
const RESULTS: [[&str; 4]; 3] = [
    // The first argument is a communicator, whose error handler is called.
    ["comm", "comm: Comm", "comm", "unsupported::raise::<Own>(FUNCTION, comm.to_standard())"],
    ["code", "", "", "unsupported::raise::<Own>(FUNCTION, constants::MPI_COMM_SELF as usize)"],
    // The result is not an error code.
    ["none", "", "", "unsupported::abort(FUNCTION)"],
];

/// Questions about accelerators, all answered with no.
const QUERIES: [(&str, LegacyTarget); 5] = [
    ("MPIX_Query_cuda_support", LegacyTarget::Mpich),
    ("MPIX_Query_hip_support", LegacyTarget::Mpich),
    ("MPIX_Query_ze_support", LegacyTarget::Mpich),
    ("MPIX_Query_cuda_support", LegacyTarget::OpenMpi),
    ("MPIX_Query_rocm_support", LegacyTarget::OpenMpi),
];

pub fn write(source: &Source) -> String {
    let (mut out, mut list) = (String::new(), String::new());
    for (name, _) in QUERIES.iter().filter(|query| query.1 == source.target) {
        out += &both(name, "", "", "c_int", "0");
    }
    if source.target == LegacyTarget::Mpich {
        let parameters = "_kind: c_int, is_supported: *mut c_int";
        let body = "if !is_supported.is_null() { is_supported.write(0) } 0";
        out += &both("MPIX_GPU_query_support", parameters, "_kind, is_supported", "c_int", body);
    }
    for function in source.unsupported.iter().filter(|f| f.targets.contains(&source.target)) {
        let UnsupportedFunction { name, result, sentence, .. } = function;
        let [_, parameters, names, body] = RESULTS
            .iter()
            .find(|row| row[0] == result)
            .unwrap_or_else(|| panic!("unsupported.csv: {name}: no result {result}"));
        let text = format!("({name:?}, {sentence:?})");
        out += &both(name, parameters, names, "c_int", &body.replace("FUNCTION", &text));
        writeln!(list, "{name}\t{sentence}").unwrap();
    }
    // `weft info --program` reads the list from the file of the library.
    let bytes = list.len();
    writeln!(out, "#[unsafe(no_mangle)]\npub static weft_unsupported: [u8; {bytes}] = *b{list:?};")
        .unwrap();
    out
}

#[cfg(test)]
mod tests {
    use super::super::library;
    use super::*;
    use std::path::Path;

    #[test]
    fn each_library_has_the_extensions_of_its_abi() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let [mpich, openmpi] =
            [LegacyTarget::Mpich, LegacyTarget::OpenMpi].map(|target| library(target, crates));
        let defines = |text: &str, name: &str| text.contains(&format!("extern \"C\" fn {name}("));
        for (name, has_mpich, has_openmpi) in [
            ("MPIX_Comm_agree", true, false),
            ("PMPIX_Comm_agree", true, false),
            ("MPIX_Stream_create", true, false),
        ] {
            assert_eq!(defines(&mpich, name), has_mpich, "{name}");
            assert_eq!(defines(&openmpi, name), has_openmpi, "{name}");
        }
        let list = "*b\"MPIX_Allreduce_enqueue\\tWeft has no operations";
        assert!(mpich.contains(list), "the list for weft info --program");
    }
}
