//! The standard's functions as data: `crates/abi/data/{functions,parameters,purposes,arguments}.csv`.

use crate::root;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::fs;

/// Properties of an argument, without its C type.
#[derive(Deserialize, Clone)]
pub struct ArgumentMeaning {
    function: String,
    parameter: String,
    /// Kind of the argument, in the standard's own words: `COMMUNICATOR`, `RANK`.
    pub kind: String,
    /// `in`, `out` or `inout`.
    pub direction: String,
    /// Name of the length of an array or of a string; `*` if the length has no name.
    pub length: String,
    /// Classes of the errors that wrong values raise, separated by blanks.
    pub errors: String,
}

pub struct Argument {
    pub name: String,
    /// C declaration: `const int recvcounts[]`.
    pub declaration: String,
    pub meaning: ArgumentMeaning,
}

pub struct ManualFunction {
    /// Name, including `MPI_`.
    pub name: String,
    pub returns: String,
    /// C parameter list, which may be `void` or end in `...`.
    pub parameters: String,
    pub arguments: Vec<Argument>,
    /// Version of the standard that deprecated the function: `MPI-4.0`.
    pub deprecated: Option<String>,
}

#[derive(Deserialize)]
struct Row {
    name: String,
    returns: String,
    parameters: String,
    since_or_deprecated: String,
}

#[derive(Deserialize)]
struct Purpose {
    function: String,
    purpose: String,
}

/// A sentence that describes an argument, for some functions or for all functions.
#[derive(Deserialize)]
pub struct Explanation {
    pub parameter: String,
    /// Direction of the argument; empty for any direction.
    pub direction: String,
    /// Names or patterns of functions, separated by blanks; empty for all functions.
    pub functions: String,
    pub meaning: String,
}

pub struct ManualData {
    pub functions: Vec<ManualFunction>,
    pub explanations: Vec<Explanation>,
    index: HashMap<String, usize>,
    purposes: HashMap<String, String>,
}

impl ManualData {
    pub fn read() -> Result<ManualData, String> {
        let meanings: Vec<ArgumentMeaning> = rows("parameters.csv")?;
        let key = |of: &ArgumentMeaning| (of.function.clone(), of.parameter.clone());
        let meanings: HashMap<_, _> = meanings.into_iter().map(|of| (key(&of), of)).collect();
        let functions = rows::<Row>("functions.csv")?.into_iter();
        let functions: Vec<_> =
            functions.map(|row| function(row, &meanings)).collect::<Result<_, _>>()?;
        let index = functions.iter().enumerate().map(|(i, f)| (f.name.clone(), i)).collect();
        let purposes = rows::<Purpose>("purposes.csv")?.into_iter();
        let purposes = purposes.map(|row| (row.function, row.purpose)).collect();
        let explanations = rows("arguments.csv")?;
        Ok(ManualData { functions, explanations, index, purposes })
    }

    pub fn function(&self, name: &str) -> Option<&ManualFunction> {
        self.index.get(name).map(|&i| &self.functions[i])
    }

    /// Returns the form without large counts, for the name of a form with large counts.
    pub fn small(&self, name: &str) -> Option<&ManualFunction> {
        self.function(name.strip_suffix("_c")?)
    }

    /// Returns the form with large counts of a function.
    pub fn large(&self, name: &str) -> Option<&ManualFunction> {
        self.function(&format!("{name}_c"))
    }

    /// Returns the purpose of a function in a few words, if purposes.csv has this function.
    pub fn purpose(&self, name: &str) -> Option<&str> {
        self.purposes.get(name).map(String::as_str)
    }
}

/// Returns the classes of errors, and their texts as in MPI_Error_string.
pub fn error_texts() -> Result<HashMap<String, String>, String> {
    let path = root().join("crates/abi/src/error_texts.rs");
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let quoted: Vec<&str> = text.split('"').skip(1).step_by(2).collect();
    let pairs = quoted.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned()));
    Ok(pairs.collect())
}

/// Reads the rows of a file of the ABI's data.
fn rows<T: DeserializeOwned>(name: &str) -> Result<Vec<T>, String> {
    let path = root().join("crates/abi/data").join(name);
    let wrong = |e| format!("{}: {e}", path.display());
    let mut reader = csv::Reader::from_path(&path).map_err(wrong)?;
    reader.deserialize().collect::<Result<_, _>>().map_err(wrong)
}

fn function(
    row: Row,
    meanings: &HashMap<(String, String), ArgumentMeaning>,
) -> Result<ManualFunction, String> {
    let Row { name, returns, parameters, since_or_deprecated } = row;
    let declarations = parameters.split(',').map(str::trim);
    let declarations = declarations.filter(|text| !matches!(*text, "void" | "..."));
    // The list has separate rows for a form with large counts only if the arguments of this form differ.
    let small = name.strip_suffix("_c").unwrap_or(&name);
    let argument = |declaration: &str| {
        let argument = name_of(declaration);
        let find = |function: &str| meanings.get(&(function.to_owned(), argument.to_owned()));
        let meaning = find(&name).or_else(|| find(small)).cloned();
        let meaning = meaning.ok_or(format!("parameters.csv has no {argument} of {name}"))?;
        let declaration = declaration.to_owned();
        Ok(Argument { name: argument.to_owned(), declaration, meaning })
    };
    let arguments = declarations.map(argument).collect::<Result<_, String>>()?;
    let deprecated = since_or_deprecated.strip_prefix("deprecated: ").map(str::to_owned);
    Ok(ManualFunction { name, returns, parameters, arguments, deprecated })
}

/// Returns the name in a C declaration.
fn name_of(declaration: &str) -> &str {
    let named = declaration.split('[').next().unwrap_or(declaration);
    named.rsplit([' ', '*']).next().unwrap_or(named)
}
