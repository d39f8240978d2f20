//! Blocking collective operations at once: on `MPI_COMM_WORLD` or `MPI_COMM_SELF`, with predefined types without gaps,
//! not in place. What most programs call most often needs no buffers that outlive the call.
//!
//! Each function returns `None`, having done nothing, for any other call: also for one whose arguments are wrong,
//! which the long way then tells. Ranks of one operation may go either way: the messages are the same.

use crate::arguments::{fixed_comm, plain};
use crate::chapters::operators::reduction;
use crate::constants::*;
use crate::error::Error;
use crate::node::{CommObject, Node};
use crate::state::state;
use crate::types::{Comm, Datatype, Op};
use crate::waiting::Call;
use crate::widen::{Counts, Displs};
use smallvec::SmallVec;
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use weft_collective::{Choice, CollectiveState, Link, Operation, run};
use weft_fabric::{Fault, Sge};
use weft_process::CallKey;

type Outcome = Option<Result<(), Error>>;

/// Runs one operation on the caller's stack.
#[inline(always)]
fn at_once(
    comm: &Rc<CommObject>,
    call: &'static str,
    operation: Operation,
    asked: CallKey,
    run: impl AsyncFnOnce(&Link<Node>, &CollectiveState<Node>, Choice) -> Result<(), Fault>,
) -> Outcome {
    Some(comm.run_in_place(&Call::new(call), operation, asked, run).map_err(Error::from))
}

fn a_rank(comm: &CommObject, value: c_int) -> Option<usize> {
    usize::try_from(value).ok().filter(|&rank| rank < comm.size())
}

/// Bytes of one element of a type that [`plain`] knows.
fn element(ty: Datatype) -> usize {
    state().plain_sizes.get(ty.0.wrapping_sub(MPI_DATATYPE_NULL.0)).map_or(1, |&n| n.into())
}

/// Blocks by rank.
type List = SmallVec<[Sge; 8]>;

/// A buffer of one block a rank, one behind the other.
struct Whole {
    all: Sge,
    block: usize,
    ranks: usize,
}

impl Whole {
    /// # Safety
    /// As for [`plain`], for `n` elements a rank.
    unsafe fn new(comm: &CommObject, buf: *const c_void, n: i64, ty: Datatype) -> Option<Whole> {
        let ranks = comm.size();
        // SAFETY: by contract.
        let all = unsafe { plain(buf, n.checked_mul(ranks as i64)?, ty) }?;
        Some(Whole { all, block: all.len() / ranks, ranks })
    }

    fn get(&self, rank: usize) -> Sge {
        self.all.part(rank * self.block, self.block)
    }

    /// Adds them to a list where that lies: moving it would wait for what has just been stored.
    #[inline(always)]
    fn list(&self, blocks: &mut List) {
        (0..self.ranks).for_each(|rank| blocks.push(self.get(rank)));
    }
}

pub(super) unsafe fn barrier(handle: Comm) -> Outcome {
    let comm = fixed_comm(handle)?;
    tally!("MPI_Barrier", comm);
    at_once(comm, "MPI_Barrier", Operation::Barrier, CallKey::of(0), async |link, state, choice| {
        run::barrier(link, state, choice).await
    })
}

pub(super) unsafe fn bcast(
    buf: *mut c_void,
    n: i64,
    ty: Datatype,
    root: c_int,
    handle: Comm,
) -> Outcome {
    let comm = fixed_comm(handle)?;
    let root = a_rank(comm, root)?;
    // SAFETY: the caller's buffer.
    let data = unsafe { plain(buf, n, ty) }?;
    tally!("MPI_Bcast", comm);
    let asked = CallKey::of(data.len());
    at_once(comm, "MPI_Bcast", Operation::Bcast, asked, async |link, state, choice| {
        run::bcast(link, state, choice, root, data).await
    })
}

