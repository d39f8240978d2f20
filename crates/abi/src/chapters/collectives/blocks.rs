//! Gathers, scatters and exchanges of blocks (MPI 5.0, sections 6.5 to 6.8).

use super::{Make, Prepared, Ready, at_once, count_array, in_place, is_in_place, ready};
use crate::arguments::{
    RECVBUF, SENDBUF, at_leaf, at_root, buffer, comm, count, not_null, optional_info, root,
};
use crate::chapters::messages::{persist, start};
use crate::constants::*;
use crate::error::Error;
use crate::node::CommObject;
use crate::objects::RequestKind;
use crate::types::{Comm, Datatype, Info, Request};
use crate::waiting::Call;
use crate::widen::{Counts, Displs};
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use weft_process::{Active, Buffer, Lengths, Spread};

/// Equal blocks, one behind the other.
///
/// # Safety
/// As for [`buffer`].
pub(super) unsafe fn equal_blocks(
    buf: *const c_void,
    n: i64,
    datatype: Datatype,
    ranks: usize,
    names: [&'static str; 3],
) -> Result<Spread, Error> {
    count(n, names[1])?;
    // Where there are no blocks, the buffer may be NULL.
    let n = if ranks == 0 { 0 } else { n };
    // SAFETY: by contract.
    Ok(Spread::Equal { first: unsafe { buffer(buf, n, datatype, names) }?, ranks })
}

/// Blocks of their own length and place, in extents of the type.
///
/// # Safety
/// As for [`buffer`]; the arrays have one entry a rank.
pub(super) unsafe fn blocks(
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
pub(super) unsafe fn typed_blocks(
    buf: *const c_void,
    counts: Counts,
    displs: Displs,
    types: *const Datatype,
    ranks: usize,
    names: [&'static str; 3],
) -> Result<Vec<Buffer>, Error> {
    if ranks > 0 {
        not_null(types, names[2])?;
    }
    if displs.is_null() && ranks > 0 {
        return Err(Error::new(MPI_ERR_ARG, "the array of displacements is NULL"));
    }
    if buf.addr() == MPI_IN_PLACE {
        let text = format!("argument {} is MPI_IN_PLACE, which stands for sendbuf alone", names[0]);
        return Err(Error::new(MPI_ERR_BUFFER, text));
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

/// Whether the block that this rank sends itself fits into its place, where it has both.
fn own_fits(comm: &CommObject, out: Option<&Buffer>, into: Option<&Buffer>) -> Result<(), Error> {
    let (Some(out), Some(into)) = (out, into) else { return Ok(()) };
    if comm.remote().is_some() || out.len() <= into.len() {
        return Ok(());
    }
    let text = format!(
        "rank {} sends {} bytes to itself, but its own receive count and type are {} bytes: both must \
         be the same",
        comm.rank(),
        out.len(),
        into.len()
    );
    Err(Error::new(MPI_ERR_TRUNCATE, text))
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
) -> Prepared<impl Make> {
    let comm = comm(handle)?;
    let root = root(&comm, root_)?;
    let (at_root, at_leaf) = (at_root(&comm, root), at_leaf(root));
    // SAFETY: the caller's buffers; the receive buffer means something at the root alone.
    let (send, into) = unsafe {
        let send = match at_leaf {
            true => in_place(&comm, sendbuf, sendcount, sendtype, SENDBUF)?,
            false => None,
        };
        let into = match at_root {
            true => equal_blocks(recvbuf, recvcount, recvtype, comm.peers().size(), RECVBUF)?,
            false => Spread::Nothing,
        };
        (send, into)
    };
    root_in_place(at_root, at_leaf && send.is_none())?;
    own_fits(&comm, send.as_ref(), into.get(comm.rank()).as_ref())?;
    ready(comm, move |c: Rc<CommObject>| c.gather(send.clone(), into.clone(), root, Lengths::Equal))
}

fn root_in_place(at_root: bool, in_place: bool) -> Result<(), Error> {
    if in_place && !at_root {
        return Err(Error::new(MPI_ERR_BUFFER, "MPI_IN_PLACE is for the root alone"));
    }
    Ok(())
}

operation!("MPI_Gather" gather igather gather_init
    (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype, recvbuf: *mut c_void,
     recvcount: i64, recvtype: Datatype, root: c_int, handle: Comm) prepare_gather, at once by at_once::gather);

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
) -> Prepared<impl Make> {
    let comm = comm(handle)?;
    let root = root(&comm, root_)?;
    let (at_root, at_leaf) = (at_root(&comm, root), at_leaf(root));
    const NAMES: [&str; 3] = ["recvbuf", "recvcounts", "recvtype"];
    // SAFETY: as for prepare_gather.
    let (send, into) = unsafe {
        let send = match at_leaf {
            true => in_place(&comm, sendbuf, sendcount, sendtype, SENDBUF)?,
            false => None,
        };
        let into = match at_root {
            true => {
                blocks(recvbuf, recvcounts, displs, recvtype, comm.peers().size(), NAMES)?.into()
            }
            false => Spread::Nothing,
        };
        (send, into)
    };
    root_in_place(at_root, at_leaf && send.is_none())?;
    own_fits(&comm, send.as_ref(), into.get(comm.rank()).as_ref())?;
    ready(comm, move |c: Rc<CommObject>| {
        c.gather(send.clone(), into.clone(), root, Lengths::Varying)
    })
}

operation!("MPI_Gatherv" gatherv igatherv gatherv_init
    (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype, recvbuf: *mut c_void,
     recvcounts: Counts, displs: Displs, recvtype: Datatype, root: c_int, handle: Comm)
    prepare_gatherv, at once by at_once::gatherv);

unsafe fn prepare_scatter(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    root_: c_int,
    handle: Comm,
) -> Prepared<impl Make> {
    let comm = comm(handle)?;
    let root = root(&comm, root_)?;
    let (at_root, at_leaf) = (at_root(&comm, root), at_leaf(root));
    // SAFETY: the caller's buffers; the send buffer means something at the root alone.
    let (out, receive) = unsafe {
        let out = match at_root {
            true => equal_blocks(sendbuf, sendcount, sendtype, comm.peers().size(), SENDBUF)?,
            false => Spread::Nothing,
        };
        let receive = match at_leaf {
            true => in_place(&comm, recvbuf, recvcount, recvtype, RECVBUF)?,
            false => None,
        };
        (out, receive)
    };
    root_in_place(at_root, at_leaf && receive.is_none())?;
    own_fits(&comm, out.get(comm.rank()).as_ref(), receive.as_ref())?;
    ready(comm, move |c: Rc<CommObject>| {
        c.scatter(out.clone(), receive.clone(), root, Lengths::Equal)
    })
}

operation!("MPI_Scatter" scatter iscatter scatter_init
    (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype, recvbuf: *mut c_void,
     recvcount: i64, recvtype: Datatype, root: c_int, handle: Comm) prepare_scatter, at once by at_once::scatter);

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
) -> Prepared<impl Make> {
    let comm = comm(handle)?;
    let root = root(&comm, root_)?;
    let (at_root, at_leaf) = (at_root(&comm, root), at_leaf(root));
    const NAMES: [&str; 3] = ["sendbuf", "sendcounts", "sendtype"];
    // SAFETY: as for prepare_scatter.
    let (out, receive) = unsafe {
        let out = match at_root {
            true => {
                blocks(sendbuf, sendcounts, displs, sendtype, comm.peers().size(), NAMES)?.into()
            }
            false => Spread::Nothing,
        };
        let receive = match at_leaf {
            true => in_place(&comm, recvbuf, recvcount, recvtype, RECVBUF)?,
            false => None,
        };
        (out, receive)
    };
    root_in_place(at_root, at_leaf && receive.is_none())?;
    own_fits(&comm, out.get(comm.rank()).as_ref(), receive.as_ref())?;
    ready(comm, move |c: Rc<CommObject>| {
        c.scatter(out.clone(), receive.clone(), root, Lengths::Varying)
    })
}

operation!("MPI_Scatterv" scatterv iscatterv scatterv_init
    (sendbuf: *const c_void, sendcounts: Counts, displs: Displs, sendtype: Datatype,
     recvbuf: *mut c_void, recvcount: i64, recvtype: Datatype, root: c_int, handle: Comm)
    prepare_scatterv, at once by at_once::scatterv);

unsafe fn prepare_allgather(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    handle: Comm,
) -> Prepared<impl Make> {
    let comm = comm(handle)?;
    // SAFETY: the caller's buffers.
    let (send, into) = unsafe {
        let send = in_place(&comm, sendbuf, sendcount, sendtype, SENDBUF)?;
        (send, equal_blocks(recvbuf, recvcount, recvtype, comm.peers().size(), RECVBUF)?)
    };
    own_fits(&comm, send.as_ref(), into.get(comm.rank()).as_ref())?;
    ready(comm, move |c: Rc<CommObject>| c.allgather(send.clone(), into.clone()))
}

operation!("MPI_Allgather" allgather iallgather allgather_init
    (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype, recvbuf: *mut c_void,
     recvcount: i64, recvtype: Datatype, handle: Comm) prepare_allgather, at once by at_once::allgather);

unsafe fn prepare_allgatherv(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcounts: Counts,
    displs: Displs,
    recvtype: Datatype,
    handle: Comm,
) -> Prepared<impl Make> {
    let comm = comm(handle)?;
    const NAMES: [&str; 3] = ["recvbuf", "recvcounts", "recvtype"];
    // SAFETY: the caller's buffers.
    let (send, into) = unsafe {
        let send = in_place(&comm, sendbuf, sendcount, sendtype, SENDBUF)?;
        (
            send,
            Spread::from(blocks(
                recvbuf,
                recvcounts,
                displs,
                recvtype,
                comm.peers().size(),
                NAMES,
            )?),
        )
    };
    own_fits(&comm, send.as_ref(), into.get(comm.rank()).as_ref())?;
    ready(comm, move |c: Rc<CommObject>| c.allgather(send.clone(), into.clone()))
}

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
) -> Prepared<impl Make> {
    let comm = comm(handle)?;
    let ranks = comm.peers().size();
    // SAFETY: the caller's buffers.
    let (out, into) = unsafe {
        let out = match is_in_place(&comm, sendbuf, "sendbuf")? {
            true => None,
            false => Some(equal_blocks(sendbuf, sendcount, sendtype, ranks, SENDBUF)?),
        };
        (out, equal_blocks(recvbuf, recvcount, recvtype, ranks, RECVBUF)?)
    };
    let own = out.as_ref().and_then(|out| out.get(comm.rank()));
    own_fits(&comm, own.as_ref(), into.get(comm.rank()).as_ref())?;
    ready(comm, move |c: Rc<CommObject>| c.alltoall(out.clone(), into.clone(), Lengths::Equal))
}

operation!("MPI_Alltoall" alltoall ialltoall alltoall_init
    (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype, recvbuf: *mut c_void,
     recvcount: i64, recvtype: Datatype, handle: Comm) prepare_alltoall, at once by at_once::alltoall);

pub(super) const SENDS: [&str; 3] = ["sendbuf", "sendcounts", "sendtype"];
pub(super) const RECVS: [&str; 3] = ["recvbuf", "recvcounts", "recvtype"];

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
) -> Prepared<impl Make> {
    let comm = comm(handle)?;
    let ranks = comm.peers().size();
    // SAFETY: the caller's buffers.
    let (out, into) = unsafe {
        let out = match is_in_place(&comm, sendbuf, "sendbuf")? {
            true => None,
            false => {
                Some(Spread::from(blocks(sendbuf, sendcounts, sdispls, sendtype, ranks, SENDS)?))
            }
        };
        (out, Spread::from(blocks(recvbuf, recvcounts, rdispls, recvtype, ranks, RECVS)?))
    };
    let own = out.as_ref().and_then(|out| out.get(comm.rank()));
    own_fits(&comm, own.as_ref(), into.get(comm.rank()).as_ref())?;
    ready(comm, move |c: Rc<CommObject>| c.alltoall(out.clone(), into.clone(), Lengths::Varying))
}

operation!("MPI_Alltoallv" alltoallv ialltoallv alltoallv_init
    (sendbuf: *const c_void, sendcounts: Counts, sdispls: Displs, sendtype: Datatype,
     recvbuf: *mut c_void, recvcounts: Counts, rdispls: Displs, recvtype: Datatype,
     handle: Comm) prepare_alltoallv, at once by at_once::alltoallv);

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
) -> Prepared<impl Make> {
    let comm = comm(handle)?;
    let ranks = comm.peers().size();
    // SAFETY: the caller's buffers.
    let (out, into) = unsafe {
        let out = match is_in_place(&comm, sendbuf, "sendbuf")? {
            true => None,
            false => Some(Spread::from(typed_blocks(
                sendbuf, sendcounts, sdispls, sendtypes, ranks, SENDS,
            )?)),
        };
        (out, Spread::from(typed_blocks(recvbuf, recvcounts, rdispls, recvtypes, ranks, RECVS)?))
    };
    let own = out.as_ref().and_then(|out| out.get(comm.rank()));
    own_fits(&comm, own.as_ref(), into.get(comm.rank()).as_ref())?;
    ready(comm, move |c: Rc<CommObject>| c.alltoall(out.clone(), into.clone(), Lengths::Varying))
}

operation!("MPI_Alltoallw" alltoallw ialltoallw alltoallw_init
    (sendbuf: *const c_void, sendcounts: Counts, sdispls: Displs, sendtypes: *const Datatype,
     recvbuf: *mut c_void, recvcounts: Counts, rdispls: Displs, recvtypes: *const Datatype,
     handle: Comm) prepare_alltoallw);
