//! The ABI as data: reads `data/*.csv` and parses C declarations.

pub mod removed;
pub mod rust_types;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

/// One C parameter, such as `const int recvcounts[]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Param {
    pub constant: bool,
    /// The type without `const`, stars and brackets.
    pub base: String,
    pub stars: usize,
    /// `""`, `"[]"` or `"[][3]"`.
    pub dims: String,
    pub name: String,
}

pub struct AbiFunction {
    /// The name with `MPI_`.
    pub name: String,
    pub returns: String,
    /// Without `...` (only MPI_Pcontrol has it): a C caller passes the named parameters alike.
    pub params: Vec<Param>,
    /// The parameter list as the data has it, for the header.
    pub c_params: String,
    pub note: String,
}

pub struct Constant {
    pub name: String,
    /// Empty for plain numbers and for aliases of other constants.
    pub c_type: String,
    pub value: String,
    pub note: String,
}

/// A callback prototype or a typedef of one.
pub struct Callback {
    pub name: String,
    pub returns: String,
    pub params: Vec<Param>,
    pub variadic: bool,
    pub c_params: String,
    pub note: String,
}

pub struct Abi {
    pub functions: Vec<AbiFunction>,
    pub constants: Vec<Constant>,
    /// Opaque pointer types with their `MPI_`, and the C structure that each points to.
    pub handles: Vec<(String, String)>,
    pub callbacks: Vec<Callback>,
    /// `(existing type, new name)`, between callback types.
    pub aliases: Vec<(String, String)>,
}

impl Abi {
    pub fn read(dir: &Path) -> Abi {
        let functions = rows(&dir.join("functions.csv"))
            .into_iter()
            .map(|[name, returns, c_params, note]: [String; 4]| {
                let (params, _) = params(&c_params);
                AbiFunction { name, returns, params, c_params, note }
            })
            .collect::<Vec<_>>();
        let constants = rows(&dir.join("constants.csv"))
            .into_iter()
            .map(|[name, c_type, value, note]: [String; 4]| Constant { name, c_type, value, note })
            .collect::<Vec<_>>();
        let mut abi =
            Abi { functions, constants, handles: vec![], callbacks: vec![], aliases: vec![] };
        for [declaration, note] in rows::<2>(&dir.join("types.csv")) {
            abi.add_type(&declaration, note);
        }
        let mut seen = HashSet::new();
        for name in abi.functions.iter().map(|f| &f.name) {
            assert!(seen.insert(name.clone()), "functions.csv has {name} twice");
        }
        abi
    }

    fn add_type(&mut self, declaration: &str, note: String) {
        if let Some(rest) = declaration.strip_prefix("struct ") {
            let (tag, name) = rest.split_once("* ").expect("`struct Tag* Name`");
            self.handles.push((name.to_owned(), tag.to_owned()));
        } else if let Some((returns, rest)) = declaration.split_once(" (") {
            let (name, rest) = rest.split_once(")(").expect("`type (Name)(parameters)`");
            let c_params = rest.strip_suffix(')').expect("`type (Name)(parameters)`").to_owned();
            let (params, variadic) = params(&c_params);
            let (name, returns) = (name.to_owned(), returns.to_owned());
            self.callbacks.push(Callback { name, returns, params, variadic, c_params, note });
        } else if declaration.contains("function") {
            let (old, new) = declaration.split_once(' ').expect("`Old New`");
            self.aliases.push((old.to_owned(), new.to_owned()));
        }
        // The other types are MPI_Aint, MPI_Offset and MPI_Count, which are the same on every platform that we build for.
    }

    pub fn is_callback(&self, c_type: &str) -> bool {
        self.callbacks.iter().any(|c| c.name == c_type)
    }

    pub fn function(&self, name: &str) -> Option<&AbiFunction> {
        self.functions.iter().find(|f| f.name == name)
    }

    /// Returns the form with large counts of `function`, if there is such a form.
    pub fn large(&self, function: &AbiFunction) -> Option<&AbiFunction> {
        self.function(&format!("{}_c", function.name))
    }

