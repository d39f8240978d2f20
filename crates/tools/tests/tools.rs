//! Tests of the tools as a user runs them, in the build tree.
#![cfg(not(miri))]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;
use std::{env, fs};

const MPICC: &str = env!("CARGO_BIN_EXE_mpicc");
const MPICXX: &str = env!("CARGO_BIN_EXE_mpicxx");
const WEFT: &str = env!("CARGO_BIN_EXE_weft");

const PROGRAM: &str = "#include <mpi.h>\n#include <stdio.h>\n\
    int main(void) {\n    int version = 0, subversion = 9;\n\
    MPI_Get_version(&version, &subversion);\n\
    printf(\"%d.%d\\n\", version, subversion);\n    return 0;\n}\n";

/// Runs a command that must succeed and returns its output.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let (out, err) = (&output.stdout, &output.stderr);
    let (out, err) = (String::from_utf8_lossy(out), String::from_utf8_lossy(err));
    assert!(output.status.success(), "{command:?}: {}\n{out}{err}", output.status);
    out.into_owned()
}

/// Builds the library and `mpiexec` into the build tree of the tools under test, unless `TEST_LIBRARY_DIR` says that they were built with the
/// tests.
fn library() {
    static BUILT: Once = Once::new();
    BUILT.call_once(|| {
        let dir = Path::new(WEFT).parent().expect("target/<profile>");
        if env::var_os("TEST_LIBRARY_DIR").is_some_and(|built| Path::new(&built) == dir) {
            return;
        }
        let profile = match dir.file_name().and_then(|n| n.to_str()) {
            Some("debug") | None => "dev",
            Some(name) => name,
        };
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--package", "weft-abi", "--package", "weft-launch"]);
        cargo.args(["--profile", profile]);
        cargo.arg("--target-dir").arg(dir.parent().expect("target"));
        run(cargo.current_dir(env!("CARGO_MANIFEST_DIR")));
    });
}

/// Makes a new directory with the program in C and in C++.
fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("program.c"), PROGRAM).unwrap();
    fs::write(dir.join("program.cc"), PROGRAM).unwrap();
    dir
}

#[test]
fn compiles_and_links_in_one_step_and_in_two() {
    library();
    let dir = scratch("wrapper");
    for (tool, source) in [(MPICC, "program.c"), (MPICXX, "program.cc")] {
        run(Command::new(tool).args(["-Wall", "-Werror", source, "-o", "one"]).current_dir(&dir));
        assert_eq!(run(&mut Command::new(dir.join("one"))), "5.0\n");
        run(Command::new(tool).args(["-c", source, "-o", "two.o"]).current_dir(&dir));
        run(Command::new(tool).args(["two.o", "-o", "two"]).current_dir(&dir));
        assert_eq!(run(&mut Command::new(dir.join("two"))), "5.0\n");
    }
}

#[test]
fn the_command_shown_is_the_command_run() {
    library();
    let dir = scratch("show");
    let shown = run(Command::new(MPICC).args(["-show", "program.c", "-o", "it"]));
    run(Command::new("sh").args(["-c", &shown]).current_dir(&dir));
    assert_eq!(run(&mut Command::new(dir.join("it"))), "5.0\n");
}

#[test]
fn a_compiler_that_does_not_exist_is_named() {
    library();
    let output = Command::new(MPICC).env("WEFT_CC", "no-such-cc").arg("a.c").output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(127));
    assert!(error.contains("no-such-cc") && error.contains("WEFT_CC"), "{error}");
}

#[test]
fn weft_info_tells_of_library_and_machine() {
    library();
    let info = run(Command::new(WEFT).arg("info"));
    let library = Path::new(WEFT).with_file_name("libmpi_abi.so.1");
    assert!(info.contains(&library.display().to_string()), "{info}");
    for word in ["MPI 5.0 standard ABI", "functions", "cores", "affinity"] {
        assert!(info.contains(word), "{word} in {info}");
    }
    let coverage = run(Command::new(WEFT).args(["info", "--coverage"]));
    assert!(coverage.contains("\n+ MPI_Wtime\n"), "{coverage}");
    assert_eq!(coverage.lines().count(), 1 + 664);
    let variables = run(Command::new(WEFT).args(["info", "--variables"]));
    for line in ["    WEFT_EAGER ", "  weft.p2p\n", "    weft.p2p.unexpected_most ", " high mark "]
    {
        assert!(variables.contains(line), "{line}: {variables}");
    }
}

