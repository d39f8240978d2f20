//! Tests with small programs and libraries that `cc` makes in a temporary folder.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::library_search::LibrarySearch;
use super::report::ProgramReport;

/// Functions of the libraries that take the place of MPI's.
const FUNCTIONS: &str =
    "int MPI_Init(void *a, void *b) { return 0; }\nint MPI_Send(void) { return 0; }\n";
const CALLS: &str = "int MPI_Init(void *, void *); int MPI_Send(void);\n\
                     int main(void) { return MPI_Init(0, 0) + MPI_Send(); }\n";

/// A folder with an installation of Weft in `lib`, and another MPI in `other`.
struct TestInstallation {
    folder: tempfile::TempDir,
    search: LibrarySearch,
}

impl TestInstallation {
    fn new() -> TestInstallation {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("lib");
        let legacy = own.join("weft/legacy");
        for new in [&legacy, &folder.path().join("other")] {
            fs::create_dir_all(new).unwrap();
        }
        let search = LibrarySearch { legacy, own, given: Vec::new(), cache: HashMap::new() };
        let world = TestInstallation { folder, search };
        world.library("lib/weft/legacy", "libmpi.so.12", FUNCTIONS, &[]);
        world
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn cc(&self, to: &Path, source: &str, words: &[&str]) {
        let text = self.at("source.c");
        fs::write(&text, source).unwrap();
        let mut cc = Command::new("cc");
        cc.arg("-nostdlib").arg("-w").arg("-o").arg(to).arg(&text).args(words);
        let output = cc.current_dir(self.folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn library(&self, folder: &str, name: &str, source: &str, words: &[&str]) {
        let soname = format!("-Wl,-soname,{name}");
        let mut all = vec!["-shared", "-fPIC", &soname];
        all.extend(words);
        self.cc(&self.at(folder).join(name), source, &all);
    }

    fn program(&self, source: &str, words: &[&str]) -> ProgramReport {
        let mut all = vec!["-Wl,-e,main", "-Wl,--allow-shlib-undefined", "-Wl,--no-as-needed"];
        all.extend(words);
        self.cc(&self.at("program"), source, &all);
        self.report("program")
    }

    fn report(&self, name: &str) -> ProgramReport {
        let name = self.at(name);
        super::report(name.to_str().unwrap(), "/bin:/usr/bin", &self.search).unwrap()
    }

    fn error(&self, name: &str) -> String {
        let name = self.at(name);
        super::report(name.to_str().unwrap(), "/bin:/usr/bin", &self.search).unwrap_err()
    }
}

/// Checks that a report has these words, and that its verdict is right.
fn check(report: &ProgramReport, is_complete: bool, words: &[&str]) {
    for words in words {
        assert!(report.text.contains(words), "{words}:\n{}", report.text);
    }
    assert_eq!(report.is_complete, is_complete, "{}", report.text);
}

#[test]
fn a_program_of_mpich_gets_the_library_of_its_abi() {
    let world = TestInstallation::new();
    let report = world.program(CALLS, &["lib/weft/legacy/libmpi.so.12"]);
    check(
        &report,
        true,
        &["MPICH's ABI", "functions  2 of MPI", "weft/legacy/libmpi.so.12  Weft's\n"],
    );
    assert!(!report.text.contains("missing"), "{}", report.text);
    let report = world.program("int main(void) { return 0; }\n", &[]);
    check(&report, true, &["ABI        none", "functions  0 of MPI", "dlopen"]);
    let report = world.program(&format!("{FUNCTIONS}{CALLS}"), &[]);
    check(&report, true, &["MPI is a part of the program", "mpiexec cannot replace"]);
}

#[test]
fn a_runpath_gives_way_and_an_rpath_is_overridden_by_a_preload() {
    let world = TestInstallation::new();
    world.library("other", "libmpi.so.12", FUNCTIONS, &[]);
    let rpath = "-Wl,-rpath,/no:$ORIGIN/other";
    let report = world.program(CALLS, &["other/libmpi.so.12", rpath, "-Wl,--enable-new-dtags"]);
    check(&report, true, &["weft/legacy/libmpi.so.12  Weft's\n"]);
    let report = world.program(CALLS, &["other/libmpi.so.12", rpath, "-Wl,--disable-new-dtags"]);
    check(
        &report,
        true,
        &["Weft's, preloaded by mpiexec", "The RPATH of program leads to", "other/libmpi.so.12"],
    );

    // Without a library for the ABI, the program keeps the other MPI.
    fs::remove_file(world.at("lib/weft/legacy/libmpi.so.12")).unwrap();
    for (tags, by) in [("enable", "a RUNPATH"), ("disable", "an RPATH")] {
        let tags = format!("-Wl,--{tags}-new-dtags");
        let report = world.program(CALLS, &["other/libmpi.so.12", rpath, &tags]);
        let by = format!("of another installation, found by {by}");
        check(&report, true, &[&by, "This installation of Weft has no"]);
    }
}

#[test]
fn an_rpath_counts_for_libraries_of_libraries_and_a_runpath_does_not() {
    let world = TestInstallation::new();
    world.library("other", "libinner.so", "int inner(void) { return 0; }\n", &[]);
    let outer = "int inner(void); int outer(void) { return inner(); }\n";
    world.library("other", "libouter.so", outer, &["other/libinner.so"]);
    let main = "int outer(void); int main(void) { return outer(); }\n";
    let rpath = "-Wl,-rpath,$ORIGIN/other";
    let report = world.program(main, &["other/libouter.so", rpath, "-Wl,--disable-new-dtags"]);
    check(&report, true, &[]);
    let report = world.program(main, &["other/libouter.so", rpath, "-Wl,--enable-new-dtags"]);
    check(&report, false, &["libinner.so  libouter.so needs this library"]);
}

#[test]
fn missing_symbols_are_named_with_the_time_of_the_failure() {
    let world = TestInstallation::new();
    let extension =
        format!("{FUNCTIONS}int MPIX_Extra(void) {{ return 0; }}\nint ompi_inside[8];\n");
    world.library("other", "libmpi.so.12", &extension, &[]);
    let main = "int MPIX_Extra(void); int main(void) { return MPIX_Extra(); }\n";
    let lazy = ["other/libmpi.so.12", "-fplt", "-Wl,-z,lazy"];
    let report = world.program(main, &lazy);
    check(
        &report,
        false,
        &["MPIX_Extra  Weft's library does not have this symbol. program fails at its first use"],
    );
    let report = world.program(main, &["other/libmpi.so.12", "-Wl,-z,now"]);
    check(
        &report,
        false,
        &["MPIX_Extra", "program needs the symbol at its start, and does not start."],
    );

    // A program that is not position-independent has a copy of the variable.
    let main = "extern int ompi_inside[8]; int main(void) { return ompi_inside[0]; }\n";
    for words in [["-fno-pic", "-no-pie"], ["-fPIC", "-pie"]] {
        let report = world.program(main, &["other/libmpi.so.12", words[0], words[1]]);
        check(
            &report,
            false,
            &["ompi_inside  This symbol is internal to Open MPI.", "does not start"],
        );
    }
    let weak = "__attribute__((weak)) int MPIX_Extra(void); int main(void) { return MPIX_Extra ? 1 : 0; }\n";
    check(&world.program(weak, &["other/libmpi.so.12"]), true, &[]);
}

#[test]
fn functions_that_only_report_themselves_are_named() {
    let world = TestInstallation::new();
    let list =
        "const char weft_unsupported[] = \"MPIX_Extra\\tWeft has no extras. Use MPI_Send.\\n\";\n";
    let source = format!("{FUNCTIONS}int MPIX_Extra(void) {{ return 0; }}\n{list}");
    world.library("lib/weft/legacy", "libmpi.so.12", &source, &[]);
    let main = "int MPIX_Extra(void); int main(void) { return MPIX_Extra(); }\n";
    let report = world.program(main, &["lib/weft/legacy/libmpi.so.12"]);
    check(
        &report,
        false,
        &["MPIX_Extra  program uses this function, which is not supported. Weft has no extras."],
    );
}

#[test]
fn two_mpi_libraries_are_a_warning() {
    let world = TestInstallation::new();
    world.library("lib/weft/legacy", "libmpi.so.40", FUNCTIONS, &[]);
    // The two libraries of the program want each other.
    world.library(
        "other",
        "libuser.so",
        "int MPI_Send(void); int use(void) { return MPI_Send(); }\n",
        &[],
    );
    let helper = "int use(void); int help(void) { return use(); }\n";
    world.library("other", "libhelper.so", helper, &["other/libuser.so"]);
    let user =
        "int MPI_Send(void); int help(void); int use(void) { return MPI_Send() + help(); }\n";
    world.library(
        "other",
        "libuser.so",
        user,
        &["other/libhelper.so", "lib/weft/legacy/libmpi.so.40"],
    );
    let rpath = ["-Wl,-rpath,$ORIGIN/other", "-Wl,--disable-new-dtags"];
    let words = ["lib/weft/legacy/libmpi.so.12", "other/libuser.so", rpath[0], rpath[1]];
    let report = world.program(CALLS, &words);
    check(
        &report,
        false,
        &[
            "WARNING: two MPI libraries",
            "program wants libmpi.so.12",
            "libuser.so wants libmpi.so.40",
        ],
    );

    // A library of the same ABI, which only the other installation has.
    world.library("other", "libmpifort.so.12", "int mpi_send_(void) { return 0; }\n", &[]);
    let words = ["lib/weft/legacy/libmpi.so.12", "other/libmpifort.so.12", rpath[0], rpath[1]];
    let report = world.program(CALLS, &words);
    check(&report, false, &["WARNING: parts of two MPI installations", "other/libmpifort.so.12"]);
}

#[test]
fn a_missing_mpi_library_is_reported_without_its_functions() {
    let world = TestInstallation::new();
    world.library("other", "libmpi.so.40", FUNCTIONS, &[]);
    let report = world.program(CALLS, &["other/libmpi.so.40"]);
    check(
        &report,
        false,
        &["Open MPI's ABI", "not found", "libmpi.so.40  program needs this library"],
    );
    assert!(!report.text.contains("MPI_Send"), "{}", report.text);
}

#[test]
fn a_script_is_followed_and_says_that_mpi_comes_later() {
    let world = TestInstallation::new();
    let script = world.at("run.sh");
    fs::write(&script, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let mut world = world;
    world.search.cache.insert("libc.so.6".to_owned(), system_libraries("/bin/sh"));
    let report = world.report("run.sh");
    check(
        &report,
        true,
        &["script     ", "run.sh", "runs       /bin/sh", "interpreters load MPI later"],
    );
}

/// Returns the libraries of a program of the system.
fn system_libraries(program: &str) -> Vec<PathBuf> {
    let printed = Command::new("ldd").arg(program).output().unwrap().stdout;
    let printed = String::from_utf8_lossy(&printed).into_owned();
    let paths = printed.split_whitespace().filter(|word| word.starts_with('/'));
    paths.filter(|path| path.contains("libc.")).map(PathBuf::from).collect()
}

#[test]
fn files_that_cannot_run_here_get_a_sentence() {
    let world = TestInstallation::new();
    world.program("int main(void) { return 0; }\n", &[]);
    let bytes = fs::read(world.at("program")).unwrap();
    for (at, value, words) in
        [(4, 1, "is a 32-bit file"), (18, 8, "is for another processor"), (0, 0, "ELF")]
    {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        fs::write(world.at("patched"), bytes).unwrap();
        let error = world.error("patched");
        assert!(error.contains(words), "{error}");
    }
    fs::write(world.at("patched"), &bytes[..100]).unwrap();
    assert!(world.error("patched").contains("is damaged"));
}
