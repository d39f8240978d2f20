//! Counters for each crate, whose values may only fall: numbers of comments, type names, SAFETY texts, parameters and circles of
//! files that break a house rule.
//!
//! `xtask/house.txt` has a line for each crate and counter: `abi comments 12`. A count above the number in the file is a fault. A
//! lower count is reported, and `cargo xtask house --lower` writes the lower number. A change that lowers a count need not change
//! the file, so two such changes merge without a conflict. If code moves between crates, `cargo xtask house --moved` writes the new
//! counts.

use super::{Found, Source, circles};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use std::fs;
use syn::spanned::Spanned;

/// The file with the numbers, below the root.
const FILE: &str = "xtask/house.txt";

/// A rule whose violations are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum HouseCounter {
    Comments,
    Types,
    Safety,
    Tuples,
    Bools,
    Circles,
}

impl HouseCounter {
    const ALL: [HouseCounter; 6] = [
        HouseCounter::Comments,
        HouseCounter::Types,
        HouseCounter::Safety,
        HouseCounter::Tuples,
        HouseCounter::Bools,
        HouseCounter::Circles,
    ];

    /// Returns the name of the counter in the file and on the command line.
    fn name(self) -> &'static str {
        match self {
            HouseCounter::Comments => "comments",
            HouseCounter::Types => "types",
            HouseCounter::Safety => "safety",
            HouseCounter::Tuples => "tuples",
            HouseCounter::Bools => "bools",
            HouseCounter::Circles => "circles",
        }
    }

    /// Describes the violations that are counted.
    fn rule(self) -> &'static str {
        match self {
            HouseCounter::Comments => "comments that begin with What, Who, Where or Whether",
            HouseCounter::Types => {
                "types that leave their file and have a name that another file defines, too"
            }
            HouseCounter::Safety => "SAFETY texts that name no contract",
            HouseCounter::Tuples => "parameters that are tuples",
            HouseCounter::Bools => "parameters that are bool",
            HouseCounter::Circles => "files that use each other in one folder",
        }
    }
}

/// Items of a file that the counters count, with their lines.
#[derive(Default)]
pub struct CountedItems {
    types: Vec<TypeName>,
    parameters: Vec<(HouseCounter, usize)>,
}

/// Definition of a type.
struct TypeName {
    name: String,
    line: usize,
    /// True if other files may use the type.
    is_visible: bool,
}

impl CountedItems {
    /// Records the name of a struct, an enum, a union, a trait or an alias.
    pub fn note_type(&mut self, item: &syn::Item) {
        let (name, visibility) = match item {
            syn::Item::Struct(item) => (&item.ident, &item.vis),
            syn::Item::Enum(item) => (&item.ident, &item.vis),
            syn::Item::Union(item) => (&item.ident, &item.vis),
            syn::Item::Trait(item) => (&item.ident, &item.vis),
            syn::Item::Type(item) => (&item.ident, &item.vis),
            _ => return,
        };
        let is_visible = !matches!(visibility, syn::Visibility::Inherited);
        let line = name.span().start().line;
        self.types.push(TypeName { name: name.to_string(), line, is_visible });
    }

    /// Records the parameters of a function that are tuples or `bool`, or references to them.
    pub fn note_parameters(&mut self, signature: &syn::Signature) {
        for input in &signature.inputs {
            let syn::FnArg::Typed(parameter) = input else { continue };
            let mut kind = &*parameter.ty;
            while let syn::Type::Reference(reference) = kind {
                kind = &reference.elem;
            }
            let counter = match kind {
                syn::Type::Tuple(tuple) if tuple.elems.len() > 1 => HouseCounter::Tuples,
                syn::Type::Path(path) if path.path.is_ident("bool") => HouseCounter::Bools,
                _ => continue,
            };
            self.parameters.push((counter, input.span().start().line));
        }
    }
}

/// A violation: its crate, its counter, and its place with a hint.
struct Violation {
    krate: String,
    counter: HouseCounter,
    place: String,
}

/// Returns the name of the crate to which a file belongs: `abi` for `crates/abi/src/lib.rs`.
fn crate_of(file: &str) -> &str {
    let path = file.strip_prefix("crates/").unwrap_or(file);
    path.split('/').next().unwrap_or(path)
}

