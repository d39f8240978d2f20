//! Calls of every function of the headers of MPICH, Open MPI and the standard. The programs are generated from `tests/header`, built by
//! the `mpicc` of each library, and run on Weft and on the library of the header. A line that a program prints about a function must
//! be the same with all libraries. A function of a header that has no recipe is an error.

mod generator;
mod header;
mod missing_symbol;
mod recipes;
mod report;

use super::c_programs;
use super::lanes::two_at_a_time;
use super::tally::Tally;
use super::tools::quiet;
use crate::manual::data::ManualData;
use generator::{ApartCall, CallGenerator, ChapterProgram, unsupported};
use header::MpiHeader;
use recipes::RecipeBook;
use report::{CallLines, LibraryLines, lines};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A library with a header: name in the table of differences, and the compiler wrapper.
pub struct HeaderPeer {
    pub name: &'static str,
    pub mpicc: PathBuf,
}

/// Numbers of ranks.
const RANKS: [usize; 2] = [1, 2];

/// Arguments of each project's own mpiexec.
const OWN_ARGUMENTS: [(&str, &[&str]); 2] =
    [("mpich", &[]), ("openmpi", &["--allow-run-as-root", "--oversubscribe"])];

/// A built program of a chapter.
struct BuiltProgram {
    header: &'static str,
    chapter: String,
    path: PathBuf,
    /// Functions whose lines are expected from each rank.
    functions: Vec<String>,
    apart: Vec<ApartCall>,
    /// Functions that Weft does not support, and the sentences that it writes.
    sentences: Vec<(String, String)>,
}

/// A run of a program.
struct ProgramRun<'a> {
    program: &'a BuiltProgram,
    library: String,
    ranks: usize,
    apart: Option<&'a ApartCall>,
}

/// Builds the programs, runs them, and compares their lines.
pub fn run(prefix: &Path, peers: &[HeaderPeer], tally: &mut Tally) -> Result<(), String> {
    let book = RecipeBook::read()?;
    let programs = build(prefix, peers, &book)?;
    let runs = runs(&programs, peers);
    let folder = tempfile::tempdir().map_err(|e| format!("a folder for files: {e}"))?;
    let results = two_at_a_time(&runs, |run| run.lines(prefix, peers, &book, folder.path()));
    let (mut faults, mut count) = (Vec::new(), 0);
    let mut outcomes = Vec::new();
    for (run, result) in runs.iter().zip(results) {
        match result {
            Ok(lines) => {
                count += lines.len();
                let (library, ranks) = (run.library.clone(), run.ranks);
                outcomes.push((run, LibraryLines { library, ranks, lines }));
            }
            Err(error) => faults.push(error),
        }
    }
    for (run, outcome) in &outcomes {
        faults.extend(outcome.faults(&book.differences));
        let same = |other: &ProgramRun| {
            other.program.chapter == run.program.chapter
                && other.ranks == run.ranks
                && other.apart.map(|call| &call.function) == run.apart.map(|call| &call.function)
        };
        // Each library of the standard's header, and each project's own library, is compared with Weft's library of the same header.
        let reference = match run.library.strip_suffix("-own") {
            Some(header) => header,
            None if run.library == "standard" => continue,
            None => "standard",
        };
        let other = outcomes.iter().find(|(other, _)| same(other) && other.library == reference);
        if let Some((_, other)) = other {
            faults.extend(other.compare(outcome, &book.differences));
        }
    }
    if !faults.is_empty() {
        return Err(format!(
            "{} calls of headers' functions:\n{}",
            faults.len(),
            faults.join("\n")
        ));
    }
    for peer in peers {
        tally.passed += missing_symbol::check(prefix, peer, &out(peer.name)?)?;
        println!("ok   a symbol that Weft lacks is named, in programs built with {}", peer.name);
    }
    let functions: usize = programs.iter().map(|program| program.functions.len()).sum();
    let (differences, runs) = (book.differences.len(), runs.len());
    println!(
        "ok   {functions} functions of {} headers: {count} calls in {runs} jobs, {differences} known differences of libraries",
        peers.len() + 1
    );
    tally.passed += functions;
    Ok(())
}

