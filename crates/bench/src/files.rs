//! `--files`: reads and writes of files, compared with the peers' ROMIO and OMPIO.

use super::job::BenchJob;
use super::library::BenchLibrary;
use super::library_kind::LibraryKind;
use super::output::save;
use super::plan::BenchCase;
use super::ratios;
use super::results::Results;
use super::{BenchArgs, plot, root};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// Places of the files, with the option for each. A folder in memory measures the library. A folder on a device, behind the page
/// cache, shows the speed that programs see.
const PLACES: [(&str, &[&str]); 2] =
    [("tmpfs", &["--folder", "/dev/shm"]), ("disk", &["--folder", "/var/tmp"])];

/// Program, ranks, sizes, factor on the usual time of each size, and true if it runs only on the disk.
type Entry = (&'static str, &'static [usize], &'static str, f64, bool);

const ENTRIES: &[Entry] = &[
    ("file_block_write", &[2, 4], "64K,1M,16M", 2.0, false),
    ("file_block_read", &[2, 4], "64K,1M,16M", 2.0, false),
    ("file_block_sync", &[2], "1M,16M", 5.0, true),
    ("file_strided_write", &[2, 4, 8], "8,64,512,4K", 2.0, false),
    ("file_strided_read", &[2, 4, 8], "8,64,512,4K", 2.0, false),
    ("file_alone_write", &[2, 4], "8,64,512,4K", 2.0, false),
    ("file_alone_read", &[2, 4], "8,64,512,4K", 2.0, false),
    ("file_small_write", &[2], "8,512,4K", 1.0, false),
    ("file_small_read", &[2], "8,512,4K", 1.0, false),
    ("file_shared_write", &[2, 4], "8,512,4K", 2.0, false),
    ("file_open", &[1, 2, 4], "0", 2.0, false),
];

/// Returns the cases of the requested benchmarks (all if `asked` is empty). `seconds` is the time for each size of a case with
/// factor 1.
pub fn cases(asked: &[String], seconds: f64) -> Result<Vec<BenchCase>, String> {
    let names: BTreeSet<&str> = ENTRIES.iter().map(|(program, ..)| *program).collect();
    if let Some(unknown) = asked.iter().find(|a| !names.contains(a.as_str())) {
        let all: Vec<_> = names.into_iter().collect();
        return Err(format!("no benchmark of files '{unknown}'; there are {}", all.join(", ")));
    }
    let mut cases = Vec::new();
    for &(program, ranks, sizes, factor, disk) in ENTRIES {
        if !asked.is_empty() && !asked.iter().any(|a| a == program) {
            continue;
        }
        for (about, options) in PLACES.into_iter().filter(|(about, _)| !disk || *about == "disk") {
            let case = |&ranks: &usize| BenchCase {
                about,
                options,
                ..BenchCase::new(program, ranks, sizes.to_owned(), seconds * factor)
            };
            cases.extend(ranks.iter().map(case));
        }
    }
    Ok(cases)
}

/// Programs whose figures depend on the system's copies or on the device, which are the same for all libraries.
const COPIED: [&str; 3] = ["file_block_write", "file_block_read", "file_block_sync"];

/// Minimum share of the best peer's rate, if a copy or a device decides.
const LEVEL: f64 = 0.95;

/// Counts the figures that meet the aim, and all figures: first those that the library decides, then those that it does not.
fn met(cases: &[BenchCase], libraries: &[BenchLibrary], results: &Results) -> [(usize, usize); 2] {
    let ours = |library: usize| libraries[library].kind == LibraryKind::Weft;
    let mut counts = [(0, 0); 2];
    for row in &results.rows {
        let Some(times) = ratios::ratio(row, ours) else { continue };
        let copied = COPIED.contains(&cases[row.case].program);
        let good = if copied { times * LEVEL <= 1.0 } else { times < 1.0 };
        let (some, all) = &mut counts[usize::from(copied)];
        (*some, *all) = (*some + usize::from(good), *all + 1);
    }
    counts
}

/// Returns true if everything was measured as it has to be for publication.
pub fn is_whole(args: &BenchArgs) -> bool {
    let usual = args.benchmarks.is_empty() && args.ranks.is_empty() && args.sizes.is_none();
    args.files && usual && !args.quick && !args.quickest && args.rounds() >= 7
}

/// A finished measurement, for publication.
pub struct FilesReport<'r> {
    /// Text of the ratios.
    pub short: &'r str,
    /// Text of all numbers.
    pub all: &'r str,
    pub rounds: usize,
    pub cases: &'r [BenchCase],
    pub libraries: &'r [BenchLibrary],
    pub results: &'r Results,
}

