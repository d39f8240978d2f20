//! Calls that begin, end or complete within an epoch.

use super::window_compare::{after_exposure, after_fence, send_to_targets};
use crate::checker::{Checker, collectives, with};
use crate::finding::FindingClass;
use crate::forward;
use crate::function::CheckedCall;
use crate::library::mpi;
use crate::role::CommonSignature;
use crate::window::{CheckedAccess, CheckedEpoch, CheckedFence, GroupEpoch, HeldLock, WindowFacts};
use std::ffi::c_int;

const MPI_MODE_NOPRECEDE: i64 = 2048;
const MPI_MODE_NOSUCCEED: i64 = 16384;
const MPI_LOCK_EXCLUSIVE: i64 = 301;

/// Runs a call that begins, ends or completes within an epoch.
///
/// # Safety
/// As for [`crate::checker::run`].
pub unsafe fn run(index: usize, call: &CheckedCall<'_>) -> c_int {
    let Some(handle) = call.handle("WINDOW") else {
        // SAFETY: the caller promises it.
        return unsafe { forward(index, call.arguments) };
    };
    let is_known = with(|checker| checker.windows.get(handle).is_some()).unwrap_or(false);
    // SAFETY: the caller keeps MPI's rules for the arguments of the function.
    unsafe {
        match call.function.stem() {
            _ if !is_known => forward(index, call.arguments),
            "Win_fence" => fence(index, call, handle),
            "Win_start" | "Win_post" => begin_group(index, call, handle),
            "Win_complete" => complete(index, call, handle),
            "Win_wait" | "Win_test" => wait(index, call, handle),
            "Win_lock" | "Win_lock_all" => lock(index, call, handle),
            "Win_unlock" | "Win_unlock_all" => unlock(index, call, handle),
            _ => flush(index, call, handle),
        }
    }
}

impl Checker {
    /// Notes that accesses are complete at the target.
    fn complete_accesses(&mut self, handle: usize, is_ended: impl Fn(&CheckedAccess) -> bool) {
        self.end_local_uses(handle, &is_ended);
        if let Some(window) = self.windows.get(handle) {
            let ended = window.accesses.iter_mut().filter(|access| is_ended(access));
            ended.for_each(CheckedAccess::complete);
            // There are no other origins.
            if window.units.len() == 1 {
                window.accesses.retain(|access| !access.is_complete);
            }
        }
    }

    fn change_window(&mut self, handle: usize, change: impl FnOnce(&mut WindowFacts)) {
        if let Some(window) = self.windows.get(handle) {
            change(window);
        }
    }
}

/// Runs MPI_Win_fence.
unsafe fn fence(index: usize, call: &CheckedCall<'_>, handle: usize) -> c_int {
    let assert = call.named("assert").unwrap_or(0);
    let comparison = with(|checker| {
        checker.check_open(handle, call, &["MPI_Win_fence"]);
        let earlier = checker.windows.get(handle)?.accesses.iter();
        let earlier = earlier.rev().find(|access| access.epoch == CheckedEpoch::Fence);
        let earlier = earlier.map(|a| (crate::FUNCTIONS[a.function as usize].name(), a.site));
        if let Some((name, site)) = earlier.filter(|_| assert & MPI_MODE_NOPRECEDE != 0) {
            let second = checker.own_party(name, site, "is an access before the fence");
            let facts = "MPI_MODE_NOPRECEDE is false".to_owned();
            checker.window_finding(FindingClass::FalseAssertion, call, facts, Some(second));
        }
        checker.end_local_uses(handle, |access| access.epoch == CheckedEpoch::Fence);
        // SAFETY: the caller promises it.
        unsafe { collectives::start(checker, index, call, CommonSignature::None) }
    });
    let mut has_accesses = false;
    if let Some(comparison) = comparison.flatten() {
        let closing = Some((call.site, assert));
        with(|checker| checker.change_window(handle, |window| window.closing_fence = closing));
        has_accesses = collectives::finish(&comparison);
        if !has_accesses {
            with(|checker| checker.compare_fence(handle, &[]));
        }
        with(|checker| checker.change_window(handle, |window| window.closing_fence = None));
    }
    // SAFETY: the caller promises it.
    let code = unsafe { forward(index, call.arguments) };
    if code != 0 {
        return code;
    }
    if has_accesses {
        after_fence(handle);
    }
    with(|checker| {
        checker.change_window(handle, |window| {
            window.accesses.retain(|access| access.epoch != CheckedEpoch::Fence);
            let is_open = assert & MPI_MODE_NOSUCCEED == 0;
            window.fence = is_open.then_some(CheckedFence { site: call.site, assert });
            window.snapshot = None;
            if is_open {
                // SAFETY: the window's memory lives until it is freed.
                unsafe { window.take_snapshot() };
            }
        });
    });
    code
}

