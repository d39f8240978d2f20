//! Synchronization of windows: fence, post and start, locks, flush (MPI 5.0, section 12.5).

use super::{run, target, window};
use crate::arguments::{group, not_null, store};
use crate::chapters::probes::idle_test;
use crate::constants::*;
use crate::error::Error;
use crate::lane_calls::LaneCall;
use crate::lanes::{hold_window, needs_no_progress, on_window};
use crate::objects::WinObject;
use crate::objects::WindowOf;
use crate::state::known;
use crate::types::{Group, Win};
use crate::waiting::WaitingCall;
use std::ffi::c_int;
use std::rc::Rc;
use std::sync::atomic::{Ordering, fence};
use weft_collective::CollectiveKind;
use weft_collective::run::CollectiveCall;
use weft_process::CallKey;
use weft_rma::LockKind;

const ASSERTIONS: c_int =
    MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;

/// Checks assertions. An assertion that has no meaning in the call is ignored. Unknown bits are an error.
fn asserted(value: c_int) -> Result<i32, Error> {
    if value & !ASSERTIONS == 0 {
        return Ok(value);
    }
    let text = format!("argument assert = {value:#x} has bits that are no MPI_MODE of windows");
    Err(Error::new(MPI_ERR_ASSERT, text))
}

/// MPI_Win_fence.
pub(crate) unsafe fn win_fence(assert: c_int, win: Win) -> Result<(), Error> {
    let object = window(win)?;
    let (window, assert) = (&object.window, asserted(assert)?);
    if hold_window(&object, || window.fence_is_a_barrier(assert)) {
        let barrier = async |call: CollectiveCall<'_, _>| call.barrier().await;
        let call = WaitingCall::new("MPI_Win_fence");
        window.comm().run_in_place(&call, CollectiveKind::Barrier, CallKey::of(0), barrier)?;
        hold_window(&object, || window.fenced(assert));
    } else {
        run(&object, "MPI_Win_fence", window.fence(assert))?;
    }
    publish();
    Ok(())
}

/// Makes earlier stores of this process visible to the other processes, and stores of the other processes visible to this process.
fn publish() {
    fence(Ordering::SeqCst);
}

/// Returns the ranks in the window of a group's members. The last result is kept, because programs pass the same group repeatedly.
fn members(object: &WinObject, handle: Group) -> Result<Rc<[usize]>, Error> {
    let (window, group) = (&object.window, group(handle, "group")?);
    let mut last = object.members.borrow_mut();
    if let Some((_, ranks)) = last.as_ref().filter(|(known, _)| known.is(&group)) {
        return Ok(ranks.clone());
    }
    let of_window = window.comm().group();
    let found: Option<Rc<[usize]>> =
        group.ranks().iter().map(|&rank| of_window.rank_of(rank)).collect();
    let Some(ranks) = found else {
        let text = "argument group has members that are not in the window's group";
        return Err(Error::new(MPI_ERR_GROUP, text));
    };
    Ok(last.insert((group, ranks)).1.clone())
}

/// MPI_Win_post.
pub(crate) unsafe fn win_post(group: Group, assert: c_int, win: Win) -> Result<(), Error> {
    let object = window(win)?;
    publish();
    let (members, assert) = (members(&object, group)?, asserted(assert)?);
    Ok(hold_window(&object, || object.window.post(members, assert))?)
}

/// MPI_Win_start.
pub(crate) unsafe fn win_start(group: Group, assert: c_int, win: Win) -> Result<(), Error> {
    let object = window(win)?;
    let step = object.window.start(members(&object, group)?, asserted(assert)?);
    run(&object, "MPI_Win_start", step)
}

/// MPI_Win_complete.
pub(crate) unsafe fn win_complete(win: Win) -> Result<(), Error> {
    let object = window(win)?;
    run(&object, "MPI_Win_complete", object.window.complete())
}

/// MPI_Win_wait.
pub(crate) unsafe fn win_wait(win: Win) -> Result<(), Error> {
    let object = window(win)?;
    run(&object, "MPI_Win_wait", object.window.wait())
}

/// MPI_Win_test.
pub(crate) unsafe fn win_test(win: Win, flag: *mut c_int) -> Result<(), Error> {
    let object = window(win)?;
    not_null(flag, "flag")?;
    object.window.comm().engine().progress();
    let over = hold_window(&object, || object.window.test())?;
    idle_test(!over);
    // SAFETY: `flag` points to room for the result, as MPI requires of the program.
    unsafe { store(flag, over.into(), "flag") }
}

