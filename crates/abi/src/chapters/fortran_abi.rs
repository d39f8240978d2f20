//! Exchange of properties between the library and a Fortran layer on top of it (MPI 5.0, section 20.4.1).
//!
//! The library has fixed sizes for Fortran's types, the default sizes of compilers. A layer with other sizes gets an error. The
//! layer sets the values of `.TRUE.` and `.FALSE.`. Reductions read any value except 0 as true and write 1.

use crate::arguments::{info, not_null, store, store_new};
use crate::chapter_state::ChapterState;
use crate::constants::*;
use crate::error::Error;
use crate::state::state;
use crate::types::Info;
use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use weft_datatype::Basic;

static TOLD: ChapterState<RefCell<Told>> =
    ChapterState::new(RefCell::new(Told { info: None, booleans: None }));

/// Values that a Fortran layer has set. Each value can be set only once.
struct Told {
    info: Option<weft_process::Info>,
    booleans: Option<Booleans>,
}

/// Bytes of `.TRUE.` and `.FALSE.`.
struct Booleans {
    yes: Vec<u8>,
    no: Vec<u8>,
}

/// Types that every Fortran compiler has.
const PLAIN: [&str; 4] = ["mpi_logical", "mpi_integer", "mpi_real", "mpi_double_precision"];

/// Returns the sizes of Fortran's types and the optional types that this library supports.
fn ours() -> weft_process::Info {
    let mut info = weft_process::Info::default();
    for basic in Basic::all() {
        let name = basic.name().to_lowercase();
        if PLAIN.contains(&name.as_str()) {
            info.set(&format!("{name}_size"), &basic.size().to_string());
        } else if is_optional(&name) {
            info.set(&format!("{name}_supported"), "true");
        }
    }
    info
}

/// MPI_Abi_get_fortran_info.
pub(crate) unsafe fn abi_get_fortran_info(to: *mut Info) -> Result<(), Error> {
    let known = TOLD.borrow().info.clone().unwrap_or_else(ours);
    // SAFETY: `to` points to room for the result, as MPI requires of the program.
    unsafe { store_new(&state().infos, known, Info, to, "info") }
}

/// MPI_Abi_set_fortran_info.
pub(crate) unsafe fn abi_set_fortran_info(handle: Info) -> Result<(), Error> {
    let said = info(handle)?;
    if TOLD.borrow().info.is_some() {
        return Err(told("MPI_Abi_set_fortran_info"));
    }
    let mut known = ours();
    let own = |i| Some(String::from_utf8_lossy(known.key(i)?).into_owned());
    for key in (0..known.len()).filter_map(own).collect::<Vec<_>>() {
        let (Some(value), Some(mine)) = (said.get(&key), known.get(&key)) else { continue };
        let sized = key.ends_with("_size");
        if sized && value != mine {
            let text = format!(
                "info key {key} = {value}: this library has {mine}, and the size is fixed \
                 (MPI_Abi_get_fortran_info tells all)"
            );
            return Err(Error::new(MPI_ERR_ABI, text));
        }
        if !sized && !["true", "false"].contains(&value) {
            let text = format!("info key {key} = {value}: true or false");
            return Err(Error::new(MPI_ERR_INFO_VALUE, text));
        }
        known.set(&key, value);
    }
    TOLD.borrow_mut().info = Some(known);
    Ok(())
}

#[cold]
fn told(call: &str) -> Error {
    Error::new(MPI_ERR_ABI, format_args!("{call} was called before: only the first call counts"))
}

/// Checks and returns the size of a Fortran LOGICAL, in bytes.
fn logical_size(size: c_int) -> Result<usize, Error> {
    let found = usize::try_from(size).ok().filter(|size| size.is_power_of_two() && *size <= 16);
    found.ok_or_else(|| {
        let text = format!("argument logical_size = {size}: one of 1, 2, 4, 8 and 16");
        Error::new(MPI_ERR_ARG, text)
    })
}

/// MPI_Abi_set_fortran_booleans.
pub(crate) unsafe fn abi_set_fortran_booleans(
    size: c_int,
    yes: *mut c_void,
    no: *mut c_void,
) -> Result<(), Error> {
    let size = logical_size(size)?;
    not_null(yes, "logical_true")?;
    not_null(no, "logical_false")?;
    // SAFETY: `yes` and `no` are not NULL and have `size` bytes, as MPI requires of the program.
    let read = |from: *mut c_void| unsafe {
        std::slice::from_raw_parts(from.cast::<u8>().cast_const(), size).to_vec()
    };
    let said = Booleans { yes: read(yes), no: read(no) };
    let told_before = &mut *TOLD.borrow_mut();
    if told_before.booleans.is_some() {
        return Err(told("MPI_Abi_set_fortran_booleans"));
    }
    if said.no.iter().any(|&byte| byte != 0) || said.yes.iter().all(|&byte| byte == 0) {
        let text = "arguments logical_true and logical_false: reductions in this library take 0 for \
                    false and all other values for true, and these are others";
        return Err(Error::new(MPI_ERR_ABI, text));
    }
    told_before.booleans = Some(said);
    Ok(())
}

/// MPI_Abi_get_fortran_booleans.
pub(crate) unsafe fn abi_get_fortran_booleans(
    size: c_int,
    yes: *mut c_void,
    no: *mut c_void,
    is_set: *mut c_int,
) -> Result<(), Error> {
    let size = logical_size(size)?;
    not_null(yes, "logical_true")?;
    not_null(no, "logical_false")?;
    not_null(is_set, "is_set")?;
    let told = TOLD.borrow();
    // Values that were set for another size of LOGICAL are not known for this size.
    let known = told.booleans.as_ref().filter(|booleans| booleans.yes.len() == size);
    if let Some(Booleans { yes: ours_yes, no: ours_no }) = known {
        // SAFETY: `yes` and `no` are not NULL and have `size` bytes, as MPI requires of the program.
        unsafe {
            yes.cast::<u8>().copy_from_nonoverlapping(ours_yes.as_ptr(), size);
            no.cast::<u8>().copy_from_nonoverlapping(ours_no.as_ptr(), size);
        }
    }
    // SAFETY: `is_set` points to room for the result, as MPI requires of the program.
    unsafe { store(is_set, c_int::from(known.is_some()), "is_set") }
}

/// Returns true for a Fortran type that a compiler may lack: a type with its size in its name, or MPI_DOUBLE_COMPLEX.
fn is_optional(name: &str) -> bool {
    let sized = ["mpi_logical", "mpi_integer", "mpi_real", "mpi_complex"];
    let sized_by = |kind: &str| name.strip_prefix(kind).is_some_and(|n| n.parse::<u8>().is_ok());
    name == "mpi_double_complex" || sized.iter().any(|kind| sized_by(kind))
}
