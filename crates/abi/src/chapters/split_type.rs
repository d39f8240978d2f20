//! MPI_Comm_split_type: communicators of the processes that share a resource (MPI 5.0, section 7.4.2), and the resources of the
//! machine (section 9.1.4).
//!
//! Each process sends all parts to which it is bound to all other processes. It sends the parts of every kind, even if it asks for
//! only one kind, because it does not know the kinds for which the other processes ask.

use crate::arguments::{comm, not_null, optional_info, store, store_new};
use crate::chapters::communicators::inherited_with;
use crate::chapters::init::nodes;
use crate::chapters::sessions::members;
use crate::constants::*;
use crate::engine::CommObject;
use crate::error::Error;
use crate::hardware::{self, HardwarePart, KINDS};
use crate::state::state;
use crate::types::{Comm, Info};
use crate::waiting::WaitingCall;
use std::ffi::c_int;

const TYPE: &str = "mpi_hw_resource_type";
const SET: &str = "mpi_pset_name";
/// Name of [`SHARED`].
const MEMORY: &str = "mpi_shared_memory";

/// Columns of the table: the node, then [`KINDS`].
const COLUMNS: usize = 1 + KINDS.len();
const SHARED: usize = 0;

/// Part of the machine to which a process is bound: the node, and the number of the part on the node. `None` if the process is
/// bound to several parts, or to no part.
type Place = Option<(i32, i32)>;

/// Parts to which a process is bound, by column.
type Row = [Place; COLUMNS];

/// Kind of communicator that a process asks for.
#[derive(Clone, Copy)]
enum SplitWish {
    Nothing,
    /// A communicator of the processes that are bound to the same part of the machine. The number is the column of this kind of
    /// part.
    Column(usize),
    /// A communicator of the processes that are bound to the same part of the machine, of any kind. The largest parts that do not
    /// contain all processes are used.
    Smaller,
    /// A communicator of the processes in a process set to which this process belongs. The number is the rank of the set's first
    /// member in the old communicator.
    Set(i32),
}

fn name(column: usize) -> &'static str {
    if column == SHARED { MEMORY } else { KINDS[column - 1] }
}

/// Returns the kind of communicator that an info object asks for.
fn guided(
    comm: &CommObject,
    info: Option<&weft_process::Info>,
    sets: bool,
) -> Result<SplitWish, Error> {
    let get = |key| info.and_then(|info| info.get(key));
    match (get(TYPE), get(SET).filter(|_| sets)) {
        (Some(_), Some(_)) => {
            let text = format!("argument info has both {TYPE} and {SET}: one of them");
            Err(Error::new(MPI_ERR_INFO, text))
        }
        (Some(kind), None) => Ok((0..COLUMNS)
            .find(|&c| name(c) == kind)
            .map_or(SplitWish::Nothing, SplitWish::Column)),
        // A process that names an unknown set gets no communicator, and no error.
        (None, Some(set)) => Ok(members(set).map_or(SplitWish::Nothing, |set| {
            let member = |rank: &u32| set.rank_of(*rank).is_some();
            let first = comm.group().ranks().iter().position(member);
            first.map_or(SplitWish::Nothing, |first| SplitWish::Set(first as i32))
        })),
        (None, None) => Ok(SplitWish::Nothing),
    }
}

/// Returns the parts to which this process is bound.
fn here(comm: &CommObject) -> Row {
    let node = nodes().get(comm.engine().rank()).map_or(0, |&node| node as i32);
    let parts = hardware::here();
    std::array::from_fn(|column| match column {
        SHARED => Some((node, 0)),
        _ => match parts[column - 1] {
            HardwarePart::One(first) => Some((node, first as i32)),
            HardwarePart::Several | HardwarePart::None => None,
        },
    })
}

/// Returns the part that each process gets: the column of the part, and the rank of the part's first process. Parts with more
/// processes are used first. No part has all processes, and no process is in two parts.
fn smaller(rows: &[Row]) -> Vec<Option<(usize, i32)>> {
    let mut parts: Vec<(usize, Vec<usize>)> = Vec::new();
    for column in 0..COLUMNS {
        for (rank, row) in rows.iter().enumerate() {
            let Some(place) = row[column] else { continue };
            let fits = |r: &usize| rows[*r][column] == Some(place);
            let all: Vec<usize> = (0..rows.len()).filter(fits).collect();
            if all[0] == rank && all.len() < rows.len() {
                parts.push((column, all));
            }
        }
    }
    // The sort is stable, so if parts have the same number of processes, the part of the larger kind comes first.
    parts.sort_by_key(|(_, all)| std::cmp::Reverse(all.len()));
    let mut given = vec![None; rows.len()];
    for (column, all) in parts {
        if all.iter().all(|&rank| given[rank].is_none()) {
            all.iter().for_each(|&rank| given[rank] = Some((column, all[0] as i32)));
        }
    }
    given
}

