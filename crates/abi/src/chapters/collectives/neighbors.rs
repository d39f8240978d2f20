//! Neighborhood collectives: exchanges with the neighbours in a topology (MPI 5.0, sections 8.6 to
//! 8.8).

use super::blocks::{RECVS, SENDS, blocks, equal_blocks, typed_blocks};
use super::{Make, Prepared, Ready, ready};
use crate::arguments::{RECVBUF, SENDBUF, buffer, comm, comm_label, count, optional_info};
use crate::chapters::messages::{persist, start};
use crate::constants::*;
use crate::error::Error;
use crate::node::CommObject;
use crate::objects::RequestKind;
use crate::types::{Comm, Datatype, Info, Request};
use crate::waiting::Call;
use crate::widen::{Counts, Displs};
use std::ffi::c_void;
use std::rc::Rc;
use weft_process::{Active, Buffer, Neighbors};

/// The communicator behind a handle, and this process's neighbours in its topology.
fn neighborhood(handle: Comm) -> Result<(Rc<CommObject>, Neighbors), Error> {
    let comm = comm(handle)?;
    let found = comm.topology.borrow().as_ref().map(|t| Neighbors::of(t, comm.rank()));
    let Some(neighbors) = found else {
        let text = format!(
            "{} has no topology, so nobody has neighbours: MPI_Cart_create, MPI_Graph_create, \
             MPI_Dist_graph_create or MPI_Dist_graph_create_adjacent make a communicator that has",
            comm_label(&comm)
        );
        return Err(Error::new(MPI_ERR_TOPOLOGY, text));
    };
    Ok((comm, neighbors?))
}

/// Neighborhood collectives have no form in place.
fn out_of_place(sendbuf: *const c_void, recvbuf: *const c_void) -> Result<(), Error> {
    for (buf, name) in [(sendbuf, SENDBUF[0]), (recvbuf, RECVBUF[0])] {
        if buf.addr() == MPI_IN_PLACE {
            let text = format!(
                "argument {name} is MPI_IN_PLACE, which neighborhood collectives do not take: \
                 give separate send and receive buffers"
            );
            return Err(Error::new(MPI_ERR_BUFFER, text));
        }
    }
    Ok(())
}

/// The one buffer that goes to every destination.
///
/// # Safety
/// As for [`buffer`].
unsafe fn send_to_all(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    neighbors: &Neighbors,
) -> Result<Buffer, Error> {
    count(sendcount, SENDBUF[1])?;
    // Without destinations, the buffer may be NULL.
    let n = if neighbors.destinations.is_empty() { 0 } else { sendcount };
    // SAFETY: by contract.
    unsafe { buffer(sendbuf, n, sendtype, SENDBUF) }
}

/// Checks that no two blocks that are received share memory, where it is cheap to tell: between
/// blocks without gaps. `displs` is the argument that says where they are.
fn apart(blocks: &[Buffer], neighbors: &Neighbors, displs: &str) -> Result<(), Error> {
    let received = blocks.iter().zip(&neighbors.sources).enumerate();
    let mut runs: Vec<_> = received
        .filter(|(_, (_, source))| source.is_some())
        .filter_map(|(i, (block, _))| {
            let run = block.run().filter(|run| !run.is_empty())?;
            Some((run.ptr().addr(), run.len(), i))
        })
        .collect();
    runs.sort_unstable();
    for pair in runs.windows(2) {
        let [(start, len, a), (next, other, b)] = [pair[0], pair[1]];
        if start + len > next {
            let both = (start + len - next).min(other);
            let text = format!(
                "argument {displs}: blocks {} and {} of recvbuf have {both} bytes in common; \
                 blocks that are received must not overlap",
                a.min(b),
                a.max(b)
            );
            return Err(Error::new(MPI_ERR_ARG, text));
        }
    }
    Ok(())
}

/// What all alltoalls end with.
fn exchange(
    comm: Rc<CommObject>,
    neighbors: Neighbors,
    send: Vec<Buffer>,
    receive: Vec<Buffer>,
) -> Prepared<impl Make> {
    ready(comm, move |c: Rc<CommObject>| {
        c.neighbor_alltoall(&neighbors, send.clone(), receive.clone())
    })
}

/// What all allgathers end with.
fn gather(
    comm: Rc<CommObject>,
    neighbors: Neighbors,
    send: Buffer,
    receive: Vec<Buffer>,
) -> Prepared<impl Make> {
    ready(comm, move |c: Rc<CommObject>| {
        c.neighbor_allgather(&neighbors, send.clone(), receive.clone())
    })
}

unsafe fn prepare_neighbor_allgather(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    handle: Comm,
) -> Prepared<impl Make> {
    let (comm, neighbors) = neighborhood(handle)?;
    out_of_place(sendbuf, recvbuf)?;
    let degree = neighbors.sources.len();
    // SAFETY: the caller's buffers.
    let (send, receive) = unsafe {
        let send = send_to_all(sendbuf, sendcount, sendtype, &neighbors)?;
        (send, equal_blocks(recvbuf, recvcount, recvtype, degree, RECVBUF)?.iter().collect())
    };
    gather(comm, neighbors, send, receive)
}

