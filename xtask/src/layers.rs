//! Check of the layers: a crate depends only on crates below it, and uses no file of another crate as a module.

use crate::documents::sources;
use crate::root;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Layers from the bottom to the top. Crates in the same row must not depend on each other.
const LAYERS: &[&[&str]] = &[
    &["weft-abi-data", "weft-client", "weft-topology"],
    &["weft-bootstrap"],
    &["weft-fabric", "weft-job-connections"],
    &["weft-intranode"],
    &[
        "weft-fabric-ofi",
        "weft-fabric-shm",
        "weft-fabric-sim",
        "weft-fabric-sim-client",
        "weft-fabric-verbs",
    ],
    &["weft-fabric-fault"],
    &["weft-fabric-join"],
    &["weft-channel", "weft-datatype", "weft-job-fabric", "weft-sim-job"],
    &["weft-p2p"],
    &["weft-collective"],
    &["weft-process"],
    &["weft-rma"],
    &["weft-io"],
    &["weft-patterns"],
    &[
        "weft-abi",
        "weft-abi-tests",
        "weft-check",
        "weft-fabric-testing",
        "weft-figures",
        "weft-fortran",
        "weft-launch",
        "weft-sim-calls",
        "weft-legacy",
        "weft-tools",
        "weft-vm",
    ],
    &["weft-bench", "weft-abi-mpich", "weft-abi-openmpi", "weft-legacy-fortran"],
    &["weft-abi-mpich-fortran", "weft-abi-openmpi-fortran"],
];

fn height(name: &str) -> Option<usize> {
    LAYERS.iter().position(|row| row.contains(&name))
}

/// Returns the crates of all rows below the row of `name`.
pub fn under(name: &str) -> impl Iterator<Item = &'static str> {
    LAYERS[..height(name).unwrap_or(0)].iter().flat_map(|row| row.iter().copied())
}

/// Lists the faults of one manifest: dependencies that do not lie below the crate. Dependencies for tests (`dev-dependencies`) may
/// be in any layer.
fn faults(manifest: &str) -> Vec<String> {
    let mut name = "";
    let mut section = "";
    let mut faults = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let key = key.trim().trim_end_matches(".workspace");
        if section == "[package]" && key == "name" {
            name = value.trim().trim_matches('"');
            if height(name).is_none() {
                faults.push(format!("{name} has no place in the order of layers"));
            }
        }
        let counts = section == "[dependencies]" || section == "[build-dependencies]";
        if counts && key.starts_with("weft-") && height(key) >= height(name) {
            faults.push(format!("{name} depends on {key}, which does not lie below it"));
        }
    }
    faults
}

/// Lists the modules that `file` takes from another crate by `#[path]`. `folder` is the folder of the file's own crate.
fn strangers(folder: &Path, file: &Path, text: &str) -> Vec<String> {
    let named = |line: &str| {
        let path = line.trim_start().strip_prefix("#[path = \"")?.split_once('"')?.0.to_owned();
        let mut whole = PathBuf::new();
        for part in file.parent()?.join(&path).components() {
            match part {
                Component::ParentDir => drop(whole.pop()),
                part => whole.push(part),
            }
        }
        let told = || format!("{}: the module {path} is another crate's", file.display());
        (!whole.starts_with(folder)).then(told)
    };
    text.lines().filter_map(named).collect()
}

/// Checks all crates of the workspace.
pub fn check() -> Result<(), String> {
    let crates = root().join("crates");
    let entries = fs::read_dir(&crates).map_err(|e| format!("{}: {e}", crates.display()))?;
    let mut all = Vec::new();
    let mut seen = 0;
    for entry in entries.flatten() {
        if let Ok(text) = fs::read_to_string(entry.path().join("Cargo.toml")) {
            seen += 1;
            all.extend(faults(&text));
            let mut files = Vec::new();
            sources(&entry.path(), "rs", &mut files)?;
            for file in files {
                let text =
                    fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
                all.extend(strangers(&entry.path(), &file, &text));
            }
        }
    }
    if seen == 0 {
        return Err(format!("no crate found in {}", crates.display()));
    }
    if all.is_empty() { Ok(()) } else { Err(all.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_keeps_the_law() {
        check().unwrap();
    }

    #[test]
    fn a_module_of_another_crate_is_found() {
        let of = |text| strangers(Path::new("/c/a"), Path::new("/c/a/tests/t/main.rs"), text).len();
        assert_eq!(of("#[path = \"../oracle/mod.rs\"]\nmod oracle;"), 0);
        assert_eq!(of("#[path = \"../../../b/tests/common/mod.rs\"]\nmod common;"), 1);
        assert_eq!(of("    #[path = \"../../../ab/x.rs\"]\n    mod x;"), 1);
    }

    #[test]
    fn an_upward_dependency_is_found() {
        let up = "[package]\nname = \"weft-fabric\"\n[dependencies]\nweft-p2p.workspace = true\n";
        assert_eq!(faults(up).len(), 1);
        let down = "[package]\nname = \"weft-p2p\"\n[dependencies]\nweft-fabric.workspace = true\n";
        assert!(faults(down).is_empty());
        let unknown = "[package]\nname = \"weft-new\"\n";
        assert_eq!(faults(unknown).len(), 1);
    }
}
