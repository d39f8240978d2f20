//! Buffered sends (MPI 5.0, section 3.6). The message is copied, and its size is charged to the buffer that is attached to the
//! communicator, or else to the session of the communicator, or else to the process.
//!
//! ```text
//!   MPI_Bsend ── copy ── send ── COPIES: the copies under way, each with the buffer to which it is charged
//!                                                  MPI_*_flush, detach: until no copy of the buffer is left
//! ```

use crate::arguments::{comm, not_null, room_for_request, session, store};
use crate::calls::Bsend;
use crate::chapter_state::ChapterState;
use crate::chapters::messages::Sent;
use crate::constants::*;
use crate::engine::{CommObject, Engine};
use crate::error::Error;
use crate::lanes;
use crate::objects::{Belongs, RequestObject, RequestOrigin};
use crate::requests::{persist, start};
use crate::signature_marks::{self, MessageMark};
use crate::state::{engine, running, state};
use crate::types::{Comm, Request, Session};
use crate::waiting::WaitingCall;
use crate::widen_counts::Out;
use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::ffi::c_void;
use std::rc::Rc;
use weft_fabric::{Sge, Staging};
use weft_p2p::SendMode;
use weft_process::{Active, Buffer, External, OperationOutcome};

/// A place where a buffer may be attached: a process, a communicator, a session. The memory of the buffer belongs to the program.
/// Only the size of the buffer is used, because messages are copied to memory of the library.
#[derive(Default)]
pub struct BufferOwner {
    buffer: Cell<Option<Memory>>,
    /// Number of bytes of the buffer that count as used by messages that have not left.
    used: Cell<u64>,
}

#[derive(Clone, Copy)]
struct Memory {
    address: usize,
    /// Size in bytes. An automatic buffer has no limit (`u64::MAX`).
    size: u64,
}

static COPIES: ChapterState<RefCell<MessageCopies>> =
    ChapterState::new(RefCell::new(MessageCopies {
        list: VecDeque::new(),
        number: 0,
        next_settled: 0,
    }));

/// Number of bytes of a buffer that each message takes in addition to its data. Programs of an older ABI reserve less.
static OVERHEAD: ChapterState<Cell<u64>> = ChapterState::new(Cell::new(MPI_BSEND_OVERHEAD as u64));

/// Sets the number of bytes of a buffer that each message takes in addition to its data. The library of another ABI passes the
/// MPI_BSEND_OVERHEAD of that ABI.
#[unsafe(no_mangle)]
pub extern "C" fn weft_set_bsend_overhead(bytes: u64) {
    let _entered = crate::lock::enter();
    OVERHEAD.set(bytes);
}

/// Buffer of the process.
static BUFFER: ChapterState<OnceCell<Rc<dyn Any>>> = ChapterState::new(OnceCell::new());

/// Copies of the messages that have not left, for all buffers. They outlive the communicator.
struct MessageCopies {
    list: VecDeque<Copy>,
    /// Number of the next copy.
    number: u64,
    /// Length of `list` at which all copies are examined the next time.
    next_settled: usize,
}

struct Copy {
    active: Active,
    charged: u64,
    to: Rc<BufferOwner>,
    number: u64,
    _memory: Staging,
}

impl BufferOwner {
    /// Attaches a buffer. `detach` names the function that removes the present buffer.
    pub fn attach(&self, address: *mut c_void, size: i64, detach: &str) -> Result<(), Error> {
        if self.buffer.get().is_some() {
            let text = format!("a buffer is attached already: {detach} first");
            return Err(Error::new(MPI_ERR_BUFFER, text));
        }
        let address = address.addr();
        let size = match u64::try_from(size) {
            _ if address == MPI_BUFFER_AUTOMATIC => u64::MAX,
            Ok(size) => size,
            Err(_) => {
                let text = format!("argument size = {size} is negative");
                return Err(Error::new(MPI_ERR_ARG, text));
            }
        };
        if address == 0 && size > 0 {
            let text = format!("argument buffer is NULL, but size = {size}");
            return Err(Error::new(MPI_ERR_BUFFER, text));
        }
        self.buffer.set(Some(Memory { address, size }));
        Ok(())
    }

