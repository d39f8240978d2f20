//! Constructors of datatypes (MPI 5.0, sections 5.1.2 to 5.1.4 and 5.1.7).
//!
//! Constructors come in two forms each, because `MPI_Type_get_contents` gives the arguments back
//! as they were given: as `int`, or as large counts.

use crate::arguments::{count, named_datatype, not_null, store};
use crate::constants::MPI_DATATYPE_NULL;
use crate::error::Error;
use crate::objects::TypeObject;
use crate::state::state;
use crate::types::Datatype;
use crate::widen::{Counts, Displs};
use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::rc::Rc;
use weft_datatype::{Datatype as Map, Distributed, Type, Width};

/// Gives a type a handle.
pub fn keep(ty: Type) -> Datatype {
    let handle = Cell::new(MPI_DATATYPE_NULL);
    let object = TypeObject { ty, handle, predefined: false, attributes: RefCell::default() };
    let object = Rc::new(object);
    let handle = Datatype(state().types.borrow_mut().insert(object.clone()));
    object.handle.set(handle);
    handle
}

fn old(handle: Datatype) -> Result<Type, Error> {
    Ok(named_datatype(handle, "oldtype")?.ty.clone())
}

/// # Safety
/// `to` is NULL or may be written.
unsafe fn give(to: *mut Datatype, made: Result<Type, weft_datatype::Error>) -> Result<(), Error> {
    not_null(to, "newtype")?;
    state().types.borrow_mut().room()?;
    // SAFETY: not NULL.
    unsafe { store(to, keep(made?), "newtype") }
}

/// # Safety
/// The array is NULL or has `n` elements.
unsafe fn counts(array: Counts, n: usize, argument: &str) -> Result<Vec<i64>, Error> {
    if n > 0 && array.is_null() {
        return Err(Error::null(argument));
    }
    // SAFETY: by contract.
    Ok(unsafe { array.to_vec(n) })
}

/// # Safety
/// The array is NULL or has `n` elements.
unsafe fn displs(array: Displs, n: usize) -> Result<Vec<i64>, Error> {
    if n > 0 && array.is_null() {
        return Err(Error::null("array_of_displacements"));
    }
    // SAFETY: by contract.
    Ok(unsafe { array.to_vec(n) })
}

const LENGTHS: &str = "array_of_blocklengths";
const PLACES: &str = "array_of_displacements";

// ---- constructors of numbers --------------------------------------------------------------------

/// Defines both forms of a constructor whose arguments are numbers.
macro_rules! of_numbers {
    ($small:ident $large:ident $make:ident ($($arg:ident),*)) => {
        pub(crate) unsafe fn $small(
            $($arg: i64,)* oldtype: Datatype, newtype: *mut Datatype,
        ) -> Result<(), Error> {
            // SAFETY: the caller's pointer.
            unsafe { give(newtype, Map::$make(Width::Int, $($arg,)* &old(oldtype)?)) }
        }

        pub(crate) unsafe fn $large(
            $($arg: i64,)* oldtype: Datatype, newtype: *mut Datatype,
        ) -> Result<(), Error> {
            // SAFETY: the caller's pointer.
            unsafe { give(newtype, Map::$make(Width::Large, $($arg,)* &old(oldtype)?)) }
        }
    };
}

of_numbers!(type_contiguous type_contiguous_c contiguous_of (count));
of_numbers!(type_vector type_vector_c vector (count, blocklength, stride));
of_numbers!(type_create_hvector type_create_hvector_c hvector (count, blocklength, stride));

pub(crate) unsafe fn type_create_resized(
    oldtype: Datatype,
    lb: i64,
    extent: i64,
    newtype: *mut Datatype,
) -> Result<(), Error> {
    // SAFETY: the caller's pointer.
    unsafe { give(newtype, Map::resized(Width::Int, &old(oldtype)?, lb, extent)) }
}

pub(crate) unsafe fn type_create_resized_c(
    oldtype: Datatype,
    lb: i64,
    extent: i64,
    newtype: *mut Datatype,
) -> Result<(), Error> {
    // SAFETY: the caller's pointer.
    unsafe { give(newtype, Map::resized(Width::Large, &old(oldtype)?, lb, extent)) }
}

// ---- constructors of arrays ---------------------------------------------------------------------

/// # Safety
/// The arrays have `n` elements each; `newtype` is NULL or may be written.
unsafe fn indexed(
    width: Width,
    n: i64,
    lengths: Counts,
    places: Counts,
    oldtype: Datatype,
    newtype: *mut Datatype,
) -> Result<(), Error> {
    let n = count(n, "count")?;
    // SAFETY: by contract.
    unsafe {
        let (lengths, places) = (counts(lengths, n, LENGTHS)?, counts(places, n, PLACES)?);
        give(newtype, Map::indexed(width, &lengths, &places, &old(oldtype)?))
    }
}

