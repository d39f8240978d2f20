//! Creation and freeing of windows (MPI 5.0, chapter 12). `properties.rs` has their properties, `synchronization.rs` has epochs,
//! and `access.rs` has data movement.

pub(crate) mod access;
pub(crate) mod attributes;
pub(crate) mod fast_path;
pub(crate) mod properties;
pub(crate) mod synchronization;

use crate::arguments::{bad_handle, intracomm, not_null, optional_info, store};
use crate::chapters::{caching, memory};
use crate::constants::*;
use crate::engine::CommObject;
use crate::error::Error;
use crate::lanes::{hold_window, place_window, unplace_window};
use crate::objects::{WinObject, WindowOf, address};
use crate::settings;
use crate::state::{running, state};
use crate::types::{Comm, Info, Win};
use crate::waiting::WaitingCall;
use std::ffi::{c_int, c_void};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use weft_fabric::{Region, Sge};
use weft_rma::{Atomics, FenceDesign, IssueOrder, WindowFlavor, WindowOffer, WindowOptions};

/// Returns the window behind a handle.
#[inline]
pub fn window(handle: Win) -> Result<Rc<WinObject>, Error> {
    let found = running()?.wins.borrow().get(handle.0).cloned();
    found.ok_or_else(|| bad_handle(MPI_ERR_WIN, "win", "window", handle.0, MPI_WIN_NULL.0))
}

/// Returns a rank of the window, or `None` for `MPI_PROC_NULL`.
#[inline]
fn target(object: &WinObject, value: c_int, name: &str) -> Result<Option<usize>, Error> {
    match usize::try_from(value) {
        Ok(rank) if rank < object.window.size() => Ok(Some(rank)),
        _ if value == MPI_PROC_NULL => Ok(None),
        _ => Err(bad_target(object, value, name)),
    }
}

#[cold]
fn bad_target(object: &WinObject, value: c_int, name: &str) -> Error {
    let last = object.window.size() - 1;
    Error::new(MPI_ERR_RANK, format_args!("argument {name} = {value}: ranks are 0 to {last}"))
}

/// Runs a step of a window until it is complete. The window's own lock, if there is one, is held during each poll of the step, and
/// released during waits.
fn run<T>(
    object: &WinObject,
    call: &'static str,
    step: impl Future<Output = Result<T, weft_process::Error>>,
) -> Result<T, Error> {
    let engine = object.window.comm().engine();
    let mut step = pin!(step);
    let step = poll_fn(|cx| hold_window(object, || step.as_mut().poll(cx)));
    Ok(engine.block_on(&WaitingCall::new(call), step)?)
}

/// Arguments of all functions that make windows.
struct NewWindow {
    comm: Rc<CommObject>,
    len: usize,
    unit: usize,
    hints: weft_process::Info,
}

impl NewWindow {
    /// Checks the arguments.
    fn of(size: isize, unit: i64, info: Info, comm: Comm) -> Result<NewWindow, Error> {
        let comm = intracomm(comm)?;
        let hints = optional_info(info)?.unwrap_or_default();
        let len = bytes(size)?;
        let unit = usize::try_from(unit).ok().filter(|&unit| unit > 0).ok_or_else(|| {
            Error::new(MPI_ERR_DISP, format_args!("argument disp_unit = {unit}: it is 1 or more"))
        })?;
        Ok(NewWindow { comm, len, unit, hints })
    }

    /// Creates the window and its handle.
    fn make(&self, call: &'static str, brings: WindowOffer) -> Result<(Win, Rc<WinObject>), Error> {
        let NewWindow { comm, unit, hints, .. } = self;
        let options = options(hints)?;
        let made = WindowOf::create(comm, brings, *unit, options);
        let window = comm.engine().block_on(&WaitingCall::new(call), made)?;
        let object = Rc::new(WinObject::new(window, *unit));
        properties::keep(&object, hints);
        properties::tell(&object, &options);
        let handle = Win(state().wins.borrow_mut().insert(object.clone()));
        place_window(handle.0, &object);
        Ok((handle, object))
    }
}

/// Checks a size in bytes.
fn bytes(size: isize) -> Result<usize, Error> {
    usize::try_from(size)
        .map_err(|_| Error::new(MPI_ERR_SIZE, format_args!("argument size = {size} is negative")))
}

/// Returns the window's options: implementation of fences, time at which operations are issued, and handling of integer
/// accumulates. A hint takes precedence over the setting.
fn options(hints: &weft_process::Info) -> Result<WindowOptions, Error> {
    let settings = || -> Result<WindowOptions, String> {
        let fence = FenceDesign::ALL[settings::choice("WEFT_FENCE")?];
        let order = [IssueOrder::Called, IssueOrder::Turns][settings::choice("WEFT_RMA_ORDER")?];
        let atomics = Atomics::ALL[settings::choice("WEFT_RMA_ATOMICS")?];
        Ok(WindowOptions { fence, order, atomics, ..WindowOptions::default() })
    };
    let usual = settings().map_err(|text| Error::new(MPI_ERR_OTHER, text))?;
    let known = |key: &str| hints.get(key);
    Ok(WindowOptions {
        fence: known("weft_fence").and_then(|name| name.parse().ok()).unwrap_or(usual.fence),
        order: known("weft_rma_order").and_then(|name| name.parse().ok()).unwrap_or(usual.order),
        atomics: known("weft_rma_atomics")
            .and_then(|name| name.parse().ok())
            .or_else(|| granularity(known(properties::GRANULARITY)?))
            .unwrap_or(usual.atomics),
        ..usual
    })
}

