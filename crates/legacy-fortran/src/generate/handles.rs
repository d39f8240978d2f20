//! Classes of handles, keys of attributes, and numbers that the entry points compare with.

use super::{BindingSource, OlderBinding};
use std::fmt::Write;

/// Classes of handles in Rust, the standard's word for the kind of such parameters, and the part of the names of conversions.
pub const CLASSES: [(&str, &str, &str); 11] = [
    ("Comm", "COMMUNICATOR", "Comm"),
    ("Datatype", "DATATYPE", "Type"),
    ("Errhandler", "ERRHANDLER", "Errhandler"),
    ("File", "FILE", "File"),
    ("Group", "GROUP", "Group"),
    ("Info", "INFO", "Info"),
    ("Message", "MESSAGE", "Message"),
    ("Op", "OPERATION", "Op"),
    ("Request", "REQUEST", "Request"),
    ("Session", "SESSION", "Session"),
    ("Win", "WINDOW", "Win"),
];

/// Predefined keys whose attributes are addresses of an `int`.
const INT_KEYS: [&str; 10] = [
    "MPI_TAG_UB",
    "MPI_IO",
    "MPI_HOST",
    "MPI_WTIME_IS_GLOBAL",
    "MPI_APPNUM",
    "MPI_LASTUSEDCODE",
    "MPI_UNIVERSE_SIZE",
    "MPI_WIN_DISP_UNIT",
    "MPI_WIN_CREATE_FLAVOR",
    "MPI_WIN_MODEL",
];

/// Capacities of texts in C, with the NUL.
const CAPACITIES: [&str; 8] = [
    "MPI_MAX_DATAREP_STRING",
    "MPI_MAX_ERROR_STRING",
    "MPI_MAX_INFO_KEY",
    "MPI_MAX_LIBRARY_VERSION_STRING",
    "MPI_MAX_OBJECT_NAME",
    "MPI_MAX_PORT_NAME",
    "MPI_MAX_PROCESSOR_NAME",
    "MPI_UNDEFINED",
];

pub fn write(source: &BindingSource) -> String {
    let mut out = String::new();
    for (class, _, _) in CLASSES {
        out += &handle(source, class);
    }
    out += &keys(source);
    out += &queries(source);
    for name in CAPACITIES {
        writeln!(out, "const {name}: c_int = {};", source.c(name)).unwrap();
    }
    out
}

fn handle(source: &BindingSource, class: &str) -> String {
    let part = CLASSES.iter().find(|row| row.0 == class).expect("a class").2;
    let (kind, nothing) = match source.is_number(class) {
        true => ("c_int", "c_int::MIN + 1"),
        false => ("usize", "usize::MAX"),
    };
    // SAFETY texts stand in the generated code.
    let (conversions, of, number) = match source.is_number(class) {
        true => (String::new(), format!("{class}(number)"), "self.0".to_owned()),
        false => (
            format!(
                "unsafe extern \"C\" {{\n    fn PMPI_{part}_f2c(number: c_int) -> {class};\n    fn PMPI_{part}_c2f(handle: {class}) -> c_int;\n}}\n"
            ),
            format!(
                "static CACHE: HandleCache = HandleCache::new();\n        \
                 // SAFETY: the function takes any number.\n        {class}(CACHE.get(number, |number| unsafe {{ PMPI_{part}_f2c(number) }}.0))"
            ),
            format!(
                "// SAFETY: the function takes any handle.\n        unsafe {{ PMPI_{part}_c2f(self) }}"
            ),
        ),
    };
    format!(
        "/// `MPI_{class}`\n#[repr(transparent)]\n#[derive(Clone, Copy)]\npub struct {class}(pub {kind});\n{conversions}\
         impl NumberedHandle for {class} {{\n    const NOTHING: {class} = {class}({nothing});\n    #[inline(always)]\n    \
         fn of(number: c_int) -> {class} {{\n        {of}\n    }}\n    #[inline(always)]\n    fn number(self) -> c_int {{\n        {number}\n    }}\n    \
         #[inline(always)]\n    fn is_nothing(self) -> bool {{\n        self.0 == Self::NOTHING.0\n    }}\n}}\n\n"
    )
}

fn keys(source: &BindingSource) -> String {
    let fortran = |name: &str| {
        source.constant(name).fortran.unwrap_or_else(|| panic!("{name} is no number in Fortran"))
    };
    let all = INT_KEYS.iter().chain(&["MPI_WIN_SIZE", "MPI_WIN_BASE"]);
    let numbers: Vec<_> =
        all.map(|name| format!("({}, {})", fortran(name), source.c(name))).collect();
    let ints: Vec<_> = INT_KEYS.iter().map(|name| fortran(name).to_string()).collect();
    format!(
        "static KEYS: PredefinedKeys = PredefinedKeys {{\n    numbers: &[{}],\n    ints: &[{}],\n    aint: {},\n}};\n\n",
        numbers.join(", "),
        ints.join(", "),
        fortran("MPI_WIN_SIZE")
    )
}

/// Writes the queries about communicators. Only arrays of handles need their lengths.
fn queries(source: &BindingSource) -> String {
    if source.target == OlderBinding::Mpich {
        return String::new();
    }
    let one = [
        "Comm_test_inter",
        "Comm_size",
        "Comm_remote_size",
        "Comm_rank",
        "Topo_test",
        "Cartdim_get",
    ];
    let declared = one
        .map(|name| format!("    fn PMPI_{name}(comm: Comm, number: *mut c_int) -> c_int;\n"))
        .concat();
    format!(
        "mod query {{\n    use super::*;\n    #[allow(clashing_extern_declarations)]\n    unsafe extern \"C\" {{\n{declared}    \
         fn PMPI_Graph_neighbors_count(comm: Comm, rank: c_int, number: *mut c_int) -> c_int;\n    \
         fn PMPI_Dist_graph_neighbors_count(comm: Comm, sources: *mut c_int, destinations: *mut c_int, weighted: *mut c_int) -> c_int;\n    }}\n    \
         pub static QUERIES: CommQueries<Comm> = CommQueries {{\n        is_inter: PMPI_Comm_test_inter,\n        size: PMPI_Comm_size,\n        \
         remote_size: PMPI_Comm_remote_size,\n        rank: PMPI_Comm_rank,\n        topology: PMPI_Topo_test,\n        dimensions: PMPI_Cartdim_get,\n        \
         graph_neighbors: PMPI_Graph_neighbors_count,\n        dist_neighbors: PMPI_Dist_graph_neighbors_count,\n        \
         cart: {},\n        graph: {},\n        dist_graph: {},\n    }};\n}}\nuse query::QUERIES;\n\n",
        source.c("MPI_CART"),
        source.c("MPI_GRAPH"),
        source.c("MPI_DIST_GRAPH")
    )
}
