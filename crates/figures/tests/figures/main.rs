//! Tests of `cargo figures` as a user runs it.
#![cfg(not(miri))]

mod findings;
mod page;
mod roles;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use weft_fabric_sim::Machine;

const WEFT: &str = env!("CARGO_BIN_EXE_weft-figures");
const PUBLISHED: &str = include_str!("../../../../figures/published.csv");
const SUMMARY: &str = include_str!("../../../../figures/summary.csv");
const RANGES: &str = include_str!("../../../../figures/ranges.csv");

/// Figures that must exist.
const FIGURES: [&str; 78] = [
    "kini-2.1-multicast",
    "kini-2.3",
    "kini-4.5a",
    "kini-4.5b",
    "kini-4.5c",
    "kini-4.5d",
    "kini-4.6a",
    "kini-4.6b",
    "kini-4.6c",
    "kini-4.6d",
    "kini-4.7",
    "kini-4.8a",
    "kini-4.8b",
    "kini-4.8c",
    "kini-4.8d",
    "kini-5.9",
    "kini-5.10",
    "kini-5.11",
    "kini-5.12",
    "kini-5.13",
    "kini-5.14",
    "kini-5.15a",
    "kini-5.15b",
    "kini-5.15c",
    "kini-5.15d",
    "kini-6.1a",
    "kini-6.1b",
    "kini-6.1c",
    "kini-6.1d",
    "collgm-3",
    "collgm-3-blocks",
    "collgm-6",
    "collgm-7",
    "collgm-8",
    "collgm-9",
    "collgm-10",
    "collgm-11",
    "collgm-12",
    "collgm-13",
    "collgm-barrier",
    "collgm-gather",
    "multirail-10",
    "multirail-11",
    "multirail-12",
    "multirail-13",
    "multirail-14",
    "multirail-15",
    "multirail-18",
    "multirail-19",
    "multirail-6",
    "multirail-7",
    "multirail-8",
    "multirail-9",
    "multirail-flags-em64t",
    "multirail-flags-ia32",
    "fence-halo",
    "fence-overlap",
    "fence-put",
    "fence-puts",
    "fence-zero",
    "rendezvous-10",
    "rendezvous-11a",
    "rendezvous-11b",
    "rendezvous-12a",
    "rendezvous-12b",
    "rendezvous-2",
    "rendezvous-3",
    "rendezvous-4",
    "rendezvous-5",
    "rendezvous-6",
    "rendezvous-7",
    "rendezvous-8",
    "rendezvous-9",
    "rendezvous-ranks",
    "acoll-allreduce",
    "acoll-bcast",
    "acoll-gather",
    "xhc-bcast",
];

/// Returns an empty directory for a test's files.
fn place(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("figures-{name}"));
    let _ = fs::remove_dir_all(&dir);
    let _ = fs::remove_file(&dir);
    dir
}

fn weft(args: &[&str]) -> Output {
    Command::new(WEFT).args(args).output().expect("the program runs")
}

/// Returns the text on standard error of a run that fails, and its exit code.
fn failure(args: &[&str]) -> (String, Option<i32>) {
    let output = weft(args);
    assert!(!output.status.success(), "{args:?} must fail");
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code())
}

fn draw(name: &str) -> PathBuf {
    let dir = place(name);
    let output = weft(&["--quick", "--out", dir.to_str().unwrap()]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let count = format!("{} figures; ", FIGURES.len());
    assert!(said.starts_with(&count) && said.contains("index.html"), "{said}");
    dir
}

/// Returns the files of one run, for all tests that only read them.
fn drawn() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| draw("drawn"))
}

fn records(text: &str) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    let owned = |r: csv::StringRecord| r.iter().map(str::to_owned).collect();
    reader.records().map(|r| owned(r.expect("every row has the same fields"))).collect()
}

fn table(dir: &Path, name: &str) -> Vec<Vec<String>> {
    let file = dir.join(format!("{name}.csv"));
    records(&fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display())))
}

/// Returns the value of `series` at `x`.
fn value(dir: &Path, figure: &str, series: &str, x: usize) -> f64 {
    let rows = table(dir, figure);
    let row = rows.iter().find(|r| r[0] == series && r[2] == x.to_string());
    row.unwrap_or_else(|| panic!("{figure} has no {series} at {x}"))[3].parse().unwrap()
}

#[test]
fn every_figure_is_a_table_a_picture_and_on_the_page() {
    let page = fs::read_to_string(drawn().join("index.html")).unwrap();
    for figure in FIGURES {
        let rows = table(drawn(), figure);
        assert_eq!(rows[0][..2], ["series", "machine"], "{figure}");
        assert!(rows.len() > 2, "{figure} has points");
        for row in &rows[1..] {
            let (x, y): (f64, f64) = (row[2].parse().unwrap(), row[3].parse().unwrap());
            assert!(x > 0.0 && y.is_finite() && y >= 0.0, "{figure}: {row:?}");
        }
        let svg = fs::read_to_string(drawn().join(format!("{figure}.svg"))).unwrap();
        let picture = roxmltree::Document::parse(&svg).unwrap_or_else(|e| panic!("{figure}: {e}"));
        let texts: Vec<_> = picture.descendants().filter_map(|n| n.text()).map(str::trim).collect();
        let axes = [&rows[0][2], &rows[0][3]];
        assert!(axes.iter().all(|axis| texts.contains(&axis.as_str())), "{figure}: {texts:?}");
        for row in &rows[1..] {
            assert!(texts.contains(&row[0].as_str()), "{figure} has {} in its legend", row[0]);
        }
        assert!(page.contains(&svg), "{figure} is on the page");
    }
    let outside = ["src=", "<link", "@import", "url("];
    assert!(outside.iter().all(|word| !page.contains(word)), "the page needs nothing else");
}

