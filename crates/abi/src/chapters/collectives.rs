//! Collective communication (MPI 5.0, chapter 6): each operation once, run in place, in the
//! background, or again and again.

use crate::arguments::{
    RECVBUF, SENDBUF, buffer, comm, committed, count, not_null, optional_info, root,
};
use crate::chapters::messages::{persist, start};
use crate::chapters::operators::reduction;
use crate::constants::*;
use crate::error::Error;
use crate::node::CommObject;
use crate::objects::RequestKind;
use crate::settings;
use crate::types::{Comm, Datatype, Info, Op, Request};
use crate::waiting::Call;
use crate::widen::{Counts, Displs};
use std::ffi::{c_int, c_void};
use std::pin::Pin;
use std::rc::Rc;
use weft_process::{Active, AllreduceAlgorithm, BarrierAlgorithm, Buffer, Selection};

/// The algorithms that the settings name, by the places of their words in the declarations.
pub fn selection() -> Result<Selection, String> {
    let barrier = match settings::choice("WEFT_BARRIER")? {
        0 => BarrierAlgorithm::Automatic,
        1 => BarrierAlgorithm::Central,
        2 => BarrierAlgorithm::Dissemination,
        _ => BarrierAlgorithm::PairwiseExchange,
    };
    let allreduce = match settings::choice("WEFT_ALLREDUCE")? {
        0 => AllreduceAlgorithm::Automatic,
        1 => AllreduceAlgorithm::Central,
        2 => AllreduceAlgorithm::PairwiseExchange,
        _ => AllreduceAlgorithm::GatherBroadcast,
    };
    Ok(Selection { barrier, allreduce })
}

type Running = Pin<Box<dyn Future<Output = Result<(), weft_process::Error>>>>;

/// Defines an operation in its three forms from one function that prepares it: `prepare` checks the
/// arguments and returns the communicator and a maker of the operation, which can be made again.
macro_rules! operation {
    (
        $name:literal $blocking:ident $nonblocking:ident $persistent:ident
        ($($arg:ident: $ty:ty),* $(,)?) $prepare:path
    ) => {
        pub(crate) unsafe fn $blocking($($arg: $ty),*) -> Result<(), Error> {
            // SAFETY: the caller's buffers stay until this returns.
            let (comm, make) = unsafe { $prepare($($arg),*) }?;
            Ok(comm.engine().block_on(&Call::new($name), make(&comm))?)
        }

        pub(crate) unsafe fn $nonblocking(
            $($arg: $ty,)*
            request: *mut Request,
        ) -> Result<(), Error> {
            not_null(request, "request")?;
            // SAFETY: the caller's buffers stay until the request is over.
            unsafe {
                let (comm, make) = $prepare($($arg),*)?;
                let task = comm.engine().spawn(make(&comm));
                start(request, &comm, Active::Task(task), RequestKind::Collective)
            }
        }

        pub(crate) unsafe fn $persistent(
            $($arg: $ty,)*
            info: Info,
            request: *mut Request,
        ) -> Result<(), Error> {
            not_null(request, "request")?;
            optional_info(info)?;
            // SAFETY: the caller's buffers stay while the request is active.
            unsafe {
                let (comm, make) = $prepare($($arg),*)?;
                let again = comm.clone();
                let recipe = move || Ok(Active::Task(again.engine().spawn(make(&again))));
                persist(request, &comm, recipe, RequestKind::Collective)
            }
        }
    };
}

type Prepared<M> = Result<(Rc<CommObject>, M), Error>;

/// Boxes an operation, so that all makers of one kind have one type. Blocking calls of the plain
/// algorithms allocate anyway.
fn boxed(f: impl Future<Output = Result<(), weft_process::Error>> + 'static) -> Running {
    Box::pin(f)
}

// ---- barrier, broadcast --------------------------------------------------------------------------

unsafe fn prepare_barrier(handle: Comm) -> Prepared<impl Fn(&CommObject) -> Running> {
    Ok((comm(handle)?, |c: &CommObject| boxed(c.barrier())))
}

// implements: barrier ibarrier barrier_init
operation!("MPI_Barrier" barrier ibarrier barrier_init (handle: Comm) prepare_barrier);

