//! The libfabric objects of one process, closed in the right order, and the calls on them.
//!
//! ```text
//!   fabric ── domain ─┬─ address vector ──┐
//!                     ├─ completion queue ┼─ endpoint (reliable datagrams)
//!                     └─ registrations
//! ```

use crate::OfiConnectError;
use crate::access::{LocalPiece, RemoteKey, TransferKind};
use crate::choose::{MR_MODES, NetworkOffer};
use crate::descriptor::{take_signal, to_sleep_on};
use crate::ffi::*;
use crate::library::OfiLibrary;
use crate::provider_facts::{ProviderFacts, buffer, round_trip};
use std::ffi::{CStr, c_int, c_void};
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use weft_fabric::{Fault, Sge};

/// Maximum length of an endpoint's address, in bytes.
const NAME_MAX: usize = 256;

/// All open objects of one endpoint. The library is used as `FI_THREAD_SAFE`, so all threads of the process may call it.
pub struct Libfabric {
    pub library: OfiLibrary,
    pub facts: ProviderFacts,
    fabric: *mut fid_fabric,
    domain: *mut fid_domain,
    av: *mut fid_av,
    cq: *mut fid_cq,
    ep: AtomicPtr<fid_ep>,
    /// Descriptor to poll for completions, or `None` if the provider has none.
    pub wait: Option<RawFd>,
    /// Descriptor that must be polled in addition to `wait`, if there is one.
    pub signal: Option<RawFd>,
}

// SAFETY: the domain was opened with `FI_THREAD_SAFE`, so any thread may use and close the objects.
unsafe impl Send for Libfabric {}
// SAFETY: the domain was opened with `FI_THREAD_SAFE`, so several threads may use the objects at the same time.
unsafe impl Sync for Libfabric {}

/// Returns an error with the details of a call that makes an object, unless the result `error` of the call is 0.
fn made(
    library: &OfiLibrary,
    facts: &ProviderFacts,
    call: &'static str,
    error: c_int,
) -> Result<(), OfiConnectError> {
    if error == 0 {
        return Ok(());
    }
    let whom = format!("{} {}", facts.provider, facts.domain);
    Err(OfiConnectError::Call { call, whom, error: library.explain(error as isize) })
}

/// Returns an address of a peer, padded with zeros, because the provider always reads the length of its own addresses.
fn padded(name: &[u8]) -> [u8; NAME_MAX] {
    let mut whole = [0; NAME_MAX];
    let len = name.len().min(NAME_MAX);
    whole[..len].copy_from_slice(&name[..len]);
    whole
}

impl Libfabric {
    /// Opens the offer `info` of the library. `peers` is the number of addresses that will be inserted.
    ///
    /// # Safety
    /// `info` belongs to a live list that `library` gave.
    pub unsafe fn open(
        library: OfiLibrary,
        offer: &NetworkOffer,
        info: *mut fi_info,
        peers: usize,
    ) -> Result<Libfabric, OfiConnectError> {
        // SAFETY: `info` belongs to a live list (the caller promises it), and libfabric fills the attributes of each element.
        let facts = unsafe {
            let (tx, ep, domain) = (&*(*info).tx_attr, &*(*info).ep_attr, &*(*info).domain_attr);
            ProviderFacts {
                provider: offer.provider.clone(),
                domain: offer.domain.clone(),
                network: offer.network.clone(),
                mr_mode: domain.mr_mode & MR_MODES,
                key_size: domain.mr_key_size,
                inject_max: tx.inject_size,
                buffer: buffer(&offer.provider),
                round_trip: round_trip(&offer.provider),
                transfer_max: ep.max_msg_size.min(1 << 30),
                sends_follow_writes: tx.msg_order & FI_ORDER_SAW != 0,
            }
        };
        let mut objects = Libfabric {
            library,
            facts,
            fabric: ptr::null_mut(),
            domain: ptr::null_mut(),
            av: ptr::null_mut(),
            cq: ptr::null_mut(),
            ep: AtomicPtr::new(ptr::null_mut()),
            wait: None,
            signal: None,
        };
        // SAFETY: `make` needs an `info` of a live list, which the caller promises. The objects that it makes go to `objects`,
        // which closes them.
        unsafe { objects.make(info, peers)? };
        Ok(objects)
    }

