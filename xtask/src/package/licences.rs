//! Licences of the crates that the library and the programs contain, from `cargo metadata`.

use crate::files::write;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Packages of the workspace that are installed.
const INSTALLED: [&str; 3] = ["weft-abi", "weft-launch", "weft-tools"];

/// Beginnings of the names of licence files, in capital letters.
const LICENCE_FILES: [&str; 6] =
    ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<CratePackage>,
    resolve: Resolve,
}

#[derive(Deserialize, Clone)]
struct CratePackage {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    repository: Option<String>,
    /// `None` for packages of the workspace.
    source: Option<String>,
    manifest_path: PathBuf,
    targets: Vec<CrateTarget>,
}

#[derive(Deserialize, Clone)]
struct CrateTarget {
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<CrateNode>,
}

#[derive(Deserialize)]
struct CrateNode {
    id: String,
    deps: Vec<CrateDependency>,
}

#[derive(Deserialize)]
struct CrateDependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    /// `None` for a crate that becomes part of the program; else `build` or `dev`.
    kind: Option<String>,
}

/// Writes `THIRD-PARTY.md` into `folder`: all crates with their licences, and each licence's text once. Also writes the notices of
/// Rust's standard library, which every program contains.
pub fn write_all(folder: &Path) -> Result<(), String> {
    write(&folder.join("THIRD-PARTY.md"), document(&crates()?)?)?;
    match rust_notices() {
        Some(notices) => write(&folder.join("COPYRIGHT-rust-library.html"), notices),
        None => Ok(()),
    }
}

/// Returns the crates from registries that become part of installed files, sorted by name and version.
fn crates() -> Result<Vec<CratePackage>, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut command = Command::new(cargo);
    command.current_dir(crate::root());
    command.args(["metadata", "--format-version=1", "--locked", "--filter-platform", &target]);
    let output = command.output().map_err(|e| format!("cannot run cargo metadata: {e}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let metadata = serde_json::from_slice(&output.stdout);
    Ok(bundled(metadata.map_err(|e| format!("the output of cargo metadata: {e}"))?))
}

fn bundled(metadata: Metadata) -> Vec<CratePackage> {
    let is_macro = |package: &CratePackage| {
        package.targets.iter().any(|target| target.kind.iter().any(|kind| kind == "proc-macro"))
    };
    let nodes: HashMap<_, _> = metadata.resolve.nodes.iter().map(|n| (&*n.id, n)).collect();
    let packages: HashMap<_, _> = metadata.packages.iter().map(|p| (&*p.id, p)).collect();
    let roots = metadata.packages.iter();
    let roots = roots.filter(|p| p.source.is_none() && INSTALLED.contains(&&*p.name));
    let mut open: Vec<&str> = roots.map(|package| &*package.id).collect();
    let mut seen: BTreeSet<&str> = open.iter().copied().collect();
    while let Some(id) = open.pop() {
        for dependency in nodes.get(id).into_iter().flat_map(|node| &node.deps) {
            let is_part = dependency.dep_kinds.iter().any(|kind| kind.kind.is_none());
            let package = packages.get(&*dependency.pkg);
            if is_part && package.is_some_and(|p| !is_macro(p)) && seen.insert(&dependency.pkg) {
                open.push(&dependency.pkg);
            }
        }
    }
    let foreign = seen.into_iter().filter_map(|id| packages.get(id).copied());
    let mut all: Vec<_> = foreign.filter(|package| package.source.is_some()).cloned().collect();
    all.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    all
}

fn document(crates: &[CratePackage]) -> Result<String, String> {
    let mut text = "# Licences of bundled software\n\nWeft's library and commands contain these crates, and Rust's standard \
         library (MIT OR Apache-2.0).\n\n| crate | version | licence | source |\n|---|---|---|---|\n"
        .to_owned();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in crates {
        let CratePackage { name, version, license, repository, .. } = package;
        let source = repository.as_deref().unwrap_or("crates.io");
        let license = license.as_deref().unwrap_or("its own, below");
        let _ = writeln!(text, "| {name} | {version} | {license} | {source} |");
        for file in licence_files(package)? {
            let licence = fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?;
            let licence = String::from_utf8_lossy(&licence).replace("\r\n", "\n");
            let users = texts.entry(licence.trim().to_owned()).or_default();
            users.push(format!("{name} {version}"));
        }
    }
    for (licence, mut users) in texts {
        users.dedup();
        let _ = write!(text, "\n## {}\n\n```\n{licence}\n```\n", users.join(", "));
    }
    Ok(text)
}

/// Returns the licence files in a crate's folder, sorted.
fn licence_files(package: &CratePackage) -> Result<Vec<PathBuf>, String> {
    let folder = package.manifest_path.parent().unwrap_or(Path::new("/"));
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let is_licence = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        path.is_file() && LICENCE_FILES.iter().any(|start| name.starts_with(start))
    };
    let mut files: Vec<_> =
        entries.flatten().map(|entry| entry.path()).filter(is_licence).collect();
    files.sort();
    Ok(files)
}

/// Returns the notices of Rust's standard library, if the toolchain has them.
fn rust_notices() -> Option<Vec<u8>> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let sysroot = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    fs::read(sysroot.join("share/doc/rust/COPYRIGHT-library.html")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the list of this workspace: a crate that the library contains is in it with its text; a crate that only builds or
    /// tests use, a macro and a package of the workspace are not.
    #[test]
    fn crates_of_installed_files_have_their_licences() {
        let crates = crates().unwrap();
        let has = |name: &str| crates.iter().any(|package| package.name == name);
        for name in ["libc", "parking_lot", "io-uring", "clap", "object"] {
            assert!(has(name), "{name}");
        }
        for name in ["loom", "syn", "serde_derive", "weft-p2p", "mdbook-driver", "zip"] {
            assert!(!has(name), "{name}");
        }
        assert!(crates.iter().all(|package| package.license.is_some()));
        let text = document(&crates).unwrap();
        assert!(text.contains("| libc | 0.2.") && text.contains("Permission is hereby granted"));
    }
}