#[test]
fn baselines_have_every_group_size_of_both_clusters() {
    for (figure, series, most) in [
        ("kini-4.6a", "MPI-PE", 8),
        ("kini-4.6c", "MPI-PE", 16),
        ("kini-4.8a", "MPI-DS", 8),
        ("kini-4.8c", "MPI-DS", 16),
        ("kini-5.15a", "MPI-GB", 8),
        ("kini-5.15a", "MPI-PE", 8),
        ("kini-5.15c", "MPI-GB", 16),
        ("kini-5.15c", "MPI-PE", 16),
    ] {
        let mut before = 0.0;
        for nodes in 2..=most {
            let now = value(drawn(), figure, series, nodes);
            assert!(now > 0.0, "{figure}, {series}, {nodes} nodes");
            if nodes.is_power_of_two() {
                assert!(now > before, "{figure}: {series} grows from power to power of two");
                before = now;
            }
        }
    }
}

#[test]
fn the_summary_has_every_published_row_with_the_role_of_its_machine_file() {
    let (published, summary) = (records(PUBLISHED), table(drawn(), "summary"));
    assert_eq!(summary[0][6..], ["simulated", "role", "difference_percent", "holds", "reason"]);
    let first_six = |rows: &[Vec<String>]| rows.iter().map(|r| r[..6].to_vec()).collect::<Vec<_>>();
    assert_eq!(first_six(&summary), first_six(&published));

    let machines = roles::MACHINES.map(|name| Machine::load(name).unwrap());
    let mut roles = BTreeMap::new();
    for row in &summary[1..] {
        *roles.entry(row[7].clone()).or_insert(0) += 1;
        let of = |m: &Machine| m.evidence.role(&row[0], &row[1], &row[2], &row[3]);
        let role = machines.iter().find_map(of).expect("every row is in one machine file");
        let expected = if row[6].is_empty() { "missing" } else { role.name() };
        assert_eq!(row[7], expected, "{row:?}");
        match (row[6].parse::<f64>(), row[4].parse::<f64>()) {
            _ if row[6].is_empty() => assert_eq!(row[8], ""),
            (Ok(ours), Ok(theirs)) => {
                let percent = row[5].starts_with('%');
                let difference =
                    if percent { ours - theirs } else { 100.0 * (ours / theirs - 1.0) };
                let shown: f64 = row[8].parse().unwrap();
                // The simulated value has four digits.
                let most = 0.07 * (1.0 + difference.abs() / 100.0);
                assert!((shown - difference).abs() < most, "{row:?}");
            }
            _ => assert_eq!(row[8], if row[6] == row[4] { "yes" } else { "no" }),
        }
    }
    // Every published number has a simulated value.
    let known = ["by construction", "entailed", "fitted", "held-out", "informed"];
    assert_eq!(roles.keys().collect::<Vec<_>>(), known, "{roles:?}");
}

/// Fails if a change of the library moves a row.
#[test]
fn the_committed_summary_is_that_of_a_quick_run() {
    let (committed, now) = (records(SUMMARY), table(drawn(), "summary"));
    let moved: Vec<_> = now
        .iter()
        .filter(|row| !committed.contains(row))
        .map(|row| {
            let before = committed.iter().find(|other| other[..4] == row[..4]);
            let before = before.map_or("not there", |other| other[6].as_str());
            format!(
                "{}; {}; {} ({}): {before} before, {} now",
                row[0], row[2], row[3], row[7], row[6]
            )
        })
        .collect();
    let advice = "figures/README.md says what a row that moved needs (roles go one way); then \
                  `cargo figures --quick --out figs` and copy figs/summary.csv to figures/";
    assert!(moved.is_empty(), "{}\n{advice}", moved.join("\n"));
    assert_eq!(committed, now, "rows that are gone, or in another order; {advice}");
}

#[test]
fn the_committed_ranges_are_those_of_the_samples() {
    let dir = place("ranges");
    let output = weft(&["--ranges", "1", "--only", "multirail", "--out", dir.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stderr).contains("sample 1 of 1, about 0 min left"));
    let (committed, now) = (records(RANGES), table(&dir, "ranges"));
    assert!(now.len() > 30);
    for row in &now[1..] {
        let line = committed.iter().find(|line| line[..2] == row[..2]).expect("a line for the row");
        let advice = "remake figures/ranges.csv: cargo figures --ranges 32 --out figs";
        assert_eq!(line[2][..1], row[2], "{}: {advice}", row[1]);
    }
    assert!(!dir.join("summary.csv").exists(), "nothing else");
}