    /// Returns the attached buffer. `attach` names the function that would attach a buffer, for the error.
    fn there(&self, attach: &str) -> Result<Memory, Error> {
        self.buffer.get().ok_or_else(|| {
            let text = format!("no buffer is attached: {attach} attaches one");
            Error::new(MPI_ERR_BUFFER, text)
        })
    }

    /// Waits until all messages in the buffer have left, and detaches the buffer.
    ///
    /// # Safety
    /// `address` is NULL or the address of a pointer; `size` may be written, if it is not NULL.
    pub unsafe fn detach(
        self: &Rc<Self>,
        call: &WaitingCall,
        attach: &str,
        address: *mut c_void,
        size: Out,
    ) -> Result<(), Error> {
        not_null(address, "buffer_addr")?;
        self.flush(call, attach)?;
        let memory = self.there(attach)?;
        self.buffer.set(None);
        let automatic = memory.address == MPI_BUFFER_AUTOMATIC;
        // SAFETY: `address` is not NULL, so it is the address of a pointer, and `size` is not NULL where it is written; the
        // contract of this function says so.
        unsafe {
            address
                .cast::<*mut c_void>()
                .write(std::ptr::with_exposed_provenance_mut(memory.address));
            if !size.is_null() {
                size.set(if automatic { 0 } else { memory.size as i64 });
            }
        }
        Ok(())
    }

    /// Waits until all messages that are in the buffer now have left.
    pub fn flush(self: &Rc<Self>, call: &WaitingCall, attach: &str) -> Result<(), Error> {
        self.there(attach)?;
        let flush = self.flushing();
        engine()?.drive(call, || flush.look()).error.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Makes a request that completes when all messages that are in the buffer now have left.
    ///
    /// # Safety
    /// `request` is NULL or may be written.
    pub unsafe fn iflush(
        self: &Rc<Self>,
        belongs: Belongs,
        attach: &str,
        request: *mut Request,
    ) -> Result<(), Error> {
        room_for_request(request)?;
        self.there(attach)?;
        let flush = Active::External(Rc::new(self.flushing()));
        let object = RequestObject::new(flush, belongs, RequestOrigin::Send);
        let handle = state().requests.borrow_mut().insert(object);
        // SAFETY: `request` points to room for the result, as MPI requires of the program.
        unsafe { store(request, Request(handle), "request") }
    }

    fn flushing(self: &Rc<Self>) -> Flush {
        Flush { of: self.clone(), before: COPIES.borrow().number }
    }
}

/// A wait for the messages that were in a buffer when the wait began.
struct Flush {
    of: Rc<BufferOwner>,
    /// Number that is greater than the numbers of these messages.
    before: u64,
}

impl Flush {
    fn look(&self) -> Option<OperationOutcome> {
        settle();
        let fault = state().engine.get().and_then(|engine| engine.endpoint().fault());
        if fault.is_none() && self.pending() {
            return None;
        }
        Some(OperationOutcome { error: fault.map(Into::into), ..OperationOutcome::done() })
    }

    fn pending(&self) -> bool {
        let copies = COPIES.borrow();
        copies.list.iter().any(|copy| copy.number < self.before && Rc::ptr_eq(&copy.to, &self.of))
    }
}

impl External for Flush {
    fn poll(&self) -> Option<OperationOutcome> {
        self.look()
    }

    fn is_over(&self) -> bool {
        self.look().is_some()
    }

    fn peek(&self) -> Option<OperationOutcome> {
        self.look().map(|outcome| OperationOutcome::of(outcome.status))
    }

    fn cancel(&self) -> Result<(), weft_process::Error> {
        let text = "a flush of a buffer cannot be cancelled (MPI 5.0, section 3.8.4)";
        Err(weft_process::Error::new(MPI_ERR_REQUEST, text))
    }

