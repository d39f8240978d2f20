//! The text of `weft info --program`.

use std::fmt::Write;
use std::path::Path;

use super::elf_file::SymbolUse;
use super::executable::Executable;
use super::library_search::{FoundBy, LibrarySearch};
use super::loaded::{LoadedProgram, MissingSymbol, WantedLibrary};
use super::mpi_abi::MpiAbi;

/// Text about a program.
#[derive(Debug)]
pub struct ProgramReport {
    /// Tables and sentences.
    pub text: String,
    /// True if the program has all that it needs, and only one MPI.
    pub is_complete: bool,
}

/// Texts of the lists of folders.
const FOUND_BY: [(FoundBy, &str); 6] = [
    (FoundBy::Path, "the path in the file that wants it"),
    (FoundBy::Rpath, "an RPATH"),
    (FoundBy::LibraryPath, "LD_LIBRARY_PATH"),
    (FoundBy::Runpath, "a RUNPATH"),
    (FoundBy::System, "the system's folders"),
    (FoundBy::Installation, "mpiexec"),
];

/// Beginnings of the names of symbols, with the MPI that keeps these symbols to itself.
const INTERNAL: [(&str, &str); 12] = [
    ("ompi_", "Open MPI"),
    ("OMPI_", "Open MPI"),
    ("opal_", "Open MPI"),
    ("orte_", "Open MPI"),
    ("prte_", "Open MPI"),
    ("PMIx_", "PMIx"),
    ("pmix_", "PMIx"),
    ("MPIR_", "MPICH"),
    ("MPII_", "MPICH"),
    ("MPID_", "MPICH"),
    ("ADIO", "ROMIO"),
    ("MPIOI_", "ROMIO"),
];

/// Writes the report.
pub fn write(
    executable: &Executable,
    loaded: &LoadedProgram,
    search: &LibrarySearch,
) -> ProgramReport {
    let mut text = String::from("program\n");
    let mut line = |name: &str, value: &str| {
        writeln!(text, "  {name:<10} {value}").expect("a string grows");
    };
    for script in &executable.scripts {
        line("script", &script.display().to_string());
    }
    let word = if executable.scripts.is_empty() { "file" } else { "runs" };
    line(word, &executable.path.display().to_string());
    let abis = loaded.abis();
    let names: Vec<_> = abis.iter().map(ToString::to_string).collect();
    line(
        "ABI",
        &match names.as_slice() {
            [] if loaded.has_static_mpi() => {
                "none: MPI is a part of the program (a static library)".to_owned()
            }
            [] => "none".to_owned(),
            names => names.join("; "),
        },
    );
    line("functions", &format!("{} of MPI", loaded.functions()));
    let mpi: Vec<_> =
        loaded.wanted.iter().filter(|wanted| MpiAbi::of(&wanted.name).is_some()).collect();
    if !mpi.is_empty() {
        text += "\nMPI libraries under mpiexec\n";
        text += &table(&libraries(loaded, &mpi, search));
    }
    let missing = missing(loaded, &mpi, search);
    if !missing.is_empty() {
        text += "\nmissing\n";
        text += &table(&missing);
    }
    let mixed = mixed(loaded, &mpi, search);
    let is_complete = missing.is_empty() && mixed.is_empty();
    let mut notes = mixed;
    notes.extend(notes_on(executable, loaded, &mpi, search));
    if !notes.is_empty() {
        text += "\nnotes\n";
    }
    for note in notes {
        writeln!(text, "  {note}").expect("a string grows");
    }
    ProgramReport { text, is_complete }
}

/// Writes rows with columns of equal width.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let wide = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..columns).map(wide).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        text += &format!("  {}\n", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    text
}

/// Returns the table of MPI libraries: name, files that want the library, file that they get, owner.
fn libraries(
    loaded: &LoadedProgram,
    mpi: &[&WantedLibrary],
    search: &LibrarySearch,
) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> =
        vec![["library", "wanted by", "file", ""].map(str::to_owned).into()];
    let mut seen: Vec<&str> = Vec::new();
    for wanted in mpi {
        if seen.contains(&wanted.name.as_str()) {
            continue;
        }
        seen.push(&wanted.name);
        let all = mpi.iter().filter(|other| other.name == wanted.name);
        let by = all.map(|other| loaded.name(other.by)).collect::<Vec<_>>().join(", ");
        let (file, owner) = match wanted.found {
            None => ("not found".to_owned(), String::new()),
            Some((index, by)) => {
                let path = &loaded.files[index].path;
                let by =
                    FOUND_BY.iter().find(|(known, _)| *known == by).map_or("", |(_, text)| text);
                let owner = match (search.is_own(path), &wanted.instead_of) {
                    (true, Some(_)) => "Weft's, preloaded by mpiexec".to_owned(),
                    (true, None) => "Weft's".to_owned(),
                    (false, _) => format!("of another installation, found by {by}"),
                };
                (path.display().to_string(), owner)
            }
        };
        rows.push(vec![wanted.name.clone(), by, file, owner]);
    }
    rows
}

