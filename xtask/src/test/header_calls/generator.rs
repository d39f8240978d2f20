//! Writes a C program that calls functions of a header by their recipes.

use super::header::{CParameter, CPrototype, MpiHeader};
use super::recipes::{CallRecipe, ParameterRole, RecipeBook, RecipeChapter};
use crate::manual::data::{Argument, ManualData};
use serde::Deserialize;
use std::fmt::Write;

/// Writes programs for one header.
pub struct CallGenerator<'a> {
    pub header: &'a MpiHeader,
    pub book: &'a RecipeBook,
    pub data: &'a ManualData,
    pub unsupported: &'a [UnsupportedCall],
}

/// A row of `crates/legacy/data/unsupported.csv`.
#[derive(Deserialize)]
pub struct UnsupportedCall {
    pub name: String,
    /// `none` if the function ends the job.
    result: String,
    pub sentence: String,
}

/// Reads `crates/legacy/data/unsupported.csv`.
pub fn unsupported() -> Result<Vec<UnsupportedCall>, String> {
    let path = crate::root().join("crates/legacy/data/unsupported.csv");
    let wrong = |e| format!("{}: {e}", path.display());
    let mut reader = csv::Reader::from_path(&path).map_err(wrong)?;
    reader.deserialize().collect::<Result<_, _>>().map_err(wrong)
}

/// The parts of a test that come from one parameter.
struct ParameterText {
    declare: String,
    pass: String,
    after: String,
    completes: bool,
}

/// A job of its own for one function.
#[derive(Clone)]
pub struct ApartCall {
    pub function: String,
    pub exit: i32,
}

/// A program of a chapter.
pub struct ChapterProgram {
    pub source: String,
    /// Names of the functions that the program calls, apart or not.
    pub functions: Vec<String>,
    pub apart: Vec<ApartCall>,
    /// Functions that Weft does not support, and the sentences that it writes.
    pub sentences: Vec<(String, String)>,
}

