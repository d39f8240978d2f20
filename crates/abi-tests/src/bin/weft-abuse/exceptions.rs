//! Calls that are left out, and the reasons; and bad values that a function may accept.

use crate::arguments::Bad;
use crate::signature::{HandleKind, Parameter, ParameterType, Signature};

/// Functions that are never called, by their names without `MPI_`, and the reasons.
pub const NEVER: &[(&str, &str)] = &[
    ("Abort", "ends the process, whatever its arguments"),
    ("Init", "the process is initialised already; tests/c/before_init.c"),
    ("Init_thread", "as MPI_Init"),
    ("Free_mem", "its argument is an address that MPI_Alloc_mem gave, or the program is wrong"),
    ("Comm_join", "its argument is a socket, with a peer behind it"),
];

/// Functions that fail on good arguments here, and the reasons.
pub const FAILS: &[(&str, &str)] = &[
    ("Intercomm_", "two groups need two processes"),
    ("Comm_remote_", "an intercommunicator needs two processes"),
    ("Comm_spawn", "there is no such program"),
    ("Comm_accept", "the name is of no port"),
    ("Comm_connect", "the name is of no port"),
    ("Close_port", "the name is of no port"),
    ("Abi_set_fortran_", "only before MPI_Init"),
    ("T_cvar_write", "the settings are read by now"),
    ("T_pvar_write", "the first variable cannot be written"),
    ("T_pvar_reset", "the first variable cannot be reset"),
    ("T_pvar_readreset", "the first variable cannot be reset"),
    ("T_pvar_start", "the first variable is always counting"),
    ("T_pvar_stop", "the first variable is always counting"),
    ("T_event_", "there are no events"),
    ("T_category_get_index", "only if there is a category"),
    ("Lookup_name", "nobody has published it"),
    ("Unpublish_name", "nobody has published it"),
    ("Publish_name", "a name is published once"),
    ("File_delete", "only if there is a file"),
    ("Register_datarep", "a name is registered once"),
    ("Request_get_status", "MPI_Request_get_status may leave its request"),
];

