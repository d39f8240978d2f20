//! Reductions and scans (MPI 5.0, sections 6.9 to 6.11).

use super::fast_path::{a_rank, at_once, element};
use super::{
    Collective, CountArray, FastPath, Make, Prepared, count_array, in_place, is_in_place, ready_by,
    root_in_place,
};
use crate::arguments::{at_leaf, at_root, comm, count, fixed_comm, intracomm, root};
use crate::calls::*;
use crate::chapters::operators::{Reduction, reduction};
use crate::elements::Elements;
use crate::engine::CommObject;
use crate::types::{Comm, Op};
use smallvec::SmallVec;
use std::rc::Rc;
use weft_collective::{
    CollectiveKind, ElementReduction as Combine, Prefix, ReduceScatterBuffers, ReductionBuffers,
};
use weft_fabric::Sge;
use weft_process::{CallKey, Executor};

/// Placeholder for the operator at a process that reduces nothing. The operator argument of such a process is not significant.
struct Nothing;

impl Combine for Nothing {
    fn combine(&self, _: Sge, _: Sge) {
        unreachable!("no operands meet here")
    }

    fn commutes(&self) -> bool {
        true
    }
}

/// Returns the key by which an algorithm is chosen: number of bytes, and properties of the operator.
fn key(bytes: usize, element: usize, op: &dyn Combine) -> CallKey {
    let order = op.order();
    CallKey { bytes, element, commutes: order.commutes(), equal: true, order }
}

/// MPI_Reduce, MPI_Reduce_c, MPI_Ireduce, MPI_Ireduce_c, MPI_Reduce_init, MPI_Reduce_init_c.
impl Collective for Reduce {
    #[inline(always)]
    fn fast_path(self) -> FastPath {
        let comm = fixed_comm(self.comm)?;
        let root = a_rank(comm, self.root)?;
        // The receive buffer is significant only at the root.
        let result = if root == comm.rank() { self.recvbuf.plain()? } else { Sge::EMPTY };
        let data = self.sendbuf.plain()?;
        let ty = self.sendbuf.ty;
        let (op, element) = (reduction(self.op, ty).ok()?.0, element(ty));
        let asked = key(data.len(), element, &*op);
        at_once::<Self>(comm, CollectiveKind::Reduce, asked, async |call| {
            let buffers = ReductionBuffers { data, result, element };
            call.reduce(root, buffers, &*op).await
        })
    }

    fn slow_path(self) -> Prepared<impl Make> {
        let comm = comm(self.comm)?;
        let root = root(&comm, self.root)?;
        let (at_root, at_leaf) = (at_root(&comm, root), at_leaf(root));
        let (reduce, by): Reduction = match at_leaf {
            true => reduction(self.op, self.sendbuf.ty)?,
            // This process contributes nothing, because the data of the other group are reduced.
            false => (Rc::new(Nothing), Executor::Anybody),
        };
        let send = if at_leaf { in_place(&comm, self.sendbuf)? } else { None };
        let receive = if at_root { Some(self.recvbuf.buffer()?) } else { None };
        root_in_place(&comm, root, send.as_ref())?;
        ready_by(by, comm, move |c: Rc<CommObject>| {
            c.reduce(send.clone(), receive.clone(), root, reduce.clone())
        })
    }
}

