//! Arguments from the caller's view, and their test values: a different value for each place, element, direction and variant.

use super::RecordVariant;
use crate::data::{FunctionForm, Procedure, ProcedureParameter};

/// Class of an argument by its content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArgumentClass {
    /// An integer, or an array of integers.
    Number,
    /// A handle, with C's word for its type.
    Handle(&'static str),
    Status,
    Logical,
    /// A logical that C sees as memory.
    RawLogical,
    Text,
    /// An array of texts, ended by a blank text or with a given length.
    Texts,
    /// An array of lists of texts.
    Table,
    /// Memory of the caller.
    Buffer,
    /// An address that C returns.
    Address,
    Attribute,
    Function,
    State,
    /// An argument that only C has.
    Absent,
}

/// Handle types by the standard's words.
pub const HANDLES: [(&str, &str); 11] = [
    ("COMMUNICATOR", "Comm"),
    ("DATATYPE", "Type"),
    ("ERRHANDLER", "Errhandler"),
    ("FILE", "File"),
    ("GROUP", "Group"),
    ("INFO", "Info"),
    ("MESSAGE", "Message"),
    ("OPERATION", "Op"),
    ("REQUEST", "Request"),
    ("SESSION", "Session"),
    ("WINDOW", "Win"),
];

/// Returns the handle type of a kind, in C's words.
pub fn handle_name(kind: &str) -> Option<&'static str> {
    HANDLES.iter().find(|(word, _)| *word == kind).map(|(_, name)| *name)
}

/// Number of elements of every array of the caller, however many are used.
pub const ROOM: usize = 4;
/// Number of peers, and number of sources of a graph.
const PEERS: usize = 3;
const SOURCES: usize = 2;
/// Number of complete requests that the library reports.
pub const COMPLETE: i64 = 2;

/// An argument with all properties on which its values depend.
#[derive(Clone, Debug)]
pub struct RecordArgument {
    pub name: String,
    pub class: ArgumentClass,
    /// Place in the argument list, from 0.
    pub place: usize,
    pub input: bool,
    pub output: bool,
    /// True if C's integer has 64 bits.
    pub wide: bool,
    /// Number of elements that C uses; 1 if the argument is not an array.
    pub count: usize,
    pub array: bool,
    /// True if C gets the value itself.
    pub by_value: bool,
    /// Kind of the parameter, in the standard's word.
    pub kind: String,
    found_place: bool,
    /// Interface of a callback.
    pub callback: String,
    /// True if the callback has large counts when the call has.
    pub counted: bool,
    /// A value on which other arguments depend.
    fixed: Option<i64>,
}

fn class(p: &ProcedureParameter) -> ArgumentClass {
    if p.c_alone {
        return ArgumentClass::Absent;
    }
    match p.kind.as_str() {
        "BUFFER" => ArgumentClass::Buffer,
        "C_BUFFER" | "C_BUFFER2" => ArgumentClass::Address,
        "STATUS" | "F08_STATUS" | "F90_STATUS" => ArgumentClass::Status,
        "LOGICAL" => ArgumentClass::Logical,
        "LOGICAL_VOID" => ArgumentClass::RawLogical,
        "STRING" => ArgumentClass::Text,
        "STRING_ARRAY" => ArgumentClass::Texts,
        "STRING_2DARRAY" => ArgumentClass::Table,
        "ATTRIBUTE_VAL" | "ATTRIBUTE_VAL_10" => ArgumentClass::Attribute,
        "FUNCTION" | "POLYFUNCTION" => ArgumentClass::Function,
        "EXTRA_STATE" | "EXTRA_STATE2" => ArgumentClass::State,
        kind => handle_name(kind).map_or(ArgumentClass::Number, ArgumentClass::Handle),
    }
}

