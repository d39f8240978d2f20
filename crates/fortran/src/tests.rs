//! Invariants of all generated sources.

use crate::data::procedures;
use crate::entries::{BY_HAND, entry_of, has};
use crate::kinds::CallVariant;
use crate::sections::{SectionRole, role};
use crate::sources;
use std::collections::HashSet;

fn source(name: &str) -> String {
    sources().into_iter().find(|(file, _)| *file == name).expect("a source of this name").1
}

/// Checks the numbers of procedures of the standard for each way: the data are read completely.
#[test]
fn every_way_has_its_procedures() {
    let count = |way| procedures().iter().filter(|p| has(p, way)).count();
    assert_eq!(
        (count(CallVariant::Old), count(CallVariant::New), count(CallVariant::Large)),
        (434, 429, 161)
    );
}

/// Checks that each entry is in one C file, once.
#[test]
fn every_procedure_has_one_entry() {
    let text = ["mpi.c", "mpi_f08.c", "mpi_f08_large.c"].map(source).concat();
    let entries: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("WEFT_ENTRY("))
        .filter_map(|rest| rest.split(", ").nth(1))
        .collect();
    let set: HashSet<_> = entries.iter().copied().collect();
    assert_eq!(set.len(), entries.len(), "an entry stands twice");
    for procedure in procedures() {
        for way in [CallVariant::Old, CallVariant::New, CallVariant::Large] {
            if has(&procedure, way) && !BY_HAND.contains(&procedure.name.as_str()) {
                let entry = entry_of(&procedure, way);
                assert!(set.contains(entry.as_str()), "{entry} is missing");
            }
        }
    }
}

/// Checks that no placeholder of the table is left, and that no argument of C is empty.
#[test]
fn tables_are_filled_in() {
    for name in ["mpi.c", "mpi_f08.c", "mpi_f08_large.c"] {
        for line in source(name).lines().filter(|line| !line.starts_with("#include")) {
            assert!(!line.contains(['$', '#', '@']), "{name}: {line}");
            assert!(!line.contains(", ,") && !line.contains("(, "), "{name}: {line}");
        }
    }
}

/// Checks that fixed form and free form read the same lines.
#[test]
fn the_header_is_for_both_forms() {
    let header = source("mpif.h");
    for line in header.lines().filter(|line| !line.starts_with('!')) {
        assert!(line.len() <= 72 && line.starts_with("      ") && !line.contains('&'), "{line}");
    }
    // C counts the NUL, Fortran does not.
    assert!(header.contains("(MPI_MAX_OBJECT_NAME=127)"));
    assert!(header.contains("(MPI_STATUS_SIZE=8)") && header.contains("(MPI_SOURCE=1)"));
}

#[test]
fn lines_are_no_longer_than_fortran_allows() {
    for name in ["mpi.f90", "mpi_f08.f90", "mpi_f08_types.f90", "mpi_f08_callbacks.f90"] {
        let text = source(name);
        let long = text.lines().find(|line| line.len() > 132);
        assert!(long.is_none(), "{name}: {long:?}");
    }
}

/// Checks the role of a section of an array, by family.
#[test]
fn buffers_have_roles() {
    let all = procedures();
    let role_of = |name: &str, buffer: &str| {
        let procedure = all.iter().find(|p| p.name == name).expect("a procedure of this name");
        let p = procedure.parameters.iter().find(|p| p.name == buffer).expect("its buffer");
        role(procedure, p)
    };
    let whole = |count: &str, datatype: &str| SectionRole::Whole(count.into(), datatype.into());
    assert_eq!(role_of("MPI_Isend", "buf"), whole("count", "datatype"));
    assert_eq!(role_of("MPI_Bcast_init", "buffer"), whole("count", "datatype"));
    assert_eq!(role_of("MPI_Sendrecv", "recvbuf"), whole("recvcount", "recvtype"));
    assert_eq!(role_of("MPI_Igather", "sendbuf"), whole("sendcount", "sendtype"));
    assert_eq!(role_of("MPI_Igather", "recvbuf"), SectionRole::Blocks("recvtype".into()));
    assert_eq!(role_of("MPI_Neighbor_allgather", "sendbuf"), whole("sendcount", "sendtype"));
    assert_eq!(role_of("MPI_Alltoallv", "sendbuf"), SectionRole::Blocks("sendtype".into()));
    assert_eq!(role_of("MPI_Psend_init", "buf"), SectionRole::Blocks("datatype".into()));
    assert_eq!(role_of("MPI_Alltoallw", "recvbuf"), SectionRole::Packed);
    assert_eq!(role_of("MPI_Iallreduce", "recvbuf"), SectionRole::Packed);
    assert_eq!(role_of("MPI_Accumulate", "origin_addr"), whole("origin_count", "origin_datatype"));
    assert_eq!(role_of("MPI_Fetch_and_op", "result_addr"), SectionRole::Address);
    assert_eq!(role_of("MPI_Pack", "inbuf"), whole("incount", "datatype"));
    assert_eq!(role_of("MPI_Pack", "outbuf"), SectionRole::Memory);
    assert_eq!(role_of("MPI_Win_create", "base"), SectionRole::Memory);
    assert_eq!(role_of("MPI_File_read_all_end", "buf"), SectionRole::Address);
}

/// Checks that procedures bound to C have no logical and no callback: Fortran forbids both there, even if a compiler accepts
/// them.
#[test]
fn what_is_bound_to_c_can_be() {
    for procedure in procedures().iter().filter(|p| p.is_bound_to_c()) {
        let all = &procedure.parameters;
        let logical = all.iter().find(|p| p.kind.starts_with("LOGICAL"));
        assert!(logical.is_none() && !procedure.takes_callbacks(), "{}", procedure.name);
    }
}

/// Checks that a tool can replace each procedure of `mpi_f08` by its name in table 19.1 of the standard.
#[test]
fn entries_have_the_names_of_the_table() {
    let all = procedures();
    let named = |name: &str, way| {
        entry_of(all.iter().find(|p| p.name == name).expect("a procedure of this name"), way)
    };
    assert_eq!(named("MPI_Isend", CallVariant::New), "mpi_isend_f08ts");
    assert_eq!(named("MPI_Isend", CallVariant::Old), "mpi_isend");
    assert_eq!(named("MPI_Comm_rank", CallVariant::New), "mpi_comm_rank_f08");
    assert_eq!(named("MPI_Type_size", CallVariant::Large), "mpi_type_size_c_f08");
    for procedure in all.iter().filter(|p| has(p, CallVariant::New)) {
        let entry = entry_of(procedure, CallVariant::New);
        assert!(entry.ends_with("_f08") || entry.ends_with("_f08ts"), "{entry}");
    }
}
