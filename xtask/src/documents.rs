//! Checks of documents and sizes: each path and each link of a document exists, the book has all its pages, no file is too long,
//! and no doc comment has an example that is never run.

use std::fs;
use std::path::{Path, PathBuf};

/// Documents whose paths are checked, in addition to the pages of the book.
const DOCUMENTS: [&str; 3] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"];

/// Folder of the book's pages, and the page that lists them.
const BOOK: &str = "book/src";
const SUMMARY: &str = "book/src/SUMMARY.md";

/// Folders at which a path of a document may begin.
const ROOTS: [&str; 9] =
    ["bench", "crates", "examples", "figures", "machines", "maps", "tests", "xtask", ".ci"];

/// Maximum number of lines of a source file.
const LINES: usize = 500;

/// Expands `a/{b,c}.rs` to `a/b.rs` and `a/c.rs`. Returns no path if the text contains `*` or `<`.
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

/// Returns the paths that a document has in backticks and that begin at one of [`ROOTS`]. Each path comes with its line number.
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

/// Returns the links of a document to files, each with its line number. Links to the web and links in code are left out.
pub fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with("    ")) {
        for part in line.split("](").skip(1) {
            let target = part.split([')', '#']).next().unwrap_or("");
            if !target.is_empty() && !target.contains("://") {
                found.push((number + 1, target.to_owned()));
            }
        }
    }
    found
}

/// Collects the files below `folder` whose names end in `.ending`.
pub fn sources(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            sources(&path, ending, found)?;
        } else if path.extension().is_some_and(|end| end == ending) {
            found.push(path);
        }
    }
    Ok(())
}

/// Returns the numbers of the lines at which a doc comment has example code that rustdoc takes for Rust: a block in backticks that
/// names no other language, or a line that is indented by four columns.
fn examples(text: &str) -> Vec<usize> {
    let (mut found, mut open) = (Vec::new(), false);
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let Some(said) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
            open = false;
            continue;
        };
        if let Some(language) = said.trim_start().strip_prefix("```") {
            open = !open;
            if open && !["c", "sh", "text", "toml"].contains(&language) {
                found.push(number + 1);
            }
        } else if !open && said.starts_with("     ") {
            found.push(number + 1);
        }
    }
    found
}

/// Returns true if rustdoc looks for examples in this file. rustdoc ignores files of programs.
fn is_of_a_library(file: &Path) -> bool {
    let parts: Vec<_> = file.iter().collect();
    let source = parts.iter().position(|&part| part == "src");
    source.is_some_and(|at| !["bin", "main.rs"].iter().any(|name| parts[at + 1] == *name))
}

/// Checks documents and sources of the workspace.
pub fn check() -> Result<(), String> {
    let root = crate::root();
    let read =
        |path: &Path| fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()));
    let mut faults = Vec::new();
    let mut documents: Vec<PathBuf> = DOCUMENTS.iter().map(|name| root.join(name)).collect();
    let mut pages = Vec::new();
    sources(&root.join(BOOK), "md", &mut pages)?;
    let summary = read(&root.join(SUMMARY))?;
    for page in &pages {
        let name = page.file_name().unwrap_or_default().to_string_lossy();
        if !page.ends_with(SUMMARY) && !summary.contains(&format!("({name})")) {
            faults.push(format!("{SUMMARY} does not list {name}"));
        }
    }
    documents.extend(pages);
    for document in documents {
        let (text, folder) = (read(&document)?, document.parent().unwrap_or(&root));
        let paths = paths(&text).into_iter().map(|(line, path)| (line, root.join(path)));
        let links = links(&text).into_iter().map(|(line, path)| (line, folder.join(path)));
        for (line, path) in paths.chain(links).filter(|(_, path)| !path.exists()) {
            let document = document.strip_prefix(&root).unwrap_or(&document).display();
            faults.push(format!("{document}:{line}: there is no {}", path.display()));
        }
    }
    let mut files = Vec::new();
    for folder in ["crates", "xtask"] {
        sources(&root.join(folder), "rs", &mut files)?;
    }
    for file in files {
        let (text, name) = (read(&file)?, file.strip_prefix(&root).unwrap_or(&file));
        let (lines, name) = (text.lines().count(), name.display());
        if lines > LINES {
            faults.push(format!("{name}: {lines} lines, more than {LINES}: split it"));
        }
        for line in examples(&text).into_iter().filter(|_| is_of_a_library(&file)) {
            faults.push(format!(
                "{name}:{line}: Rust that nothing runs: make it a test, or name the language"
            ));
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
    fn examples_in_comments_are_found() {
        let text = "/// ```text\n///      a\n/// ```\n\n/// ```\n/// b();\n/// ```\n/// - c\n///   d\n///     e();\n";
        assert_eq!(examples(text), [5, 10]);
        assert_eq!(examples("    //! ```should_panic\n    //! ```\nfn f() {}\n//     f"), [1]);
        assert!(is_of_a_library(Path::new("crates/a/src/b/c.rs")));
        for program in ["a/src/bin/b.rs", "a/src/main.rs", "a/tests/b.rs", "a/examples/b.rs"] {
            assert!(!is_of_a_library(Path::new(program)), "{program}");
        }
    }

    #[test]
    fn paths_are_found_and_expanded() {
        let found = paths("see `crates/a/{b,c}.rs` and `x/y`\n`machines/*.toml`, `xtask/src`");
        let found: Vec<_> = found.iter().map(|(line, path)| (*line, path.as_str())).collect();
        assert_eq!(found, [(1, "crates/a/b.rs"), (1, "crates/a/c.rs"), (2, "xtask/src")]);
    }

    #[test]
    fn links_are_found() {
        let found = links("[a](b.md#c), [d](https://e)\n    [f](g)\n![h](i.svg)");
        assert_eq!(found, [(1, "b.md".to_owned()), (3, "i.svg".to_owned())]);
    }
}
