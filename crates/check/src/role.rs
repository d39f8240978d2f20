//! Roles of the functions: which checks a call takes part in.

use crate::function::FunctionDescription;

/// Time at which an operation begins and ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timing {
    Blocking,
    Nonblocking,
    Persistent,
}

/// Signatures that all ranks of a collective operation must have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommonSignature {
    None,
    /// The first buffer's count and type.
    First,
    /// The send buffer of all ranks except the root, whose receive buffer counts.
    ToRoot,
    /// The receive buffer of all ranks except the root, whose send buffer counts.
    FromRoot,
    /// The receive buffer of all ranks.
    Receive,
}

/// Role of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallRole {
    Start,
    Finalize,
    Send(Timing),
    Receive(Timing),
    SendReceive(Timing),
    PartitionedSend,
    PartitionedReceive,
    MatchedProbe,
    MatchedReceive(Timing),
    Collective(Timing, CommonSignature),
    Complete(RequestCompletion),
    StartRequests,
    FreeRequest,
    /// An access to a window, or a call that begins or ends an epoch.
    Window,
    /// Any other function. Its handles are counted.
    Other,
}

/// Completions of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestCompletion {
    One,
    All,
    Any,
    Some,
}

/// Collective operations on data, with the signatures that ranks have in common. Each has a nonblocking and a persistent form.
const DATA: &[(&str, CommonSignature)] = &[
    ("Barrier", CommonSignature::None),
    ("Bcast", CommonSignature::First),
    ("Gather", CommonSignature::ToRoot),
    ("Gatherv", CommonSignature::None),
    ("Scatter", CommonSignature::FromRoot),
    ("Scatterv", CommonSignature::None),
    ("Allgather", CommonSignature::Receive),
    ("Allgatherv", CommonSignature::None),
    ("Alltoall", CommonSignature::Receive),
    ("Alltoallv", CommonSignature::None),
    ("Alltoallw", CommonSignature::None),
    ("Reduce", CommonSignature::First),
    ("Allreduce", CommonSignature::First),
    ("Reduce_scatter", CommonSignature::None),
    ("Reduce_scatter_block", CommonSignature::First),
    ("Scan", CommonSignature::First),
    ("Exscan", CommonSignature::First),
    ("Neighbor_allgather", CommonSignature::None),
    ("Neighbor_allgatherv", CommonSignature::None),
    ("Neighbor_alltoall", CommonSignature::None),
    ("Neighbor_alltoallv", CommonSignature::None),
    ("Neighbor_alltoallw", CommonSignature::None),
];

/// Other collective functions, which have no request that the checks follow. The comparison uses the first of their communicator, window and
/// file that is an input. Functions that free an object compare before they free it.
const COLLECTIVE: &[&str] = &[
    "Cart_create",
    "Cart_sub",
    "Comm_create",
    "Comm_dup",
    "Comm_dup_with_info",
    "Comm_split",
    "Comm_split_type",
    "Dist_graph_create",
    "Dist_graph_create_adjacent",
    "Graph_create",
    "Intercomm_create",
    "Intercomm_merge",
    "File_open",
    "File_preallocate",
    "File_read_all",
    "File_read_all_begin",
    "File_read_all_end",
    "File_read_at_all",
    "File_read_at_all_begin",
    "File_read_at_all_end",
    "File_read_ordered",
    "File_read_ordered_begin",
    "File_read_ordered_end",
    "File_seek_shared",
    "File_set_atomicity",
    "File_set_info",
    "File_set_size",
    "File_set_view",
    "File_sync",
    "File_write_all",
    "File_write_all_begin",
    "File_write_all_end",
    "File_write_at_all",
    "File_write_at_all_begin",
    "File_write_at_all_end",
    "File_write_ordered",
    "File_write_ordered_begin",
    "File_write_ordered_end",
    "Win_allocate",
    "Win_allocate_shared",
    "Win_create",
    "Win_create_dynamic",
];

/// Arguments that are equal on all ranks, by function. The first two are in reports.
const EQUAL_ARGUMENTS: &[(&str, &[&str])] = &[
    ("Cart_create", &["ndims", "dims"]),
    ("File_open", &["amode"]),
    ("File_preallocate", &["size"]),
    ("File_seek_shared", &["offset", "whence"]),
    ("File_set_atomicity", &["flag"]),
    ("File_set_size", &["size"]),
    ("Graph_create", &["nnodes"]),
    ("Intercomm_create", &["local_leader"]),
    ("Reduce_scatter", &["recvcounts"]),
    ("Ireduce_scatter", &["recvcounts"]),
    ("Reduce_scatter_init", &["recvcounts"]),
    ("Win_fence", &["assert"]),
];

/// Returns the names of the arguments that are equal on all ranks.
pub fn equal_arguments(stem: &str) -> &'static [&'static str] {
    EQUAL_ARGUMENTS.iter().find(|(name, _)| *name == stem).map_or(&[], |(_, names)| names)
}