/// Returns the text of a line comment, without its slashes.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.trim_start_matches(['/', '!']).trim())
}

/// Returns true if a comment begins with "What", "Who", "Where" or "Whether". Such a comment does not name the thing that it
/// describes.
fn is_riddle(text: &str) -> bool {
    let first = text.split(|c: char| !c.is_alphabetic()).next().unwrap_or("");
    ["What", "Who", "Where", "Whether"].contains(&first)
}

/// Returns true if a SAFETY text only states that there is a contract, but does not describe it.
fn is_formula(text: &str) -> bool {
    let text = text.trim().trim_end_matches('.').to_lowercase();
    let of_caller = |rest: &str| {
        let rest = rest.trim_start_matches("and ");
        [
            "promise", "pointer", "pointers", "string", "strings", "array", "arrays", "buffer",
            "buffers",
        ]
        .into_iter()
        .any(|word| rest == word)
    };
    let whole = ["by contract", "as above", "see above", "not null", "the contract", "above"];
    whole.contains(&text.as_str())
        || text.starts_with("not null, so by contract")
        || text.strip_prefix("the caller's ").is_some_and(of_caller)
        || text.strip_prefix("the program's ").is_some_and(of_caller)
}

/// Returns the lines of comments that break a rule, each with the counter of the rule.
fn comments(text: &str, found: &Found) -> Vec<(HouseCounter, usize)> {
    let mut broken = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    // A paragraph begins after code or an empty comment.
    let mut is_first = true;
    for (at, line) in lines.iter().enumerate() {
        let Some(text) = comment(line) else {
            is_first = true;
            continue;
        };
        let is_product = !found.tests.iter().any(|range| range.contains(&(at + 1)));
        if is_product && is_first && is_riddle(text) {
            broken.push((HouseCounter::Comments, at + 1));
        }
        let goes_on =
            lines.get(at + 1).and_then(|next| comment(next)).is_some_and(|t| !t.is_empty());
        let safety = text.strip_prefix("SAFETY:").filter(|text| !goes_on && is_formula(text));
        if is_product && safety.is_some() {
            broken.push((HouseCounter::Safety, at + 1));
        }
        is_first = text.is_empty();
    }
    broken
}

/// Returns the type names that more than one file defines.
fn repeated_types(all: &[Source]) -> HashSet<&str> {
    let mut first: HashMap<&str, &str> = HashMap::new();
    let mut repeated = HashSet::new();
    for source in all {
        for TypeName { name, .. } in &source.found.items.types {
            if *first.entry(name).or_insert(&source.file) != source.file {
                repeated.insert(name.as_str());
            }
        }
    }
    repeated
}

/// Finds every violation in the product code.
fn violations(all: &[Source]) -> Vec<Violation> {
    let repeated = repeated_types(all);
    let mut violations = Vec::new();
    for source in all {
        let items = &source.found.items;
        let is_broken = |kind: &&TypeName| kind.is_visible && repeated.contains(&*kind.name);
        let types =
            items.types.iter().filter(is_broken).map(|kind| (HouseCounter::Types, kind.line));
        let comments = comments(&source.text, &source.found);
        for (counter, line) in comments.into_iter().chain(types).chain(items.parameters.clone()) {
            let text = source.text.lines().nth(line - 1).unwrap_or("").trim();
            let place = format!("{}:{line}: {text}", source.file);
            violations.push(Violation { krate: crate_of(&source.file).to_owned(), counter, place });
        }
    }
    violations.extend(circles::inside_folders(all).into_iter().map(|found| Violation {
        krate: crate_of(found.file).to_owned(),
        counter: HouseCounter::Circles,
        place: format!("{}: in a circle with {}", found.file, found.others),
    }));
    violations
}

/// Numbers by crate and counter.
type Counts = BTreeMap<(String, HouseCounter), usize>;

fn counted(violations: &[Violation]) -> Counts {
    let mut counts = Counts::new();
    for violation in violations {
        *counts.entry((violation.krate.clone(), violation.counter)).or_default() += 1;
    }
    counts
}

/// Reads the numbers of the file: lines of crate, counter and number.
fn parse(text: &str) -> Result<Counts, String> {
    let line = |line: &str| {
        let [krate, name, number] = line.split(' ').collect::<Vec<_>>()[..] else { return None };
        let counter = HouseCounter::ALL.into_iter().find(|counter| counter.name() == name)?;
        Some(((krate.to_owned(), counter), number.parse().ok()?))
    };
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|text| line(text).ok_or_else(|| format!("{FILE}: unknown line `{text}`"))).collect()
}

