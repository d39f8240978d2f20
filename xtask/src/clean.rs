//! Checks for names of processors and for measured times in crates above the fabrics, and for process-wide state in crates under
//! `abi`.
//!
//! A choice that depends on the name of a processor, or on one measured number, is right only on the machine of the measurement.
//! Such a choice belongs in a model or a map, which name their source. A static is shared by all ranks of a simulation. The
//! remaining violations are listed here. The lists may only shrink: an entry whose violation is gone is also a fault.

use crate::layers;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Crates above the fabrics, which must not depend on a machine.
const ABOVE: [&str; 6] = ["channel", "collective", "datatype", "p2p", "process", "rma"];

/// Names of makers and of their processors, in lower case. Only whole words match.
const MAKERS: [&str; 14] = [
    "intel", "amd", "xeon", "epyc", "ryzen", "zen", "zen2", "zen3", "zen4", "zen5", "skylake",
    "sapphire", "milan", "graviton",
];

/// Files of the crates in [`ABOVE`] that still name a maker or a measured time.
const KNOWN_FIGURES: &[&str] = &[];

/// Files under `abi` that still have statics.
const KNOWN_STATICS: &[&str] = &[];

/// Allowed statics: file, name, and the reason why the static is allowed.
const ALLOWED: &[(&str, &str, &str)] = &[
    (
        "crates/bootstrap/src/threads.rs",
        "JOBS",
        "numbers jobs of threads, whose names must differ in a process",
    ),
    (
        "crates/collective/src/catalog/table.rs",
        "ALGORITHMS",
        "the catalogue: a table that nobody writes",
    ),
    (
        "crates/fabric-sim/src/sim.rs",
        "ORIGIN",
        "the moment from which a simulated world counts: written once, the same for all",
    ),
    (
        "crates/fabric-sim/src/sim.rs",
        "BELL",
        "a doorbell that nobody rings: the trait asks for one, virtual time needs none",
    ),
    (
        "crates/patterns/src/rank/together.rs",
        "BASE",
        "the moment from which real processes count: written once",
    ),
];

/// Name of a static that contains a pattern's description, which never changes. This static is allowed in every file of `patterns`.
const ABOUT: &str = "ABOUT";

/// A place that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
struct CleanFault {
    line: usize,
    what: String,
}

/// Finds makers' names and measured times in a source text, in code or comments.
fn figures(source: &str) -> Vec<CleanFault> {
    let mut faults = Vec::new();
    let lines: Vec<String> = source.lines().map(str::to_lowercase).collect();
    for (number, line) in lines.iter().enumerate() {
        let maker = words(line).find(|word| MAKERS.contains(word));
        let line_of = number + 1;
        if let Some(maker) = maker {
            faults.push(CleanFault {
                line: line_of,
                what: format!("the name of a processor, {maker}"),
            });
        }
        let Some((_, comment)) = line.split_once("//") else { continue };
        // A comment may continue in the next line.
        let next = lines.get(number + 1).map_or("", |l| l.trim_start());
        let more =
            if next.starts_with("//") { next.trim_start_matches(['/', '!', ' ']) } else { "" };
        if tells_a_time(&format!("{} {more}", comment.trim_end()), comment.trim_end().len()) {
            faults.push(CleanFault { line: line_of, what: "a measured time".to_owned() });
        }
    }
    faults
}

