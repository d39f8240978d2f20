//! Programs that the `mpicc` of another library builds: every constant and layout against each library's header, the programs of
//! tests/c, and mpi4py's wheel with its complete suite.

use super::super::c_programs;
use super::super::header_calls::{self, HeaderPeer};
use super::super::lanes::two_at_a_time;
use super::super::python::{folder, packages, source, venv};
use super::super::tally::Tally;
use super::super::tools::quiet;
use super::cost;
use super::wheel::{self, WheelSuite};
use crate::root;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A library whose programs are tried.
struct PeerWrapper {
    /// Name of its package on PyPI, and of its ABI in mpi4py.
    name: &'static str,
    /// Column of its values in C in `crates/legacy/data/legacy.csv`.
    column: usize,
    /// Programs of tests/c that are left out, each with the reason.
    left_out: &'static [(&'static str, &'static str)],
    /// Number of ranks for mpi4py's suite. The soak test uses other numbers.
    ranks: usize,
    /// Minimum number of programs of tests/c that run.
    least: usize,
}

const PEERS: [PeerWrapper; 2] = [
    PeerWrapper { name: "mpich", column: 2, left_out: MPICH_LEFT_OUT, ranks: 3, least: 100 },
    PeerWrapper { name: "openmpi", column: 4, left_out: OPEN_MPI_LEFT_OUT, ranks: 2, least: 60 },
];

/// Programs that need what MPICH's header does not have.
const MPICH_LEFT_OUT: &[(&str, &str)] = &[
    ("bad_input", "names numbers that are constants in MPICH"),
    ("bad_objects", "needs the standard's MPI_MAX_INFO_KEY"),
    ("children", "expects a class as an exit code"),
    ("environment", "needs MPI_ABI_VERSION"),
    ("error_strings", "needs the standard's order of classes"),
    ("fortran_abi", "asks which types the standard ABI has for Fortran"),
    ("hints", "needs the standard's MPI_MAX_INFO_KEY"),
    ("outstanding", "counts instructions"),
    ("partitioned", "MPICH's library has no MPI_Psend_init_c to link with"),
    ("requests_invalid", "makes handles of the standard ABI, and expects them unchanged"),
    ("strings", "needs the standard's MPI_MAX_INFO_KEY"),
    ("windows_threads", "expects the handles of windows to differ from those of freed windows"),
];

/// Reason for programs whose functions or constants Open MPI 5.0 does not have.
const LACKS: &str = "needs functions or constants that Open MPI lacks";

/// Programs that need what Open MPI's header does not have.
const OPEN_MPI_LEFT_OUT: &[(&str, &str)] = &[
    ("after_finalize", "expects version 5"),
    ("any_time", "expects version 5"),
    ("bad_collectives", LACKS),
    ("bad_input", "names numbers that are constants in Open MPI"),
    ("bad_objects", LACKS),
    ("bad_windows", "passes a flag that is MPI_MODE_NOCHECK in Open MPI"),
    ("bsend_room", LACKS),
    ("buffers", LACKS),
    ("callback_codes", LACKS),
    ("children", "expects a class as an exit code"),
    ("collectives_c", LACKS),
    ("datatypes_c", LACKS),
    ("environment", LACKS),
    ("error_owners", LACKS),
    ("error_strings", LACKS),
    ("files", LACKS),
    ("files_access", LACKS),
    ("files_representations", LACKS),
    ("fortran_abi", LACKS),
    ("handles", LACKS),
    ("hints", "needs the standard's MPI_MAX_INFO_VAL"),
    ("huge", LACKS),
    ("messages_c", LACKS),
    ("neighbors", LACKS),
    ("neighbors_mistakes", LACKS),
    ("nothing", LACKS),
    ("null_datatypes", LACKS),
    ("operators", LACKS),
    ("operators_of_windows", LACKS),
    ("outstanding", LACKS),
    ("partitioned", LACKS),
    ("requests", LACKS),
    ("requests_invalid", LACKS),
    ("session_buffers", LACKS),
    ("sessions", LACKS),
    ("spawn_last_words", "needs the standard's MPI_MAX_ERROR_STRING"),
    ("split_type", LACKS),
    ("strings", LACKS),
    ("tools", LACKS),
    ("windows", LACKS),
    ("windows_apart", LACKS),
    ("windows_threads", "expects the handles of windows to differ from those of freed windows"),
];

