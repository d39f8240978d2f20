//! Recipes for calls of MPI functions: `tests/header/*.toml`. `roles.toml` has a value and a check for each kind of a parameter, any
//! other file is a chapter with recipes for functions.

use crate::root;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// The value and the check of a parameter. In all texts `{v}` is a variable of the parameter's own, `{type}` the type of the value or
/// of the elements, and `{name}` the name of the parameter.
#[derive(Deserialize, Clone, Debug)]
pub struct ParameterRole {
    /// Kinds of the standard's data, separated by blanks.
    #[serde(default)]
    pub kinds: String,
    /// Name by which recipes choose the role: `@name`.
    #[serde(default)]
    pub name: String,
    /// `in`, `out` or `inout`; empty for any direction.
    #[serde(default)]
    pub direction: String,
    /// Names of parameters, separated by blanks; empty for any name.
    #[serde(default)]
    pub parameters: String,
    /// Declarations before the call.
    #[serde(default)]
    pub declare: String,
    /// The argument.
    pub pass: String,
    /// Statements after the call, which show or check what the function has stored.
    #[serde(default)]
    pub after: String,
    /// True if the statements complete the operation, so that they come before all other checks.
    #[serde(default)]
    pub completes: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleTable {
    /// Constants by kind, whose names are printed instead of values.
    pub symbols: BTreeMap<String, String>,
    pub role: Vec<ParameterRole>,
}

/// Statements before and after a call.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub struct CallContext {
    pub name: String,
    #[serde(default)]
    pub before: String,
    #[serde(default)]
    pub after: String,
}

/// A way to call some functions.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub struct CallRecipe {
    /// Names or patterns of functions, separated by blanks. A form with large counts has the recipe of the form without.
    pub functions: String,
    /// Names of contexts, separated by blanks, in the order of their statements before the call.
    #[serde(default)]
    pub context: String,
    /// Arguments that differ from the roles of their parameters.
    #[serde(default)]
    pub arguments: BTreeMap<String, String>,
    #[serde(default)]
    pub before: String,
    #[serde(default)]
    pub after: String,
    /// Complete statements of the test, in which `CALL` is the function.
    #[serde(default)]
    pub body: String,
    /// Names of parameters, separated by blanks, whose results depend on the library or on the moment.
    #[serde(default)]
    pub hide: String,
    /// True for a test in a job of its own, which has not initialised MPI.
    #[serde(default)]
    pub apart: bool,
    /// Exit code of the job of a test that is apart.
    #[serde(default)]
    pub exit: i32,
    /// True for functions that Weft does not support.
    #[serde(default)]
    pub unsupported: bool,
}

/// A program that another test starts.
#[derive(Deserialize, Clone, Debug)]
#[serde(deny_unknown_fields)]
pub struct ChildProgram {
    pub name: String,
    pub body: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecipeChapter {
    /// Name of the file, and of the program.
    #[serde(skip)]
    pub name: String,
    /// Functions in C that the recipes use.
    #[serde(default)]
    pub code: String,
    #[serde(default)]
    pub context: Vec<CallContext>,
    #[serde(default)]
    pub child: Vec<ChildProgram>,
    #[serde(default)]
    pub recipe: Vec<CallRecipe>,
}

/// Functions whose lines are not the same with other libraries.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineDifference {
    /// Names or patterns of functions, separated by blanks.
    functions: String,
    /// Names of libraries, separated by blanks.
    libraries: String,
    /// True if the library does not survive the call.
    #[serde(default)]
    pub skip: bool,
    /// Reason for the difference.
    reason: String,
}

#[derive(Deserialize)]
struct DifferenceTable {
    #[serde(default)]
    difference: Vec<LineDifference>,
}

impl LineDifference {
    /// Returns true if the difference is of this function and library.
    pub fn is_of(&self, function: &str, library: &str) -> bool {
        let small = function.strip_prefix('P').unwrap_or(function);
        let small = small.strip_suffix("_c").unwrap_or(small);
        let mut functions = self.functions.split_whitespace();
        self.libraries.split_whitespace().any(|name| name == library)
            && functions.any(|pattern| matches(pattern, small) || matches(pattern, function))
    }
}

/// All recipes.
pub struct RecipeBook {
    pub roles: RoleTable,
    pub chapters: Vec<RecipeChapter>,
    pub differences: Vec<LineDifference>,
}

/// Returns the folder of the recipes.
pub fn folder() -> PathBuf {
    root().join("tests/header")
}

fn read<T: DeserializeOwned>(path: &PathBuf) -> Result<T, String> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
}

impl RecipeBook {
    pub fn read() -> Result<RecipeBook, String> {
        let roles = read(&folder().join("roles.toml"))?;
        let mut paths = super::super::c_programs::list(&folder(), "toml")?;
        let differences: DifferenceTable = read(&folder().join("differences.toml"))?;
        if let Some(bare) = differences.difference.iter().find(|row| row.reason.len() < 20) {
            return Err(format!("differences.toml: {} has no reason", bare.functions));
        }
        paths.retain(|path| !path.ends_with("roles.toml") && !path.ends_with("differences.toml"));
        paths.sort();
        let chapter = |path: &PathBuf| {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            Ok(RecipeChapter { name, ..read(path)? })
        };
        let chapters = paths.iter().map(chapter).collect::<Result<_, String>>()?;
        Ok(RecipeBook { roles, chapters, differences: differences.difference })
    }

    /// Returns the context with a name.
    pub fn context(&self, name: &str) -> Result<&CallContext, String> {
        let all = self.chapters.iter().flat_map(|chapter| &chapter.context);
        all.into_iter().find(|context| context.name == name).ok_or(format!("no context {name}"))
    }

    /// Returns the chapter and the recipe of a function. A recipe that names the function goes before a recipe with a pattern.
    pub fn recipe(&self, function: &str) -> Option<(&RecipeChapter, &CallRecipe)> {
        let function = function.strip_prefix('P').unwrap_or(function);
        let small = function.strip_suffix("_c").unwrap_or(function);
        let all = || self.chapters.iter().flat_map(|c| c.recipe.iter().map(move |r| (c, r)));
        let listed = |recipe: &CallRecipe, test: &dyn Fn(&str) -> bool| {
            recipe.functions.split_whitespace().any(test)
        };
        all()
            .find(|(_, recipe)| listed(recipe, &|name| name == function))
            .or_else(|| all().find(|(_, recipe)| listed(recipe, &|name| name == small)))
            .or_else(|| all().find(|(_, recipe)| listed(recipe, &|name| matches(name, small))))
    }
}

/// Compares a text with a pattern in which `*` stands for any letters.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((begin, rest)) => text.strip_prefix(begin).is_some_and(|left| {
            (0..=left.len()).any(|at| left.is_char_boundary(at) && matches(rest, &left[at..]))
        }),
    }
}

impl RoleTable {
    /// Returns the role with a name.
    pub fn named(&self, name: &str) -> Option<&ParameterRole> {
        self.role.iter().find(|role| role.name == name)
    }

    /// Returns the first role for a parameter.
    pub fn of(&self, kind: &str, direction: &str, parameter: &str) -> Option<&ParameterRole> {
        let has = |list: &str, word: &str| list.split_whitespace().any(|part| part == word);
        self.role.iter().find(|role| {
            has(&role.kinds, kind)
                && (role.direction.is_empty() || role.direction == direction)
                && (role.parameters.is_empty() || has(&role.parameters, parameter))
        })
    }
}
