//! Objects that a process has open on one interface: an endpoint of libfabric, or an endpoint of the built-in TCP.

use crate::OfiConnectError;
use crate::access::{LocalPiece, PollingThread, RemoteKey, TransferKind};
use crate::choose::{Offers, ProviderSource};
use crate::connection_state::{ConnectionState, KeepaliveTimes};
use crate::ffi::*;
use crate::libfabric::{Libfabric, Registered};
use crate::provider_facts::ProviderFacts;
use crate::tcp::{self, Detour, Tcp};
use std::ffi::c_void;
use std::io;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::Arc;
use weft_fabric::{Fault, Sge};

/// An open endpoint with all objects that belong to it. All threads of the process may call it.
pub struct Objects {
    pub facts: ProviderFacts,
    kind: Kind,
}

enum Kind {
    Libfabric(Box<Libfabric>),
    Tcp(Arc<Tcp>),
}

/// Forms in which an endpoint accepts messages.
pub enum MessageSupport<'o> {
    /// As one piece, in a buffer.
    Pieces(&'o Libfabric),
    /// In parts, which are copied during the call.
    Parts(&'o Tcp),
}

/// Result of a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollOutcome {
    /// Number of operations that are complete.
    Over(usize),
    /// No operation is complete, but bytes have moved.
    Moved,
    Nothing,
    /// An operation has failed. [`Objects::take_failed`] returns it.
    Failed,
    /// The poll itself has failed with this error.
    Broken(isize),
}

/// Reason for the loss of a peer that sends bytes which this library never sends.
const NONSENSE: &str = "what it sends makes no sense";

/// Explains likely causes for the loss of a peer by `reason`. `silent` is the number of seconds for which the peer was silent.
pub fn advice(reason: &str, silent: u64) -> String {
    if reason == NONSENSE {
        return "another program or another version of this library speaks there, or memory is damaged".to_owned();
    }
    format!(
        "nothing came from it for {silent} s: the process or its host has ended, a cable is out, a firewall drops what is sent, \
         or nothing leads there from this interface (WEFT_OFI_INTERFACES names another)"
    )
}

fn text(error: i32) -> String {
    match error {
        libc::ECONNRESET => "it has ended the connection".to_owned(),
        libc::ECONNREFUSED => "it refuses connections".to_owned(),
        libc::ETIMEDOUT => "it does not answer, or does not acknowledge what is sent".to_owned(),
        libc::EACCES => "the peer knows no such memory".to_owned(),
        libc::EPROTO => NONSENSE.to_owned(),
        error => weft_bootstrap::limits::explain(&io::Error::from_raw_os_error(error)).to_string(),
    }
}

impl Objects {
    /// Opens the first of the offers at `places`. The built-in TCP listens at all of them. `peers` is the number of addresses that
    /// will be inserted.
    pub fn open(
        offers: &Offers,
        places: &[usize],
        times: KeepaliveTimes,
        peers: usize,
    ) -> Result<Objects, OfiConnectError> {
        let offer = &offers.list[places[0]];
        match (&offer.how, offers.library) {
            (ProviderSource::BuiltIn(interface), _) => {
                let facts = ProviderFacts::built_in(interface);
                let all = places.iter().filter_map(|&place| match &offers.list[place].how {
                    ProviderSource::BuiltIn(interface) => Some(interface.clone()),
                    ProviderSource::Library(_) => None,
                });
                let tcp =
                    Tcp::open(all.collect(), times).map_err(|error| OfiConnectError::Call {
                        call: "listening",
                        whom: offer.name(),
                        error: weft_bootstrap::limits::explain(&error).to_string(),
                    })?;
                Ok(Objects { facts, kind: Kind::Tcp(Arc::new(tcp)) })
            }
            (&ProviderSource::Library(info), Some(library)) => {
                // SAFETY: `Libfabric::open` needs an `info` of a live list: it belongs to the library's list, which `offers` keeps.
                let open = unsafe { Libfabric::open(library, offer, info, peers)? };
                Ok(Objects { facts: open.facts.clone(), kind: Kind::Libfabric(Box::new(open)) })
            }
            (ProviderSource::Library(_), None) => {
                unreachable!("offered by a library that is not there")
            }
        }
    }

    /// Returns the library's version, or `None` if the library is not used.
    pub fn version(&self) -> Option<String> {
        match &self.kind {
            Kind::Libfabric(open) => Some(open.library.version()),
            Kind::Tcp(_) => None,
        }
    }

    /// Lets processes that know the secret of the job connect. Has an effect only if the provider checks the secret when a
    /// process connects.
    pub fn let_in(&self, secret: u128) {
        if let Kind::Tcp(tcp) = &self.kind {
            tcp.let_in(secret);
        }
    }

    /// Returns true if the provider reports at once that a peer has ended its connection.
    pub fn sees_ends(&self) -> bool {
        matches!(self.kind, Kind::Tcp(_))
    }

