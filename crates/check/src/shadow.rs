//! Shadow communicators: each communicator of the program has one, which carries what the checks exchange.
//!
//! A message of the program is preceded by a record on the shadow communicator, with the same peer and tag. The receiver takes the
//! records of a sender and tag in the order in which its receives match, which is the order in which they were posted.

use crate::call_site::CallSite;
use crate::datatype::TypeFacts;
use crate::library::mpi;
use crate::signature::{SequenceHash, TypeSignature};
use std::collections::{HashMap, VecDeque};
use std::ffi::c_int;

const MPI_ERRORS_RETURN: usize = 0x143;
const MPI_BYTE: usize = 0x247;
pub const MPI_ANY_SOURCE: i64 = -1;
pub const MPI_ANY_TAG: i64 = -2;
pub const MPI_PROC_NULL: i64 = -3;
pub const MPI_COMM_NULL: usize = 0x100;
pub const MPI_COMM_WORLD: usize = 0x101;
pub const MPI_COMM_SELF: usize = 0x102;

/// Number of records under way before the oldest are looked at.
const RECORDS: usize = 64;

/// Function of a record that takes back an earlier record, because the send was cancelled.
pub const RETRACTION: u32 = u32::MAX;

/// A status in C.
pub type RawStatus = [c_int; 8];

/// Record of a call: what peers need for a comparison, and for a report.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct CallRecord {
    pub elements: u64,
    pub hash: u64,
    pub site: CallSite,
    /// Index of the function.
    pub function: u32,
    /// Rank in MPI_COMM_WORLD.
    pub rank: i32,
    /// Class of the first element.
    pub first: u32,
    pub root: i32,
    pub operator: u64,
    /// Number of the collective operation among the blocking or nonblocking operations of its communicator, or of the send in its process.
    pub sequence: u64,
}

/// Size of a record in bytes.
pub const RECORD: usize = size_of::<CallRecord>();

impl CallRecord {
    /// Returns the signature's hash.
    pub fn sequence_hash(&self) -> SequenceHash {
        SequenceHash { elements: self.elements, hash: self.hash }
    }

    /// Sets the signature.
    pub fn set_signature(&mut self, signature: &TypeSignature) {
        self.elements = signature.hash.elements;
        self.hash = signature.hash.hash;
        self.first = u32::from(signature.first().unwrap_or(0));
    }

    /// Returns the number and the kind of the elements, for reports.
    pub fn describe(&self) -> String {
        describe(self.elements, self.first as u8)
    }
}

/// Returns a number of elements in words, which begin with an element of a class.
pub fn describe(elements: u64, first: u8) -> String {
    match elements {
        0 => "no elements".to_owned(),
        1 => format!("1 element, {}", crate::datatype::class_name(first)),
        n => format!("{n} elements, the first is {}", crate::datatype::class_name(first)),
    }
}

/// A receive, in the order of posting.
pub struct ShadowReceive {
    pub id: u64,
    /// Source and tag of the receive, which may be wildcards.
    pub source: i64,
    pub tag: i64,
    /// Source and tag of the message, once the receive is complete.
    pub matched: Option<(i64, i64)>,
    pub function: &'static str,
    pub site: CallSite,
    /// Signature of the receive buffer; `None` for a matched probe.
    pub signature: Option<TypeSignature>,
}

/// A communicator of the program.
pub struct CommFacts {
    /// The shadow communicator.
    pub shadow: usize,
    pub is_inter: bool,
    receives: VecDeque<ShadowReceive>,
    /// Records that have arrived, by source and tag.
    queues: HashMap<(i64, i64), VecDeque<CallRecord>>,
}

impl CommFacts {
    /// Makes the facts of a new communicator. Collective.
    ///
    /// # Safety
    /// `comm` is a communicator, all of whose processes call this function.
    pub unsafe fn new(comm: usize) -> CommFacts {
        let (mut shadow, mut inter) = (MPI_COMM_NULL, 0 as c_int);
        // SAFETY: the results are local variables.
        unsafe {
            mpi!(MPI_Comm_test_inter(comm, &raw mut inter));
            // MPI_Comm_dup would call the program's copy functions of attributes.
            mpi!(MPI_Comm_split(comm, 0, 0, &raw mut shadow));
            mpi!(MPI_Comm_set_errhandler(shadow, MPI_ERRORS_RETURN));
        }
        CommFacts {
            shadow,
            is_inter: inter != 0,
            receives: VecDeque::new(),
            queues: HashMap::new(),
        }
    }

    /// Adds a receive that is posted. A matched probe has no signature.
    pub fn post(&mut self, receive: ShadowReceive) {
        self.receives.push_back(receive);
    }

    /// Removes a receive that has not received anything.
    pub fn withdraw(&mut self, id: u64) {
        self.receives.retain(|receive| receive.id != id);
    }