/// Returns the window and the rank, if both exist.
///
/// # Safety
/// While the result is used, no window is added to the table or removed.
#[inline(always)]
unsafe fn plainly(rank: c_int, win: Win) -> Option<(&'static WindowOf, usize)> {
    // SAFETY: no window is added or removed while the result is used; the contract of this function says so.
    let wins = unsafe { known()?.wins.try_borrow_unguarded() };
    let window = &wins.ok()?.get(win.0)?.window;
    let rank = usize::try_from(rank).ok()?;
    (rank < window.size()).then_some((window, rank))
}

fn kind_of(lock_type: c_int) -> Option<LockKind> {
    match lock_type {
        MPI_LOCK_SHARED => Some(LockKind::Shared),
        MPI_LOCK_EXCLUSIVE => Some(LockKind::Exclusive),
        _ => None,
    }
}

/// MPI_Win_lock.
#[inline(always)]
pub(crate) unsafe fn try_win_lock(lock_type: c_int, rank: c_int, assert: c_int, win: Win) -> bool {
    // SAFETY: `try_lock` takes a lock; it adds and removes no window.
    match (kind_of(lock_type), assert, unsafe { plainly(rank, win) }) {
        (Some(kind), 0, Some((window, rank))) => window.try_lock(kind, rank, 0),
        _ => false,
    }
}

/// Returns the rank as an index, if the window has this rank.
#[inline(always)]
fn rank_in(window: &WindowOf, rank: c_int) -> Option<usize> {
    usize::try_from(rank).ok().filter(|&rank| rank < window.size())
}

/// Runs a fast path with the window's own lock alone.
#[inline(always)]
fn in_place(win: Win, fast: impl FnOnce(&WindowOf) -> bool) -> Result<LaneCall, Error> {
    Ok(on_window(win.0, fast))
}

/// MPI_Win_lock.
#[inline(always)]
pub(crate) unsafe fn lane_win_lock(
    lock_type: c_int,
    rank: c_int,
    assert: c_int,
    win: Win,
) -> Result<LaneCall, Error> {
    in_place(win, |window| match (kind_of(lock_type), assert, rank_in(window, rank)) {
        (Some(kind), 0, Some(rank)) => window.try_lock(kind, rank, 0),
        _ => false,
    })
}

// This is a separate function, so that `try_win_lock` has no large stack frame.
/// MPI_Win_lock.
#[inline(never)]
pub(crate) unsafe fn win_lock(
    lock_type: c_int,
    rank: c_int,
    assert: c_int,
    win: Win,
) -> Result<(), Error> {
    let object = window(win)?;
    let kind = kind_of(lock_type).ok_or_else(|| {
        let text = format!(
            "argument lock_type = {lock_type}: it is MPI_LOCK_SHARED or MPI_LOCK_EXCLUSIVE"
        );
        Error::new(MPI_ERR_LOCKTYPE, text)
    })?;
    let assert = asserted(assert)?;
    match target(&object, rank, "rank")? {
        Some(rank) => run(&object, "MPI_Win_lock", object.window.lock(kind, rank, assert)),
        None => Ok(()),
    }
}

/// MPI_Win_unlock.
#[inline(always)]
pub(crate) unsafe fn try_win_unlock(rank: c_int, win: Win) -> bool {
    // SAFETY: `try_unlock` releases a lock; it adds and removes no window.
    unsafe { plainly(rank, win) }.is_some_and(|(window, rank)| window.try_unlock(rank))
}

/// MPI_Win_unlock.
#[inline(always)]
pub(crate) unsafe fn lane_win_unlock(rank: c_int, win: Win) -> Result<LaneCall, Error> {
    in_place(win, |window| rank_in(window, rank).is_some_and(|rank| window.try_unlock(rank)))
}

/// MPI_Win_unlock.
#[inline(never)]
pub(crate) unsafe fn win_unlock(rank: c_int, win: Win) -> Result<(), Error> {
    let object = window(win)?;
    match target(&object, rank, "rank")? {
        Some(rank) => run(&object, "MPI_Win_unlock", object.window.unlock(rank)),
        None => Ok(()),
    }
}

