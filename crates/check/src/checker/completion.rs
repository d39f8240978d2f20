//! Calls that complete operations, and MPI_Request_free.

use super::messages::ReceiveCall;
use super::{Checker, collectives, waits, with};
use crate::collective::CollectiveComparison;
use crate::finding::FindingClass;
use crate::forward;
use crate::function::CheckedCall;
use crate::library::mpi;
use crate::marks::MessageArrival;
use crate::memory_use::MemoryAccess;
use crate::objects::{ObjectHandle, ObjectOrigin};
use crate::requests::{MPI_REQUEST_NULL, RequestFacts};
use crate::role::RequestCompletion;
use crate::shadow::{MPI_COMM_NULL, RawStatus};
use crate::slow;
use crate::wait_clock;
use std::ffi::c_int;

const MPI_UNDEFINED: i64 = -32766;

/// A request that a call has completed.
struct RequestPlaces {
    /// Its place in the array of requests.
    place: usize,
    /// Its place in the array of statuses.
    status: usize,
}

/// Runs a call that completes requests.
///
/// # Safety
/// As for [`super::run`].
pub unsafe fn complete(
    index: usize,
    call: &CheckedCall<'_>,
    completion: RequestCompletion,
) -> c_int {
    let function = call.function;
    let at = |name: &str| function.place(name).map(|place| call.arguments[place]);
    let count = call.named("count").or(call.named("incount")).map_or(1, |n| n.max(0) as usize);
    let requests = function.parameters.iter().position(|p| p.kind == "REQUEST").unwrap_or(0);
    let array = call.arguments[requests] as *const usize;
    let length = if array.is_null() { 0 } else { count };
    // SAFETY: the array has `count` handles, as MPI requires of the program.
    let handles: Vec<usize> = (0..length).map(|i| unsafe { *array.add(i) }).collect();
    let mut own = vec![RawStatus::default(); count.max(1)];
    let mut arguments = call.arguments.to_vec();
    let statuses = function.parameters.iter().position(|p| p.kind == "STATUS").unwrap_or(0);
    if arguments[statuses] == 0 {
        arguments[statuses] = own.as_mut_ptr() as usize;
    }
    let is_wait = function.stem().starts_with("Wait");
    let began = wait_clock::moment();
    if is_wait && matches!(completion, RequestCompletion::One | RequestCompletion::All) {
        compare_first(&handles, array);
    }
    // SAFETY: the caller promises it; the status or statuses have room.
    let code = unsafe { forward(index, &arguments) };
    let integer = |name: &str| {
        at(name).map(|pointer| {
            // SAFETY: the call has set this result.
            i64::from(unsafe { *(pointer as *const c_int) })
        })
    };
    let is_done = is_wait || completion == RequestCompletion::Some || integer("flag") == Some(1);
    let done: Vec<RequestPlaces> = match completion {
        _ if code != 0 || !is_done => Vec::new(),
        RequestCompletion::One | RequestCompletion::All => {
            (0..handles.len()).map(|i| RequestPlaces { place: i, status: i }).collect()
        }
        RequestCompletion::Any => {
            let place = integer("indx").or(integer("index")).filter(|&i| i != MPI_UNDEFINED);
            place.map(|i| RequestPlaces { place: i as usize, status: 0 }).into_iter().collect()
        }
        RequestCompletion::Some => {
            let n = integer("outcount").filter(|&n| n != MPI_UNDEFINED).unwrap_or(0);
            let indices = at("array_of_indices").unwrap_or(0) as *const c_int;
            // SAFETY: the call has set this number of indices.
            let place = |i: usize| unsafe { *indices.add(i) } as usize;
            (0..n as usize).map(|i| RequestPlaces { place: place(i), status: i }).collect()
        }
    };
    if code != 0 {
        forget_failed(&handles, array);
    }
    for RequestPlaces { place, status } in done {
        let handle = handles[place];
        if handle == MPI_REQUEST_NULL {
            continue;
        }
        let variable = array.wrapping_add(place) as usize;
        let status = arguments[statuses] + status * size_of::<RawStatus>();
        // SAFETY: the call has set the status.
        let status = unsafe { MessageArrival::of_status(MPI_COMM_NULL, status) };
        let comparison = with(|checker| checker.completed(handle, variable, status)).flatten();
        // A rank may complete its part before others have begun theirs, so the comparison waits for them.
        if let Some(comparison) = comparison.filter(|_| is_wait) {
            collectives::finish(&comparison);
        }
    }
    if is_wait {
        waits::ended(function.name(), call.site, began);
    } else {
        slow::forget_call();
    }
    code
}

/// Forgets the requests that have failed. They are complete, too, but their messages are not compared.
fn forget_failed(handles: &[usize], array: *const usize) {
    for (place, &handle) in handles.iter().enumerate() {
        with(|checker| checker.end_poison(handle));
        let variable = array.wrapping_add(place);
        // SAFETY: the array has this handle.
        let is_gone = handle != MPI_REQUEST_NULL && unsafe { *variable } == MPI_REQUEST_NULL;
        with(|checker| is_gone.then(|| checker.forget_request(handle, variable as usize)));
    }
}

/// Compares the collective operations of requests for which the program is about to wait. So a mismatch is reported before an
/// operation hangs.
fn compare_first(handles: &[usize], array: *const usize) {
    for (place, &handle) in handles.iter().enumerate() {
        let variable = array.wrapping_add(place) as usize;
        let take =
            |checker: &mut Checker| checker.requests.find(handle, variable)?.comparison.take();
        if let Some(comparison) = with(take).flatten() {
            collectives::finish(&comparison);
        }
    }
}