/// Returns the array length in parameter `name`. If a procedure has several lengths, they differ.
fn length_of(procedure: &Procedure, name: &str) -> Option<usize> {
    let mut lengths: Vec<&str> = Vec::new();
    for p in &procedure.parameters {
        let named = p.length.split(';').next().unwrap_or_default();
        if procedure.parameters.iter().any(|q| q.name == named) && !lengths.contains(&named) {
            lengths.push(named);
        }
    }
    let place = lengths.iter().position(|length| *length == name)?;
    Some([3, 2, 4, 1][place % 4])
}

fn count(procedure: &Procedure, p: &ProcedureParameter) -> usize {
    let neighbors = procedure.name.to_lowercase().contains("neighbor");
    let one = match (p.length.as_str(), p.kind.as_str()) {
        ("*", "DATATYPE") if neighbors && p.name.starts_with("recv") => SOURCES,
        ("*", "INDEX") => COMPLETE as usize,
        ("*", _) => PEERS,
        ("n;3", _) => 9,
        (length, _) => length_of(procedure, length).unwrap_or(1),
    };
    if p.kind.ends_with("STATUS") { one * 8 } else { one }
}

/// Returns values that the bindings themselves query, or that are more than a number.
fn fixed(procedure: &Procedure, p: &ProcedureParameter) -> Option<i64> {
    Some(match (procedure.name.as_str(), p.name.as_str()) {
        ("MPI_Comm_size", "size") | ("MPI_Cartdim_get", "ndims") => PEERS as i64,
        ("MPI_Dist_graph_neighbors_count", "indegree") => SOURCES as i64,
        ("MPI_Dist_graph_neighbors_count", "outdegree") => PEERS as i64,
        // 213 is MPI_DIST_GRAPH.
        ("MPI_Topo_test", "status") => 213,
        ("MPI_Comm_test_inter", "flag") => 0,
        (_, "outcount") => COMPLETE,
        (_, "valuelen") if !p.is_out() => 9,
        (_, "buflen" | "pset_len") => 9,
        _ => return length_of(procedure, &p.name).map(|length| length as i64),
    })
}

/// Returns the arguments of a procedure's function.
pub fn arguments(procedure: &Procedure, form: FunctionForm) -> Vec<RecordArgument> {
    let one = |(place, p): (usize, &ProcedureParameter)| {
        let c_type = &p.types[form as usize];
        let wide = ["MPI_Aint", "MPI_Count", "MPI_Offset"].iter().any(|t| c_type.contains(t));
        RecordArgument {
            name: p.name.clone(),
            class: class(p),
            place,
            input: p.is_in(),
            output: p.is_out(),
            wide: wide || p.kind == "ATTRIBUTE_VAL",
            count: count(procedure, p),
            array: p.is_array() || p.length == "*",
            by_value: !c_type.contains(['*', '[']),
            kind: p.kind.clone(),
            callback: p.callback.clone(),
            counted: p.kind == "POLYFUNCTION",
            found_place: p.kind == "INDEX" && p.is_out() && procedure.find("REQUEST").is_some(),
            fixed: fixed(procedure, p),
        }
    };
    procedure.of(form).enumerate().map(one).collect()
}

impl RecordArgument {
    /// Returns the value of element `k` that the caller sets, except for handles.
    pub fn given(&self, k: usize, variant: RecordVariant) -> i64 {
        let wide = if self.wide { (self.place as i64 + 1) << 33 } else { 0 };
        let number = 1000 * (self.place as i64 + 1) + 100 * variant as i64 + k as i64 + wide;
        let fixed = self.fixed.filter(|_| !self.array);
        match fixed {
            Some(_) if self.is_room() && variant == RecordVariant::Asking => 0,
            _ => fixed.unwrap_or(number),
        }
    }

    /// Returns true if the argument is the room for a text on entry, and the text's length on return.
    pub fn is_room(&self) -> bool {
        let length = ["INFO_VALUE_LENGTH", "STRING_LENGTH"].contains(&self.kind.as_str());
        length && self.input && self.output
    }

