//! Matched probes, and the receives of their messages. A matched probe has the mark of its message.

use super::messages::ReceiveCall;
use super::operations::{self, RequestPlan};
use super::{waits, with};
use crate::forward;
use crate::function::CheckedCall;
use crate::marks::MessageArrival;
use crate::poison::BufferPoison;
use crate::role::Timing;
use crate::shadow::RawStatus;
use crate::slow;
use rustc_hash::FxHashMap;
use std::ffi::c_int;

const MPI_MESSAGE_NULL: usize = 0x128;
const MPI_MESSAGE_NO_PROC: usize = 0x129;

/// Messages that a matched probe has found, by handle.
pub type ProbedMessages = FxHashMap<usize, MessageArrival>;

/// Runs MPI_Mprobe and MPI_Improbe.
///
/// # Safety
/// As for [`super::run`].
pub unsafe fn probe(index: usize, call: &CheckedCall<'_>) -> c_int {
    let mut own = RawStatus::default();
    let (arguments, status) = operations::with_status(call, &mut own);
    let began = slow::moment();
    // SAFETY: the caller promises it.
    unsafe {
        let code = forward(index, &arguments);
        let flag =
            call.function.place("flag").map(|place| *(call.arguments[place] as *const c_int));
        let message = call.result("MESSAGE").unwrap_or(MPI_MESSAGE_NULL);
        let is_none = matches!(message, MPI_MESSAGE_NULL | MPI_MESSAGE_NO_PROC);
        if let (Some(place), Some(comm)) = (status, call.handle("COMMUNICATOR"))
            && code == 0
            && flag != Some(0)
            && !is_none
        {
            if call.function.stem() == "Mprobe" {
                slow::note_probe(began);
            }
            let arrival = MessageArrival::of_status(comm, arguments[place]);
            with(|checker| checker.probed.insert(message, arrival));
        }
        code
    }
}

/// Runs MPI_Mrecv and MPI_Imrecv.
///
/// # Safety
/// As for [`super::run`].
pub unsafe fn receive(index: usize, call: &CheckedCall<'_>, timing: Timing) -> c_int {
    let place = call.function.parameters.iter().position(|p| p.kind == "MESSAGE").unwrap_or(0);
    // SAFETY: the parameter points to a handle, as MPI requires of the program.
    let message = unsafe { *(call.arguments[place] as *const usize) };
    // SAFETY: the caller promises it.
    unsafe {
        let began = slow::receive_moment();
        let begun = with(|checker| {
            let ranges = operations::ranges(checker, call);
            let is_free = operations::check_memory(checker, call, &ranges);
            let poison = BufferPoison::begin(call, timing, if is_free { &ranges } else { &[] });
            if let Some(arrival) = checker.probed.remove(&message)
                && let Some(elements) = operations::elements(checker, call, &["buf"])
            {
                let (function, site) = (call.function.name(), call.site);
                let receive = ReceiveCall { function, site, elements: &elements, began };
                checker.compare(&receive, &arrival);
            }
            (checker.next_operation(), RequestPlan { ranges, poison, ..RequestPlan::default() })
        });
        let code = forward(index, call.arguments);
        waits::ended(call.function.name(), call.site, began);
        match begun {
            Some((operation, plan)) if code == 0 && timing != Timing::Blocking => {
                with(|checker| operations::add_request(checker, call, operation, timing, plan));
            }
            Some((_, mut plan)) => plan.poison.restore(),
            None => {}
        }
        code
    }
}