/// Returns the ranks of a group in the window's communicator.
///
/// # Safety
/// The handle is a group.
unsafe fn window_ranks(group: usize, ours: usize) -> Vec<i32> {
    let (mut size, mut all) = (0 as c_int, 0usize);
    // SAFETY: the results are local variables, and the arrays have an element for each process of the group.
    unsafe {
        if mpi!(MPI_Group_size(group, &raw mut size)) != 0 {
            return Vec::new();
        }
        let from: Vec<c_int> = (0..size).collect();
        let mut to = vec![-1 as c_int; from.len()];
        mpi!(MPI_Comm_group(ours, &raw mut all));
        mpi!(MPI_Group_translate_ranks(group, size, from.as_ptr(), all, to.as_mut_ptr()));
        mpi!(MPI_Group_free(&raw mut all));
        to
    }
}

/// Runs MPI_Win_start and MPI_Win_post.
unsafe fn begin_group(index: usize, call: &CheckedCall<'_>, handle: usize) -> c_int {
    let is_post = call.function.stem() == "Win_post";
    let group = call.handle("GROUP").unwrap_or(0);
    let ours = with(|checker| checker.windows.get(handle).map(|window| window.ours)).flatten();
    // SAFETY: the program keeps MPI's rules for the group.
    let ranks = ours.map_or(Vec::new(), |ours| unsafe { window_ranks(group, ours) });
    let assert = call.named("assert").unwrap_or(0);
    let epoch = GroupEpoch { ranks, site: call.site, assert };
    with(|checker| {
        if is_post {
            let exposed = checker.windows.get(handle).and_then(|window| window.exposed.clone());
            if let Some(exposed) = exposed {
                let earlier = Some(("MPI_Win_post", exposed.site));
                checker.epoch_finding(call, "MPI_Win_wait must come first", earlier);
            }
        } else {
            checker.check_open(handle, call, &["MPI_Win_post"]);
        }
        checker.change_window(handle, |window| {
            if is_post {
                window.exposed = Some(epoch);
                // SAFETY: the window's memory lives until it is freed.
                unsafe { window.take_snapshot() };
            } else {
                window.started = Some(epoch);
                window.fence = None;
            }
        });
    });
    // SAFETY: the caller promises it.
    unsafe { forward(index, call.arguments) }
}

/// Runs MPI_Win_complete.
unsafe fn complete(index: usize, call: &CheckedCall<'_>, handle: usize) -> c_int {
    with(|checker| {
        if checker.windows.get(handle).is_some_and(|window| window.started.is_none()) {
            checker.epoch_finding(call, "MPI_Win_start must come first", None);
        }
        let is_group = |access: &CheckedAccess| access.epoch == CheckedEpoch::Group;
        checker.end_local_uses(handle, is_group);
        checker.change_window(handle, |window| {
            send_to_targets(window);
            window.accesses.retain(|access| access.epoch != CheckedEpoch::Group);
            window.started = None;
        });
    });
    // SAFETY: the caller promises it.
    unsafe { forward(index, call.arguments) }
}

/// Runs MPI_Win_wait and MPI_Win_test.
unsafe fn wait(index: usize, call: &CheckedCall<'_>, handle: usize) -> c_int {
    with(|checker| {
        if checker.windows.get(handle).is_some_and(|window| window.exposed.is_none()) {
            checker.epoch_finding(call, "MPI_Win_post must come first", None);
        }
    });
    // SAFETY: the caller promises it.
    let code = unsafe { forward(index, call.arguments) };
    let place = call.function.place("flag");
    // SAFETY: the call has set the flag.
    let is_done =
        place.is_none_or(|place| unsafe { *(call.arguments[place] as *const c_int) } != 0);
    if code == 0 && is_done {
        let exposed = |checker: &mut Checker| checker.windows.get(handle)?.exposed.take();
        if let Some(exposed) = with(exposed).flatten() {
            after_exposure(handle, &exposed);
        }
    }
    code
}

