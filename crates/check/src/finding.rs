//! Findings: errors of the program, with the calls that take part in them.

use crate::call_site::CallSite;

/// Class of a finding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FindingClass {
    TypeMismatch,
    CollectiveMismatch,
    BufferInUse,
    BufferChanged,
    RequestNotCompleted,
    MessageNotReceived,
    ObjectNotFreed,
    AccessOutsideEpoch,
    ConflictingAccesses,
    EpochMismatch,
    FalseAssertion,
}

impl FindingClass {
    /// All classes.
    pub const ALL: [FindingClass; 11] = [
        FindingClass::TypeMismatch,
        FindingClass::CollectiveMismatch,
        FindingClass::BufferInUse,
        FindingClass::BufferChanged,
        FindingClass::RequestNotCompleted,
        FindingClass::MessageNotReceived,
        FindingClass::ObjectNotFreed,
        FindingClass::AccessOutsideEpoch,
        FindingClass::ConflictingAccesses,
        FindingClass::EpochMismatch,
        FindingClass::FalseAssertion,
    ];

    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        self.texts().0
    }

    /// Returns the name in reports, and a remedy.
    pub fn texts(self) -> (&'static str, &'static str) {
        match self {
            FindingClass::TypeMismatch => (
                "type mismatch",
                "give both calls the same sequence of predefined types (MPI 5.0, section 3.3.1)",
            ),
            FindingClass::CollectiveMismatch => (
                "collective mismatch",
                "call the same operations in the same order on all ranks, with equal arguments (MPI 5.0, section 6.13)",
            ),
            FindingClass::BufferInUse => (
                "buffer in use",
                "wait for the first operation before the buffer is used again (MPI 5.0, section 3.7.2); buffers of one call must not overlap, \
                 MPI_IN_PLACE does without one (section 2.3)",
            ),
            FindingClass::BufferChanged => (
                "buffer changed",
                "wait for the operation before the program writes the buffer (MPI 5.0, section 3.7.2)",
            ),
            FindingClass::RequestNotCompleted => (
                "request not completed",
                "call MPI_Wait, or MPI_Test until it succeeds, or MPI_Request_free (MPI 5.0, section 3.7.3)",
            ),
            FindingClass::MessageNotReceived => (
                "message not received",
                "receive each message before MPI_Finalize (MPI 5.0, section 11.2.2)",
            ),
            FindingClass::ObjectNotFreed => {
                ("object not freed", "call the function that frees it before MPI_Finalize")
            }
            FindingClass::AccessOutsideEpoch => (
                "access outside an epoch",
                "access a window between two fences, between start and complete, or under a lock (MPI 5.0, section 12.5)",
            ),
            FindingClass::ConflictingAccesses => (
                "conflicting accesses",
                "put a synchronization between the accesses, or use one operator in MPI_Accumulate (MPI 5.0, section 12.7)",
            ),
            FindingClass::EpochMismatch => (
                "epoch mismatch",
                "begin each epoch once, and end it by the call that belongs to it (MPI 5.0, section 12.5)",
            ),
            FindingClass::FalseAssertion => (
                "false assertion",
                "leave out the assertion, or the access that it excludes (MPI 5.0, section 12.5.5)",
            ),
        }
    }
}

/// A call that takes part in a finding.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Party {
    /// Rank in MPI_COMM_WORLD, if known.
    pub rank: Option<i32>,
    pub function: String,
    pub site: CallSite,
    /// Facts about the call, such as its types.
    pub facts: String,
}

/// An error of the program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CheckFinding {
    pub class: FindingClass,
    pub parties: Vec<Party>,
}
