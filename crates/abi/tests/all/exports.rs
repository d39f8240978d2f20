//! The library exports the functions of the data, each as MPI_ and PMPI_, and no other functions.

use crate::common::{data, library_dir, run};
use std::collections::BTreeSet;
use std::process::Command;

#[test]
fn every_function_of_the_standard_is_exported_and_no_other() {
    let library = library_dir().join("libmpi_abi.so");
    let symbols = run(Command::new("nm").args(["-D", "--defined-only"]).arg(library));
    let exported: BTreeSet<String> = symbols
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        // A version would follow an @. The standard's symbols have no version.
        .filter(|name| name.starts_with("MPI") || name.starts_with("PMPI"))
        .map(str::to_owned)
        .collect();
    let functions = data("functions.csv");
    assert_eq!(functions.len(), 664, "MPI 5.0 has 664 functions");
    let expected: BTreeSet<String> =
        functions.iter().flat_map(|f| [f[0].clone(), format!("P{}", f[0])]).collect();
    let missing: Vec<_> = expected.difference(&exported).collect();
    let surplus: Vec<_> = exported.difference(&expected).collect();
    assert!(missing.is_empty() && surplus.is_empty(), "missing {missing:?}, surplus {surplus:?}");
}

#[test]
fn the_library_has_the_name_that_programs_look_for() {
    let library = library_dir().join("libmpi_abi.so");
    let dynamic = run(Command::new("readelf").arg("-d").arg(&library));
    let soname = dynamic.lines().find(|line| line.contains("SONAME")).expect("a SONAME");
    assert!(soname.ends_with("[libmpi_abi.so.1]"), "{soname}");
    for name in ["libmpi_abi.so.1", "libmpi_abi.so.0"] {
        let same = library_dir().join(name).canonicalize().expect(name);
        assert_eq!(same, library.canonicalize().unwrap());
    }
}