    fn release(&self) -> Result<(), weft_process::Error> {
        Ok(())
    }
}

/// Waits until all buffered messages have left.
pub fn drain(call: &WaitingCall) -> Result<(), Error> {
    let state = state();
    let Some(engine) = state.engine.get() else { return Ok(()) };
    let fault = engine.drive(call, || {
        settle();
        match engine.endpoint().fault() {
            Some(fault) => Some(Some(fault)),
            None => COPIES.borrow().list.is_empty().then_some(None),
        }
    });
    fault.map_or(Ok(()), |f| Err(f.into()))
}

/// Stops counting a message as used room of its buffer if the message has left. Returns true if the message has left.
fn settle_one(engine: &Engine, copy: &mut Copy) -> bool {
    let over = copy.active.poll(engine.endpoint()).is_some();
    if over {
        copy.to.used.set(copy.to.used.get() - copy.charged);
    }
    over
}

/// Stops counting messages that have left as used room of their buffers. Examines the messages in order, up to the first message
/// that has not left.
fn settle_first(engine: &Engine, copies: &mut MessageCopies) {
    while copies.list.front_mut().is_some_and(|copy| settle_one(engine, copy)) {
        copies.list.pop_front();
    }
}

/// Stops counting messages that have left as used room of their buffers. Examines all messages.
fn settle() {
    let state = state();
    let Some(engine) = state.engine.get() else { return };
    let copies = &mut *COPIES.borrow_mut();
    settle_first(engine, copies);
    copies.list.retain_mut(|copy| !settle_one(engine, copy));
    copies.next_settled = (2 * copies.list.len()).max(16);
}

/// Makes room in a buffer for `needed` bytes. Most messages leave in order, so it is usually enough to examine the first messages.
/// If the list has become long, or if fewer than `needed` bytes are free, examines all messages. If fewer than `needed` bytes are
/// free, also progresses the engine.
///
/// # Errors
/// Fails with the number of bytes in use if the rest of `size` is less than `needed`.
fn make_room(engine: &Engine, attached: &BufferOwner, size: u64, needed: u64) -> Result<(), u64> {
    let fits = || {
        let used = attached.used.get();
        if needed <= size - used.min(size) { Ok(()) } else { Err(used) }
    };
    settle_first(engine, &mut COPIES.borrow_mut());
    let many = {
        let copies = COPIES.borrow();
        copies.list.len() >= copies.next_settled
    };
    if many {
        settle();
    }
    // If the message can never fit, there is no point in waiting.
    if fits().is_ok() || needed > size {
        return fits();
    }
    engine.retry_when_full(|| {
        settle();
        fits()
    })
}

/// Returns the buffer of the process. Fails if the process may not communicate.
fn of_process() -> Result<Rc<BufferOwner>, Error> {
    running().map(|_| own(&BUFFER))
}

/// Returns the buffer owner in the `place` of a communicator, a session or the process. Creates the owner if there is none.
fn own(place: &OnceCell<Rc<dyn Any>>) -> Rc<BufferOwner> {
    let own = place.get_or_init(|| Rc::<BufferOwner>::default()).clone();
    own.downcast().expect("nothing else is hung there")
}

/// Returns the buffer for messages of a communicator: the buffer of the communicator, or else of the communicator's session, or
/// else of the process.
fn buffer_for(comm: &CommObject) -> (Rc<BufferOwner>, Memory) {
    let of_comm = || comm.buffer.get().map(|_| own(&comm.buffer));
    let of_session = || match comm.group().session() {
        0 => None,
        session => state().sessions.borrow().get(session).map(|session| own(&session.buffer)),
    };
    let there = |place: Option<Rc<BufferOwner>>| place.filter(|place| place.buffer.get().is_some());
    let found = there(of_comm()).or_else(|| there(of_session()));
    let found = found.unwrap_or_else(|| own(&BUFFER));
    let memory = found.buffer.get().unwrap_or(Memory { address: 0, size: 0 });
    (found, memory)
}

/// Copies a message and starts to send it.
pub fn send_copy(
    comm: &Rc<CommObject>,
    data: &Buffer,
    to: weft_process::Destination,
    tag: i32,
    mark: MessageMark,
) -> Result<(), Error> {
    if to == weft_process::Destination::Nobody {
        return Ok(());
    }
    let charged = data.len() as u64 + OVERHEAD.get();
    let (attached, Memory { size, .. }) = buffer_for(comm);
    make_room(comm.engine(), &attached, size, charged).map_err(|used| {
        let text = format!(
            "a message of {} bytes needs {charged} bytes of buffer, of {size} attached {used} are \
             in use: attach a larger one with MPI_Buffer_attach, MPI_Comm_attach_buffer or MPI_Session_attach_buffer",
            data.len()
        );
        Error::new(MPI_ERR_BUFFER, text)
    })?;
    let state = state();
    let memory = comm.engine().endpoint().staging().take(data.len());
    data.pack_to(memory.sge());
    let bytes: Sge = memory.sge();
    let packed = state.predefined_types[MPI_BYTE.0 - MPI_DATATYPE_NULL.0].clone();
    let ty = packed.expect("MPI_BYTE is predefined").ty.clone();
    // SAFETY: `memory` has `bytes.len()` bytes, and `Copy` keeps it until the send is complete.
    let copy = unsafe { Buffer::new(bytes.ptr(), bytes.len(), ty) };
    let active =
        lanes::start(comm, Some(tag), |comm| mark.isend(comm, &copy, to, tag, SendMode::Standard));
    if !matches!(active, Active::Done(_)) {
        attached.used.set(attached.used.get() + charged);
        let copies = &mut *COPIES.borrow_mut();
        let number = copies.number;
        copies.number += 1;
        copies.list.push_back(Copy { active, charged, to: attached, number, _memory: memory });
    }
    Ok(())
}

/// MPI_Buffer_attach, MPI_Buffer_attach_c.
pub(crate) unsafe fn buffer_attach(address: *mut c_void, size: i64) -> Result<(), Error> {
    of_process()?.attach(address, size, "MPI_Buffer_detach")
}

/// MPI_Buffer_detach, MPI_Buffer_detach_c.
pub(crate) unsafe fn buffer_detach(address: *mut c_void, size: Out) -> Result<(), Error> {
    let call = WaitingCall::new("MPI_Buffer_detach");
    // SAFETY: `address` is NULL or the address of a pointer, and `size` is NULL or may be written, as MPI requires of the
    // program (MPI 5.0, section 3.6.1).
    unsafe { of_process()?.detach(&call, "MPI_Buffer_attach", address, size) }
}

/// MPI_Buffer_flush.
pub(crate) unsafe fn buffer_flush() -> Result<(), Error> {
    of_process()?.flush(&WaitingCall::new("MPI_Buffer_flush"), "MPI_Buffer_attach")
}

/// MPI_Buffer_iflush.
pub(crate) unsafe fn buffer_iflush(request: *mut Request) -> Result<(), Error> {
    // SAFETY: `request` is NULL or points to room for the result, as MPI requires of the program.
    unsafe { of_process()?.iflush(Belongs::Nobody, "MPI_Buffer_attach", request) }
}

/// MPI_Comm_attach_buffer, MPI_Comm_attach_buffer_c.
pub(crate) unsafe fn comm_attach_buffer(
    handle: Comm,
    address: *mut c_void,
    size: i64,
) -> Result<(), Error> {
    own(&comm(handle)?.buffer).attach(address, size, "MPI_Comm_detach_buffer")
}

/// MPI_Comm_detach_buffer, MPI_Comm_detach_buffer_c.
pub(crate) unsafe fn comm_detach_buffer(
    handle: Comm,
    address: *mut c_void,
    size: Out,
) -> Result<(), Error> {
    let call = WaitingCall::new("MPI_Comm_detach_buffer");
    // SAFETY: `address` is NULL or the address of a pointer, and `size` is NULL or may be written, as MPI requires of the program.
    unsafe { own(&comm(handle)?.buffer).detach(&call, "MPI_Comm_attach_buffer", address, size) }
}

/// MPI_Comm_flush_buffer.
pub(crate) unsafe fn comm_flush_buffer(handle: Comm) -> Result<(), Error> {
    let call = WaitingCall::new("MPI_Comm_flush_buffer");
    own(&comm(handle)?.buffer).flush(&call, "MPI_Comm_attach_buffer")
}

/// MPI_Comm_iflush_buffer.
pub(crate) unsafe fn comm_iflush_buffer(handle: Comm, request: *mut Request) -> Result<(), Error> {
    let comm = comm(handle)?;
    // SAFETY: `request` is NULL or points to room for the result, as MPI requires of the program.
    unsafe {
        own(&comm.buffer).iflush(Belongs::Comm(comm.clone()), "MPI_Comm_attach_buffer", request)
    }
}

/// MPI_Session_attach_buffer, MPI_Session_attach_buffer_c.
pub(crate) unsafe fn session_attach_buffer(
    handle: Session,
    address: *mut c_void,
    size: i64,
) -> Result<(), Error> {
    own(&session(handle)?.buffer).attach(address, size, "MPI_Session_detach_buffer")
}

/// MPI_Session_detach_buffer, MPI_Session_detach_buffer_c.
pub(crate) unsafe fn session_detach_buffer(
    handle: Session,
    address: *mut c_void,
    size: Out,
) -> Result<(), Error> {
    let call = WaitingCall::new("MPI_Session_detach_buffer");
    // SAFETY: `address` is NULL or the address of a pointer, and `size` is NULL or may be written, as MPI requires of the program.
    unsafe {
        own(&session(handle)?.buffer).detach(&call, "MPI_Session_attach_buffer", address, size)
    }
}

/// MPI_Session_flush_buffer.
pub(crate) unsafe fn session_flush_buffer(handle: Session) -> Result<(), Error> {
    let call = WaitingCall::new("MPI_Session_flush_buffer");
    own(&session(handle)?.buffer).flush(&call, "MPI_Session_attach_buffer")
}

/// MPI_Session_iflush_buffer.
pub(crate) unsafe fn session_iflush_buffer(
    handle: Session,
    request: *mut Request,
) -> Result<(), Error> {
    let belongs = Belongs::Session(handle);
    // SAFETY: `request` is NULL or points to room for the result, as MPI requires of the program.
    unsafe { own(&session(handle)?.buffer).iflush(belongs, "MPI_Session_attach_buffer", request) }
}

/// MPI_Bsend, MPI_Bsend_c, MPI_Ibsend, MPI_Ibsend_c, MPI_Bsend_init, MPI_Bsend_init_c.
impl Bsend {
    fn given(self) -> Sent {
        Sent { buf: self.buf, dest: self.dest, tag: self.tag, comm: self.comm }
    }

