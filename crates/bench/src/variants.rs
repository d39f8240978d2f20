//! One installation in several columns, each with its own settings.

use super::library::BenchLibrary;
use super::library_kind::LibraryKind;
use std::fmt::Write;

/// Designs of Weft's progress, as `WEFT_PROGRESS` names them.
const DESIGNS: [&str; 4] = ["none", "locked", "signal", "handover"];

/// Settings to run a library with: its name, the label of the column, and variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BenchVariant {
    library: String,
    label: String,
    settings: Vec<(String, String)>,
}

/// Parses a text like "weft helper WEFT_PROGRESS=handover".
pub fn parse(text: &str) -> Result<BenchVariant, String> {
    let mut words = text.split_whitespace();
    let named = words.next().zip(words.next()).filter(|(_, label)| !label.contains('='));
    let settings: Option<Vec<_>> = words
        .map(|word| word.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())))
        .collect();
    match (named, settings) {
        (Some((library, label)), Some(settings)) if !settings.is_empty() => {
            Ok(BenchVariant { library: library.to_owned(), label: label.to_owned(), settings })
        }
        _ => Err("write \"LIBRARY LABEL KEY=VALUE ...\"".to_owned()),
    }
}

/// Returns a column for each way of progress: Weft with all designs, a peer with its defaults and, if it has any, with its own
/// asynchronous progress.
pub fn progress(libraries: &[BenchLibrary]) -> Vec<BenchLibrary> {
    let ways = |library: &BenchLibrary| -> Vec<BenchLibrary> {
        let with = |key: &str| library.variant("async", vec![(key.to_owned(), "1".to_owned())]);
        match library.kind {
            LibraryKind::Weft => DESIGNS
                .map(|d| library.variant(d, vec![("WEFT_PROGRESS".to_owned(), d.to_owned())]))
                .to_vec(),
            LibraryKind::Mpich => vec![library.clone(), with("MPIR_CVAR_ASYNC_PROGRESS")],
            LibraryKind::Intel => vec![library.clone(), with("I_MPI_ASYNC_PROGRESS")],
            // Open MPI 5 is built without asynchronous progress: `ompi_info` says "OMPI progress: no".
            LibraryKind::OpenMpi | LibraryKind::Other => vec![library.clone()],
        }
    };
    libraries.iter().flat_map(ways).collect()
}

/// Adds each variant after the columns of its library. The error names a library that does not exist.
pub fn add(libraries: &mut Vec<BenchLibrary>, variants: &[BenchVariant]) -> Result<(), String> {
    for variant in variants {
        let of = |library: &BenchLibrary| library.folder == variant.library;
        let Some(last) = libraries.iter().rposition(of) else {
            let mut names: Vec<_> = libraries.iter().map(|l| l.folder.as_str()).collect();
            names.dedup();
            return Err(format!(
                "no library '{}'; there are {}",
                variant.library,
                names.join(", ")
            ));
        };
        let column = libraries[last].variant(&variant.label, variant.settings.clone());
        if libraries.iter().any(|l| l.name == column.name) {
            return Err(format!("two columns '{}'", column.name));
        }
        libraries.insert(last + 1, column);
    }
    Ok(())
}

/// Returns an explanation of the columns, or an empty text if each is a library with its defaults.
pub fn heading(libraries: &[BenchLibrary], progress: bool) -> String {
    if libraries.iter().all(|l| l.settings.is_empty()) {
        return String::new();
    }
    let subject = if progress { "ways of progress while the program computes" } else { "settings" };
    let mut text = format!("{subject}, compared:\n");
    let width = libraries.iter().map(|l| l.name.len()).max().unwrap_or(0);
    for library in libraries {
        let set = library.settings.iter().map(|(key, value)| format!("{key}={value}"));
        let mut told = set.collect::<Vec<_>>().join(" ");
        if told.is_empty() {
            told = "as it comes".to_owned();
        }
        if progress && library.kind == LibraryKind::OpenMpi && library.settings.is_empty() {
            told += ": it has no asynchronous progress to switch on";
        }
        let _ = writeln!(text, "  {:<width$}  {told}", library.name);
    }
    if progress {
        text += "threads of a library share the processor that a rank is bound to, if ranks are\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(name: &str, kind: LibraryKind) -> BenchLibrary {
        BenchLibrary {
            name: name.to_owned(),
            folder: name.to_owned(),
            kind,
            ..BenchLibrary::default()
        }
    }

    fn names(libraries: &[BenchLibrary]) -> Vec<&str> {
        libraries.iter().map(|l| l.name.as_str()).collect()
    }

    #[test]
    fn ways_of_progress_are_columns() {
        let all = [
            library("weft", LibraryKind::Weft),
            library("mpich", LibraryKind::Mpich),
            library("openmpi", LibraryKind::OpenMpi),
            library("mine", LibraryKind::Intel),
        ];
        let ways = progress(&all);
        let told = names(&ways);
        assert_eq!(told[..4], ["weft none", "weft locked", "weft signal", "weft handover"]);
        assert_eq!(told[4..], ["mpich", "mpich async", "openmpi", "mine", "mine async"]);
        assert_eq!(ways[2].settings, [("WEFT_PROGRESS".to_owned(), "signal".to_owned())]);
        assert!(ways[..4].iter().all(|l| l.folder == "weft"));
        let text = heading(&ways, true);
        assert!(text.contains("mine async     I_MPI_ASYNC_PROGRESS=1"), "{text}");
        assert!(text.contains("openmpi        as it comes: it has no"), "{text}");
        assert_eq!(heading(&all, false), "");
    }

    #[test]
    fn variants_stand_beside_their_library() {
        let mut all =
            vec![library("weft", LibraryKind::Weft), library("mpich", LibraryKind::Mpich)];
        let wanted =
            ["weft helper WEFT_PROGRESS=handover WEFT_CMA=0", "weft alone WEFT_PROGRESS=none"];
        let wanted: Vec<_> = wanted.iter().map(|text| parse(text).unwrap()).collect();
        add(&mut all, &wanted).unwrap();
        assert_eq!(names(&all), ["weft", "weft helper", "weft alone", "mpich"]);
        assert_eq!(all[1].settings.len(), 2);
        assert_eq!(all[2].settings, [("WEFT_PROGRESS".to_owned(), "none".to_owned())]);
        assert!(add(&mut all, &wanted).unwrap_err().contains("weft helper"));
        let other = parse("opnmpi x A=1").unwrap();
        assert!(add(&mut all, &[other]).unwrap_err().contains("opnmpi"));
    }

    #[test]
    fn a_variant_without_a_label_or_a_setting_is_refused() {
        for text in
            ["", "weft", "weft helper", "weft WEFT_PROGRESS=handover", "weft helper WEFT_PROGRESS"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