/// Runs MPI_Request_free.
///
/// # Safety
/// As for [`super::run`].
pub unsafe fn free(index: usize, call: &CheckedCall<'_>) -> c_int {
    let pointer = call.arguments[0] as *const usize;
    // SAFETY: the parameter points to a handle, as MPI requires of the program.
    let handle = if pointer.is_null() { MPI_REQUEST_NULL } else { unsafe { *pointer } };
    end_complete(handle);
    with(|checker| checker.end_poison(handle));
    // SAFETY: the caller promises it.
    let code = unsafe { forward(index, call.arguments) };
    if code == 0 {
        // Nobody knows when the operation is complete, so its memory is no longer looked at.
        with(|checker| checker.forget_request(handle, pointer as usize));
    }
    code
}

/// Ends the poison of requests that are complete, because the program may look at their buffers now.
///
/// # Safety
/// MPI_Request_get_status or its like has succeeded.
pub unsafe fn looked_at(call: &CheckedCall<'_>) {
    let parameters = call.function.parameters;
    let place = parameters.iter().position(|p| p.kind == "REQUEST").unwrap_or(0);
    let (count, argument) = (call.named("count").or(call.named("incount")), call.arguments[place]);
    let array = argument as *const usize;
    let handles: Vec<usize> = match count {
        // SAFETY: the array has `count` handles, as MPI requires of the program.
        Some(count) => (0..count.max(0) as usize).map(|i| unsafe { *array.add(i) }).collect(),
        None => vec![argument],
    };
    handles.into_iter().for_each(end_complete);
}

/// Returns the number of bytes that a message has written.
fn written(message: &MessageArrival) -> u64 {
    if message.is_cancelled { 0 } else { message.bytes }
}

/// Ends the poison of a request if it is complete.
fn end_complete(handle: usize) {
    let is_poisoned = |checker: &mut Checker| {
        checker.requests.with_handle(handle).any(|request| request.poison.is_there())
    };
    if with(is_poisoned) != Some(true) {
        return;
    }
    let (mut flag, mut status) = (0 as c_int, RawStatus::default());
    let to = status.as_mut_ptr();
    // SAFETY: the results are local variables.
    let message = unsafe {
        mpi!(MPI_Request_get_status(handle, &raw mut flag, to));
        MessageArrival::of_status(MPI_COMM_NULL, to as usize)
    };
    if flag != 0 {
        with(|checker| {
            for request in checker.requests.with_handle(handle) {
                // SAFETY: the program must keep a buffer until it knows that the operation is complete.
                unsafe { request.poison.end(written(&message)) };
            }
        });
    }
}

impl Checker {
    /// Ends the poison of an operation that may have written nothing, or a part.
    pub(super) fn end_poison(&mut self, handle: usize) {
        for request in self.requests.with_handle(handle) {
            // SAFETY: the program has the buffers of its requests.
            unsafe { request.poison.restore() };
        }
    }

    /// Removes a request whose message is not compared.
    fn forget_request(&mut self, handle: usize, variable: usize) {
        let Some((request, _)) = self.requests.remove(handle, variable) else { return };
        self.memory.end(request.operation);
    }

    /// Notes that a request is complete. Returns the comparison of its collective operation, which may still be under way.
    fn completed(
        &mut self,
        handle: usize,
        variable: usize,
        message: MessageArrival,
    ) -> Option<Box<CollectiveComparison>> {
        let (mut request, others) = self.requests.remove(handle, variable)?;
        others.iter().for_each(|&operation| self.memory.end(operation));
        self.memory.end(request.operation);
        // SAFETY: the program must keep a buffer until its operation is complete.
        unsafe { request.poison.end(written(&message)) };
        if request.is_active && !message.is_cancelled {
            self.check_samples(&request);
            self.compare_received(&mut request, message);
            slow::note_send(request.send.as_ref().map_or(0, |send| send.record.posted));
            self.copy_ends(&request);
        }
        let comparison = request.comparison.take();
        if request.is_persistent {
            request.is_active = false;
            self.requests.add(handle, request);
        }
        comparison
    }

    /// Compares the receive of a request with its message.
    fn compare_received(&mut self, request: &mut RequestFacts, mut message: MessageArrival) {
        let (function, site) = (request.function, request.site);
        let Some(receive) = &mut request.receive else { return };
        message.from.comm = receive.comm;
        match receive.partitioned.take() {
            Some(number) => self.compare_partitioned(number, message),
            None => {
                let (elements, began) = (&receive.elements, receive.began);
                self.compare(&ReceiveCall { function, site, elements, began }, &message);
            }
        }
    }

    /// Notes the communicator that a request has made.
    fn copy_ends(&mut self, request: &RequestFacts) {
        let Some(address) = request.new_comm else { return };
        // SAFETY: the operation is complete, so it has written a handle to the variable that the program gave.
        let handle = unsafe { *(address as *const usize) };
        self.marks.comms.insert(handle);
        let &RequestFacts { function, site, .. } = request;
        let origin = ObjectOrigin { noun: "communicator", function, site };
        self.objects.insert(ObjectHandle { kind: "COMMUNICATOR", handle }, origin);
    }

    /// Adds a finding if the program has changed memory that an operation was reading.
    fn check_samples(&mut self, request: &RequestFacts) {
        for (range, &before) in request.ranges.iter().zip(&request.samples) {
            // SAFETY: the program must keep a buffer until its operation is complete.
            if range.access == MemoryAccess::Read && unsafe { range.sample() } != before {
                let party = crate::finding::Party {
                    rank: Some(self.rank),
                    function: request.function.to_owned(),
                    site: request.site,
                    facts: format!(
                        "{} was changed before the operation was complete",
                        range.parameter
                    ),
                };
                self.findings.add(FindingClass::BufferChanged, vec![party]);
            }
        }
    }
}
