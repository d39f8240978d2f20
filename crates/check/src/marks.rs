//! Signature marks: numbers that messages carry in their envelopes, in place of the signature and the call site of their send.
//!
//! ```text
//!   send       (call site, function, datatype) ── mark ── its record goes to a peer once, before the first message with the mark
//!   receive    status ── mark ── record of (communicator, sender, mark), which is received once
//! ```
//! A record describes one element of the send's count. The number of elements follows from the bytes of the message. So messages of
//! all lengths from one call have one mark, and a message with a known mark costs no other message.

use crate::call_site::CallSite;
use crate::datatype::{PACKED, TypeFacts};
use crate::library::extension;
use crate::shadow::{CallRecord, MPI_COMM_SELF, MPI_COMM_WORLD, RawStatus, describe};
use crate::signature::SequenceHash;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ffi::c_int;

/// Marks have 23 bits. Sends with more signatures are not compared.
const MAX_MARK: u32 = OWN - 1;

/// Bit of a mark that one message has. Its record travels before each such message.
const OWN: u32 = 1 << 22;

/// Signature and call site of sends, which travels to their receivers.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct SendRecord {
    pub site: CallSite,
    /// Hash and number of the predefined elements of one element of the send's count.
    pub unit: SequenceHash,
    /// Size of this element in bytes.
    pub size: u64,
    /// Number of elements of a partitioned send in all partitions. 0 for other sends.
    pub count: u64,
    /// Index of the function.
    pub function: u32,
    /// Rank in MPI_COMM_WORLD.
    pub rank: i32,
    /// Class of the first predefined element.
    pub first: u32,
    /// 1 if an element is of MPI_PACKED, which matches every type.
    pub is_packed: u32,
    /// Time of the send and name of the clock, if the user asks for waits; else 0.
    pub posted: u64,
    pub host: u64,
}

impl SendRecord {
    /// Makes the record of sends with a datatype.
    pub fn new(site: CallSite, function: usize, rank: c_int, facts: &TypeFacts) -> SendRecord {
        SendRecord {
            site,
            unit: facts.signature.hash,
            size: facts.size,
            count: 0,
            function: function as u32,
            rank,
            first: u32::from(facts.signature.first().unwrap_or(0)),
            is_packed: u32::from(facts.signature.contains(PACKED)),
            posted: 0,
            host: 0,
        }
    }

    /// Returns the record of the call, for reports.
    pub fn call(&self) -> CallRecord {
        let &SendRecord { site, function, rank, .. } = self;
        CallRecord { site, function, rank }
    }

    /// Returns the signature of a message with this number of bytes.
    pub fn sent(&self, bytes: u64) -> SequenceHash {
        self.unit.times(bytes.checked_div(self.size).unwrap_or(0))
    }

    /// Returns the number and the kind of the elements of a message, for reports.
    pub fn describe(&self, bytes: u64) -> String {
        describe(self.sent(bytes).elements, self.first as u8)
    }
}

/// Key of a mark: what all sends with the mark have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SendKey {
    pub site: CallSite,
    pub function: usize,
    /// Number of the datatype, see [`TypeFacts::number`].
    pub datatype: u64,
}

/// A peer in a communicator of the program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CommPeer {
    pub comm: usize,
    pub rank: i64,
}

/// A message that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct MessageArrival {
    pub from: CommPeer,
    pub tag: i64,
    /// Mark of the send; 0 if the send is not compared.
    pub mark: u32,
    pub bytes: u64,
    pub is_cancelled: bool,
}

impl MessageArrival {
    /// Reads the status of a receive or a matched probe.
    ///
    /// # Safety
    /// `status` points to a status that a call has set.
    pub unsafe fn of_status(comm: usize, status: usize) -> MessageArrival {
        // SAFETY: the caller promises it.
        let status = unsafe { &*(status as *const RawStatus) };
        let [source, tag, _, low, high, flags, ..] = *status;
        MessageArrival {
            from: CommPeer { comm, rank: i64::from(source) },
            tag: i64::from(tag),
            mark: flags as u32 >> 1,
            bytes: u64::from(low as u32) | u64::from(high as u32) << 32,
            is_cancelled: flags & 1 != 0,
        }
    }
}

/// Matching spaces of records, as the library numbers them.
#[derive(Clone, Copy)]
enum RecordChannel {
    Signatures = 0,
    Partitioned = 1,
}

/// Description of a record for the library, in C.
#[repr(C)]
struct LibraryRecord {
    comm: usize,
    peer: c_int,
    tag: c_int,
    space: c_int,
    len: c_int,
    data: *mut SendRecord,
}

impl LibraryRecord {
    fn new(
        space: RecordChannel,
        peer: CommPeer,
        tag: i64,
        record: &mut SendRecord,
    ) -> LibraryRecord {
        LibraryRecord {
            comm: peer.comm,
            peer: peer.rank as c_int,
            tag: tag as c_int,
            space: space as c_int,
            len: size_of::<SendRecord>() as c_int,
            data: record,
        }
    }