/// MPI_Comm_split_type.
pub(crate) unsafe fn comm_split_type(
    handle: Comm,
    split_type: c_int,
    key: c_int,
    info: Info,
    newcomm: *mut Comm,
) -> Result<(), Error> {
    not_null(newcomm, "newcomm")?;
    let old = comm(handle)?;
    let hints = optional_info(info)?;
    let want = match split_type {
        MPI_UNDEFINED => SplitWish::Nothing,
        MPI_COMM_TYPE_SHARED => SplitWish::Column(SHARED),
        MPI_COMM_TYPE_HW_GUIDED => guided(&old, hints.as_ref(), false)?,
        MPI_COMM_TYPE_RESOURCE_GUIDED => guided(&old, hints.as_ref(), true)?,
        MPI_COMM_TYPE_HW_UNGUIDED => SplitWish::Smaller,
        other => {
            let text = format!(
                "argument split_type = {other}: one of MPI_COMM_TYPE_SHARED, _HW_GUIDED, \
                 _HW_UNGUIDED and _RESOURCE_GUIDED, or MPI_UNDEFINED"
            );
            return Err(Error::new(MPI_ERR_ARG, text));
        }
    };
    let call = WaitingCall::new("MPI_Comm_split_type");
    let (mut colour, mut kind) = (None, None);
    if old.remote().is_some() {
        // Colours must have the same meaning in both groups of an intercommunicator. Only the numbers of nodes have this property.
        colour = match want {
            SplitWish::Column(SHARED) => here(&old)[SHARED].map(|(node, _)| node),
            _ => None,
        };
    } else {
        let mut mine = here(&old);
        if matches!(want, SplitWish::Nothing) {
            mine = [None; COLUMNS];
        }
        let packed = mine.map(|place| place.map_or([-1, -1, 0], |(node, part)| [node, part, 1]));
        let all = old.engine().block_on(&call, old.all_edges(packed.to_vec()))?;
        let unpack = |place: &[i32; 3]| (place[2] == 1).then_some((place[0], place[1]));
        let rows: Vec<Row> =
            all.chunks_exact(COLUMNS).map(|row| std::array::from_fn(|c| unpack(&row[c]))).collect();
        match want {
            SplitWish::Nothing => {}
            SplitWish::Column(column) => {
                let mine = rows[old.rank()][column];
                let first = mine.and_then(|_| rows.iter().position(|row| row[column] == mine));
                colour = first.map(|first| first as i32);
            }
            SplitWish::Smaller => {
                if let Some((column, first)) = smaller(&rows)[old.rank()] {
                    (colour, kind) = (Some(first), Some(name(column)));
                }
            }
            SplitWish::Set(first) => colour = Some(first),
        }
    }
    let new = old.engine().block_on(&call, old.split(colour, key))?;
    let new = inherited_with(&old, new, hints.as_ref(), "MPI_Comm_split_type")?;
    if let Some(kind) = kind
        && info != MPI_INFO_NULL
    {
        crate::chapters::info::change(info, |info| {
            info.set(TYPE, kind);
            Ok(())
        })?;
    }
    // SAFETY: `newcomm` points to room for the result, as MPI requires of the program.
    unsafe { store(newcomm, new, "newcomm") }
}

/// MPI_Get_hw_resource_info.
/// Returns the kinds of parts that this machine has. The value of a kind is true if this process is bound to a single part.
pub(crate) unsafe fn get_hw_resource_info(to: *mut Info) -> Result<(), Error> {
    let mut info = weft_process::Info::default();
    for (kind, part) in KINDS.iter().zip(hardware::here()) {
        match part {
            HardwarePart::None => {}
            HardwarePart::Several => info.set(kind, "false"),
            HardwarePart::One(_) => info.set(kind, "true"),
        }
    }
    // SAFETY: `to` points to room for the result, as MPI requires of the program.
    unsafe { store_new(&state().infos, info, Info, to, "hw_info") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a row for each process, given its node, package and core. The value -1 means that the process may run in several
    /// packages or on several cores.
    fn rows(places: &[(i32, i32, i32)]) -> Vec<Row> {
        let core = 1 + KINDS.iter().position(|&kind| kind == "hwloc://Core").unwrap();
        let place = |node: i32, part: i32| (part >= 0).then_some((node, part));
        let row = |&(node, package, on): &(i32, i32, i32)| {
            let mut row = [None; COLUMNS];
            (row[SHARED], row[1], row[core]) =
                (place(node, 0), place(node, package), place(node, on));
            row
        };
        places.iter().map(row).collect()
    }

    fn columns(rows: &[Row]) -> Vec<Option<(&'static str, i32)>> {
        smaller(rows).into_iter().map(|given| given.map(|(c, first)| (name(c), first))).collect()
    }

    #[test]
    fn the_next_smaller_part_is_less_than_all() {
        let [node, package, core] = [MEMORY, KINDS[0], "hwloc://Core"];
        let two_nodes = rows(&[(0, 0, 0), (0, 0, 1), (1, 0, 0), (1, 4, 4)]);
        let given = [Some((node, 0)), Some((node, 0)), Some((node, 2)), Some((node, 2))];
        assert_eq!(columns(&two_nodes), given);
        let one_node = rows(&[(0, 0, 0), (0, 4, 4), (0, 4, 5)]);
        assert_eq!(
            columns(&one_node),
            [Some((package, 0)), Some((package, 1)), Some((package, 1))]
        );
        let one_package = rows(&[(0, 0, 0), (0, 0, 1)]);
        assert_eq!(columns(&one_package), [Some((core, 0)), Some((core, 1))]);
    }

    #[test]
    fn who_is_bound_to_nothing_smaller_stays_out() {
        assert_eq!(columns(&rows(&[(0, 0, 0)])), [None]);
        let unbound = rows(&[(0, -1, -1), (0, -1, -1), (0, 0, -1)]);
        assert_eq!(columns(&unbound), [None, None, Some((KINDS[0], 2))]);
    }

    #[test]
    fn parts_that_cross_are_given_whole_or_not_at_all() {
        // In this table a core belongs to two packages. Even then, no process may be in two communicators.
        let crossing = rows(&[(0, 0, 0), (0, 0, 9), (0, 4, 9), (0, 4, 9), (0, 4, 3)]);
        let given = columns(&crossing);
        assert_eq!(given[2], given[3]);
        assert_eq!(given[2], given[4]);
        assert_eq!(given[0], given[1]);
        assert_ne!(given[1], given[2]);
    }
}
