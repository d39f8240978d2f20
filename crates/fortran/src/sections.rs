//! What a buffer of `mpi_f08` is to its call, which decides how a section of an array is passed.

use crate::data::{Parameter, Procedure};
use crate::kinds::{is_persistent, outlives};

/// How a buffer that has gaps reaches C.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Role {
    /// It is memory, not elements: gaps are an error.
    Memory,
    /// One element, or what an earlier call described: its address counts.
    Address,
    /// One count and one datatype say all that is in it: names of both.
    Whole(String, String),
    /// Equal blocks, one a peer: the datatype's name.
    Blocks(String),
    /// Its elements are needed without gaps: operands, or a datatype a peer.
    Packed,
}

/// Names of collective operations without the words that say how they are called.
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

/// Procedures that do not move elements.
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

/// The role of the buffer `p`.
pub fn role(procedure: &Procedure, p: &Parameter) -> Role {
    let all = &procedure.parameters;
    let place = all.iter().position(|q| q.name == p.name).unwrap_or_default();
    let mut rest = all[place + 1..].iter().skip_while(|q| q.kind == "BUFFER").peekable();
    let next = rest.peek().map_or("", |q| q.kind.as_str());
    let counted = next.contains("NUM_ELEM") || next == "PARTITION";
    if !counted || ["MPI_Fetch_and_op", "MPI_Compare_and_swap"].contains(&procedure.name.as_str()) {
        let memory = MEMORY.contains(&procedure.name.as_str());
        return if memory { Role::Memory } else { Role::Address };
    }
    let count = rest.clone().find(|q| q.kind.contains("NUM_ELEM"));
    let datatype = rest.find(|q| q.kind == "DATATYPE");
    let (Some(count), Some(datatype)) = (count, datatype) else { return Role::Packed };
    let reduces = procedure.find("OPERATION").is_some() && procedure.find("WINDOW").is_none();
    if reduces || datatype.is_array() {
        return Role::Packed;
    }
    let whole = match stem(&procedure.name).as_str() {
        "bcast" => true,
        "gather" | "gatherv" | "allgather" | "allgatherv" => p.name == "sendbuf",
        "scatter" | "scatterv" => p.name == "recvbuf",
        "alltoall" | "alltoallv" => false,
        _ => next != "PARTITION",
    };
    if whole && !count.is_array() {
        Role::Whole(count.name.clone(), datatype.name.clone())
    } else {
        Role::Blocks(datatype.name.clone())
    }
}

/// C's statement that makes the view, and what stands for the buffer, its count and its datatype.
pub fn view(procedure: &Procedure, p: &Parameter) -> (String, Vec<(String, String)>) {
    let name = &p.name;
    let mut use_of = match (p.is_in(), p.is_out()) {
        (true, false) => "WEFT_READ",
        (false, true) | (false, false) => "WEFT_WRITE",
        (true, true) => "WEFT_READ | WEFT_WRITE",
    }
    .to_owned();
    // Nothing says when such a call is done with a copy.
    let open = procedure.find("WINDOW").is_some() || procedure.name.ends_with("_begin");
    if open && !outlives(procedure) {
        use_of += " | WEFT_NO_COPY";
    }
    if is_persistent(procedure) {
        use_of += " | WEFT_PERSISTENT";
    }
    let mut replaced = vec![(name.clone(), format!("{name}_v.at"))];
    let make = match role(procedure, p) {
        Role::Memory => format!("weft_memory({name})"),
        Role::Address => format!("weft_address({name})"),
        Role::Packed => format!("weft_packed({name}, {use_of})"),
        Role::Whole(count, datatype) => {
            replaced.push((count.clone(), format!("{name}_v.count")));
            replaced.push((datatype.clone(), format!("{name}_v.type")));
            format!("weft_whole({name}, *{count}, weft_Type_in(*{datatype}), {use_of})")
        }
        Role::Blocks(datatype) => {
            replaced.push((datatype.clone(), format!("{name}_v.type")));
            format!("weft_blocks({name}, weft_Type_in(*{datatype}), {use_of})")
        }
    };
    let text = format!("weft_view {name}_v = {make}; void *const {name}_at = {name}_v.at;");
    (format!("{text} (void){name}_at;"), replaced)
}
