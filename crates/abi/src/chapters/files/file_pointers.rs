//! File pointers: the individual pointer, the shared pointer, and conversion of offsets to bytes of the file.

use super::{file, file_for_collective, run};
use crate::arguments::{not_null, store};
use crate::constants::*;
use crate::error::Error;
use crate::types::File;
use std::ffi::c_int;
use weft_io::Whence;

fn whence(value: c_int) -> Result<Whence, Error> {
    match value {
        MPI_SEEK_SET => Ok(Whence::Set),
        MPI_SEEK_CUR => Ok(Whence::Current),
        MPI_SEEK_END => Ok(Whence::End),
        _ => {
            let text = format!(
                "argument whence = {value}: it is MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END"
            );
            Err(Error::new(MPI_ERR_ARG, text))
        }
    }
}

/// MPI_File_seek.
pub(crate) unsafe fn file_seek(fh: File, offset: i64, from: c_int) -> Result<(), Error> {
    Ok(file(fh)?.file.seek(offset, whence(from)?)?)
}

/// MPI_File_seek_shared.
pub(crate) unsafe fn file_seek_shared(fh: File, offset: i64, from: c_int) -> Result<(), Error> {
    let object = file_for_collective(fh)?;
    let whence = whence(from)?;
    run(&object, "MPI_File_seek_shared", object.file.seek_shared(offset, whence))
}

/// MPI_File_get_position.
pub(crate) unsafe fn file_get_position(fh: File, offset: *mut i64) -> Result<(), Error> {
    // SAFETY: `offset` points to room for the result, as MPI requires of the program.
    unsafe { store(offset, file(fh)?.file.position(), "offset") }
}

/// MPI_File_get_position_shared.
pub(crate) unsafe fn file_get_position_shared(fh: File, offset: *mut i64) -> Result<(), Error> {
    let object = file(fh)?;
    not_null(offset, "offset")?;
    let position = run(&object, "MPI_File_get_position_shared", object.file.position_shared())?;
    // SAFETY: `offset` points to room for the result, as MPI requires of the program.
    unsafe { store(offset, position, "offset") }
}

/// MPI_File_get_byte_offset.
pub(crate) unsafe fn file_get_byte_offset(
    fh: File,
    offset: i64,
    disp: *mut i64,
) -> Result<(), Error> {
    let byte = file(fh)?.file.byte_of(offset)?;
    // SAFETY: `disp` points to room for the result, as MPI requires of the program.
    unsafe { store(disp, byte as i64, "disp") }
}