impl CallGenerator<'_> {
    /// Returns the names of the constants by kind, as tables in C. Leaves out constants that the header does not have.
    pub fn symbols(&self) -> String {
        let mut out = String::new();
        for (kind, names) in &self.book.roles.symbols {
            writeln!(out, "static const NamedValue {kind}[] = {{").unwrap();
            for name in names.split_whitespace().filter(|name| self.header.has(name)) {
                writeln!(out, "    {{\"{name}\", {name}}},").unwrap();
            }
            out += "};\n";
        }
        for name in self.header.functions.keys() {
            writeln!(out, "#define HAS_{name} 1").unwrap();
        }
        out
    }

    /// Returns the functions of the header for which there is no recipe.
    pub fn without_recipe(&self) -> Vec<&str> {
        let names = self.header.functions.keys().map(String::as_str);
        names.filter(|name| self.book.recipe(name).is_none()).collect()
    }

    /// Writes the program of a chapter.
    pub fn program(&self, chapter: &RecipeChapter) -> Result<ChapterProgram, String> {
        let mut source = String::from("#include \"prelude.h\"\n\n");
        source += &chapter.code;
        let (mut functions, mut apart, mut calls) = (Vec::new(), Vec::new(), String::new());
        let mut sentences = Vec::new();
        let (mut selections, mut faults) = (String::new(), Vec::new());
        for child in &chapter.child {
            let name = &child.name;
            writeln!(source, "\nstatic void apart_{name}(int argc, char **argv)\n{{").unwrap();
            writeln!(source, "{}}}", child.body).unwrap();
            selections += &selection(name);
        }
        for (name, prototype) in &self.header.functions {
            let Some((of, recipe)) = self.book.recipe(name) else { continue };
            if of.name != chapter.name {
                continue;
            }
            functions.push(name.clone());
            let recipe = &match recipe.unsupported {
                true => {
                    let row = self.unsupported(name)?;
                    let sentence = format!("{} is not supported: {}", row.name, row.sentence);
                    sentences.push((name.clone(), sentence));
                    unsupported_call(prototype, recipe, row)
                }
                false => recipe.clone(),
            };
            match self.test(prototype, recipe) {
                Ok(text) => source += &text,
                Err(error) => faults.push(format!("{name}: {error}")),
            }
            if recipe.apart {
                apart.push(ApartCall { function: name.clone(), exit: recipe.exit });
                selections += &selection(name);
            } else {
                writeln!(calls, "    if (is_wanted(\"{name}\"))\n        test_{name}();").unwrap();
            }
        }
        if !faults.is_empty() {
            return Err(faults.join("\n"));
        }
        write!(
            source,
            "\nint main(int argc, char **argv)\n{{\n    start(&argc, &argv);\n    if (argc > 1) {{\n{selections}        \
             return 8;\n    }}\n    MPI_Init(&argc, &argv);\n    prepare();\n{calls}    complete();\n    \
             return MPI_Finalize();\n}}\n"
        )
        .unwrap();
        Ok(ChapterProgram { source, functions, apart, sentences })
    }

    /// Returns the row of a function that Weft does not support.
    fn unsupported(&self, name: &str) -> Result<&UnsupportedCall, String> {
        let name = name.strip_prefix('P').unwrap_or(name);
        let row = self.unsupported.iter().find(|row| row.name == name);
        row.ok_or(format!("{name}: no recipe, and unsupported.csv does not have the function"))
    }

    /// Writes the test of one function.
    fn test(&self, prototype: &CPrototype, recipe: &CallRecipe) -> Result<String, String> {
        let name = &prototype.name;
        let is_large = name.ends_with("_c");
        let (count, place) = if is_large { ("MPI_Count", "MPI_Aint") } else { ("int", "int") };
        let mut out = format!(
            "\n#undef CALL\n#undef COUNT\n#undef DISPLACEMENT\n#undef IS_LARGE\n#define CALL {name}\n#define COUNT {count}\n\
             #define DISPLACEMENT {place}\n#define IS_LARGE {}\n",
            u8::from(is_large)
        );
        if recipe.apart {
            write!(out, "static void apart_{name}(int argc, char **argv)\n{{\n").unwrap();
            writeln!(out, "    begin(\"{name}\");\n{}", body(name, recipe)?).unwrap();
            out += "    print_line();\n}\n";
            return Ok(out);
        }
        writeln!(out, "static void test_{name}(void)\n{{\n    begin(\"{name}\");").unwrap();
        let contexts = recipe.context.split_whitespace();
        let contexts =
            contexts.map(|name| self.book.context(name)).collect::<Result<Vec<_>, _>>()?;
        for context in &contexts {
            writeln!(out, "{}", context.before).unwrap();
        }
        if recipe.body.is_empty() {
            out += &self.call(prototype, recipe)?;
        } else {
            writeln!(out, "{}", body(name, recipe)?).unwrap();
        }
        for context in contexts.iter().rev() {
            writeln!(out, "{}", context.after).unwrap();
        }
        out += "    print_line();\n}\n";
        Ok(out)
    }

    /// Writes the arguments, the call, and the checks.
    fn call(&self, prototype: &CPrototype, recipe: &CallRecipe) -> Result<String, String> {
        let mut texts = Vec::new();
        for (at, parameter) in prototype.parameters.iter().enumerate() {
            let argument = self.argument(prototype, at);
            texts.push(self.parameter(parameter, argument, recipe)?);
        }
        let name = argument_names(prototype, |at| self.argument(prototype, at));
        if let Some(unknown) = recipe.arguments.keys().find(|key| !name.contains(key)) {
            // A recipe for several functions may name arguments that some of them do not have.
            if recipe.functions.split_whitespace().count() == 1 && !recipe.functions.contains('*') {
                return Err(format!("no argument {unknown}"));
            }
        }
        let mut out = String::new();
        for text in texts.iter().filter(|text| !text.declare.is_empty()) {
            writeln!(out, "    {}", text.declare).unwrap();
        }
        writeln!(out, "{}", recipe.before).unwrap();
        let pass: Vec<_> = texts.iter().map(|text| text.pass.as_str()).collect();
        writeln!(out, "    code = {}({});", prototype.name, pass.join(", ")).unwrap();
        out += "    show_code(MPI_SUCCESS);\n";
        for completes in [true, false] {
            if !completes {
                writeln!(out, "{}", recipe.after).unwrap();
            }
            let those = texts.iter().filter(|text| text.completes == completes);
            for text in those.filter(|text| !text.after.is_empty()) {
                writeln!(out, "    {}", text.after).unwrap();
            }
        }
        Ok(out)
    }

    /// Returns the standard's description of a parameter, for functions that the standard has.
    fn argument(&self, prototype: &CPrototype, at: usize) -> Option<&Argument> {
        let name = prototype.name.strip_prefix('P').unwrap_or(&prototype.name);
        self.data.function(name)?.arguments.get(at)
    }

    fn parameter(
        &self,
        parameter: &CParameter,
        argument: Option<&Argument>,
        recipe: &CallRecipe,
    ) -> Result<ParameterText, String> {
        let name = argument.map_or(parameter.name.as_str(), |argument| &argument.name);
        let element = parameter.element.as_str();
        let variable = format!("{name}_value");
        let is_hidden = recipe.hide.split_whitespace().any(|hidden| hidden == name);
        let fill = |role: &ParameterRole| {
            let fill = |text: &str| {
                let text = text.replace("{v}", &variable).replace("{type}", element);
                text.replace("{name}", name)
            };
            ParameterText {
                declare: fill(&role.declare),
                pass: fill(&role.pass),
                after: if is_hidden { String::new() } else { fill(&role.after) },
                completes: role.completes,
            }
        };
        let given = recipe.arguments.get(name).map(String::as_str);
        if let Some(role) = given.and_then(|given| given.strip_prefix('@')) {
            let role = self.book.roles.named(role);
            return role.map(fill).ok_or(format!("no role {}", given.unwrap_or_default()));
        }
        if let Some(count) = given.and_then(|given| given.strip_prefix("out ")) {
            return Ok(fill(&ParameterRole {
                kinds: String::new(),
                name: String::new(),
                direction: String::new(),
                parameters: String::new(),
                declare: format!(
                    "{{type}} {{v}}[{count}]; for (int i = 0; i < {count}; i++) {{v}}[i] = UNTOUCHED;"
                ),
                pass: "{v}".to_owned(),
                after: format!("NUMBERS(\"{{name}}\", {{v}}, {count});"),
                completes: false,
            }));
        }
        if let Some(given) = given {
            let list = given.strip_prefix('[').and_then(|given| given.strip_suffix(']'));
            let pass = match list {
                Some(list) => format!("({element}[]){{{list}}}"),
                None => given.to_owned(),
            };
            return Ok(ParameterText {
                declare: String::new(),
                pass,
                after: String::new(),
                completes: false,
            });
        }
        let (kind, direction) = argument.map_or(("", ""), |argument| {
            (argument.meaning.kind.as_str(), argument.meaning.direction.as_str())
        });
        if let Some(role) = self.book.roles.of(kind, direction, name) {
            return Ok(fill(role));
        }
        if let (true, true, Some(role)) =
            (direction == "out", parameter.is_address, self.book.roles.named("number"))
        {
            return Ok(fill(role));
        }
        Err(format!("no role for {name} ({kind}, {direction})"))
    }
}

