//! Objects of libibverbs, and the calls on them. An object is destroyed when its owner is dropped.

use crate::VerbsConnectError;
use crate::adapter::calls::{done, made};
use crate::adapter::device::DeviceContext;
use crate::ffi::*;
use std::ffi::c_int;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// An object and its destructor. An object must be dropped before the objects from which it was made: for example, a queue pair
/// before its completion queues.
pub struct Owned<T> {
    raw: NonNull<T>,
    destroy: unsafe extern "C" fn(*mut T) -> c_int,
    pub context: Arc<DeviceContext>,
}

// SAFETY: `Send` needs an object that any thread may use: libibverbs is thread-safe.
unsafe impl<T> Send for Owned<T> {}
// SAFETY: `Sync` needs calls from several threads at the same time: libibverbs is thread-safe.
unsafe impl<T> Sync for Owned<T> {}

impl<T> Owned<T> {
    fn new(
        raw: *mut T,
        destroy: unsafe extern "C" fn(*mut T) -> c_int,
        context: &Arc<DeviceContext>,
        what: &'static str,
    ) -> Result<Owned<T>, VerbsConnectError> {
        match NonNull::new(raw) {
            Some(raw) => Ok(Owned { raw, destroy, context: context.clone() }),
            None => Err(VerbsConnectError::last(what, &context.name)),
        }
    }

    pub fn raw(&self) -> *mut T {
        self.raw.as_ptr()
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: `destroy` needs a live object without dependents, once: the library made it, and objects made from it are
        // dropped before it.
        unsafe { (self.destroy)(self.raw()) };
    }
}

pub type Domain = Owned<ibv_pd>;
pub type CompletionChannel = Owned<ibv_comp_channel>;
pub type CompletionQueue = Owned<ibv_cq>;
pub type SharedQueue = Owned<ibv_srq>;
pub type QueuePair = Owned<ibv_qp>;
pub type RegisteredMemory = Owned<ibv_mr>;
pub type Handle = Owned<ibv_ah>;

pub fn domain(context: &Arc<DeviceContext>) -> Result<Domain, VerbsConnectError> {
    // SAFETY: `ibv_alloc_pd` needs an open context: `context` holds it open.
    let raw = made(|| unsafe { (context.library.ibv_alloc_pd)(context.raw()) });
    Owned::new(raw, context.library.ibv_dealloc_pd, context, "making a protection domain")
}

/// Makes a completion channel whose descriptor does not block.
pub fn channel(context: &Arc<DeviceContext>) -> Result<CompletionChannel, VerbsConnectError> {
    // SAFETY: `ibv_create_comp_channel` needs an open context: `context` holds it open.
    let raw = made(|| unsafe { (context.library.ibv_create_comp_channel)(context.raw()) });
    let destroy = context.library.ibv_destroy_comp_channel;
    let channel = Owned::new(raw, destroy, context, "making a completion channel")?;
    for fd in [channel.fd(), context.async_fd()] {
        // SAFETY: `fcntl` needs an open descriptor: the channel and the context are open.
        let failed = unsafe {
            let flags = libc::fcntl(fd, libc::F_GETFL);
            flags < 0 || libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) < 0
        };
        if failed {
            return Err(VerbsConnectError::last("setting up a completion channel", &context.name));
        }
    }
    Ok(channel)
}

impl CompletionChannel {
    pub fn fd(&self) -> c_int {
        // SAFETY: the read needs a live channel: it lives until `self` is dropped.
        unsafe { (*self.raw()).fd }
    }

    /// Takes all pending events. Afterwards the descriptor is not readable any more. Returns true if there were events.
    pub fn drain(&self) -> bool {
        let library = &self.context.library;
        let mut any = false;
        loop {
            let (mut queue, mut token) = (ptr::null_mut(), ptr::null_mut());
            // SAFETY: `ibv_get_cq_event` needs a live channel, whose descriptor does not block, and places for the results.
            if unsafe { (library.ibv_get_cq_event)(self.raw(), &mut queue, &mut token) } != 0 {
                return any;
            }
            // SAFETY: `ibv_ack_cq_events` needs the live queue of the event: it is a queue of this channel, and lives as long
            // as the channel.
            unsafe { (library.ibv_ack_cq_events)(queue, 1) };
            any = true;
        }
    }
}

pub fn completion_queue(
    context: &Arc<DeviceContext>,
    channel: &CompletionChannel,
    entries: usize,
) -> Result<CompletionQueue, VerbsConnectError> {
    let entries = entries.min(context.attributes.max_cqe.max(1) as usize) as c_int;
    // SAFETY: `ibv_create_cq` needs an open context and a channel of this context.
    let raw = made(|| unsafe {
        let create = context.library.ibv_create_cq;
        create(context.raw(), entries, ptr::null_mut(), channel.raw(), 0)
    });
    Owned::new(raw, context.library.ibv_destroy_cq, context, "making a completion queue")
}

/// Kind of completion for which a queue raises an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArmFor {
    Any,
    Solicited,
}

/// Maximum number of completions that one poll takes.
pub const BATCH: usize = 16;

