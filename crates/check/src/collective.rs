//! Comparison of collective operations among their ranks, before data move.
//!
//! Each rank reduces a hash of its call, and the hash's complement, with MPI_MAX over the shadow communicator. All hashes are equal
//! if the two maxima are complements. Else all ranks gather their records, and the lowest rank reports the first two that differ.

use crate::function::CheckedCall;
use crate::library::mpi;
use crate::role::CommonSignature;
use crate::shadow::{CallRecord, CommFacts, RECORD};
use std::ffi::c_int;

const MPI_BYTE: usize = 0x247;
const MPI_UINT64_T: usize = 0x259;
const MPI_MAX: usize = 0x23;
/// Highest handle of a predefined operator. Handles of the program's operators differ among ranks.
const LAST_OPERATOR: usize = 0x3f;

/// A comparison under way.
pub struct CollectiveComparison {
    own: [u64; 2],
    all: [u64; 2],
    request: usize,
    shadow: usize,
    pub record: CallRecord,
}

/// Returns FNV-1a of words.
fn hash(words: &[u64]) -> u64 {
    words.iter().flat_map(|word| word.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl CollectiveComparison {
    /// Begins the comparison of a call. All ranks of the communicator do so in the same order.
    pub fn new(comm: &CommFacts, record: CallRecord, name: &str) -> Box<CollectiveComparison> {
        let letters: Vec<u64> = name.bytes().map(u64::from).collect();
        let facts = [
            record.elements,
            record.hash,
            record.root as u64,
            record.operator,
            record.sequence,
            hash(&letters),
        ];
        let own = hash(&facts);
        let shadow = comm.shadow;
        Box::new(CollectiveComparison { own: [own, !own], all: [0; 2], request: 0, shadow, record })
    }

    /// Compares with all other ranks, and waits for them. Returns true if all ranks make the same call.
    pub fn run(&mut self) -> bool {
        let (own, all) = (self.own.as_ptr(), self.all.as_mut_ptr());
        // SAFETY: both arrays have two elements.
        unsafe { mpi!(MPI_Allreduce(own, all, 2usize, MPI_UINT64_T, MPI_MAX, self.shadow)) };
        self.agrees()
    }

    /// Begins a comparison that [`CollectiveComparison::finish`] ends.
    pub fn start(&mut self) {
        let (own, all, request) = (self.own.as_ptr(), self.all.as_mut_ptr(), &raw mut self.request);
        // SAFETY: both arrays have two elements, and live in a box until `finish`.
        unsafe {
            mpi!(MPI_Iallreduce(own, all, 2usize, MPI_UINT64_T, MPI_MAX, self.shadow, request))
        };
    }

    /// Waits for the end of a comparison that [`CollectiveComparison::start`] has begun. Returns true if all ranks make the same call.
    pub fn finish(&mut self) -> bool {
        // SAFETY: the request is ours.
        unsafe { mpi!(MPI_Wait(&raw mut self.request, 0)) };
        self.agrees()
    }

    fn agrees(&self) -> bool {
        self.all[0] == !self.all[1]
    }

    /// Gathers the records of all ranks, after a comparison has failed. All ranks call this function.
    pub fn records(&self) -> Vec<CallRecord> {
        let (mut size, mut rank) = (0 as c_int, 0 as c_int);
        // SAFETY: the results are local variables.
        unsafe {
            mpi!(MPI_Comm_size(self.shadow, &raw mut size));
            mpi!(MPI_Comm_rank(self.shadow, &raw mut rank));
        }
        let mut all = vec![CallRecord::default(); size.max(1) as usize];
        let own = &raw const self.record;
        // SAFETY: the array has a record for each rank.
        unsafe {
            mpi!(MPI_Allgather(
                own,
                RECORD,
                MPI_BYTE,
                all.as_mut_ptr(),
                RECORD,
                MPI_BYTE,
                self.shadow
            ))
        };
        all
    }

    /// Waits for all ranks.
    pub fn barrier(&self) {
        // SAFETY: the communicator is ours.
        unsafe { mpi!(MPI_Barrier(self.shadow)) };
    }
}

/// Returns the operator's handle if it is predefined, 1 for the program's operators, and 0 without an operator.
pub fn operator(call: &CheckedCall<'_>) -> u64 {
    match call.handle("OPERATION") {
        None => 0,
        Some(handle) if handle <= LAST_OPERATOR => handle as u64,
        Some(_) => 1,
    }
}

/// Part of a rank in a collective operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RootPart {
    Root,
    Other,
}

/// Returns the names of the buffer whose signature all ranks have in common.
pub fn common_buffer(common: CommonSignature, part: RootPart) -> Option<&'static [&'static str]> {
    const FIRST: &[&str] = &["buffer", "sendbuf"];
    const SEND: &[&str] = &["sendbuf"];
    const RECEIVE: &[&str] = &["recvbuf"];
    match (common, part) {
        (CommonSignature::None, _) => None,
        (CommonSignature::First, _) => Some(FIRST),
        (CommonSignature::ToRoot, RootPart::Other)
        | (CommonSignature::FromRoot, RootPart::Root) => Some(SEND),
        (CommonSignature::ToRoot, RootPart::Root)
        | (CommonSignature::FromRoot, RootPart::Other) => Some(RECEIVE),
        (CommonSignature::Receive, _) => Some(RECEIVE),
    }
}

/// Describes a record for a report.
pub fn describe(record: &CallRecord) -> String {
    let function = crate::FUNCTIONS.get(record.function as usize);
    let has_root = function.is_some_and(|function| function.place("root").is_some());
    let mut text = format!("collective operation {} of the communicator", record.sequence);
    if has_root {
        text += &format!(", root {}", record.root);
    }
    if record.operator != 0 {
        text += &format!(", operator {:#x}", record.operator);
    }
    if record.elements > 0 {
        text += &format!(", {}", record.describe());
    }
    text
}
