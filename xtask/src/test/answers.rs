//! Comparison of this library with other libraries of the standard ABI. A program (`tests/c/answers`) runs on each library and asks
//! about random datatypes, topologies, groups, infos, statuses, packed bytes and error classes.
//!
//! Every answer is compared. A different answer must be listed in `tests/c/answers/differences.csv`, with the section of the
//! standard that requires or allows this library's answer.

use super::c_programs::list;
use super::tools::quiet;
use crate::root;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const RANKS: usize = 4;

/// Seeds of the random questions. `WEFT_SEED` replaces both.
const SEEDS: [&str; 2] = ["1", "2"];

/// Minimum number of answers for a seed.
const LEAST: usize = 20_000;

/// Another library of the standard ABI.
pub struct Other {
    /// Name of the library in the list of differences.
    pub name: &'static str,
    /// Folder that has `bin/mpiexec`.
    pub prefix: PathBuf,
    /// Folders with the library's files. `libmpi_abi.so.1` is in the first folder.
    pub libraries: Vec<PathBuf>,
}

/// A line of the list of differences.
#[derive(Deserialize)]
struct AllowedDifference {
    /// A library's name, or `any`.
    library: String,
    /// First part of the questions, with `*` for any text.
    question: String,
    reason: String,
}

/// Runs both libraries and compares their answers. Returns the number of answers.
pub fn run(prefix: &Path, other: &Other) -> Result<usize, String> {
    let allowed = differences(&root().join("tests/c/answers/differences.csv"))?;
    let folder = root().join("target/test-answers");
    let program = folder.join("answers");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut compile = Command::new(prefix.join("bin/mpicc"));
    compile.args(["-O1", "-g", "-Wall", "-Werror"]).arg("-o").arg(&program);
    quiet(compile.args(list(&root().join("tests/c/answers"), "c")?))?;

    let mut seeds = SEEDS.map(str::to_owned).to_vec();
    if let Ok(seed) = std::env::var("WEFT_SEED") {
        seeds = vec![seed];
    }
    let least = LEAST * seeds.len();
    let (mut all, mut used) = (0, BTreeSet::new());
    for seed in seeds {
        let mut ours = Command::new(prefix.join("bin/mpiexec"));
        ours.env("LD_LIBRARY_PATH", prefix.join("lib"));
        let ours = asked(ours, &program, &seed, &folder, "weft")?;
        let mut theirs = Command::new(other.prefix.join("bin/mpiexec"));
        let paths = std::env::join_paths(&other.libraries).map_err(|e| e.to_string())?;
        theirs.env("LD_LIBRARY_PATH", paths).env("I_MPI_ROOT", &other.prefix);
        theirs.env("I_MPI_FABRICS", "shm").env("I_MPI_PIN", "off");
        let theirs = asked(theirs, &program, &seed, &folder, other.name)?;
        for (rank, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            let place = format!("seed {seed}, rank {rank}");
            all += compare(ours, theirs, &allowed, other.name, &mut used)
                .map_err(|e| format!("{place}: {e}"))?;
        }
    }
    for (line, difference) in allowed.iter().enumerate() {
        // Only MPICH answers all questions, so only with MPICH all lines of the list must be used.
        if difference.library == "any" && !used.contains(&line) && other.name == "mpich" {
            return Err(format!("no answer differs any longer: {}", difference.question));
        }
    }
    if all >= least {
        Ok(all)
    } else {
        Err(format!("only {all} answers were compared, not {least}"))
    }
}

/// Runs the program and reads the answers of each rank.
fn asked(
    mut mpiexec: Command,
    program: &Path,
    seed: &str,
    folder: &Path,
    name: &str,
) -> Result<Vec<String>, String> {
    let out = folder.join(name);
    let _ = fs::remove_dir_all(&out);
    fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    mpiexec.args(["-n", &RANKS.to_string()]).arg(program).arg(seed).arg(&out);
    if name == "intel" {
        mpiexec.arg("legal");
    }
    quiet(&mut mpiexec).map_err(|e| format!("{name}, seed {seed}: {e}"))?;
    let read = |rank: usize| {
        let path = out.join(rank.to_string());
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        match text.lines().last() {
            Some("all is asked = 1") => Ok(text),
            last => Err(format!("{name}, seed {seed}: rank {rank} ended after {last:?}")),
        }
    };
    (0..RANKS).map(read).collect()
}

