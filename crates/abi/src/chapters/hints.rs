//! Assertions and hints of a program about its communicators (MPI 5.0, section 7.4.4).
//!
//! The hints that the standard defines are kept with the communicator and returned by MPI_Comm_get_info. A communicator that is made
//! from another communicator does not inherit the hints. `mpi_assert_no_any_tag` is used if there are lanes and all processes give it
//! to the call that makes the communicator: then the tag of a message gives its lane (`crate::lanes`). Matching uses none of
//! the hints: its cost does not depend on wildcards that nobody uses.
//!
//! A hint of Weft selects the algorithm of an operation on one communicator, as the setting of the same name does for all
//! communicators: `weft_allreduce` = `RGM:7`. All ranks must give the same value. Communicators that are made from the communicator
//! use the same algorithms.

use crate::arguments::{comm, store_new};
use crate::engine::CommObject;
use crate::error::Error;
use crate::state::state;
use crate::types::{Comm, Info};
use std::rc::Rc;
use weft_collective::{CollectiveKind, Selection};

/// Assertion that the process receives no message with `MPI_ANY_TAG`.
pub const NO_ANY_TAG: &str = "mpi_assert_no_any_tag";

/// Hints with the values true and false. The default is false.
const ASSERTIONS: [&str; 5] = [
    NO_ANY_TAG,
    "mpi_assert_no_any_source",
    "mpi_assert_exact_length",
    "mpi_assert_allow_overtaking",
    "mpi_assert_strict_persistent_collective_ordering",
];

/// Hint whose value is a list of words. It has no default.
const KINDS: &str = "mpi_assert_memory_alloc_kinds";

/// Keeps known hints that have a valid value, and ignores all other hints.
pub fn keep(comm: &CommObject, hints: &weft_process::Info) {
    let mut kept = comm.hints.borrow_mut();
    for key in ASSERTIONS {
        if let Some(value) = hints.get(key).filter(|value| ["true", "false"].contains(value)) {
            kept.set(key, value);
        }
    }
    if let Some(value) = hints.bytes(KINDS) {
        kept.set(KINDS, value);
    }
    for operation in CollectiveKind::ALL {
        let key = key(operation);
        let known = |value: &&str| Selection::default().ask_for(operation, value).is_ok();
        if let Some(value) = hints.get(&key).filter(known) {
            kept.set(&key, value);
        }
    }
    drop(kept);
    select(comm);
}

/// Returns the name of the hint that selects an algorithm.
fn key(operation: CollectiveKind) -> String {
    format!("weft_{operation}")
}

/// Makes the communicator use the algorithms that its hints ask for.
pub fn select(comm: &CommObject) {
    let kept = comm.hints.borrow();
    let asked = CollectiveKind::ALL.map(|o| (o, kept.get(&key(o))));
    if asked.iter().all(|(_, value)| value.is_none()) {
        return;
    }
    let mut selection = Selection::clone(&comm.selection());
    for (operation, value) in asked {
        if let Some(value) = value {
            selection.ask_for(operation, value).expect("it was understood when it was kept");
        }
    }
    comm.select(Rc::new(selection));
}

/// MPI_Comm_get_info.
pub(crate) unsafe fn comm_get_info(handle: Comm, to: *mut Info) -> Result<(), Error> {
    let comm = comm(handle)?;
    let mut used = weft_process::Info::default();
    let kept = comm.hints.borrow();
    for key in ASSERTIONS {
        used.set(key, kept.get(key).unwrap_or("false"));
    }
    if let Some(value) = kept.bytes(KINDS) {
        used.set(KINDS, value);
    }
    for key in CollectiveKind::ALL.map(key) {
        if let Some(value) = kept.get(&key) {
            used.set(&key, value);
        }
    }
    // SAFETY: `to` points to room for the result, as MPI requires of the program.
    unsafe { store_new(&state().infos, used, Info, to, "info_used") }
}
