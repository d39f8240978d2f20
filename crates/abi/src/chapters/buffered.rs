//! Buffered sends (MPI 5.0, section 3.6): the message is copied, its room charged to the attached
//! buffer.

use crate::arguments::{BUF, buffer, comm, destination, not_null, tag};
use crate::chapters::messages::persist;
use crate::constants::*;
use crate::error::Error;
use crate::objects::{RequestKind, RequestObject};
use crate::state::{running, state};
use crate::types::{Comm, Datatype, Request};
use crate::waiting::Call;
use crate::widen::Out;
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use weft_fabric::{Sge, Staging};
use weft_p2p::Mode;
use weft_process::{Active, Buffer};

/// The attached buffer: its memory is the program's and is only counted; copies lie elsewhere.
#[derive(Default)]
pub struct Attached {
    address: usize,
    size: Option<u64>,
    used: u64,
    sends: Vec<Copy>,
}

struct Copy {
    active: Active,
    charged: u64,
    _memory: Staging,
}

pub(crate) unsafe fn buffer_attach(address: *mut c_void, size: i64) -> Result<(), Error> {
    let mut attached = running()?.buffer.borrow_mut();
    if attached.size.is_some() {
        let text = "a buffer is attached already: MPI_Buffer_detach first";
        return Err(Error::new(MPI_ERR_BUFFER, text));
    }
    let Ok(size) = u64::try_from(size) else {
        let text = format!("argument size = {size} is negative");
        return Err(Error::new(MPI_ERR_ARG, text));
    };
    attached.address = address.addr();
    attached.size = Some(if address.addr() == MPI_BUFFER_AUTOMATIC { u64::MAX } else { size });
    Ok(())
}

pub(crate) unsafe fn buffer_detach(address: *mut c_void, size: Out) -> Result<(), Error> {
    let state = running()?;
    drain(&Call::new("MPI_Buffer_detach"))?;
    let mut attached = state.buffer.borrow_mut();
    let Some(bytes) = attached.size.take() else {
        return Err(Error::new(MPI_ERR_BUFFER, "no buffer is attached"));
    };
    not_null(address, "buffer_addr")?;
    let automatic = attached.address == MPI_BUFFER_AUTOMATIC;
    // SAFETY: the argument is the address of a pointer (MPI 5.0, section 3.6.1).
    unsafe {
        address
            .cast::<*mut c_void>()
            .write(std::ptr::with_exposed_provenance_mut(attached.address));
        if !size.is_null() {
            size.set(if automatic { 0 } else { bytes as i64 });
        }
    }
    Ok(())
}

pub(crate) unsafe fn buffer_flush() -> Result<(), Error> {
    running()?;
    drain(&Call::new("MPI_Buffer_flush"))
}

/// Waits until all buffered messages have left.
pub fn drain(call: &Call) -> Result<(), Error> {
    let state = state();
    let Some(engine) = state.engine.get() else { return Ok(()) };
    let fault = engine.drive(call, || {
        settle();
        let empty = state.buffer.borrow().sends.is_empty();
        match engine.endpoint().fault() {
            Some(fault) => Some(Some(fault)),
            None => empty.then_some(None),
        }
    });
    fault.map_or(Ok(()), |f| Err(f.into()))
}

/// Frees the room of messages that have left.
fn settle() {
    let state = state();
    let Some(engine) = state.engine.get() else { return };
    let attached = &mut *state.buffer.borrow_mut();
    let used = &mut attached.used;
    attached.sends.retain_mut(|copy| {
        let over = copy.active.poll(engine.endpoint()).is_some();
        if over {
            *used -= copy.charged;
        }
        !over
    });
}

/// Copies a message and starts to send it.
pub fn send_copy(
    comm: &Rc<crate::node::CommObject>,
    data: &Buffer,
    to: weft_process::Destination,
    tag: i32,
) -> Result<(), Error> {
    if to == weft_process::Destination::Nobody {
        return Ok(());
    }
    settle();
    let charged = data.len() as u64 + MPI_BSEND_OVERHEAD as u64;
    let state = state();
    let (size, used) = {
        let attached = state.buffer.borrow();
        (attached.size.unwrap_or(0), attached.used)
    };
    if charged > size - used.min(size) {
        let text = format!(
            "a message of {} bytes needs {charged} bytes of buffer, of {size} attached {used} are \
             in use: attach a larger one with MPI_Buffer_attach",
            data.len()
        );
        return Err(Error::new(MPI_ERR_BUFFER, text));
    }
    let memory = comm.engine().endpoint().staging().take(data.len());
    data.pack_to(memory.sge());
    let bytes: Sge = memory.sge();
    let packed = crate::state::state().predefined_types[MPI_BYTE.0 - MPI_DATATYPE_NULL.0].clone();
    let ty = packed.expect("MPI_BYTE is predefined").ty.clone();
    // SAFETY: the copy owns the memory until the send is over.
    let copy = unsafe { Buffer::new(bytes.ptr(), bytes.len(), ty) };
    let active = comm.isend(&copy, to, tag, Mode::Standard);
    if !matches!(active, Active::Done(_)) {
        let attached = &mut *state.buffer.borrow_mut();
        attached.used += charged;
        attached.sends.push(Copy { active, charged, _memory: memory });
    }
    Ok(())
}

pub(crate) unsafe fn bsend(
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
    dest: c_int,
    tag_: c_int,
    handle: Comm,
) -> Result<(), Error> {
    let comm = comm(handle)?;
    let to = destination(&comm, dest, "dest")?;
    // SAFETY: the caller's buffer is read before this returns.
    let data = unsafe { buffer(buf, count, datatype, BUF) }?;
    send_copy(&comm, &data, to, tag(tag_, "tag")?)
}

pub(crate) unsafe fn ibsend(
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
    dest: c_int,
    tag_: c_int,
    handle: Comm,
    request: *mut Request,
) -> Result<(), Error> {
    // SAFETY: the caller's arguments.
    unsafe {
        not_null(request, "request")?;
        bsend(buf, count, datatype, dest, tag_, handle)?;
        let object = RequestObject {
            active: Some(Active::Done(weft_process::Status::default())),
            recipe: None,
            comm: Some(comm(handle)?),
            kind: RequestKind::Send,
        };
        request.write(Request(state().requests.borrow_mut().insert(object)));
    }
    Ok(())
}

pub(crate) unsafe fn bsend_init(
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
    dest: c_int,
    tag_: c_int,
    handle: Comm,
    request: *mut Request,
) -> Result<(), Error> {
    let comm = comm(handle)?;
    let to = destination(&comm, dest, "dest")?;
    let tag = tag(tag_, "tag")?;
    not_null(request, "request")?;
    // SAFETY: the caller's buffer stays while the request is active.
    unsafe {
        let data = buffer(buf, count, datatype, BUF)?;
        let again = comm.clone();
        let recipe = move || {
            send_copy(&again, &data, to, tag)?;
            Ok(Active::Done(weft_process::Status::default()))
        };
        persist(request, &comm, recipe, RequestKind::Send)
    }
}