unsafe fn prepare_bcast(
    buf: *mut c_void,
    n: i64,
    datatype: Datatype,
    root_: c_int,
    handle: Comm,
) -> Prepared<impl Fn(&CommObject) -> Running> {
    let comm = comm(handle)?;
    let root = root(&comm, root_)?;
    // SAFETY: the caller's buffer.
    let data = unsafe { buffer(buf, n, datatype, ["buffer", "count", "datatype"]) }?;
    Ok((comm, move |c: &CommObject| boxed(c.bcast(data.clone(), root))))
}

// implements: bcast ibcast bcast_init
operation!("MPI_Bcast" bcast ibcast bcast_init
    (buf: *mut c_void, n: i64, datatype: Datatype, root: c_int, handle: Comm) prepare_bcast);

// ---- reductions ------------------------------------------------------------------------------------

/// A send buffer that may be `MPI_IN_PLACE`, which is `None`.
///
/// # Safety
/// As for [`buffer`].
unsafe fn in_place(
    buf: *const c_void,
    n: i64,
    datatype: Datatype,
    names: [&'static str; 3],
) -> Result<Option<Buffer>, Error> {
    if buf.addr() == MPI_IN_PLACE {
        return Ok(None);
    }
    // SAFETY: by contract.
    unsafe { buffer(buf, n, datatype, names) }.map(Some)
}

const REDUCE_SEND: [&str; 3] = ["sendbuf", "count", "datatype"];
const REDUCE_RECV: [&str; 3] = ["recvbuf", "count", "datatype"];

unsafe fn prepare_reduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    n: i64,
    datatype: Datatype,
    op: Op,
    root_: c_int,
    handle: Comm,
) -> Prepared<impl Fn(&CommObject) -> Running> {
    let comm = comm(handle)?;
    let root = root(&comm, root_)?;
    let reduce = reduction(op, &committed(datatype, "datatype")?)?;
    let at_root = comm.rank() == root;
    // SAFETY: the caller's buffers; the receive buffer means something at the root alone.
    let (send, receive) = unsafe {
        let send = in_place(sendbuf, n, datatype, REDUCE_SEND)?;
        let receive = match at_root {
            true => Some(buffer(recvbuf, n, datatype, REDUCE_RECV)?),
            false => None,
        };
        (send, receive)
    };
    if send.is_none() && !at_root {
        return Err(Error::new(MPI_ERR_BUFFER, "MPI_IN_PLACE is for the root alone"));
    }
    Ok((comm, move |c: &CommObject| {
        boxed(c.reduce(send.clone(), receive.clone(), root, reduce.clone()))
    }))
}

// implements: reduce ireduce reduce_init
operation!("MPI_Reduce" reduce ireduce reduce_init
    (sendbuf: *const c_void, recvbuf: *mut c_void, n: i64, datatype: Datatype, op: Op,
     root: c_int, handle: Comm) prepare_reduce);

unsafe fn prepare_allreduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    n: i64,
    datatype: Datatype,
    op: Op,
    handle: Comm,
) -> Prepared<impl Fn(&CommObject) -> Running> {
    let comm = comm(handle)?;
    let reduce = reduction(op, &committed(datatype, "datatype")?)?;
    // SAFETY: the caller's buffers.
    let (send, receive) = unsafe {
        let send = in_place(sendbuf, n, datatype, REDUCE_SEND)?;
        (send, buffer(recvbuf, n, datatype, REDUCE_RECV)?)
    };
    Ok((comm, move |c: &CommObject| {
        boxed(c.allreduce(send.clone(), receive.clone(), reduce.clone()))
    }))
}

// implements: allreduce iallreduce allreduce_init
operation!("MPI_Allreduce" allreduce iallreduce allreduce_init
    (sendbuf: *const c_void, recvbuf: *mut c_void, n: i64, datatype: Datatype, op: Op,
     handle: Comm) prepare_allreduce);

unsafe fn prepare_scan_of(
    exclusive: bool,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    n: i64,
    datatype: Datatype,
    op: Op,
    handle: Comm,
) -> Prepared<impl Fn(&CommObject) -> Running> {
    let comm = comm(handle)?;
    let reduce = reduction(op, &committed(datatype, "datatype")?)?;
    // SAFETY: the caller's buffers.
    let (send, receive) = unsafe {
        let send = in_place(sendbuf, n, datatype, REDUCE_SEND)?;
        (send, buffer(recvbuf, n, datatype, REDUCE_RECV)?)
    };
    Ok((comm, move |c: &CommObject| {
        boxed(c.scan(send.clone(), receive.clone(), reduce.clone(), exclusive))
    }))
}

