//! Tables of packaged programs, and the comparison of what they compute with Weft and with the MPI library they were built for.

use super::super::lanes::two_at_a_time;
use super::super::python::merged;
use super::super::tally::Tally;
use super::super::tools::quiet;
use super::places::{BuiltFor, PackageFolders};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// A program of a package, and how it runs. Words and values have names of folders in braces ([`PackageFolders::word`]).
pub(super) struct PackagedProgram {
    pub name: &'static str,
    pub mpi: BuiltFor,
    /// Numbers of ranks for runs with Weft.
    pub ranks: &'static [usize],
    /// Numbers of ranks for runs with the program's own MPI library. Each run with Weft is compared with the run on the largest
    /// number that is not larger. A program that checks its own results needs no such run.
    pub theirs: &'static [usize],
    /// A command that runs before, on one rank. May be empty.
    pub before: &'static [&'static str],
    pub command: &'static [&'static str],
    /// Variables of the environment.
    pub settings: &'static [(&'static str, &'static str)],
    /// Files for the program: names and texts. In a text, `{ranks}` is the number of ranks, and `{rows}` and `{columns}` are the sides
    /// of a grid of all ranks. A name may have folders.
    pub files: &'static [(&'static str, &'static str)],
    /// A folder whose files the program reads from its working directory. May be empty.
    pub data: &'static str,
    /// Checks a run, and returns what must be the same.
    pub outcome: fn(&PackagedRun) -> Result<ProgramResult, String>,
    /// Maximum difference of two numbers.
    pub tolerance: f64,
}

impl PackagedProgram {
    /// Values of most programs.
    pub const USUAL: PackagedProgram = PackagedProgram {
        name: "",
        mpi: BuiltFor::OpenMpi,
        ranks: &[1, 2, 4],
        theirs: &[1, 2],
        before: &[],
        command: &[],
        settings: &[],
        files: &[],
        data: "",
        outcome: |_| Err("no check".to_owned()),
        tolerance: 0.0,
    };
}

/// A run that has ended without an error.
pub(super) struct PackagedRun {
    pub ranks: usize,
    pub output: String,
    pub folder: PathBuf,
}

impl PackagedRun {
    /// Reads a file that the program wrote.
    pub fn file(&self, name: &str) -> Result<Vec<u8>, String> {
        let path = self.folder.join(name);
        fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))
    }
}

/// Results of a program that do not depend on the MPI library.
#[derive(Default)]
pub(super) struct ProgramResult {
    pub text: String,
    pub numbers: Vec<f64>,
    /// Content of a file.
    pub bytes: Vec<u8>,
}

impl ProgramResult {
    /// Returns the first difference between two outcomes.
    fn differs(&self, other: &ProgramResult, tolerance: f64) -> Option<String> {
        if self.text != other.text {
            return Some(format!("it says\n{}\nnot\n{}", self.text, other.text));
        }
        if self.numbers.len() != other.numbers.len() {
            return Some(format!("{:?}, not {:?}", self.numbers, other.numbers));
        }
        let mut pairs = self.numbers.iter().zip(&other.numbers);
        // A comparison with NaN is false, so NaN is a difference.
        let same = |(a, b): &(&f64, &f64)| (*a - *b).abs() <= tolerance;
        if let Some((a, b)) = pairs.find(|pair| !same(pair)) {
            return Some(format!("a number is {a}, not {b} (tolerance {tolerance})"));
        }
        if self.bytes == other.bytes {
            return None;
        }
        let place = self.bytes.iter().zip(&other.bytes).position(|(a, b)| a != b);
        let [ours, theirs] = [self, other].map(|outcome| outcome.bytes.len());
        Some(format!("files of {ours} and {theirs} bytes first differ at {place:?}"))
    }
}

/// A launcher for a run.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Ours,
    Theirs,
}

/// One run to do.
struct PlannedRun<'a> {
    program: &'a PackagedProgram,
    side: Side,
    ranks: usize,
}

/// An outcome with its time in seconds.
type TimedResult = Result<(ProgramResult, f64), String>;

