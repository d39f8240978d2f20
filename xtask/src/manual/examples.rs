//! Examples of pages: `crates/abi/data/examples`. Each file is an example for one or more functions.
//!
//! The first line of a file names these functions, and is not shown. A file without `main` is a part of a program, and `frame.c`
//! has the rest. The lines `// prints: text` list the output of two ranks together, in any order.

use crate::root;
use std::fs;
use std::path::PathBuf;

/// File with the rest of the program, for an example that is only a part.
const FRAME: &str = "frame.c";

pub struct Example {
    pub path: PathBuf,
    /// Functions on whose pages the example is shown.
    pub functions: Vec<String>,
    /// The part of the file that a page shows.
    pub text: String,
}

impl Example {
    fn read(path: PathBuf) -> Result<Example, String> {
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let (first, text) = text.split_once('\n').unwrap_or_default();
        let list = first.strip_prefix("// For ").and_then(|list| list.strip_suffix('.'));
        let list = list.ok_or(format!("{}: begins with '{first}'", path.display()))?;
        let functions = list.split(", ").map(str::to_owned).collect();
        Ok(Example { path, functions, text: text.trim_end().to_owned() })
    }

    /// Returns true if the example has its own main function.
    pub fn is_whole(&self) -> bool {
        self.text.contains("int main(")
    }

    /// Returns the lines that two ranks print, sorted.
    pub fn prints(&self) -> Vec<&str> {
        let lines = self.text.lines().filter_map(|line| line.strip_prefix("// prints: "));
        let mut lines: Vec<_> = lines.collect();
        lines.sort_unstable();
        lines
    }

    /// Returns the file to compile, and the arguments of the compiler.
    pub fn source(&self) -> (PathBuf, Vec<String>) {
        if self.is_whole() {
            return (self.path.clone(), Vec::new());
        }
        let frame = self.path.with_file_name(FRAME);
        (frame, vec![format!("-DEXAMPLE=\"{}\"", self.path.display())])
    }
}

/// Reads all examples, in the order of their files' names.
pub fn all() -> Result<Vec<Example>, String> {
    let folder = root().join("crates/abi/data/examples");
    let entries = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut paths: Vec<_> = paths.filter(|path| !path.ends_with(FRAME)).collect();
    paths.sort();
    paths.into_iter().map(Example::read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Minimum number of functions that must have an example.
    const FEWEST: usize = 60;

    /// Maximum number of lines of an example, without the lines that list its output.
    const LINES: usize = 20;

    #[test]
    fn examples_are_short_and_call_their_functions() {
        let (mut functions, mut faults) = (HashSet::new(), Vec::new());
        for example in all().unwrap() {
            let (name, text) = (example.path.display(), &example.text);
            let code = text.lines().filter(|line| !line.starts_with("// prints: "));
            let code: Vec<_> = code.collect();
            if !(3..=LINES).contains(&code.len()) {
                faults.push(format!("{name}: {} lines", code.len()));
            }
            for function in &example.functions {
                if !code.iter().any(|line| line.contains(&format!("{function}("))) {
                    faults.push(format!("{name} calls no {function}"));
                }
                if !functions.insert(function.clone()) {
                    faults.push(format!("{function} has two examples"));
                }
            }
        }
        assert!(faults.is_empty(), "{faults:#?}");
        assert!(functions.len() >= FEWEST, "{} functions have an example", functions.len());
    }
}
