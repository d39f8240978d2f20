//! Packing into buffers of the program (MPI 5.0, sections 5.2 and 5.3).

use crate::arguments::{comm, committed, count, not_null, text};
use crate::calls::{Pack, PackExternal, Unpack, UnpackExternal};
use crate::constants::*;
use crate::error::Error;
use crate::types::{Comm, Datatype};
use crate::widen_counts::Out;
use std::ffi::{c_char, c_void};
use weft_fabric::Sge;

/// Returns the part of a packed buffer that begins at the position and has `len` bytes.
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
    // SAFETY: `position` is not NULL, so it holds a value; the contract of this function says so.
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
    // SAFETY: `start + len` is at most `size`, and `base` is not NULL and has `size` bytes; the contract of this function says so.
    Ok(unsafe { Sge::new(base.cast::<u8>().add(start), len) })
}

/// Moves the position forward by `len` bytes.
///
/// # Safety
/// `position` holds a value.
unsafe fn advance(position: Out, len: usize) {
    // SAFETY: `position` holds a value and may be written; the contract of this function says so.
    unsafe { position.set(position.get() + len as i64) }
}

/// MPI_Pack, MPI_Pack_c.
impl Pack {
    pub(crate) fn blocking(self) -> Result<(), Error> {
        comm(self.comm)?;
        let from = self.inbuf.buffer()?;
        // SAFETY: `outbuf` is NULL or has `outsize` bytes, and `position` is NULL or holds a value, as MPI requires of the program.
        unsafe {
            let names = ["outbuf", "outsize"];
            from.pack_to(part(self.outbuf, self.outsize, self.position, from.len(), names)?);
            advance(self.position, from.len());
        }
        Ok(())
    }
}

/// MPI_Unpack, MPI_Unpack_c.
impl Unpack {
    pub(crate) fn blocking(self) -> Result<(), Error> {
        comm(self.comm)?;
        let to = self.outbuf.buffer()?;
        // SAFETY: `inbuf` is NULL or has `insize` bytes, and `position` is NULL or holds a value, as MPI requires of the program.
        unsafe {
            let (inbuf, names) = (self.inbuf.cast_mut(), ["inbuf", "insize"]);
            to.unpack_from(part(inbuf, self.insize, self.position, to.len(), names)?);
            advance(self.position, to.len());
        }
        Ok(())
    }
}

/// MPI_Pack_size, MPI_Pack_size_c.
pub(crate) unsafe fn pack_size(
    incount: i64,
    datatype: Datatype,
    handle: Comm,
    size: Out,
) -> Result<(), Error> {
    comm(handle)?;
    let bytes = committed(datatype, "datatype")?.ty.packed_size(count(incount, "incount")?)?;
    // SAFETY: `size` is NULL or points to room for the result, as MPI requires of the program.
    unsafe { size.store(bytes as i64, "size") }
}

/// Checks the representation. Only "external32" can be used for packing (MPI 5.0, section 5.3).
///
/// # Safety
/// `datarep` is NULL or a C string.
unsafe fn external32(datarep: *const c_char) -> Result<(), Error> {
    // SAFETY: `text` needs a `datarep` that is NULL or a C string; the contract of this function says so.
    let name = unsafe { text(datarep, "datarep")? };
    if name == "external32" {
        return Ok(());
    }
    let wrong = format!("argument datarep = \"{name}\": only \"external32\" is known");
    Err(Error::new(MPI_ERR_ARG, wrong))
}

/// Returns a buffer of the library as an `Sge`, which packing needs.
fn whole(bytes: &mut [u8]) -> Sge {
    // SAFETY: `bytes` has this address and length. The callers use the result only until their next access to `bytes`.
    unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) }
}

/// MPI_Pack_external, MPI_Pack_external_c.
impl PackExternal {
    pub(crate) fn blocking(self) -> Result<(), Error> {
        // SAFETY: `datarep` is NULL or a C string, `outbuf` is NULL or has `outsize` bytes, and `position` is NULL or holds a
        // value, as MPI requires of the program.
        unsafe {
            external32(self.datarep)?;
            let from = self.inbuf.buffer()?;
            let len = from.ty().external_size(from.count())?;
            let to = part(self.outbuf, self.outsize, self.position, len, ["outbuf", "outsize"])?;
            if len == 0 {
                // If the elements have no data, nothing is packed, even if there are very many elements.
                return Ok(());
            }
            let mut packed = vec![0; from.len()];
            from.pack_to(whole(&mut packed));
            let mut external = vec![0; len];
            from.ty().export(from.count(), &packed, &mut external)?;
            to.fill(&external);
            advance(self.position, len);
        }
        Ok(())
    }
}

/// MPI_Unpack_external, MPI_Unpack_external_c.
impl UnpackExternal {
    pub(crate) fn blocking(self) -> Result<(), Error> {
        // SAFETY: `datarep` is NULL or a C string, `inbuf` is NULL or has `insize` bytes, and `position` is NULL or holds a
        // value, as MPI requires of the program.
        unsafe {
            external32(self.datarep)?;
            let to = self.outbuf.buffer()?;
            let len = to.ty().external_size(to.count())?;
            let inbuf = self.inbuf.cast_mut();
            let from = part(inbuf, self.insize, self.position, len, ["inbuf", "insize"])?;
            if len == 0 {
                return Ok(());
            }
            let mut external = vec![0; len];
            from.read(&mut external);
            let mut packed = vec![0; to.len()];
            to.ty().import(to.count(), &external, &mut packed)?;
            to.unpack_from(whole(&mut packed));
            advance(self.position, len);
        }
        Ok(())
    }
}

/// MPI_Pack_external_size, MPI_Pack_external_size_c.
pub(crate) unsafe fn pack_external_size(
    datarep: *const c_char,
    incount: i64,
    datatype: Datatype,
    size: Out,
) -> Result<(), Error> {
    // SAFETY: `datarep` is NULL or a C string, as MPI requires of the program.
    unsafe { external32(datarep)? };
    let ty = &committed(datatype, "datatype")?.ty;
    let bytes = ty.external_size(count(incount, "incount")?)?;
    // SAFETY: `size` is NULL or points to room for the result, as MPI requires of the program.
    unsafe { size.store(bytes as i64, "size") }
}