operation!("MPI_Neighbor_allgather" neighbor_allgather ineighbor_allgather neighbor_allgather_init
    (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype, recvbuf: *mut c_void,
     recvcount: i64, recvtype: Datatype, handle: Comm) prepare_neighbor_allgather);

unsafe fn prepare_neighbor_allgatherv(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcounts: Counts,
    displs: Displs,
    recvtype: Datatype,
    handle: Comm,
) -> Prepared<impl Make> {
    let (comm, neighbors) = neighborhood(handle)?;
    out_of_place(sendbuf, recvbuf)?;
    let degree = neighbors.sources.len();
    // SAFETY: the caller's buffers.
    let (send, receive) = unsafe {
        let send = send_to_all(sendbuf, sendcount, sendtype, &neighbors)?;
        (send, blocks(recvbuf, recvcounts, displs, recvtype, degree, RECVS)?)
    };
    apart(&receive, &neighbors, "displs")?;
    gather(comm, neighbors, send, receive)
}

operation!("MPI_Neighbor_allgatherv" neighbor_allgatherv ineighbor_allgatherv
    neighbor_allgatherv_init
    (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype, recvbuf: *mut c_void,
     recvcounts: Counts, displs: Displs, recvtype: Datatype, handle: Comm)
    prepare_neighbor_allgatherv);

unsafe fn prepare_neighbor_alltoall(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    handle: Comm,
) -> Prepared<impl Make> {
    let (comm, neighbors) = neighborhood(handle)?;
    out_of_place(sendbuf, recvbuf)?;
    let (into, out) = (neighbors.sources.len(), neighbors.destinations.len());
    // SAFETY: the caller's buffers.
    let (send, receive) = unsafe {
        let send = equal_blocks(sendbuf, sendcount, sendtype, out, SENDBUF)?.iter().collect();
        (send, equal_blocks(recvbuf, recvcount, recvtype, into, RECVBUF)?.iter().collect())
    };
    exchange(comm, neighbors, send, receive)
}

operation!("MPI_Neighbor_alltoall" neighbor_alltoall ineighbor_alltoall neighbor_alltoall_init
    (sendbuf: *const c_void, sendcount: i64, sendtype: Datatype, recvbuf: *mut c_void,
     recvcount: i64, recvtype: Datatype, handle: Comm) prepare_neighbor_alltoall);

unsafe fn prepare_neighbor_alltoallv(
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
    let (comm, neighbors) = neighborhood(handle)?;
    out_of_place(sendbuf, recvbuf)?;
    let (into, out) = (neighbors.sources.len(), neighbors.destinations.len());
    // SAFETY: the caller's buffers.
    let (send, receive) = unsafe {
        let send = blocks(sendbuf, sendcounts, sdispls, sendtype, out, SENDS)?;
        (send, blocks(recvbuf, recvcounts, rdispls, recvtype, into, RECVS)?)
    };
    apart(&receive, &neighbors, "rdispls")?;
    exchange(comm, neighbors, send, receive)
}

operation!("MPI_Neighbor_alltoallv" neighbor_alltoallv ineighbor_alltoallv neighbor_alltoallv_init
    (sendbuf: *const c_void, sendcounts: Counts, sdispls: Displs, sendtype: Datatype,
     recvbuf: *mut c_void, recvcounts: Counts, rdispls: Displs, recvtype: Datatype,
     handle: Comm) prepare_neighbor_alltoallv);

unsafe fn prepare_neighbor_alltoallw(
    sendbuf: *const c_void,
    sendcounts: Counts,
    sdispls: *const isize,
    sendtypes: *const Datatype,
    recvbuf: *mut c_void,
    recvcounts: Counts,
    rdispls: *const isize,
    recvtypes: *const Datatype,
    handle: Comm,
) -> Prepared<impl Make> {
    let (comm, neighbors) = neighborhood(handle)?;
    out_of_place(sendbuf, recvbuf)?;
    let (into, out) = (neighbors.sources.len(), neighbors.destinations.len());
    // Displacements are MPI_Aint in both forms here.
    let (sdispls, rdispls) = (Displs::Aint(sdispls.cast()), Displs::Aint(rdispls.cast()));
    // SAFETY: the caller's buffers.
    let (send, receive) = unsafe {
        let send = typed_blocks(sendbuf, sendcounts, sdispls, sendtypes, out, SENDS)?;
        (send, typed_blocks(recvbuf, recvcounts, rdispls, recvtypes, into, RECVS)?)
    };
    apart(&receive, &neighbors, "rdispls")?;
    exchange(comm, neighbors, send, receive)
}

operation!("MPI_Neighbor_alltoallw" neighbor_alltoallw ineighbor_alltoallw neighbor_alltoallw_init
    (sendbuf: *const c_void, sendcounts: Counts, sdispls: *const isize,
     sendtypes: *const Datatype, recvbuf: *mut c_void, recvcounts: Counts,
     rdispls: *const isize, recvtypes: *const Datatype, handle: Comm) prepare_neighbor_alltoallw);
