//! House rules for product code: functions are short, and no code is repeated.
//!
//! Product code is the code in `src` of a crate, without items that are built only for tests. Remaining violations are counted, and
//! the counts may only fall ([`counters`]).

mod circles;
mod counters;

use crate::documents::sources;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Maximum number of lines of a function, from `fn` to its closing brace.
const LINES: usize = 80;

/// Minimum length of a repetition: the number of consecutive lines that are equal in two files.
const RUN: usize = 12;

/// Number of known functions that are too long, and number of known repetitions.
const KNOWN_LONG: usize = 0;
const KNOWN_REPEATED: usize = 0;

/// A file with its path from the root.
struct Source {
    file: String,
    text: String,
    found: Found,
}

/// Results of parsing a file. The parser skips the arguments and the bodies of macros.
#[derive(Default)]
struct Found {
    functions: Vec<Function>,
    items: counters::CountedItems,
    /// Lines of items that are built only for tests.
    tests: Vec<RangeInclusive<usize>>,
    /// Modules for tests that are in separate files. Each has its name, and its path if an attribute gives a path.
    apart: Vec<(String, Option<String>)>,
}

#[derive(Debug, PartialEq, Eq)]
struct Function {
    name: String,
    line: usize,
    lines: usize,
}

impl Found {
    fn of(text: &str) -> Result<Found, syn::Error> {
        let mut found = Found::default();
        found.visit_file(&syn::parse_file(text)?);
        Ok(found)
    }

    fn function(&mut self, signature: &syn::Signature, body: &syn::Block) {
        self.items.note_parameters(signature);
        let line = signature.fn_token.span.start().line;
        let lines = body.brace_token.span.close().end().line - line + 1;
        self.functions.push(Function { name: signature.ident.to_string(), line, lines });
    }

    /// Returns true if `item` is only for tests. Records the lines of such an item.
    fn leaves_out(&mut self, attributes: &[syn::Attribute], item: &impl Spanned) -> bool {
        let out = attributes.iter().any(for_tests);
        if out {
            let span = item.span();
            self.tests.push(span.start().line..=span.end().line);
        }
        out
    }
}

/// Returns true for `cfg(test)`, with or without further conditions.
fn for_tests(attribute: &syn::Attribute) -> bool {
    let syn::Meta::List(list) = &attribute.meta else { return false };
    let condition: String = list.tokens.to_string().split_whitespace().collect();
    let all = condition.strip_prefix("all(").and_then(|rest| rest.strip_suffix(')'));
    list.path.is_ident("cfg") && all.unwrap_or(&condition).split(',').any(|one| one == "test")
}

/// Returns the path of `#[path = "…"]`.
fn path_of(attribute: &syn::Attribute) -> Option<String> {
    let syn::Meta::NameValue(pair) = &attribute.meta else { return None };
    let syn::Expr::Lit(value) = &pair.value else { return None };
    match &value.lit {
        syn::Lit::Str(path) if pair.path.is_ident("path") => Some(path.value()),
        _ => None,
    }
}

