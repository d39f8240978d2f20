//! Finds the implementations of functions in `src/chapters/**/*.rs`:
//! - a `pub(crate) unsafe fn comm_rank` implements `MPI_Comm_rank`; a function that begins with `try_` is the part of another
//!   function that needs no waiting, and with `lane_` its part for lanes;
//! - the names that a macro's call begins with, up to its first bracket, are implemented by the macro;
//! - a method of a family of functions (`impl Put`, or `impl Collective for Gather` with the methods of that trait)
//!   implements one of its forms: see `calls.rs`. A macro whose call begins with `Collective for Gather` writes the latter.
//!
//! The documentation of such an item begins with the C names of all functions that it implements, and these lines contain nothing
//! else: `/// MPI_Gather, MPI_Igather.`; in a macro's call the documentation comes first. `index.rs` compares the names with the
//! calls.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use weft_abi_data::Abi;

/// The implementations in the chapters.
#[derive(Default)]
pub struct Done {
    /// By name (`comm_rank`).
    pub functions: HashMap<String, Implementation>,
    /// By the name of a family's arguments (`Gather`) and by the name of the method.
    pub methods: BTreeMap<String, HashMap<String, Implementation>>,
    /// All functions, `impl` blocks and calls of macros.
    pub items: Vec<Item>,
    /// The file of each trait.
    pub traits: BTreeMap<String, String>,
}

/// A function or a method that an entry point calls.
#[derive(Clone)]
pub struct Implementation {
    /// Path of the call: `chapters::comm::comm_rank`, `Recv::blocking`.
    pub path: String,
    /// Name by which a reader searches for it: `comm_rank`, `Sends::nonblocking for Send`.
    pub label: String,
    /// Index of its item in [`Done::items`].
    pub item: usize,
}

/// A function, an `impl` block or the call of a macro.
pub struct Item {
    /// Path from the crate's folder: `src/chapters/messages.rs`.
    pub file: String,
    /// Beginning of the item: `impl Sends for Send`.
    pub head: String,
    /// The C names with which its documentation begins.
    pub names: Vec<String>,
}

/// The beginning of the name of an implementation's part that needs no waiting.
pub const TRY: &str = "try_";

/// The beginning of the name of an implementation's part for communicators and requests of lanes.
pub const LANE: &str = "lane_";

/// Returns the name of an implementation: `comm_rank` for `MPI_Comm_rank`, `t_init_thread` for `MPI_T_init_thread`.
pub fn implementation(name: &str) -> String {
    name.strip_prefix("MPI_").unwrap_or(name).to_lowercase()
}

/// A file of the chapters.
struct Source {
    /// Its module: `chapters::messages`.
    module: String,
    /// Path from the crate's folder.
    file: String,
    syntax: syn::File,
}

/// Scans the chapters. `families` are the names of all families' arguments.
pub fn scan(dir: &Path, abi: &Abi, families: &[String]) -> Done {
    println!("cargo::rerun-if-changed={}", dir.display());
    let mut sources = Vec::new();
    read(dir, "chapters", &mut sources);
    let mut done = Done::default();
    let (mut traits, mut impls) = (HashMap::new(), Vec::new());
    for Source { module, file, syntax } in &sources {
        for item in &syntax.items {
            if let syn::Item::Trait(item) = item {
                let name = item.ident.to_string();
                done.traits.insert(name.clone(), file.clone());
                traits.insert(name.clone(), (format!("crate::{module}::{name}"), item));
            }
            let Some(part) = Part::of(item) else { continue };
            let number = done.items.len();
            done.items.push(Item { file: file.clone(), head: part.head, names: part.documented });
            impls.extend(part.methods.map(|methods| (number, methods)));
            for label in part.functions {
                let path = format!("{module}::{label}");
                done.add(abi, Implementation { path, label, item: number }, part.certain);
            }
        }
    }
    for (item, Methods { family, of, own }) in impls {
        if !families.contains(&family) {
            continue;
        }
        let (path, methods) = match of.as_ref().map(|name| traits.get(name)) {
            None => (family.clone(), own),
            Some(None) => continue,
            Some(Some((path, item))) => (format!("<{family} as {path}>"), provided(item)),
        };
        let implementation = |name: String| {
            let label = match &of {
                Some(of) => format!("{of}::{name} for {family}"),
                None => format!("{family}::{name}"),
            };
            (name.clone(), Implementation { path: format!("{path}::{name}"), label, item })
        };
        let known = done.methods.entry(family.clone()).or_default();
        known.extend(methods.into_iter().map(implementation));
    }
    done
}

impl Done {
    /// Adds a function. A name that is not `certain` counts only if an MPI function has it.
    fn add(&mut self, abi: &Abi, new: Implementation, certain: bool) {
        let part = [TRY, LANE].iter().find_map(|prefix| new.label.strip_prefix(prefix));
        let name = part.unwrap_or(&new.label);
        if !abi.functions.iter().any(|f| implementation(&f.name) == name) {
            if !certain {
                return;
            }
            let path = &new.path;
            println!("cargo::warning={path} implements no MPI function: make it pub(super)?");
        }
        if let Some(other) = self.functions.insert(new.label.clone(), new.clone()) {
            panic!("{} is also implemented as {}", new.path, other.path);
        }
    }
}

/// An item that may implement something.
struct Part {
    head: String,
    documented: Vec<String>,
    /// Names of functions. The name of a function is certain to be meant as an implementation, the words of a macro's call are not.
    functions: Vec<String>,
    certain: bool,
    methods: Option<Methods>,
}