#[test]
fn weft_info_tells_of_the_batch_system() {
    library();
    let info = |list: &str| {
        let mut command = Command::new(WEFT);
        run(command.arg("info").env("SLURM_JOB_NODELIST", list).env_remove("WEFT_RSH"))
    };
    let two = info("n[1-2]");
    for line in [
        "\n  system     Slurm (SLURM_JOB_NODELIST)\n",
        "\n  hosts      2 hosts, 2 slots: n1:1, n2:1\n",
        "\n  agents     srun --nodes=1 --ntasks=1 --nodelist=n1 ",
    ] {
        assert!(two.contains(line), "{line}: {two}");
    }
    let wrong = info("n[1-");
    assert!(
        wrong.contains("\n  mpiexec: the hosts of Slurm: SLURM_JOB_NODELIST=\"n[1-\": "),
        "{wrong}"
    );
}

/// If there are adapters, each is shown; if there are none, the reason.
#[test]
fn weft_info_tells_of_rails_or_why_there_are_none() {
    library();
    let info = run(Command::new(WEFT).arg("info"));
    let mut lines = info.lines().skip_while(|line| !line.starts_with("rails between nodes"));
    let first = lines.nth(1).unwrap_or_else(|| panic!("{info}")).trim();
    let any = fs::read_dir("/sys/class/infiniband").is_ok_and(|mut all| all.next().is_some());
    if any {
        assert!(first.starts_with("rail 0") || first.starts_with("none"), "{info}");
    } else {
        let reasons = ["libibverbs.so.1 cannot be loaded", "no InfiniBand or RoCE adapter"];
        assert!(first.starts_with("none "), "{info}");
        assert!(reasons.iter().any(|reason| first.contains(reason)), "{info}");
    }
    let ofi =
        lines.find(|line| line.trim().starts_with("ofi ")).unwrap_or_else(|| panic!("{info}"));
    assert!(ofi.contains("libfabric ") || ofi.contains("weft-tcp "), "what there is: {info}");
}

#[test]
fn weft_info_shows_each_setting_with_its_source() {
    library();
    let mut command = Command::new(WEFT);
    command.arg("info").env("WEFT_EAGER", "4096").env("WEFT_CMA", "yes").env("WEFT_EAGAR", "1");
    command.env_remove("WEFT_SPIN_US").env_remove("WEFT_FAULT").env("WEFT_TIMEOUT", "soon");
    let info = run(&mut command);
    let line = |name: &str| {
        let found = info.lines().find(|line| line.trim_start().starts_with(name));
        found.unwrap_or_else(|| panic!("{name} in {info}")).split_whitespace().collect::<Vec<_>>()
    };
    assert_eq!(line("WEFT_EAGER")[1..4], ["4096", "environment", "Largest"]);
    assert_eq!(line("WEFT_SPIN_US")[1..4], ["500", "default", "Microseconds"]);
    assert_eq!(line("WEFT_FAULT")[1..3], ["none", "default"]);
    let wrong: Vec<_> = info.lines().filter_map(|l| l.trim().strip_prefix("WRONG: ")).collect();
    assert_eq!(
        wrong,
        [
            "WEFT_CMA=yes: neither 0 nor 1",
            "WEFT_TIMEOUT=soon: not a number of seconds",
            "WEFT_EAGAR is set, but there is no such setting"
        ]
    );
}

/// Jobs of two ranks measure an operation and a message of one size each.
#[test]
fn predictions_are_checked_by_jobs() {
    library();
    let mut command = Command::new(WEFT);
    command.args(["explain", "--check", "allreduce,send", "--bytes", "64", "--time", "2"]);
    let text = run(command.env("WEFT_COPY_MODEL", "generic").env_remove("WEFT_ALLREDUCE"));
    for part in [
        "allreduce on 2 ranks, 64 bytes\n",
        "send from rank 0 to rank 1, 64 bytes\n",
        "predicted us  measured us   ratio",
        " of 2 calls\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let words = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name));
        line.unwrap_or_else(|| panic!("{name} in {text}")).split_whitespace().collect::<Vec<_>>()
    };
    for name in ["SHM-SLICES", "eager", "staged"] {
        let us: Vec<f64> = words(name)[1..4].iter().map(|word| word.parse().unwrap()).collect();
        assert!(us.iter().all(|&us| us > 0.0), "{name}: {text}");
    }
    assert_eq!(text.matches("chosen/quickest ").count(), 3, "{text}");
    assert_eq!(text.matches("quickest\n").count(), 2, "{text}");
}