/// Returns a recipe that calls a function with zeros, and expects the answer that it is not supported.
fn unsupported_call(
    prototype: &CPrototype,
    recipe: &CallRecipe,
    row: &UnsupportedCall,
) -> CallRecipe {
    let pass = prototype.parameters.iter().map(|parameter| match parameter {
        CParameter { is_address: true, .. } => "NULL".to_owned(),
        CParameter { element, .. } if element == "MPI_Comm" => "comm".to_owned(),
        CParameter { element, .. } => format!("({element}){{0}}"),
    });
    let call = format!("CALL({})", pass.collect::<Vec<_>>().join(", "));
    let ends_job = row.result == "none";
    let body = match ends_job {
        true => format!("    OK(MPI_Init(&argc, &argv));\n    prepare();\n    {call};\n"),
        false => format!("    code = {call};\n    show_code(MPI_ERR_UNSUPPORTED_OPERATION);\n"),
    };
    CallRecipe { body, apart: ends_job, exit: i32::from(ends_job), ..recipe.clone() }
}

/// Returns the statements of a recipe, which must call the function. Calls by the name without `P` get the name with `P`.
fn body(name: &str, recipe: &CallRecipe) -> Result<String, String> {
    let plain = format!("{}(", name.strip_prefix('P').unwrap_or(name));
    if !recipe.body.contains("CALL(") && !recipe.body.contains(&plain) {
        return Err("the recipe does not call the function".to_owned());
    }
    Ok(recipe.body.replace(&plain, &format!("{name}(")))
}

fn argument_names<'a>(
    prototype: &'a CPrototype,
    argument: impl Fn(usize) -> Option<&'a Argument>,
) -> Vec<&'a String> {
    let parameters = prototype.parameters.iter().enumerate();
    parameters.map(|(at, own)| argument(at).map_or(&own.name, |argument| &argument.name)).collect()
}

/// Writes the choice of a test by the program's first argument.
fn selection(name: &str) -> String {
    format!(
        "        if (!strcmp(argv[1], \"{name}\")) {{\n            apart_{name}(argc, argv);\n            return 0;\n        }}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recipe of a chapter.
    fn recipe(text: &str) -> CallRecipe {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn both_names_are_called() {
        let of = recipe("functions = 'MPI_A'\nbody = 'MPI_A(1); MPI_Ab(2);'");
        assert_eq!(body("PMPI_A", &of).unwrap(), "PMPI_A(1); MPI_Ab(2);");
        assert_eq!(body("MPI_A", &of).unwrap(), of.body);
        assert!(body("MPI_A_c", &of).is_err());
        let of = recipe("functions = 'MPI_A'\nbody = 'CALL(1);'");
        assert_eq!(body("PMPI_A_c", &of).unwrap(), "CALL(1);");
    }

    #[test]
    fn a_function_without_recipe_is_named() {
        let header = MpiHeader::parse("int MPI_Barrier(MPI_Comm comm); int MPI_New(int a);".into());
        let (book, data) = (RecipeBook::read().unwrap(), ManualData::read().unwrap());
        let generator =
            CallGenerator { header: &header, book: &book, data: &data, unsupported: &[] };
        assert_eq!(generator.without_recipe(), ["MPI_New"]);
        let chapter = book.chapters.iter().find(|chapter| chapter.name == "collectives").unwrap();
        let program = generator.program(chapter).unwrap();
        assert_eq!(program.functions, ["MPI_Barrier"]);
        assert!(program.source.contains("code = MPI_Barrier(comm);"), "{}", program.source);
    }

    #[test]
    fn every_function_of_the_standard_has_a_recipe_and_roles() {
        let (book, data) = (RecipeBook::read().unwrap(), ManualData::read().unwrap());
        let names = data.functions.iter().map(|function| function.name.as_str());
        let missing: Vec<_> = names.filter(|name| book.recipe(name).is_none()).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