/// Returns the table of missing libraries and symbols: name, sentence.
fn missing(
    loaded: &LoadedProgram,
    mpi: &[&WantedLibrary],
    search: &LibrarySearch,
) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut row = |name: &str, sentence: String| rows.push(vec![name.to_owned(), sentence]);
    for wanted in loaded.wanted.iter().filter(|wanted| wanted.found.is_none()) {
        let remedy = match MpiAbi::of(&wanted.name) {
            None => "Install it, or add its folder to LD_LIBRARY_PATH.",
            Some(MpiAbi::Other) => {
                "Weft has no library for this ABI. Build the program with mpicc of Weft."
            }
            Some(_) => {
                "This installation of Weft does not have it. Build the program with mpicc of Weft."
            }
        };
        row(
            &wanted.name,
            format!("{} needs this library and does not start. {remedy}", loaded.name(wanted.by)),
        );
    }
    for sentence in &loaded.unreadable {
        row("library", sentence.clone());
    }
    for (name, by, sentence) in loaded.unsupported() {
        row(
            name,
            format!("{} uses this function, which is not supported. {sentence}", loaded.name(by)),
        );
    }
    // Without its library, each function of the program would be missing.
    if mpi.iter().all(|wanted| wanted.found.is_some()) {
        for symbol in loaded.missing_symbols() {
            row(&symbol.name, sentence_on(&symbol, loaded, mpi, search));
        }
    }
    rows
}

fn sentence_on(
    symbol: &MissingSymbol,
    loaded: &LoadedProgram,
    mpi: &[&WantedLibrary],
    search: &LibrarySearch,
) -> String {
    let file = loaded.name(symbol.by);
    let is_own = |wanted: &&WantedLibrary| {
        wanted.found.is_some_and(|(index, _)| search.is_own(&loaded.files[index].path))
    };
    let owner = if mpi.iter().any(is_own) { "Weft's library" } else { "The MPI library" };
    let internal = INTERNAL.iter().find(|(begin, _)| symbol.name.starts_with(begin));
    let reason = match internal {
        _ if mpi.is_empty() => "No file names an MPI library.".to_owned(),
        Some((_, of)) => format!("This symbol is internal to {of}."),
        None => format!("{owner} does not have this symbol."),
    };
    let effect = match symbol.time {
        SymbolUse::FirstCall => format!("{file} fails at its first use of the symbol."),
        SymbolUse::Start => format!("{file} needs the symbol at its start, and does not start."),
    };
    format!("{reason} {effect}")
}

/// Returns sentences about MPI libraries that do not fit each other.
fn mixed(loaded: &LoadedProgram, mpi: &[&WantedLibrary], search: &LibrarySearch) -> Vec<String> {
    let mut sentences = Vec::new();
    if loaded.abis().len() > 1 {
        let mut each: Vec<_> = mpi
            .iter()
            .map(|wanted| format!("{} wants {}", loaded.name(wanted.by), wanted.name))
            .collect();
        each.dedup();
        sentences.push(format!(
            "WARNING: two MPI libraries: {}. A process with two MPI libraries crashes. Build all parts with the same MPI.",
            each.join(", ")
        ));
        return sentences;
    }
    let files =
        mpi.iter().filter_map(|wanted| wanted.found).map(|(index, _)| &loaded.files[index].path);
    let (own, others): (Vec<&Path>, Vec<&Path>) =
        files.map(AsRef::as_ref).partition(|path| search.is_own(path));
    if let (Some(own), Some(other)) = (own.first(), others.first()) {
        sentences.push(format!(
            "WARNING: parts of two MPI installations: {} is Weft's and {} is not. Such a process crashes. Remove the folder of \
             the other MPI from RPATH and LD_LIBRARY_PATH.",
            own.display(),
            other.display()
        ));
    }
    sentences
}

/// Returns sentences about what the user may not expect.
fn notes_on(
    executable: &Executable,
    loaded: &LoadedProgram,
    mpi: &[&WantedLibrary],
    search: &LibrarySearch,
) -> Vec<String> {
    let mut notes = Vec::new();
    if executable.is_interpreter() {
        notes.push(
            "Python, shells and other interpreters load MPI later, when a script asks for it. mpiexec offers Weft's libraries of \
             the standard ABI and of the older ABIs in the environment. To see which of them a module wants, give the path of \
             the module's file (.so)."
                .to_owned(),
        );
    } else if loaded.has_static_mpi() {
        notes.push("mpiexec cannot replace an MPI that is a part of the program. Link the program with a shared MPI library.".to_owned());
    } else if mpi.is_empty() {
        notes.push("Libraries that the program opens itself (dlopen) are not listed.".to_owned());
    }
    let mut seen: Vec<&str> = Vec::new();
    for wanted in mpi {
        if seen.contains(&wanted.name.as_str()) {
            continue;
        }
        seen.push(&wanted.name);
        let by = loaded.name(wanted.by);
        if let Some((path, _)) = &wanted.instead_of {
            notes.push(format!(
                "The RPATH of {by} leads to {}, before LD_LIBRARY_PATH. mpiexec preloads Weft's library instead.",
                path.display()
            ));
        }
        let Some((index, found_by)) = wanted.found else { continue };
        if search.is_own(&loaded.files[index].path) {
            continue;
        }
        let legacy = search.legacy.join(&wanted.name);
        notes.push(match (found_by, MpiAbi::of(&wanted.name)) {
            (FoundBy::Path, _) => format!(
                "{by} names the path of its MPI library, which mpiexec cannot replace. Link the program with -l."
            ),
            (_, Some(MpiAbi::Mpich | MpiAbi::OpenMpi)) if !legacy.is_file() => format!(
                "This installation of Weft has no {}, so the program gets another MPI's.",
                legacy.display()
            ),
            (_, Some(MpiAbi::Other)) => format!(
                "Weft has no library for the ABI of {}. Build the program with mpicc of Weft.",
                wanted.name
            ),
            _ => format!(
                "The program gets the {} of another installation. To use Weft of this installation, put {} first in LD_LIBRARY_PATH.",
                wanted.name,
                search.own.display()
            ),
        });
    }
    notes
}
