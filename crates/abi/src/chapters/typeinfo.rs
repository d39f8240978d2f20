//! Operations on existing datatypes: commit, duplicate, free, names, sizes and extents (MPI 5.0, sections 5.1.7 to 5.1.12 and
//! 7.8).

use crate::arguments::{count, datatype, named_datatype, not_null, store};
use crate::chapters::caching::{copy_attributes, delete_attributes};
use crate::chapters::communicators::{object_name, return_name};
use crate::chapters::datatypes::keep;
use crate::constants::*;
use crate::error::Error;
use crate::objects::TypeObject;
use crate::state::state;
use crate::status::MpiStatus;
use crate::types::{Comm, Datatype};
use crate::widen_counts::Out;
use std::ffi::{c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use weft_datatype::{Basic, Datatype as Map};

/// MPI_Type_commit.
pub(crate) unsafe fn type_commit(handle: *mut Datatype) -> Result<(), Error> {
    not_null(handle, "datatype")?;
    // SAFETY: `handle` is not NULL, so it points to a value, as MPI requires of the program.
    unsafe { datatype(*handle)? }.ty.commit();
    Ok(())
}

/// MPI_Type_free.
pub(crate) unsafe fn type_free(handle: *mut Datatype) -> Result<(), Error> {
    not_null(handle, "datatype")?;
    // SAFETY: `handle` is not NULL, so it points to a value, as MPI requires of the program.
    let freed = unsafe { *handle };
    let object = datatype(freed)?;
    if object.predefined {
        let name = match object.ty.basic() {
            Some(basic) => basic.name(),
            None => "of MPI_Type_create_f90_*",
        };
        let text = format!("argument datatype is {name}, which is predefined: not freed");
        return Err(Error::new(MPI_ERR_TYPE, text));
    }
    delete_attributes(freed.0, &object.attributes)?;
    state().types.borrow_mut().remove(freed.0);
    // SAFETY: `handle` points to room for the result, as MPI requires of the program.
    unsafe { store(handle, MPI_DATATYPE_NULL, "datatype") }
}

/// MPI_Type_dup.
pub(crate) unsafe fn type_dup(oldtype: Datatype, newtype: *mut Datatype) -> Result<(), Error> {
    not_null(newtype, "newtype")?;
    state().types.borrow_mut().room()?;
    let old = named_datatype(oldtype, "oldtype")?;
    let handle = keep(Map::duplicate(&old.ty)?);
    let new = datatype(handle)?;
    if let Err(error) = copy_attributes(Comm(oldtype.0), handle.0, &old.attributes, &new.attributes)
    {
        state().types.borrow_mut().remove(handle.0);
        return Err(error);
    }
    // SAFETY: `newtype` points to room for the result, as MPI requires of the program.
    unsafe { store(newtype, handle, "newtype") }
}

/// MPI_Type_set_name.
pub(crate) unsafe fn type_set_name(handle: Datatype, name: *const c_char) -> Result<(), Error> {
    let object = datatype(handle)?;
    // SAFETY: `object_name` needs a string that ends with a NUL, which the program passes as MPI requires.
    let name = unsafe { object_name(name, "type_name") }?;
    object.ty.set_name(name);
    Ok(())
}

/// MPI_Type_get_name.
pub(crate) unsafe fn type_get_name(
    handle: Datatype,
    name: *mut c_char,
    resultlen: *mut c_int,
) -> Result<(), Error> {
    // The null handle has a name, too (MPI 5.0, section 7.8).
    let found = match handle {
        MPI_DATATYPE_NULL => "MPI_DATATYPE_NULL".into(),
        _ => datatype(handle)?.ty.name(),
    };
    // SAFETY: `return_name` needs buffers as long as MPI requires of the program.
    unsafe { return_name(found.as_bytes(), name, resultlen, "type_name") }
}

// ---- measures -----------------------------------------------------------------------------------

/// MPI_Type_size, MPI_Type_size_c.
pub(crate) unsafe fn type_size(handle: Datatype, size: Out) -> Result<(), Error> {
    // SAFETY: `size` is NULL or points to room for the result, as MPI requires of the program.
    unsafe { size.store(datatype(handle)?.ty.size() as i64, "size") }
}

/// MPI_Type_size_x.
pub(crate) unsafe fn type_size_x(handle: Datatype, size: *mut i64) -> Result<(), Error> {
    // SAFETY: `type_size` needs a valid pointer, which the program passes as MPI requires.
    unsafe { type_size(handle, Out::Count(size)) }
}

/// MPI_Type_get_extent, MPI_Type_get_extent_c.
pub(crate) unsafe fn type_get_extent(handle: Datatype, lb: Out, extent: Out) -> Result<(), Error> {
    let object = datatype(handle)?;
    // SAFETY: `lb` and `extent` are NULL or point to room for the results, as MPI requires of the program.
    unsafe {
        lb.store(object.ty.lb(), "lb")?;
        extent.store(object.ty.extent(), "extent")
    }
}

/// MPI_Type_get_extent_x.
pub(crate) unsafe fn type_get_extent_x(
    handle: Datatype,
    lb: *mut i64,
    extent: *mut i64,
) -> Result<(), Error> {
    // SAFETY: `lb` and `extent` are NULL or point to room for the results, as MPI requires of the program.
    unsafe { type_get_extent(handle, Out::Count(lb), Out::Count(extent)) }
}

/// MPI_Type_get_true_extent, MPI_Type_get_true_extent_c.
pub(crate) unsafe fn type_get_true_extent(
    handle: Datatype,
    lb: Out,
    extent: Out,
) -> Result<(), Error> {
    let object = datatype(handle)?;
    // SAFETY: `lb` and `extent` are NULL or point to room for the results, as MPI requires of the program.
    unsafe {
        lb.store(object.ty.true_lb(), "true_lb")?;
        extent.store(object.ty.true_extent(), "true_extent")
    }
}

/// MPI_Type_get_true_extent_x.
pub(crate) unsafe fn type_get_true_extent_x(
    handle: Datatype,
    lb: *mut i64,
    extent: *mut i64,
) -> Result<(), Error> {
    // SAFETY: `lb` and `extent` are NULL or point to room for the results, as MPI requires of the program.
    unsafe { type_get_true_extent(handle, Out::Count(lb), Out::Count(extent)) }
}

// ---- elements of a received message -------------------------------------------------------------

/// Stores the number of elements that a status describes, or `MPI_UNDEFINED` if the last element is not complete.
///
/// # Safety
/// `status` is NULL or points to a status; `to` is NULL or may be written.
unsafe fn counted(
    status: *const MpiStatus,
    handle: Datatype,
    to: Out,
    how: impl FnOnce(&Map, usize) -> Option<usize>,
) -> Result<(), Error> {
    not_null(status, "status")?;
    let object = datatype(handle)?;
    // SAFETY: `status` is not NULL, so it points to a status; the contract of this function says so.
    let bytes = unsafe { (*status).bytes() };
    let found = how(&object.ty, bytes as usize);
    // SAFETY: `to` is NULL or may be written; the contract of this function says so.
    unsafe { to.store(found.map_or(i64::from(MPI_UNDEFINED), |n| n as i64), "count") }
}

/// MPI_Get_count, MPI_Get_count_c.
pub(crate) unsafe fn get_count(
    status: *const MpiStatus,
    handle: Datatype,
    count: Out,
) -> Result<(), Error> {
    // SAFETY: `counted` needs valid pointers, which the program passes as MPI requires.
    unsafe { counted(status, handle, count, Map::count_of) }
}

/// MPI_Get_elements, MPI_Get_elements_c.
pub(crate) unsafe fn get_elements(
    status: *const MpiStatus,
    handle: Datatype,
    count: Out,
) -> Result<(), Error> {
    // SAFETY: `counted` needs valid pointers, which the program passes as MPI requires.
    unsafe { counted(status, handle, count, Map::elements_of) }
}

/// MPI_Get_elements_x.
pub(crate) unsafe fn get_elements_x(
    status: *const MpiStatus,
    handle: Datatype,
    count: *mut i64,
) -> Result<(), Error> {
    // SAFETY: `get_elements` needs valid pointers, which the program passes as MPI requires.
    unsafe { get_elements(status, handle, Out::Count(count)) }
}

/// MPI_Status_set_elements, MPI_Status_set_elements_c.
pub(crate) unsafe fn status_set_elements(
    status: *mut MpiStatus,
    handle: Datatype,
    elements: i64,
) -> Result<(), Error> {
    not_null(status, "status")?;
    let elements = count(elements, "count")?;
    let bytes = bytes_of(&*datatype(handle)?, elements)?;
    // SAFETY: `status` is not NULL, so it points to a status, as MPI requires of the program.
    unsafe { (*status).set_bytes(bytes as u64) };
    Ok(())
}

/// MPI_Status_set_elements_x.
pub(crate) unsafe fn status_set_elements_x(
    status: *mut MpiStatus,
    handle: Datatype,
    elements: i64,
) -> Result<(), Error> {
    // SAFETY: `status_set_elements` needs a valid pointer, which the program passes as MPI requires.
    unsafe { status_set_elements(status, handle, elements) }
}

/// Returns the number of bytes of packed data that hold `elements` basic elements.
fn bytes_of(object: &TypeObject, elements: usize) -> Result<usize, Error> {
    let ty = &object.ty;
    let impossible =
        |why: &str| Error::new(MPI_ERR_ARG, format_args!("argument count = {elements}: {why}"));
    if elements == 0 {
        return Ok(0);
    }
    if ty.elements() == 0 {
        return Err(impossible("the datatype has no data"));
    }
    let (whole, rest) = (elements / ty.elements(), elements % ty.elements());
    let bytes = ty.size().checked_mul(whole).ok_or_else(|| impossible("more bytes than fit"))?;
    // Searches the number of bytes within an element. It is the first number of bytes that hold `rest` basic elements.
    let part = (0..=ty.size()).find(|&b| ty.elements_of(b) == Some(rest));
    Ok(bytes + part.unwrap_or(0))
}

/// MPI_Status_set_cancelled.
pub(crate) unsafe fn status_set_cancelled(
    status: *mut MpiStatus,
    flag: c_int,
) -> Result<(), Error> {
    not_null(status, "status")?;
    // SAFETY: `status` is not NULL, so it points to a status, as MPI requires of the program.
    unsafe { (*status).set_cancelled(flag != 0) };
    Ok(())
}

// ---- predefined types by property ---------------------------------------------------------------

/// MPI_Type_match_size.
pub(crate) unsafe fn type_match_size(
    typeclass: c_int,
    size: c_int,
    to: *mut Datatype,
) -> Result<(), Error> {
    let found = match (typeclass, size) {
        (MPI_TYPECLASS_INTEGER, 1) => MPI_INTEGER1,
        (MPI_TYPECLASS_INTEGER, 2) => MPI_INTEGER2,
        (MPI_TYPECLASS_INTEGER, 4) => MPI_INTEGER4,
        (MPI_TYPECLASS_INTEGER, 8) => MPI_INTEGER8,
        (MPI_TYPECLASS_INTEGER, 16) => MPI_INTEGER16,
        (MPI_TYPECLASS_REAL, 2) => MPI_REAL2,
        (MPI_TYPECLASS_REAL, 4) => MPI_REAL4,
        (MPI_TYPECLASS_REAL, 8) => MPI_REAL8,
        (MPI_TYPECLASS_REAL, 16) => MPI_REAL16,
        (MPI_TYPECLASS_COMPLEX, 4) => MPI_COMPLEX4,
        (MPI_TYPECLASS_COMPLEX, 8) => MPI_COMPLEX8,
        (MPI_TYPECLASS_COMPLEX, 16) => MPI_COMPLEX16,
        (MPI_TYPECLASS_COMPLEX, 32) => MPI_COMPLEX32,
        (MPIX_TYPECLASS_LOGICAL, 1) => MPI_LOGICAL1,
        (MPIX_TYPECLASS_LOGICAL, 2) => MPI_LOGICAL2,
        (MPIX_TYPECLASS_LOGICAL, 4) => MPI_LOGICAL4,
        (MPIX_TYPECLASS_LOGICAL, 8) => MPI_LOGICAL8,
        (MPIX_TYPECLASS_LOGICAL, 16) => MPI_LOGICAL16,
        _ => {
            let text = format!("no datatype of argument typeclass = {typeclass} has size = {size}");
            return Err(Error::new(MPI_ERR_ARG, text));
        }
    };
    datatype(found)?;
    // SAFETY: `to` points to room for the result, as MPI requires of the program.
    unsafe { store(to, found, "datatype") }
}

/// MPI_Type_get_value_index.
pub(crate) unsafe fn type_get_value_index(
    value: Datatype,
    index: Datatype,
    to: *mut Datatype,
) -> Result<(), Error> {
    let value = named_datatype(value, "value_type")?.ty.basic();
    let index = named_datatype(index, "index_type")?.ty.basic();
    let pair = value.zip(index).and_then(|(value, index)| Basic::value_index(value, index));
    // No other pair of types has an operator, so the result is the null handle.
    let found = pair.map_or(MPI_DATATYPE_NULL, |basic| Datatype(basic.handle() as usize));
    // SAFETY: `to` points to room for the result, as MPI requires of the program.
    unsafe { store(to, found, "pair_type") }
}