pub(super) unsafe fn gather(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    root: c_int,
    handle: Comm,
) -> Outcome {
    let comm = fixed_comm(handle)?;
    let (me, root) = (comm.rank(), a_rank(comm, root)?);
    // SAFETY: the caller's buffers.
    let mine = unsafe { plain(sendbuf, sendcount, sendtype) }?;
    let mut blocks = List::new();
    if me == root {
        // SAFETY: the caller's buffers.
        let into = unsafe { Whole::new(comm, recvbuf, recvcount, recvtype) }?;
        if into.block != mine.len() {
            return None;
        }
        into.list(&mut blocks);
    }
    tally!("MPI_Gather", comm);
    let asked = CallKey::of(mine.len());
    at_once(comm, "MPI_Gather", Operation::Gather, asked, async |link, state, choice| {
        run::gather(link, state, choice, root, mine, &blocks).await
    })
}

pub(super) unsafe fn scatter(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    root: c_int,
    handle: Comm,
) -> Outcome {
    let comm = fixed_comm(handle)?;
    let (me, root) = (comm.rank(), a_rank(comm, root)?);
    // SAFETY: the caller's buffers.
    let mine = unsafe { plain(recvbuf, recvcount, recvtype) }?;
    let mut blocks = List::new();
    if me == root {
        // SAFETY: the caller's buffers.
        let out = unsafe { Whole::new(comm, sendbuf, sendcount, sendtype) }?;
        if out.block != mine.len() {
            return None;
        }
        out.list(&mut blocks);
    }
    tally!("MPI_Scatter", comm);
    let asked = CallKey::of(mine.len());
    at_once(comm, "MPI_Scatter", Operation::Scatter, asked, async |link, state, choice| {
        run::scatter(link, state, choice, root, &blocks, mine).await
    })
}

pub(super) unsafe fn allgather(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    handle: Comm,
) -> Outcome {
    let comm = fixed_comm(handle)?;
    // SAFETY: the caller's buffers.
    let (mine, into) = unsafe {
        let mine = plain(sendbuf, sendcount, sendtype)?;
        (mine, Whole::new(comm, recvbuf, recvcount, recvtype)?)
    };
    if into.block != mine.len() {
        return None;
    }
    tally!("MPI_Allgather", comm);
    let mut blocks = List::new();
    into.list(&mut blocks);
    let asked = CallKey::of(into.block);
    at_once(comm, "MPI_Allgather", Operation::Allgather, asked, async |link, state, choice| {
        run::allgather(link, state, choice, mine, &blocks).await
    })
}

pub(super) unsafe fn alltoall(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    handle: Comm,
) -> Outcome {
    let comm = fixed_comm(handle)?;
    // SAFETY: the caller's buffers.
    let (out, into) = unsafe {
        let out = Whole::new(comm, sendbuf, sendcount, sendtype)?;
        (out, Whole::new(comm, recvbuf, recvcount, recvtype)?)
    };
    if out.block != into.block {
        return None;
    }
    tally!("MPI_Alltoall", comm);
    let (mut sent, mut received) = (List::new(), List::new());
    out.list(&mut sent);
    into.list(&mut received);
    let asked = CallKey::of(into.block);
    at_once(comm, "MPI_Alltoall", Operation::Alltoall, asked, async |link, state, choice| {
        run::alltoall(link, state, choice, &sent, &received).await
    })
}

/// Blocks of their own length and place, in elements; `None` as for [`plain`].
///
/// # Safety
/// As for [`plain`]; the arrays have one entry a rank.
#[inline(always)]
unsafe fn varying(
    blocks: &mut List,
    ranks: usize,
    (buf, counts, displs): (*const c_void, Counts, Displs),
    ty: Datatype,
) -> Option<()> {
    if counts.is_null() || displs.is_null() || buf.addr() <= MPI_IN_PLACE {
        return None;
    }
    let extent = element(ty) as isize;
    for rank in 0..ranks {
        // SAFETY: by contract.
        let block = unsafe {
            let at = buf.wrapping_byte_offset((displs.get(rank) as isize).wrapping_mul(extent));
            plain(at, counts.get(rank), ty)?
        };
        blocks.push(block);
    }
    Some(())
}

