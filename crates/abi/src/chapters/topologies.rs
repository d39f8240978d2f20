//! Virtual topologies: cartesian grids (MPI 5.0, chapter 8); graphs are in `graphs.rs`.

use crate::arguments::{comm, count, intracomm, not_null, rank, store};
use crate::arrays::{list, store_list};
use crate::chapters::communicators::inherited;
use crate::constants::*;
use crate::engine::CommObject;
use crate::error::Error;
use crate::types::Comm;
use crate::waiting::WaitingCall;
use std::ffi::c_int;
use weft_process::{Cartesian, CommTopology, balanced_dims};

/// Returns the grid of a communicator.
fn grid(comm: &CommObject) -> Result<Cartesian, Error> {
    match &*comm.topology.borrow() {
        Some(CommTopology::Cartesian(grid)) => Ok(grid.clone()),
        _ => {
            let text = "argument comm has no cartesian topology: MPI_Cart_create makes one";
            Err(Error::new(MPI_ERR_TOPOLOGY, text))
        }
    }
}

/// Reads the grid that the program describes, which has at most `most` points.
///
/// A dimension of 0 is no error, because the standard names an error only for a grid that is larger than the group (MPI 5.0,
/// 8.5.1). No rank has a place in such a grid.
///
/// # Safety
/// The arrays are NULL or have `ndims` elements.
unsafe fn described(
    ndims: c_int,
    dims: *const c_int,
    periods: *const c_int,
    most: usize,
) -> Result<Cartesian, Error> {
    let n = count(i64::from(ndims), "ndims").map_err(|e| Error::new(MPI_ERR_DIMS, e.text()))?;
    // SAFETY: both arrays are NULL or have `n` elements; the contract of this function says so.
    let (dims, periods) = unsafe { (list(dims, n, "dims")?, list(periods, n, "periods")?) };
    if let Some(i) = dims.iter().position(|&d| d < 0) {
        let text = format!("argument dims[{i}] = {}: a dimension must not be negative", dims[i]);
        return Err(Error::new(MPI_ERR_DIMS, text));
    }
    let size = dims.iter().try_fold(1usize, |size, &d| size.checked_mul(d as usize));
    if !dims.contains(&0) && size.is_none_or(|size| size > most) {
        let by = dims.iter().map(c_int::to_string).collect::<Vec<_>>().join(" x ");
        let text = format!("argument dims: a grid of {by}, but the communicator has {most} ranks");
        return Err(Error::new(MPI_ERR_DIMS, text));
    }
    let dims = dims.into_iter().map(|d| d as usize).collect();
    Ok(Cartesian { dims, periods: periods.into_iter().map(|p| p != 0).collect() })
}

/// Makes a communicator of the first `size` ranks with this topology. `call` names the MPI function.
pub(super) fn arrange(
    old: &CommObject,
    size: usize,
    topology: CommTopology,
    call: &'static str,
) -> Result<Comm, Error> {
    let new = old.engine().block_on(&WaitingCall::new(call), old.arranged(size, topology))?;
    Ok(inherited(old, new))
}

/// MPI_Cart_create.
pub(crate) unsafe fn cart_create(
    handle: Comm,
    ndims: c_int,
    dims: *const c_int,
    periods: *const c_int,
    _reorder: c_int,
    newcomm: *mut Comm,
) -> Result<(), Error> {
    not_null(newcomm, "comm_cart")?;
    let old = intracomm(handle)?;
    // SAFETY: `described` needs arrays as long as MPI requires of the program.
    let grid = unsafe { described(ndims, dims, periods, old.size()) }?;
    let new = arrange(&old, grid.size(), CommTopology::Cartesian(grid), "MPI_Cart_create")?;
    // SAFETY: `newcomm` points to room for the result, as MPI requires of the program.
    unsafe { store(newcomm, new, "comm_cart") }
}

