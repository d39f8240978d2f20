//! The meaning of each argument: `crates/abi/data/arguments.csv`, by the argument's name.
//!
//! A row is for the functions that it lists, where `*` stands for any letters. A row that lists no function is for all functions. A
//! row that names a function has the highest priority. Then come rows that name the base form of the function, such as `MPI_Bcast`
//! for `MPI_Ibcast`, then patterns that match either of the two names, and last the rows for all functions.

use super::data::{Argument, Explanation, ManualData, ManualFunction};
use super::siblings;

/// Quality of a row's match. The row with the smallest value is used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Function,
    Base,
    Pattern,
    BasePattern,
    All,
}

/// Returns the sentence that describes an argument of `function`.
pub fn meaning<'d>(
    data: &'d ManualData,
    function: &ManualFunction,
    argument: &Argument,
) -> Result<&'d str, String> {
    let name = function.name.strip_suffix("_c").unwrap_or(&function.name);
    let base = siblings::base(data, name).map(|(base, _)| base);
    let rows = data.explanations.iter().filter(|row| {
        row.parameter == argument.name
            && (row.direction.is_empty() || row.direction == argument.meaning.direction)
    });
    let fits = rows.filter_map(|row| Some((fit(row, name, base.as_deref())?, row)));
    let best = fits.min_by_key(|(fit, _)| *fit);
    let best = best.ok_or(format!("arguments.csv has no {} of {}", argument.name, function.name));
    best.map(|(_, row)| row.meaning.as_str())
}

fn fit(row: &Explanation, name: &str, base: Option<&str>) -> Option<Fit> {
    if row.functions.is_empty() {
        return Some(Fit::All);
    }
    let listed = |test: &dyn Fn(&str) -> bool| row.functions.split_whitespace().any(test);
    let fits = [
        (Fit::Function, listed(&|pattern| pattern == name)),
        (Fit::Base, listed(&|pattern| Some(pattern) == base)),
        (Fit::Pattern, listed(&|pattern| matches(pattern, name))),
        (Fit::BasePattern, listed(&|pattern| base.is_some_and(|base| matches(pattern, base)))),
    ];
    fits.into_iter().find_map(|(fit, holds)| holds.then_some(fit))
}

/// Compares a text with a pattern in which `*` stands for any letters.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((begin, rest)) => text.strip_prefix(begin).is_some_and(|left| {
            (0..=left.len()).any(|at| left.is_char_boundary(at) && matches(rest, &left[at..]))
        }),
    }
}

/// Returns the shape of an array or a string: `array of count`. Empty for single values.
pub fn shape(argument: &Argument) -> String {
    let (meaning, declaration) = (&argument.meaning, &argument.declaration);
    let array = declaration.contains('[') || argument.name.starts_with("array_of");
    match meaning.length.as_str() {
        "" | "*" if array => "array".to_owned(),
        "" | "*" => String::new(),
        "n;3" => "array of n triples".to_owned(),
        length if meaning.kind == "STRING" => format!("room for {length} characters"),
        length => format!("array of {length}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn patterns_match_whole_names() {
        assert!(matches("MPI_File_*_all", "MPI_File_read_at_all"));
        assert!(matches("*_get_attr", "MPI_Comm_get_attr") && matches("MPI_*", "MPI_"));
        assert!(!matches("MPI_File_*_all", "MPI_File_read_all_begin"));
        assert!(!matches("MPI_Send", "MPI_Send_init") && !matches("MPI_*_x", "MPI_x"));
    }

    #[test]
    fn every_argument_has_a_sentence_and_every_sentence_an_argument() {
        let data = ManualData::read().unwrap();
        let mut used = HashSet::new();
        let mut faults = Vec::new();
        for function in &data.functions {
            for argument in &function.arguments {
                match meaning(&data, function, argument) {
                    Ok(text) => drop(used.insert(text.as_ptr())),
                    Err(fault) => faults.push(fault),
                }
            }
        }
        for row in &data.explanations {
            let (text, kind) = (row.meaning.as_str(), row.parameter.replace('_', " "));
            let bare = text.trim_end_matches('.').to_lowercase();
            let sentence = text.ends_with('.')
                && text.starts_with(|first: char| first.is_uppercase() || first == '*')
                && text.split_whitespace().count() >= 4;
            if !sentence || bare == kind {
                faults.push(format!("{}: no sentence: {text}", row.parameter));
            }
            if !used.contains(&text.as_ptr()) {
                faults
                    .push(format!("{} of '{}': no function has it", row.parameter, row.functions));
            }
        }
        assert!(faults.is_empty(), "{faults:#?}");
    }
}
