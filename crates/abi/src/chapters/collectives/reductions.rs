//! Reductions and scans (MPI 5.0, sections 6.9 to 6.11).

use super::{
    CountArray, Make, Prepared, Ready, at_once, count_array, in_place, is_in_place, ready_by,
};
use crate::arguments::{at_leaf, at_root, buffer, comm, count, intracomm, optional_info, root};
use crate::chapters::messages::{persist, start};
use crate::chapters::operators::{Reduction, reduction};
use crate::constants::*;
use crate::error::Error;
use crate::node::CommObject;
use crate::objects::RequestKind;
use crate::types::{Comm, Datatype, Info, Op, Request};
use crate::waiting::Call;
use crate::widen::Counts;
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use weft_collective::Reduce;
use weft_fabric::Sge;
use weft_process::{Active, Executor};

const REDUCE_SEND: [&str; 3] = ["sendbuf", "count", "datatype"];
const REDUCE_RECV: [&str; 3] = ["recvbuf", "count", "datatype"];

/// The operator where this process reduces nothing, and its arguments mean nothing.
struct Nothing;

impl Reduce for Nothing {
    fn combine(&self, _: Sge, _: Sge) {
        unreachable!("no operands meet here")
    }

    fn commutes(&self) -> bool {
        true
    }
}

unsafe fn prepare_reduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    n: i64,
    datatype: Datatype,
    op: Op,
    root_: c_int,
    handle: Comm,
) -> Prepared<impl Make> {
    let comm = comm(handle)?;
    let root = root(&comm, root_)?;
    let (at_root, at_leaf) = (at_root(&comm, root), at_leaf(root));
    let (reduce, by): Reduction = match at_leaf {
        true => reduction(op, datatype)?,
        // The other group reduces.
        false => (Rc::new(Nothing), Executor::Anybody),
    };
    // SAFETY: the caller's buffers; the receive buffer means something at the root alone.
    let (send, receive) = unsafe {
        let send = match at_leaf {
            true => in_place(&comm, sendbuf, n, datatype, REDUCE_SEND)?,
            false => None,
        };
        let receive = match at_root {
            true => Some(buffer(recvbuf, n, datatype, REDUCE_RECV)?),
            false => None,
        };
        (send, receive)
    };
    if at_leaf && send.is_none() && !at_root {
        return Err(Error::new(MPI_ERR_BUFFER, "MPI_IN_PLACE is for the root alone"));
    }
    ready_by(by, comm, move |c: Rc<CommObject>| {
        c.reduce(send.clone(), receive.clone(), root, reduce.clone())
    })
}

operation!("MPI_Reduce" reduce ireduce reduce_init
    (sendbuf: *const c_void, recvbuf: *mut c_void, n: i64, datatype: Datatype, op: Op,
     root: c_int, handle: Comm) prepare_reduce, at once by at_once::reduce);

unsafe fn prepare_allreduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    n: i64,
    datatype: Datatype,
    op: Op,
    handle: Comm,
) -> Prepared<impl Make> {
    let comm = comm(handle)?;
    let (reduce, by) = reduction(op, datatype)?;
    // SAFETY: the caller's buffers.
    let (send, receive) = unsafe {
        let send = in_place(&comm, sendbuf, n, datatype, REDUCE_SEND)?;
        (send, buffer(recvbuf, n, datatype, REDUCE_RECV)?)
    };
    ready_by(by, comm, move |c: Rc<CommObject>| {
        c.allreduce(send.clone(), receive.clone(), reduce.clone())
    })
}

operation!("MPI_Allreduce" allreduce iallreduce allreduce_init
    (sendbuf: *const c_void, recvbuf: *mut c_void, n: i64, datatype: Datatype, op: Op,
     handle: Comm) prepare_allreduce, at once by at_once::allreduce);

unsafe fn prepare_scan_of(
    exclusive: bool,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    n: i64,
    datatype: Datatype,
    op: Op,
    handle: Comm,
) -> Prepared<impl Make> {
    let comm = intracomm(handle)?;
    let (reduce, by) = reduction(op, datatype)?;
    // SAFETY: the caller's buffers.
    let (send, receive) = unsafe {
        let send = in_place(&comm, sendbuf, n, datatype, REDUCE_SEND)?;
        (send, buffer(recvbuf, n, datatype, REDUCE_RECV)?)
    };
    ready_by(by, comm, move |c: Rc<CommObject>| {
        c.scan(send.clone(), receive.clone(), reduce.clone(), exclusive)
    })
}