/// Returns true if "measured" in the first `own` bytes of `comment` begins a report: `measured, 8 ranks`, `measured: 4 us`,
/// `measured on`. Other sentences with this word (`the machine it was measured on`) are not reports.
fn tells_a_time(comment: &str, own: usize) -> bool {
    const WORD: &str = "measured";
    comment.match_indices(WORD).any(|(at, _)| {
        let (before, after) = (comment[..at].trim_end(), &comment[at + WORD.len()..]);
        let sentence = ["was", "were", "is", "are", "be"].iter().any(|verb| before.ends_with(verb));
        at < own
            && !sentence
            && (after.starts_with([',', ':']) || after.trim_start().starts_with("on "))
    })
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Returns the statics of a source text by name, including thread-local statics. Ignores the text after a line that begins with
/// `#[cfg(test)]`.
fn statics(source: &str) -> Vec<(String, CleanFault)> {
    let own = source.lines().take_while(|line| *line != "#[cfg(test)]").enumerate();
    own.filter_map(|(number, line)| {
        let item = line.trim_start();
        let item = match item.strip_prefix("pub") {
            Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1.trim_start(),
            Some(rest) => rest.trim_start(),
            None => item,
        };
        let rest = item.strip_prefix("static ")?;
        let rest = rest.strip_prefix("mut ").unwrap_or(rest);
        let name = rest.split(':').next()?.trim().to_owned();
        let what = format!("static {name}");
        Some((name, CleanFault { line: number + 1, what }))
    })
    .collect()
}

/// Compares the files that have findings with the known files. Reports other files that have findings, and known files that have no
/// findings any more.
fn judge(found: &[(String, CleanFault)], known: &[&str], rule: &str) -> Vec<String> {
    let files: BTreeSet<&str> = found.iter().map(|(file, _)| file.as_str()).collect();
    let fresh = found.iter().filter(|(file, _)| !known.contains(&file.as_str()));
    let mut told: Vec<_> =
        fresh.map(|(file, f)| format!("{file}:{}: {}: {rule}", f.line, f.what)).collect();
    let gone = known.iter().filter(|file| !files.contains(*file));
    told.extend(gone.map(|file| {
        format!("{file} is clean: strike it from the known ones in xtask/src/clean.rs")
    }));
    told
}

/// Returns the source files of a crate, as paths from the root, without tests.
fn sources(name: &str) -> Result<Vec<(String, String)>, String> {
    let mut all = Vec::new();
    let folder = crate::root().join("crates").join(name).join("src");
    walk(&folder, &mut |path| {
        let file = path.strip_prefix(crate::root()).unwrap_or(path).display().to_string();
        let test = file.contains("/tests/") || file.ends_with("tests.rs");
        if file.ends_with(".rs") && !test {
            all.push((
                file,
                fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?,
            ));
        }
        Ok(())
    })?;
    if all.is_empty() { Err(format!("no source in {}", folder.display())) } else { Ok(all) }
}

fn walk(folder: &Path, each: &mut impl FnMut(&Path) -> Result<(), String>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for path in entries.flatten().map(|e| e.path()) {
        if path.is_dir() { walk(&path, each)? } else { each(&path)? }
    }
    Ok(())
}

/// Checks the sources of the workspace.
pub fn check() -> Result<(), String> {
    let mut found = Vec::new();
    for name in ABOVE {
        for (file, text) in sources(name)? {
            found.extend(figures(&text).into_iter().map(|fault| (file.clone(), fault)));
        }
    }
    let mut faults = judge(&found, KNOWN_FIGURES, "that is for a model or a map to know");
    let (mut found, mut unused) = (Vec::new(), ALLOWED.to_vec());
    let there = |name: &&str| crate::root().join("crates").join(name).exists();
    let below = layers::under("weft-abi").map(|name| name.trim_start_matches("weft-"));
    for name in below.filter(there) {
        for (file, text) in sources(name)? {
            for (item, fault) in statics(&text) {
                let allowed = |(at, of, _): &(&str, &str, &str)| *at == file && *of == item;
                let pattern = item == ABOUT && file.starts_with("crates/patterns/");
                if !pattern && !ALLOWED.iter().any(allowed) {
                    found.push((file.clone(), fault));
                }
                unused.retain(|entry| !allowed(entry));
            }
        }
    }
    faults.extend(judge(&found, KNOWN_STATICS, "all ranks of a simulation would share it"));
    faults.extend(
        unused
            .iter()
            .map(|(file, name, _)| format!("{file} has no static {name}: it need not be allowed")),
    );
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_clean() {
        check().unwrap();
    }

    #[test]
    fn makers_are_found_as_words() {
        let lines = |source: &str| figures(source).iter().map(|f| f.line).collect::<Vec<_>>();
        assert_eq!(lines("let a = 1;\n// as AMD does\nfn is_intel() {}"), [2, 3]);
        assert_eq!(lines("// frozen, intelligence, the amdahl law"), [0; 0]);
    }

    #[test]
    fn a_time_is_one_whose_comment_reports_it() {
        let found = |source: &str| !figures(source).is_empty();
        assert!(found("// quicker (measured: 4 us for 5)"));
        assert!(found("//! (Measured, half a round trip: 1 us)"));
        assert!(found("/// fewer (measured\n/// on two processors: 3)"));
        assert!(found("/// fewer (measured on a laptop)"));
        assert!(!found("/// The machine it was measured on: a name."));
        assert!(!found("/// What was measured: times."));
        assert!(!found("let measured: f64 = 1.0;"));
    }

    #[test]
    fn statics_are_found_wherever_they_stand() {
        let source = "pub static A: u8 = 1;\nfn f(x: &'static str) {\n    static mut B: u8 = 2;\n}\npub(crate) static C: u8 = 3;\n\
                      const D: u8 = 4;\n#[cfg(test)]\nmod tests {\n    static E: u8 = 5;\n}\n";
        let names: Vec<_> = statics(source).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["A", "B", "C"]);
    }

    #[test]
    fn what_is_new_and_what_is_gone_is_told() {
        let found = [("a.rs".to_owned(), CleanFault { line: 3, what: "static A".to_owned() })];
        assert!(judge(&found, &["a.rs"], "no").is_empty());
        assert!(judge(&found, &[], "no")[0].starts_with("a.rs:3: static A"));
        assert!(judge(&[], &["a.rs"], "no")[0].contains("strike"));
    }
}