pub(crate) unsafe fn type_indexed(
    n: i64,
    lengths: Counts,
    places: Counts,
    oldtype: Datatype,
    newtype: *mut Datatype,
) -> Result<(), Error> {
    // SAFETY: the caller's arrays.
    unsafe { indexed(Width::Int, n, lengths, places, oldtype, newtype) }
}

pub(crate) unsafe fn type_indexed_c(
    n: i64,
    lengths: *const i64,
    places: *const i64,
    oldtype: Datatype,
    newtype: *mut Datatype,
) -> Result<(), Error> {
    let (lengths, places) = (Counts::Count(lengths), Counts::Count(places));
    // SAFETY: the caller's arrays.
    unsafe { indexed(Width::Large, n, lengths, places, oldtype, newtype) }
}

/// # Safety
/// As for `indexed`.
unsafe fn hindexed(
    width: Width,
    n: i64,
    lengths: Counts,
    places: Displs,
    oldtype: Datatype,
    newtype: *mut Datatype,
) -> Result<(), Error> {
    let n = count(n, "count")?;
    // SAFETY: by contract.
    unsafe {
        let (lengths, places) = (counts(lengths, n, LENGTHS)?, displs(places, n)?);
        give(newtype, Map::hindexed(width, &lengths, &places, &old(oldtype)?))
    }
}

pub(crate) unsafe fn type_create_hindexed(
    n: i64,
    lengths: Counts,
    places: Displs,
    oldtype: Datatype,
    newtype: *mut Datatype,
) -> Result<(), Error> {
    // SAFETY: the caller's arrays.
    unsafe { hindexed(Width::Int, n, lengths, places, oldtype, newtype) }
}

pub(crate) unsafe fn type_create_hindexed_c(
    n: i64,
    lengths: *const i64,
    places: *const i64,
    oldtype: Datatype,
    newtype: *mut Datatype,
) -> Result<(), Error> {
    let (lengths, places) = (Counts::Count(lengths), Displs::Aint(places));
    // SAFETY: the caller's arrays.
    unsafe { hindexed(Width::Large, n, lengths, places, oldtype, newtype) }
}

pub(crate) unsafe fn type_create_indexed_block(
    n: i64,
    length: i64,
    places: Counts,
    oldtype: Datatype,
    newtype: *mut Datatype,
) -> Result<(), Error> {
    let n = count(n, "count")?;
    // SAFETY: the caller's array and pointer.
    unsafe {
        let places = counts(places, n, PLACES)?;
        give(newtype, Map::indexed_block(Width::Int, length, &places, &old(oldtype)?))
    }
}

pub(crate) unsafe fn type_create_indexed_block_c(
    n: i64,
    length: i64,
    places: *const i64,
    oldtype: Datatype,
    newtype: *mut Datatype,
) -> Result<(), Error> {
    let n = count(n, "count")?;
    // SAFETY: the caller's array and pointer.
    unsafe {
        let places = counts(Counts::Count(places), n, PLACES)?;
        give(newtype, Map::indexed_block(Width::Large, length, &places, &old(oldtype)?))
    }
}

pub(crate) unsafe fn type_create_hindexed_block(
    n: i64,
    length: i64,
    places: Displs,
    oldtype: Datatype,
    newtype: *mut Datatype,
) -> Result<(), Error> {
    let n = count(n, "count")?;
    // SAFETY: the caller's array and pointer.
    unsafe {
        let places = displs(places, n)?;
        give(newtype, Map::hindexed_block(Width::Int, length, &places, &old(oldtype)?))
    }
}

pub(crate) unsafe fn type_create_hindexed_block_c(
    n: i64,
    length: i64,
    places: *const i64,
    oldtype: Datatype,
    newtype: *mut Datatype,
) -> Result<(), Error> {
    let n = count(n, "count")?;
    // SAFETY: the caller's array and pointer.
    unsafe {
        let places = displs(Displs::Aint(places), n)?;
        give(newtype, Map::hindexed_block(Width::Large, length, &places, &old(oldtype)?))
    }
}

/// # Safety
/// As for `indexed`.
unsafe fn structure(
    width: Width,
    n: i64,
    lengths: Counts,
    places: Displs,
    types: *const Datatype,
    newtype: *mut Datatype,
) -> Result<(), Error> {
    let n = count(n, "count")?;
    // SAFETY: by contract.
    unsafe {
        let (lengths, places) = (counts(lengths, n, LENGTHS)?, displs(places, n)?);
        if n > 0 {
            not_null(types, "array_of_types")?;
        }
        let mut olds = Vec::with_capacity(n);
        for i in 0..n {
            let found = named_datatype(*types.add(i), &format!("array_of_types[{i}]"))?;
            olds.push(found.ty.clone());
        }
        give(newtype, Map::structure(width, &lengths, &places, &olds))
    }
}