pub(super) fn run(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let sdist = source(&folder()?)?;
    let python = wheel::install()?;
    wheel::is_found(prefix, &python, tally)?;
    for peer in &PEERS {
        let mpicc = mpicc(peer)?;
        constants(prefix, peer, &mpicc, tally)?;
        programs(prefix, peer, &mpicc, tally)?;
        WheelSuite { prefix, python: &python, sdist: &sdist }.run(peer.name, peer.ranks, tally)?;
    }
    header_calls::run(prefix, &header_peers()?, tally)?;
    costs(prefix, tally)
}

/// Returns the libraries whose headers have functions to call.
pub(in super::super) fn header_peers() -> Result<Vec<HeaderPeer>, String> {
    PEERS.iter().map(|peer| Ok(HeaderPeer { name: peer.name, mpicc: mpicc(peer)? })).collect()
}

/// Counts the instructions that the libraries of older ABIs add to a call.
pub(super) fn costs(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let peers = PEERS.iter().map(|peer| Ok((peer.name, mpicc(peer)?)));
    cost::run(prefix, &peers.collect::<Result<Vec<_>, String>>()?, tally)
}

/// Installs the library from PyPI, and returns its `mpicc`.
fn mpicc(peer: &PeerWrapper) -> Result<PathBuf, String> {
    let folder = folder()?;
    let name = format!("legacy-{}", peer.name);
    let python = venv(&folder, &name)?;
    packages(&python, &folder.join(format!("{name}.packages")), &[peer.name])?;
    Ok(folder.join(name).join("bin/mpicc"))
}

/// Compiles a program with the peer's header. Returns the path of the program.
fn compiled(mpicc: &Path, source: &Path, out: &Path) -> Result<PathBuf, String> {
    let program = out.join(source.file_stem().unwrap_or_default());
    let mut command = Command::new(mpicc);
    command
        .args(["-O1", "-w", "-pthread", "-D_GNU_SOURCE", "-include", "stdint.h"])
        .arg(source)
        .arg("-o")
        .arg(&program)
        .arg("-lm");
    quiet(&mut command).map(|_| program)
}

fn out(peer: &PeerWrapper) -> Result<PathBuf, String> {
    let out = c_programs::folder()?.join(peer.name);
    fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    Ok(out)
}

