//! Names that other MPI libraries export: each name that a program can use is a name of ours, or has a reason in a table.

use super::super::tally::Tally;
use super::super::tools::quiet;
use crate::root;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A library of another MPI with its own libraries for other languages, and ours that stand for them.
pub struct PeerNames {
    pub peer: &'static str,
    pub theirs: Vec<PathBuf>,
    pub ours: &'static [&'static str],
}

/// Beginnings of the names that headers, modules and compilers write into a program. All other names are the library's own.
const BEGINNINGS: [&str; 22] = [
    "MPI_",
    "PMPI_",
    "MPIX_",
    "PMPIX_",
    "QMPI_",
    "mpi_",
    "pmpi_",
    "pmpir_",
    "mpix_",
    "pmpix_",
    "pmpixr_",
    "MPIR_F_",
    "MPIR_C_",
    "MPIR_F08_",
    "mpipriv",
    "mpifcmb",
    "__mpi_",
    "ompi_f08_",
    "ompi_mpi_cxx_",
    "_ZN3MPI",
    "_ZNK3MPI",
    "_ZTVN3MPI",
];

/// Names of variables in Open MPI's header. The library exports more names with the same beginning.
const OBJECTS: &str = "ompi_mpi_";

/// A symbol that a library exports: the kind as nm prints it, and the name.
struct ExportedSymbol {
    kind: char,
    name: String,
}

/// A row of the table of absent names.
struct AbsentName {
    peer: String,
    pattern: String,
}

/// Returns true if a name fits a pattern, in which `*` stands for any text.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, rest)) => name.strip_prefix(head).is_some_and(|name| {
            (0..=name.len()).any(|i| name.is_char_boundary(i) && fits(rest, &name[i..]))
        }),
    }
}

/// Returns the symbols that a library exports.
fn exported(library: &Path) -> Result<Vec<ExportedSymbol>, String> {
    let mut nm = Command::new("nm");
    let text = quiet(nm.args(["-D", "--defined-only"]).arg(library))?;
    let one = |line: &str| {
        let mut fields = line.split_whitespace().rev();
        let (name, kind) = (fields.next()?, fields.next()?);
        let kind = kind.chars().next()?;
        Some(ExportedSymbol { kind, name: name.split('@').next()?.to_owned() })
    };
    Ok(text.lines().filter_map(one).collect())
}

/// Returns true for names that a program can use.
fn is_for_programs(symbol: &ExportedSymbol) -> bool {
    let ExportedSymbol { kind, name } = symbol;
    let is_object = name.starts_with(OBJECTS) && !matches!(kind, 'T' | 't');
    is_object || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

fn table() -> Result<Vec<AbsentName>, String> {
    let path = root().join("tests/peer-names/absent.csv");
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let mut rows = Vec::new();
    for row in reader.records() {
        let row = row.map_err(|e| format!("{}: {e}", path.display()))?;
        let [peer, pattern, reason] = [0, 1, 2].map(|i| row.get(i).unwrap_or_default().to_owned());
        if reason.is_empty() {
            return Err(format!("{}: {pattern} has no reason", path.display()));
        }
        rows.push(AbsentName { peer, pattern });
    }
    Ok(rows)
}

/// Compares the names of all peers that are there.
pub fn run(prefix: &Path, peers: &[PeerNames], tally: &mut Tally) -> Result<(), String> {
    let rows = table()?;
    for PeerNames { peer, theirs, ours } in peers {
        let mut own = BTreeSet::new();
        for name in *ours {
            own.extend(
                exported(&prefix.join("lib").join(name))?.into_iter().map(|symbol| symbol.name),
            );
        }
        let (mut compared, mut wrong) = (0, BTreeSet::new());
        for library in theirs {
            for ExportedSymbol { name, .. } in
                exported(library)?.into_iter().filter(is_for_programs)
            {
                compared += 1;
                let has_reason = rows.iter().any(|row| {
                    ["*", peer].contains(&row.peer.as_str()) && fits(&row.pattern, &name)
                });
                if !own.contains(&name) && !has_reason {
                    wrong.insert(name);
                }
            }
        }
        if compared < 1000 || !wrong.is_empty() {
            let wrong: Vec<_> = wrong.into_iter().collect();
            return Err(format!(
                "{peer}: {compared} names, of which our libraries lack {}: add each to the library, or with a reason to \
                 tests/peer-names/absent.csv: {}",
                wrong.len(),
                wrong.join(" ")
            ));
        }
        println!("ok   {compared} names of {peer} are ours or have a reason");
        tally.passed += 1;
    }
    Ok(())
}

/// Unpacks Intel's libraries from their Python wheel into `work`. Returns their paths.
pub fn intel(work: &Path) -> Result<Vec<PathBuf>, String> {
    let to = work.join("intel");
    let files = ["libmpi.so.12", "libmpifort.so.12"];
    let found = |to: &Path| -> Option<Vec<PathBuf>> {
        let mut folders =
            fs::read_dir(to).ok()?.flatten().map(|entry| entry.path().join("data/lib"));
        let folder = folders.find(|folder| folder.is_dir())?;
        let paths = files.map(|file| folder.join(file));
        paths.iter().all(|path| path.exists()).then(|| paths.to_vec())
    };
    if let Some(paths) = found(&to) {
        return Ok(paths);
    }
    fs::create_dir_all(&to).map_err(|e| format!("{}: {e}", to.display()))?;
    let mut pip = Command::new("pip");
    let options = ["download", "-q", "--no-deps", "impi-rt==2021.14.1"];
    quiet(pip.args(options).current_dir(&to))
        .map_err(|_| "pip download impi-rt fails".to_owned())?;
    for entry in fs::read_dir(&to).map_err(|e| format!("{}: {e}", to.display()))?.flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "whl") {
            let mut unzip = Command::new("python3");
            quiet(unzip.args(["-m", "zipfile", "-e"]).arg(entry.path()).arg(&to))?;
        }
    }
    found(&to).ok_or_else(|| format!("impi-rt has no {}", files.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit() {
        for (pattern, name, expected) in [
            ("MPI_Send", "MPI_Send", true),
            ("MPI_Send", "MPI_Sendrecv", false),
            ("*MPI*_f", "PMPI_Send_f", true),
            ("*MPI*_f", "PMPI_Send_f08", false),
            ("QMPI_*", "QMPI_", true),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn programs_use_names_of_headers() {
        let name = |kind, name: &str| ExportedSymbol { kind, name: name.to_owned() };
        assert!(is_for_programs(&name('D', "ompi_mpi_int")));
        assert!(!is_for_programs(&name('T', "ompi_mpi_init")), "a function of the library itself");
        assert!(is_for_programs(&name('T', "mpi_send_")));
        assert!(!is_for_programs(&name('T', "MPIR_Err_create_code")));
    }
}
