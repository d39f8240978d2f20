//! Groups: ordered sets of processes (MPI 5.0, section 7.3).

use crate::arguments::{count, group, not_null, store, store_new};
use crate::arrays::{list, store_list};
use crate::constants::*;
use crate::error::Error;
use crate::state::{engine, state};
use crate::types::Group;
use std::collections::HashMap;
use std::ffi::c_int;
use weft_process::Compare;

/// MPI_Group_size.
pub(crate) unsafe fn group_size(handle: Group, size: *mut c_int) -> Result<(), Error> {
    // SAFETY: `size` points to room for the result, as MPI requires of the program.
    unsafe { store(size, group(handle, "group")?.size() as c_int, "size") }
}

/// MPI_Group_rank.
pub(crate) unsafe fn group_rank(handle: Group, rank: *mut c_int) -> Result<(), Error> {
    let place = group(handle, "group")?.rank_of(engine()?.rank() as u32);
    // SAFETY: `rank` points to room for the result, as MPI requires of the program.
    unsafe { store(rank, place.map_or(MPI_UNDEFINED, |r| r as c_int), "rank") }
}

/// MPI_Group_compare.
pub(crate) unsafe fn group_compare(a: Group, b: Group, result: *mut c_int) -> Result<(), Error> {
    let found = match group(a, "group1")?.compare(&group(b, "group2")?) {
        Compare::Ident | Compare::Congruent => MPI_IDENT,
        Compare::Similar => MPI_SIMILAR,
        Compare::Unequal => MPI_UNEQUAL,
    };
    // SAFETY: `result` points to room for the result, as MPI requires of the program.
    unsafe { store(result, found, "result") }
}

/// MPI_Group_translate_ranks.
pub(crate) unsafe fn group_translate_ranks(
    from: Group,
    n: c_int,
    ranks1: *const c_int,
    to: Group,
    ranks2: *mut c_int,
) -> Result<(), Error> {
    let (from, to) = (group(from, "group1")?, group(to, "group2")?);
    let n = count(i64::from(n), "n")?;
    // SAFETY: `ranks1` is NULL or has `n` elements, as MPI requires of the program.
    let ranks = unsafe { list(ranks1, n, "ranks1") }?;
    let places: HashMap<u32, usize> =
        to.ranks().iter().enumerate().map(|(place, &world)| (world, place)).collect();
    let translate = |(i, rank)| match rank {
        MPI_PROC_NULL => Ok(MPI_PROC_NULL),
        _ => {
            let world = from.ranks()[member(&from, rank, "ranks1", i)?];
            Ok(places.get(&world).map_or(MPI_UNDEFINED, |&place| place as c_int))
        }
    };
    let found = ranks.into_iter().enumerate().map(translate).collect::<Result<Vec<_>, Error>>()?;
    // SAFETY: `ranks2` is NULL or has `n` elements, as MPI requires of the program.
    unsafe { store_list(ranks2, found.into_iter(), "ranks2") }
}

/// Checks entry `i` of an array of ranks of the group.
fn member(
    group: &weft_process::Group,
    rank: c_int,
    argument: &str,
    i: usize,
) -> Result<usize, Error> {
    if rank >= 0 && (rank as usize) < group.size() {
        return Ok(rank as usize);
    }
    let text = match group.size() {
        0 => format!("argument {argument}[{i}] = {rank}: the group is empty"),
        size => {
            format!("argument {argument}[{i}] = {rank}: ranks of the group are 0 to {}", size - 1)
        }
    };
    Err(Error::new(MPI_ERR_RANK, text))
}

/// MPI_Group_union.
pub(crate) unsafe fn group_union(a: Group, b: Group, to: *mut Group) -> Result<(), Error> {
    let made = group(a, "group1")?.union(&group(b, "group2")?);
    // SAFETY: `to` points to room for the result, as MPI requires of the program.
    unsafe { store_group(to, made) }
}

/// MPI_Group_intersection.
pub(crate) unsafe fn group_intersection(a: Group, b: Group, to: *mut Group) -> Result<(), Error> {
    let made = group(a, "group1")?.intersection(&group(b, "group2")?);
    // SAFETY: `to` points to room for the result, as MPI requires of the program.
    unsafe { store_group(to, made) }
}

/// MPI_Group_difference.
pub(crate) unsafe fn group_difference(a: Group, b: Group, to: *mut Group) -> Result<(), Error> {
    let made = group(a, "group1")?.difference(&group(b, "group2")?);
    // SAFETY: `to` points to room for the result, as MPI requires of the program.
    unsafe { store_group(to, made) }
}

/// Stores a handle of a group. An empty group gets MPI_GROUP_EMPTY.
///
/// # Safety
/// `to` is NULL or may be written.
unsafe fn store_group(to: *mut Group, made: weft_process::Group) -> Result<(), Error> {
    // SAFETY: `to` points to room for the result, as MPI requires of the program.
    unsafe {
        match made.size() {
            0 => store(to, MPI_GROUP_EMPTY, "newgroup"),
            _ => store_new(&state().groups, made, Group, to, "newgroup"),
        }
    }
}

