//! Check of dependencies between files: files that use each other in a circle must all be in one folder. Circles inside a folder
//! are counted ([`super::counters`]).
//!
//! ```text
//!   protocol.rs ◀──▶ protocol/eager.rs      one folder: a module and its parts may use each other
//!   protocol/eager.rs ──▶ matching.rs       a dependency
//!   matching.rs ──▶ protocol.rs             with the dependency above, a circle that leaves the folder: a fault
//!   matching.rs ◀──▶ credit.rs              two files of one folder: a circle that is counted
//! ```
//! A file uses another file if it contains a path to the other file. Only paths count that begin with `crate`, `super` or one of
//! the file's own modules. They also count within a macro. A name that the root of a crate re-exports by `pub use` counts as a use
//! of the file that defines the name. The root itself does not count.

use super::Source;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::str::FromStr;

/// Files of a crate: for each module path, the index of the module's file in the list of all sources.
struct ModuleTree<'s> {
    files: BTreeMap<Vec<String>, usize>,
    /// Names that the root re-exports, with their paths.
    passed: HashMap<String, Vec<String>>,
    all: &'s [Source],
}

/// Returns the crate of a file, and the path of its module in the crate.
fn module(file: &str) -> Option<(&str, Vec<String>)> {
    let (name, rest) = match file.split_once("/src/bin/").and_then(|(_, rest)| rest.split_once('/'))
    {
        // A program of several files has its own tree.
        Some((_, rest)) => (file.strip_suffix(rest)?.strip_suffix('/')?, rest),
        None => file.split_once("/src/")?,
    };
    let mut path: Vec<String> = rest.trim_end_matches(".rs").split('/').map(String::from).collect();
    let last = path.last()?;
    if last == "mod" || (path.len() == 1 && (last == "lib" || last == "main")) {
        path.pop();
    }
    Some((name, path))
}

/// A path as written, with the line of its first word.
type Named = (usize, Vec<String>);

/// Collects all paths in `tokens`: `a::{b, c::d}` gives `a::b` and `a::c::d`.
fn paths(tokens: TokenStream, into: &mut Vec<Named>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            // A visibility is not a use.
            TokenTree::Ident(word) if word == "pub" => {
                let of_whom = matches!(tokens.get(at + 1), Some(TokenTree::Group(group))
                    if group.delimiter() == Delimiter::Parenthesis && is_visibility(group.stream()));
                at += if of_whom { 2 } else { 1 };
            }
            TokenTree::Ident(first) => {
                let line = first.span().start().line;
                at = path(&tokens, at, line, Vec::new(), into);
            }
            TokenTree::Group(group) => {
                paths(group.stream(), into);
                at += 1;
            }
            TokenTree::Punct(_) if is_colons(&tokens, at) => {
                // The rest of a path after `<T as X>` or `::` does not name a file of this crate.
                at += 2;
                while matches!(tokens.get(at), Some(TokenTree::Ident(_))) {
                    at += 1;
                    at += if is_colons(&tokens, at) { 2 } else { 0 };
                }
            }
            _ => at += 1,
        }
    }
}

/// Returns true if the parentheses after `pub` are a visibility, and not the type of a field.
fn is_visibility(inside: TokenStream) -> bool {
    let first = inside.into_iter().next();
    matches!(first, Some(TokenTree::Ident(word)) if ["super", "crate", "self", "in"].iter().any(|known| word == known))
}

fn is_colons(tokens: &[TokenTree], at: usize) -> bool {
    let colon =
        |at: usize| matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == ':');
    colon(at) && colon(at + 1)
}