/// Returns the folder for the programs of a header.
fn out(header: &str) -> Result<PathBuf, String> {
    let out = c_programs::folder()?.join("header").join(header);
    fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    Ok(out)
}

/// Generates and compiles the programs of all headers.
fn build(
    prefix: &Path,
    peers: &[HeaderPeer],
    book: &RecipeBook,
) -> Result<Vec<BuiltProgram>, String> {
    let data = ManualData::read()?;
    let unsupported = unsupported()?;
    let ours = HeaderPeer { name: "standard", mpicc: prefix.join("bin/mpicc") };
    let (mut sources, mut faults) = (Vec::new(), Vec::new());
    for peer in peers.iter().chain([&ours]) {
        let out = out(peer.name)?;
        let header = MpiHeader::read(&peer.mpicc, &out)?;
        let generator =
            CallGenerator { header: &header, book, data: &data, unsupported: &unsupported };
        let missing = generator.without_recipe();
        if !missing.is_empty() {
            return Err(format!("{}'s header: no recipe for {}", peer.name, missing.join(", ")));
        }
        write(&out.join("symbols.h"), &generator.symbols())?;
        for chapter in &book.chapters {
            let program = match generator.program(chapter) {
                Ok(program) => program,
                Err(error) => {
                    faults.push(error);
                    continue;
                }
            };
            if !program.functions.is_empty() {
                let path = out.join(&chapter.name);
                write(&path.with_extension("c"), &program.source)?;
                sources.push((peer, chapter.name.clone(), path, program));
            }
        }
    }
    if !faults.is_empty() {
        return Err(faults.join("\n"));
    }
    let built = two_at_a_time(&sources, |(peer, _, path, _)| compile(&peer.mpicc, path));
    let faults: Vec<_> = built.into_iter().filter_map(Result::err).collect();
    if !faults.is_empty() {
        return Err(faults.join("\n"));
    }
    let program =
        |(peer, chapter, path, program): (&HeaderPeer, String, PathBuf, ChapterProgram)| {
            let ChapterProgram { functions, apart, sentences, .. } = program;
            BuiltProgram { header: peer.name, chapter, path, functions, apart, sentences }
        };
    Ok(sources.into_iter().map(program).collect())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

fn compile(mpicc: &Path, path: &Path) -> Result<(), String> {
    let mut command = Command::new(mpicc);
    command.args(["-O0", "-w", "-std=gnu11", "-Werror=implicit-function-declaration"]);
    command.arg("-I").arg(recipes::folder()).arg("-I").arg(path.parent().unwrap_or(path));
    quiet(command.arg(path.with_extension("c")).arg("-o").arg(path)).map(drop)
}

fn runs<'a>(programs: &'a [BuiltProgram], peers: &[HeaderPeer]) -> Vec<ProgramRun<'a>> {
    let mut runs = Vec::new();
    for program in programs {
        let mut libraries = vec![program.header.to_owned()];
        if peers.iter().any(|peer| peer.name == program.header) && program.chapter != "extensions" {
            libraries.push(format!("{}-own", program.header));
        }
        for library in libraries {
            for ranks in RANKS {
                runs.push(ProgramRun { program, library: library.clone(), ranks, apart: None });
            }
            for call in &program.apart {
                let apart = Some(call);
                runs.push(ProgramRun { program, library: library.clone(), ranks: 1, apart });
            }
        }
    }
    runs
}