impl<'ast> Visit<'ast> for Found {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Trait(item) => &item.attrs,
            syn::Item::Struct(item) => &item.attrs,
            syn::Item::Enum(item) => &item.attrs,
            syn::Item::Union(item) => &item.attrs,
            syn::Item::Type(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !self.leaves_out(attributes, item) {
            self.items.note_type(item);
            visit::visit_item(self, item);
        } else if let syn::Item::Mod(module) = item
            && module.content.is_none()
        {
            let path = module.attrs.iter().find_map(path_of);
            self.apart.push((module.ident.to_string(), path));
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.function(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !self.leaves_out(&function.attrs, function) {
            self.function(&function.sig, &function.block);
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        match &function.default {
            Some(body) => self.function(&function.sig, body),
            None => self.items.note_parameters(&function.sig),
        }
        visit::visit_trait_item_fn(self, function);
    }
}

/// Returns the paths of the modules of `file` that are only for tests, without the ending `.rs`. A path may also be a folder.
fn apart<'f>(file: &'f Path, found: &'f Found) -> impl Iterator<Item = PathBuf> {
    let folder = file.parent().unwrap_or(file);
    let stem = file.file_stem().unwrap_or_default();
    let own = if ["lib", "main", "mod"].iter().any(|name| stem == *name) {
        folder.to_owned()
    } else {
        folder.join(stem)
    };
    found.apart.iter().map(move |(name, path)| match path {
        Some(path) => folder.join(path).with_extension(""),
        None => own.join(name),
    })
}

/// Reads all product code.
fn product() -> Result<Vec<Source>, String> {
    let root = crate::root();
    let mut files = Vec::new();
    let crates = fs::read_dir(root.join("crates")).map_err(|e| format!("crates: {e}"))?;
    let crates = crates.flatten().map(|entry| entry.path());
    for folder in crates.chain([root.join("xtask")]).map(|folder| folder.join("src")) {
        if folder.exists() {
            sources(&folder, "rs", &mut files)?;
        }
    }
    files.sort();
    let mut all = Vec::new();
    let mut out = HashSet::new();
    for path in files {
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let found = Found::of(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        out.extend(apart(&path, &found));
        let file = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        all.push((path, Source { file, text, found }));
    }
    all.retain(|(path, source)| {
        let named = path.with_extension("");
        !named.ancestors().any(|folder| out.contains(folder)) && !source.file.contains("/tests/")
    });
    Ok(all.into_iter().map(|(_, source)| source).collect())
}

/// Lists functions of more than [`LINES`] lines.
fn long(all: &[Source]) -> Vec<String> {
    let of = |source: &Source| {
        let long = source.found.functions.iter().filter(|function| function.lines > LINES);
        let told = long.map(|Function { name, line, lines }| {
            format!("{}:{line}: {name} has {lines} lines, more than {LINES}: split it", source.file)
        });
        told.collect::<Vec<_>>()
    };
    all.iter().flat_map(of).collect()
}

/// Returns true if a line begins a function: `fn` is the first word, or follows only qualifiers.
fn begins_function(line: &str) -> bool {
    const QUALIFIERS: [&str; 6] = ["default", "const", "async", "unsafe", "extern", "\"C\""];
    let mut words = line.split_whitespace();
    let visible = |word: &str| word == "pub" || word.starts_with("pub(");
    words.find(|word| !visible(word) && !QUALIFIERS.contains(word)) == Some("fn")
}

/// Returns true if a line, without its visibility, begins with `use`.
fn begins_use(line: &str) -> bool {
    let item = line.strip_prefix("pub").map_or(line, |rest| match rest.split_once(") ") {
        Some((scope, rest)) if scope.starts_with('(') => rest,
        _ => rest.trim_start(),
    });
    item.starts_with("use ")
}

/// Returns the lines that count for repetitions, with their numbers. Blank lines, comments, lines with only closing brackets, `use`
/// items and signatures of functions do not count. The text of a signature is often prescribed by MPI or by a trait.
fn lines<'t>(text: &'t str, tests: &[RangeInclusive<usize>]) -> Vec<(usize, &'t str)> {
    let mut counting = Vec::new();
    // `Some` within a signature or a `use` item: the characters with which the last line of the item can end.
    let mut until: Option<&[char]> = None;
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        let closing = |c: char| ")]}>;,?".contains(c);
        if line.starts_with("//") {
            continue;
        }
        if until.is_none() && begins_function(line) {
            until = Some(&['{', ';', '}']);
        } else if until.is_none() && begins_use(line) {
            until = Some(&[';']);
        }
        match until {
            Some(endings) if line.ends_with(endings) => until = None,
            Some(_) => {}
            None if line.chars().all(closing) => {}
            None if tests.iter().any(|range| range.contains(&number)) => {}
            None => counting.push((number, line)),
        }
    }
    counting
}

/// Lists runs of at least [`RUN`] lines that two files have in common.
fn repeated(all: &[Source]) -> Vec<String> {
    let files: Vec<_> = all.iter().map(|s| lines(&s.text, &s.found.tests)).collect();
    // Each line gets a number, because numbers are faster to compare than texts.
    let mut numbers = HashMap::new();
    let mut number = |text| {
        let next = numbers.len();
        *numbers.entry(text).or_insert(next)
    };
    let texts: Vec<Vec<usize>> =
        files.iter().map(|lines| lines.iter().map(|(_, text)| number(*text)).collect()).collect();
    let mut places: HashMap<&[usize], Vec<(usize, usize)>> = HashMap::new();
    let mut told = Vec::new();
    for (file, text) in texts.iter().enumerate() {
        for (at, run) in text.windows(RUN).enumerate() {
            let before = places.entry(run).or_default();
            for &(other, start) in before.iter().filter(|(other, _)| *other != file) {
                let there = &texts[other];
                // A run is reported only at its first line.
                if at > 0 && start > 0 && text[at - 1] == there[start - 1] {
                    continue;
                }
                let count =
                    text[at..].iter().zip(&there[start..]).take_while(|(a, b)| a == b).count();
                let place = |file: usize, at: usize| {
                    let (first, last) = (files[file][at].0, files[file][at + count - 1].0);
                    format!("{}:{first}-{last}", all[file].file)
                };
                told.push(format!(
                    "{} repeats {count} lines of {}: write them once",
                    place(file, at),
                    place(other, start)
                ));
            }
            before.push((file, at));
        }
    }
    told
}

/// Compares the number of violations of a rule with the known number.
fn judge(found: Vec<String>, known: usize, name: &str) -> Vec<String> {
    match found.len() {
        count if count == known => Vec::new(),
        count if count < known => {
            vec![format!("{count} are left of {known}: lower {name} in xtask/src/house.rs")]
        }
        count => {
            let mut told = found;
            told.push(format!("{count} of these, and {name} in xtask/src/house.rs is {known}"));
            told
        }
    }
}

/// Options of `cargo xtask house`.
#[derive(clap::Args)]
pub struct HouseArgs {
    /// Write the counts that have fallen into xtask/house.txt.
    #[arg(long)]
    lower: bool,
    /// Write all counts into xtask/house.txt, after code has moved between crates. No total may rise.
    #[arg(long, conflicts_with = "lower")]
    moved: bool,
    /// List the violations of a crate, for one counter (comments, types, safety, tuples, bools, circles) or for all counters.
    #[arg(long, num_args = 1..=2, value_names = ["CRATE", "COUNTER"])]
    list: Vec<String>,
}

/// Checks the product code, lists violations, or lowers the counts.
pub fn run(args: &HouseArgs) -> Result<(), String> {
    match &args.list[..] {
        [] if args.lower => counters::lower(&product()?),
        [] if args.moved => counters::write_moved(&product()?),
        [] => check(),
        [krate, counter @ ..] => {
            let counter = counter.first().map(String::as_str);
            print!("{}", counters::list(&product()?, krate, counter));
            Ok(())
        }
    }
}

/// Checks the product code of the workspace.
pub fn check() -> Result<(), String> {
    let all = product()?;
    let mut faults = judge(long(&all), KNOWN_LONG, "KNOWN_LONG");
    faults.extend(judge(repeated(&all), KNOWN_REPEATED, "KNOWN_REPEATED"));
    faults.extend(circles::between_folders(&all));
    faults.extend(counters::check(&all)?);
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(file: &str, text: &str) -> Source {
        let found = Found::of(text).unwrap();
        Source { file: file.to_owned(), text: text.to_owned(), found }
    }

    #[test]
    fn functions_are_short_and_no_text_stands_twice() {
        if let Err(faults) = check() {
            panic!("{faults}");
        }
    }

    #[test]
    fn a_function_counts_from_fn_to_its_brace() {
        let body = |lines| "    g();\n".repeat(lines);
        let text = format!(
            "/// Documented.\n#[inline]\nfn a() {{\n{}}}\nimpl B {{\n    pub(crate) async fn b(&self) {{\n{}    }}\n}}\n",
            body(78),
            body(79)
        );
        let told = long(&[source("c.rs", &text)]);
        assert_eq!(told, ["c.rs:84: b has 81 lines, more than 80: split it"]);
    }

    #[test]
    fn what_is_for_tests_alone_is_left_out() {
        let text = "fn a() {}\n#[cfg(test)]\nfn b() {}\n#[cfg(all(test, not(loom)))]\nmod c {\n    fn d() {}\n}\n\
                    #[cfg(test)]\n#[path = \"e_tests.rs\"]\nmod e;\n#[cfg(test)]\nmod f;\n#[cfg(loom)]\nfn g() {}\n";
        let found = Found::of(text).unwrap();
        let names: Vec<_> = found.functions.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["a", "g"]);
        let counting: Vec<_> = lines("a\nb\nc", &[2..=2]);
        assert_eq!(counting, [(1, "a"), (3, "c")]);
        assert!(found.tests.contains(&(4..=7)), "{:?}", found.tests);
        let paths = |file: &str| apart(Path::new(file), &found).collect::<Vec<_>>();
        assert_eq!(paths("s/lib.rs"), [Path::new("s/e_tests"), Path::new("s/f")]);
        assert_eq!(paths("s/h.rs"), [Path::new("s/e_tests"), Path::new("s/h/f")]);
    }

