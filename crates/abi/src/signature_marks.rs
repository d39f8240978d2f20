//! Extension of the library for `libweft_check.so`: signature marks of messages, and records of signatures.
//!
//! ```text
//!   weft_check_begin      once, after MPI_Init     every send and receive takes the slow path from now on
//!   weft_check_mark       before a send            the next send of this thread, or each start of its request, carries the mark
//!   weft_check_send       before the first message with a mark to a peer
//!   weft_check_receive    after the first message with a mark from a peer
//! ```
//! The status of a receive, and of MPI_Mprobe, has the mark above the lowest bit of the third word of `MPI_internal`.

use crate::arguments;
use crate::engine::CommObject;
use crate::lanes;
use crate::lock;
use crate::state::state;
use crate::types::Comm;
use crate::waiting::WaitingCall;
use std::cell::Cell;
use std::ffi::{c_int, c_uint};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use weft_p2p::SendMode;
use weft_process::{Active, Buffer, Destination, RecordSpace, SignatureMark};

/// True in the checking mode.
static CHECKS: AtomicBool = AtomicBool::new(false);

thread_local! {
    static NEXT: Cell<Option<SignatureMark>> = const { Cell::new(None) };
}

/// Mark of a message, or none.
#[derive(Clone, Copy)]
pub struct MessageMark(Option<SignatureMark>);

/// Takes the mark for the present send.
#[inline]
pub fn take() -> MessageMark {
    MessageMark(if CHECKS.load(Ordering::Relaxed) { NEXT.take() } else { None })
}

impl MessageMark {
    /// Starts a send with the mark.
    #[inline]
    pub fn isend(
        self,
        comm: &CommObject,
        data: &Buffer,
        to: Destination,
        tag: i32,
        mode: SendMode,
    ) -> Active {
        match self.0 {
            None => comm.isend(data, to, tag, mode),
            Some(mark) => comm.isend_with_mark(data, to, tag, mode, mark),
        }
    }
}

/// Begins the checking mode. All processes of the job call this function at the end of MPI_Init.
#[unsafe(no_mangle)]
pub extern "C" fn weft_check_begin() {
    let _entered = lock::enter();
    CHECKS.store(true, Ordering::Relaxed);
    lanes::end();
    // The short paths of calls look at these sizes first.
    state().plain_sizes.iter().for_each(|size| size.set(0));
}

/// Sets the mark of the next send of this thread. The mark 0 is none.
#[unsafe(no_mangle)]
pub extern "C" fn weft_check_mark(mark: c_uint) {
    NEXT.set(SignatureMark::new(mark));
}

/// Description of a record, in C.
#[repr(C)]
pub struct CheckRecord {
    /// Handle of the communicator.
    comm: usize,
    /// Peer in the communicator.
    peer: c_int,
    tag: c_int,
    /// 0: signatures that marks name; 1: partitioned sends.
    space: c_int,
    /// Length of the data in bytes.
    len: c_int,
    data: *mut u8,
}

impl CheckRecord {
    /// Returns the communicator, the peer's place and the matching space. `None` if one of them does not exist.
    fn place(&self) -> Option<(Rc<CommObject>, usize, RecordSpace)> {
        let comm = arguments::comm(Comm(self.comm)).ok()?;
        let peer = usize::try_from(self.peer).ok().filter(|&peer| peer < comm.peers().size())?;
        let spaces = [RecordSpace::Signatures, RecordSpace::Partitioned];
        Some((comm, peer, *spaces.get(usize::try_from(self.space).ok()?)?))
    }
}

/// Sends a record, and copies its data. Returns 0, or 1 if there is no such communicator or peer.
///
/// # Safety
/// `record` points to a record, whose data can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_check_send(record: *const CheckRecord) -> c_int {
    let _entered = lock::enter();
    // SAFETY: the caller promises it.
    let record = unsafe { &*record };
    let Some((comm, to, space)) = record.place() else { return 1 };
    // SAFETY: the caller promises that the data can be read.
    let data = unsafe { std::slice::from_raw_parts(record.data, record.len.max(0) as usize) };
    comm.send_record(space, to, record.tag, data);
    0
}

/// Receives a record, and waits for it. Returns 0, or 1 if there is no such communicator or peer, or the peer has failed.
///
/// # Safety
/// `record` points to a record, whose data can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_check_receive(record: *const CheckRecord) -> c_int {
    let _entered = lock::enter();
    // SAFETY: the caller promises it.
    let record = unsafe { &*record };
    let Some((comm, from, space)) = record.place() else { return 1 };
    let bytes = arguments::datatype(crate::constants::MPI_BYTE).expect("MPI_BYTE is predefined");
    // SAFETY: the caller promises that the data can be written. They are used only until this function returns.
    let into = unsafe { Buffer::new(record.data, record.len.max(0) as usize, bytes.ty.clone()) };
    let call = WaitingCall::new("MPI_Recv");
    c_int::from(comm.receive_record(&call, space, from, record.tag, &into).is_err())
}