impl ProgramRun<'_> {
    /// Runs the program, and returns its lines.
    fn lines(
        &self,
        prefix: &Path,
        peers: &[HeaderPeer],
        book: &RecipeBook,
        folder: &Path,
    ) -> Result<CallLines, String> {
        let program = self.program;
        let folder = folder.join(format!("{}-{}-{}", self.library, program.chapter, self.ranks));
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let is_excluded = |name: &&String| {
            book.differences.iter().any(|d| d.skip && d.is_of(name, &self.library))
        };
        let excluded: Vec<_> = program.functions.iter().filter(is_excluded).cloned().collect();
        let own = peers.iter().find(|peer| self.library == format!("{}-own", peer.name));
        let mut job = match own {
            Some(peer) => own_job(peer),
            None => {
                let mut job = Command::new(prefix.join("bin/mpiexec"));
                job.args(["--timeout", "120"]);
                job
            }
        };
        job.arg("-n").arg(self.ranks.to_string()).arg(&program.path);
        job.args(self.apart.map(|call| &call.function));
        job.env("HEADER_CALLS_FOLDER", &folder).env("HEADER_CALLS_EXCLUDED", excluded.join(" "));
        let output = job.output().map_err(|e| format!("mpiexec: {e}"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        let found = lines(&said);
        let name = format!("{} of {} on {} ranks", program.chapter, self.library, self.ranks);
        let code = self.apart.map_or(0, |call| call.exit);
        if output.status.code() != Some(code) {
            let (said, errors) = (last(&said), last(&errors));
            return Err(format!("{name}: {}, expected {code}\n{said}{errors}", output.status));
        }
        let is_apart = |name: &String| program.apart.iter().any(|call| call.function == *name);
        let expected = program.functions.iter().filter(|name| match self.apart {
            Some(call) => call.function == **name && call.exit == 0,
            None => !is_apart(name) && !excluded.contains(name),
        });
        let keys =
            expected.flat_map(|name| (0..self.ranks).map(move |rank| format!("r{rank} {name}")));
        let missing: Vec<_> = keys.filter(|key| !found.contains_key(key)).collect();
        if !missing.is_empty() {
            let errors = last(&errors);
            return Err(format!("{name}: no line for {}\n{errors}", missing.join(", ")));
        }
        self.check_sentences(&errors).map_err(|error| format!("{name}: {error}"))?;
        Ok(found)
    }

    /// Compares the sentences about functions that are not supported with those of the data.
    fn check_sentences(&self, errors: &str) -> Result<(), String> {
        let is_apart = |name: &str| self.program.apart.iter().any(|call| call.function == name);
        let absent = self.program.sentences.iter().filter(|(function, sentence)| {
            let is_called = match self.apart {
                Some(call) => call.function == *function,
                None => !is_apart(function),
            };
            // Both names of a function write the sentence with the first name. mpiexec prints a line of several ranks once.
            let times = if self.apart.is_some() || self.ranks > 1 { 1 } else { 2 };
            is_called && errors.matches(sentence.as_str()).count() < times
        });
        let absent: Vec<_> = absent.map(|(function, _)| function.as_str()).collect();
        match absent.as_slice() {
            [] => Ok(()),
            absent => Err(format!("no sentence about {}", absent.join(", "))),
        }
    }
}

/// Returns the last lines of an output.
fn last(output: &str) -> String {
    let lines: Vec<_> = output.lines().collect();
    let last = &lines[lines.len().saturating_sub(4)..];
    last.iter().map(|line| format!("{line}\n")).collect()
}

fn own_job(peer: &HeaderPeer) -> Command {
    let mut job = Command::new("timeout");
    job.arg("120").arg(peer.mpicc.with_file_name("mpiexec"));
    let arguments = OWN_ARGUMENTS.iter().find(|(name, _)| *name == peer.name);
    job.args(arguments.map_or(&[][..], |(_, arguments)| arguments));
    job
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Useful during work on recipes: `cargo test -p xtask every_function_of_the_headers -- --ignored --nocapture`.
    #[test]
    #[ignore = "a part of cargo xtask test --only peers, which installs the libraries"]
    fn every_function_of_the_headers() {
        let mut tally = Tally::default();
        let peers = super::super::built::headers::header_peers().unwrap();
        run(&crate::demo::prefix(), &peers, &mut tally).unwrap();
        assert!(tally.passed > 1000);
    }
}
