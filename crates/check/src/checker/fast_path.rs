//! Fast path of blocking sends and receives, while no operation uses memory. Each thread remembers calls that it has checked, so a call
//! that is made again takes no lock.

use super::messages::{ReceiveCall, SignatureMatch};
use super::{IS_RUNNING, with};
use crate::function::{CheckedCall, FunctionDescription};
use crate::marks::{self, MessageArrival};
use crate::memory_use;
use crate::role::{CallRole, Timing};
use crate::shadow::RawStatus;
use crate::{FUNCTIONS, call_site, forward};
use std::cell::Cell;
use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Maximum number of arguments of a blocking send or receive.
const ARGUMENTS: usize = 7;

/// Number of calls that a thread remembers. A power of two.
const CALLS: usize = 256;

/// Number of times that a handle was freed. Calls that were remembered before the last time are forgotten.
static GENERATION: AtomicU32 = AtomicU32::new(1);

/// Forgets all calls, because handles may be used again.
pub fn forget() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// Call that a thread remembers.
#[derive(Clone, Copy, PartialEq, Eq)]
struct BlockingCallKey {
    address: u64,
    datatype: usize,
    comm: usize,
    peer: c_int,
    /// Index of the function.
    function: u32,
    generation: u32,
    /// Mark of a received message. 0 for a send.
    mark: u32,
}

const NO_CALL: BlockingCallKey = BlockingCallKey {
    address: 0,
    datatype: 0,
    comm: 0,
    peer: 0,
    function: 0,
    generation: 0,
    mark: 0,
};

thread_local! {
    /// Calls, each with the mark of a send.
    static REMEMBERED: [Cell<(BlockingCallKey, u32)>; CALLS] = const { [const { Cell::new((NO_CALL, 0)) }; CALLS] };
}

impl BlockingCallKey {
    fn slot(&self) -> usize {
        let mix = self.address ^ (self.datatype as u64) << 9 ^ (self.comm as u64) << 17;
        let mix = mix ^ u64::from(self.peer as u32) << 25 ^ u64::from(self.mark) << 33;
        (mix.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % CALLS
    }

    /// Returns the mark that was remembered with the call.
    fn find(&self) -> Option<u32> {
        let (key, mark) = REMEMBERED.with(|calls| calls[self.slot()].get());
        (key == *self).then_some(mark)
    }

    fn remember(self, mark: u32) {
        REMEMBERED.with(|calls| calls[self.slot()].set((self, mark)));
    }
}

/// Places of the arguments of a blocking send or receive.
#[derive(Clone, Copy)]
struct MessagePlaces {
    datatype: usize,
    peer: usize,
    comm: usize,
    /// Place of the status of a receive.
    status: Option<usize>,
}

/// Returns the places of a function's arguments; `None` if the function is no blocking send or receive.
fn places(function: &'static FunctionDescription) -> Option<MessagePlaces> {
    let peer = match crate::role::role(function) {
        CallRole::Send(Timing::Blocking) => "dest",
        CallRole::Receive(Timing::Blocking) => "source",
        _ => return None,
    };
    Some(MessagePlaces {
        datatype: function.input("DATATYPE")?,
        peer: function.place(peer)?,
        comm: function.input("COMMUNICATOR")?,
        status: function.output("STATUS"),
    })
}

/// Returns the places of the arguments of the function with this index, see [`places`].
fn places_of(index: usize) -> Option<MessagePlaces> {
    static PLACES: OnceLock<Vec<Option<MessagePlaces>>> = OnceLock::new();
    PLACES.get_or_init(|| FUNCTIONS.iter().map(places).collect())[index]
}

/// Runs a call, if it is a blocking send or receive that needs no check of memory. A send must have been checked before. Returns
/// `None`, and does nothing, for any other call.
///
/// # Safety
/// As for [`super::run`].
#[inline]
pub unsafe fn run(index: usize, arguments: &[usize], address: u64) -> Option<c_int> {
    let places = places_of(index)?;
    if !IS_RUNNING.load(Ordering::Relaxed) || !memory_use::is_idle() {
        return None;
    }
    let key = BlockingCallKey {
        address,
        datatype: arguments[places.datatype],
        comm: arguments[places.comm],
        peer: arguments[places.peer] as c_int,
        function: index as u32,
        generation: GENERATION.load(Ordering::Relaxed),
        mark: 0,
    };
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

/// Remembers the mark of a send, if it is blocking.
pub fn remember_send(index: usize, call: &CheckedCall<'_>, mark: u32) {
    let Some(places) = places_of(index) else { return };
    let key = BlockingCallKey {
        address: call_site::return_address(),
        datatype: call.arguments[places.datatype],
        comm: call.arguments[places.comm],
        peer: call.arguments[places.peer] as c_int,
        function: index as u32,
        generation: GENERATION.load(Ordering::Relaxed),
        mark: 0,
    };
    key.remember(mark);
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
        let elements = super::operations::elements(checker, &call, &["buf"])?;
        let (function, site) = (function.name(), call.site);
        Some(checker.compare(&ReceiveCall { function, site, elements: &elements }, message))
    })
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocking_sends_and_receives_have_places() {
        let all =
            FUNCTIONS.iter().filter_map(|function| Some((function.name(), places(function)?)));
        let all: Vec<_> = all.collect();
        let is_there = |name: &str| all.iter().any(|(there, _)| *there == name);
        let names = ["MPI_Send", "MPI_Bsend_c", "MPI_Ssend", "MPI_Rsend", "MPI_Recv", "MPI_Recv_c"];
        assert!(names.into_iter().all(is_there) && all.len() == 10);
        let has_status = |name: &str| name.starts_with("MPI_Recv");
        assert!(all.iter().all(|(name, places)| places.status.is_some() == has_status(name)));
    }

    #[test]
    fn a_call_is_remembered_until_a_handle_is_freed() {
        let generation = GENERATION.load(Ordering::Relaxed);
        let key = BlockingCallKey { address: 77, generation, ..NO_CALL };
        key.remember(5);
        assert_eq!(key.find(), Some(5));
        assert_eq!(BlockingCallKey { peer: 1, ..key }.find(), None);
        forget();
        let generation = GENERATION.load(Ordering::Relaxed);
        assert_eq!(BlockingCallKey { generation, ..key }.find(), None);
    }
}