#[test]
fn what_cannot_be_checked_is_refused() {
    for (args, why) in [
        (&["--check", "put"][..], "--check runs collective operations and send"),
        (&["--check", "-n", "1"], "-n 1: --check needs at least 2 ranks"),
        (&["--check", "--machine", "ndr"], "--check --machine: needs --hosts"),
        (&["--check", "--hosts", "2"], "--check --hosts: names of hosts"),
        (&["bcast,reduce", "-n", "2"], "several operations need --check"),
        (&["bcast", "-n", "2", "--bytes", "1,2"], "several sizes need --check"),
        (&["bcast", "-n", "2", "--time", "5"], "--check"),
    ] {
        let output = Command::new(WEFT).arg("explain").args(args).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains(why), "{why}: {error}");
    }
}

/// Returns the settings as the library and the commands declare them.
fn declared() -> Vec<weft_tools::settings::SettingState> {
    library();
    let tree = weft_tools::tree::Tree {
        include: Path::new(WEFT).with_file_name("include"),
        lib: Path::new(WEFT).parent().unwrap().to_owned(),
    };
    let about = weft_tools::library::ask(&tree.library()).unwrap();
    weft_tools::settings::all(&about.settings).unwrap()
}

/// Returns the book's page about settings.
fn page_of_settings() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../book/src/settings.md");
    fs::read_to_string(page).unwrap()
}

/// Unclear words, which the text of a setting may not have.
const UNPLAIN: [&str; 5] = [" told ", " alone ", " beside ", " whatever ", " but for "];

/// Returns whether a text, in lower case and without punctuation, has one of [`UNPLAIN`].
fn is_unplain(text: &str) -> bool {
    let plain: String = text
        .chars()
        .map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { ' ' })
        .collect();
    let words = format!(" {} ", plain.split_whitespace().collect::<Vec<_>>().join(" "));
    UNPLAIN.iter().any(|word| words.contains(word))
}

/// Prints the table that the book must have, if the book has another.
#[test]
fn the_book_lists_the_settings() {
    let rows = weft_tools::settings::markdown(&declared());
    let table = format!("| name | default | |\n|---|---|---|\n{rows}\n");
    let page = page_of_settings();
    assert!(page.contains(&table), "the table in book/src/settings.md must be:\n{table}");
}

#[test]
fn each_setting_has_one_plain_sentence() {
    for setting in declared() {
        let (name, doc) = (&setting.name, setting.doc.as_str());
        assert!(doc.chars().count() <= 100, "{name}: more than 100 characters: {doc}");
        assert!(doc.ends_with('.') && !doc.contains(". "), "{name}: not one sentence: {doc}");
        assert!(doc.starts_with(|c: char| c.is_ascii_uppercase()), "{name}: {doc}");
        let first = doc.split(' ').next().unwrap();
        let riddles = ["What", "Who", "Where", "Whether", "How"];
        assert!(!riddles.contains(&first), "{name}: begin with a noun or a verb: {doc}");
        assert!(!is_unplain(doc), "{name}: not plain: {doc}");
    }
}

/// Sections of the page have one setting each, or several that differ only in the operation, in the order of the table.
#[test]
fn the_book_describes_each_setting_in_a_few_sentences() {
    let page = page_of_settings();
    let mut described = Vec::new();
    for section in page.split("\n### ").skip(1) {
        let (heading, text) = section.split_once('\n').unwrap();
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let sentences = words.matches(". ").count() + usize::from(words.ends_with('.'));
        assert!((2..=6).contains(&sentences), "{heading}: {sentences} sentences");
        assert!(words.ends_with('.') && !is_unplain(&words), "{heading}: {words}");
        described.extend(heading.split(", ").map(|name| name.trim_matches('`').to_owned()));
    }
    let declared: Vec<_> = declared().into_iter().map(|setting| setting.name).collect();
    assert_eq!(described, declared);
}

/// Makes an installation under `prefix`, from the build tree.
fn installed(prefix: &Path) {
    library();
    let built = Path::new(WEFT).parent().expect("target/<profile>");
    for dir in ["bin", "include", "lib"] {
        fs::create_dir_all(prefix.join(dir)).unwrap();
    }
    for (from, to) in [
        (Path::new(MPICC), "bin/mpicc"),
        (Path::new(MPICXX), "bin/mpicxx"),
        (&built.join("include/mpi.h"), "include/mpi.h"),
        (&built.join("libmpi_abi.so"), "lib/libmpi_abi.so.1"),
    ] {
        fs::copy(from, prefix.join(to)).unwrap();
    }
    std::os::unix::fs::symlink("libmpi_abi.so.1", prefix.join("lib/libmpi_abi.so")).unwrap();
}