pub(crate) unsafe fn type_create_struct(
    n: i64,
    lengths: Counts,
    places: Displs,
    types: *const Datatype,
    newtype: *mut Datatype,
) -> Result<(), Error> {
    // SAFETY: the caller's arrays.
    unsafe { structure(Width::Int, n, lengths, places, types, newtype) }
}

pub(crate) unsafe fn type_create_struct_c(
    n: i64,
    lengths: *const i64,
    places: *const i64,
    types: *const Datatype,
    newtype: *mut Datatype,
) -> Result<(), Error> {
    let (lengths, places) = (Counts::Count(lengths), Displs::Aint(places));
    // SAFETY: the caller's arrays.
    unsafe { structure(Width::Large, n, lengths, places, types, newtype) }
}

/// # Safety
/// As for `indexed`.
unsafe fn subarray(
    width: Width,
    ndims: c_int,
    arrays: [Counts; 3],
    order: c_int,
    oldtype: Datatype,
    newtype: *mut Datatype,
) -> Result<(), Error> {
    let n = count(i64::from(ndims), "ndims")?;
    // SAFETY: by contract.
    unsafe {
        let sizes = counts(arrays[0], n, "array_of_sizes")?;
        let parts = counts(arrays[1], n, "array_of_subsizes")?;
        let starts = counts(arrays[2], n, "array_of_starts")?;
        let old = old(oldtype)?;
        give(newtype, Map::subarray(width, &sizes, &parts, &starts, i64::from(order), &old))
    }
}

pub(crate) unsafe fn type_create_subarray(
    ndims: c_int,
    sizes: Counts,
    parts: Counts,
    starts: Counts,
    order: c_int,
    oldtype: Datatype,
    newtype: *mut Datatype,
) -> Result<(), Error> {
    // SAFETY: the caller's arrays.
    unsafe { subarray(Width::Int, ndims, [sizes, parts, starts], order, oldtype, newtype) }
}

pub(crate) unsafe fn type_create_subarray_c(
    ndims: c_int,
    sizes: *const i64,
    parts: *const i64,
    starts: *const i64,
    order: c_int,
    oldtype: Datatype,
    newtype: *mut Datatype,
) -> Result<(), Error> {
    let arrays = [sizes, parts, starts].map(Counts::Count);
    // SAFETY: the caller's arrays.
    unsafe { subarray(Width::Large, ndims, arrays, order, oldtype, newtype) }
}

/// Arguments of `MPI_Type_create_darray` beside the type.
struct Darray {
    size: c_int,
    rank: c_int,
    ndims: c_int,
    global: Counts,
    kinds: *const c_int,
    blocks: *const c_int,
    grid: *const c_int,
    order: c_int,
}

/// # Safety
/// As for `indexed`.
unsafe fn darray(
    width: Width,
    array: Darray,
    oldtype: Datatype,
    newtype: *mut Datatype,
) -> Result<(), Error> {
    let n = count(i64::from(array.ndims), "ndims")?;
    // SAFETY: by contract.
    unsafe {
        let global = counts(array.global, n, "array_of_gsizes")?;
        let kinds = counts(Counts::Int(array.kinds), n, "array_of_distribs")?;
        let blocks = counts(Counts::Int(array.blocks), n, "array_of_dargs")?;
        let grid = counts(Counts::Int(array.grid), n, "array_of_psizes")?;
        let array = Distributed {
            size: i64::from(array.size),
            rank: i64::from(array.rank),
            global: &global,
            kinds: &kinds,
            blocks: &blocks,
            grid: &grid,
            order: i64::from(array.order),
        };
        give(newtype, Map::darray(width, array, &old(oldtype)?))
    }
}

#[allow(clippy::too_many_arguments)] // the standard's
pub(crate) unsafe fn type_create_darray(
    size: c_int,
    rank: c_int,
    ndims: c_int,
    global: Counts,
    kinds: *const c_int,
    blocks: *const c_int,
    grid: *const c_int,
    order: c_int,
    oldtype: Datatype,
    newtype: *mut Datatype,
) -> Result<(), Error> {
    let array = Darray { size, rank, ndims, global, kinds, blocks, grid, order };
    // SAFETY: the caller's arrays.
    unsafe { darray(Width::Int, array, oldtype, newtype) }
}

#[allow(clippy::too_many_arguments)] // the standard's
pub(crate) unsafe fn type_create_darray_c(
    size: c_int,
    rank: c_int,
    ndims: c_int,
    global: *const i64,
    kinds: *const c_int,
    blocks: *const c_int,
    grid: *const c_int,
    order: c_int,
    oldtype: Datatype,
    newtype: *mut Datatype,
) -> Result<(), Error> {
    let global = Counts::Count(global);
    let array = Darray { size, rank, ndims, global, kinds, blocks, grid, order };
    // SAFETY: the caller's arrays.
    unsafe { darray(Width::Large, array, oldtype, newtype) }
}