unsafe fn prepare_scan(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    n: i64,
    datatype: Datatype,
    op: Op,
    handle: Comm,
) -> Prepared<impl Make> {
    // SAFETY: the same contract.
    unsafe { prepare_scan_of(false, sendbuf, recvbuf, n, datatype, op, handle) }
}

unsafe fn prepare_exscan(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    n: i64,
    datatype: Datatype,
    op: Op,
    handle: Comm,
) -> Prepared<impl Make> {
    // SAFETY: the same contract.
    unsafe { prepare_scan_of(true, sendbuf, recvbuf, n, datatype, op, handle) }
}

operation!("MPI_Scan" scan iscan scan_init
    (sendbuf: *const c_void, recvbuf: *mut c_void, n: i64, datatype: Datatype, op: Op,
     handle: Comm) prepare_scan, at once by at_once::scan);
operation!("MPI_Exscan" exscan iexscan exscan_init
    (sendbuf: *const c_void, recvbuf: *mut c_void, n: i64, datatype: Datatype, op: Op,
     handle: Comm) prepare_exscan, at once by at_once::exscan);

/// Reduces `counts[rank]` elements to each rank.
///
/// # Safety
/// As for [`buffer`].
unsafe fn prepare_reduce_scatter_of(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    counts: CountArray,
    datatype: Datatype,
    op: Op,
    comm: Rc<CommObject>,
) -> Prepared<impl Make> {
    let (reduce, by) = reduction(op, datatype)?;
    let total: usize = counts.iter().sum();
    let mine = counts[comm.rank()];
    let in_place = is_in_place(&comm, sendbuf, "sendbuf")?;
    let from = if in_place { recvbuf.cast_const() } else { sendbuf };
    // SAFETY: by contract; in place, the receive buffer holds all the input.
    let (send, receive) = unsafe {
        let send = buffer(from, total as i64, datatype, ["sendbuf", "recvcounts", "datatype"])?;
        let receive = buffer(recvbuf, mine as i64, datatype, REDUCE_RECV)?;
        (send, receive)
    };
    ready_by(by, comm, move |c: Rc<CommObject>| {
        c.reduce_scatter(send.clone(), counts.clone(), receive.clone(), reduce.clone())
    })
}

unsafe fn prepare_reduce_scatter(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    counts: Counts,
    datatype: Datatype,
    op: Op,
    handle: Comm,
) -> Prepared<impl Make> {
    let comm = comm(handle)?;
    // SAFETY: the caller's array has one count a rank.
    let counts = unsafe { count_array(counts, comm.size(), "recvcounts") }?;
    // SAFETY: the caller's buffers.
    unsafe { prepare_reduce_scatter_of(sendbuf, recvbuf, counts, datatype, op, comm) }
}

unsafe fn prepare_reduce_scatter_block(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    n: i64,
    datatype: Datatype,
    op: Op,
    handle: Comm,
) -> Prepared<impl Make> {
    let comm = comm(handle)?;
    let counts = CountArray::from_elem(count(n, "recvcount")?, comm.size());
    // SAFETY: the caller's buffers.
    unsafe { prepare_reduce_scatter_of(sendbuf, recvbuf, counts, datatype, op, comm) }
}

operation!("MPI_Reduce_scatter" reduce_scatter ireduce_scatter reduce_scatter_init
    (sendbuf: *const c_void, recvbuf: *mut c_void, counts: Counts, datatype: Datatype, op: Op,
     handle: Comm) prepare_reduce_scatter);
operation!("MPI_Reduce_scatter_block" reduce_scatter_block ireduce_scatter_block
    reduce_scatter_block_init
    (sendbuf: *const c_void, recvbuf: *mut c_void, n: i64, datatype: Datatype, op: Op,
     handle: Comm) prepare_reduce_scatter_block, at once by at_once::reduce_scatter_block);