fn differences(path: &Path) -> Result<Vec<AllowedDifference>, String> {
    let wrong = |e: csv::Error| format!("{}: {e}", path.display());
    let lines = csv::Reader::from_path(path).map_err(wrong)?.into_deserialize();
    let all: Vec<AllowedDifference> = lines.collect::<Result<_, _>>().map_err(wrong)?;
    match all.iter().find(|d| !d.reason.starts_with(|c: char| c.is_ascii_digit())) {
        Some(bare) => Err(format!("{}: the reason names no section", bare.question)),
        None => Ok(all),
    }
}

/// Sorts the answers by question. A repeated question gets a number.
fn by_question(text: &str) -> BTreeMap<String, &str> {
    let mut all = BTreeMap::new();
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for (question, answer) in text.lines().filter_map(|line| line.rsplit_once(" = ")) {
        let n = times.entry(question).or_default();
        *n += 1;
        all.insert(if *n == 1 { question.to_owned() } else { format!("{question}#{n}") }, answer);
    }
    all
}

/// Compares the answers of one rank, and notes the lines of the list that were used.
fn compare(
    ours: &str,
    theirs: &str,
    allowed: &[AllowedDifference],
    library: &str,
    used: &mut BTreeSet<usize>,
) -> Result<usize, String> {
    let (ours, theirs) = (by_question(ours), by_question(theirs));
    let questions: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let mut wrong = Vec::new();
    for &question in &questions {
        let (a, b) = (ours.get(question), theirs.get(question));
        if a == b {
            continue;
        }
        let fits = |d: &AllowedDifference| {
            (d.library == "any" || d.library == library) && matches(&d.question, question)
        };
        match allowed.iter().position(fits) {
            Some(line) => drop(used.insert(line)),
            None => wrong.push(format!("{question}: ours {a:?}, theirs {b:?}")),
        }
    }
    let count = wrong.len();
    wrong.truncate(20);
    match count {
        0 => Ok(questions.len()),
        _ => Err(format!("{count} answers differ from {library}'s:\n{}", wrong.join("\n"))),
    }
}

/// Returns true if `text` matches `pattern`, in which `*` stands for any text. Ignores the number of a repeated question.
fn matches(pattern: &str, text: &str) -> bool {
    let text = text.rsplit_once('#').map_or(text, |(first, _)| first);
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
        last = Some(part);
    }
    rest.is_empty() || last.is_some_and(|part| part.is_empty() || text.ends_with(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs with the libraries that `cargo xtask bench --make-peers target/peers` installs.
    #[test]
    #[ignore = "needs an installation in target/weft, and target/peers"]
    fn libraries_answer_alike() {
        let mut asked = 0;
        for name in ["mpich", "intel"] {
            let prefix = root().join("target/peers").join(name);
            if prefix.join("lib/libmpi_abi.so.1").exists() {
                let libraries = vec![prefix.join("lib"), prefix.join("lib/mpich")];
                let other = Other { name, prefix, libraries };
                run(&root().join("target/weft"), &other).unwrap();
                asked += 1;
            }
        }
        assert!(asked > 0, "no peer in target/peers");
    }

    #[test]
    fn patterns_match() {
        assert!(matches("type * bounds", "type 7 struct (1) (2) bounds"));
        assert!(matches("bad MPI_Pack(*", "bad MPI_Pack(buffer, 1)#2"));
        assert!(!matches("type * bounds", "type 7 struct true size"));
        assert!(!matches("type * bounds", "group 3 bounds"));
        assert!(matches("a", "a") && !matches("a", "ab"));
    }

    #[test]
    fn what_differs_is_found_unless_it_is_in_the_list() {
        let list = [AllowedDifference {
            library: "any".to_owned(),
            question: "grid *".to_owned(),
            reason: "8.5".to_owned(),
        }];
        let mut used = BTreeSet::new();
        let mut told = |a, b| compare(a, b, &list, "mpich", &mut used);
        assert_eq!(told("size = 4\nsize = 5\n", "size = 4\nsize = 5\n"), Ok(2));
        assert!(told("size = 4\nsize = 5\n", "size = 4\nsize = 6\n").is_err());
        assert!(told("size = 4\n", "size = 4\nmore = 6\n").is_err());
        assert_eq!(told("grid 1 = 4\n", "grid 1 = 5\n"), Ok(1));
        assert!(used.contains(&0));
    }
}
