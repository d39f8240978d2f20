//! Collective communication (MPI 5.0, chapter 6). Each operation is implemented once, and runs in place (blocking), as a task
//! in the nonblocking context, or repeatedly (persistent).

use crate::arguments::{
    at_leaf, at_root, comm, count, fixed_comm, optional_info, room_for_request, root,
};
use crate::calls::{Barrier, Bcast};
use crate::chapters::tools::collective_counts;
use crate::constants::*;
use crate::elements::{Arguments, Elements};
use crate::engine::CommObject;
use crate::error::Error;
use crate::objects::RequestOrigin;
use crate::requests::{persist, start};
use crate::types::{Info, Request};
use crate::waiting::WaitingCall;
use crate::widen_counts::Counts;
use fast_path::{a_rank, at_once};
use smallvec::SmallVec;
use std::ffi::c_void;
use std::rc::Rc;
use weft_collective::CollectiveKind;
use weft_process::{Active, Buffer, CallKey, CollectiveOperation, Executor, PersistentTask, Root};

/// Function that makes an operation on a communicator or on a view of a communicator, each time the operation is started.
pub(crate) trait Make: 'static {
    type Operation: CollectiveOperation;

    fn make(&self, on: Rc<CommObject>) -> Self::Operation;
}

impl<M, R> Make for M
where
    M: Fn(Rc<CommObject>) -> R + 'static,
    R: CollectiveOperation,
{
    type Operation = R;

    fn make(&self, on: Rc<CommObject>) -> R {
        self(on)
    }
}

/// An operation whose arguments are checked: the communicator, the threads that may run the operation as a task, and the function
/// that makes the operation.
pub(crate) struct Ready<M> {
    comm: Rc<CommObject>,
    by: Executor,
    make: M,
}

/// Counts an operation as started, for the tool interface.
#[inline(always)]
fn tally<A: Arguments>(comm: &CommObject) {
    collective_counts::count(const { collective_counts::kind(A::NAME) }, comm)
}

/// Outcome of an operation that ran on the fast path. `None` means that nothing was done, and that [`Collective::slow_path`] has to
/// check the arguments and report errors.
type FastPath = Option<Result<(), Error>>;

/// A collective operation, in its three forms. A blocking operation runs on the caller's stack. A persistent operation is boxed
/// once, not at each start.
pub(crate) trait Collective: Arguments {
    /// Checks the arguments.
    fn slow_path(self) -> Prepared<impl Make>;

    /// Runs the operation if it needs no buffers that outlive the call (see [`at_once`]).
    #[inline(always)]
    fn fast_path(self) -> FastPath {
        None
    }

    #[inline(always)]
    fn blocking(self) -> Result<(), Error> {
        if let Some(outcome) = self.fast_path() {
            return outcome;
        }
        let Ready { comm, make, .. } = self.slow_path()?;
        tally::<Self>(&comm);
        let engine = comm.engine().clone();
        // The operation is pinned on the stack where it is made, so that it is never moved.
        let operation = std::pin::pin!(make.make(comm));
        Ok(engine.block_on(&WaitingCall::new(Self::NAME), operation)?)
    }

    /// # Safety
    /// `request` is NULL or may be written.
    unsafe fn nonblocking(self, request: *mut Request) -> Result<(), Error> {
        room_for_request(request)?;
        let Ready { comm, by, make } = self.slow_path()?;
        tally::<Self>(&comm);
        let task = comm.engine().spawn_by(by, make.make(comm.nonblocking_context().clone()));
        // SAFETY: `start` needs a `request` that is NULL or may be written; the contract of this function says so.
        unsafe { start(request, &comm, Active::Task(task), RequestOrigin::Collective) }
    }

    /// # Safety
    /// `request` is NULL or may be written.
    unsafe fn persistent(self, info: Info, request: *mut Request) -> Result<(), Error> {
        room_for_request(request)?;
        optional_info(info)?;
        let Ready { comm, by, make } = self.slow_path()?;
        // The ranks agree on a context here, so that the order of the starts does not matter (MPI 5.0, section 6.13).
        let context = comm.persistent_context();
        let operation = PersistentTask::new(by, move || make.make(context.clone()));
        let on = comm.clone();
        let recipe = move || {
            tally::<Self>(&on);
            Ok(Active::Task(on.engine().start(&operation)))
        };
        // SAFETY: `persist` needs a `request` that is NULL or may be written; the contract of this function says so.
        unsafe { persist(request, &comm, recipe, RequestOrigin::Collective) }
    }
}

