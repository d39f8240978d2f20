//! Shadow communicators, on which collective operations are compared, and constants of the standard ABI.

use crate::call_site::CallSite;
use crate::datatype::TypeFacts;
use crate::library::mpi;
use crate::signature::TypeSignature;
use std::ffi::c_int;

const MPI_ERRORS_RETURN: usize = 0x142;
pub const MPI_ANY_SOURCE: i64 = -1;
pub const MPI_ANY_TAG: i64 = -2;
pub const MPI_COMM_NULL: usize = 0x100;
pub const MPI_COMM_WORLD: usize = 0x101;
pub const MPI_COMM_SELF: usize = 0x102;

/// A status in C.
pub type RawStatus = [c_int; 8];

/// Record of a collective call: what peers need for a comparison, and for a report.
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
    /// Number of the collective operation among the blocking or nonblocking operations of its communicator.
    pub sequence: u64,
}

/// Size of a record in bytes.
pub const RECORD: usize = size_of::<CallRecord>();

impl CallRecord {
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

/// Returns the signature of `count` elements of a type.
pub fn buffer_signature(facts: &TypeFacts, count: i64) -> TypeSignature {
    facts.signature.repeat(count.max(0) as u64)
}

/// A communicator of the program.
pub struct CommFacts {
    /// The shadow communicator.
    pub shadow: usize,
    pub is_inter: bool,
    /// Numbers of blocking and persistent, and of nonblocking collective operations so far. The library matches them apart.
    pub collectives: [u64; 2],
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
        CommFacts { shadow, is_inter: inter != 0, collectives: [0; 2] }
    }
}