/// MPI_Cart_map.
pub(crate) unsafe fn cart_map(
    handle: Comm,
    ndims: c_int,
    dims: *const c_int,
    periods: *const c_int,
    newrank: *mut c_int,
) -> Result<(), Error> {
    let old = intracomm(handle)?;
    // SAFETY: `described` needs arrays as long as MPI requires of the program.
    let grid = unsafe { described(ndims, dims, periods, old.size()) }?;
    let place = if old.rank() < grid.size() { old.rank() as c_int } else { MPI_UNDEFINED };
    // SAFETY: `newrank` points to room for the result, as MPI requires of the program.
    unsafe { store(newrank, place, "newrank") }
}

/// MPI_Cartdim_get.
pub(crate) unsafe fn cartdim_get(handle: Comm, ndims: *mut c_int) -> Result<(), Error> {
    let grid = grid(&*comm(handle)?)?;
    // SAFETY: `ndims` points to room for the result, as MPI requires of the program.
    unsafe { store(ndims, grid.dims.len() as c_int, "ndims") }
}

/// Checks that the program's arrays have room for all dimensions.
fn room(grid: &Cartesian, maxdims: c_int) -> Result<(), Error> {
    let n = grid.dims.len();
    if i64::from(maxdims) >= n as i64 {
        return Ok(());
    }
    let text = format!("argument maxdims = {maxdims}: the grid has {n} dimensions");
    Err(Error::new(MPI_ERR_ARG, text))
}

/// MPI_Cart_get.
pub(crate) unsafe fn cart_get(
    handle: Comm,
    maxdims: c_int,
    dims: *mut c_int,
    periods: *mut c_int,
    coords: *mut c_int,
) -> Result<(), Error> {
    let comm = comm(handle)?;
    let grid = grid(&comm)?;
    room(&grid, maxdims)?;
    let here = grid.coords(comm.rank());
    // SAFETY: each array is NULL or has `maxdims` elements, at least the number of dimensions, as MPI requires of the program.
    unsafe {
        store_list(dims, grid.dims.iter().map(|&d| d as c_int), "dims")?;
        store_list(periods, grid.periods.iter().map(|&p| c_int::from(p)), "periods")?;
        store_list(coords, here.iter().map(|&c| c as c_int), "coords")
    }
}

/// MPI_Cart_rank.
pub(crate) unsafe fn cart_rank(
    handle: Comm,
    coords: *const c_int,
    rank: *mut c_int,
) -> Result<(), Error> {
    let grid = grid(&*comm(handle)?)?;
    // SAFETY: `coords` is NULL or has an element for each dimension, as MPI requires of the program.
    let coords = unsafe { list(coords, grid.dims.len(), "coords") }?;
    let wide: Vec<i64> = coords.iter().map(|&c| i64::from(c)).collect();
    let found = grid.rank(&wide).map_err(|d| {
        let (is, last) = (coords[d], grid.dims[d] - 1);
        let text =
            format!("argument coords[{d}] = {is}: the grid, not periodic there, has 0 to {last}");
        Error::new(MPI_ERR_ARG, text)
    })?;
    // SAFETY: `rank` points to room for the result, as MPI requires of the program.
    unsafe { store(rank, found as c_int, "rank") }
}

/// MPI_Cart_coords.
pub(crate) unsafe fn cart_coords(
    handle: Comm,
    place: c_int,
    maxdims: c_int,
    coords: *mut c_int,
) -> Result<(), Error> {
    let comm = comm(handle)?;
    let grid = grid(&comm)?;
    let place = rank(&comm, place, "rank", MPI_ERR_RANK)?;
    room(&grid, maxdims)?;
    // SAFETY: `coords` is NULL or has `maxdims` elements, at least the number of dimensions, as MPI requires of the program.
    unsafe { store_list(coords, grid.coords(place).iter().map(|&c| c as c_int), "coords") }
}

