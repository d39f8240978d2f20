//! MPI_Start and MPI_Startall.

use super::operations::{activate, check_memory};
use super::with;
use crate::forward;
use crate::function::{CheckedCall, Form};
use std::ffi::c_int;

/// Runs MPI_Start and MPI_Startall.
///
/// # Safety
/// As for [`super::run`].
pub unsafe fn start_requests(index: usize, call: &CheckedCall<'_>) -> c_int {
    let parameters = call.function.parameters;
    let place = parameters.iter().position(|p| p.kind == "REQUEST").unwrap_or(0);
    let count = if parameters[0].form == Form::Int { call.integer(0).max(0) as usize } else { 1 };
    let array = call.arguments[place] as *const usize;
    // SAFETY: the array has `count` handles, as MPI requires of the program.
    let handles: Vec<usize> = (0..count).map(|i| unsafe { *array.add(i) }).collect();
    with(|checker| {
        for (i, handle) in handles.iter().enumerate() {
            // SAFETY: the array has `count` handles, as MPI requires of the program.
            let variable = unsafe { array.add(i) } as usize;
            let operation = checker.next_operation();
            let Some((mut request, _)) = checker.requests.remove(*handle, variable) else {
                continue;
            };
            request.operation = operation;
            let is_free = check_memory(checker, call, &request.ranges);
            checker.request_begins(&mut request);
            // SAFETY: the buffers of an operation that begins can be read.
            unsafe {
                activate(checker, &mut request);
                if is_free {
                    request.poison.set();
                }
            }
            checker.requests.add(*handle, request);
        }
    });
    // SAFETY: the caller promises it.
    let code = unsafe { forward(index, call.arguments) };
    if code != 0 {
        with(|checker| handles.iter().for_each(|&handle| checker.end_poison(handle)));
    }
    code
}