#[test]
fn two_runs_write_the_same_bytes() {
    let again = draw("again");
    let names = |dir: &Path| {
        let entries = fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name());
        let mut names: Vec<_> = entries.collect();
        names.sort();
        names
    };
    assert_eq!(names(drawn()), names(&again));
    for name in names(&again) {
        let same = fs::read(drawn().join(&name)).unwrap() == fs::read(again.join(&name)).unwrap();
        assert!(same, "{} differs from run to run", name.display());
    }
}

#[test]
fn marks_are_read_from_the_list_and_curves_are_not() {
    let dir = place("changed");
    let list = dir.with_extension("csv");
    let row = "\"cluster 1, small\",5.8,us";
    assert!(PUBLISHED.contains(row));
    fs::write(&list, PUBLISHED.replace(row, "\"cluster 1, small\",4.5,us")).unwrap();
    let (out, file) = (dir.to_str().unwrap(), list.to_str().unwrap());
    let output = weft(&["--quick", "--only", "kini", "--out", out, "--published", file]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(value(&dir, "kini-2.3", "published", 8), 4.5);
    assert_eq!(value(drawn(), "kini-2.3", "published", 8), 5.8);
    let write = |dir| value(dir, "kini-2.3", "RDMA write", 8);
    assert_eq!(write(&dir), write(drawn()));
    let page = fs::read_to_string(dir.join("index.html")).unwrap();
    assert!(page.contains("published 4.5 us: differs by 29.1 %"), "the page says how much");
    // Only the rows of the selected document.
    assert!(table(&dir, "summary")[1..].iter().all(|row| row[0] == "Kini"));
    assert!(!dir.join("rendezvous-3.svg").exists());
}

#[test]
fn sensitivity_names_the_parameters_that_move_a_result() {
    let rows = table(drawn(), "sensitivity");
    let change = |parameter: &str, result: &str| -> [f64; 2] {
        let found = rows.iter().find(|r| r[0] == "kini1" && r[1] == parameter && r[2] == result);
        let row = found.unwrap_or_else(|| panic!("{parameter} moves {result}"));
        [row[5].parse().unwrap(), row[6].parse().unwrap()]
    };
    // A barrier of 8 has 3 rounds of one send each in its 22.37 us.
    let [less, more] = change("rail.send.overhead", "barrier MPI-DS, 8 nodes");
    let machine = Machine::load("kini1").unwrap();
    let overhead = machine.rail[0].send.overhead.us();
    let expected = 100.0 * 0.3 * 3.0 * overhead / value(drawn(), "kini-4.8a", "MPI-DS", 8);
    assert!((less + expected).abs() < 0.06 && (more - expected).abs() < 0.06, "{less} {more}");
    let still = rows.iter().all(|row| row[0] == "rendezvous" || row[1] != "host.signal");
    assert!(still, "nobody signals in these");
}

#[test]
fn what_cannot_be_written_or_is_not_known_is_named() {
    let file = place("file");
    fs::write(&file, "in the way").unwrap();
    let inside = file.join("figures");
    let (error, code) = failure(&["--quick", "--out", inside.to_str().unwrap()]);
    assert!(error.contains(inside.to_str().unwrap()) && error.contains("--out"), "{error}");
    assert_eq!(code, Some(1));

    let (error, code) = failure(&["--out", "x", "--only", "kini,nobody"]);
    let known = ["nobody", "kini", "collgm", "multirail", "fence", "rendezvous"];
    assert!(known.iter().all(|word| error.contains(word)), "{error}");
    assert_eq!(code, Some(2));

    let dir = place("unknown");
    let list = dir.with_extension("csv");
    let out = dir.to_str().unwrap();
    let (error, _) = failure(&["--out", out, "--published", list.to_str().unwrap()]);
    assert!(error.contains(list.to_str().unwrap()) && error.contains("No such file"), "{error}");
}

#[test]
fn a_row_without_evidence_is_an_error_with_its_line() {
    let dir = place("evidence");
    let list = dir.with_extension("csv");
    let line = PUBLISHED.lines().count() + 1;
    fs::write(&list, format!("{PUBLISHED}Kini,9.9,new quantity,cluster 1,1,us,,\n")).unwrap();
    let (out, file) = (dir.to_str().unwrap(), list.to_str().unwrap());
    let (error, code) = failure(&["--quick", "--out", out, "--published", file]);
    let place = format!("{file}:{line}: ");
    let parts = [
        &place,
        "new quantity; cluster 1",
        "machines/kini1.toml",
        "machines/kini2.toml",
        "held_out",
    ];
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    assert_eq!(code, Some(1));

    fs::write(&list, format!("{PUBLISHED}Nobody,1,new quantity,nowhere,1,us,,\n")).unwrap();
    let (error, _) = failure(&["--quick", "--out", out, "--published", file]);
    assert!(error.contains(&format!("{file}:{line}: no document Nobody")), "{error}");
}