/// Returns the name of a collective operation without its timing, in lower case.
pub fn base_name(stem: &str) -> String {
    timing(stem).0.to_ascii_lowercase()
}

const SENDS: [&str; 4] = ["Send", "Ssend", "Bsend", "Rsend"];

/// Returns the role of a function.
pub fn role(function: &FunctionDescription) -> CallRole {
    let stem = function.stem();
    let (base, timing) = timing(stem);
    if let Some(&(_, common)) = DATA.iter().find(|(name, _)| same(name, &base)) {
        return CallRole::Collective(timing, common);
    }
    if COLLECTIVE.contains(&stem) {
        return CallRole::Collective(Timing::Blocking, CommonSignature::None);
    }
    if COLLECTIVE.iter().any(|name| {
        stem.strip_prefix("File_i").is_some_and(|rest| Some(rest) == name.strip_prefix("File_"))
    }) {
        return CallRole::Collective(Timing::Nonblocking, CommonSignature::None);
    }
    if SENDS.iter().any(|name| same(name, &base)) {
        return CallRole::Send(timing);
    }
    match base.to_ascii_lowercase().as_str() {
        "recv" => CallRole::Receive(timing),
        "sendrecv" | "sendrecv_replace" => CallRole::SendReceive(timing),
        "psend" => CallRole::PartitionedSend,
        "precv" => CallRole::PartitionedReceive,
        "mprobe" | "improbe" => CallRole::MatchedProbe,
        "mrecv" => CallRole::MatchedReceive(Timing::Blocking),
        "imrecv" => CallRole::MatchedReceive(Timing::Nonblocking),
        "init" | "init_thread" => CallRole::Start,
        "finalize" => CallRole::Finalize,
        "wait" | "test" => CallRole::Complete(RequestCompletion::One),
        "waitall" | "testall" => CallRole::Complete(RequestCompletion::All),
        "waitany" | "testany" => CallRole::Complete(RequestCompletion::Any),
        "waitsome" | "testsome" => CallRole::Complete(RequestCompletion::Some),
        "start" | "startall" => CallRole::StartRequests,
        "request_free" => CallRole::FreeRequest,
        _ if crate::window::is_access(stem) || crate::window::is_synchronization(stem) => {
            CallRole::Window
        }
        _ => CallRole::Other,
    }
}

/// Compares names without regard to case, since the nonblocking form of `Bcast` is `Ibcast`.
fn same(name: &str, other: &str) -> bool {
    name.eq_ignore_ascii_case(other)
}

/// Splits a name into the blocking operation's name and its timing.
fn timing(stem: &str) -> (String, Timing) {
    if let Some(base) = stem.strip_suffix("_init") {
        return (base.to_owned(), Timing::Persistent);
    }
    let names = DATA.iter().map(|(name, _)| *name).chain(SENDS).chain([
        "Recv",
        "Sendrecv",
        "Sendrecv_replace",
    ]);
    let base = stem.strip_prefix('I').unwrap_or("");
    match names.into_iter().any(|name| same(name, base)) {
        true => (base.to_owned(), Timing::Nonblocking),
        false => (stem.to_owned(), Timing::Blocking),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FUNCTIONS;

    fn of(name: &str) -> CallRole {
        role(FUNCTIONS.iter().find(|f| f.name() == name).unwrap_or_else(|| panic!("{name}")))
    }

    #[test]
    fn names_have_roles() {
        assert_eq!(of("MPI_Send"), CallRole::Send(Timing::Blocking));
        assert_eq!(of("MPI_Issend_c"), CallRole::Send(Timing::Nonblocking));
        assert_eq!(of("MPI_Rsend_init"), CallRole::Send(Timing::Persistent));
        assert_eq!(of("MPI_Irecv"), CallRole::Receive(Timing::Nonblocking));
        assert_eq!(of("MPI_Isendrecv_replace"), CallRole::SendReceive(Timing::Nonblocking));
        assert_eq!(of("MPI_Init"), CallRole::Start);
        assert_eq!(
            of("MPI_Ibcast_c"),
            CallRole::Collective(Timing::Nonblocking, CommonSignature::First)
        );
        assert_eq!(
            of("MPI_Ineighbor_alltoallw"),
            CallRole::Collective(Timing::Nonblocking, CommonSignature::None)
        );
        assert_eq!(
            of("MPI_Barrier_init"),
            CallRole::Collective(Timing::Persistent, CommonSignature::None)
        );
        assert_eq!(of("MPI_Iprobe"), CallRole::Other);
        assert_eq!(of("MPI_Info_create"), CallRole::Other);
    }

    #[test]
    fn all_collective_operations_have_three_forms() {
        for &(name, common) in DATA {
            for timing in [Timing::Blocking, Timing::Nonblocking, Timing::Persistent] {
                let wanted = CallRole::Collective(timing, common);
                let forms = FUNCTIONS.iter().filter(|f| {
                    role(f) == wanted && super::timing(f.stem()).0.eq_ignore_ascii_case(name)
                });
                assert!(forms.count() >= 1, "{name} {timing:?}");
            }
        }
    }
}
