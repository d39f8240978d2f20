//! `--files`: reads and writes of files, beside the peers' ROMIO and OMPIO.

use super::plan::Case;
use std::collections::BTreeSet;

/// Where files lie, and the option that says so. A folder in memory measures the library; one on a device, with a page cache
/// before it, what programs have.
const PLACES: [(&str, &[&str]); 2] =
    [("tmpfs", &["--folder", "/dev/shm"]), ("disk", &["--folder", "/var/tmp"])];

/// Program, ranks, sizes, how much longer than usual each size takes, and whether it is run on the disk alone.
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

/// The cases of the benchmarks asked for (all if `asked` is empty); `seconds` is the time for each size of a quick one.
pub fn cases(asked: &[String], seconds: f64) -> Result<Vec<Case>, String> {
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
            let case = |&ranks: &usize| Case {
                about,
                options,
                ..Case::new(program, ranks, sizes.to_owned(), seconds * factor)
            };
            cases.extend(ranks.iter().map(case));
        }
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_has_a_source_and_each_case_a_title_of_its_own() {
        let all = cases(&[], 0.1).unwrap();
        for case in &all {
            let source = crate::root().join("bench").join(case.program).with_extension("c");
            assert!(source.exists(), "{}", source.display());
        }
        let titles: BTreeSet<_> = all.iter().map(Case::title).collect();
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