/// The methods of an `impl` block.
struct Methods {
    /// The type that has them.
    family: String,
    /// The trait that the methods are of.
    of: Option<String>,
    own: Vec<String>,
}

impl Part {
    fn of(item: &syn::Item) -> Option<Part> {
        match item {
            syn::Item::Fn(item) => Some(Part::of_function(item)),
            syn::Item::Macro(call) => Some(Part::of_call(call)),
            syn::Item::Impl(item) => Some(Part::of_impl(item)),
            _ => None,
        }
    }

    fn of_function(item: &syn::ItemFn) -> Part {
        let (name, certain) = (item.sig.ident.to_string(), is_implementation(item));
        let (head, documented) = (format!("fn {name}"), documented(&item.attrs));
        let functions = if certain { vec![name] } else { Vec::new() };
        Part { head, documented, functions, certain, methods: None }
    }

    /// Reads a macro's call, which writes the methods of a trait, or functions whose names come first.
    fn of_call(call: &syn::ItemMacro) -> Part {
        let name = call.mac.path.segments.last().map(|last| last.ident.to_string());
        let (attributes, words) = inside(call);
        let head = format!("{}! {}", name.unwrap_or_default(), words.join(" "));
        let methods = match &words[..] {
            [of, middle, family, ..] if middle == "for" => {
                Some(Methods { family: family.clone(), of: Some(of.clone()), own: Vec::new() })
            }
            _ => None,
        };
        let functions = if methods.is_some() { Vec::new() } else { words };
        Part { head, documented: documented(&attributes), functions, certain: false, methods }
    }

    fn of_impl(item: &syn::ItemImpl) -> Part {
        let of = item.trait_.as_ref().and_then(|(path, _)| path.segments.last());
        let of = of.map(|last| last.ident.to_string());
        let family = match &*item.self_ty {
            syn::Type::Path(own) => own.path.get_ident().map(ToString::to_string),
            _ => None,
        };
        let head = match (&of, &family) {
            (Some(of), Some(family)) => format!("impl {of} for {family}"),
            (None, Some(family)) => format!("impl {family}"),
            _ => "impl".to_owned(),
        };
        let own = methods(item.items.iter());
        let methods = family.map(|family| Methods { family, of, own });
        let documented = documented(&item.attrs);
        Part { head, documented, functions: Vec::new(), certain: false, methods }
    }
}

fn is_implementation(item: &syn::ItemFn) -> bool {
    let syn::Visibility::Restricted(seen) = &item.vis else { return false };
    matches!(item.sig.safety, syn::Safety::Unsafe(_)) && seen.path.is_ident("crate")
}

/// Returns the attributes and the words that a macro's call begins with.
fn inside(call: &syn::ItemMacro) -> (Vec<syn::Attribute>, Vec<String>) {
    let mut rest = call.mac.tokens.clone();
    let take = |input: syn::parse::ParseStream| {
        let attributes = syn::Attribute::parse_outer(input)?;
        rest = input.parse()?;
        Ok(attributes)
    };
    let attributes = call.mac.parse_body_with(take).unwrap_or_default();
    let text = rest.to_string();
    let first = text.split(['(', ')']).next().unwrap_or_default();
    let words = first.split([' ', ',', '\n']).filter(|word| !word.is_empty());
    (attributes, words.map(str::to_owned).collect())
}

/// Returns the C names of the lines with which documentation begins.
fn documented(attributes: &[syn::Attribute]) -> Vec<String> {
    let line = |attribute: &syn::Attribute| {
        let syn::Meta::NameValue(pair) = &attribute.meta else { return None };
        match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(line), .. })
                if pair.path.is_ident("doc") =>
            {
                Some(line.value())
            }
            _ => None,
        }
    };
    let names = |line: String| -> Option<Vec<String>> {
        let words = line.split_whitespace().map(|word| word.trim_end_matches([',', '.']));
        let names = words.map(|word| word.starts_with("MPI_").then(|| word.to_owned()));
        names.collect::<Option<Vec<_>>>().filter(|names| !names.is_empty())
    };
    attributes.iter().filter_map(line).map_while(names).flatten().collect()
}

fn methods<'i>(items: impl Iterator<Item = &'i syn::ImplItem>) -> Vec<String> {
    let name = |item: &syn::ImplItem| match item {
        syn::ImplItem::Fn(method) => Some(method.sig.ident.to_string()),
        _ => None,
    };
    items.filter_map(name).collect()
}

/// Names the methods that a trait has a body for.
fn provided(item: &syn::ItemTrait) -> Vec<String> {
    let name = |item: &syn::TraitItem| match item {
        syn::TraitItem::Fn(method) if method.default.is_some() => {
            Some(method.sig.ident.to_string())
        }
        _ => None,
    };
    item.items.iter().filter_map(name).collect()
}

fn read(dir: &Path, module: &str, sources: &mut Vec<Source>) {
    let entries = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut paths: Vec<_> = entries.flatten().map(|e| e.path()).collect();
    paths.sort();
    for path in paths {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let module = format!("{module}::{stem}");
        if path.is_dir() {
            read(&path, &module, sources);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{stem}.rs: {e}"));
            let file = format!("src/{}.rs", module.replace("::", "/"));
            // The compiler reports syntax errors better.
            if let Ok(syntax) = syn::parse_file(&text) {
                sources.push(Source { module, file, syntax });
            }
        }
    }
}