fn print(counts: &Counts) -> String {
    let mut text = "# Violations of the rules of xtask/src/house/counters.rs that are left. The numbers may only fall:\n\
                    # `cargo xtask house --lower` writes lower ones.\n"
        .to_owned();
    for ((krate, counter), count) in counts {
        let _ = writeln!(text, "{krate} {} {count}", counter.name());
    }
    text
}

/// A comparison of the code with the file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Comparison {
    /// Counts that have risen. Each count is described in a sentence.
    faults: Vec<String>,
    /// Counts that have fallen. Each count is described in a sentence.
    fallen: Vec<String>,
}

fn compare(counts: &Counts, allowed: &Counts) -> Comparison {
    let mut comparison = Comparison::default();
    let keys: std::collections::BTreeSet<_> = counts.keys().chain(allowed.keys()).collect();
    for key in keys {
        let number = |of: &Counts| of.get(key).copied().unwrap_or(0);
        let (now, most) = (number(counts), number(allowed));
        let (krate, name, rule) = (&key.0, key.1.name(), key.1.rule());
        if now > most {
            comparison.faults.push(format!(
                "{krate}: {now} {rule}; {FILE} allows {most}. `cargo xtask house --list {krate} {name}` lists them"
            ));
        } else if now < most {
            let text = format!("{krate} {name} fell to {now} (of {most}): write {now} in {FILE}");
            comparison.fallen.push(text);
        }
    }
    comparison
}

fn allowed() -> Result<Counts, String> {
    let path = crate::root().join(FILE);
    parse(&fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?)
}

/// Compares the product code with the file. Prints the counts that have fallen, and returns the counts that have risen.
pub fn check(all: &[Source]) -> Result<Vec<String>, String> {
    let comparison = compare(&counted(&violations(all)), &allowed()?);
    if !comparison.fallen.is_empty() {
        let fallen = comparison.fallen.join("\n");
        println!("{fallen}\n`cargo xtask house --lower` does so");
    }
    Ok(comparison.faults)
}

/// Lists the violations of a crate, for one counter or for all counters.
pub fn list(all: &[Source], krate: &str, counter: Option<&str>) -> String {
    let violations = violations(all);
    let of = |v: &&Violation| {
        v.krate == krate && counter.is_none_or(|counter| counter == v.counter.name())
    };
    violations.iter().filter(of).map(|v| format!("{} {}\n", v.counter.name(), v.place)).collect()
}

/// Sums the numbers of each counter.
fn totals(counts: &Counts) -> BTreeMap<HouseCounter, usize> {
    let mut totals = BTreeMap::new();
    for ((_, counter), count) in counts {
        *totals.entry(*counter).or_default() += count;
    }
    totals
}

/// Checks that no total of a counter has risen.
fn compare_totals(counts: &Counts, allowed: &Counts) -> Result<(), String> {
    let most = totals(allowed);
    let risen = totals(counts)
        .into_iter()
        .find(|(counter, now)| *now > most.get(counter).copied().unwrap_or(0));
    risen.map_or(Ok(()), |(counter, now)| {
        Err(format!("{now} {} in all crates: more than before", counter.rule()))
    })
}

/// Writes all counts into the file, after code has moved between crates. Fails if the total of a counter has risen.
pub fn write_moved(all: &[Source]) -> Result<(), String> {
    let counts = counted(&violations(all));
    compare_totals(&counts, &allowed()?)?;
    fs::write(crate::root().join(FILE), print(&counts)).map_err(|e| format!("{FILE}: {e}"))
}

