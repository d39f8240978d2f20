//! What is implemented, by what `src/chapters/**/*.rs` declares:
//! - a `pub(crate) unsafe fn comm_rank` implements `MPI_Comm_rank`; one that begins with `try_` is the part of a function
//!   that needs no waiting;
//! - so do the names that a macro's call begins with, up to its first bracket;
//! - a method of a family of functions (`impl Put`, or `impl Collective for Gather` with the methods of that trait)
//!   implements one of its forms: see `calls.rs`. A macro whose call begins with `Collective for Gather` writes the latter.

use crate::data::Abi;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

/// What the chapters have.
#[derive(Default)]
pub struct Done {
    /// From the name of an implementation (`comm_rank`) to its path in the crate (`chapters::comm::comm_rank`).
    pub functions: HashMap<String, String>,
    /// From the name of a family's arguments (`Gather`) to its methods and how each is called.
    pub methods: BTreeMap<String, HashMap<String, String>>,
}

/// The beginning of the name of an implementation's part that needs no waiting.
pub const TRY: &str = "try_";

/// `MPI_Comm_rank` is implemented by `comm_rank`, `MPI_T_init_thread` by `t_init_thread`.
pub fn implementation(name: &str) -> String {
    name.strip_prefix("MPI_").unwrap_or(name).to_lowercase()
}

/// Files by the paths of their modules.
type Files = Vec<(String, syn::File)>;

/// `families` are the names of all families' arguments.
pub fn scan(dir: &Path, abi: &Abi, families: &[String]) -> Done {
    println!("cargo::rerun-if-changed={}", dir.display());
    let mut files = Files::new();
    read(dir, "chapters", &mut files);
    let mut done = Done::default();
    let is_one = |name: &str| {
        let name = name.strip_prefix(TRY).unwrap_or(name);
        abi.functions.iter().any(|f| implementation(&f.name) == name)
    };
    let mut traits = HashMap::new();
    for (module, file) in &files {
        for item in &file.items {
            let names = match item {
                syn::Item::Fn(item) if is_implementation(item) => vec![item.sig.ident.to_string()],
                syn::Item::Macro(_) if implemented(item).is_some() => continue,
                syn::Item::Macro(call) => words(call).filter(|word| is_one(word)).collect(),
                syn::Item::Trait(item) => {
                    let name = item.ident.to_string();
                    traits.insert(name.clone(), (format!("crate::{module}::{name}"), item));
                    continue;
                }
                _ => continue,
            };
            for name in names {
                let full = format!("{module}::{name}");
                if !is_one(&name) {
                    println!(
                        "cargo::warning={full} implements no MPI function: make it pub(super)?"
                    );
                }
                if let Some(other) = done.functions.insert(name, full.clone()) {
                    panic!("{full} is also implemented as {other}");
                }
            }
        }
    }
    for item in files.iter().flat_map(|(_, file)| &file.items) {
        let Some((family, of, own)) = implemented(item).filter(|(f, ..)| families.contains(f))
        else {
            continue;
        };
        let (path, methods) = match of.map(|name| traits.get(&name)) {
            None => (family.clone(), own),
            Some(None) => continue,
            Some(Some((path, item))) => (format!("<{family} as {path}>"), provided(item)),
        };
        let known = done.methods.entry(family).or_default();
        known.extend(methods.into_iter().map(|name| (name.clone(), format!("{path}::{name}"))));
    }
    done
}

fn is_implementation(item: &syn::ItemFn) -> bool {
    let syn::Visibility::Restricted(seen) = &item.vis else { return false };
    matches!(item.sig.safety, syn::Safety::Unsafe(_)) && seen.path.is_ident("crate")
}

/// The words that a macro's call begins with.
fn words(call: &syn::ItemMacro) -> impl Iterator<Item = String> {
    let text = call.mac.tokens.to_string();
    let first = text.split(['(', ')']).next().unwrap_or_default();
    first.split([' ', ',', '\n']).map(str::to_owned).collect::<Vec<_>>().into_iter()
}

/// The type that an item has methods for, the trait that they are of, and their names.
fn implemented(item: &syn::Item) -> Option<(String, Option<String>, Vec<String>)> {
    match item {
        syn::Item::Macro(call) => {
            let words: Vec<String> = words(call).collect();
            let [name, middle, family, ..] = &words[..] else { return None };
            (middle == "for").then(|| (family.clone(), Some(name.clone()), Vec::new()))
        }
        syn::Item::Impl(item) => {
            let syn::Type::Path(own) = &*item.self_ty else { return None };
            let of = item.trait_.as_ref().and_then(|(path, _)| path.segments.last());
            let of = of.map(|last| last.ident.to_string());
            Some((own.path.get_ident()?.to_string(), of, methods(item.items.iter())))
        }
        _ => None,
    }
}

fn methods<'i>(items: impl Iterator<Item = &'i syn::ImplItem>) -> Vec<String> {
    let name = |item: &syn::ImplItem| match item {
        syn::ImplItem::Fn(method) => Some(method.sig.ident.to_string()),
        _ => None,
    };
    items.filter_map(name).collect()
}

/// What a trait does by itself.
fn provided(item: &syn::ItemTrait) -> Vec<String> {
    let name = |item: &syn::TraitItem| match item {
        syn::TraitItem::Fn(method) if method.default.is_some() => {
            Some(method.sig.ident.to_string())
        }
        _ => None,
    };
    item.items.iter().filter_map(name).collect()
}

fn read(dir: &Path, module: &str, files: &mut Files) {
    let entries = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut paths: Vec<_> = entries.flatten().map(|e| e.path()).collect();
    paths.sort();
    for path in paths {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let module = format!("{module}::{stem}");
        if path.is_dir() {
            read(&path, &module, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{stem}.rs: {e}"));
            // What does not parse, the compiler tells better.
            if let Ok(file) = syn::parse_file(&text) {
                files.push((module, file));
            }
        }
    }
}
