//! Fast path of blocking sends and receives, while no operation uses memory. Each thread remembers calls that it has checked, so a call
//! that is made again takes no lock.

use super::call_memory::{self, BlockingCallKey, places_of};
use super::messages::{ReceiveCall, SignatureMatch};
use super::{IS_FAST, with};
use crate::function::CheckedCall;
use crate::marks::{self, MessageArrival};
use crate::memory_use;
use crate::shadow::RawStatus;
use crate::{FUNCTIONS, call_site, forward};
use std::ffi::c_int;
use std::sync::atomic::Ordering;

/// Maximum number of arguments of a blocking send or receive.
const ARGUMENTS: usize = 7;

/// Runs a call, if it is a blocking send or receive that needs no check of memory. A send must have been checked before. Returns
/// `None`, and does nothing, for any other call.
///
/// # Safety
/// As for [`super::run`].
#[inline]
pub unsafe fn run(index: usize, arguments: &[usize], address: u64) -> Option<c_int> {
    let places = places_of(index)?;
    if !IS_FAST.load(Ordering::Relaxed) || !memory_use::is_idle() {
        return None;
    }
    let key = BlockingCallKey {
        address,
        datatype: arguments[places.datatype],
        comm: arguments[places.comm],
        peer: arguments[places.peer] as c_int,
        function: index as u32,
        generation: call_memory::generation(),
        mark: 0,
    };
    crate::window::note_message();
    // SAFETY: the caller promises it.
    unsafe {
        match places.status {
            Some(status) => Some(receive(key, arguments, status)),
            None => {
                marks::set_next(key.find()?);
                Some(forward(index, arguments))
            }
        }
    }
}

/// Runs a receive, and compares its message unless an equal comparison is remembered.
///
/// # Safety
/// As for [`super::run`].
unsafe fn receive(key: BlockingCallKey, arguments: &[usize], status: usize) -> c_int {
    let index = key.function as usize;
    let mut own = RawStatus::default();
    let mut copy = [0; ARGUMENTS];
    copy.copy_from_slice(arguments);
    if copy[status] == 0 {
        copy[status] = own.as_mut_ptr() as usize;
    }
    // SAFETY: the caller promises it; the status has room.
    let (code, message) = unsafe {
        let code = forward(index, &copy);
        (code, MessageArrival::of_status(key.comm, copy[status]))
    };
    if code != 0 || message.mark == 0 {
        return code;
    }
    // The sender counts, even if the receive accepts any sender.
    let key = BlockingCallKey { mark: message.mark, peer: message.from.rank as c_int, ..key };
    if key.find().is_none() && compare(&key, arguments, &message) == Some(SignatureMatch::Always) {
        key.remember(0);
    }
    code
}

/// Compares a receive with its message.
#[cold]
fn compare(
    key: &BlockingCallKey,
    arguments: &[usize],
    message: &MessageArrival,
) -> Option<SignatureMatch> {
    let function = &FUNCTIONS[key.function as usize];
    let call = CheckedCall { function, arguments, site: call_site::of(key.address) };
    with(|checker| {
        let elements = super::buffer_arguments::elements(checker, &call, &["buf"])?;
        let (function, site) = (function.name(), call.site);
        let receive = ReceiveCall { function, site, elements: &elements, began: 0 };
        Some(checker.compare(&receive, message))
    })
    .flatten()
}
