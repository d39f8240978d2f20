//! Packing into the program's own buffers (MPI 5.0, section 5.2).

use crate::arguments::{buffer, comm, committed, count, not_null};
use crate::constants::*;
use crate::error::Error;
use crate::types::{Comm, Datatype};
use crate::widen::Out;
use std::ffi::c_void;
use weft_fabric::Sge;

/// The part of a packed buffer that `len` bytes from the position on take.
///
/// # Safety
/// `base` is NULL or has `size` bytes; `position` is NULL or holds a value.
unsafe fn part(
    base: *mut c_void,
    size: i64,
    position: Out,
    len: usize,
    names: [&str; 2],
) -> Result<Sge, Error> {
    let [buffer, size_name] = names;
    if position.is_null() {
        return Err(Error::null("position"));
    }
    let size = count(size, size_name)?;
    // SAFETY: not NULL.
    let at = unsafe { position.get() };
    let Some(start) = usize::try_from(at).ok().filter(|&start| start <= size) else {
        let text = format!("argument position = {at}: 0 to {size_name} = {size}");
        return Err(Error::new(MPI_ERR_ARG, text));
    };
    if len > size - start {
        let text = format!(
            "argument {size_name} = {size}: {len} bytes are needed from position {start} on"
        );
        return Err(Error::new(MPI_ERR_TRUNCATE, text));
    }
    if len == 0 {
        return Ok(Sge::EMPTY);
    }
    not_null(base, buffer)?;
    // SAFETY: inside the program's buffer.
    Ok(unsafe { Sge::new(base.cast::<u8>().add(start), len) })
}

/// Moves the position behind `len` bytes.
///
/// # Safety
/// `position` holds a value.
unsafe fn advance(position: Out, len: usize) {
    // SAFETY: by contract.
    unsafe { position.set(position.get() + len as i64) }
}

pub(crate) unsafe fn pack(
    inbuf: *const c_void,
    incount: i64,
    datatype: Datatype,
    outbuf: *mut c_void,
    outsize: i64,
    position: Out,
    handle: Comm,
) -> Result<(), Error> {
    comm(handle)?;
    // SAFETY: the caller's buffers.
    unsafe {
        let from = buffer(inbuf, incount, datatype, ["inbuf", "incount", "datatype"])?;
        let to = part(outbuf, outsize, position, from.len(), ["outbuf", "outsize"])?;
        from.pack_to(to);
        advance(position, from.len());
    }
    Ok(())
}

pub(crate) unsafe fn unpack(
    inbuf: *const c_void,
    insize: i64,
    position: Out,
    outbuf: *mut c_void,
    outcount: i64,
    datatype: Datatype,
    handle: Comm,
) -> Result<(), Error> {
    comm(handle)?;
    // SAFETY: the caller's buffers.
    unsafe {
        let to = buffer(outbuf, outcount, datatype, ["outbuf", "outcount", "datatype"])?;
        let from = part(inbuf.cast_mut(), insize, position, to.len(), ["inbuf", "insize"])?;
        to.unpack_from(from);
        advance(position, to.len());
    }
    Ok(())
}

pub(crate) unsafe fn pack_size(
    incount: i64,
    datatype: Datatype,
    handle: Comm,
    size: Out,
) -> Result<(), Error> {
    comm(handle)?;
    if size.is_null() {
        return Err(Error::null("size"));
    }
    let bytes = committed(datatype, "datatype")?.ty.packed_size(count(incount, "incount")?)?;
    // SAFETY: not NULL.
    unsafe { size.set(bytes as i64) };
    Ok(())
}
