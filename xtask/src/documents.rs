//! What documents and sizes promise: every path that a document names is there, and no file is longer than a sitting.

use std::fs;
use std::path::{Path, PathBuf};

/// The documents whose paths are looked up.
const DOCUMENTS: [&str; 3] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"];

/// Folders at which a path of a document may begin.
const ROOTS: [&str; 9] =
    ["bench", "crates", "examples", "figures", "machines", "maps", "tests", "xtask", ".ci"];

/// Lines of a source file, at most.
const LINES: usize = 500;

/// `a/{b,c}.rs` is `a/b.rs` and `a/c.rs`; what has `*` or `<` in it is not looked up.
fn expanded(path: &str) -> Vec<String> {
    if path.contains(['*', '<']) {
        return Vec::new();
    }
    match (path.find('{'), path.find('}')) {
        (Some(open), Some(close)) if open < close => path[open + 1..close]
            .split(',')
            .flat_map(|one| expanded(&format!("{}{one}{}", &path[..open], &path[close + 1..])))
            .collect(),
        _ => vec![path.to_owned()],
    }
}

/// The paths in backticks of a document that begin at one of [`ROOTS`], with their lines.
fn paths(text: &str) -> Vec<(usize, String)> {
    let quoted = |(number, line): (usize, &str)| {
        let parts = line.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        parts.into_iter().map(move |part| (number + 1, part))
    };
    let rooted = |(_, part): &(usize, String)| {
        let first = part.split('/').next().unwrap_or("");
        part.contains('/') && !part.contains(' ') && ROOTS.contains(&first)
    };
    let all = text.lines().enumerate().flat_map(quoted).filter(rooted);
    all.flat_map(|(line, path)| expanded(&path).into_iter().map(move |one| (line, one))).collect()
}

/// Source files below `folder`.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            sources(&path, found)?;
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

/// Checks documents and sources of the workspace.
pub fn check() -> Result<(), String> {
    let root = crate::root();
    let read =
        |path: &Path| fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()));
    let mut faults = Vec::new();
    for document in DOCUMENTS {
        for (line, path) in paths(&read(&root.join(document))?) {
            if !root.join(path.trim_end_matches('/')).exists() {
                faults.push(format!("{document}:{line}: there is no {path}"));
            }
        }
    }
    let mut files = Vec::new();
    for folder in ["crates", "xtask"] {
        sources(&root.join(folder), &mut files)?;
    }
    for file in files {
        let lines = read(&file)?.lines().count();
        if lines > LINES {
            let file = file.strip_prefix(&root).unwrap_or(&file).display();
            faults.push(format!("{file}: {lines} lines, more than {LINES}: split it"));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_name_what_is_there_and_files_are_short() {
        check().unwrap();
    }

    #[test]
    fn paths_are_found_and_expanded() {
        let found = paths("see `crates/a/{b,c}.rs` and `x/y`\n`machines/*.toml`, `xtask/src`");
        let found: Vec<_> = found.iter().map(|(line, path)| (*line, path.as_str())).collect();
        assert_eq!(found, [(1, "crates/a/b.rs"), (1, "crates/a/c.rs"), (2, "xtask/src")]);
    }
}