/// Runs all programs, two at a time, and compares their outcomes. A program whose packages are not there, or that fails with its own
/// MPI library, is not run.
pub(super) fn compare(
    folders: &PackageFolders,
    programs: &[&PackagedProgram],
    tally: &mut Tally,
) -> Result<(), String> {
    let mut pieces = Vec::new();
    for &program in programs {
        if let Err(reason) = command(folders, program, Side::Ours, program.command, 1) {
            tally.not_run.push(format!("{}: {reason}", program.name));
            continue;
        }
        for (side, counts) in [(Side::Theirs, program.theirs), (Side::Ours, program.ranks)] {
            pieces.extend(counts.iter().map(|&ranks| PlannedRun { program, side, ranks }));
        }
    }
    let results = two_at_a_time(&pieces, |piece| piece.run(folders));
    let mut failed = Vec::new();
    for (piece, ours) in pieces.iter().zip(&results).filter(|(piece, _)| piece.side == Side::Ours) {
        let PackagedProgram { name, theirs, .. } = piece.program;
        let ranks = piece.ranks;
        // Numbers of ranks are in ascending order.
        let other = theirs.iter().copied().filter(|&n| n <= ranks).max().and_then(|count| {
            let is_other = |other: &PlannedRun<'_>| {
                let same_program = std::ptr::eq(other.program, piece.program);
                same_program && other.side == Side::Theirs && other.ranks == count
            };
            Some((count, results.get(pieces.iter().position(is_other)?)?))
        });
        match piece.verdict(ours, other) {
            Ok(line) => {
                println!("ok   {name} on {ranks} ranks: {line}");
                tally.passed += 1;
            }
            Err(Unequal::NotRun(reason)) => tally.not_run.push(format!("{name}: {reason}")),
            Err(Unequal::Failed(reason)) => {
                failed.push(format!("{name} on {ranks} ranks: {reason}"))
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// A comparison without success.
enum Unequal {
    NotRun(String),
    Failed(String),
}

impl PlannedRun<'_> {
    /// Compares a run with Weft with the run on `count` ranks of the other library.
    fn verdict(
        &self,
        ours: &TimedResult,
        other: Option<(usize, &TimedResult)>,
    ) -> Result<String, Unequal> {
        let (ours, seconds) = ours.as_ref().map_err(|e| Unequal::Failed(e.clone()))?;
        let Some((count, theirs)) = other else {
            return Ok(format!("its own checks pass ({seconds:.1} s)"));
        };
        let mpi = self.program.mpi;
        let failed = |e: &String| Unequal::NotRun(format!("it fails with {mpi:?}: {e}"));
        let (theirs, other_seconds) = theirs.as_ref().map_err(failed)?;
        match ours.differs(theirs, self.program.tolerance) {
            Some(difference) => Err(Unequal::Failed(difference)),
            None => Ok(format!(
                "as with {mpi:?} on {count} ({seconds:.1} s, with {mpi:?} {other_seconds:.1} s)"
            )),
        }
    }

    fn run(&self, folders: &PackageFolders) -> TimedResult {
        let PlannedRun { program, side, ranks } = *self;
        let end = if side == Side::Ours { "weft" } else { "own" };
        let name = program.name.replace([' ', '\'', ',', '/'], "-");
        let folder = folders.work.join("runs").join(format!("{name}-{ranks}-{end}"));
        prepare(folders, program, ranks, &folder)?;
        let run = |words, ranks| {
            let mut command = command(folders, program, side, words, ranks)?;
            command.current_dir(&folder);
            quiet(&mut merged(command))
        };
        if !program.before.is_empty() {
            run(program.before, 1)?;
        }
        let began = Instant::now();
        let output = run(program.command, ranks)?;
        let seconds = began.elapsed().as_secs_f64();
        let outcome = (program.outcome)(&PackagedRun { ranks, output, folder })?;
        Ok((outcome, seconds))
    }
}

/// Empties a run's folder, and writes the program's files.
fn prepare(
    folders: &PackageFolders,
    program: &PackagedProgram,
    ranks: usize,
    folder: &Path,
) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    if folder.is_dir() {
        fs::remove_dir_all(folder).map_err(failed)?;
    }
    fs::create_dir_all(folder).map_err(failed)?;
    if !program.data.is_empty() {
        for entry in fs::read_dir(folders.word(program.data)?).map_err(failed)?.flatten() {
            if entry.path().is_file() {
                fs::copy(entry.path(), folder.join(entry.file_name())).map_err(failed)?;
            }
        }
    }
    let rows = if ranks >= 4 { 2 } else { 1 };
    for (name, text) in program.files {
        let text = text.replace("{rows}", &rows.to_string());
        let text = text.replace("{columns}", &(ranks / rows).to_string());
        let text = text.replace("{ranks}", &ranks.to_string());
        let path = folder.join(name);
        path.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
        fs::write(path, text).map_err(failed)?;
    }
    Ok(())
}

/// Returns the command of a run.
fn command(
    folders: &PackageFolders,
    program: &PackagedProgram,
    side: Side,
    words: &[&str],
    ranks: usize,
) -> Result<Command, String> {
    let mut command = match side {
        Side::Ours => folders.ours(program.mpi, ranks)?,
        Side::Theirs => folders.theirs(program.mpi, ranks)?,
    };
    for word in words {
        command.arg(folders.word(word)?);
    }
    for (name, value) in program.settings {
        command.env(name, folders.word(value)?);
    }
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_differ_in_text_numbers_and_bytes() {
        let outcome = |text: &str, number, byte| ProgramResult {
            text: text.to_owned(),
            numbers: vec![number],
            bytes: vec![1, byte],
        };
        let first = outcome("x", 1.0, 2);
        assert_eq!(first.differs(&outcome("x", 1.0 + 1e-7, 2), 1e-6), None);
        assert!(first.differs(&outcome("y", 1.0, 2), 1e-6).unwrap().contains("not\ny"));
        assert!(first.differs(&outcome("x", 1.0 + 1e-5, 2), 1e-6).unwrap().contains("number"));
        assert!(first.differs(&outcome("x", f64::NAN, 2), 1e-6).is_some());
        assert!(first.differs(&outcome("x", 1.0, 3), 1e-6).unwrap().contains("Some(1)"));
        assert!(
            first
                .differs(&ProgramResult { text: "x".to_owned(), ..ProgramResult::default() }, 1.0)
                .is_some()
        );
    }
}
