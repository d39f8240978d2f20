//! Properties of a file: access mode, group, hints, view, error handler.

use super::file;
use crate::arguments::{bad_handle, named_datatype, not_null, store, store_new, store_text};
use crate::chapters::contents::give_back;
use crate::chapters::errors::{check_errhandler, give_out};
use crate::constants::*;
use crate::error::{Error, Owner};
use crate::objects::HandlerKind;
use crate::raise;
use crate::state::{running, state};
use crate::types::{Datatype, Errhandler, File, Group, Info};
use crate::widen_counts::Out;
use std::ffi::{c_char, c_int};

/// MPI_File_get_amode.
pub(crate) unsafe fn file_get_amode(fh: File, amode: *mut c_int) -> Result<(), Error> {
    // SAFETY: `amode` points to room for the result, as MPI requires of the program.
    unsafe { store(amode, file(fh)?.file.amode(), "amode") }
}

/// MPI_File_get_atomicity.
pub(crate) unsafe fn file_get_atomicity(fh: File, flag: *mut c_int) -> Result<(), Error> {
    // SAFETY: `flag` points to room for the result, as MPI requires of the program.
    unsafe { store(flag, c_int::from(file(fh)?.file.is_atomic()), "flag") }
}

/// MPI_File_get_group.
pub(crate) unsafe fn file_get_group(fh: File, to: *mut Group) -> Result<(), Error> {
    let group = file(fh)?.file.comm().group().clone();
    // SAFETY: `to` points to room for the result, as MPI requires of the program.
    unsafe { store_new(&state().groups, group, Group, to, "group") }
}

/// MPI_File_get_info.
pub(crate) unsafe fn file_get_info(fh: File, to: *mut Info) -> Result<(), Error> {
    let used = file(fh)?.file.hints();
    // SAFETY: `to` points to room for the result, as MPI requires of the program.
    unsafe { store_new(&state().infos, used, Info, to, "info_used") }
}

/// MPI_File_get_view.
pub(crate) unsafe fn file_get_view(
    fh: File,
    disp: *mut i64,
    etype: *mut Datatype,
    filetype: *mut Datatype,
    datarep: *mut c_char,
) -> Result<(), Error> {
    let object = file(fh)?;
    let view = object.file.view();
    for (to, name) in [(etype, "etype"), (filetype, "filetype")] {
        not_null(to, name)?;
    }
    not_null(datarep, "datarep")?;
    // SAFETY: the program passes pointers to results, and a buffer of MPI_MAX_DATAREP_STRING bytes.
    unsafe {
        store(disp, view.displacement as i64, "disp")?;
        store(etype, give_back(&view.etype), "etype")?;
        store(filetype, give_back(&view.filetype), "filetype")?;
        let room = MPI_MAX_DATAREP_STRING as usize;
        store_text(&view.representation.name, datarep, room, "datarep").map(|_| ())
    }
}

/// MPI_File_get_type_extent, MPI_File_get_type_extent_c.
pub(crate) unsafe fn file_get_type_extent(
    fh: File,
    datatype: Datatype,
    extent: Out,
) -> Result<(), Error> {
    let object = file(fh)?;
    let ty = named_datatype(datatype, "datatype")?.ty.clone();
    // SAFETY: `extent` is NULL or points to room for the result, as MPI requires of the program.
    unsafe { extent.store(object.file.extent_in_file(&ty)?, "extent") }
}

/// Returns the file of a handle, or `None` for MPI_FILE_NULL. New files get the error handler of MPI_FILE_NULL (MPI 5.0, section
/// 14.7).
fn maybe_file(handle: File) -> Result<Option<std::rc::Rc<crate::objects::FileObject>>, Error> {
    if handle == MPI_FILE_NULL {
        return Ok(None);
    }
    let found = state().files.borrow().get(handle.0).cloned();
    let wrong = || bad_handle(MPI_ERR_FILE, "file", "file", handle.0, MPI_FILE_NULL.0);
    found.map(Some).ok_or_else(wrong)
}

/// MPI_File_set_errhandler.
pub(crate) unsafe fn file_set_errhandler(
    handle: File,
    errhandler: Errhandler,
) -> Result<(), Error> {
    let object = maybe_file(handle)?;
    check_errhandler(errhandler, HandlerKind::File)?;
    match object {
        Some(object) => object.errhandler.set(errhandler.0),
        None => state().file_errhandler.set(errhandler.0),
    }
    Ok(())
}

/// MPI_File_get_errhandler.
pub(crate) unsafe fn file_get_errhandler(
    handle: File,
    errhandler: *mut Errhandler,
) -> Result<(), Error> {
    let errhandler_handle = match maybe_file(handle)? {
        Some(object) => object.errhandler.get(),
        None => state().file_errhandler.get(),
    };
    // SAFETY: the program passes NULL or a pointer to a result, as `store` requires.
    unsafe { give_out(errhandler_handle, errhandler) }
}

/// MPI_File_call_errhandler.
pub(crate) unsafe fn file_call_errhandler(handle: File, errorcode: c_int) -> Result<(), Error> {
    maybe_file(handle)?;
    raise::call(Owner::File(handle), errorcode, "MPI_File_call_errhandler");
    Ok(())
}

/// Checks that MPI is initialized, for functions that need no file.
pub(super) fn check_running() -> Result<(), Error> {
    running().map(|_| ())
}