pub(super) unsafe fn gatherv(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcounts: Counts,
    displs: Displs,
    recvtype: Datatype,
    root: c_int,
    handle: Comm,
) -> Outcome {
    let comm = fixed_comm(handle)?;
    let (me, root) = (comm.rank(), a_rank(comm, root)?);
    // SAFETY: the caller's buffers.
    let mine = unsafe { plain(sendbuf, sendcount, sendtype) }?;
    let mut blocks = List::new();
    if me == root {
        // SAFETY: the caller's buffers.
        unsafe { varying(&mut blocks, comm.size(), (recvbuf, recvcounts, displs), recvtype) }?;
        if blocks[me].len() != mine.len() {
            return None;
        }
    }
    tally!("MPI_Gatherv", comm);
    let asked = CallKey::of(0);
    at_once(comm, "MPI_Gatherv", Operation::Gatherv, asked, async |link, state, choice| {
        run::gather(link, state, choice, root, mine, &blocks).await
    })
}

pub(super) unsafe fn scatterv(
    sendbuf: *const c_void,
    sendcounts: Counts,
    displs: Displs,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    root: c_int,
    handle: Comm,
) -> Outcome {
    let comm = fixed_comm(handle)?;
    let (me, root) = (comm.rank(), a_rank(comm, root)?);
    // SAFETY: the caller's buffers.
    let mine = unsafe { plain(recvbuf, recvcount, recvtype) }?;
    let mut blocks = List::new();
    if me == root {
        // SAFETY: the caller's buffers.
        unsafe { varying(&mut blocks, comm.size(), (sendbuf, sendcounts, displs), sendtype) }?;
        if blocks[me].len() != mine.len() {
            return None;
        }
    }
    tally!("MPI_Scatterv", comm);
    let asked = CallKey::of(0);
    at_once(comm, "MPI_Scatterv", Operation::Scatterv, asked, async |link, state, choice| {
        run::scatter(link, state, choice, root, &blocks, mine).await
    })
}

pub(super) unsafe fn alltoallv(
    sendbuf: *const c_void,
    sendcounts: Counts,
    sdispls: Displs,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcounts: Counts,
    rdispls: Displs,
    recvtype: Datatype,
    handle: Comm,
) -> Outcome {
    let comm = fixed_comm(handle)?;
    let (me, ranks) = (comm.rank(), comm.size());
    let (mut out, mut into) = (List::new(), List::new());
    // SAFETY: the caller's buffers.
    unsafe {
        varying(&mut out, ranks, (sendbuf, sendcounts, sdispls), sendtype)?;
        varying(&mut into, ranks, (recvbuf, recvcounts, rdispls), recvtype)?;
    }
    if out[me].len() != into[me].len() {
        return None;
    }
    tally!("MPI_Alltoallv", comm);
    let asked = CallKey::of(0);
    at_once(comm, "MPI_Alltoallv", Operation::Alltoallv, asked, async |link, state, choice| {
        run::alltoall(link, state, choice, &out, &into).await
    })
}

pub(super) unsafe fn reduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    n: i64,
    ty: Datatype,
    op: Op,
    root: c_int,
    handle: Comm,
) -> Outcome {
    let comm = fixed_comm(handle)?;
    let root = a_rank(comm, root)?;
    // SAFETY: the caller's buffers; the receive buffer means something at the root alone.
    let (data, result) = unsafe {
        let result = if root == comm.rank() { plain(recvbuf, n, ty)? } else { Sge::EMPTY };
        (plain(sendbuf, n, ty)?, result)
    };
    let (op, _) = reduction(op, ty).ok()?;
    tally!("MPI_Reduce", comm);
    let (element, commutes) = (element(ty), op.commutes());
    let asked = CallKey { bytes: data.len(), element, commutes, equal: true };
    at_once(comm, "MPI_Reduce", Operation::Reduce, asked, async |link, state, choice| {
        run::reduce(link, state, choice, root, (data, result, element), &*op).await
    })
}

