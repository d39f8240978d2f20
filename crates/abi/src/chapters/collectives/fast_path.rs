//! Fast path of blocking collective operations on `MPI_COMM_WORLD` or `MPI_COMM_SELF` with predefined types without gaps, not in
//! place. In most programs these calls are the most frequent. They need no buffers that outlive the call.
//!
//! `None` means that nothing was done. If an argument is wrong, the slow path then reports the error. The ranks of an operation may
//! take different paths, because both paths send the same messages.

use super::{FastPath, tally};
use crate::constants::*;
use crate::elements::Arguments;
use crate::engine::{CommObject, JobFabric};
use crate::error::Error;
use crate::state::state;
use crate::types::Datatype;
use crate::waiting::WaitingCall;
use smallvec::SmallVec;
use std::ffi::c_int;
use std::rc::Rc;
use weft_collective::CollectiveKind;
use weft_collective::run::CollectiveCall;
use weft_fabric::{Fault, Sge};
use weft_process::CallKey;

/// Runs an operation on the caller's stack.
#[inline(always)]
pub(super) fn at_once<A: Arguments>(
    comm: &Rc<CommObject>,
    operation: CollectiveKind,
    asked: CallKey,
    run: impl AsyncFnOnce(CollectiveCall<'_, JobFabric>) -> Result<(), Fault>,
) -> FastPath {
    tally::<A>(comm);
    Some(comm.run_in_place(&WaitingCall::new(A::NAME), operation, asked, run).map_err(Error::from))
}

pub(super) fn a_rank(comm: &CommObject, value: c_int) -> Option<usize> {
    usize::try_from(value).ok().filter(|&rank| rank < comm.size())
}

/// Returns the bytes of an element of a type that `plain` knows.
pub(super) fn element(ty: Datatype) -> usize {
    state().plain_sizes.get(ty.0.wrapping_sub(MPI_DATATYPE_NULL.0)).map_or(1, |n| n.get().into())
}

/// Memory of a block for each rank.
pub(super) type List = SmallVec<[Sge; 8]>;