    /// Sends a record. Returns false if there is no such peer.
    fn send(space: RecordChannel, peer: CommPeer, tag: i64, mut record: SendRecord) -> bool {
        let place = LibraryRecord::new(space, peer, tag, &mut record);
        // SAFETY: the library copies the record before it returns.
        unsafe { extension!(weft_check_send(&raw const place)) == 0 }
    }

    /// Receives a record. Its sender has sent it already, so the wait is short.
    fn receive(space: RecordChannel, peer: CommPeer, tag: i64) -> Option<SendRecord> {
        let mut record = SendRecord::default();
        let place = LibraryRecord::new(space, peer, tag, &mut record);
        // SAFETY: the record has room for the message.
        let code = unsafe { extension!(weft_check_receive(&raw const place)) };
        (code == 0).then_some(record)
    }
}

/// Lets the library begin the checking mode.
pub fn begin() {
    // SAFETY: MPI is initialized.
    unsafe { extension!(weft_check_begin()) };
}

/// Sets the mark of this thread's next send.
pub fn set_next(mark: u32) {
    // SAFETY: the function has no preconditions.
    unsafe { extension!(weft_check_mark(mark)) };
}

/// Marks of this process's sends, and the records that it has received.
#[derive(Default)]
pub struct SignatureMarks {
    marks: FxHashMap<SendKey, u32>,
    /// Peers that have the record of a mark.
    announced: FxHashSet<(CommPeer, u32)>,
    received: FxHashMap<(CommPeer, u32), SendRecord>,
    /// Mark of the last send that has a mark of its own.
    last_own: u32,
    /// Communicators that may have messages.
    pub comms: FxHashSet<usize>,
}

impl SignatureMarks {
    /// Creates the marks of a process that has sent and received nothing.
    pub fn new() -> SignatureMarks {
        let comms = FxHashSet::from_iter([MPI_COMM_WORLD, MPI_COMM_SELF]);
        SignatureMarks { comms, ..SignatureMarks::default() }
    }

    /// Returns the mark for a send, and sends its record to the peer if the peer does not have it. Returns 0 if there are no marks
    /// left, or no such peer.
    pub fn of_send(
        &mut self,
        key: SendKey,
        to: CommPeer,
        record: impl FnOnce() -> SendRecord,
    ) -> u32 {
        let next = self.marks.len() as u32 + 1;
        if next > MAX_MARK && !self.marks.contains_key(&key) {
            return 0;
        }
        let mark = *self.marks.entry(key).or_insert(next);
        if !self.announced.contains(&(to, mark)) {
            if !LibraryRecord::send(RecordChannel::Signatures, to, i64::from(mark), record()) {
                return 0;
            }
            self.announced.insert((to, mark));
            self.comms.insert(to.comm);
        }
        mark
    }

    /// Returns a mark for one send, or for the starts of a persistent one. A record must be sent before each message with the mark.
    pub fn of_own(&mut self, to: CommPeer) -> u32 {
        self.comms.insert(to.comm);
        self.last_own = self.last_own % MAX_MARK + 1;
        OWN | self.last_own
    }

    /// Returns the record of a message; `None` if the message has no mark, or its sender has failed.
    pub fn of_message(&mut self, message: &MessageArrival) -> Option<SendRecord> {
        let MessageArrival { from, mark, .. } = *message;
        if mark == 0 {
            return None;
        }
        if let Some(record) = self.received.get(&(from, mark)) {
            return Some(*record);
        }
        let record = LibraryRecord::receive(RecordChannel::Signatures, from, i64::from(mark))?;
        if mark & OWN != 0 {
            return Some(record);
        }
        self.received.insert((from, mark), record);
        self.comms.insert(from.comm);
        Some(record)
    }

    /// Forgets a communicator, because its handle may be used again.
    pub fn forget(&mut self, comm: usize) {
        self.comms.remove(&comm);
        self.announced.retain(|(peer, _)| peer.comm != comm);
        self.received.retain(|(peer, _), _| peer.comm != comm);
    }
}

/// Sends the record of a message with a mark of its own.
pub fn send_own(to: CommPeer, mark: u32, record: SendRecord) {
    LibraryRecord::send(RecordChannel::Signatures, to, i64::from(mark), record);
}

/// Sends the record of a partitioned send, which matches the partitioned receives of its tag in their order.
pub fn send_partitioned(to: CommPeer, tag: i64, record: SendRecord) {
    LibraryRecord::send(RecordChannel::Partitioned, to, tag, record);
}

/// Receives the record of the next partitioned send with a tag.
pub fn receive_partitioned(from: CommPeer, tag: i64) -> Option<SendRecord> {
    LibraryRecord::receive(RecordChannel::Partitioned, from, tag)
}