/// Collects the path that begins with `before` and continues at `at`. Returns the position after the path.
fn path(
    tokens: &[TokenTree],
    mut at: usize,
    line: usize,
    mut before: Vec<String>,
    into: &mut Vec<Named>,
) -> usize {
    loop {
        match tokens.get(at) {
            Some(TokenTree::Ident(word)) => before.push(word.to_string()),
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let comma = |t: &TokenTree| matches!(t, TokenTree::Punct(p) if p.as_char() == ',');
                for one in inner.split(comma).filter(|one| !one.is_empty()) {
                    path(one, 0, line, before.clone(), into);
                }
                return at + 1;
            }
            _ => break,
        }
        at += 1;
        if !is_colons(tokens, at) {
            break;
        }
        at += 2;
    }
    into.push((line, before));
    at
}

fn named(source: &Source) -> Vec<Named> {
    let mut found = Vec::new();
    let tokens = TokenStream::from_str(&source.text).unwrap_or_default();
    paths(tokens, &mut found);
    found.retain(|(line, _)| !source.found.tests.iter().any(|range| range.contains(line)));
    found
}

impl<'s> ModuleTree<'s> {
    fn of(all: &'s [Source], files: BTreeMap<Vec<String>, usize>) -> ModuleTree<'s> {
        let mut tree = ModuleTree { files, passed: HashMap::new(), all };
        if let Some(&root) = tree.files.get(&Vec::new()) {
            for (_, path) in named(&all[root]) {
                let path: Vec<String> = path.into_iter().filter(|word| word != "crate").collect();
                if let [first, .., last] = &path[..]
                    && tree.files.contains_key(std::slice::from_ref(first))
                {
                    tree.passed.insert(last.clone(), path);
                }
            }
        }
        tree
    }

    /// Returns the file to which `path` leads if it is written in module `own`.
    fn leads(&self, own: &[String], path: &[String]) -> Option<usize> {
        let mut words = path.iter().peekable();
        let mut at: Vec<String> = match path[0].as_str() {
            "crate" => words.next().map(|_| Vec::new())?,
            "self" => words.next().map(|_| own.to_vec())?,
            "super" => own.to_vec(),
            first => {
                let child: Vec<String> = own.iter().cloned().chain([first.to_owned()]).collect();
                // A single word does not name a module, except in the declaration of the module.
                self.files.get(&child).filter(|_| path.len() > 1)?;
                own.to_vec()
            }
        };
        while words.next_if(|word| *word == "super").is_some() {
            at.pop();
        }
        if at.is_empty()
            && let Some(whole) = words.peek().and_then(|word| self.passed.get(*word))
            && !self.files.contains_key(std::slice::from_ref(*words.peek()?))
        {
            return self.leads(&[], whole);
        }
        for word in words {
            at.push(word.clone());
            if !self.files.contains_key(&at) {
                at.pop();
                break;
            }
        }
        self.files.get(&at).copied()
    }

    /// Returns the folder of a module: the module's own folder if the module has parts, else the folder that contains it.
    fn folder(&self, path: &[String]) -> Vec<String> {
        let parts = |other: &Vec<String>| other.len() > path.len() && other.starts_with(path);
        let own = if self.files.keys().any(parts) { path } else { &path[..path.len() - 1] };
        own.to_vec()
    }

    /// Returns all circles of two or more files, except the circles of a module and its parts.
    fn circles(&self) -> Vec<Circle<'s>> {
        let modules: Vec<&Vec<String>> =
            self.files.keys().filter(|path| !path.is_empty()).collect();
        let place: HashMap<usize, usize> =
            modules.iter().enumerate().map(|(at, path)| (self.files[*path], at)).collect();
        let arrows: Vec<BTreeSet<usize>> = modules
            .iter()
            .map(|own| {
                let used = named(&self.all[self.files[*own]]);
                let used = used.iter().filter_map(|(_, path)| self.leads(own, path));
                used.filter_map(|file| place.get(&file).copied()).collect()
            })
            .collect();
        let file = |at: usize| self.all[self.files[modules[at]]].file.as_str();
        let mut circles = Vec::new();
        for circle in closed(&arrows) {
            let folders: BTreeSet<_> = circle.iter().map(|&at| self.folder(modules[at])).collect();
            let leaves_folder = folders.len() > 1;
            // Inside a folder, dependencies between the module of the folder and its parts do not count.
            let circles_inside = |folder: &Vec<String>| {
                let mut arrows = arrows.clone();
                for (at, path) in modules.iter().enumerate() {
                    let is_part = |to: &usize| {
                        *path != folder && modules[*to] != folder && circle.contains(to)
                    };
                    arrows[at].retain(|to| circle.contains(&at) && is_part(to));
                }
                closed(&arrows)
            };
            let inner = match folders.first() {
                Some(folder) if !leaves_folder => circles_inside(folder),
                _ => vec![circle],
            };
            circles.extend(inner.into_iter().map(|circle| Circle {
                files: circle.into_iter().map(file).collect(),
                leaves_folder,
            }));
        }
        circles
    }
}

