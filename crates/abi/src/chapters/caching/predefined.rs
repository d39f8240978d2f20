//! Predefined attributes of communicators (MPI 5.0, sections 9.1.2, 9.5 and 11.10).

use crate::chapter_state::ChapterState;
use crate::constants::*;
use crate::error::Error;
use crate::state::ProcessState;
use std::cell::Cell;
use std::ffi::c_int;
use weft_bootstrap::slot_table::Room;

static VALUES: ChapterState<PredefinedValues> = ChapterState::new(PredefinedValues {
    tag_ub: Cell::new(0),
    io: Cell::new(0),
    host: Cell::new(0),
    wtime_is_global: Cell::new(0),
    app_number: Cell::new(0),
    last_used_code: Cell::new(0),
    universe_size: Cell::new(0),
});

/// Integers to which predefined attributes of communicators point.
struct PredefinedValues {
    tag_ub: Cell<c_int>,
    io: Cell<c_int>,
    host: Cell<c_int>,
    wtime_is_global: Cell<c_int>,
    app_number: Cell<c_int>,
    last_used_code: Cell<c_int>,
    universe_size: Cell<c_int>,
}

/// Returns the name of a predefined key of communicators or windows, or `None` for any other key.
pub fn predefined_name(number: c_int) -> Option<&'static str> {
    Some(match number {
        MPI_TAG_UB => "MPI_TAG_UB",
        MPI_IO => "MPI_IO",
        MPI_HOST => "MPI_HOST",
        MPI_WTIME_IS_GLOBAL => "MPI_WTIME_IS_GLOBAL",
        MPI_APPNUM => "MPI_APPNUM",
        MPI_LASTUSEDCODE => "MPI_LASTUSEDCODE",
        MPI_UNIVERSE_SIZE => "MPI_UNIVERSE_SIZE",
        MPI_WIN_BASE => "MPI_WIN_BASE",
        MPI_WIN_DISP_UNIT => "MPI_WIN_DISP_UNIT",
        MPI_WIN_SIZE => "MPI_WIN_SIZE",
        MPI_WIN_CREATE_FLAVOR => "MPI_WIN_CREATE_FLAVOR",
        MPI_WIN_MODEL => "MPI_WIN_MODEL",
        _ => return None,
    })
}

/// Returns the current value of a predefined attribute of communicators, or `None` if the attribute is not set. Fails if the
/// attribute belongs to windows.
pub(super) fn predefined(
    state: &'static ProcessState,
    number: c_int,
) -> Result<Option<&'static Cell<c_int>>, Error> {
    let cells = &*VALUES;
    let (cell, value) = match number {
        MPI_TAG_UB => (&cells.tag_ub, weft_process::TAG_UB),
        MPI_IO => (&cells.io, MPI_ANY_SOURCE),
        MPI_HOST => (&cells.host, MPI_PROC_NULL),
        // MPI_Wtime reads the monotonic clock, which all processes of the machine share.
        MPI_WTIME_IS_GLOBAL => (&cells.wtime_is_global, 1),
        MPI_APPNUM => {
            let bootstrap = state.bootstrap.borrow();
            let Some(number) = bootstrap.as_ref().and_then(|b| b.app_number()) else {
                return Ok(None);
            };
            (&cells.app_number, number as c_int)
        }
        MPI_LASTUSEDCODE => (&cells.last_used_code, crate::codes::last_used_code()),
        MPI_UNIVERSE_SIZE => {
            let own = state.world.get().map_or(1, |world| world.size());
            let Some(size) = Room::of_this_job().size(own) else { return Ok(None) };
            (&cells.universe_size, c_int::try_from(size).unwrap_or(c_int::MAX))
        }
        _ => {
            let name = predefined_name(number).unwrap_or_default();
            return Err(bad_key(format_args!("{name} is an attribute of windows")));
        }
    };
    cell.set(value);
    Ok(Some(cell))
}

/// Returns an error about a key, of class KEYVAL.
#[cold]
pub fn bad_key(text: impl std::fmt::Display) -> Error {
    Error::new(MPI_ERR_KEYVAL, text)
}
