//! `mpi.h` agrees with the data, for a C and for a C++ compiler.

use crate::common::{compile_and_run, data};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Returns a program that prints every constant as a number, and takes the address of every function with the type that the data
/// gives it.
fn program() -> String {
    let mut out = "#include <mpi.h>\n#include <stdio.h>\n#include <stddef.h>\n".to_owned();
    for (i, f) in data("functions.csv").iter().enumerate() {
        let (name, returns, params) = (&f[0], &f[1], &f[2]);
        writeln!(out, "static {returns} (*const f{i}[2])({params}) = {{{name}, P{name}}};")
            .unwrap();
    }
    out.push_str("int main(void) {\n    int named = 0;\n");
    for (i, c) in data("constants.csv").iter().enumerate() {
        let (name, c_type) = (&c[0], c[1].as_str());
        // Fails to compile if the header gives the constant another type.
        let c_type = if c_type.is_empty() { "" } else { c_type };
        let c_type = match (c_type, c[2].starts_with("MPI")) {
            ("", true) => "MPI_Datatype",
            ("", false) => "int",
            (other, _) => other,
        };
        writeln!(out, "    {{ {c_type} c{i} = {name};").unwrap();
        writeln!(out, "      printf(\"{name} %lld\\n\", (long long)(intptr_t)c{i}); }}").unwrap();
    }
    for i in 0..data("functions.csv").len() {
        writeln!(out, "    named += f{i}[0] != NULL && f{i}[1] != NULL;").unwrap();
    }
    for (what, value) in [
        ("sizeof(MPI_Aint)", "sizeof(MPI_Aint)"),
        ("sizeof(MPI_Count)", "sizeof(MPI_Count)"),
        ("sizeof(MPI_Offset)", "sizeof(MPI_Offset)"),
        ("sizeof(MPI_Status)", "sizeof(MPI_Status)"),
        ("MPI_SOURCE", "offsetof(MPI_Status, MPI_SOURCE)"),
        ("MPI_TAG", "offsetof(MPI_Status, MPI_TAG)"),
        ("MPI_ERROR", "offsetof(MPI_Status, MPI_ERROR)"),
        ("MPI_internal", "offsetof(MPI_Status, MPI_internal)"),
        ("functions", "named"),
    ] {
        writeln!(out, "    printf(\"{what} %lld\\n\", (long long){value});").unwrap();
    }
    out.push_str("    return 0;\n}\n");
    out
}

/// Returns the lines that the program must print.
fn expected() -> BTreeMap<String, i64> {
    let constants = data("constants.csv");
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).unwrap(),
        None => text.parse().unwrap(),
    };
    let mut out = BTreeMap::new();
    for c in &constants {
        let original = constants.iter().find(|o| o[0] == c[2]);
        out.insert(c[0].clone(), number(original.map_or(&c[2], |o| &o[2])));
    }
    for (what, value) in [
        ("sizeof(MPI_Aint)", 8),
        ("sizeof(MPI_Count)", 8),
        ("sizeof(MPI_Offset)", 8),
        ("sizeof(MPI_Status)", 32),
        ("MPI_SOURCE", 0),
        ("MPI_TAG", 4),
        ("MPI_ERROR", 8),
        ("MPI_internal", 12),
        ("functions", 664),
    ] {
        out.insert(what.to_owned(), value);
    }
    out
}

fn check(name: &str, compiler: &[&str]) {
    let printed = compile_and_run(name, compiler, &program(), &[]);
    let printed: BTreeMap<String, i64> = printed
        .lines()
        .map(|line| line.split_once(' ').expect("name and value"))
        .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
        .collect();
    let expected = expected();
    for (name, value) in &expected {
        assert_eq!(printed.get(name), Some(value), "{name}");
    }
    assert_eq!(printed.len(), expected.len());
}

#[test]
fn c99_reads_the_header_as_the_data() {
    check("header-c99", &["cc", "-std=c99"]);
}

#[test]
fn cxx11_reads_the_header_as_the_data() {
    check("header-cxx11", &["c++", "-std=c++11", "-x", "c++"]);
}

/// Programs choose between code for old and new MPI by the preprocessor.
#[test]
fn numbers_and_versions_are_known_to_the_preprocessor() {
    let source = "#include <mpi.h>\n\
        #if MPI_VERSION != 5 || MPI_SUBVERSION != 0 || MPI_ABI_VERSION != 1 || \\\n\
            MPI_THREAD_MULTIPLE <= MPI_THREAD_SINGLE || MPI_PROC_NULL >= 0\n\
        #error not what the standard says\n\
        #endif\n\
        #ifndef MPI_COMM_WORLD\n#error not a macro\n#endif\n\
        int main(void) { return 0; }\n";
    compile_and_run("preprocessor", &["cc", "-std=c11"], source, &[]);
}
