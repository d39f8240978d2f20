//! Memory for messages, and addresses (MPI 5.0, sections 5.1.5 and 9.2).

use crate::arguments::{not_null, optional_info, store};
use crate::chapter_state::ChapterState;
use crate::constants::*;
use crate::error::Error;
use crate::state::{ProcessPhase, state};
use crate::types::Info;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use weft_fabric::{Fabric, FaultCause, Region};

/// Memory that MPI_Alloc_mem has allocated, by address. `None` for memory from malloc.
static ALLOCATED: ChapterState<RefCell<BTreeMap<usize, Option<Region>>>> =
    ChapterState::new(RefCell::new(BTreeMap::new()));

/// Key of the hint that asks for an alignment.
pub const ALIGNMENT: &str = "mpi_minimum_memory_alignment";

/// Maximum alignment, in bytes, that a program gets. No processor needs more.
const ALIGN_MOST: usize = 1 << 30;

/// Returns the alignment that a program asks for. A value that is not a power of two, or that is greater than `most`, is ignored,
/// because hints may be ignored.
pub fn asked_alignment(hints: &weft_process::Info, most: usize) -> Option<usize> {
    let asked = hints.get(ALIGNMENT).and_then(|text| text.trim().parse().ok());
    asked.filter(|align: &usize| align.is_power_of_two() && *align <= most)
}

/// Returns the alignment that a program asks for, but at least the alignment of all memory that the library allocates.
pub fn alignment(hints: &weft_process::Info, most: usize) -> usize {
    asked_alignment(hints, most).unwrap_or(1).max(Region::ALIGN)
}

/// MPI_Alloc_mem.
pub(crate) unsafe fn alloc_mem(size: isize, info: Info, baseptr: *mut c_void) -> Result<(), Error> {
    not_null(baseptr, "baseptr")?;
    let align = alignment(&optional_info(info)?.unwrap_or_default(), ALIGN_MOST);
    let len = usize::try_from(size)
        .map_err(|_| Error::new(MPI_ERR_ARG, format_args!("argument size = {size} is negative")))?;
    let (address, region) = match shared(len, align)? {
        Some(region) => {
            let memory = region.local.part(region.first_at(align), len);
            (memory.ptr().cast(), Some(region))
        }
        None => (private(len, align)?, None),
    };
    ALLOCATED.borrow_mut().insert(address.expose_provenance(), region);
    // SAFETY: `baseptr` is not NULL, so it is the address of a pointer, as MPI requires of the program.
    unsafe { store(baseptr.cast::<*mut c_void>(), address, "baseptr") }
}

/// Allocates memory that peers can reach directly. Returns `None` if there is no fabric, if the fabric has no addresses left, or if
/// the fabric would waste too much memory for the alignment. The caller then uses memory from malloc. Fails if the machine has no
/// memory left, because malloc would return addresses without memory.
fn shared(len: usize, align: usize) -> Result<Option<Region>, Error> {
    let state = state();
    let engine =
        state.engine.get().filter(|_| len > 0 && state.phase.get() == ProcessPhase::Running);
    let room = Region::room(len, align).filter(|_| align <= Region::ALIGN_SEEN);
    let (Some(engine), Some(room)) = (engine, room) else { return Ok(None) };
    match engine.allocate(room) {
        Ok(region) => Ok(Some(region)),
        Err(fault) if matches!(fault.cause(), FaultCause::NoRoom { memory: true, .. }) => {
            Err(fault.into())
        }
        Err(_) => Ok(None),
    }
}

fn private(len: usize, align: usize) -> Result<*mut c_void, Error> {
    let mut address: *mut c_void = std::ptr::null_mut();
    // SAFETY: `posix_memalign` stores the result in a local variable; `align` is a power of two of at least the size of a pointer.
    let failed: c_int = unsafe { libc::posix_memalign(&mut address, align, len.max(1)) };
    if failed == 0 {
        return Ok(address);
    }
    let text = format_args!(
        "argument size = {len}: the system has no such memory (ulimit -v, the machine's memory); ask for less"
    );
    Err(Error::new(MPI_ERR_NO_MEM, text))
}

/// MPI_Free_mem.
pub(crate) unsafe fn free_mem(base: *mut c_void) -> Result<(), Error> {
    let state = state();
    let Some(region) = ALLOCATED.borrow_mut().remove(&base.addr()) else {
        let text =
            format!("argument base = {base:p}: MPI_Alloc_mem did not return it, or it is freed");
        return Err(Error::new(MPI_ERR_BASE, text));
    };
    match (region, state.engine.get()) {
        (Some(region), Some(engine)) => engine.endpoint().fabric().withdraw(region),
        // SAFETY: `base` came from `private`, and the table held it, so it is freed only once.
        _ => unsafe { libc::free(base) },
    }
    Ok(())
}

/// MPI_Get_address.
pub(crate) unsafe fn get_address(
    location: *const c_void,
    address: *mut isize,
) -> Result<(), Error> {
    // SAFETY: `address` points to room for the result, as MPI requires of the program.
    unsafe { store(address, location.expose_provenance() as isize, "address") }
}
