//! The prototypes of an MPI header, as its own compiler sees them.

use super::super::tools::quiet;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A parameter of a C function.
#[derive(Clone, Debug, PartialEq)]
pub struct CParameter {
    /// Name in the header. Empty if the header has none.
    pub name: String,
    /// Type of the value or of the elements, without `const` and without stars.
    pub element: String,
    /// True for a pointer or an array.
    pub is_address: bool,
}

/// A function of a header.
#[derive(Clone, Debug, PartialEq)]
pub struct CPrototype {
    pub name: String,
    pub returns: String,
    pub parameters: Vec<CParameter>,
}

/// The functions of a header by name, and the text after preprocessing with the definitions of macros.
pub struct MpiHeader {
    pub functions: BTreeMap<String, CPrototype>,
    text: String,
}

impl MpiHeader {
    /// Reads the header of a compiler wrapper. Writes a source file into `out`.
    pub fn read(mpicc: &Path, out: &Path) -> Result<MpiHeader, String> {
        let source = out.join("include.c");
        fs::write(&source, "#include <mpi.h>\n")
            .map_err(|e| format!("{}: {e}", source.display()))?;
        let text = quiet(Command::new(mpicc).args(["-E", "-P", "-dD"]).arg(&source))?;
        let header = MpiHeader::parse(text);
        if header.functions.len() < 400 {
            return Err(format!("{} has {} functions", mpicc.display(), header.functions.len()));
        }
        Ok(header)
    }

    pub fn parse(text: String) -> MpiHeader {
        let plain: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let plain = plain.join(" ");
        let functions = plain.split([';', '}']).filter_map(prototype);
        let functions = functions.map(|f| (f.name.clone(), f)).collect();
        MpiHeader { functions, text }
    }

    /// Returns true if the header has the word, as a macro or as an enumerator.
    pub fn has(&self, word: &str) -> bool {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        self.text.match_indices(word).any(|(at, _)| {
            let rest = &self.text[at + word.len()..];
            !rest.starts_with(is_part) && !self.text[..at].ends_with(is_part)
        })
    }
}

/// Returns the text without a balanced attribute such as `__attribute__((deprecated("...")))`.
fn without_attributes(declaration: &str) -> String {
    let mut text = declaration.to_owned();
    while let Some(start) = text.find("__attribute__") {
        let mut depth = 0;
        let mut end = text.len();
        for (at, c) in text[start..].char_indices() {
            depth += i32::from(c == '(') - i32::from(c == ')');
            if c == ')' && depth == 0 {
                end = start + at + 1;
                break;
            }
        }
        text.replace_range(start..end, " ");
    }
    text
}

fn prototype(declaration: &str) -> Option<CPrototype> {
    let text = without_attributes(declaration);
    let text = text.trim();
    let (head, rest) = text.split_once('(')?;
    // The header may define inline functions.
    let (parameters, _) = rest.split('{').next()?.rsplit_once(')')?;
    let words: Vec<_> = head.split_whitespace().collect();
    let (name, returns) = words.split_last()?;
    let is_function = name.starts_with("MPI") || name.starts_with("PMPI");
    let is_other = returns.iter().any(|word| ["typedef", "return", "else"].contains(word));
    if !is_function || returns.is_empty() || is_other || head.contains('=') {
        return None;
    }
    let returns = returns.iter().filter(|word| !["extern", "static", "inline"].contains(word));
    let returns: Vec<_> = returns.copied().collect();
    let parameters = parameters.split(',').map(str::trim);
    let parameters = parameters.filter(|text| !matches!(*text, "void" | "" | "..."));
    Some(CPrototype {
        name: (*name).to_owned(),
        returns: returns.join(" "),
        parameters: parameters.map(parameter).collect(),
    })
}

fn parameter(text: &str) -> CParameter {
    let is_address = text.contains(['*', '[']);
    let named = text.split('[').next().unwrap_or(text).replace('*', " ");
    let mut words: Vec<_> = named.split_whitespace().filter(|word| *word != "const").collect();
    let name = if words.len() > 1 { words.pop().unwrap_or_default() } else { "" };
    CParameter { name: name.to_owned(), element: words.join(" "), is_address }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prototypes_are_read_from_preprocessed_text() {
        let header = MpiHeader::parse(
            "#define MPI_SUCCESS 0\ntypedef int (MPI_Some_function)(void *a);\n\
             __attribute__((visibility(\"default\"))) __attribute__((deprecated(\"a (b)\"))) int MPI_Send(const void *buf,\n int count, \
             const MPI_Datatype types[]);\nextern double MPI_Wtime(void);\nint MPI_Pcontrol(const int level, ...);"
                .to_owned(),
        );
        let names: Vec<_> = header.functions.keys().map(String::as_str).collect();
        assert_eq!(names, ["MPI_Pcontrol", "MPI_Send", "MPI_Wtime"]);
        let parameters = &header.functions["MPI_Send"].parameters;
        let of = |at: usize| {
            (
                parameters[at].name.as_str(),
                parameters[at].element.as_str(),
                parameters[at].is_address,
            )
        };
        assert_eq!([of(0), of(1)], [("buf", "void", true), ("count", "int", false)]);
        assert_eq!(of(2), ("types", "MPI_Datatype", true));
        assert_eq!(header.functions["MPI_Wtime"].returns, "double");
        assert!(header.has("MPI_SUCCESS") && !header.has("MPI_SUCC"));
    }
}
