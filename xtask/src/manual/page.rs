//! Page of one function, together with its form with large counts.

use super::data::{Argument, ManualData, ManualFunction, error_texts};
use super::examples::{self, Example};
use super::siblings::{self, SiblingForm};
use super::{arguments, buffers};
use roff::{Inline, Roff, bold, italic, roman};
use std::collections::{HashMap, HashSet};

/// Maximum number of characters in a line of the synopsis.
const WIDTH: usize = 76;

/// The error that a function returns if this version of Weft does not implement the function.
pub const NOT_BUILT: &str = "MPI_ERR_UNSUPPORTED_OPERATION";

/// Begins a page, with `manual` in the middle of its first line.
pub fn begin(name: &str, section: &str, manual: &str) -> Roff {
    let mut page = Roff::new();
    let version = format!("Weft {}", env!("CARGO_PKG_VERSION"));
    // The page has no date, so that the same sources always make the same page.
    page.control("TH", [name, section, "\"\"", &version, manual]);
    page
}

/// Maker of the pages of functions, with the data that all pages share.
pub struct PageMaker<'a> {
    data: &'a ManualData,
    /// Functions that the library does not implement.
    not_built: &'a HashSet<String>,
    /// Error classes and their meanings.
    meanings: HashMap<String, String>,
    examples: Vec<Example>,
}