    #[test]
    fn lines_that_only_declare_do_not_count() {
        let text = "use a::{\n    b,\n};\npub(crate) use c::d;\n\npub unsafe fn e(\n    f: u8,\n) -> u8 {\n    // Why.\n    used\n}\n\
                    fn g();\nh(|| {\n})?;\n";
        assert_eq!(lines(text, &[]), [(10, "used"), (13, "h(|| {")]);
    }

    #[test]
    fn a_run_in_two_files_is_told_with_both_places() {
        let run = |count| (0..count).map(|n| format!("    let a{n} = {n};\n")).collect::<String>();
        let file = |name, head: &str, count| {
            source(name, &format!("fn f() {{\n    {head};\n\n{}}}\n", run(count)))
        };
        let told = repeated(&[file("a.rs", "one()", 13), file("b.rs", "two()", 13)]);
        assert_eq!(told, ["b.rs:4-16 repeats 13 lines of a.rs:4-16: write them once"]);
        assert!(repeated(&[file("a.rs", "one()", 11), file("b.rs", "two()", 11)]).is_empty());
        // A repetition within one file does not count.
        let twice = file("a.rs", &run(12), 12);
        assert!(repeated(&[twice]).is_empty());
    }

    #[test]
    fn counts_only_fall() {
        let found = || vec!["a".to_owned(), "b".to_owned()];
        assert!(judge(found(), 2, "KNOWN").is_empty());
        assert_eq!(judge(found(), 1, "KNOWN")[..2], ["a", "b"]);
        assert!(judge(found(), 3, "KNOWN")[0].contains("lower KNOWN"));
    }
}