/// The operands of a reduction whose result everybody has.
///
/// # Safety
/// As for [`plain`].
#[inline(always)]
unsafe fn operands(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    n: i64,
    ty: Datatype,
) -> Option<(Sge, Sge, usize)> {
    // SAFETY: by contract.
    unsafe { Some((plain(sendbuf, n, ty)?, plain(recvbuf, n, ty)?, element(ty))) }
}

pub(super) unsafe fn allreduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    n: i64,
    ty: Datatype,
    op: Op,
    handle: Comm,
) -> Outcome {
    let comm = fixed_comm(handle)?;
    // SAFETY: the caller's buffers.
    let (data, result, element) = unsafe { operands(sendbuf, recvbuf, n, ty) }?;
    let (op, _) = reduction(op, ty).ok()?;
    tally!("MPI_Allreduce", comm);
    let asked = CallKey { bytes: data.len(), element, commutes: op.commutes(), equal: true };
    at_once(comm, "MPI_Allreduce", Operation::Allreduce, asked, async |link, state, choice| {
        run::allreduce(link, state, choice, (data, result, element), &*op).await
    })
}

pub(super) unsafe fn scan(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    n: i64,
    ty: Datatype,
    op: Op,
    handle: Comm,
) -> Outcome {
    let comm = fixed_comm(handle)?;
    // SAFETY: the caller's buffers.
    let (data, result, element) = unsafe { operands(sendbuf, recvbuf, n, ty) }?;
    let (op, _) = reduction(op, ty).ok()?;
    tally!("MPI_Scan", comm);
    let asked = CallKey { bytes: data.len(), element, commutes: op.commutes(), equal: true };
    at_once(comm, "MPI_Scan", Operation::Scan, asked, async |link, state, choice| {
        run::scan(link, state, choice, (data, result, element), &*op).await
    })
}

pub(super) unsafe fn exscan(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    n: i64,
    ty: Datatype,
    op: Op,
    handle: Comm,
) -> Outcome {
    let comm = fixed_comm(handle)?;
    // SAFETY: the caller's buffers.
    let (data, result, element) = unsafe { operands(sendbuf, recvbuf, n, ty) }?;
    let (op, _) = reduction(op, ty).ok()?;
    tally!("MPI_Exscan", comm);
    let asked = CallKey { bytes: data.len(), element, commutes: op.commutes(), equal: true };
    at_once(comm, "MPI_Exscan", Operation::Exscan, asked, async |link, state, choice| {
        run::exscan(link, state, choice, (data, result, element), &*op).await
    })
}

pub(super) unsafe fn reduce_scatter_block(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    n: i64,
    ty: Datatype,
    op: Op,
    handle: Comm,
) -> Outcome {
    let comm = fixed_comm(handle)?;
    // SAFETY: the caller's buffers.
    let (data, result) = unsafe { (Whole::new(comm, sendbuf, n, ty)?, plain(recvbuf, n, ty)?) };
    let (op, _) = reduction(op, ty).ok()?;
    tally!("MPI_Reduce_scatter_block", comm);
    let (element, commutes) = (element(ty), op.commutes());
    let asked = CallKey { bytes: data.all.len(), element, commutes, equal: true };
    let call = "MPI_Reduce_scatter_block";
    at_once(comm, call, Operation::ReduceScatter, asked, async |link, state, choice| {
        let lens: SmallVec<[usize; 8]> = SmallVec::from_elem(data.block, link.size());
        let (data, result) = ((data.all, &lens[..]), (result, element));
        run::reduce_scatter(link, state, choice, data, result, &*op).await
    })
}