/// A shell builds a program from the wrappers' answers, for any prefix.
#[test]
fn answers_are_good_for_a_shell_whatever_the_prefix() {
    for prefix in ["a blank", "it's $odd", "a,b \"c\" `d` \\e"] {
        let dir = scratch("prefix");
        let prefix = dir.join(prefix);
        installed(&prefix);
        let script = "set -e; cc=$1; cxx=$2; source=$3\n\
            eval \"$(\"$cc\" -show $source.c -o whole)\"; ./whole\n\
            eval \"$(\"$cxx\" -show $source.cc -o whole)\"; ./whole\n\
            eval \"$(\"$cc\" -compile-info) -c $source.c -o part.o\"\n\
            eval \"$(\"$cc\" -link-info part.o -o linked)\"; ./linked\n\
            eval \"cc $source.c $(\"$cc\" --showme:compile) $(\"$cc\" --showme:link) -o flags\"; ./flags\n\
            eval \"set -- $(\"$cc\" -showme:incdirs) $(\"$cc\" -showme:libdirs)\"\n\
            test -f \"$1/mpi.h\"; test -f \"$2/libmpi_abi.so\"; test $# = 2\n";
        let mut sh = Command::new("sh");
        sh.args(["-c", script, "sh"]).args([prefix.join("bin/mpicc"), prefix.join("bin/mpicxx")]);
        let said = run(sh.arg("program").current_dir(&dir));
        assert_eq!(said, "5.0\n".repeat(4), "{}", prefix.display());
    }
}

/// CMake's FindMPI asks the wrappers. The test does nothing if there is no cmake.
#[test]
fn cmake_finds_mpi_also_where_the_prefix_has_a_blank() {
    if Command::new("cmake").arg("--version").output().is_err() {
        eprintln!("NOT RUN: there is no cmake");
        return;
    }
    for prefix in ["plain", "with a blank"] {
        let dir = scratch("cmake");
        installed(&dir.join(prefix));
        let text = "cmake_minimum_required(VERSION 3.13)\nproject(test C CXX)\n\
            find_package(MPI REQUIRED)\n\
            add_executable(in_c program.c)\ntarget_link_libraries(in_c MPI::MPI_C)\n\
            add_executable(in_cxx program.cc)\ntarget_link_libraries(in_cxx MPI::MPI_CXX)\n";
        fs::write(dir.join("CMakeLists.txt"), text).unwrap();
        let path = env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", dir.join(prefix).join("bin").display());
        let said = run(Command::new("cmake")
            .args(["-S", ".", "-B", "build"])
            .env("PATH", path)
            .current_dir(&dir));
        assert!(said.contains("found version \"5.0\""), "{said}");
        assert!(said.contains("Found MPI_CXX") && said.contains("Found MPI_C:"), "{said}");
        run(Command::new("cmake").args(["--build", "build"]).current_dir(&dir));
        for program in ["build/in_c", "build/in_cxx"] {
            // The program uses the library of this prefix, without LD_LIBRARY_PATH, which cargo sets.
            let said = run(Command::new(dir.join(program)).env_remove("LD_LIBRARY_PATH"));
            assert_eq!(said, "5.0\n");
            let ldd = run(Command::new("ldd").arg(dir.join(program)).env_remove("LD_LIBRARY_PATH"));
            assert!(ldd.contains(&format!("{prefix}/lib/libmpi_abi.so.1")), "{ldd}");
        }
    }
}

/// Tests with hosts that are this machine under other names. `dead` refuses all logins.
#[test]
fn hosts_are_checked_before_a_job_runs_there() {
    library();
    let dir = scratch("hosts");
    let agent = dir.join("agent.sh");
    let script = "host=$1; shift\necho welcome to $host\n\
        case $host in dead) echo 'Permission denied' >&2; exit 255;; esac\nexec sh -c \"$*\"\n";
    fs::write(&agent, script).unwrap();
    let info = |hosts: &str| {
        let mut command = Command::new(WEFT);
        command.args(["info", "--hosts", hosts]).env("WEFT_RSH", format!("sh {}", agent.display()));
        command.output().unwrap()
    };
    let good = info("a:2,b");
    let text = String::from_utf8_lossy(&good.stdout).into_owned();
    assert!(good.status.success(), "{text}{}", String::from_utf8_lossy(&good.stderr));
    for words in [" ms (+-", WEFT, "b: the same machine as a"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(text.lines().any(|line| line.starts_with("a ")) && !text.contains("welcome"), "{text}");
    let bad = info("a,dead");
    let text = String::from_utf8_lossy(&bad.stderr).into_owned();
    assert!(!bad.status.success() && text.contains("dead: Permission denied"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("a ") && line.contains(WEFT)), "{text}");
}
