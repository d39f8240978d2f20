//! The standard's procedures and parameters. Each Fortran parameter has its C type.

use std::collections::{HashMap, HashSet};

const PROCEDURES: &str = include_str!("../data/procedures.csv");
const PARAMETERS: &str = include_str!("../data/parameters.csv");
const FUNCTIONS: &str = include_str!("../../abi/data/functions.csv");
const TYPES: &str = include_str!("../../abi/data/types.csv");
const CONSTANTS: &str = include_str!("../../abi/data/constants.csv");

/// A procedure of Fortran, the interface of a callback, or a predefined callback.
#[derive(Clone, Debug)]
pub struct Procedure {
    /// Name as in C: `MPI_Send`.
    pub name: String,
    /// True if `mpif.h` and `mpi` have the procedure.
    pub f90: bool,
    /// True if `mpi_f08` has the procedure.
    pub f08: bool,
    /// True if this is the interface of a callback.
    pub callback: bool,
    /// True if the procedure has no error code.
    pub silent: bool,
    /// For a predefined callback: the interface that it has.
    pub predefined: Option<String>,
    /// All Fortran parameters except `ierror`, and the parameters that only C has.
    pub parameters: Vec<ProcedureParameter>,
    /// Return types of the C function and of its large-count function; `None` if C has no such function.
    pub returns: [Option<String>; 2],
}

/// A parameter of a procedure.
#[derive(Clone, Debug)]
pub struct ProcedureParameter {
    /// Fortran's name.
    pub name: String,
    /// Kind of the parameter, in the standard's word.
    pub kind: String,
    /// `in`, `out` or `inout`.
    pub direction: String,
    /// Length of an array: the name of a parameter, `*`, a constant, or empty.
    pub length: String,
    /// C type without `const`, with brackets as `[]`, in the C function and in its large-count function.
    pub types: [String; 2],
    /// Interface that the callback must have; empty for other parameters.
    pub callback: String,
    /// True if only C has the parameter.
    pub c_alone: bool,
    /// True if only the large-count function has the parameter.
    pub large_only: bool,
    /// True if Fortran's interface declares an intent.
    pub intent: bool,
    /// True if the buffer stays in use after the call.
    pub asynchronous: bool,
}

impl ProcedureParameter {
    /// Returns true if the caller sets the parameter.
    pub fn is_in(&self) -> bool {
        self.direction != "out"
    }

    /// Returns true if the call sets the parameter.
    pub fn is_out(&self) -> bool {
        self.direction != "in"
    }

    /// Returns true if the parameter is an array in C.
    pub fn is_array(&self) -> bool {
        self.types.iter().any(|t| t.contains('['))
            || (self.kind == "STATUS" && !self.length.is_empty())
    }
}

/// C's two functions for a procedure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FunctionForm {
    /// The function whose counts are `int`.
    Plain,
    /// The large-count function, whose name ends with `_c`.
    Large,
}

impl FunctionForm {
    pub const ALL: [FunctionForm; 2] = [FunctionForm::Plain, FunctionForm::Large];

    /// Returns the end of the function's name.
    pub fn suffix(self) -> &'static str {
        match self {
            FunctionForm::Plain => "",
            FunctionForm::Large => "_c",
        }
    }
}

impl Procedure {
    /// Returns the parameters of a function.
    pub fn of(&self, form: FunctionForm) -> impl Iterator<Item = &ProcedureParameter> {
        self.parameters.iter().filter(move |p| form == FunctionForm::Large || !p.large_only)
    }

    /// Returns true if the procedure has an error code.
    pub fn has_error(&self) -> bool {
        !self.silent
    }

    /// Returns true if the procedure takes callbacks.
    pub fn takes_callbacks(&self) -> bool {
        self.parameters.iter().any(|p| !p.callback.is_empty())
    }

    /// Returns true if `mpi_f08` binds the procedure to C. C's descriptors describe sections of arrays, and strings, too. All
    /// other procedures have Fortran's conventions: logicals and callbacks need them, and a tool can replace such procedures
    /// (MPI 5.0, section 19.1.5).
    pub fn is_bound_to_c(&self) -> bool {
        self.find("BUFFER").is_some() && !self.takes_callbacks()
    }

    /// Returns the first parameter of this kind, if there is one.
    pub fn find(&self, kind: &str) -> Option<&ProcedureParameter> {
        self.parameters.iter().find(|p| p.kind == kind)
    }
}

/// Returns the rows of a table, as maps from column to value.
fn rows(text: &str) -> Vec<HashMap<String, String>> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    reader.deserialize().map(|row| row.expect("the standard's data can be read")).collect()
}