/// A rule on a value: the function (without `MPI_`), the parameter, the values, the reason. `*` at the end of a name stands for any
/// end, at its beginning for any beginning.
struct Rule(&'static str, &'static str, fn(&Bad) -> bool, &'static str);

fn number_above(bad: &Bad, limit: i64) -> bool {
    matches!(bad, Bad::Number(n) | Bad::Element(n) if *n > limit)
}

fn element_large(bad: &Bad) -> bool {
    matches!(bad, Bad::Element(n) if n.unsigned_abs() > 1)
}

fn other_tag(bad: &Bad) -> bool {
    matches!(bad, Bad::Number(0 | 2))
}

fn some_processes(bad: &Bad) -> bool {
    matches!(bad, Bad::Number(n) | Bad::Element(n) if (2..1 << 16).contains(n))
}

const PROCESSES: &str = "so many may be asked for, and the array of codes is shorter";

const NO_MESSAGE: &str = "no message has this tag: the call would wait for ever";

/// Calls that would be mistakes of the test: they ask for memory that the program does not have.
const SKIP: &[Rule] = &[
    Rule(
        "*",
        "*count",
        |b| matches!(b, Bad::Number(n) if (0x10..1 << 40).contains(n)),
        "that many elements are legal, and the buffer is smaller",
    ),
    Rule(
        "*",
        "recvcounts",
        |b| matches!(b, Bad::Element(n) if *n > 4 && *n < 1 << 40),
        "that many elements are legal, and the buffer is smaller",
    ),
    Rule(
        "*",
        "sendcounts",
        |b| matches!(b, Bad::Element(n) if *n > 4 && *n < 1 << 40),
        "that many elements are legal, and the buffer is smaller",
    ),
    Rule("Comm_spawn*", "maxprocs", some_processes, PROCESSES),
    Rule("Comm_spawn*", "array_of_maxprocs", some_processes, PROCESSES),
    Rule("Comm_spawn_multiple", "count", |b| number_above(b, 1), "the lists are shorter"),
    Rule("*", "displs", element_large, "any displacement is legal; the buffer is smaller"),
    Rule("*", "sdispls", element_large, "any displacement is legal; the buffer is smaller"),
    Rule("*", "rdispls", element_large, "any displacement is legal; the buffer is smaller"),
    Rule("*", "n", |b| number_above(b, 1), "the lists are shorter"),
    Rule("*", "length", |b| number_above(b, 1), "the list is shorter"),
    Rule("*", "ndims", |b| number_above(b, 1), "the lists are shorter"),
    Rule("*", "nnodes", |b| number_above(b, 1), "the lists are shorter"),
    Rule("*", "indegree", |b| number_above(b, 1), "the lists are shorter"),
    Rule("*", "outdegree", |b| number_above(b, 1), "the lists are shorter"),
    Rule("Dist_graph_create", "degrees", |b| number_above(b, 1), "the lists are shorter"),
    Rule("Type_create_struct", "count", |b| number_above(b, 1), "the lists are shorter"),
    Rule("Type_*", "count", |b| number_above(b, 1 << 40), "the lists are shorter"),
    Rule("Startall", "count", |b| number_above(b, 1), "the list is shorter"),
    Rule("Waitall", "count", |b| number_above(b, 1), "the list is shorter"),
    Rule("*status_a*", "count", |b| number_above(b, 1), "the list is shorter"),
    Rule("*buffer", "size", |b| number_above(b, 4096), "the buffer is smaller"),
    Rule("Buffer_attach", "size", |b| number_above(b, 4096), "the buffer is smaller"),
    Rule("Win_create", "size", |b| number_above(b, 64), "the memory is smaller"),
    Rule("Win_attach", "size", |b| number_above(b, 64), "the memory is smaller"),
    Rule("Pack*", "outsize", |b| number_above(b, 4096), "the buffer is smaller"),
    Rule("Unpack*", "insize", |b| number_above(b, 4096), "the buffer is smaller"),
    Rule("Pack*", "position", element_large, "any place within the buffer is legal"),
    Rule("Graph_create", "indx", |b| number_above(b, 1), "the list of edges is shorter"),
    Rule("Graph_map", "indx", |b| number_above(b, 1), "the list of edges is shorter"),
    Rule("T_*", "buf", |b| *b == Bad::InPlace, "no argument of communication"),
    Rule("*", "buffer_addr", |b| *b == Bad::InPlace, "no argument of communication"),
    Rule("Pack*", "outbuf", |b| *b == Bad::InPlace, "no argument of communication"),
    Rule("Unpack*", "inbuf", |b| *b == Bad::InPlace, "no argument of communication"),
    Rule("Recv*", "tag", other_tag, NO_MESSAGE),
    Rule("Probe", "tag", other_tag, NO_MESSAGE),
    Rule("Mprobe", "tag", other_tag, NO_MESSAGE),
    Rule("Sendrecv*", "recvtag", other_tag, NO_MESSAGE),
    Rule("Get_address", "location", |_| true, "any address is good"),
];

fn fits(pattern: &str, name: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(""), _) => true,
        (Some(end), None) => name.ends_with(end),
        (Some(middle), Some(_)) => name.contains(middle.trim_end_matches('*')),
        (None, Some(start)) => name.starts_with(start),
        (None, None) => pattern == name,
    }
}

/// Returns the reason why a call is left out.
pub fn skipped(f: &Signature, parameter: &Parameter, bad: &Bad) -> Option<&'static str> {
    let rule = |r: &&Rule| fits(r.0, f.stem()) && fits(r.1, parameter.name) && (r.2)(bad);
    SKIP.iter().find(rule).map(|r| r.3)
}

/// Returns true if two bad arguments together ask for memory that the program does not have.
pub fn never_both(f: &Signature, case: &[(usize, Bad)]) -> bool {
    let has = |bad: fn(&Bad) -> bool| case.iter().any(|(_, b)| bad(b));
    let datatype = case.iter().any(|(i, _)| {
        matches!(
            f.parameters[*i].ty,
            ParameterType::Handle(HandleKind::Datatype)
                | ParameterType::Handles(HandleKind::Datatype)
        )
    });
    // With a datatype that is not predefined, NULL is an address.
    datatype && has(|b| *b == Bad::NoPointer)
}