    /// Returns the descriptor to poll for completions, or `None` if the provider has none.
    pub fn wait(&self) -> Option<RawFd> {
        match &self.kind {
            Kind::Libfabric(open) => open.wait,
            Kind::Tcp(tcp) => Some(tcp.wait()),
        }
    }

    /// Returns the descriptor that must be polled in addition to [`Objects::wait`], if there is one.
    pub fn signal(&self) -> Option<RawFd> {
        match &self.kind {
            Kind::Libfabric(open) => open.signal,
            Kind::Tcp(_) => None,
        }
    }

    /// Closes the endpoint. Posted buffers and the contexts of operations under way belong to their owner again.
    pub fn shut(&self) {
        match &self.kind {
            Kind::Libfabric(open) => open.shut(),
            Kind::Tcp(tcp) => tcp.shut(),
        }
    }

    /// Returns the address of this process's endpoint.
    pub fn name(&self) -> Result<Vec<u8>, OfiConnectError> {
        match &self.kind {
            Kind::Libfabric(open) => open.name(),
            Kind::Tcp(tcp) => Ok(tcp::encode_names(tcp.names())),
        }
    }

    /// Makes the address of a process known and returns its number on this endpoint. `secret` is for processes of other jobs: a
    /// secret that only this process and the other process know.
    pub fn insert(&self, name: &[u8], secret: Option<u128>) -> Result<u64, OfiConnectError> {
        match &self.kind {
            Kind::Libfabric(open) => open.insert(name),
            Kind::Tcp(tcp) => match tcp::decode_names(name) {
                Some(names) => Ok(tcp.insert(&names, secret)),
                None => Err(OfiConnectError::Call {
                    call: "connecting",
                    whom: self.facts.provider.clone(),
                    error: "a process has published no address".to_owned(),
                }),
            },
        }
    }

    /// Forgets a process, whose operations under way have failed. Libfabric keeps the address, which costs little.
    pub fn remove(&self, number: u64) {
        if let Kind::Tcp(tcp) = &self.kind {
            tcp.remove(number);
        }
    }

    /// Returns an address in readable form.
    pub fn show(&self, name: &[u8]) -> String {
        match &self.kind {
            Kind::Libfabric(open) => open.show(name),
            Kind::Tcp(_) => {
                tcp::decode_names(name).map_or_else(String::new, |names| names[0].to_string())
            }
        }
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
    ) -> Result<MemoryRegistration, Fault> {
        match &self.kind {
            Kind::Libfabric(open) => {
                // SAFETY: `Libfabric::register` needs memory that stays mapped: the caller promises it.
                let made = unsafe { open.register(at, len, access, key) };
                made.map(MemoryRegistration::Libfabric)
            }
            Kind::Tcp(tcp) => {
                // SAFETY: `Tcp::register` needs memory that stays mapped: the caller promises it.
                match unsafe { tcp.register(Sge::new(at, len), key) } {
                    true => Ok(MemoryRegistration::Tcp(tcp.clone(), key)),
                    false => Err(Fault::system("registering memory", libc::EEXIST)),
                }
            }
        }
    }

    /// Returns true if this provider names peers' memory by virtual address. Otherwise the provider uses the offset from the start
    /// of the registration.
    #[inline]
    pub fn names_by_address(&self) -> bool {
        self.facts.has(FI_MR_VIRT_ADDR)
    }

    /// Returns true if transfers need registered local memory.
    #[inline]
    pub fn registers_local(&self) -> bool {
        self.facts.has(FI_MR_LOCAL)
    }

    /// Returns true if a sleep on the descriptor is safe now: nothing has come, and the next arrival or completion makes the
    /// descriptor readable.
    pub fn may_sleep(&self) -> bool {
        match &self.kind {
            Kind::Libfabric(open) => open.may_sleep(),
            Kind::Tcp(tcp) => tcp.may_sleep(),
        }
    }

    /// Tells the provider which threads poll from now on.
    pub fn set_poller(&self, poller: PollingThread) {
        if let Kind::Tcp(tcp) = &self.kind {
            tcp.set_poller(poller);
        }
    }

    /// Lets bytes collect before the descriptor becomes readable. Returns true if a connection collects bytes.
    pub fn begin_collecting(&self) -> bool {
        matches!(&self.kind, Kind::Tcp(tcp) if tcp.begin_collecting())
    }

    /// Ends the collecting of bytes. From now on, the descriptor becomes readable as soon as any byte arrives.
    pub fn end_collecting(&self) {
        if let Kind::Tcp(tcp) = &self.kind {
            tcp.end_collecting();
        }
    }

    /// Returns true if all sent bytes have reached the peers' hosts, or if the provider cannot know.
    pub fn has_arrived(&self) -> bool {
        match &self.kind {
            Kind::Libfabric(_) => true,
            Kind::Tcp(tcp) => tcp.has_arrived(),
        }
    }