    pub(crate) fn blocking(self) -> Result<(), Error> {
        let (comm, data, to, tag) = self.given().checked()?;
        send_copy(&comm, &data, to, tag, signature_marks::take())
    }

    /// # Safety
    /// `request` is NULL or may be written.
    pub(crate) unsafe fn nonblocking(self, request: *mut Request) -> Result<(), Error> {
        room_for_request(request)?;
        let (comm, data, to, tag) = self.given().checked()?;
        send_copy(&comm, &data, to, tag, signature_marks::take())?;
        let active = Active::Done(weft_process::Status::default());
        // SAFETY: `start` needs a `request` that is NULL or may be written; the contract of this function says so.
        unsafe { start(request, &comm, active, RequestOrigin::Send) }
    }

    /// # Safety
    /// `request` is NULL or may be written.
    pub(crate) unsafe fn persistent(self, request: *mut Request) -> Result<(), Error> {
        let (comm, data, to, tag) = self.given().checked()?;
        room_for_request(request)?;
        let again = comm.clone();
        let mark = signature_marks::take();
        let recipe = move || {
            send_copy(&again, &data, to, tag, mark)?;
            Ok(Active::Done(weft_process::Status::default()))
        };
        // SAFETY: `persist` needs a `request` that is NULL or may be written; the contract of this function says so.
        unsafe { persist(request, &comm, recipe, RequestOrigin::Send) }
    }
}