impl<'a> PageMaker<'a> {
    pub fn new(
        data: &'a ManualData,
        not_built: &'a HashSet<String>,
    ) -> Result<PageMaker<'a>, String> {
        Ok(PageMaker { data, not_built, meanings: error_texts()?, examples: examples::all()? })
    }

    /// Returns the text of a function's page.
    pub fn page(&self, function: &ManualFunction) -> Result<String, String> {
        let name = function.name.as_str();
        let large = self.data.large(name);
        let purpose = siblings::purpose(self.data, name)?;
        let mut page = begin(name, "3", "MPI 5.0");
        page.control("SH", ["NAME"]);
        let names: Vec<&str> =
            [Some(name), large.map(|f| f.name.as_str())].into_iter().flatten().collect();
        page.text([roman(format!("{} - {purpose}", names.join(", ")))]);
        synopsis(&mut page, function, large);
        self.arguments(&mut page, function, large)?;
        page.control("SH", ["DESCRIPTION"]);
        page.text([roman(self.description(name, &purpose))]);
        if let Some(promise) = buffers::promise(self.data, function) {
            page.control("SH", ["BUFFERS"]);
            page.text([roman(promise)]);
        }
        self.example(&mut page, name);
        self.errors(&mut page, function, large)?;
        notes(&mut page, function);
        page.control("SH", ["SEE ALSO"]);
        let mut also = Vec::new();
        for other in siblings::see_also(self.data, name) {
            also.extend([bold(other), roman("(3), ")]);
        }
        also.extend([bold("mpicc"), roman("(1), "), bold("mpiexec"), roman("(1)")]);
        page.text(also);
        Ok(page.render())
    }

    fn description(&self, name: &str, purpose: &str) -> String {
        let mut text = format!("{}{}.", purpose[..1].to_uppercase(), &purpose[1..]);
        if let Some((base, form)) = siblings::base(self.data, name) {
            text.push(' ');
            text.push_str(&match form {
                SiblingForm::Nonblocking => format!(
                    "This is the nonblocking form of {base}: it begins the operation and returns a request, \
                     which MPI_Wait or MPI_Test ends."
                ),
                SiblingForm::Persistent => format!(
                    "This is the persistent form of {base}: it makes a request, which MPI_Start starts and \
                     MPI_Wait or MPI_Test ends, any number of times."
                ),
                SiblingForm::WithRequest => format!(
                    "This is {base} with a request of its own, which MPI_Wait or MPI_Test ends."
                ),
                SiblingForm::Begin => format!("This is the first half of {base}; {base}_end is the other."),
                SiblingForm::End => format!("This is the second half of {base}; {base}_begin is the other."),
            });
        }
        if self.data.large(name).is_some() {
            text.push_str(&format!(" {name}_c is the same with larger numbers."));
        }
        text
    }

    fn arguments(
        &self,
        page: &mut Roff,
        function: &ManualFunction,
        large: Option<&ManualFunction>,
    ) -> Result<(), String> {
        let all = both_forms(function, large);
        if all.is_empty() {
            return Ok(());
        }
        page.control("SH", ["ARGUMENTS"]);
        for argument in all {
            page.control("TP", []);
            let direction = &argument.meaning.direction;
            let shape = arguments::shape(argument);
            let shape = if shape.is_empty() { shape } else { format!(", {shape}") };
            let (open, close) = (roman(" ("), roman(format!("{shape})")));
            page.text([bold(&argument.name), open, italic(direction), close]);
            let only = if function.arguments.iter().any(|a| a.name == argument.name) {
                String::new()
            } else {
                format!(" Only {}_c has this argument.", function.name)
            };
            let meaning = arguments::meaning(self.data, function, argument)?;
            page.text([roman(format!("{meaning}{only}"))]);
        }
        Ok(())
    }

    fn example(&self, page: &mut Roff, name: &str) {
        let of = |example: &&Example| example.functions.iter().any(|f| f == name);
        let Some(example) = self.examples.iter().find(of) else { return };
        page.control("SH", ["EXAMPLE"]);
        if !example.is_whole() {
            page.text([roman("On 2 ranks, where rank and size are those of MPI_COMM_WORLD:")]);
        }
        page.control("PP", []);
        page.control("nf", []);
        for line in example.text.lines() {
            if line.is_empty() {
                page.control("sp", []);
            } else {
                page.text([roman(line)]);
            }
        }
        page.control("fi", []);
    }

    fn errors(
        &self,
        page: &mut Roff,
        function: &ManualFunction,
        large: Option<&ManualFunction>,
    ) -> Result<(), String> {
        page.control("SH", ["ERRORS"]);
        let name = function.name.as_str();
        if function.returns != "int" || name.ends_with("_toint") {
            page.text([roman(format!(
                "It returns its result, {}, and no error code.",
                function.returns
            ))]);
            return Ok(());
        }
        page.text(raised(function));
        if self.not_built.contains(name) {
            page.control("TP", []);
            page.text([bold(NOT_BUILT)]);
            page.text([roman("always: this version of Weft has not built the function")]);
            return Ok(());
        }
        // Programs may call MPI_T_init_thread before the interface is initialized.
        let mut classes: Vec<(&str, Vec<&str>)> = Vec::new();
        if is_of_tools(name) && name != "MPI_T_init_thread" {
            classes.push(("MPI_T_ERR_NOT_INITIALIZED", Vec::new()));
        }
        for argument in both_forms(function, large) {
            for class in argument.meaning.errors.split_whitespace() {
                match classes.iter_mut().find(|(other, _)| *other == class) {
                    Some((_, names)) => names.push(&argument.name),
                    None => classes.push((class, vec![&argument.name])),
                }
            }
        }
        for (class, names) in classes {
            let meaning = self.meanings.get(class).ok_or(format!("no words for {class}"))?;
            page.control("TP", []);
            page.text([bold(class)]);
            let colon = if names.is_empty() { "" } else { ": " };
            page.text([roman(format!("{meaning}{colon}{}", names.join(", ")))]);
        }
        page.control("PP", []);
        page.text([roman("Other classes come from the operation itself.")]);
        Ok(())
    }
}

/// Returns the arguments of a function, and the additional arguments of its form with large counts.
fn both_forms<'a>(
    function: &'a ManualFunction,
    large: Option<&'a ManualFunction>,
) -> Vec<&'a Argument> {
    let more = large.iter().flat_map(|large| &large.arguments);
    let more = more.filter(|a| !function.arguments.iter().any(|other| other.name == a.name));
    function.arguments.iter().chain(more).collect()
}

fn synopsis(page: &mut Roff, function: &ManualFunction, large: Option<&ManualFunction>) {
    page.control("SH", ["SYNOPSIS"]);
    page.control("nf", []);
    page.text([bold("#include <mpi.h>")]);
    for form in [Some(function), large].into_iter().flatten() {
        page.control("sp", []);
        for line in prototype(form) {
            page.text([bold(line)]);
        }
    }
    page.control("fi", []);
}