/// Ranks of a group, without repetition.
struct Places<'a> {
    group: &'a weft_process::Group,
    places: Vec<usize>,
    seen: Vec<bool>,
}

impl Places<'_> {
    fn new(group: &weft_process::Group) -> Places<'_> {
        Places { group, places: Vec::new(), seen: vec![false; group.size()] }
    }

    fn add(&mut self, rank: c_int, argument: &str, i: usize) -> Result<(), Error> {
        let place = member(self.group, rank, argument, i)?;
        if std::mem::replace(&mut self.seen[place], true) {
            let text = format!("argument {argument}[{i}]: rank {rank} is there twice");
            return Err(Error::new(MPI_ERR_RANK, text));
        }
        self.places.push(place);
        Ok(())
    }
}

/// # Safety
/// `ranks` is NULL or has `n` elements.
unsafe fn listed(
    group: &weft_process::Group,
    n: c_int,
    ranks: *const c_int,
) -> Result<Vec<usize>, Error> {
    // SAFETY: `ranks` is NULL or has `n` elements; the contract of this function says so.
    let ranks = unsafe { list(ranks, count(i64::from(n), "n")?, "ranks") }?;
    let mut places = Places::new(group);
    for (i, rank) in ranks.into_iter().enumerate() {
        places.add(rank, "ranks", i)?;
    }
    Ok(places.places)
}

/// Returns the ranks of triplets `first, last, stride`.
///
/// # Safety
/// `ranges` is NULL or has `n` elements.
unsafe fn ranged(
    group: &weft_process::Group,
    n: c_int,
    ranges: *mut [c_int; 3],
) -> Result<Vec<usize>, Error> {
    // SAFETY: `ranges` is NULL or has `n` elements; the contract of this function says so.
    let ranges = unsafe { list(ranges, count(i64::from(n), "n")?, "ranges") }?;
    let mut places = Places::new(group);
    for (i, [first, last, stride]) in ranges.into_iter().enumerate() {
        if stride == 0 {
            let text = format!("argument ranges[{i}] = ({first}, {last}, 0): the stride is 0");
            return Err(Error::new(MPI_ERR_ARG, text));
        }
        let mut rank = i64::from(first);
        while if stride > 0 { rank <= i64::from(last) } else { rank >= i64::from(last) } {
            places.add(rank as c_int, "ranges", i)?;
            rank += i64::from(stride);
        }
    }
    Ok(places.places)
}

/// MPI_Group_incl.
pub(crate) unsafe fn group_incl(
    handle: Group,
    n: c_int,
    ranks: *const c_int,
    to: *mut Group,
) -> Result<(), Error> {
    let group = group(handle, "group")?;
    // SAFETY: `ranks` is NULL or has `n` elements, and `to` is NULL or may be written, as MPI requires of the program.
    unsafe { store_group(to, group.include(&listed(&group, n, ranks)?)) }
}

/// MPI_Group_excl.
pub(crate) unsafe fn group_excl(
    handle: Group,
    n: c_int,
    ranks: *const c_int,
    to: *mut Group,
) -> Result<(), Error> {
    let group = group(handle, "group")?;
    // SAFETY: `ranks` is NULL or has `n` elements, and `to` is NULL or may be written, as MPI requires of the program.
    unsafe { store_group(to, group.exclude(&listed(&group, n, ranks)?)) }
}

/// MPI_Group_range_incl.
pub(crate) unsafe fn group_range_incl(
    handle: Group,
    n: c_int,
    ranges: *mut [c_int; 3],
    to: *mut Group,
) -> Result<(), Error> {
    let group = group(handle, "group")?;
    // SAFETY: `ranges` is NULL or has `n` elements, and `to` is NULL or may be written, as MPI requires of the program.
    unsafe { store_group(to, group.include(&ranged(&group, n, ranges)?)) }
}

/// MPI_Group_range_excl.
pub(crate) unsafe fn group_range_excl(
    handle: Group,
    n: c_int,
    ranges: *mut [c_int; 3],
    to: *mut Group,
) -> Result<(), Error> {
    let group = group(handle, "group")?;
    // SAFETY: `ranges` is NULL or has `n` elements, and `to` is NULL or may be written, as MPI requires of the program.
    unsafe { store_group(to, group.exclude(&ranged(&group, n, ranges)?)) }
}

/// MPI_Group_free.
pub(crate) unsafe fn group_free(handle: *mut Group) -> Result<(), Error> {
    not_null(handle, "group")?;
    // SAFETY: `handle` is not NULL, so it may be read and written, as MPI requires of the program.
    unsafe {
        // The empty group is predefined, but the program may free it, because every function that makes groups may return it.
        group(*handle, "group")?;
        state().groups.borrow_mut().remove((*handle).0);
        handle.write(MPI_GROUP_NULL);
    }
    Ok(())
}
