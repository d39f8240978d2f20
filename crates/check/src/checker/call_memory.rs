//! Calls that a thread remembers: blocking sends and receives that have been checked.

use crate::function::{CheckedCall, FunctionDescription};
use crate::role::{CallRole, Timing};
use crate::{FUNCTIONS, call_site};
use std::cell::Cell;
use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

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
pub struct BlockingCallKey {
    pub address: u64,
    pub datatype: usize,
    pub comm: usize,
    pub peer: c_int,
    /// Index of the function.
    pub function: u32,
    pub generation: u32,
    /// Mark of a received message. 0 for a send.
    pub mark: u32,
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
    pub fn find(&self) -> Option<u32> {
        let (key, mark) = REMEMBERED.with(|calls| calls[self.slot()].get());
        (key == *self).then_some(mark)
    }

    /// Remembers the call with a mark.
    pub fn remember(self, mark: u32) {
        REMEMBERED.with(|calls| calls[self.slot()].set((self, mark)));
    }
}

/// Places of the arguments of a blocking send or receive.
#[derive(Clone, Copy)]
pub struct MessagePlaces {
    pub datatype: usize,
    pub peer: usize,
    pub comm: usize,
    /// Place of the status of a receive.
    pub status: Option<usize>,
}

/// Returns the present value of [`GENERATION`].
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
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
pub fn places_of(index: usize) -> Option<MessagePlaces> {
    static PLACES: OnceLock<Vec<Option<MessagePlaces>>> = OnceLock::new();
    PLACES.get_or_init(|| FUNCTIONS.iter().map(places).collect())[index]
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
