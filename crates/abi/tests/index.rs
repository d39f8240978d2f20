//! The checked-in index of functions is what the build script found, and a search for a C name finds the file that it names.
#![cfg(not(miri))]

mod common;

use common::data;
use std::path::Path;
use std::{env, fs};

/// The index as the build script wrote it.
const FOUND: &str = include_str!(concat!(env!("OUT_DIR"), "/FUNCTIONS.md"));

const WRITE: &str = "WRITE_INDEX";

/// Returns the rows of functions: name, file, implementation.
fn rows(index: &str) -> Vec<[&str; 3]> {
    let row = |line| {
        let mut cells = str::split(line, '|').skip(1).map(str::trim);
        Some([cells.next()?, cells.next()?, cells.next()?])
    };
    let rows = index.lines().filter(|line| line.starts_with("| MPI_"));
    rows.map(|line| row(line).expect("three cells")).collect()
}

/// Returns the words of the documentation in `text`.
fn documented(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("///"));
    lines.flat_map(|line| line.split_whitespace().map(|word| word.trim_end_matches([',', '.'])))
}

/// Returns the text with which an item begins: `Sends for Send` of `Sends::nonblocking for Send`, `impl Recv` of `Recv::blocking`.
fn head(implementation: &str) -> String {
    let implementation = implementation.trim_matches('`');
    match (implementation.split_once("::"), implementation.split_once(" for ")) {
        (Some((of, _)), Some((_, family))) => format!("{of} for {family}"),
        (Some((family, _)), None) => format!("impl {family}"),
        (None, _) => implementation.to_owned(),
    }
}

#[test]
fn the_checked_in_index_is_what_the_build_script_found() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("FUNCTIONS.md");
    if env::var_os(WRITE).is_some() {
        fs::write(&path, FOUND).expect("writing the index");
    }
    let checked_in = fs::read_to_string(&path).unwrap_or_default();
    let (mut old, mut new) = (checked_in.lines(), FOUND.lines());
    let first = (1..).map(|line| (line, old.next(), new.next()));
    let differs = first.take_while(|(_, old, new)| old.is_some() || new.is_some());
    let mut differs = differs.filter(|(_, old, new)| old != new);
    if let Some((line, old, new)) = differs.next() {
        let [old, new] = [old, new].map(|text| text.unwrap_or("nothing"));
        panic!(
            "FUNCTIONS.md:{line} has `{old}`, the build script found `{new}`: this writes it anew: \
             {WRITE}=1 cargo test -p weft-abi --test index"
        );
    }
}

#[test]
fn every_function_is_found_by_its_name_in_the_file_that_the_index_names() {
    let mut functions: Vec<_> =
        data("functions.csv").into_iter().map(|mut row| row.swap_remove(0)).collect();
    functions.sort();
    assert!(functions.len() > 600, "{} functions", functions.len());
    let rows = rows(FOUND);
    let names: Vec<&str> = rows.iter().map(|[name, ..]| *name).collect();
    assert_eq!(names, functions);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut missing = Vec::new();
    for [name, file, implementation] in rows {
        let text = fs::read_to_string(source.join(file));
        let text = text.unwrap_or_else(|e| panic!("{name} in `{file}`: {e}"));
        if !documented(&text).any(|word| word == name) || !text.contains(&head(implementation)) {
            missing.push(format!("{name}, {implementation} in {file}"));
        }
    }
    assert!(missing.is_empty(), "no documentation has these names: {missing:#?}");
}
