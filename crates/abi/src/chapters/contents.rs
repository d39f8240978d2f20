//! Envelope and contents of datatypes: the constructor of a type and its arguments (MPI 5.0, section 5.1.13).

use crate::arguments::{datatype, store};
use crate::arrays::store_list;
use crate::chapters::datatypes::keep;
use crate::chapters::fortran::handle_of;
use crate::constants::*;
use crate::error::Error;
use crate::objects::TypeObject;
use crate::types::Datatype;
use std::ffi::c_int;
use std::rc::Rc;
use weft_datatype::Type;

/// Returns a handle of a type from which another type was made: the predefined handle, or a new handle, which the program frees.
pub(super) fn give_back(ty: &Type) -> Datatype {
    match ty.basic() {
        Some(basic) => Datatype(basic.handle() as usize),
        None => handle_of(ty).unwrap_or_else(|| keep(ty.clone())),
    }
}

/// Returns a datatype that was made without large counts. Functions without `_c` cannot return the contents of a datatype that was
/// made with large counts.
fn small(handle: Datatype) -> Result<Rc<TypeObject>, Error> {
    let object = datatype(handle)?;
    if object.ty.contents().counts.is_empty() {
        return Ok(object);
    }
    let text = "argument datatype was made with large counts: the form of this function with _c \
                gives them back";
    Err(Error::new(MPI_ERR_TYPE, text))
}

/// MPI_Type_get_envelope.
pub(crate) unsafe fn type_get_envelope(
    handle: Datatype,
    integers: *mut c_int,
    addresses: *mut c_int,
    datatypes: *mut c_int,
    combiner: *mut c_int,
) -> Result<(), Error> {
    let object = small(handle)?;
    let contents = object.ty.contents();
    // SAFETY: `integers`, `addresses`, `datatypes` and `combiner` are NULL or may be written, as MPI requires of the program.
    unsafe {
        store(integers, contents.integers.len() as c_int, "num_integers")?;
        store(addresses, contents.addresses.len() as c_int, "num_addresses")?;
        store(datatypes, contents.types.len() as c_int, "num_datatypes")?;
        store(combiner, object.ty.combiner() as c_int, "combiner")
    }
}

/// MPI_Type_get_envelope_c.
pub(crate) unsafe fn type_get_envelope_c(
    handle: Datatype,
    integers: *mut i64,
    addresses: *mut i64,
    counts: *mut i64,
    datatypes: *mut i64,
    combiner: *mut c_int,
) -> Result<(), Error> {
    let object = datatype(handle)?;
    let contents = object.ty.contents();
    // SAFETY: all five pointers are NULL or may be written, as MPI requires of the program.
    unsafe {
        store(integers, contents.integers.len() as i64, "num_integers")?;
        store(addresses, contents.addresses.len() as i64, "num_addresses")?;
        store(counts, contents.counts.len() as i64, "num_large_counts")?;
        store(datatypes, contents.types.len() as i64, "num_datatypes")?;
        store(combiner, object.ty.combiner() as c_int, "combiner")
    }
}

/// Checks that an array of `room` elements is large enough.
fn fits(room: i64, len: usize, what: &str) -> Result<(), Error> {
    if room >= len as i64 {
        return Ok(());
    }
    let text =
        format!("argument max_{what} = {room}: there are {len}, as MPI_Type_get_envelope says");
    Err(Error::new(MPI_ERR_ARG, text))
}

fn derived(object: &TypeObject) -> Result<(), Error> {
    match object.ty.basic() {
        None => Ok(()),
        Some(basic) => {
            let text = format!("argument datatype is {}, which was made of nothing", basic.name());
            Err(Error::new(MPI_ERR_TYPE, text))
        }
    }
}

/// MPI_Type_get_contents.
pub(crate) unsafe fn type_get_contents(
    handle: Datatype,
    max_integers: c_int,
    max_addresses: c_int,
    max_datatypes: c_int,
    integers: *mut c_int,
    addresses: *mut isize,
    datatypes: *mut Datatype,
) -> Result<(), Error> {
    small(handle)?;
    let [i, a, d] = [max_integers, max_addresses, max_datatypes].map(i64::from);
    let none = std::ptr::null_mut();
    // SAFETY: `type_get_contents_c` needs arrays as long as MPI requires of the program.
    unsafe { type_get_contents_c(handle, i, a, 0, d, integers, addresses, none, datatypes) }
}

/// MPI_Type_get_contents_c.
#[allow(clippy::too_many_arguments)] // the standard's
pub(crate) unsafe fn type_get_contents_c(
    handle: Datatype,
    max_integers: i64,
    max_addresses: i64,
    max_counts: i64,
    max_datatypes: i64,
    integers: *mut c_int,
    addresses: *mut isize,
    counts: *mut i64,
    datatypes: *mut Datatype,
) -> Result<(), Error> {
    let object = datatype(handle)?;
    derived(&object)?;
    let contents = object.ty.contents();
    fits(max_integers, contents.integers.len(), "integers")?;
    fits(max_addresses, contents.addresses.len(), "addresses")?;
    fits(max_counts, contents.counts.len(), "large_counts")?;
    fits(max_datatypes, contents.types.len(), "datatypes")?;
    // SAFETY: each array is NULL or has the number of elements that its `max_` argument says, as MPI requires of the program.
    unsafe {
        // Integers are the arguments that the program gave as int.
        let narrow = contents.integers.iter().map(|&i| i as c_int);
        store_list(integers, narrow, "array_of_integers")?;
        let places = contents.addresses.iter().map(|&a| a as isize);
        store_list(addresses, places, "array_of_addresses")?;
        store_list(counts, contents.counts.iter().copied(), "array_of_large_counts")?;
        store_list(datatypes, contents.types.iter().map(give_back), "array_of_datatypes")
    }
}