    /// Returns true if the provider holds data that only a poll sends.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        match &self.kind {
            Kind::Libfabric(_) => false,
            Kind::Tcp(tcp) => tcp.has_unsent(),
        }
    }

    /// Returns the form in which messages are posted.
    #[inline]
    pub fn messages(&self) -> MessageSupport<'_> {
        match &self.kind {
            Kind::Libfabric(open) => MessageSupport::Pieces(open),
            Kind::Tcp(tcp) => MessageSupport::Parts(tcp),
        }
    }

    /// Posts a buffer for the next message. Returns 0, or an error below 0.
    ///
    /// # Safety
    /// The buffer is not touched until the operation with `context` is complete, and `descriptor` belongs to its registration.
    pub unsafe fn post(&self, buffer: Sge, descriptor: *mut c_void, context: *mut c_void) -> isize {
        match &self.kind {
            // SAFETY: `Libfabric::post` needs a buffer that is not touched until the operation is complete: the caller promises it.
            Kind::Libfabric(open) => unsafe { open.post(buffer, descriptor, context) },
            Kind::Tcp(tcp) => {
                // SAFETY: `Tcp::post` needs a buffer that is not touched until the operation is complete: the caller promises it.
                unsafe { tcp.post(buffer, context) };
                0
            }
        }
    }

    /// Posts a write from `local` to the peer's memory at `remote`, or a read from there into `local`. Returns 0, or an error below
    /// 0.
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
        match &self.kind {
            Kind::Libfabric(open) => {
                // SAFETY: `Libfabric::transfer` needs local memory that stays until the operation is complete: the caller
                // promises it.
                unsafe { open.transfer(to, access, local, remote, context) }
            }
            // SAFETY: `Tcp::transfer` needs local memory that stays until the operation is complete: the caller promises it.
            Kind::Tcp(tcp) => unsafe { tcp.transfer(to, access, local.memory, remote, context) },
        }
    }

    /// Takes completed operations.
    #[inline]
    pub fn take(&self, entries: &mut [fi_cq_msg_entry]) -> PollOutcome {
        match &self.kind {
            Kind::Libfabric(open) => match open.take(entries) {
                count @ 1.. => PollOutcome::Over(count as usize),
                0 => PollOutcome::Nothing,
                count if count == -FI_EAGAIN => PollOutcome::Nothing,
                count if count == -FI_EAVAIL => PollOutcome::Failed,
                count => PollOutcome::Broken(count),
            },
            Kind::Tcp(tcp) => match tcp.take(entries) {
                tcp::TcpPollOutcome::Over(count) => PollOutcome::Over(count),
                _ if tcp.has_failed() => PollOutcome::Failed,
                tcp::TcpPollOutcome::Moved => PollOutcome::Moved,
                tcp::TcpPollOutcome::Nothing => PollOutcome::Nothing,
            },
        }
    }

    /// Takes a failed operation and the reason.
    pub fn take_failed(&self) -> Option<(*mut c_void, String)> {
        match &self.kind {
            Kind::Libfabric(open) => open.take_failed(),
            Kind::Tcp(tcp) => tcp.take_failed().map(|(context, error)| (context, text(error))),
        }
    }

    /// Takes the next peer that has ended its connection, with the reason. Returns a peer only if the provider reports such ends at
    /// once.
    pub fn take_gone(&self) -> Option<(u64, String)> {
        match &self.kind {
            Kind::Libfabric(_) => None,
            Kind::Tcp(tcp) => tcp.take_gone().map(|(number, error)| (number, text(error))),
        }
    }

    /// Returns the state of the connection to a peer, or `None` if the provider does not show the state.
    pub fn way(&self, number: u64) -> Option<ConnectionState> {
        match &self.kind {
            Kind::Libfabric(_) => None,
            Kind::Tcp(tcp) => Some(tcp.way(number)),
        }
    }

    /// Takes the next peer that was reached over a network other than the agreed network.
    pub fn take_detour(&self) -> Option<Detour> {
        match &self.kind {
            Kind::Libfabric(_) => None,
            Kind::Tcp(tcp) => tcp.take_detour(),
        }
    }

    /// Explains the error that a posting call returned.
    pub fn why(&self, posted: isize) -> String {
        match &self.kind {
            Kind::Libfabric(open) => open.library.explain(posted),
            Kind::Tcp(_) => text(posted.unsigned_abs() as i32),
        }
    }
}

/// Registered memory.
pub enum MemoryRegistration {
    Libfabric(Registered),
    /// Built-in TCP, and the key of the memory.
    Tcp(Arc<Tcp>, u64),
}

impl MemoryRegistration {
    /// Returns the descriptor by which local operations name the memory.
    pub fn descriptor(&self) -> *mut c_void {
        match self {
            MemoryRegistration::Libfabric(made) => made.descriptor(),
            MemoryRegistration::Tcp(..) => ptr::null_mut(),
        }
    }

    /// Returns the key by which peers name the memory.
    pub fn key(&self) -> u64 {
        match self {
            MemoryRegistration::Libfabric(made) => made.key(),
            MemoryRegistration::Tcp(_, key) => *key,
        }
    }
}

impl Drop for MemoryRegistration {
    fn drop(&mut self) {
        if let MemoryRegistration::Tcp(tcp, key) = self {
            tcp.withdraw(*key);
        }
    }
}