/// Formats a C prototype in lines that fit a terminal.
fn prototype(function: &ManualFunction) -> Vec<String> {
    let begin = format!("{} {}(", function.returns, function.name);
    let indent = " ".repeat(begin.len().min(WIDTH / 2));
    let (mut lines, mut line) = (Vec::new(), begin.clone());
    let mut rest = function.parameters.split(',').map(str::trim).peekable();
    while let Some(parameter) = rest.next() {
        let end = if rest.peek().is_some() { "," } else { ");" };
        let blank = if line.ends_with(['(', ' ']) { "" } else { " " };
        if line.len() + blank.len() + parameter.len() + end.len() > WIDTH && line != begin {
            lines.push(std::mem::replace(&mut line, indent.clone()));
            line.push_str(&format!("{parameter}{end}"));
        } else {
            line.push_str(&format!("{blank}{parameter}{end}"));
        }
    }
    lines.push(line);
    lines
}

/// Returns true if a function belongs to the interface for tools.
fn is_of_tools(name: &str) -> bool {
    name.starts_with("MPI_T_")
}

/// Returns the paragraph about the return value, and about the error handler that is called before the function returns an error.
fn raised(function: &ManualFunction) -> Vec<Inline> {
    let mut text = vec![roman("It returns "), bold("MPI_SUCCESS"), roman(" or an error code.")];
    if is_of_tools(&function.name) {
        text.push(roman(" No error handler is called."));
        return text;
    }
    text.push(roman(" Before it returns an error code, "));
    match owner(function) {
        ErrorHandlerOwner::Argument(kind, name) => {
            text.extend([roman(format!("the error handler of the {kind} ")), bold(name)]);
            text.push(roman(" is called"));
        }
        ErrorHandlerOwner::Request => text.push(roman("the error handler of what the request belongs to is called")),
        ErrorHandlerOwner::File => text.push(roman("the error handler of the file is called")),
        ErrorHandlerOwner::None => text.push(roman(
            "the error handler of MPI_COMM_SELF, if the program has set that, or else that of MPI_COMM_WORLD is called",
        )),
    }
    let first =
        if matches!(owner(function), ErrorHandlerOwner::File) { "returns" } else { "ends the job" };
    text.push(roman(format!("; the initial handler {first}. ")));
    text.extend([bold("MPI_Error_class"), roman("(3) has the class of a code, ")]);
    text.extend([bold("MPI_Error_string"), roman("(3) its words.")]);
    text
}

/// Object whose error handler is called.
enum ErrorHandlerOwner<'a> {
    /// An argument: its kind, and its name.
    Argument(&'static str, &'a str),
    Request,
    File,
    None,
}

/// Returns the owner of the error handler, by the same rule as `owner` in `crates/abi/build/rust.rs`.
fn owner(function: &ManualFunction) -> ErrorHandlerOwner<'_> {
    let name = function.name.as_str();
    let of_files = ["MPI_File_", "MPI_Register_datarep"].iter().any(|s| name.starts_with(s));
    if of_files && name != "MPI_File_create_errhandler" {
        return ErrorHandlerOwner::File;
    }
    let used = |argument: &&Argument| argument.meaning.direction != "out";
    for argument in function.arguments.iter().filter(used) {
        let object = match argument.meaning.kind.as_str() {
            "COMMUNICATOR" => "communicator",
            "WINDOW" => "window",
            "SESSION" => "session",
            _ => continue,
        };
        return ErrorHandlerOwner::Argument(object, &argument.name);
    }
    let one = |a: &Argument| matches!(a.meaning.kind.as_str(), "REQUEST" | "MESSAGE");
    if function.arguments.iter().filter(used).any(one) {
        ErrorHandlerOwner::Request
    } else {
        ErrorHandlerOwner::None
    }
}

fn notes(page: &mut Roff, function: &ManualFunction) {
    page.control("SH", ["NOTES"]);
    if let Some(since) = &function.deprecated {
        page.text([roman(format!("Deprecated since {since}."))]);
        page.control("PP", []);
    }
    page.text([
        bold(format!("P{}", function.name)),
        roman(" is its name for profiling libraries."),
    ]);
}