/// Writes `files.md` and `files.svg`. Returns a text that says where the files are.
pub fn publish(report: &FilesReport<'_>) -> Result<String, String> {
    let folder = root().join("bench/results");
    save(&folder.join("files.md"), &document(report))?;
    plot::write(&folder.join("files.svg"), report.cases, report.libraries, report.results)?;
    Ok(format!("{}: files.md, files.svg", folder.display()))
}

fn document(report: &FilesReport<'_>) -> String {
    let FilesReport { short, all, rounds, cases, libraries, results } = *report;
    let date = BenchJob::new(Path::new("date")).args(["-u", "+%F"]).run(Duration::from_secs(5));
    let versions: Vec<_> = libraries
        .iter()
        .filter(|library| library.kind != LibraryKind::Weft)
        .map(|library| format!("{} ({})", library.name, library.version))
        .collect();
    let [(ahead, own), (level, copied)] = met(cases, libraries, results);
    let mut text = String::new();
    let _ = write!(
        text,
        "# Files, beside ROMIO and OMPIO\n\n\
         `cargo xtask bench --files`, {}: medians of {rounds} rounds in turn, without hints, on tmpfs (/dev/shm) and on what\n\
         /var/tmp lies on, through the page cache but for file_block_sync. {}. [Picture](files.svg).\n\n\
         Where the library decides (pieces, small accesses, the shared pointer, opening) Weft is ahead of both in {ahead} of {own}\n\
         figures; where the system's copies or the device decide (file_block_*), it has {LEVEL} of the best or more in {level} of {copied}.\n\n\
         ```\n{}\n```\n\nAll figures:\n\n```\n{}\n```\n",
        date.unwrap_or_default().trim(),
        versions.join(", "),
        short.trim_end(),
        all.trim_end()
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_may_be_level_and_the_library_must_be_ahead() {
        let library = |kind| BenchLibrary { kind, ..BenchLibrary::default() };
        let libraries = [library(LibraryKind::Weft), library(LibraryKind::Mpich)];
        let asked = ["file_block_read", "file_open"].map(str::to_owned);
        let cases = cases(&asked, 0.1).unwrap();
        let open = cases.iter().position(|case| case.program == "file_open").unwrap();
        let mut results = Results::default();
        // Rates of a copy, and times of the library. Both are 3 per cent worse than the peer's.
        for (case, [mine, other], unit) in [(0, [97, 100], "GB/s"), (open, [103, 100], "us")] {
            for (library, value) in [mine, other].into_iter().enumerate() {
                let line = format!("{{\"size\":8,\"value\":{value},\"unit\":\"{unit}\"}}");
                results.add(case, library, None, &line).unwrap();
            }
        }
        assert_eq!(met(&cases, &libraries, &results), [(0, 1), (1, 1)]);
        let text = document(&FilesReport {
            short: "RATIOS",
            all: "TABLE",
            rounds: 7,
            cases: &cases,
            libraries: &libraries,
            results: &results,
        });
        assert!(text.contains("in 0 of 1") && text.contains("in 1 of 1"), "{text}");
        assert!(text.contains("RATIOS") && text.contains("TABLE"), "{text}");
    }

    #[test]
    fn a_look_is_not_published() {
        #[derive(clap::Parser)]
        struct Whole {
            #[command(flatten)]
            args: BenchArgs,
        }
        let whole = |words: &str| {
            use clap::Parser;
            is_whole(&Whole::parse_from(words.split(' ')).args)
        };
        assert!(whole("bench --files"));
        for words in ["--quick", "file_open", "--ranks 2", "--rounds 3", "--sizes 8"] {
            assert!(!whole(&format!("bench --files {words}")), "{words}");
        }
        assert!(!whole("bench --rows"));
    }

    #[test]
    fn each_program_has_a_source_and_each_case_a_title_of_its_own() {
        let all = cases(&[], 0.1).unwrap();
        for case in &all {
            let source = crate::root().join("bench").join(case.program).with_extension("c");
            assert!(source.exists(), "{}", source.display());
        }
        let titles: BTreeSet<_> = all.iter().map(BenchCase::title).collect();
        assert_eq!(titles.len(), all.len());
        assert!(all.len() > ENTRIES.len());
    }

    #[test]
    fn what_must_reach_a_device_is_not_measured_in_memory() {
        let sync = cases(&["file_block_sync".to_owned()], 0.1).unwrap();
        assert!(!sync.is_empty() && sync.iter().all(|case| case.about == "disk"));
        assert!(cases(&["latency".to_owned()], 0.1).unwrap_err().contains("file_open"));
    }
}