/// MPI_Win_lock_all.
pub(crate) unsafe fn lane_win_lock_all(assert: c_int, win: Win) -> Result<LaneCall, Error> {
    in_place(win, |window| assert & !MPI_MODE_NOCHECK == 0 && window.try_lock_all(assert))
}

/// MPI_Win_lock_all.
pub(crate) unsafe fn win_lock_all(assert: c_int, win: Win) -> Result<(), Error> {
    let object = window(win)?;
    let step = object.window.lock_all(asserted(assert)?);
    run(&object, "MPI_Win_lock_all", step)
}

/// MPI_Win_unlock_all.
pub(crate) unsafe fn lane_win_unlock_all(win: Win) -> Result<LaneCall, Error> {
    in_place(win, WindowOf::try_unlock_all)
}

/// MPI_Win_unlock_all.
pub(crate) unsafe fn win_unlock_all(win: Win) -> Result<(), Error> {
    let object = window(win)?;
    run(&object, "MPI_Win_unlock_all", object.window.unlock_all())
}

/// MPI_Win_flush.
#[inline(always)]
pub(crate) unsafe fn try_win_flush(rank: c_int, win: Win) -> bool {
    // SAFETY: `is_flushed` only reads the window's state; it adds and removes no window.
    unsafe { plainly(rank, win) }.is_some_and(|(window, rank)| window.is_flushed(rank))
}

/// MPI_Win_flush_local.
#[inline(always)]
pub(crate) unsafe fn try_win_flush_local(rank: c_int, win: Win) -> bool {
    // SAFETY: `try_win_flush` is unsafe like all implementing functions, but has no precondition.
    unsafe { try_win_flush(rank, win) }
}

/// MPI_Win_flush.
#[inline(always)]
pub(crate) unsafe fn lane_win_flush(rank: c_int, win: Win) -> Result<LaneCall, Error> {
    in_place(win, |window| rank_in(window, rank).is_some_and(|rank| window.is_flushed(rank)))
}

/// MPI_Win_flush_local.
#[inline(always)]
pub(crate) unsafe fn lane_win_flush_local(rank: c_int, win: Win) -> Result<LaneCall, Error> {
    // SAFETY: `lane_win_flush` is unsafe like all implementing functions, but has no precondition.
    unsafe { lane_win_flush(rank, win) }
}

/// MPI_Win_flush_all.
pub(crate) unsafe fn lane_win_flush_all(win: Win) -> Result<LaneCall, Error> {
    in_place(win, WindowOf::is_flushed_all)
}

/// MPI_Win_flush_local_all.
pub(crate) unsafe fn lane_win_flush_local_all(win: Win) -> Result<LaneCall, Error> {
    in_place(win, WindowOf::is_flushed_all)
}

#[inline(never)]
fn flush(call: &'static str, rank: c_int, win: Win) -> Result<(), Error> {
    let object = window(win)?;
    match target(&object, rank, "rank")? {
        Some(rank) => run(&object, call, object.window.flush(rank)),
        None => Ok(()),
    }
}

/// MPI_Win_flush.
pub(crate) unsafe fn win_flush(rank: c_int, win: Win) -> Result<(), Error> {
    flush("MPI_Win_flush", rank, win)
}

/// MPI_Win_flush_local.
pub(crate) unsafe fn win_flush_local(rank: c_int, win: Win) -> Result<(), Error> {
    flush("MPI_Win_flush_local", rank, win)
}

/// MPI_Win_flush_all.
pub(crate) unsafe fn win_flush_all(win: Win) -> Result<(), Error> {
    let object = window(win)?;
    run(&object, "MPI_Win_flush_all", object.window.flush_all())
}

/// MPI_Win_flush_local_all.
pub(crate) unsafe fn win_flush_local_all(win: Win) -> Result<(), Error> {
    let object = window(win)?;
    run(&object, "MPI_Win_flush_local_all", object.window.flush_all())
}

/// MPI_Win_sync.
pub(crate) unsafe fn lane_win_sync(win: Win) -> Result<LaneCall, Error> {
    publish();
    Ok(if needs_no_progress(win.0) { LaneCall::Done } else { LaneCall::Declined })
}

/// MPI_Win_sync.
pub(crate) unsafe fn win_sync(win: Win) -> Result<(), Error> {
    let object = window(win)?;
    publish();
    object.window.comm().engine().progress();
    Ok(())
}
