//! Roles of a buffer of `mpi_f08` in its call. The role decides how a section of an array is passed.

use crate::data::{Procedure, ProcedureParameter};
use crate::kinds::{is_persistent, outlives};

/// Treatment of a buffer with gaps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SectionRole {
    /// The buffer is memory, not elements: gaps are an error.
    Memory,
    /// The buffer is one element, or an earlier call described it: only its address counts.
    Address,
    /// A single count and a single datatype describe the entire buffer: names of both.
    Whole(String, String),
    /// The buffer consists of equal blocks, one per peer: name of the datatype.
    Blocks(String),
    /// The elements must be packed without gaps: operands of a reduction, or a datatype per peer.
    Packed,
}

/// Returns the name of a collective operation without prefixes and suffixes for its variants (nonblocking, persistent,
/// neighbor).
fn stem(name: &str) -> String {
    let name = name.to_lowercase();
    let name = name.trim_start_matches("mpi_").trim_end_matches("_init");
    let plain = name.strip_prefix('i').filter(|rest| COLLECTIVE.contains(rest)).unwrap_or(name);
    plain.trim_start_matches("ineighbor_").trim_start_matches("neighbor_").to_owned()
}

const COLLECTIVE: [&str; 11] = [
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "bcast",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "reduce",
];

/// Procedures whose buffer is memory.
const MEMORY: [&str; 9] = [
    "MPI_Buffer_attach",
    "MPI_Comm_attach_buffer",
    "MPI_Session_attach_buffer",
    "MPI_Win_create",
    "MPI_Win_attach",
    "MPI_Pack",
    "MPI_Unpack",
    "MPI_Pack_external",
    "MPI_Unpack_external",
];

/// Returns the role of the buffer `p`.
pub fn role(procedure: &Procedure, p: &ProcedureParameter) -> SectionRole {
    let all = &procedure.parameters;
    let place = all.iter().position(|q| q.name == p.name).unwrap_or_default();
    let mut rest = all[place + 1..].iter().skip_while(|q| q.kind == "BUFFER").peekable();
    let next = rest.peek().map_or("", |q| q.kind.as_str());
    let counted = next.contains("NUM_ELEM") || next == "PARTITION";
    if !counted || ["MPI_Fetch_and_op", "MPI_Compare_and_swap"].contains(&procedure.name.as_str()) {
        let memory = MEMORY.contains(&procedure.name.as_str());
        return if memory { SectionRole::Memory } else { SectionRole::Address };
    }
    let count = rest.clone().find(|q| q.kind.contains("NUM_ELEM"));
    let datatype = rest.find(|q| q.kind == "DATATYPE");
    let (Some(count), Some(datatype)) = (count, datatype) else { return SectionRole::Packed };
    let reduces = procedure.find("OPERATION").is_some() && procedure.find("WINDOW").is_none();
    if reduces || datatype.is_array() {
        return SectionRole::Packed;
    }
    let whole = match stem(&procedure.name).as_str() {
        "bcast" => true,
        "gather" | "gatherv" | "allgather" | "allgatherv" => p.name == "sendbuf",
        "scatter" | "scatterv" => p.name == "recvbuf",
        "alltoall" | "alltoallv" => false,
        _ => next != "PARTITION",
    };
    if whole && !count.is_array() {
        SectionRole::Whole(count.name.clone(), datatype.name.clone())
    } else {
        SectionRole::Blocks(datatype.name.clone())
    }
}

/// Returns C's statement that examines the section, and the replacements of the buffer, its count and its datatype.
pub fn view(procedure: &Procedure, p: &ProcedureParameter) -> (String, Vec<(String, String)>) {
    let name = &p.name;
    let mut use_of = match (p.is_in(), p.is_out()) {
        (true, false) => "WEFT_READ",
        (false, true) | (false, false) => "WEFT_WRITE",
        (true, true) => "WEFT_READ | WEFT_WRITE",
    }
    .to_owned();
    // Nothing tells when such a call no longer needs a copy.
    let open = procedure.find("WINDOW").is_some() || procedure.name.ends_with("_begin");
    if open && !outlives(procedure) {
        use_of += " | WEFT_NO_COPY";
    }
    if is_persistent(procedure) {
        use_of += " | WEFT_PERSISTENT";
    }
    let mut replaced = vec![(name.clone(), format!("{name}_at"))];
    let (count, datatype, gaps) = match role(procedure, p) {
        SectionRole::Memory => (None, None, "weft_no_gaps()".to_owned()),
        // Gaps do not matter for an address.
        SectionRole::Address => {
            return (format!("void *const {name}_at = weft_buffer({name}->base_addr);"), replaced);
        }
        SectionRole::Packed => (None, None, format!("weft_packed_gaps({name}, {use_of})")),
        SectionRole::Whole(count, datatype) => {
            let gaps = format!("weft_whole_gaps({name}, {name}_count, {name}_type, {use_of})");
            (Some(count), Some(datatype), gaps)
        }
        SectionRole::Blocks(datatype) => {
            (None, Some(datatype), format!("weft_blocks_gaps({name}, {name}_type, {use_of})"))
        }
    };
    let counted = count.as_ref().map_or("0".to_owned(), |count| format!("*{count}"));
    let typed = datatype.as_ref().map_or("0".to_owned(), |name| format!("weft_Type_in(*{name})"));
    replaced.extend(count.map(|count| (count, format!("{name}_count"))));
    replaced.extend(datatype.map(|datatype| (datatype, format!("{name}_type"))));
    let refused = refusal(procedure, p);
    (format!("WEFT_VIEW({name}, {counted}, {typed}, {gaps}, {refused})"), replaced)
}

/// Returns C's expression that reports an unsupported section to the error handler of the call's object.
fn refusal(procedure: &Procedure, p: &ProcedureParameter) -> String {
    let owners = [
        ("COMMUNICATOR", "WEFT_COMM"),
        ("WINDOW", "WEFT_WIN"),
        ("FILE", "WEFT_FILE"),
        ("SESSION", "WEFT_SESSION"),
    ];
    let has =
        |kind: &str| procedure.parameters.iter().find(|p| p.kind == kind && p.direction != "out");
    let owner = owners.iter().find_map(|(kind, owner)| Some((*owner, has(kind)?)));
    let (owner, handle) =
        owner.map_or(("WEFT_COMM", "0".to_owned()), |(owner, p)| (owner, format!("*{}", p.name)));
    format!("weft_refused({owner}, {handle}, \"{}: {}\")", procedure.name, p.name)
}