/// Files that use each other, directly or through other files.
struct Circle<'s> {
    files: Vec<&'s str>,
    leaves_folder: bool,
}

/// Returns the sets of two or more indices in which every index can be reached from every other index.
fn closed(arrows: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let reached: Vec<BTreeSet<usize>> = (0..arrows.len()).map(|from| reach(arrows, from)).collect();
    let mut seen = BTreeSet::new();
    let mut sets = Vec::new();
    for from in 0..arrows.len() {
        let set: Vec<usize> =
            reached[from].iter().copied().filter(|&to| reached[to].contains(&from)).collect();
        if set.len() > 1 && set.iter().all(|at| !seen.contains(at)) {
            seen.extend(set.iter().copied());
            sets.push(set);
        }
    }
    sets
}

/// Returns all indices that can be reached from `from` by one or more dependencies.
fn reach(arrows: &[BTreeSet<usize>], from: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut open: Vec<usize> = arrows[from].iter().copied().collect();
    while let Some(next) = open.pop() {
        if found.insert(next) {
            open.extend(arrows[next].iter().copied());
        }
    }
    found
}

/// Returns the circles of all crates.
fn circles(all: &[Source]) -> Vec<Circle<'_>> {
    let mut crates: BTreeMap<&str, BTreeMap<Vec<String>, usize>> = BTreeMap::new();
    for (at, source) in all.iter().enumerate() {
        if let Some((name, path)) = module(&source.file) {
            crates.entry(name).or_default().insert(path, at);
        }
    }
    crates.into_values().flat_map(|files| ModuleTree::of(all, files).circles()).collect()
}

/// Lists the files in circles that leave their folder, with a line for each file.
pub(super) fn between_folders(all: &[Source]) -> Vec<String> {
    let mut told = Vec::new();
    for Circle { files, .. } in circles(all).iter().filter(|circle| circle.leaves_folder) {
        told.extend(files.iter().map(|file| {
            format!("{file}: in a circle of {} files that leaves its folder", files.len())
        }));
    }
    told
}

/// A file in a circle inside its folder.
pub(super) struct FileInCircle<'s> {
    pub file: &'s str,
    /// Names of the other files of the circle.
    pub others: String,
}

