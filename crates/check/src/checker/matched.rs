//! Matched probes, and the receives of their messages.
//!
//! A matched probe takes the record of its message, as a receive does. The receive that follows has the signature. The record may be
//! known later than the receive, if an earlier receive could have matched the message.

use super::messages::ReceiveCall;
use super::operations::{self, RequestPlan, source_and_tag};
use super::{Checker, with};
use crate::call_site::CallSite;
use crate::forward;
use crate::function::CheckedCall;
use crate::role::Timing;
use crate::shadow::{CallRecord, RawStatus, ShadowReceive};
use crate::signature::TypeSignature;
use std::collections::HashMap;
use std::ffi::c_int;

const MPI_MESSAGE_NULL: usize = 0x128;
const MPI_MESSAGE_NO_PROC: usize = 0x129;

/// A receive of a matched message.
struct MatchedReceive {
    function: &'static str,
    site: CallSite,
    signature: TypeSignature,
}

/// Messages that a matched probe has found.
#[derive(Default)]
pub struct MatchedMessages {
    /// Operations by the handle of the message.
    operations: HashMap<usize, u64>,
    /// Records by operation, before the receive.
    records: HashMap<u64, CallRecord>,
    /// Receives by operation, before the record.
    receives: HashMap<u64, MatchedReceive>,
}

/// Runs MPI_Mprobe and MPI_Improbe.
///
/// # Safety
/// As for [`super::run`].
pub unsafe fn probe(index: usize, call: &CheckedCall<'_>) -> c_int {
    let mut own = RawStatus::default();
    let (arguments, status) = operations::with_status(call, &mut own);
    // SAFETY: the caller promises it.
    unsafe {
        let code = forward(index, &arguments);
        let flag =
            call.function.place("flag").map(|place| *(call.arguments[place] as *const c_int));
        let message = call.result("MESSAGE").unwrap_or(MPI_MESSAGE_NULL);
        let is_none = matches!(message, MPI_MESSAGE_NULL | MPI_MESSAGE_NO_PROC);
        if code == 0 && flag != Some(0) && !is_none {
            let (source, tag) = status.map_or((0, 0), |place| source_and_tag(arguments[place]));
            with(|checker| {
                let operation = checker.next_operation();
                let Some(comm) = call.handle("COMMUNICATOR") else { return };
                let Some(facts) = checker.comms.get_mut(&comm) else { return };
                facts.post(ShadowReceive {
                    id: operation,
                    source,
                    tag,
                    matched: None,
                    function: call.function.name(),
                    site: call.site,
                    signature: None,
                });
                checker.matched.operations.insert(message, operation);
                checker.complete_receive(comm, operation, source, tag);
            });
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
        let begun = with(|checker| {
            let ranges = operations::ranges(checker, call);
            operations::check_memory(checker, call, &ranges);
            if let Some(signature) = operations::signature(checker, call, &["buf"]) {
                let (function, site) = (call.function.name(), call.site);
                checker.receive_matched(message, MatchedReceive { function, site, signature });
            }
            (checker.next_operation(), RequestPlan { ranges, ..RequestPlan::default() })
        });
        let code = forward(index, call.arguments);
        if let Some((operation, plan)) = begun.filter(|_| code == 0 && timing != Timing::Blocking) {
            with(|checker| operations::add_request(checker, call, operation, timing, plan));
        }
        code
    }
}

impl Checker {
    /// Notes the record of a matched message.
    pub(super) fn probed(&mut self, operation: u64, record: CallRecord) {
        match self.matched.receives.remove(&operation) {
            Some(receive) => self.compare_matched(&receive, &record),
            None => drop(self.matched.records.insert(operation, record)),
        }
    }

    /// Notes the receive of a matched message.
    fn receive_matched(&mut self, message: usize, receive: MatchedReceive) {
        let Some(operation) = self.matched.operations.remove(&message) else { return };
        match self.matched.records.remove(&operation) {
            Some(record) => self.compare_matched(&receive, &record),
            None => drop(self.matched.receives.insert(operation, receive)),
        }
    }

    fn compare_matched(&mut self, receive: &MatchedReceive, record: &CallRecord) {
        let MatchedReceive { function, site, signature } = receive;
        self.compare(&ReceiveCall { function, site: *site, signature }, record);
    }
}
