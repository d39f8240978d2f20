//! Files (MPI 5.0, chapter 14): open, close, and calls that change a whole file. `properties.rs` has queries, `data_access.rs` has
//! reads and writes, and `representations.rs` has the program's own representations.

pub(crate) mod data_access;
pub(crate) mod file_pointers;
pub(crate) mod properties;
pub(crate) mod representations;

use crate::arguments::{
    bad_handle, file_name, info, intracomm, named_datatype, not_null, optional_info, store, text,
};
use crate::constants::*;
use crate::engine::JobFabric;
use crate::error::Error;
use crate::objects::FileObject;
use crate::settings;
use crate::state::{running, state};
use crate::types::{Comm, Datatype, File, Info};
use crate::waiting::WaitingCall;
use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_int};
use std::rc::Rc;
use weft_io::{Amode, IoPool, OpenArguments};
use weft_process::Engine;

/// Returns the file of a handle.
pub fn file(handle: File) -> Result<Rc<FileObject>, Error> {
    let object = running()?.files.borrow().get(handle.0).cloned();
    object.ok_or_else(|| bad_handle(MPI_ERR_FILE, "fh", "file", handle.0, MPI_FILE_NULL.0))
}

/// Waits for an operation on a file.
fn run<T>(
    object: &FileObject,
    call: &'static str,
    operation: impl Future<Output = Result<T, weft_process::Error>>,
) -> Result<T, Error> {
    let engine = object.file.comm().engine();
    Ok(engine.block_on(&WaitingCall::new(call), operation)?)
}

/// Returns the file of a handle for a collective call. Errors: OTHER while a split collective access is active, because such an
/// access excludes other collective calls.
fn file_for_collective(handle: File) -> Result<Rc<FileObject>, Error> {
    let object = file(handle)?;
    if let Some((begun, _)) = &*object.split.borrow() {
        let text = format!("{begun} has begun a split collective access: end it first");
        return Err(Error::new(MPI_ERR_OTHER, text));
    }
    Ok(object)
}

/// Checks a length in bytes.
fn size(value: i64) -> Result<u64, Error> {
    u64::try_from(value)
        .map_err(|_| Error::new(MPI_ERR_ARG, format_args!("argument size = {value} is negative")))
}

/// Returns the process's pool for accesses in the background.
fn pool(engine: &Rc<Engine<JobFabric>>) -> Result<Rc<IoPool<JobFabric>>, Error> {
    let mut threads = state().file_threads.borrow_mut();
    if let Some(pool) = &*threads {
        return Ok(pool.clone());
    }
    let ring = settings::number("WEFT_IO_URING").map_err(|text| Error::new(MPI_ERR_OTHER, text))?;
    let new = match ring {
        0 => IoPool::of_threads(engine),
        _ => IoPool::new(engine),
    };
    Ok(threads.insert(new).clone())
}

/// MPI_File_open.
pub(crate) unsafe fn file_open(
    comm: Comm,
    filename: *const c_char,
    amode: c_int,
    hints: Info,
    fh: *mut File,
) -> Result<(), Error> {
    not_null(fh, "fh")?;
    let comm = intracomm(comm)?;
    let hints = optional_info(hints)?.unwrap_or_default();
    // SAFETY: the program passes NULL or a C string.
    let name = unsafe { file_name(filename, "filename")? };
    let amode = Amode::new(amode)?;
    state().files.borrow_mut().room()?;
    let pool = pool(comm.engine())?;
    let arguments = OpenArguments { name, amode, info: &hints };
    let opening = weft_io::File::open(&comm, arguments, &pool, &weft_io::disk);
    let file = comm.engine().block_on(&WaitingCall::new("MPI_File_open"), opening)?;
    let errhandler = Cell::new(state().file_errhandler.get());
    let object = FileObject { file, errhandler, split: RefCell::default() };
    let handle = state().files.borrow_mut().insert(Rc::new(object));
    // SAFETY: `fh` points to room for the result, as MPI requires of the program.
    unsafe { store(fh, File(handle), "fh") }
}