/// Lists the files in circles inside a folder.
pub(super) fn inside_folders(all: &[Source]) -> Vec<FileInCircle<'_>> {
    let mut found = Vec::new();
    for Circle { files, .. } in circles(all).iter().filter(|circle| !circle.leaves_folder) {
        for &file in files {
            let name = |file: &&str| file.rsplit('/').next().unwrap_or(file).to_owned();
            let others = files.iter().filter(|other| **other != file).map(name);
            found.push(FileInCircle { file, others: others.collect::<Vec<_>>().join(", ") });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::house::Found;

    fn sources(files: &[(&str, &str)]) -> Vec<Source> {
        let source = |&(file, text): &(&str, &str)| Source {
            file: format!("c/src/{file}"),
            text: text.to_owned(),
            found: Found::of(text).unwrap(),
        };
        files.iter().map(source).collect()
    }

    fn told(files: &[(&str, &str)]) -> Vec<String> {
        between_folders(&sources(files))
    }

    #[test]
    fn files_of_one_folder_that_use_each_other_count() {
        let files = [
            ("lib.rs", "mod a;\nmod e;\n"),
            ("a.rs", "mod b;\nmod c;\nmod d;\npub struct A;\nfn f() { b::f(); d::f(); }\n"),
            ("a/b.rs", "use super::A;\npub fn f() { super::c::f(); }\n"),
            ("a/c.rs", "pub fn f() { super::b::f(); }\n"),
            ("a/d.rs", "use super::A;\nuse super::b::f;\nuse crate::e::g;\n"),
            ("e.rs", "pub fn g() {}\n"),
        ];
        assert!(told(&files).is_empty());
        let all = sources(&files);
        let found: Vec<_> =
            inside_folders(&all).into_iter().map(|it| (it.file, it.others)).collect();
        let others = |file: &str| file.to_owned();
        assert_eq!(found, [("c/src/a/b.rs", others("c.rs")), ("c/src/a/c.rs", others("b.rs"))]);
    }

    #[test]
    fn a_program_in_a_folder_is_a_tree_of_its_own() {
        let found = |file: &'static str| module(file).map(|(name, path)| (name, path.join("::")));
        let program = Some(("crates/a/src/bin/b", "c::d".to_owned()));
        assert_eq!(found("crates/a/src/bin/b/c/d.rs"), program);
        assert_eq!(
            found("crates/a/src/bin/b/main.rs"),
            Some(("crates/a/src/bin/b", String::new()))
        );
        assert_eq!(found("crates/a/src/bin/b.rs"), Some(("crates/a", "bin::b".to_owned())));
    }

    #[test]
    fn a_module_and_its_parts_may_know_each_other() {
        let root = ("lib.rs", "mod a;\npub use a::A;\n");
        let module = ("a.rs", "mod b;\npub struct A;\nfn f() { b::f(); }\n");
        assert!(told(&[root, module, ("a/b.rs", "use super::A;\nfn f() {}\n")]).is_empty());
    }

    #[test]
    fn a_visibility_is_no_use() {
        let module = ("a.rs", "mod b;\nuse b::f;\nuse crate::c::g;\n");
        let part = ("a/b.rs", "pub(super) fn f() {}\npub struct S(pub (crate::c::T, u8));\n");
        let files = [
            ("lib.rs", "mod a;\nmod c;\n"),
            module,
            part,
            ("c.rs", "pub(in crate::a) fn g() {}\n"),
        ];
        assert!(told(&files).is_empty());
    }

    #[test]
    fn a_circle_through_another_folder_is_told_with_its_files() {
        let root = ("lib.rs", "mod a;\nmod c;\npub use a::A;\n");
        let module = ("a.rs", "mod b;\npub struct A;\n");
        let part = ("a/b.rs", "use crate::c::{self, D};\n");
        // The circle passes through the root and through a macro. Code that is only for tests does not count.
        let circle = told(&[root, module, part, ("c.rs", "m!(crate::A);\npub struct D;\n")]);
        assert!(circle.is_empty(), "nothing leads from a to its part: {circle:?}");
        let module = ("a.rs", "mod b;\npub struct A;\nuse b::B;\n");
        let circle = told(&[root, module, part, ("c.rs", "m!(crate::A);\npub struct D;\n")]);
        let files = ["a.rs", "a/b.rs", "c.rs"];
        let line = |file| format!("c/src/{file}: in a circle of 3 files that leaves its folder");
        assert_eq!(circle, files.map(line));
        let tests = ("c.rs", "#[cfg(test)]\nmod tests {\n    use crate::A;\n}\n");
        assert!(told(&[root, module, part, tests]).is_empty());
    }
}