/// Implements a collective operation whose fast and slow paths are functions that several operations share.
macro_rules! both {
    (
        $(#[$names:meta])*
        $forms:ident for $name:ident by $prepare:ident, $at_once:ident ($($field:ident),*)
    ) => {
        $(#[$names])*
        impl $forms for $name {
            #[inline(always)]
            fn fast_path(self) -> FastPath {
                $at_once::<Self, _>(CollectiveKind::$name, $(self.$field),*)
            }

            fn slow_path(self) -> Prepared<impl Make> {
                $prepare($(self.$field),*)
            }
        }
    };
}

type Prepared<M> = Result<Ready<M>, Error>;

/// Returns an operation that any thread of the library may progress.
fn ready<M: Make>(comm: Rc<CommObject>, make: M) -> Prepared<M> {
    ready_by(Executor::Anybody, comm, make)
}

/// Returns an operation that may call functions of the program. So only the threads in `by` may progress it.
fn ready_by<M: Make>(by: Executor, comm: Rc<CommObject>, make: M) -> Prepared<M> {
    Ok(Ready { comm, by, make })
}

mod blocks;
mod fast_path;
mod neighbors;
mod rank_buffers;
mod reductions;

/// MPI_Barrier, MPI_Ibarrier, MPI_Barrier_init.
impl Collective for Barrier {
    #[inline(always)]
    fn fast_path(self) -> FastPath {
        let comm = fixed_comm(self.comm)?;
        at_once::<Self>(comm, CollectiveKind::Barrier, CallKey::of(0), async |call| {
            call.barrier().await
        })
    }

    fn slow_path(self) -> Prepared<impl Make> {
        ready(comm(self.comm)?, |c: Rc<CommObject>| c.barrier())
    }
}

/// MPI_Bcast, MPI_Bcast_c, MPI_Ibcast, MPI_Ibcast_c, MPI_Bcast_init, MPI_Bcast_init_c.
impl Collective for Bcast {
    #[inline(always)]
    fn fast_path(self) -> FastPath {
        let comm = fixed_comm(self.comm)?;
        let root = a_rank(comm, self.root)?;
        let data = self.buffer.plain()?;
        let asked = CallKey::of(data.len());
        at_once::<Self>(comm, CollectiveKind::Bcast, asked, async |call| {
            call.bcast(root, data).await
        })
    }

    fn slow_path(self) -> Prepared<impl Make> {
        let comm = comm(self.comm)?;
        let root = root(&comm, self.root)?;
        // On a process that is neither the root nor a receiver, the buffer is not significant.
        let given = if root == Root::NotInvolved { Elements::none() } else { self.buffer };
        let data = given.buffer()?;
        ready(comm, move |c: Rc<CommObject>| c.bcast(data.clone(), root))
    }
}

/// Returns a buffer, or `None` for `MPI_IN_PLACE`, which is an error in an intercommunicator.
fn in_place(comm: &CommObject, given: Elements) -> Result<Option<Buffer>, Error> {
    if is_in_place(comm, given.address, given.names[0])? {
        return Ok(None);
    }
    given.buffer().map(Some)
}

/// Checks that a rank that is not the root has given a buffer, and not `MPI_IN_PLACE`.
fn root_in_place(comm: &CommObject, root: Root, given: Option<&Buffer>) -> Result<(), Error> {
    if at_leaf(root) && given.is_none() && !at_root(comm, root) {
        return Err(Error::new(MPI_ERR_BUFFER, "MPI_IN_PLACE is for the root alone"));
    }
    Ok(())
}

fn is_in_place(comm: &CommObject, buf: *const c_void, name: &str) -> Result<bool, Error> {
    let yes = buf.addr() == MPI_IN_PLACE;
    if yes && comm.remote().is_some() {
        let text = format!("argument {name} is MPI_IN_PLACE, which intercommunicators do not have");
        return Err(Error::new(MPI_ERR_BUFFER, text));
    }
    Ok(yes)
}

/// A count for each rank. For few ranks, no heap memory is needed.
type CountArray = SmallVec<[usize; 8]>;

/// Returns a count for each rank, and checks that no count is negative.
///
/// # Safety
/// The array is NULL or has `n` counts.
unsafe fn count_array(counts: Counts, n: usize, name: &str) -> Result<CountArray, Error> {
    if counts.is_null() && n > 0 {
        return Err(Error::new(MPI_ERR_ARG, format_args!("argument {name} is NULL")));
    }
    let one = |i| {
        // SAFETY: `counts` is not NULL, `i` is less than `n`, and the array has `n` counts; the contract of this function says so.
        let value = unsafe { counts.get(i) };
        usize::try_from(value).or_else(|_| count(value, &format!("{name}[{i}]")))
    };
    (0..n).map(one).collect()
}
