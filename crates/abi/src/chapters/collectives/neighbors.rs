//! Neighborhood collectives: exchanges with the neighbours in a topology (MPI 5.0, sections 8.6 to 8.8).

use super::rank_buffers::ToRankBuffers;
use super::{Collective, Make, Prepared, ready};
use crate::arguments::{comm, count};
use crate::calls::*;
use crate::constants::*;
use crate::elements::Elements;
use crate::engine::CommObject;
use crate::error::Error;
use crate::types::Comm;
use std::ffi::c_void;
use std::rc::Rc;
use weft_process::{Buffer, Neighbors};

/// Returns the communicator behind a handle, and this process's neighbours in the topology of the communicator.
fn neighborhood(handle: Comm) -> Result<(Rc<CommObject>, Neighbors), Error> {
    let comm = comm(handle)?;
    let found = comm.topology.borrow().as_ref().map(|t| Neighbors::of(t, comm.rank()));
    let Some(neighbors) = found else {
        let text = "argument comm has no topology, so no rank has neighbours: MPI_Cart_create, MPI_Graph_create, \
                    MPI_Dist_graph_create or MPI_Dist_graph_create_adjacent make a communicator with a topology";
        return Err(Error::new(MPI_ERR_TOPOLOGY, text));
    };
    Ok((comm, neighbors?))
}

/// Returns an error for MPI_IN_PLACE, which neighborhood collectives do not accept.
fn out_of_place(given: [(*const c_void, &str); 2]) -> Result<(), Error> {
    for (buf, name) in given {
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

/// Checks that no two received blocks overlap. Only blocks without gaps are checked, because this is cheap. `displs` names the
/// argument that gives the displacements.
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

/// Checks and returns the receive buffers.
fn receiving(given: impl ToRankBuffers, neighbors: &Neighbors) -> Result<Vec<Buffer>, Error> {
    let blocks = given.rank_buffers(neighbors.sources.len())?.iter().collect::<Vec<_>>();
    if let Some(displs) = given.places() {
        apart(&blocks, neighbors, displs)?;
    }
    Ok(blocks)
}

/// Prepares an allgather, in which the same send buffer goes to every destination.
fn allgather(send: Elements, recv: impl ToRankBuffers, handle: Comm) -> Prepared<impl Make> {
    let (comm, neighbors) = neighborhood(handle)?;
    out_of_place([send.start(), recv.start()])?;
    count(send.count, send.names[1])?;
    // If there are no destinations, the buffer may be NULL.
    let n = if neighbors.destinations.is_empty() { 0 } else { send.count };
    // SAFETY: `n` is at most `send.count`, and the program's buffer has `send.count` elements.
    let send = unsafe { send.of(n) }.buffer()?;
    let receive = receiving(recv, &neighbors)?;
    ready(comm, move |c: Rc<CommObject>| {
        c.neighbor_allgather(&neighbors, send.clone(), receive.clone())
    })
}

fn alltoall<S: ToRankBuffers>(send: S, recv: S, handle: Comm) -> Prepared<impl Make> {
    let (comm, neighbors) = neighborhood(handle)?;
    out_of_place([send.start(), recv.start()])?;
    let send: Vec<Buffer> = send.rank_buffers(neighbors.destinations.len())?.iter().collect();
    let receive = receiving(recv, &neighbors)?;
    ready(comm, move |c: Rc<CommObject>| {
        c.neighbor_alltoall(&neighbors, send.clone(), receive.clone())
    })
}

/// MPI_Neighbor_allgather, MPI_Neighbor_allgather_c, MPI_Ineighbor_allgather,
/// MPI_Ineighbor_allgather_c, MPI_Neighbor_allgather_init, MPI_Neighbor_allgather_init_c.
impl Collective for NeighborAllgather {
    fn slow_path(self) -> Prepared<impl Make> {
        allgather(self.sendbuf, self.recvbuf, self.comm)
    }
}

/// MPI_Neighbor_allgatherv, MPI_Neighbor_allgatherv_c, MPI_Ineighbor_allgatherv,
/// MPI_Ineighbor_allgatherv_c, MPI_Neighbor_allgatherv_init, MPI_Neighbor_allgatherv_init_c.
impl Collective for NeighborAllgatherv {
    fn slow_path(self) -> Prepared<impl Make> {
        allgather(self.sendbuf, self.recvbuf, self.comm)
    }
}

/// MPI_Neighbor_alltoall, MPI_Neighbor_alltoall_c, MPI_Ineighbor_alltoall,
/// MPI_Ineighbor_alltoall_c, MPI_Neighbor_alltoall_init, MPI_Neighbor_alltoall_init_c.
impl Collective for NeighborAlltoall {
    fn slow_path(self) -> Prepared<impl Make> {
        alltoall(self.sendbuf, self.recvbuf, self.comm)
    }
}

/// MPI_Neighbor_alltoallv, MPI_Neighbor_alltoallv_c, MPI_Ineighbor_alltoallv,
/// MPI_Ineighbor_alltoallv_c, MPI_Neighbor_alltoallv_init, MPI_Neighbor_alltoallv_init_c.
impl Collective for NeighborAlltoallv {
    fn slow_path(self) -> Prepared<impl Make> {
        alltoall(self.sendbuf, self.recvbuf, self.comm)
    }
}

/// MPI_Neighbor_alltoallw, MPI_Neighbor_alltoallw_c, MPI_Ineighbor_alltoallw,
/// MPI_Ineighbor_alltoallw_c, MPI_Neighbor_alltoallw_init, MPI_Neighbor_alltoallw_init_c.
impl Collective for NeighborAlltoallw {
    fn slow_path(self) -> Prepared<impl Make> {
        alltoall(self.sendbuf, self.recvbuf, self.comm)
    }
}
