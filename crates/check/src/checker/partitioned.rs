//! Partitioned sends and receives (MPI 5.0, chapter 4): the signatures of all partitions together are compared at the end of the first
//! transfer. The partitioned sends and receives of two processes with one tag match in the order of their initializations.

use super::buffer_arguments::{elements, receiver};
use super::messages::ReceiveCall;
use super::operations::{self, RequestPlan};
use super::{Checker, with};
use crate::call_site::CallSite;
use crate::forward;
use crate::function::CheckedCall;
use crate::marks::{self, CommPeer, MessageArrival, SendRecord};
use crate::requests::{ReceiveElements, RequestReceive};
use crate::role::Timing;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::ffi::c_int;

/// A partitioned receive that is not compared yet.
struct UncomparedReceive {
    number: u64,
    function: &'static str,
    site: CallSite,
    elements: ReceiveElements,
}

/// Partitioned receives by peer and tag, in the order of their initializations.
#[derive(Default)]
pub struct PartitionedReceives(FxHashMap<(CommPeer, i64), VecDeque<UncomparedReceive>>);

impl PartitionedReceives {
    /// Forgets a communicator, because its handle may be used again.
    pub fn forget(&mut self, comm: usize) {
        self.0.retain(|(peer, _), _| peer.comm != comm);
    }
}

/// Returns the elements of all partitions.
fn all_partitions(checker: &mut Checker, call: &CheckedCall<'_>) -> Option<ReceiveElements> {
    let all = elements(checker, call, &["buf"])?;
    let partitions = call.named("partitions")?.max(0);
    Some(ReceiveElements { count: all.count.saturating_mul(partitions), ..all })
}

/// Runs MPI_Psend_init.
///
/// # Safety
/// As for [`super::run`].
pub unsafe fn send(index: usize, call: &CheckedCall<'_>) -> c_int {
    // SAFETY: the caller promises it.
    let code = unsafe { forward(index, call.arguments) };
    if code != 0 {
        return code;
    }
    with(|checker| {
        let all = all_partitions(checker, call);
        if let (Some(to), Some(tag), Some(all)) = (receiver(call), call.named("tag"), all) {
            let record = SendRecord::new(call.site, index, checker.rank, &all.facts);
            marks::send_partitioned(to, tag, SendRecord { count: all.count as u64, ..record });
        }
        // The program writes partitions while the request is active, so the memory is not looked at.
        let operation = checker.next_operation();
        // SAFETY: the call has succeeded.
        unsafe {
            operations::add_request(
                checker,
                call,
                operation,
                Timing::Persistent,
                RequestPlan::default(),
            );
        }
    });
    code
}

/// Runs MPI_Precv_init.
///
/// # Safety
/// As for [`super::run`].
pub unsafe fn receive(index: usize, call: &CheckedCall<'_>) -> c_int {
    // SAFETY: the caller promises it.
    let code = unsafe { forward(index, call.arguments) };
    if code != 0 {
        return code;
    }
    with(|checker| {
        let number = checker.next_operation();
        // The standard's binding in C has the name of the send's parameter.
        let source = call.named("source").or(call.named("dest")).filter(|&rank| rank >= 0);
        let (function, site) = (call.function.name(), call.site);
        let mut receive = None;
        if let (Some(comm), Some(rank), Some(tag), Some(elements)) =
            (call.handle("COMMUNICATOR"), source, call.named("tag"), all_partitions(checker, call))
        {
            let peer = CommPeer { comm, rank };
            receive = Some(RequestReceive {
                comm,
                elements: elements.clone(),
                began: 0,
                partitioned: Some(number),
            });
            let queue = checker.partitioned.0.entry((peer, tag)).or_default();
            queue.push_back(UncomparedReceive { number, function, site, elements });
        }
        let plan = RequestPlan { receive, ..RequestPlan::default() };
        // SAFETY: the call has succeeded.
        unsafe { operations::add_request(checker, call, number, Timing::Persistent, plan) };
    });
    code
}

impl Checker {
    /// Compares the partitioned receive with this number, whose first transfer is complete, and all earlier receives of its peer and
    /// tag. Their sends have been initialized, too.
    pub(super) fn compare_partitioned(&mut self, number: u64, message: MessageArrival) {
        let key = (message.from, message.tag);
        loop {
            let queue = self.partitioned.0.get_mut(&key);
            let Some(next) = queue
                .filter(|queue| queue.front().is_some_and(|next| next.number <= number))
                .and_then(VecDeque::pop_front)
            else {
                return;
            };
            let Some(record) = marks::receive_partitioned(message.from, message.tag) else {
                return;
            };
            let UncomparedReceive { function, site, elements, .. } = &next;
            let own = ReceiveCall { function, site: *site, elements, began: 0 };
            self.compare_record(&own, &record, record.count * record.size);
        }
    }
}