    /// Returns the value of element `k` that the library sets, except for handles.
    pub fn returned(&self, k: usize, variant: RecordVariant) -> i64 {
        match (self.kind.as_str(), self.fixed) {
            // An index into an array of the caller.
            ("INDEX", _) if self.is_found_place() => 2 * k as i64 + i64::from(!self.array),
            (_, Some(fixed)) if !self.input && !self.array => fixed,
            // Less than the room.
            ("INFO_VALUE_LENGTH" | "STRING_LENGTH", _) => 7,
            _ => {
                let wide = if self.wide { (self.place as i64 + 1) << 34 } else { 0 };
                let number = 1000 * (self.place as i64 + 1) + 100 * variant as i64 + k as i64;
                500_000 + number + wide
            }
        }
    }

    /// Returns true if the argument tells which of the caller's requests are complete.
    pub fn is_found_place(&self) -> bool {
        self.found_place
    }

    /// Returns true if the argument is recorded after all others: the function that ends the state of its siblings.
    pub fn comes_last(&self) -> bool {
        self.callback == "MPI_Grequest_free_function"
    }

    /// Returns a handle of the caller. Predefined handles are small.
    pub fn handle_given(&self, k: usize, variant: RecordVariant) -> i64 {
        let (place, k) = (self.place as i64, k as i64);
        if variant == RecordVariant::Special {
            256 + 16 * place + k
        } else {
            0x10000 * (place + 1) + 0x1000 + k
        }
    }

    /// Returns a handle that the library makes.
    pub fn handle_returned(&self, k: usize, variant: RecordVariant) -> i64 {
        let (place, k) = (self.place as i64, k as i64);
        if variant == RecordVariant::Special {
            2048 + 16 * place + k
        } else {
            0x2000_0000 + 0x10000 * (place + 1) + k
        }
    }

    /// Returns the truth value of element `k`. Values alternate, so that neighbours differ.
    pub fn truth(&self, k: usize, variant: RecordVariant) -> bool {
        match (self.fixed, self.name.as_str()) {
            (Some(fixed), _) => fixed != 0,
            // A `flag` tells if the other results are set.
            (_, "flag") => variant != RecordVariant::Special,
            _ => (self.place + k + variant as usize).is_multiple_of(2),
        }
    }

    /// Returns the special address for the argument in the variant `Special`, if there is one: Fortran's name, and C's value.
    pub fn special(&self, procedure: &Procedure) -> Option<(&'static str, i64)> {
        let several = procedure.parameters.iter().any(|p| p.kind == "DATATYPE" && p.is_array());
        Some(match (self.class, self.kind.as_str()) {
            (ArgumentClass::Buffer, _) if procedure.name.contains("attach") => {
                ("MPI_BUFFER_AUTOMATIC", 2)
            }
            // With MPI_IN_PLACE the number of peers would not matter, so buffers with an array of datatypes get MPI_BOTTOM.
            (ArgumentClass::Buffer, _) if self.place.is_multiple_of(2) || several => {
                ("MPI_BOTTOM", 0)
            }
            (ArgumentClass::Buffer, _) => ("MPI_IN_PLACE", 1),
            (ArgumentClass::Status, "STATUS") if self.array => ("MPI_STATUSES_IGNORE", 0),
            (ArgumentClass::Status, "STATUS") => ("MPI_STATUS_IGNORE", 0),
            (_, "WEIGHT") if self.place.is_multiple_of(2) => ("MPI_UNWEIGHTED", 10),
            (_, "WEIGHT") => ("MPI_WEIGHTS_EMPTY", 11),
            (_, "ERROR_CODE") if self.array => ("MPI_ERRCODES_IGNORE", 0),
            (ArgumentClass::Texts, _) if self.name == "argv" => ("MPI_ARGV_NULL", 0),
            (ArgumentClass::Table, _) => ("MPI_ARGVS_NULL", 0),
            _ => return None,
        })
    }
}