/// Returns the kind of atomics for the hint `bytes`, the number of bytes that a program accumulates at once (MPI 5.0, section
/// 12.2.1). A lock is faster if this number is larger than an atomic operation of an adapter can update. If the hint is 0 or
/// invalid, returns `None`, which leaves the choice to the library.
fn granularity(bytes: &str) -> Option<Atomics> {
    match bytes.trim().parse::<u64>() {
        Ok(0) | Err(_) => None,
        Ok(1..=8) => Some(Atomics::Adapter),
        Ok(_) => Some(Atomics::Guarded),
    }
}

/// MPI_Win_create, MPI_Win_create_c.
pub(crate) unsafe fn win_create(
    base: *mut c_void,
    size: isize,
    disp_unit: i64,
    info: Info,
    comm: Comm,
    win: *mut Win,
) -> Result<(), Error> {
    not_null(win, "win")?;
    let new = NewWindow::of(size, disp_unit, info, comm)?;
    if base.is_null() && size > 0 {
        let text = format!("argument base is NULL, but size = {size}");
        return Err(Error::new(MPI_ERR_BASE, text));
    }
    base.expose_provenance();
    // SAFETY: the program keeps this memory valid until MPI_Win_free, as MPI requires.
    let memory = unsafe { Sge::new(base.cast(), new.len) };
    let memory = if size == 0 { Sge::EMPTY } else { memory };
    let (handle, object) = new.make("MPI_Win_create", WindowOffer::Own(memory))?;
    object.base.set(base);
    // SAFETY: `win` points to room for the result, as MPI requires of the program.
    unsafe { store(win, handle, "win") }
}

/// Implements MPI_Win_allocate and MPI_Win_allocate_shared. `brings` is this rank's part of the window.
///
/// # Safety
/// `baseptr`, where a pointer is stored, and `win` are NULL or may be written.
unsafe fn allocate(
    call: &'static str,
    new: &NewWindow,
    brings: WindowOffer,
    baseptr: *mut c_void,
    win: *mut Win,
) -> Result<(), Error> {
    not_null(win, "win")?;
    not_null(baseptr, "baseptr")?;
    let (handle, object) = new.make(call, brings)?;
    // SAFETY: `baseptr` and `win` are NULL or may be written; the contract of this function says so.
    unsafe {
        store(baseptr.cast(), object.base.get(), "baseptr")?;
        store(win, handle, "win")
    }
}

/// MPI_Win_allocate, MPI_Win_allocate_c.
pub(crate) unsafe fn win_allocate(
    size: isize,
    disp_unit: i64,
    info: Info,
    comm: Comm,
    baseptr: *mut c_void,
    win: *mut Win,
) -> Result<(), Error> {
    let new = NewWindow::of(size, disp_unit, info, comm)?;
    let align = memory::alignment(&new.hints, Region::ALIGN_SEEN);
    let brings = WindowOffer::Allocate { len: new.len, align };
    // SAFETY: `allocate` needs valid pointers, which the program passes as MPI requires.
    unsafe { allocate("MPI_Win_allocate", &new, brings, baseptr, win) }
}

/// MPI_Win_allocate_shared, MPI_Win_allocate_shared_c.
pub(crate) unsafe fn win_allocate_shared(
    size: isize,
    disp_unit: i64,
    info: Info,
    comm: Comm,
    baseptr: *mut c_void,
    win: *mut Win,
) -> Result<(), Error> {
    let new = NewWindow::of(size, disp_unit, info, comm)?;
    let contiguous = new.hints.get("alloc_shared_noncontig") != Some("true");
    let align = memory::alignment(&new.hints, Region::ALIGN_SEEN);
    let brings = WindowOffer::Share { len: new.len, align, contiguous };
    // SAFETY: `allocate` needs valid pointers, which the program passes as MPI requires.
    unsafe { allocate("MPI_Win_allocate_shared", &new, brings, baseptr, win) }
}

/// MPI_Win_create_dynamic.
pub(crate) unsafe fn win_create_dynamic(
    info: Info,
    comm: Comm,
    win: *mut Win,
) -> Result<(), Error> {
    not_null(win, "win")?;
    let new = NewWindow::of(0, 1, info, comm)?;
    let (handle, _) = new.make("MPI_Win_create_dynamic", WindowOffer::Nothing)?;
    // SAFETY: `win` points to room for the result, as MPI requires of the program.
    unsafe { store(win, handle, "win") }
}

