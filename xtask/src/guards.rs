//! Values with a destructor that are made before it is known whether they are needed: `then_some` makes the guard in any
//! case, and drops it if the condition is false. So a lock that was not taken would be given up.

use crate::documents::sources;
use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

/// Returns the name of the type at the beginning of `text`.
fn name(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

/// Returns the names of types that implement `Drop` in `text`.
fn droppable(text: &str) -> impl Iterator<Item = &str> {
    let lines =
        text.lines().filter(|line| line.starts_with("impl") || line.starts_with("    impl"));
    lines.flat_map(|line| line.split("Drop for ").skip(1)).map(name)
}

/// Returns the numbers of the lines of `text` that pass a value of one of the types `guards` to `then_some`.
fn eager<'t>(text: &'t str, guards: &'t HashSet<String>) -> impl Iterator<Item = usize> + 't {
    let is_eager =
        |line: &str| line.split("then_some(").skip(1).any(|of| guards.contains(name(of)));
    text.lines().enumerate().filter(move |(_, line)| is_eager(line)).map(|(at, _)| at + 1)
}

/// Fails if a guard is made before it is known whether it is needed.
pub fn check() -> Result<(), String> {
    let root = crate::root();
    let mut paths: Vec<PathBuf> = Vec::new();
    for folder in ["crates", "xtask"] {
        sources(&root.join(folder), "rs", &mut paths)?;
    }
    let read = |path: &PathBuf| fs::read_to_string(path).map_err(|e| format!("{path:?}: {e}"));
    let texts = paths.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let guards = texts.iter().flat_map(|text| droppable(text)).map(str::to_owned).collect();
    let faults: Vec<String> = paths
        .iter()
        .zip(&texts)
        .flat_map(|(path, text)| eager(text, &guards).map(move |line| (path, line)))
        .map(|(path, line)| {
            let path = path.strip_prefix(&root).unwrap_or(path).display();
            format!("{path}:{line}: the guard is dropped if the condition is false; use `then`")
        })
        .collect();
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_that_are_made_too_early_are_found() {
        let text = "impl Drop for Inside {\n}\nimpl<T> Drop for Other<T> {}\nstruct Plain;";
        let guards: HashSet<String> = droppable(text).map(str::to_owned).collect();
        assert_eq!(guards, ["Inside", "Other"].map(str::to_owned).into());
        let code = "a.then_some(Inside)\nb.then_some(Plain)\nc.then_some(Other { d })\n\
                    e.then(|| Inside)\nf.then_some(InsideOut)";
        assert_eq!(eager(code, &guards).collect::<Vec<_>>(), [1, 3]);
    }
}