    /// # Safety
    /// `info` belongs to a live list that the library gave.
    unsafe fn make(&mut self, info: *mut fi_info, peers: usize) -> Result<(), OfiConnectError> {
        let (library, none) = (self.library, ptr::null_mut());
        // SAFETY: each call gets an object that an earlier call made, with attributes that live through the call.
        unsafe {
            let error = (library.fabric)((*info).fabric_attr.cast(), &mut self.fabric, none);
            made(&library, &self.facts, "fi_fabric", error)?;
            let fabric = self.fabric;
            let error = ((*(*fabric).ops).domain)(fabric, info, &mut self.domain, none);
            made(&library, &self.facts, "fi_domain", error)?;
            let (domain, ops) = (self.domain, &*(*self.domain).ops);
            let mut attributes = fi_av_attr {
                kind: FI_AV_TABLE,
                rx_ctx_bits: 0,
                count: peers,
                ep_per_node: 0,
                name: ptr::null(),
                map_addr: none,
                flags: 0,
            };
            let error = (ops.av_open)(domain, &mut attributes, &mut self.av, none);
            made(&library, &self.facts, "fi_av_open", error)?;
            self.open_cq(ops)?;
            let error = (ops.endpoint)(domain, info, self.ep.get_mut(), none);
            made(&library, &self.facts, "fi_endpoint", error)?;
            let own = &raw mut (*self.ep()).fid;
            let ep = &*(*own).ops;
            let error = (ep.bind)(own, &raw mut (*self.av).fid, 0);
            made(&library, &self.facts, "fi_ep_bind", error)?;
            let error = (ep.bind)(own, &raw mut (*self.cq).fid, FI_TRANSMIT | FI_RECV);
            made(&library, &self.facts, "fi_ep_bind", error)?;
            let error = (ep.control)(own, FI_ENABLE, none);
            made(&library, &self.facts, "fi_enable", error)?;
            self.signal = self.wait.and_then(|fd| take_signal(&self.facts.provider, fd));
            self.wait = self.wait.map(|fd| to_sleep_on(&self.facts.provider, fd));
            Ok(())
        }
    }

    /// Opens the completion queue, with a descriptor to sleep on if the provider has one.
    ///
    /// # Safety
    /// The domain is open, and `ops` are its functions.
    unsafe fn open_cq(&mut self, ops: &fi_ops_domain) -> Result<(), OfiConnectError> {
        let mut error = 0;
        for wait_obj in [FI_WAIT_FD, FI_WAIT_NONE] {
            let mut attributes = fi_cq_attr {
                size: 0,
                flags: 0,
                format: FI_CQ_FORMAT_MSG,
                wait_obj,
                signaling_vector: 0,
                wait_cond: 0,
                wait_set: ptr::null_mut(),
            };
            // SAFETY: `cq_open` needs an open domain, which the caller promises, and attributes that live through the call.
            error = unsafe {
                (ops.cq_open)(self.domain, &mut attributes, &mut self.cq, ptr::null_mut())
            };
            if error != 0 {
                continue;
            }
            let mut fd: c_int = -1;
            // SAFETY: the queue has just been made, and `FI_GETWAIT` writes one `int` to `fd`.
            let got = wait_obj == FI_WAIT_FD
                && unsafe {
                    let own = &raw mut (*self.cq).fid;
                    ((*(*own).ops).control)(own, FI_GETWAIT, (&raw mut fd).cast()) == 0
                };
            self.wait = (got && fd >= 0).then_some(fd);
            return Ok(());
        }
        made(&self.library, &self.facts, "fi_cq_open", error)
    }

