//! Memory for messages, and addresses (MPI 5.0, sections 5.1.5 and 9.2).

use crate::arguments::{not_null, optional_info, store};
use crate::constants::*;
use crate::error::Error;
use crate::state::{Kept, Phase, state};
use crate::types::Info;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use weft_fabric::{Cause, Fabric, Region};

/// What was allocated, by address; `None`: from malloc.
static ALLOCATED: Kept<RefCell<BTreeMap<usize, Option<Region>>>> =
    Kept::new(RefCell::new(BTreeMap::new()));

/// Alignment of what malloc gives, as of the fabric's memory: a cache line.
const ALIGN: usize = 64;

pub(crate) unsafe fn alloc_mem(size: isize, info: Info, baseptr: *mut c_void) -> Result<(), Error> {
    not_null(baseptr, "baseptr")?;
    optional_info(info)?;
    let len = usize::try_from(size)
        .map_err(|_| Error::new(MPI_ERR_ARG, format_args!("argument size = {size} is negative")))?;
    let (address, region) = match shared(len)? {
        Some(region) => (region.local.ptr().cast(), Some(region)),
        None => (private(len)?, None),
    };
    ALLOCATED.borrow_mut().insert(address.expose_provenance(), region);
    // SAFETY: not NULL; the program gives the address of a pointer.
    unsafe { store(baseptr.cast::<*mut c_void>(), address, "baseptr") }
}

/// Memory that peers can reach directly. `None` where there is no fabric, or its addresses are used up:
/// any memory can be communicated. Where there is no memory, malloc would only promise it.
fn shared(len: usize) -> Result<Option<Region>, Error> {
    let state = state();
    let engine = state.engine.get().filter(|_| len > 0 && state.phase.get() == Phase::Running);
    let Some(engine) = engine else { return Ok(None) };
    match engine.allocate(len) {
        Ok(region) => Ok(Some(region)),
        Err(fault) if matches!(fault.cause(), Cause::NoRoom { memory: true, .. }) => {
            Err(fault.into())
        }
        Err(_) => Ok(None),
    }
}

fn private(len: usize) -> Result<*mut c_void, Error> {
    let mut address: *mut c_void = std::ptr::null_mut();
    // SAFETY: the result is stored in our variable.
    let failed: c_int = unsafe { libc::posix_memalign(&mut address, ALIGN, len.max(1)) };
    if failed == 0 {
        return Ok(address);
    }
    let text = format_args!(
        "argument size = {len}: the system has no such memory (ulimit -v, the machine's memory); ask for less"
    );
    Err(Error::new(MPI_ERR_NO_MEM, text))
}

pub(crate) unsafe fn free_mem(base: *mut c_void) -> Result<(), Error> {
    let state = state();
    let Some(region) = ALLOCATED.borrow_mut().remove(&base.addr()) else {
        let text =
            format!("argument base = {base:p}: MPI_Alloc_mem did not return it, or it is freed");
        return Err(Error::new(MPI_ERR_BASE, text));
    };
    match (region, state.engine.get()) {
        (Some(region), Some(engine)) => engine.endpoint().fabric().withdraw(region),
        // SAFETY: it came from `private`, once.
        _ => unsafe { libc::free(base) },
    }
    Ok(())
}

pub(crate) unsafe fn get_address(
    location: *const c_void,
    address: *mut isize,
) -> Result<(), Error> {
    // SAFETY: the caller's pointer.
    unsafe { store(address, location.expose_provenance() as isize, "address") }
}