unsafe fn prepare_scan(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    n: i64,
    datatype: Datatype,
    op: Op,
    handle: Comm,
) -> Prepared<impl Fn(&CommObject) -> Running> {
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
) -> Prepared<impl Fn(&CommObject) -> Running> {
    // SAFETY: the same contract.
    unsafe { prepare_scan_of(true, sendbuf, recvbuf, n, datatype, op, handle) }
}

// implements: scan iscan scan_init
operation!("MPI_Scan" scan iscan scan_init
    (sendbuf: *const c_void, recvbuf: *mut c_void, n: i64, datatype: Datatype, op: Op,
     handle: Comm) prepare_scan);
// implements: exscan iexscan exscan_init
operation!("MPI_Exscan" exscan iexscan exscan_init
    (sendbuf: *const c_void, recvbuf: *mut c_void, n: i64, datatype: Datatype, op: Op,
     handle: Comm) prepare_exscan);

/// Reduces `counts[rank]` elements to each rank.
///
/// # Safety
/// As for [`buffer`].
unsafe fn prepare_reduce_scatter_of(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    counts: Vec<usize>,
    datatype: Datatype,
    op: Op,
    comm: Rc<CommObject>,
) -> Prepared<impl Fn(&CommObject) -> Running> {
    let ty = committed(datatype, "datatype")?;
    let reduce = reduction(op, &ty)?;
    let total: usize = counts.iter().sum();
    let mine = counts[comm.rank()];
    let in_place = sendbuf.addr() == MPI_IN_PLACE;
    let from = if in_place { recvbuf.cast_const() } else { sendbuf };
    // SAFETY: by contract; in place, the receive buffer holds all the input.
    let (send, receive) = unsafe {
        let send = buffer(from, total as i64, datatype, ["sendbuf", "recvcounts", "datatype"])?;
        let receive = buffer(recvbuf, mine as i64, datatype, REDUCE_RECV)?;
        (send, receive)
    };
    Ok((comm, move |c: &CommObject| {
        boxed(c.reduce_scatter(send.clone(), counts.clone(), receive.clone(), reduce.clone()))
    }))
}

unsafe fn prepare_reduce_scatter(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    counts: Counts,
    datatype: Datatype,
    op: Op,
    handle: Comm,
) -> Prepared<impl Fn(&CommObject) -> Running> {
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
) -> Prepared<impl Fn(&CommObject) -> Running> {
    let comm = comm(handle)?;
    let counts = vec![count(n, "recvcount")?; comm.size()];
    // SAFETY: the caller's buffers.
    unsafe { prepare_reduce_scatter_of(sendbuf, recvbuf, counts, datatype, op, comm) }
}

// implements: reduce_scatter ireduce_scatter reduce_scatter_init
operation!("MPI_Reduce_scatter" reduce_scatter ireduce_scatter reduce_scatter_init
    (sendbuf: *const c_void, recvbuf: *mut c_void, counts: Counts, datatype: Datatype, op: Op,
     handle: Comm) prepare_reduce_scatter);
// implements: reduce_scatter_block ireduce_scatter_block reduce_scatter_block_init
operation!("MPI_Reduce_scatter_block" reduce_scatter_block ireduce_scatter_block
    reduce_scatter_block_init
    (sendbuf: *const c_void, recvbuf: *mut c_void, n: i64, datatype: Datatype, op: Op,
     handle: Comm) prepare_reduce_scatter_block);

// ---- blocks by rank --------------------------------------------------------------------------------

/// One count a rank, none negative.
///
/// # Safety
/// The array is NULL or has `n` counts.
unsafe fn count_array(counts: Counts, n: usize, name: &str) -> Result<Vec<usize>, Error> {
    if counts.is_null() && n > 0 {
        return Err(Error::new(MPI_ERR_ARG, format_args!("argument {name} is NULL")));
    }
    (0..n)
        // SAFETY: by contract.
        .map(|i| count(unsafe { counts.get(i) }, &format!("{name}[{i}]")))
        .collect()
}