/// Updates the file with all counts that have become smaller. The other counts in the file stay unchanged.
pub fn lower(all: &[Source]) -> Result<(), String> {
    let counts = counted(&violations(all));
    let mut lowered = allowed()?;
    for (key, most) in &mut lowered {
        *most = (*most).min(counts.get(key).copied().unwrap_or(0));
    }
    lowered.retain(|_, most| *most > 0);
    fs::write(crate::root().join(FILE), print(&lowered)).map_err(|e| format!("{FILE}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(file: &str, text: &str) -> Source {
        let found = Found::of(text).unwrap();
        Source { file: file.to_owned(), text: text.to_owned(), found }
    }

    fn lines(file: &str, text: &str) -> Vec<(HouseCounter, usize)> {
        let all = [source(file, text)];
        let line = |v: &Violation| v.place.split(':').nth(1).unwrap().parse().unwrap();
        violations(&all).iter().map(|v| (v.counter, line(v))).collect()
    }

    #[test]
    fn a_paragraph_that_begins_with_a_riddle_counts() {
        let text = "//! What it is.\n\n/// Sends.\n/// Whether it did is unknown.\n///\n/// Where it goes.\nfn a() {\n    \
                    // Who knows.\n}\n/// Whatever.\nfn b() {}\n#[cfg(test)]\nmod c {\n    // What.\n}\n";
        assert_eq!(
            lines("crates/a/src/b.rs", text),
            [1, 6, 8].map(|at| (HouseCounter::Comments, at))
        );
    }

    #[test]
    fn a_safety_text_that_is_a_formula_counts() {
        let text = "fn a() {\n    // SAFETY: by contract.\n    b();\n    // SAFETY: by contract of\n    // `b`, aligned.\n    b();\n    \
                    // SAFETY: the caller's pointers.\n    b();\n    // SAFETY: `b` accepts any number.\n    b();\n}\n";
        assert_eq!(lines("crates/a/src/b.rs", text), [2, 7].map(|at| (HouseCounter::Safety, at)));
    }

    #[test]
    fn tuples_and_flags_count_as_parameters() {
        let text = "fn a(x: (u8, u8), y: &(u8, u8), z: bool, w: (), v: (u8,)) {}\ntrait B {\n    fn c(&self, d: &mut bool);\n}\n";
        let expected =
            [(HouseCounter::Tuples, 1), (HouseCounter::Tuples, 1), (HouseCounter::Bools, 1)];
        assert_eq!(lines("crates/a/src/b.rs", text)[..3], expected);
        assert_eq!(lines("crates/a/src/b.rs", text)[3..], [(HouseCounter::Bools, 3)]);
    }

    #[test]
    fn a_visible_type_name_of_two_files_counts() {
        let all = [
            source(
                "crates/a/src/b.rs",
                "struct Link;\nstruct State;\npub enum Own {}\npub struct Both;\n",
            ),
            source(
                "crates/b/src/c.rs",
                "pub trait Link {}\n#[cfg(test)]\npub struct Own;\nstruct State;\n",
            ),
            source(
                "crates/a/src/d.rs",
                "pub type Twice = u8;\nmod e {\n    pub type Twice = u16;\n}\n",
            ),
            source("xtask/src/f.rs", "pub(crate) union Both {\n    a: u8,\n}\n"),
        ];
        let counts = counted(&violations(&all));
        let crates = ["a", "b", "xtask"];
        let expected = crates.map(|krate| ((krate.to_owned(), HouseCounter::Types), 1));
        assert_eq!(counts, Counts::from(expected));
    }

    #[test]
    fn counts_may_fall_and_not_rise() {
        let counts = |text: &str| parse(text).unwrap();
        let allowed = counts("# Numbers.\na comments 2\na types 1\nb bools 3\n");
        let comparison =
            compare(&counts("a comments 3\na types 1\nb bools 1\nc tuples 1\n"), &allowed);
        assert_eq!(comparison.faults.len(), 2, "{comparison:?}");
        assert!(comparison.faults[0].starts_with("a: 3 comments that begin"), "{comparison:?}");
        assert!(comparison.faults[1].starts_with("c: 1 parameters that are tuples"));
        assert!(comparison.fallen[0].starts_with("b bools fell to 1 (of 3): write 1"));
        assert_eq!(comparison.fallen.len(), 1);
        assert_eq!(counts(&print(&allowed)), allowed);
        assert!(parse("a comments\n").unwrap_err().contains("`a comments`"));
        // A comment has moved from one crate to another.
        assert_eq!(compare_totals(&counts("c comments 1\na comments 1\n"), &allowed), Ok(()));
        let risen = compare_totals(&counts("a comments 2\nc comments 1\n"), &allowed);
        assert!(risen.unwrap_err().starts_with("3 comments that begin"));
    }
}