/// Operands of a fast-path operation whose result all ranks get.
type Operands = (&'static Rc<CommObject>, ReductionBuffers, Rc<dyn Combine>, CallKey);

#[inline(always)]
fn operands(send: Elements, recv: Elements, op: Op, handle: Comm) -> Option<Operands> {
    let comm = fixed_comm(handle)?;
    let (data, result, element) = (send.plain()?, recv.plain()?, element(send.ty));
    let (op, _) = reduction(op, send.ty).ok()?;
    let asked = key(data.len(), element, &*op);
    Some((comm, ReductionBuffers { data, result, element }, op, asked))
}

/// MPI_Allreduce, MPI_Allreduce_c, MPI_Iallreduce, MPI_Iallreduce_c, MPI_Allreduce_init,
/// MPI_Allreduce_init_c.
impl Collective for Allreduce {
    #[inline(always)]
    fn fast_path(self) -> FastPath {
        let Self { sendbuf, recvbuf, op, comm } = self;
        let (comm, buffers, op, asked) = operands(sendbuf, recvbuf, op, comm)?;
        at_once::<Self>(comm, CollectiveKind::Allreduce, asked, async |call| {
            call.allreduce(buffers, &*op).await
        })
    }

    fn slow_path(self) -> Prepared<impl Make> {
        let comm = comm(self.comm)?;
        let (reduce, by) = reduction(self.op, self.sendbuf.ty)?;
        let (send, receive) = (in_place(&comm, self.sendbuf)?, self.recvbuf.buffer()?);
        ready_by(by, comm, move |c: Rc<CommObject>| {
            c.allreduce(send.clone(), receive.clone(), reduce.clone())
        })
    }
}

fn scan(
    prefix: Prefix,
    send: Elements,
    recv: Elements,
    op: Op,
    handle: Comm,
) -> Prepared<impl Make> {
    let comm = intracomm(handle)?;
    let (reduce, by) = reduction(op, send.ty)?;
    let (send, receive) = (in_place(&comm, send)?, recv.buffer()?);
    ready_by(by, comm, move |c: Rc<CommObject>| {
        c.scan(send.clone(), receive.clone(), reduce.clone(), prefix)
    })
}

/// MPI_Scan, MPI_Scan_c, MPI_Iscan, MPI_Iscan_c, MPI_Scan_init, MPI_Scan_init_c.
impl Collective for Scan {
    #[inline(always)]
    fn fast_path(self) -> FastPath {
        let Self { sendbuf, recvbuf, op, comm } = self;
        let (comm, buffers, op, asked) = operands(sendbuf, recvbuf, op, comm)?;
        at_once::<Self>(comm, CollectiveKind::Scan, asked, async |call| {
            call.scan(Prefix::Inclusive, buffers, &*op).await
        })
    }

    fn slow_path(self) -> Prepared<impl Make> {
        scan(Prefix::Inclusive, self.sendbuf, self.recvbuf, self.op, self.comm)
    }
}

/// MPI_Exscan, MPI_Exscan_c, MPI_Iexscan, MPI_Iexscan_c, MPI_Exscan_init, MPI_Exscan_init_c.
impl Collective for Exscan {
    #[inline(always)]
    fn fast_path(self) -> FastPath {
        let Self { sendbuf, recvbuf, op, comm } = self;
        let (comm, buffers, op, asked) = operands(sendbuf, recvbuf, op, comm)?;
        at_once::<Self>(comm, CollectiveKind::Exscan, asked, async |call| {
            call.scan(Prefix::Exclusive, buffers, &*op).await
        })
    }

    fn slow_path(self) -> Prepared<impl Make> {
        scan(Prefix::Exclusive, self.sendbuf, self.recvbuf, self.op, self.comm)
    }
}

/// Reduces `counts[rank]` elements to each rank. In place, the receive buffer holds the complete input.
fn reduce_scatter(
    send: Elements,
    recv: Elements,
    counts: CountArray,
    op: Op,
    comm: Rc<CommObject>,
) -> Prepared<impl Make> {
    let (reduce, by) = reduction(op, send.ty)?;
    let total = counts.iter().sum::<usize>() as i64;
    let mine = counts[comm.rank()] as i64;
    let in_place = is_in_place(&comm, send.address, send.names[0])?;
    let from = if in_place { recv.address } else { send.address };
    // SAFETY: the send buffer (or, in place, the receive buffer) has `total` elements and the receive buffer `mine` (MPI 5.0,
    // section 6.10).
    let (send, receive) = unsafe {
        let send = Elements::new(from, total, send.ty, send.names).buffer()?;
        (send, recv.of(mine).buffer()?)
    };
    ready_by(by, comm, move |c: Rc<CommObject>| {
        c.reduce_scatter(send.clone(), counts.clone(), receive.clone(), reduce.clone())
    })
}

/// MPI_Reduce_scatter, MPI_Reduce_scatter_c, MPI_Ireduce_scatter, MPI_Ireduce_scatter_c,
/// MPI_Reduce_scatter_init, MPI_Reduce_scatter_init_c.
impl Collective for ReduceScatter {
    fn slow_path(self) -> Prepared<impl Make> {
        let comm = comm(self.comm)?;
        // SAFETY: `recvcounts` is NULL or has a count for each rank, as MPI requires of the program.
        let counts = unsafe { count_array(self.recvcounts, comm.size(), "recvcounts") }?;
        reduce_scatter(self.sendbuf, self.recvbuf, counts, self.op, comm)
    }
}

/// MPI_Reduce_scatter_block, MPI_Reduce_scatter_block_c, MPI_Ireduce_scatter_block,
/// MPI_Ireduce_scatter_block_c, MPI_Reduce_scatter_block_init, MPI_Reduce_scatter_block_init_c.
impl Collective for ReduceScatterBlock {
    #[inline(always)]
    fn fast_path(self) -> FastPath {
        let comm = fixed_comm(self.comm)?;
        let count = self.sendbuf.count.checked_mul(comm.size() as i64)?;
        // SAFETY: the send buffer has a block of `self.sendbuf.count` elements for each rank, as MPI requires of the program.
        let data = unsafe { self.sendbuf.of(count) }.plain()?;
        let (result, element) = (self.recvbuf.plain()?, element(self.recvbuf.ty));
        let (op, _) = reduction(self.op, self.recvbuf.ty).ok()?;
        let asked = key(data.len(), element, &*op);
        at_once::<Self>(comm, CollectiveKind::ReduceScatter, asked, async |call| {
            let lens: SmallVec<[usize; 8]> = SmallVec::from_elem(result.len(), call.link.size());
            let buffers = ReduceScatterBuffers { data, lens: &lens, result, element };
            call.reduce_scatter(buffers, &*op).await
        })
    }

    fn slow_path(self) -> Prepared<impl Make> {
        let comm = comm(self.comm)?;
        let counts = CountArray::from_elem(count(self.recvbuf.count, "recvcount")?, comm.size());
        reduce_scatter(self.sendbuf, self.recvbuf, counts, self.op, comm)
    }
}