/// Returns the reason why a function may fail on good arguments.
pub fn fails(f: &Signature) -> Option<&'static str> {
    FAILS.iter().find(|(start, _)| f.stem().starts_with(start)).map(|(_, why)| *why)
}

const PROC_NULL: i64 = -3;

/// Returns true if a function uses or makes a window.
fn one_sided(f: &Signature) -> bool {
    let win = |p: &Parameter| {
        matches!(
            p.ty,
            ParameterType::Handle(HandleKind::Win) | ParameterType::Handles(HandleKind::Win)
        )
    };
    f.parameters.iter().any(win)
}

/// Returns true if success would be wrong: for a handle of no object, or a negative number, if the standard accepts neither.
pub fn must_fail(f: &Signature, parameter: &Parameter, bad: &Bad) -> bool {
    let stem = f.stem();
    match (parameter.ty, bad) {
        // The null handles have names, too.
        (ParameterType::Handle(_), Bad::Null) if stem.ends_with("_get_name") => false,
        // The value may be the handle of another live object.
        (ParameterType::Handle(_), Bad::Turned(bits)) if *bits < 1 << 36 => false,
        (ParameterType::Handles(_), Bad::Behind(b)) if matches!(**b, Bad::Turned(bits) if bits < 1 << 36) => {
            false
        }
        (ParameterType::Handle(kind), Bad::Null) => {
            // Except functions of error handlers: MPI_FILE_NULL has an error handler, too.
            let file = kind != HandleKind::File || !stem.ends_with("_errhandler");
            file && !matches!(
                kind,
                HandleKind::Info | HandleKind::Request | HandleKind::Errhandler | HandleKind::Enum
            )
        }
        (ParameterType::Handle(_), Bad::Uncommitted) => {
            f.parameters.iter().any(|p| p.ty == ParameterType::Memory) && !stem.contains("_attr")
        }
        // Some predefined handles are small numbers. MPI_Op_toint and similar functions are not tested.
        (ParameterType::Handle(_), Bad::Freed | Bad::Turned(_) | Bad::Other(_)) => true,
        (ParameterType::Handles(_), Bad::Behind(b)) if parameter.constant => {
            matches!(**b, Bad::Freed | Bad::Turned(_) | Bad::Other(_))
        }
        // For windows: no negative number except MPI_PROC_NULL is a rank, and there are two types of locks.
        (ParameterType::Int, Bad::Number(_)) if parameter.name == "lock_type" => true,
        (ParameterType::Int, Bad::Number(n)) if *n < 0 && one_sided(f) => match parameter.name {
            "target_rank" | "rank" => *n != PROC_NULL,
            "assert" => false,
            name => name != "errorcode" && name != "keyval",
        },
        (ParameterType::Wide, Bad::Number(n)) if *n < 0 && one_sided(f) => true,
        (ParameterType::Int | ParameterType::Wide, Bad::Number(n)) if *n < 0 => {
            let count = matches!(
                parameter.name,
                "count"
                    | "sendcount"
                    | "recvcount"
                    | "incount"
                    | "outcount"
                    | "n"
                    | "ndims"
                    | "nnodes"
                    | "blocklength"
                    | "sendtag"
                    | "partitions"
                    | "partition"
            );
            let list = stem == "Type_create_resized";
            count && !list
        }
        (ParameterType::Ints | ParameterType::Wides, Bad::Element(n)) if *n < 0 => {
            matches!(parameter.name, "recvcounts" | "sendcounts" | "array_of_blocklengths")
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit() {
        assert!(fits("*", "x") && fits("*count", "sendcount") && fits("Type_*", "Type_vector"));
        assert!(fits("*status_a*", "Request_get_status_all"));
        assert!(!fits("Type_*", "Send") && !fits("*count", "counts") && !fits("n", "ndims"));
    }
}