/// Compares every constant of the table with the header, and the layout of a status. Handles of Open MPI are addresses of objects,
/// whose sizes are compared, too.
fn constants(
    prefix: &Path,
    peer: &PeerWrapper,
    mpicc: &Path,
    tally: &mut Tally,
) -> Result<(), String> {
    let table = fs::read_to_string(root().join("crates/legacy/data/legacy.csv"));
    let table = table.map_err(|e| format!("legacy.csv: {e}"))?;
    let mut program = String::from(
        "#include <mpi.h>\n#include <stdint.h>\n#include <stddef.h>\n#include <stdio.h>\n\
         static int wrong;\n\
         static void same(const char *name, long long is, long long expected) {\n    \
         if (is != expected) { printf(\"%s is %lld, not %lld\\n\", name, is, expected); wrong++; }\n}\n\
         int main(int argc, char **argv) {\n    MPI_Init(&argc, &argv);\n",
    );
    let mut count = 0;
    for line in table.lines().skip(1) {
        let fields: Vec<_> = line.split(',').collect();
        let [name, value] = [fields[0], fields[peer.column]];
        // Extensions have other names in C. Addresses of functions and of distinct places are different in each library.
        let is_place =
            name.ends_with("_FN") || name.contains("WEIGHT") || name.ends_with("ALL_HANDLES");
        // A row with an equals sign is a field of a status.
        if value.is_empty() || value.contains('=') || name.starts_with("MPIX_") || is_place {
            continue;
        }
        count += 1;
        match value.parse::<i64>() {
            Ok(value) => {
                writeln!(
                    program,
                    "    same(\"{name}\", (long long)(intptr_t)({name}), {value}LL);"
                )
                .unwrap();
            }
            Err(_) => {
                writeln!(program, "    same(\"{name}\", (void *){name} == (void *)&{value}, 1);")
                    .unwrap();
            }
        }
    }
    let fields = match peer.name {
        "mpich" => [("MPI_SOURCE", 8), ("MPI_TAG", 12), ("MPI_ERROR", 16), ("", 20)],
        _ => [("MPI_SOURCE", 0), ("MPI_TAG", 4), ("MPI_ERROR", 8), ("", 24)],
    };
    for (field, at) in fields {
        let is = match field {
            "" => "sizeof(MPI_Status)".to_owned(),
            field => format!("offsetof(MPI_Status, {field})"),
        };
        writeln!(program, "    same(\"{is}\", (long long){is}, {at});").unwrap();
    }
    program += "    char version[MPI_MAX_LIBRARY_VERSION_STRING];\n    int len;\n    \
         MPI_Get_library_version(version, &len);\n    printf(\"%s\\n\", version);\n";
    program += "    printf(wrong ? \"%d wrong\\n\" : \"correct\\n\", wrong);\n    return MPI_Finalize();\n}\n";
    let folder = out(peer)?;
    let source = folder.join("constants.c");
    fs::write(&source, program).map_err(|e| format!("{}: {e}", source.display()))?;
    let program = compiled(mpicc, &source, &folder)?;
    let said = c_programs::one(prefix, &program, 1, &c_programs::plan("")?, &[])?;
    if !said.contains("correct\n") || !said.contains("Weft") || count < 250 {
        return Err(format!("{} constants of {}'s header:\n{said}", count, peer.name));
    }
    println!(
        "ok   {count} constants and the layout of MPI_Status as in the header of {}",
        peer.name
    );
    tally.passed += 1;
    Ok(())
}

/// Builds the programs of tests/c with the peer's `mpicc`, and runs each on its largest number of ranks up to 4.
fn programs(
    prefix: &Path,
    peer: &PeerWrapper,
    mpicc: &Path,
    tally: &mut Tally,
) -> Result<(), String> {
    let mut sources = c_programs::list(&root().join("tests/c"), "c")?;
    sources.sort();
    let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    sources.retain(|path| !peer.left_out.iter().any(|(left_out, _)| name(path) == *left_out));
    let folder = out(peer)?;
    let tried = two_at_a_time(&sources, |source| {
        let text = fs::read_to_string(source).map_err(|e| format!("{}: {e}", source.display()))?;
        let plan = c_programs::plan(&text)?;
        let program = compiled(mpicc, source, &folder)?;
        let ranks = plan.ranks.iter().copied().filter(|&ranks| ranks <= 4).max().unwrap_or(2);
        let settings = plan.environments.last().cloned().unwrap_or_default();
        c_programs::one(prefix, &program, ranks, &plan, &settings)
    });
    let failed: Vec<_> = tried.iter().filter_map(|result| result.as_ref().err()).cloned().collect();
    if !failed.is_empty() || sources.len() < peer.least {
        return Err(format!(
            "{} programs built with {}:\n{}",
            sources.len(),
            peer.name,
            failed.join("\n")
        ));
    }
    println!(
        "ok   {} programs of tests/c, built with {} ({} left out)",
        sources.len(),
        peer.name,
        peer.left_out.len()
    );
    tally.passed += sources.len();
    Ok(())
}
