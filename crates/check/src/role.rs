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

/// Other collective functions over a communicator, which have no request.
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
    "File_open",
    "Graph_create",
    "Win_allocate",
    "Win_allocate_shared",
    "Win_create",
    "Win_create_dynamic",
];

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