/// Runs MPI_Win_lock and MPI_Win_lock_all.
unsafe fn lock(index: usize, call: &CheckedCall<'_>, handle: usize) -> c_int {
    let rank = call.named("rank").map(|rank| rank as i32);
    let is_exclusive = call.named("lock_type") == Some(MPI_LOCK_EXCLUSIVE);
    with(|checker| {
        let held = checker
            .windows
            .get(handle)
            .and_then(|window| rank.and_then(|rank| window.locks.get(&rank)).map(|lock| lock.site));
        match held {
            Some(site) => {
                let earlier = Some(("MPI_Win_lock", site));
                checker.epoch_finding(call, "the rank is locked already", earlier);
            }
            // Locks of several ranks may be held at the same time.
            None if rank.is_some() => {
                checker.check_open(handle, call, &["MPI_Win_lock", "MPI_Win_post"]);
            }
            None => checker.check_open(handle, call, &["MPI_Win_post"]),
        }
        checker.change_window(handle, |window| {
            window.fence = None;
            match rank {
                Some(rank) if rank >= 0 => {
                    let lock = HeldLock { site: call.site, is_exclusive };
                    window.locks.insert(rank, lock);
                }
                Some(_) => {}
                None => window.lock_all = Some(call.site),
            }
        });
    });
    // SAFETY: the caller promises it.
    unsafe { forward(index, call.arguments) }
}

/// Runs MPI_Win_unlock and MPI_Win_unlock_all.
unsafe fn unlock(index: usize, call: &CheckedCall<'_>, handle: usize) -> c_int {
    let rank =
        call.named("rank").map(|rank| rank as i32).filter(|_| call.function.stem() == "Win_unlock");
    let is_ended = move |access: &CheckedAccess| {
        matches!(access.epoch, CheckedEpoch::Passive { .. })
            && rank.is_none_or(|rank| access.target == rank)
    };
    with(|checker| {
        let Some(window) = checker.windows.get(handle) else { return };
        let is_held = match rank {
            Some(rank) => rank < 0 || window.locks.contains_key(&rank),
            None => window.lock_all.is_some(),
        };
        if !is_held {
            checker.epoch_finding(call, "no such lock is held", None);
        }
        checker.end_local_uses(handle, is_ended);
    });
    // SAFETY: the caller promises it.
    let code = unsafe { forward(index, call.arguments) };
    with(|checker| {
        checker.complete_accesses(handle, is_ended);
        checker.change_window(handle, |window| match rank {
            Some(rank) => drop(window.locks.remove(&rank)),
            None => window.lock_all = None,
        });
    });
    code
}

/// Runs MPI_Win_flush and its three variants.
unsafe fn flush(index: usize, call: &CheckedCall<'_>, handle: usize) -> c_int {
    let stem = call.function.stem();
    let is_local = stem.contains("local");
    let rank = call.named("rank").map(|rank| rank as i32);
    let is_ended = move |access: &CheckedAccess| {
        matches!(access.epoch, CheckedEpoch::Passive { .. })
            && rank.is_none_or(|rank| access.target == rank)
    };
    with(|checker| {
        let Some(window) = checker.windows.get(handle) else { return };
        let is_locked = window.lock_all.is_some()
            || match rank {
                Some(rank) => rank < 0 || window.locks.contains_key(&rank),
                None => !window.locks.is_empty(),
            };
        if !is_locked {
            checker.epoch_finding(call, "a flush needs MPI_Win_lock or MPI_Win_lock_all", None);
        }
        checker.end_local_uses(handle, is_ended);
    });
    // SAFETY: the caller promises it.
    let code = unsafe { forward(index, call.arguments) };
    if !is_local {
        with(|checker| checker.complete_accesses(handle, is_ended));
    }
    code
}
