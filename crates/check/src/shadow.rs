//! Shadow communicators, on which collective operations are compared, and constants of the standard ABI.

use crate::call_site::CallSite;
use crate::datatype::TypeFacts;
use crate::library::mpi;
use crate::signature::TypeSignature;
use std::ffi::c_int;

const MPI_ERRORS_RETURN: usize = 0x143;
pub const MPI_IN_PLACE: usize = 1;
pub const MPI_MIN: usize = 0x22;
pub const MPI_INT: usize = 0x209;
pub const MPI_ANY_SOURCE: i64 = -1;
pub const MPI_ANY_TAG: i64 = -2;
pub const MPI_PROC_NULL: i64 = -3;
pub const MPI_COMM_NULL: usize = 0x100;
pub const MPI_COMM_WORLD: usize = 0x101;
pub const MPI_COMM_SELF: usize = 0x102;

/// A status in C.
pub type RawStatus = [c_int; 8];

/// A call of another rank.
#[derive(Clone, Copy, Debug)]
pub struct CallRecord {
    pub site: CallSite,
    /// Index of the function.
    pub function: u32,
    /// Rank in MPI_COMM_WORLD.
    pub rank: i32,
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

/// Kind of a communicator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommKind {
    Intra,
    Inter,
}

impl CommKind {
    /// Returns the kind for the flag that MPI_Comm_test_inter has set.
    pub fn of_flag(flag: c_int) -> CommKind {
        if flag == 0 { CommKind::Intra } else { CommKind::Inter }
    }
}

/// A communicator of the program.
pub struct CommFacts {
    /// The shadow communicator.
    pub shadow: usize,
    pub kind: CommKind,
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
        CommFacts { shadow, kind: CommKind::of_flag(inter) }
    }
}
