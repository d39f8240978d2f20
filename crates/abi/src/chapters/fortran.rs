//! Fortran's types by precision and range (MPI 5.0, section 19.1.9), and the sizes of the ABI's integers (section 20.2).

use crate::arguments::{datatype, not_null, store, store_new};
use crate::chapter_state::ChapterState;
use crate::constants::*;
use crate::error::Error;
use crate::objects::TypeObject;
use crate::state::state;
use crate::types::{Datatype, Info};
use std::cell::{Cell, RefCell};
use std::ffi::c_int;
use std::rc::Rc;
use weft_datatype::{Combiner, Datatype as Map, Type};

static MADE: ChapterState<RefCell<Vec<Made>>> = ChapterState::new(RefCell::new(Vec::new()));

/// A type made by MPI_Type_create_f90_*. The same arguments return the same type, which is never freed.
struct Made {
    combiner: Combiner,
    arguments: Vec<i64>,
    object: Rc<TypeObject>,
}

/// Returns the handle of `ty`, if it was made by MPI_Type_create_f90_*.
pub fn handle_of(ty: &Type) -> Option<Datatype> {
    let made = MADE.borrow();
    made.iter().find(|m| Rc::ptr_eq(&m.object.ty, ty)).map(|m| m.object.handle.get())
}

fn make(combiner: Combiner, arguments: &[i64], basic: Datatype) -> Result<Datatype, Error> {
    let state = state();
    let known = MADE.borrow();
    let found = known.iter().find(|m| m.combiner == combiner && m.arguments == arguments);
    if let Some(made) = found {
        return Ok(made.object.handle.get());
    }
    drop(known);
    let ty = Map::parametrized(combiner, arguments, &datatype(basic)?.ty)?;
    let handle = Cell::new(MPI_DATATYPE_NULL);
    let object = TypeObject { ty, handle, predefined: true, attributes: RefCell::default() };
    let object = Rc::new(object);
    let handle = Datatype(state.types.borrow_mut().insert(object.clone()));
    object.handle.set(handle);
    let made = Made { combiner, arguments: arguments.to_vec(), object };
    MADE.borrow_mut().push(made);
    Ok(handle)
}

#[cold]
fn too_much(what: &str) -> Error {
    Error::new(MPI_ERR_ARG, format_args!("no Fortran type has {what}"))
}

/// Returns the index of the smallest of four sizes (2, 4, 8 and 16 bytes) with `p` decimal digits and the decimal exponent `r`.
fn real_size(p: c_int, r: c_int) -> Result<usize, Error> {
    if p == MPI_UNDEFINED && r == MPI_UNDEFINED {
        let text = "arguments p and r are both MPI_UNDEFINED: one of them must be given";
        return Err(Error::new(MPI_ERR_ARG, text));
    }
    // Decimal digits and exponents of the IEEE formats with 2, 4, 8 and 16 bytes, as Fortran's PRECISION and RANGE return them.
    let formats = [(3, 4), (6, 37), (15, 307), (33, 4931)];
    let fits = |&(digits, exponent): &(c_int, c_int)| p <= digits && r <= exponent;
    // Fortran compilers have no 2-byte reals, so the smallest type has 4 bytes.
    let found = formats.iter().skip(1).position(fits).map(|place| place + 1);
    found.ok_or_else(|| too_much(&format!("p = {p} digits and an exponent of r = {r}")))
}

/// MPI_Type_create_f90_real.
pub(crate) unsafe fn type_create_f90_real(
    p: c_int,
    r: c_int,
    newtype: *mut Datatype,
) -> Result<(), Error> {
    not_null(newtype, "newtype")?;
    let basic = [MPI_REAL2, MPI_REAL4, MPI_REAL8, MPI_REAL16][real_size(p, r)?];
    let made = make(Combiner::F90Real, &[i64::from(p), i64::from(r)], basic)?;
    // SAFETY: `newtype` points to room for the result, as MPI requires of the program.
    unsafe { store(newtype, made, "newtype") }
}

/// MPI_Type_create_f90_complex.
pub(crate) unsafe fn type_create_f90_complex(
    p: c_int,
    r: c_int,
    newtype: *mut Datatype,
) -> Result<(), Error> {
    not_null(newtype, "newtype")?;
    let basic = [MPI_COMPLEX4, MPI_COMPLEX8, MPI_COMPLEX16, MPI_COMPLEX32][real_size(p, r)?];
    let made = make(Combiner::F90Complex, &[i64::from(p), i64::from(r)], basic)?;
    // SAFETY: `newtype` points to room for the result, as MPI requires of the program.
    unsafe { store(newtype, made, "newtype") }
}

/// MPI_Type_create_f90_integer.
pub(crate) unsafe fn type_create_f90_integer(
    r: c_int,
    newtype: *mut Datatype,
) -> Result<(), Error> {
    not_null(newtype, "newtype")?;
    // Decimal exponents of the integers with 1, 2, 4, 8 and 16 bytes, as Fortran's RANGE returns them.
    let ranges = [2, 4, 9, 18, 38];
    let types = [MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8, MPI_INTEGER16];
    let place = ranges.iter().position(|&range| r <= range);
    let basic = types[place.ok_or_else(|| too_much(&format!("a range of r = {r}")))?];
    let made = make(Combiner::F90Integer, &[i64::from(r)], basic)?;
    // SAFETY: `newtype` points to room for the result, as MPI requires of the program.
    unsafe { store(newtype, made, "newtype") }
}

/// MPI_Abi_get_info.
/// Returns the sizes of the integers that the ABI leaves to the platform.
pub(crate) unsafe fn abi_get_info(to: *mut Info) -> Result<(), Error> {
    let mut info = weft_process::Info::default();
    for name in ["aint", "count", "offset"] {
        info.set(&format!("mpi_{name}_size"), &size_of::<i64>().to_string());
    }
    // SAFETY: `to` points to room for the result, as MPI requires of the program.
    unsafe { store_new(&state().infos, info, Info, to, "info") }
}