    /// Returns the form without large counts of `function`, if `function` is a form with large counts.
    pub fn small(&self, function: &AbiFunction) -> Option<&AbiFunction> {
        self.function(function.name.strip_suffix("_c")?)
    }
}

/// Splits a C parameter list. Returns true if it ends in `...`.
fn params(list: &str) -> (Vec<Param>, bool) {
    let mut out = Vec::new();
    for text in list.split(',').map(str::trim) {
        match text {
            "void" => {}
            "..." => return (out, true),
            _ => out.push(param(text)),
        }
    }
    (out, false)
}

fn param(text: &str) -> Param {
    let (body, dims) = text.split_at(text.find('[').unwrap_or(text.len()));
    let cut = body.rfind([' ', '*']).unwrap_or_else(|| panic!("no name in parameter `{text}`"));
    let (kind, name) = body.split_at(cut + 1);
    let stars = kind.matches('*').count();
    let kind = kind.replace('*', " ");
    let mut words = kind.split_whitespace().peekable();
    let constant = words.next_if_eq(&"const").is_some();
    let base = words.collect::<Vec<_>>().join(" ");
    Param { constant, base, stars, dims: dims.to_owned(), name: name.to_owned() }
}

/// Returns the rows of a CSV file below its heading. Fields with commas are in double quotes.
pub fn rows<const N: usize>(path: &Path) -> Vec<[String; N]> {
    println!("cargo::rerun-if-changed={}", path.display());
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines()
        .skip(1)
        .map(|line| {
            let mut fields = vec![String::new()];
            let mut quoted = false;
            for c in line.chars() {
                match c {
                    '"' => quoted = !quoted,
                    ',' if !quoted => fields.push(String::new()),
                    _ => fields.last_mut().unwrap().push(c),
                }
            }
            fields.try_into().unwrap_or_else(|f: Vec<String>| {
                panic!("{}: {} fields instead of {N} in `{line}`", path.display(), f.len())
            })
        })
        .collect()
}

/// Kinds of the parameters of all procedures, from `parameters.csv`.
pub struct Kinds(HashMap<(String, String), ParameterKind>);

/// Description of one parameter in the standard's source.
#[derive(Clone, Debug)]
pub struct ParameterKind {
    /// Kind in the standard's source, such as `RANK`.
    pub kind: String,
    pub direction: ParameterDirection,
    /// Name of the parameter that holds the number of elements, `*` where no single parameter does, or empty.
    pub length: String,
}

/// ParameterDirection of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParameterDirection {
    In,
    Out,
    InOut,
}

/// Names of parameters in C whose name in `parameters.csv` differs.
const RENAMED: [(&str, &str); 4] =
    [("indx", "index"), ("session", "pe_session"), ("dest", "source"), ("error", "err")];

impl Kinds {
    /// Reads `parameters.csv`.
    ///
    /// # Panics
    /// If the file cannot be read, or has other columns.
    pub fn read(file: &Path) -> Kinds {
        let rows = rows::<14>(file).into_iter().map(|row| {
            let [procedure, parameter, kind, direction, length, ..] = row;
            let direction = match direction.as_str() {
                "in" => ParameterDirection::In,
                "out" => ParameterDirection::Out,
                "inout" => ParameterDirection::InOut,
                other => panic!("{procedure}: direction {other} of {parameter}"),
            };
            ((procedure, parameter), ParameterKind { kind, direction, length })
        });
        Kinds(rows.collect())
    }

    /// Returns what is known of a parameter. A function with large counts has the parameters of the function without `_c`.
    pub fn get(&self, function: &str, parameter: &str) -> Option<&ParameterKind> {
        let function = function.strip_suffix("_c").unwrap_or(function);
        let find = |name: &str| self.0.get(&(function.to_owned(), name.to_owned()));
        let renamed = RENAMED.iter().filter(|(c, _)| *c == parameter).find_map(|(_, n)| find(n));
        find(parameter).or(renamed)
    }
}