impl CompletionQueue {
    /// Takes at most [`BATCH`] completions that have arrived. Returns the number of completions.
    #[inline]
    pub fn poll(&self, into: &mut [ibv_wc; BATCH]) -> usize {
        // SAFETY: `poll_cq` needs a live queue, and room for `BATCH` completions: `into` has it.
        let n =
            unsafe { (self.context.table.poll_cq)(self.raw(), BATCH as c_int, into.as_mut_ptr()) };
        n.clamp(0, BATCH as c_int) as usize
    }

    /// Arms the queue: requests one event, at the next completion or at the next solicited completion.
    pub fn arm(&self, wanted: ArmFor) {
        // SAFETY: `req_notify_cq` needs a live queue. After a failure, the sleeper wakes by its time limit only.
        unsafe {
            (self.context.table.req_notify_cq)(self.raw(), (wanted == ArmFor::Solicited).into())
        };
    }
}

pub fn shared_queue(domain: &Domain, requests: usize) -> Result<SharedQueue, VerbsConnectError> {
    let attr = ibv_srq_attr { max_wr: requests as u32, max_sge: 1, srq_limit: 0 };
    let mut init = ibv_srq_init_attr { srq_context: ptr::null_mut(), attr };
    let context = &domain.context;
    // SAFETY: `ibv_create_srq` needs a live domain and valid attributes.
    let raw = made(|| unsafe { (context.library.ibv_create_srq)(domain.raw(), &mut init) });
    Owned::new(raw, context.library.ibv_destroy_srq, context, "making a shared receive queue")
}

/// Objects from which a queue pair is made.
pub struct QueuePairParts<'e> {
    pub domain: &'e Domain,
    pub send: &'e CompletionQueue,
    pub receive: &'e CompletionQueue,
    pub shared: Option<&'e SharedQueue>,
}

/// Makes a queue pair and writes its actual sizes to `cap`. If the adapter refuses the requested inline size, tries smaller sizes.
pub fn queue_pair(
    ends: &QueuePairParts,
    kind: c_int,
    cap: &mut ibv_qp_cap,
) -> Result<QueuePair, VerbsConnectError> {
    let context = &ends.domain.context;
    let wanted = cap.max_inline_data;
    let mut raw = ptr::null_mut();
    for inline in [wanted, wanted / 2, 0] {
        let mut init = ibv_qp_init_attr {
            qp_context: ptr::null_mut(),
            send_cq: ends.send.raw(),
            recv_cq: ends.receive.raw(),
            srq: ends.shared.map_or(ptr::null_mut(), |shared| shared.raw()),
            cap: ibv_qp_cap { max_inline_data: inline, ..*cap },
            qp_type: kind,
            sq_sig_all: 0,
        };
        // SAFETY: `ibv_create_qp` needs live objects of one device, and valid attributes: `ends` borrows the objects.
        raw = made(|| unsafe { (context.library.ibv_create_qp)(ends.domain.raw(), &mut init) });
        if !raw.is_null() {
            *cap = init.cap;
            break;
        }
    }
    Owned::new(raw, context.library.ibv_destroy_qp, context, "making a queue pair")
}

impl QueuePair {
    pub fn number(&self) -> u32 {
        // SAFETY: the read needs a live queue pair: it lives until `self` is dropped.
        unsafe { (*self.raw()).qp_num }
    }

    /// Changes the state, and the attributes that `mask` selects.
    pub fn modify(&self, attributes: &mut ibv_qp_attr, mask: c_int) -> io::Result<()> {
        // SAFETY: `modify_qp` needs a live queue pair, and valid attributes.
        done(|| unsafe { (self.context.table.modify_qp)(self.raw(), attributes, mask) })
    }
}

/// Registers memory, so that remote address `start + i` is byte `i`.
///
/// # Safety
/// The memory stays mapped until the registration is dropped.
pub unsafe fn register(
    domain: &Domain,
    start: *mut u8,
    len: usize,
    access: c_int,
) -> io::Result<RegisteredMemory> {
    let context = &domain.context;
    let register = context.library.ibv_reg_mr;
    // SAFETY: ibv_reg_mr needs a live domain, and memory that stays mapped. The caller promises the latter.
    let raw = made(|| unsafe { register(domain.raw(), start.cast(), len, access) });
    match NonNull::new(raw) {
        Some(raw) => {
            let destroy = context.library.ibv_dereg_mr;
            Ok(Owned { raw, destroy, context: context.clone() })
        }
        None => Err(io::Error::last_os_error()),
    }
}

impl RegisteredMemory {
    pub fn lkey(&self) -> u32 {
        // SAFETY: the read needs a live registration: it lives until `self` is dropped.
        unsafe { (*self.raw()).lkey }
    }

    pub fn rkey(&self) -> u32 {
        // SAFETY: the read needs a live registration: it lives until `self` is dropped.
        unsafe { (*self.raw()).rkey }
    }
}

/// Makes an address handle for datagrams. An address handle contains the path to an address.
pub fn handle(domain: &Domain, attributes: &mut ibv_ah_attr) -> Result<Handle, VerbsConnectError> {
    let context = &domain.context;
    // SAFETY: `create_ah` needs a live domain and valid attributes.
    let raw = made(|| unsafe { (context.table.create_ah)(domain.raw(), attributes) });
    Owned::new(raw, context.library.ibv_destroy_ah, context, "resolving an address")
}