    /// Returns the endpoint, which is open until [`Libfabric::shut`].
    #[inline]
    fn ep(&self) -> *mut fid_ep {
        self.ep.load(Ordering::Relaxed)
    }

    /// Closes the endpoint. Posted buffers and the contexts of operations under way belong to their owner again.
    pub fn shut(&self) {
        let ep = self.ep.swap(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: `close` needs an open object that nobody uses any more. The swap makes this the only close, and the caller posts
        // no more.
        unsafe { close(ep.cast()) };
    }

    /// Returns the address of this process's endpoint.
    pub fn name(&self) -> Result<Vec<u8>, OfiConnectError> {
        let mut name = vec![0u8; NAME_MAX];
        let mut len = name.len();
        // SAFETY: the endpoint is open. `fi_getname` writes at most `len` bytes to `name`, which has that length.
        let error = unsafe {
            let own = &raw mut (*self.ep()).fid;
            ((*(*self.ep()).cm).getname)(own, name.as_mut_ptr().cast(), &mut len)
        };
        made(&self.library, &self.facts, "fi_getname", error)?;
        name.truncate(len);
        Ok(name)
    }

    /// Adds the address of a process, and returns the provider's number for this address.
    pub fn insert(&self, name: &[u8]) -> Result<u64, OfiConnectError> {
        let mut number = u64::MAX;
        let whole = padded(name);
        // SAFETY: the address vector is open. `fi_av_insert` reads one address from `whole`, which has the maximum length, and
        // writes one number.
        let count = unsafe {
            ((*(*self.av).ops).insert)(
                self.av,
                whole.as_ptr().cast(),
                1,
                &mut number,
                0,
                ptr::null_mut(),
            )
        };
        if count == 1 {
            return Ok(number);
        }
        made(
            &self.library,
            &self.facts,
            "fi_av_insert",
            if count < 0 { count } else { -libc::EINVAL },
        )?;
        Ok(number)
    }

    /// Returns an address in readable form.
    pub fn show(&self, name: &[u8]) -> String {
        let whole = padded(name);
        let mut text = [0u8; NAME_MAX];
        let mut len = text.len() - 1;
        // SAFETY: the address vector is open. `fi_av_straddr` writes at most `len` bytes to `text`, whose last byte stays zero.
        unsafe {
            ((*(*self.av).ops).straddr)(
                self.av,
                whole.as_ptr().cast(),
                text.as_mut_ptr().cast(),
                &mut len,
            )
        };
        let text = CStr::from_bytes_until_nul(&text).unwrap_or_default().to_string_lossy();
        text.split_once("://").map_or(&*text, |(_, address)| address).to_owned()
    }

    /// Registers memory for the operations in `access`. `key` is used only if this process chooses the keys.
    ///
    /// # Safety
    /// The memory stays mapped until the registration is closed.
    pub unsafe fn register(
        &self,
        at: *mut u8,
        len: usize,
        access: u64,
        key: u64,
    ) -> Result<Registered, Fault> {
        let mut mr = ptr::null_mut();
        // SAFETY: `fi_mr_reg` needs an open domain, and memory that stays mapped until the registration is closed. The caller
        // promises the latter.
        let error = unsafe {
            let domain = self.domain;
            let own = &raw mut (*domain).fid;
            ((*(*domain).mr).reg)(own, at.cast(), len, access, 0, key, 0, &mut mr, ptr::null_mut())
        };
        if error != 0 {
            return Err(Fault::system("registering memory with libfabric", error.wrapping_neg()));
        }
        let registration = Registered { mr };
        if self.facts.has(FI_MR_ENDPOINT) {
            // SAFETY: the registration was just made and the endpoint is open.
            let error = unsafe {
                let own = &raw mut (*mr).fid;
                let ops = &*(*own).ops;
                match (ops.bind)(own, &raw mut (*self.ep()).fid, 0) {
                    0 => (ops.control)(own, FI_ENABLE, ptr::null_mut()),
                    error => error,
                }
            };
            if error != 0 {
                return Err(Fault::system("binding memory to an endpoint", error.wrapping_neg()));
            }
        }
        Ok(registration)
    }

    /// Returns true if a sleep on the descriptor is safe now: nothing has come, and the next arrival or completion makes the
    /// descriptor readable.
    pub fn may_sleep(&self) -> bool {
        // SAFETY: the fabric and the queue are open, and the array has one element, which is the count that the call gets.
        unsafe {
            let mut own = &raw mut (*self.cq).fid;
            ((*(*self.fabric).ops).trywait)(self.fabric, &mut own, 1) == 0
        }
    }

    /// Posts a message whose bytes are copied during the call. Returns the result of the library.
    ///
    /// # Safety
    /// The bytes may be read during the call.
    #[inline]
    pub unsafe fn inject(&self, to: u64, message: Sge) -> isize {
        let ep = self.ep();
        // SAFETY: the endpoint is open. `fi_inject` copies the bytes before it returns, and the caller promises that they may be
        // read.
        unsafe { ((*(*ep).msg).inject)(ep, message.ptr().cast_const().cast(), message.len(), to) }
    }

    /// Posts a message. Returns the result of the library.
    ///
    /// # Safety
    /// The memory of the message stays as it is until the operation with `context` is complete, and `descriptor` belongs to its
    /// registration.
    #[inline]
    pub unsafe fn send(
        &self,
        to: u64,
        message: Sge,
        descriptor: *mut c_void,
        context: *mut c_void,
    ) -> isize {
        let (ep, at) = (self.ep(), message.ptr().cast_const().cast());
        // SAFETY: the endpoint is open. `fi_send` needs memory that stays as it is until the operation is complete, and its
        // descriptor: the caller promises both.
        unsafe { ((*(*ep).msg).send)(ep, at, message.len(), descriptor, to, context) }
    }

    /// Posts a buffer for the next message. Returns the result of the library.
    ///
    /// # Safety
    /// The buffer is not touched until the operation with `context` is complete, and `descriptor` belongs to its registration.
    pub unsafe fn post(&self, buffer: Sge, descriptor: *mut c_void, context: *mut c_void) -> isize {
        let (ep, any) = (self.ep(), u64::MAX);
        // SAFETY: the endpoint is open. `fi_recv` needs a buffer that is not touched until the operation is complete, and its
        // descriptor: the caller promises both.
        unsafe {
            ((*(*ep).msg).recv)(ep, buffer.ptr().cast(), buffer.len(), descriptor, any, context)
        }
    }

    /// Posts a write from `local` to the peer's memory at `remote`, or a read from there into `local`. Returns the library's
    /// result.
    ///
    /// # Safety
    /// The local memory lives until the operation with `context` is complete. If the provider needs a descriptor, the
    /// descriptor in `local` belongs to the registration of the local memory.
    pub unsafe fn transfer(
        &self,
        to: u64,
        access: TransferKind,
        local: LocalPiece,
        remote: RemoteKey,
        context: *mut c_void,
    ) -> isize {
        let ep = self.ep();
        let LocalPiece { memory: local, descriptor } = local;
        let RemoteKey { at, key } = remote;
        let (ptr, len) = (local.ptr(), local.len());
        if access == TransferKind::Read {
            // SAFETY: the endpoint is open. `fi_read` needs local memory that lives until the operation is complete, and its
            // descriptor: the caller promises both.
            return unsafe {
                ((*(*ep).rma).read)(ep, ptr.cast(), len, descriptor, to, at, key, context)
            };
        }
        let iov = libc::iovec { iov_base: ptr.cast(), iov_len: len };
        let rma = fi_rma_iov { addr: at, len, key };
        let mut descriptor = descriptor;
        let message = fi_msg_rma {
            msg_iov: &iov,
            desc: &mut descriptor,
            iov_count: 1,
            addr: to,
            rma_iov: &rma,
            rma_iov_count: 1,
            context,
            data: 0,
        };
        // SAFETY: the endpoint is open. `fi_writemsg` copies `message` during the call, and the caller promises that the local
        // memory lives until the operation is complete.
        unsafe { ((*(*ep).rma).writemsg)(ep, &message, FI_DELIVERY_COMPLETE) }
    }

    /// Takes completed operations. Returns the result of the library.
    #[inline]
    pub fn take(&self, entries: &mut [fi_cq_msg_entry]) -> isize {
        let cq = self.cq;
        // SAFETY: the queue is open. `fi_cq_read` writes at most `entries.len()` entries, in the format with which the queue was
        // opened.
        unsafe { ((*(*cq).ops).read)(cq, entries.as_mut_ptr().cast(), entries.len()) }
    }

    /// Takes the error at the head of the completion queue. Returns the context of the operation and the reason.
    pub fn take_failed(&self) -> Option<(*mut c_void, String)> {
        // SAFETY: all fields are integers and raw pointers, for which zero is a valid value.
        let mut entry: fi_cq_err_entry = unsafe { std::mem::zeroed() };
        let cq = self.cq;
        // SAFETY: the queue is open, and `fi_cq_readerr` writes one entry.
        let count = unsafe { ((*(*cq).ops).readerr)(cq, &mut entry, 0) };
        (count > 0).then(|| (entry.op_context, self.explain(&entry)))
    }

    /// Returns the provider's text for one of its own errors.
    fn explain(&self, entry: &fi_cq_err_entry) -> String {
        let general = self.library.explain(entry.err as isize);
        let mut text = [0u8; 256];
        // SAFETY: the queue is open. `fi_cq_strerror` writes at most `len` bytes to `text`, whose last byte stays zero.
        let own = unsafe {
            let ops = &*(*self.cq).ops;
            let (to, len) = (text.as_mut_ptr().cast(), text.len() - 1);
            (ops.strerror)(self.cq, entry.prov_errno, entry.err_data, to, len)
        };
        if own.is_null() {
            return general;
        }
        // SAFETY: `own` is not null (checked above), and libfabric's texts end with a zero byte.
        let own = unsafe { CStr::from_ptr(own) }.to_string_lossy();
        if own.is_empty() || own == general { general } else { format!("{general} ({own})") }
    }
}

/// Closes an object, if there is one.
///
/// # Safety
/// The object is open, nobody uses it any more, and all objects made from it are closed. It begins with its `fid`.
unsafe fn close(object: *mut fid) {
    if !object.is_null() {
        // SAFETY: the object is open, and the caller gives it up. An object that cannot be closed stays until the process ends.
        unsafe { ((*(*object).ops).close)(object) };
    }
}

impl Drop for Libfabric {
    fn drop(&mut self) {
        self.shut();
        // SAFETY: each object is closed once, after the objects that were made from it, and begins with its `fid`.
        unsafe {
            close(self.cq.cast());
            close(self.av.cast());
            close(self.domain.cast());
            close(self.fabric.cast());
        }
    }
}

/// Registered memory.
pub struct Registered {
    mr: *mut fid_mr,
}

impl Registered {
    /// Returns the descriptor by which local operations name the memory.
    pub fn descriptor(&self) -> *mut c_void {
        // SAFETY: `mr` is open until this is dropped.
        unsafe { (*self.mr).mem_desc }
    }

    /// Returns the key by which peers name the memory.
    pub fn key(&self) -> u64 {
        // SAFETY: `mr` is open until this is dropped.
        unsafe { (*self.mr).key }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // SAFETY: the registration is closed once. Its owner drops it only after the operations that use it are complete.
        unsafe { close(self.mr.cast()) };
    }
}