/// MPI_File_close.
pub(crate) unsafe fn file_close(fh: *mut File) -> Result<(), Error> {
    not_null(fh, "fh")?;
    // SAFETY: `fh` is not NULL, so it points to a value, as MPI requires of the program.
    let handle = unsafe { *fh };
    let object = file_for_collective(handle)?;
    let closed = run(&object, "MPI_File_close", object.file.close());
    state().files.borrow_mut().remove(handle.0);
    // SAFETY: `fh` points to room for the result, as MPI requires of the program.
    unsafe { store(fh, MPI_FILE_NULL, "fh") }?;
    closed
}

/// MPI_File_delete.
pub(crate) unsafe fn file_delete(filename: *const c_char, hints: Info) -> Result<(), Error> {
    running()?;
    optional_info(hints)?;
    // SAFETY: the program passes NULL or a C string.
    let name = unsafe { file_name(filename, "filename")? };
    Ok(weft_io::delete(name)?)
}

/// MPI_File_set_size.
pub(crate) unsafe fn file_set_size(fh: File, length: i64) -> Result<(), Error> {
    let object = file_for_collective(fh)?;
    let length = size(length)?;
    run(&object, "MPI_File_set_size", object.file.set_length(length))
}

/// MPI_File_preallocate.
pub(crate) unsafe fn file_preallocate(fh: File, length: i64) -> Result<(), Error> {
    let object = file_for_collective(fh)?;
    let length = size(length)?;
    run(&object, "MPI_File_preallocate", object.file.preallocate(length))
}

/// MPI_File_get_size.
pub(crate) unsafe fn file_get_size(fh: File, to: *mut i64) -> Result<(), Error> {
    let length = file(fh)?.file.length()?;
    // SAFETY: `to` points to room for the result, as MPI requires of the program.
    unsafe { store(to, length as i64, "size") }
}

/// MPI_File_sync.
pub(crate) unsafe fn file_sync(fh: File) -> Result<(), Error> {
    let object = file_for_collective(fh)?;
    run(&object, "MPI_File_sync", object.file.sync())
}

/// MPI_File_set_atomicity.
pub(crate) unsafe fn file_set_atomicity(fh: File, flag: c_int) -> Result<(), Error> {
    let object = file_for_collective(fh)?;
    run(&object, "MPI_File_set_atomicity", object.file.set_atomicity(flag != 0))
}

/// MPI_File_set_info.
pub(crate) unsafe fn file_set_info(fh: File, hints: Info) -> Result<(), Error> {
    let object = file(fh)?;
    object.file.set_hints(&info(hints)?);
    Ok(())
}

/// MPI_File_set_view.
pub(crate) unsafe fn file_set_view(
    fh: File,
    disp: i64,
    etype: Datatype,
    filetype: Datatype,
    datarep: *const c_char,
    hints: Info,
) -> Result<(), Error> {
    let object = file_for_collective(fh)?;
    let hints = optional_info(hints)?;
    let sequential = object.file.amode() & MPI_MODE_SEQUENTIAL != 0;
    let displacement = match (disp, sequential) {
        (MPI_DISPLACEMENT_CURRENT, true) => None,
        (_, true) => {
            let text = format!(
                "argument disp = {disp}: a file that was opened with MPI_MODE_SEQUENTIAL takes MPI_DISPLACEMENT_CURRENT"
            );
            return Err(Error::new(MPI_ERR_ARG, text));
        }
        _ => Some(u64::try_from(disp).map_err(|_| {
            Error::new(MPI_ERR_ARG, format_args!("argument disp = {disp} is negative"))
        })?),
    };
    let [etype, filetype] = [(etype, "etype"), (filetype, "filetype")]
        .map(|(handle, name)| named_datatype(handle, name).map(|object| object.ty.clone()));
    let (etype, filetype) = (etype?, filetype?);
    // SAFETY: the program passes NULL or a C string.
    let representation = representations::named(&unsafe { text(datarep, "datarep")? })?;
    let view = object.file.set_view(displacement, &etype, &filetype, representation);
    run(&object, "MPI_File_set_view", view)?;
    if let Some(hints) = hints {
        object.file.set_hints(&hints);
    }
    Ok(())
}
