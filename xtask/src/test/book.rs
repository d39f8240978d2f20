//! Examples of the book: its commands run in an installation, and its pages are built (`book/built.rs`).
//!
//! A block that begins with three backticks and `sh` is run by `sh -e`. Its folder has `program.c` (the book's first program),
//! `program`, `mine.toml` and `mine.map`. A block that begins with `sh no-run` is not run, because it needs a cluster, minutes, or
//! a component that the machine may lack. A block that begins with `c` and a file name is written to that file of the page's
//! folder, so that the commands of the page compile and run the program that the page shows.

#[cfg(test)]
mod built;

use super::tally::Tally;
use super::tools::quiet;
use crate::root;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folder of the pages, below the root.
const PAGES: &str = "book/src";

/// Page with the program that all commands use.
const FIRST: &str = "first-program.md";

/// Files that replace a reader's own files, each with its source.
const FILES: [(&str, &str); 2] =
    [("mine.toml", "machines/kini2.toml"), ("mine.map", "maps/shm.map")];

/// A code block of a page, between lines of backticks.
struct Block {
    line: usize,
    /// The text after the backticks: `sh`, `c`, `c ring.c`.
    language: String,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let (mut blocks, mut open): (Vec<Block>, _) = (Vec::new(), false);
    for (number, line) in page.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(language) => {
                let (line, language) = (number + 1, language.trim().to_owned());
                blocks.push(Block { line, language, text: String::new() });
                open = true;
            }
            None if open => {
                if let Some(block) = blocks.last_mut() {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
            }
            None => {}
        }
    }
    blocks
}

/// Returns those programs of a page that have a file name, each with this name.
fn programs(page: &[Block]) -> impl Iterator<Item = (&str, &str)> {
    page.iter().filter_map(|b| Some((b.language.strip_prefix("c ")?, b.text.as_str())))
}

/// Returns the pages by their names, in order.
fn pages() -> Result<Vec<(String, String)>, String> {
    let folder = root().join(PAGES);
    let wrong = |e| format!("{}: {e}", folder.display());
    let paths = fs::read_dir(&folder).map_err(wrong)?.flatten().map(|entry| entry.path());
    let mut pages = Vec::new();
    for path in paths.filter(|path| path.extension().is_some_and(|end| end == "md")) {
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        pages.push((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), text));
    }
    pages.sort();
    Ok(pages)
}

/// Makes a new folder for the commands of a page, with the files that these commands use.
fn folder(page: &str, program: &str) -> Result<PathBuf, String> {
    let folder = root().join("target/test-book").join(page);
    let wrong = |e| format!("{}: {e}", folder.display());
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(wrong)?;
    fs::write(folder.join("program.c"), program).map_err(wrong)?;
    for (name, from) in FILES {
        fs::copy(root().join(from), folder.join(name)).map_err(|e| format!("{from}: {e}"))?;
    }
    Ok(folder)
}

/// Runs the book's commands with the installation at `prefix`.
pub fn run(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let pages = pages()?;
    let first = pages.iter().find(|(name, _)| name == FIRST).map(|(_, text)| text.as_str());
    let program = blocks(first.unwrap_or_default()).into_iter().find(|b| b.language == "c");
    let program = program.ok_or(format!("{PAGES}/{FIRST} shows no program"))?.text;
    let mut path = prefix.join("bin").into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    for (name, text) in &pages {
        let page = blocks(text);
        if !page.iter().any(|b| b.language == "sh") {
            continue;
        }
        let folder = folder(name.trim_end_matches(".md"), &program)?;
        super::c_programs::compile(prefix, &folder.join("program.c"), &folder.join("program"))?;
        for (name, text) in programs(&page) {
            fs::write(folder.join(name), text).map_err(|e| format!("{name}: {e}"))?;
        }
        for Block { line, text, .. } in page.iter().filter(|b| b.language == "sh") {
            let mut shell = Command::new("sh");
            shell.args(["-e", "-c", text]).current_dir(&folder).env("PATH", &path);
            quiet(&mut shell).map_err(|why| format!("{PAGES}/{name}:{line}: {why}"))?;
            println!("ok   the commands of {PAGES}/{name}:{line}");
            tally.passed += 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Useful during work on a page: `cargo test -p xtask book -- --ignored --nocapture`.
    #[test]
    #[ignore = "a part of cargo xtask test --only limits, which installs the library"]
    fn commands_run() {
        run(&crate::demo::prefix(), &mut Tally::default()).unwrap();
    }

    #[test]
    fn blocks_are_found_with_their_lines() {
        let found = blocks("a\n```sh\nb\nc\n```\nd\n```sh no-run\n```\n    e\n");
        let found: Vec<_> =
            found.iter().map(|b| (b.line, b.language.as_str(), b.text.as_str())).collect();
        assert_eq!(found, [(2, "sh", "b\nc\n"), (7, "sh no-run", "")]);
    }

    #[test]
    fn programs_with_a_name_are_found() {
        let page = blocks("```c\na\n```\n```c ring.c\nb\nc\n```\n```sh\n```\n");
        assert_eq!(programs(&page).collect::<Vec<_>>(), [("ring.c", "b\nc\n")]);
    }

    /// Checks that each program with a file name is compiled by a command of its own page.
    #[test]
    fn each_program_with_a_name_is_compiled_by_its_page() {
        for (page, text) in pages().unwrap() {
            let all = blocks(&text);
            let commands: String =
                all.iter().filter(|b| b.language == "sh").map(|b| b.text.as_str()).collect();
            for (name, _) in programs(&all) {
                assert!(commands.contains(&format!(" {name}")), "{page} never compiles {name}");
            }
        }
    }

    #[test]
    fn the_book_has_commands_that_run_and_no_blocks_of_another_kind() {
        let all: Vec<_> = pages().unwrap().iter().flat_map(|(_, text)| blocks(text)).collect();
        assert!(all.iter().filter(|block| block.language == "sh").count() >= 4);
        let known = ["sh", "sh no-run", "c", "fortran"];
        let is_known = |block: &&Block| {
            let program = programs(std::slice::from_ref(*block)).next();
            known.contains(&block.language.as_str())
                || program.is_some_and(|(name, _)| name.ends_with(".c") && !name.contains('/'))
        };
        let strange = all.iter().find(|block| !is_known(block));
        assert!(strange.is_none(), "{:?}", strange.map(|block| &block.language));
    }
}