/// MPI_Win_attach.
pub(crate) unsafe fn win_attach(win: Win, base: *mut c_void, size: isize) -> Result<(), Error> {
    let object = window(win)?;
    let len = bytes(size)?;
    if base.is_null() && len > 0 {
        return Err(Error::new(MPI_ERR_BASE, "argument base is NULL"));
    }
    // SAFETY: the program keeps this memory valid until MPI_Win_detach, as MPI requires.
    let memory = unsafe { Sge::new(base.cast(), len) };
    run(&object, "MPI_Win_attach", object.window.attach(memory))
}

/// MPI_Win_detach.
pub(crate) unsafe fn win_detach(win: Win, base: *const c_void) -> Result<(), Error> {
    let object = window(win)?;
    run(&object, "MPI_Win_detach", object.window.detach(base.addr()))
}

/// MPI_Win_free.
pub(crate) unsafe fn win_free(win: *mut Win) -> Result<(), Error> {
    not_null(win, "win")?;
    // SAFETY: `win` is not NULL, so it points to a value, as MPI requires of the program.
    let handle = unsafe { *win };
    let object = window(handle)?;
    hold_window(&object, || object.window.may_free())?;
    caching::delete_attributes(handle.0, &object.attributes)?;
    unplace_window(&object);
    run(&object, "MPI_Win_free", object.window.free())?;
    state().wins.borrow_mut().remove(handle.0);
    // SAFETY: `win` points to room for the result, as MPI requires of the program.
    unsafe { store(win, MPI_WIN_NULL, "win") }
}

/// MPI_Win_shared_query, MPI_Win_shared_query_c.
/// Returns `size`, `disp_unit` and `baseptr` of a rank in a window of shared memory. For `MPI_PROC_NULL`, returns them for the
/// first rank with memory.
pub(crate) unsafe fn win_shared_query(
    win: Win,
    rank: c_int,
    size: *mut isize,
    disp_unit: crate::widen_counts::Out,
    baseptr: *mut c_void,
) -> Result<(), Error> {
    let object = window(win)?;
    let window = &object.window;
    if window.flavor() == WindowFlavor::Dynamic {
        let text = "a dynamic window has no part to ask for";
        return Err(Error::new(MPI_ERR_RMA_FLAVOR, text));
    }
    let first = || (0..window.size()).find(|&rank| window.part(rank).0 > 0);
    let rank = target(&object, rank, "rank")?.or_else(first);
    let (len, unit, base) = match rank {
        None => (0, 1, std::ptr::null_mut()),
        Some(rank) => {
            let (len, unit) = window.part(rank);
            match window.shared_segment(rank) {
                // If a rank gave no memory to the window, other ranks have no address of that rank's part.
                Some(_) if len == 0 && window.flavor() == WindowFlavor::Create => {
                    (0, unit, std::ptr::null_mut())
                }
                Some(memory) => (len, unit, address(memory)),
                // Since MPI 4.1 it is not an error if the window's memory is not shared.
                None if window.flavor() != WindowFlavor::Shared => (0, unit, std::ptr::null_mut()),
                None => {
                    let text = format!("this process does not see the memory of rank {rank}");
                    return Err(Error::new(MPI_ERR_RMA_SHARED, text));
                }
            }
        }
    };
    // SAFETY: `size`, `disp_unit` and `baseptr` are NULL or may be written, as MPI requires of the program.
    unsafe {
        store(size, len as isize, "size")?;
        disp_unit.store(unit as i64, "disp_unit")?;
        store(baseptr.cast::<*mut c_void>(), base, "baseptr")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_accumulates_are_guarded() {
        use Atomics::{Adapter, Guarded};
        let cases = [("1", Adapter), ("8", Adapter), ("9", Guarded), (" 4096 ", Guarded)];
        for (bytes, way) in cases {
            assert_eq!(granularity(bytes), Some(way), "{bytes:?}");
        }
        for bytes in ["", "0", "-8", "many"] {
            assert_eq!(granularity(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn hints_say_how_integers_are_accumulated() {
        let of = |pairs: &[(&str, &str)]| {
            let mut hints = weft_process::Info::default();
            pairs.iter().for_each(|(key, value)| hints.set(key, value));
            options(&hints).unwrap().atomics
        };
        assert_eq!(of(&[]), Atomics::Auto);
        assert_eq!(of(&[("weft_rma_atomics", "guarded")]), Atomics::Guarded);
        assert_eq!(of(&[("mpi_accumulate_granularity", "800")]), Atomics::Guarded);
        let both = [("mpi_accumulate_granularity", "800"), ("weft_rma_atomics", "adapter")];
        assert_eq!(of(&both), Atomics::Adapter, "the name says more");
        assert_eq!(of(&[("weft_rma_atomics", "hardly")]), Atomics::Auto);
    }
}