/// MPI_Cart_shift.
pub(crate) unsafe fn cart_shift(
    handle: Comm,
    direction: c_int,
    disp: c_int,
    source: *mut c_int,
    dest: *mut c_int,
) -> Result<(), Error> {
    let comm = comm(handle)?;
    let grid = grid(&comm)?;
    let n = grid.dims.len();
    let Some(dimension) = usize::try_from(direction).ok().filter(|&d| d < n) else {
        let text = format!("argument direction = {direction}: the grid has {n} dimensions, from 0");
        return Err(Error::new(MPI_ERR_ARG, text));
    };
    let found = grid.shift(comm.rank(), dimension, i64::from(disp));
    let [from, to] = found.map(|r| r.map_or(MPI_PROC_NULL, |r| r as c_int));
    // SAFETY: `source` and `dest` are NULL or may be written, as MPI requires of the program.
    unsafe {
        store(source, from, "rank_source")?;
        store(dest, to, "rank_dest")
    }
}

/// MPI_Cart_sub.
pub(crate) unsafe fn cart_sub(
    handle: Comm,
    remain: *const c_int,
    newcomm: *mut Comm,
) -> Result<(), Error> {
    not_null(newcomm, "newcomm")?;
    let old = intracomm(handle)?;
    let grid = grid(&old)?;
    // SAFETY: `remain` is NULL or has an element for each dimension, as MPI requires of the program.
    let remain = unsafe { list(remain, grid.dims.len(), "remain_dims") }?;
    let keeps: Vec<bool> = remain.iter().map(|&r| r != 0).collect();
    let (part, colour, key) = grid.sub(old.rank(), &keeps);
    let split = old.split(Some(colour as c_int), key as c_int);
    let new = old.engine().block_on(&WaitingCall::new("MPI_Cart_sub"), split)?;
    if let Some(new) = &new {
        *new.topology.borrow_mut() = Some(CommTopology::Cartesian(part));
    }
    // SAFETY: `newcomm` points to room for the result, as MPI requires of the program.
    unsafe { store(newcomm, inherited(&old, new), "newcomm") }
}

/// MPI_Dims_create.
pub(crate) unsafe fn dims_create(
    nnodes: c_int,
    ndims: c_int,
    dims: *mut c_int,
) -> Result<(), Error> {
    let n = count(i64::from(ndims), "ndims").map_err(|e| Error::new(MPI_ERR_DIMS, e.text()))?;
    // SAFETY: `dims` is NULL or has `ndims` elements, as MPI requires of the program.
    let given = unsafe { list(dims, n, "dims") }?;
    if nnodes <= 0 {
        let text = format!("argument nnodes = {nnodes}: at least 1 process");
        return Err(Error::new(MPI_ERR_ARG, text));
    }
    if let Some(i) = given.iter().position(|&d| d < 0) {
        let text = format!("argument dims[{i}] = {}: 0 to have it filled, or more", given[i]);
        return Err(Error::new(MPI_ERR_DIMS, text));
    }
    if n == 0 {
        return Ok(());
    }
    let wide: Vec<usize> = given.iter().map(|&d| d as usize).collect();
    let Some(filled) = balanced_dims(nnodes as usize, &wide) else {
        let text = format!("argument dims = {given:?} cannot be filled to {nnodes} processes");
        return Err(Error::new(MPI_ERR_DIMS, text));
    };
    // SAFETY: `dims` is not NULL and has `ndims` elements, as MPI requires of the program.
    unsafe { store_list(dims, filled.iter().map(|&d| d as c_int), "dims") }
}

/// MPI_Topo_test.
pub(crate) unsafe fn topo_test(handle: Comm, status: *mut c_int) -> Result<(), Error> {
    let kind = match &*comm(handle)?.topology.borrow() {
        Some(CommTopology::Cartesian(_)) => MPI_CART,
        Some(CommTopology::Graph(_)) => MPI_GRAPH,
        Some(CommTopology::Distributed(_)) => MPI_DIST_GRAPH,
        None => MPI_UNDEFINED,
    };
    // SAFETY: `status` points to room for the result, as MPI requires of the program.
    unsafe { store(status, kind, "status") }
}