/// Returns the C types of a function's parameters.
fn c_types(parameters: &str) -> Vec<String> {
    let one = |text: &str| {
        let text = text.trim().trim_start_matches("const ");
        let brackets = text.find('[').unwrap_or(text.len());
        let (name, brackets) = text.split_at(brackets);
        let end = name.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_').trim();
        format!("{end}{}", if brackets.is_empty() { "" } else { "[]" })
    };
    parameters.split(',').filter(|p| !["", "void", "..."].contains(&p.trim())).map(one).collect()
}

fn parameter(row: &HashMap<String, String>) -> ProcedureParameter {
    let suppressed = &row["suppressed_in"];
    ProcedureParameter {
        name: row["parameter"].clone(),
        kind: row["kind"].clone(),
        direction: row["direction"].clone(),
        length: row["length"].clone(),
        types: Default::default(),
        callback: row["func_type"].clone(),
        c_alone: suppressed.contains("f90_parameter") || row["kind"] == "VARARGS",
        large_only: row["large_only"] == "1",
        intent: !suppressed.contains("f08_intent"),
        asynchronous: row["asynchronous"] == "1",
    }
}

/// Returns the C parameters of each function as the standard writes them, by the function's name in lower case.
pub fn signatures() -> HashMap<String, String> {
    rows(FUNCTIONS).iter().map(|f| (f["name"].to_lowercase(), f["parameters"].clone())).collect()
}

/// Returns the return type and parameter types of C's callbacks, by the name of the callback's type.
pub fn callback_signatures() -> HashMap<String, (String, Vec<String>)> {
    let one = |row: &HashMap<String, String>| {
        // The format is `int (MPI_Copy_function)(MPI_Comm comm, ...)`.
        let (returns, rest) = row["c_declaration"].split_once(" (")?;
        let (name, parameters) = rest.split_once(")(")?;
        let types = c_types(parameters.trim_end_matches(')'));
        Some((name.to_owned(), (returns.to_owned(), types)))
    };
    rows(TYPES).iter().filter_map(one).collect()
}

/// Returns all procedures that a Fortran program can name, with callbacks and predefined callbacks.
pub fn procedures() -> Vec<Procedure> {
    let functions: HashMap<String, (String, Vec<String>)> = rows(FUNCTIONS)
        .iter()
        .map(|f| (f["name"].to_lowercase(), (f["returns"].clone(), c_types(&f["parameters"]))))
        .collect();
    let mut parameters: HashMap<String, Vec<ProcedureParameter>> = HashMap::new();
    let mut with_error = HashSet::new();
    for row in rows(PARAMETERS) {
        let ierror = row["kind"].starts_with("ERROR_CODE") && row["parameter"].starts_with("ierr");
        if ierror {
            with_error.insert(row["procedure"].clone());
        } else {
            parameters.entry(row["procedure"].clone()).or_default().push(parameter(&row));
        }
    }
    let fortran = |row: &HashMap<String, String>| row["f90"] == "1" || row["f08"] == "1";
    let one = |row: &HashMap<String, String>| {
        let name = row["procedure"].clone();
        let small = functions.get(&name.to_lowercase());
        let large = functions.get(&format!("{}_c", name.to_lowercase()));
        let mut parameters = parameters.remove(&name).unwrap_or_default();
        for (which, function) in [small, large].into_iter().enumerate() {
            let mut types = function.map(|(_, types)| types.iter()).into_iter().flatten();
            for p in parameters.iter_mut().filter(|p| which == 1 || !p.large_only) {
                p.types[which] = types.next().cloned().unwrap_or_default();
            }
        }
        Procedure {
            f90: row["f90"] == "1",
            f08: row["f08"] == "1",
            callback: row["callback"] == "1",
            silent: !with_error.contains(&name),
            predefined: Some(row["predefined_function"].clone()).filter(|p| !p.is_empty()),
            parameters,
            returns: [small, large].map(|f| f.map(|(returns, _)| returns.clone())),
            name,
        }
    };
    rows(PROCEDURES).iter().filter(|row| fortran(row)).map(one).collect()
}

/// A named constant: its name, C type, and value or the name of an equal constant.
pub struct NamedConstant {
    /// Name as in C.
    pub name: String,
    /// C type; empty for plain numbers.
    pub c_type: String,
    /// A decimal or hexadecimal number, or the name of another constant.
    pub value: String,
}

/// Returns all constants of the ABI.
pub fn constants() -> Vec<NamedConstant> {
    let one = |row: &HashMap<String, String>| NamedConstant {
        name: row["name"].clone(),
        c_type: row["c_type"].clone(),
        value: row["value"].clone(),
    };
    rows(CONSTANTS).iter().map(one).collect()
}