    /// Completes a receive. Returns the receives whose messages are known now, each with its record.
    pub fn complete(&mut self, id: u64, source: i64, tag: i64) -> Vec<(ShadowReceive, CallRecord)> {
        if let Some(receive) = self.receives.iter_mut().find(|receive| receive.id == id) {
            receive.matched = Some((source, tag));
        }
        let mut known = Vec::new();
        while let Some(at) = self.settled() {
            let Some(receive) = self.receives.remove(at) else { break };
            let Some((source, tag)) = receive.matched else { break };
            if let Some(record) = self.record(source, tag) {
                known.push((receive, record));
            }
        }
        known
    }

    /// Finds the first complete receive before which no incomplete receive could have matched its message.
    fn settled(&self) -> Option<usize> {
        let could = |earlier: &ShadowReceive, (source, tag): (i64, i64)| {
            earlier.matched.is_none()
                && (earlier.source == source || earlier.source == MPI_ANY_SOURCE)
                && (earlier.tag == tag || earlier.tag == MPI_ANY_TAG)
        };
        (0..self.receives.len()).find(|&at| {
            let matched = self.receives[at].matched;
            matched.is_some_and(|m| !self.receives.iter().take(at).any(|earlier| could(earlier, m)))
        })
    }

    /// Receives the next record of a sender and tag. The sender has sent the record before its message, so the wait is short.
    fn record(&mut self, source: i64, tag: i64) -> Option<CallRecord> {
        // A record that is taken back is followed by a retraction before the next record. So all that have arrived are looked at.
        while let Some((source, tag)) = self.arrived(source, tag) {
            self.take(source, tag)?;
        }
        while self.queue(source, tag).is_empty() {
            self.take(source, tag)?;
        }
        self.queue(source, tag).pop_front()
    }

    fn queue(&mut self, source: i64, tag: i64) -> &mut VecDeque<CallRecord> {
        self.queues.entry((source, tag)).or_default()
    }

    /// Returns source and tag of a record that has arrived.
    fn arrived(&self, source: i64, tag: i64) -> Option<(i64, i64)> {
        let (mut flag, mut status) = (0 as c_int, RawStatus::default());
        // SAFETY: the results are local variables.
        unsafe { mpi!(MPI_Iprobe(source, tag, self.shadow, &raw mut flag, status.as_mut_ptr())) };
        (flag != 0).then_some((i64::from(status[0]), i64::from(status[1])))
    }

    /// Receives a record into its queue, or takes back the record that a retraction names.
    fn take(&mut self, source: i64, tag: i64) -> Option<()> {
        let mut record = CallRecord::default();
        let to = &raw mut record;
        let code =
            // SAFETY: the record has room for the message.
            unsafe { mpi!(MPI_Recv(to, RECORD, MPI_BYTE, source, tag, self.shadow, 0)) };
        let queue = self.queue(source, tag);
        match record.function {
            RETRACTION => queue.retain(|earlier| earlier.sequence != record.sequence),
            _ => queue.push_back(record),
        }
        (code == 0).then_some(())
    }

    /// Takes the records of messages that the program has not received, each with its tag.
    pub fn leftovers(&mut self) -> Vec<(CallRecord, i64)> {
        while let Some((source, tag)) = self.arrived(MPI_ANY_SOURCE, MPI_ANY_TAG) {
            if self.take(source, tag).is_none() {
                break;
            }
        }
        let all = std::mem::take(&mut self.queues).into_iter();
        all.flat_map(|((_, tag), queue)| queue.into_iter().map(move |record| (record, tag)))
            .collect()
    }
}

/// Records under way.
#[derive(Default)]
pub struct RecordsUnderWay(VecDeque<(Box<CallRecord>, usize)>);

impl RecordsUnderWay {
    /// Sends a record.
    pub fn send(&mut self, comm: &CommFacts, to: i64, tag: i64, record: CallRecord) {
        let (record, mut request) = (Box::new(record), 0usize);
        let data = &raw const *record;
        // SAFETY: the record lives until its request is complete.
        unsafe { mpi!(MPI_Isend(data, RECORD, MPI_BYTE, to, tag, comm.shadow, &raw mut request)) };
        self.0.push_back((record, request));
        if self.0.len() > RECORDS {
            self.drop_complete();
        }
    }

    /// Drops records at the front that are complete.
    fn drop_complete(&mut self) {
        while let Some((_, request)) = self.0.front_mut() {
            let mut flag = 0 as c_int;
            // SAFETY: the request is ours.
            unsafe { mpi!(MPI_Test(&raw mut *request, &raw mut flag, 0)) };
            if flag == 0 {
                return;
            }
            self.0.pop_front();
        }
    }

    /// Waits for all records, once their receivers have taken them.
    pub fn finish(&mut self) {
        for (_, request) in &mut self.0 {
            // SAFETY: the request is ours.
            unsafe { mpi!(MPI_Wait(&raw mut *request, 0)) };
        }
        self.0.clear();
    }
}

/// Returns the signature of `count` elements of a type.
pub fn buffer_signature(facts: &TypeFacts, count: i64) -> TypeSignature {
    facts.signature.repeat(count.max(0) as u64)
}