/// Equal blocks, one behind the other.
///
/// # Safety
/// As for [`buffer`].
unsafe fn equal_blocks(
    buf: *const c_void,
    n: i64,
    datatype: Datatype,
    ranks: usize,
    names: [&'static str; 3],
) -> Result<Vec<Buffer>, Error> {
    let each = count(n, names[1])?;
    // SAFETY: by contract.
    let first = unsafe { buffer(buf, n, datatype, names) }?;
    Ok((0..ranks).map(|r| first.block(r as i64 * each as i64, each)).collect())
}

/// Blocks of their own length and place, in extents of the type.
///
/// # Safety
/// As for [`buffer`]; the arrays have one entry a rank.
unsafe fn blocks(
    buf: *const c_void,
    counts: Counts,
    displs: Displs,
    datatype: Datatype,
    ranks: usize,
    names: [&'static str; 3],
) -> Result<Vec<Buffer>, Error> {
    if displs.is_null() && ranks > 0 {
        return Err(Error::new(MPI_ERR_ARG, "the array of displacements is NULL"));
    }
    // SAFETY: by contract.
    unsafe {
        let counts = count_array(counts, ranks, names[1])?;
        let most = counts.iter().copied().max().unwrap_or(0);
        let base = buffer(buf, most as i64, datatype, names)?;
        Ok(counts.iter().enumerate().map(|(r, &n)| base.block(displs.get(r), n)).collect())
    }
}

/// Blocks of their own type, with places in bytes (MPI_Alltoallw).
///
/// # Safety
/// As for [`buffer`]; the arrays have one entry a rank.
unsafe fn typed_blocks(
    buf: *const c_void,
    counts: Counts,
    displs: Displs,
    types: *const Datatype,
    ranks: usize,
    names: [&'static str; 3],
) -> Result<Vec<Buffer>, Error> {
    not_null(types, names[2])?;
    if displs.is_null() && ranks > 0 {
        return Err(Error::new(MPI_ERR_ARG, "the array of displacements is NULL"));
    }
    // SAFETY: by contract.
    unsafe {
        let counts = count_array(counts, ranks, names[1])?;
        let each = |r: usize| {
            let at = buf.wrapping_byte_offset(displs.get(r) as isize);
            buffer(at, counts[r] as i64, *types.add(r), names)
        };
        (0..ranks).map(each).collect()
    }
}

unsafe fn prepare_gather(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    root_: c_int,
    handle: Comm,
) -> Prepared<impl Fn(&CommObject) -> Running> {
    let comm = comm(handle)?;
    let root = root(&comm, root_)?;
    let at_root = comm.rank() == root;
    // SAFETY: the caller's buffers; the receive buffer means something at the root alone.
    let (send, into) = unsafe {
        let send = in_place(sendbuf, sendcount, sendtype, SENDBUF)?;
        let into = match at_root {
            true => equal_blocks(recvbuf, recvcount, recvtype, comm.size(), RECVBUF)?,
            false => Vec::new(),
        };
        (send, into)
    };
    root_in_place(at_root, send.is_none())?;
    Ok((comm, move |c: &CommObject| boxed(c.gather(send.clone(), into.clone(), root))))
}

fn root_in_place(at_root: bool, in_place: bool) -> Result<(), Error> {
    if in_place && !at_root {
        return Err(Error::new(MPI_ERR_BUFFER, "MPI_IN_PLACE is for the root alone"));
    }
    Ok(())
}

// implements: gather igather gather_init
operation!("MPI_Gather" gather igather gather_init
    (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype, recvbuf: *mut c_void,
     recvcount: i64, recvtype: Datatype, root: c_int, handle: Comm) prepare_gather);

unsafe fn prepare_gatherv(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcounts: Counts,
    displs: Displs,
    recvtype: Datatype,
    root_: c_int,
    handle: Comm,
) -> Prepared<impl Fn(&CommObject) -> Running> {
    let comm = comm(handle)?;
    let root = root(&comm, root_)?;
    let at_root = comm.rank() == root;
    const NAMES: [&str; 3] = ["recvbuf", "recvcounts", "recvtype"];
    // SAFETY: as for prepare_gather.
    let (send, into) = unsafe {
        let send = in_place(sendbuf, sendcount, sendtype, SENDBUF)?;
        let into = match at_root {
            true => blocks(recvbuf, recvcounts, displs, recvtype, comm.size(), NAMES)?,
            false => Vec::new(),
        };
        (send, into)
    };
    root_in_place(at_root, send.is_none())?;
    Ok((comm, move |c: &CommObject| boxed(c.gather(send.clone(), into.clone(), root))))
}

// implements: gatherv igatherv gatherv_init
operation!("MPI_Gatherv" gatherv igatherv gatherv_init
    (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype, recvbuf: *mut c_void,
     recvcounts: Counts, displs: Displs, recvtype: Datatype, root: c_int, handle: Comm)
    prepare_gatherv);

unsafe fn prepare_scatter(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    root_: c_int,
    handle: Comm,
) -> Prepared<impl Fn(&CommObject) -> Running> {
    let comm = comm(handle)?;
    let root = root(&comm, root_)?;
    let at_root = comm.rank() == root;
    // SAFETY: the caller's buffers; the send buffer means something at the root alone.
    let (out, receive) = unsafe {
        let out = match at_root {
            true => equal_blocks(sendbuf, sendcount, sendtype, comm.size(), SENDBUF)?,
            false => Vec::new(),
        };
        (out, in_place(recvbuf, recvcount, recvtype, RECVBUF)?)
    };
    root_in_place(at_root, receive.is_none())?;
    Ok((comm, move |c: &CommObject| boxed(c.scatter(out.clone(), receive.clone(), root))))
}

// implements: scatter iscatter scatter_init
operation!("MPI_Scatter" scatter iscatter scatter_init
    (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype, recvbuf: *mut c_void,
     recvcount: i64, recvtype: Datatype, root: c_int, handle: Comm) prepare_scatter);

unsafe fn prepare_scatterv(
    sendbuf: *const c_void,
    sendcounts: Counts,
    displs: Displs,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    root_: c_int,
    handle: Comm,
) -> Prepared<impl Fn(&CommObject) -> Running> {
    let comm = comm(handle)?;
    let root = root(&comm, root_)?;
    let at_root = comm.rank() == root;
    const NAMES: [&str; 3] = ["sendbuf", "sendcounts", "sendtype"];
    // SAFETY: as for prepare_scatter.
    let (out, receive) = unsafe {
        let out = match at_root {
            true => blocks(sendbuf, sendcounts, displs, sendtype, comm.size(), NAMES)?,
            false => Vec::new(),
        };
        (out, in_place(recvbuf, recvcount, recvtype, RECVBUF)?)
    };
    root_in_place(at_root, receive.is_none())?;
    Ok((comm, move |c: &CommObject| boxed(c.scatter(out.clone(), receive.clone(), root))))
}

// implements: scatterv iscatterv scatterv_init
operation!("MPI_Scatterv" scatterv iscatterv scatterv_init
    (sendbuf: *const c_void, sendcounts: Counts, displs: Displs, sendtype: Datatype,
     recvbuf: *mut c_void, recvcount: i64, recvtype: Datatype, root: c_int, handle: Comm)
    prepare_scatterv);

unsafe fn prepare_allgather(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    handle: Comm,
) -> Prepared<impl Fn(&CommObject) -> Running> {
    let comm = comm(handle)?;
    // SAFETY: the caller's buffers.
    let (send, into) = unsafe {
        let send = in_place(sendbuf, sendcount, sendtype, SENDBUF)?;
        (send, equal_blocks(recvbuf, recvcount, recvtype, comm.size(), RECVBUF)?)
    };
    Ok((comm, move |c: &CommObject| boxed(c.allgather(send.clone(), into.clone()))))
}

// implements: allgather iallgather allgather_init
operation!("MPI_Allgather" allgather iallgather allgather_init
    (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype, recvbuf: *mut c_void,
     recvcount: i64, recvtype: Datatype, handle: Comm) prepare_allgather);

unsafe fn prepare_allgatherv(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcounts: Counts,
    displs: Displs,
    recvtype: Datatype,
    handle: Comm,
) -> Prepared<impl Fn(&CommObject) -> Running> {
    let comm = comm(handle)?;
    const NAMES: [&str; 3] = ["recvbuf", "recvcounts", "recvtype"];
    // SAFETY: the caller's buffers.
    let (send, into) = unsafe {
        let send = in_place(sendbuf, sendcount, sendtype, SENDBUF)?;
        (send, blocks(recvbuf, recvcounts, displs, recvtype, comm.size(), NAMES)?)
    };
    Ok((comm, move |c: &CommObject| boxed(c.allgather(send.clone(), into.clone()))))
}

// implements: allgatherv iallgatherv allgatherv_init
operation!("MPI_Allgatherv" allgatherv iallgatherv allgatherv_init
    (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype, recvbuf: *mut c_void,
     recvcounts: Counts, displs: Displs, recvtype: Datatype, handle: Comm) prepare_allgatherv);

unsafe fn prepare_alltoall(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    handle: Comm,
) -> Prepared<impl Fn(&CommObject) -> Running> {
    let comm = comm(handle)?;
    let ranks = comm.size();
    // SAFETY: the caller's buffers.
    let (out, into) = unsafe {
        let out = match sendbuf.addr() {
            MPI_IN_PLACE => None,
            _ => Some(equal_blocks(sendbuf, sendcount, sendtype, ranks, SENDBUF)?),
        };
        (out, equal_blocks(recvbuf, recvcount, recvtype, ranks, RECVBUF)?)
    };
    Ok((comm, move |c: &CommObject| boxed(c.alltoall(out.clone(), into.clone()))))
}

// implements: alltoall ialltoall alltoall_init
operation!("MPI_Alltoall" alltoall ialltoall alltoall_init
    (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype, recvbuf: *mut c_void,
     recvcount: i64, recvtype: Datatype, handle: Comm) prepare_alltoall);

const SENDS: [&str; 3] = ["sendbuf", "sendcounts", "sendtype"];
const RECVS: [&str; 3] = ["recvbuf", "recvcounts", "recvtype"];

unsafe fn prepare_alltoallv(
    sendbuf: *const c_void,
    sendcounts: Counts,
    sdispls: Displs,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcounts: Counts,
    rdispls: Displs,
    recvtype: Datatype,
    handle: Comm,
) -> Prepared<impl Fn(&CommObject) -> Running> {
    let comm = comm(handle)?;
    let ranks = comm.size();
    // SAFETY: the caller's buffers.
    let (out, into) = unsafe {
        let out = match sendbuf.addr() {
            MPI_IN_PLACE => None,
            _ => Some(blocks(sendbuf, sendcounts, sdispls, sendtype, ranks, SENDS)?),
        };
        (out, blocks(recvbuf, recvcounts, rdispls, recvtype, ranks, RECVS)?)
    };
    Ok((comm, move |c: &CommObject| boxed(c.alltoall(out.clone(), into.clone()))))
}

// implements: alltoallv ialltoallv alltoallv_init
operation!("MPI_Alltoallv" alltoallv ialltoallv alltoallv_init
    (sendbuf: *const c_void, sendcounts: Counts, sdispls: Displs, sendtype: Datatype,
     recvbuf: *mut c_void, recvcounts: Counts, rdispls: Displs, recvtype: Datatype,
     handle: Comm) prepare_alltoallv);

unsafe fn prepare_alltoallw(
    sendbuf: *const c_void,
    sendcounts: Counts,
    sdispls: Displs,
    sendtypes: *const Datatype,
    recvbuf: *mut c_void,
    recvcounts: Counts,
    rdispls: Displs,
    recvtypes: *const Datatype,
    handle: Comm,
) -> Prepared<impl Fn(&CommObject) -> Running> {
    let comm = comm(handle)?;
    let ranks = comm.size();
    // SAFETY: the caller's buffers.
    let (out, into) = unsafe {
        let out = match sendbuf.addr() {
            MPI_IN_PLACE => None,
            _ => Some(typed_blocks(sendbuf, sendcounts, sdispls, sendtypes, ranks, SENDS)?),
        };
        (out, typed_blocks(recvbuf, recvcounts, rdispls, recvtypes, ranks, RECVS)?)
    };
    Ok((comm, move |c: &CommObject| boxed(c.alltoall(out.clone(), into.clone()))))
}

// implements: alltoallw ialltoallw alltoallw_init
operation!("MPI_Alltoallw" alltoallw ialltoallw alltoallw_init
    (sendbuf: *const c_void, sendcounts: Counts, sdispls: Displs, sendtypes: *const Datatype,
     recvbuf: *mut c_void, recvcounts: Counts, rdispls: Displs, recvtypes: *const Datatype,
     handle: Comm) prepare_alltoallw);
