//! Gathers, scatters and exchanges of blocks (MPI 5.0, sections 6.5 to 6.8).

use super::fast_path::{List, a_rank, at_once};
use super::rank_buffers::ToRankBuffers;
use super::{Collective, FastPath, Make, Prepared, in_place, is_in_place, ready, root_in_place};
use crate::arguments::{at_leaf, at_root, comm, fixed_comm, root};
use crate::calls::*;
use crate::constants::*;
use crate::elements::{Arguments, Elements};
use crate::engine::CommObject;
use crate::error::Error;
use crate::types::Comm;
use std::ffi::c_int;
use std::rc::Rc;
use weft_collective::CollectiveKind;
use weft_process::{Buffer, CallKey, Lengths, RankBuffers};

/// Checks that the block that this rank sends to itself fits into its receive block, if this rank has both blocks.
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

/// Returns the key by which an algorithm is chosen. It contains the length of a block only if all blocks are equal, because only
/// then all ranks know the length.
fn key<S: ToRankBuffers>(block: usize) -> CallKey {
    CallKey::of(if S::LENGTHS == Lengths::Equal { block } else { 0 })
}

/// Prepares a gather. The receive buffer is significant only at the root.
fn gather<S: ToRankBuffers>(
    send: Elements,
    recv: S,
    root_: c_int,
    handle: Comm,
) -> Prepared<impl Make> {
    let comm = comm(handle)?;
    let root = root(&comm, root_)?;
    let (at_root, at_leaf) = (at_root(&comm, root), at_leaf(root));
    let send = if at_leaf { in_place(&comm, send)? } else { None };
    let into = if at_root { recv.rank_buffers(comm.peers().size())? } else { RankBuffers::Nothing };
    root_in_place(&comm, root, send.as_ref())?;
    own_fits(&comm, send.as_ref(), into.get(comm.rank()).as_ref())?;
    ready(comm, move |c: Rc<CommObject>| c.gather(send.clone(), into.clone(), root, S::LENGTHS))
}

#[inline(always)]
fn gather_at_once<A: Arguments, S: ToRankBuffers>(
    operation: CollectiveKind,
    send: Elements,
    recv: S,
    root: c_int,
    handle: Comm,
) -> FastPath {
    let comm = fixed_comm(handle)?;
    let (me, root) = (comm.rank(), a_rank(comm, root)?);
    let mine = send.plain()?;
    let mut blocks = List::new();
    if me == root {
        recv.list(comm.size(), &mut blocks)?;
        if blocks[me].len() != mine.len() {
            return None;
        }
    }
    at_once::<A>(comm, operation, key::<S>(mine.len()), async |call| {
        call.gather(root, mine, &blocks).await
    })
}

both! {
    /// MPI_Gather, MPI_Gather_c, MPI_Igather, MPI_Igather_c, MPI_Gather_init, MPI_Gather_init_c.
    Collective for Gather by gather, gather_at_once (sendbuf, recvbuf, root, comm)
}
both! {
    /// MPI_Gatherv, MPI_Gatherv_c, MPI_Igatherv, MPI_Igatherv_c, MPI_Gatherv_init, MPI_Gatherv_init_c.
    Collective for Gatherv by gather, gather_at_once (sendbuf, recvbuf, root, comm)
}

/// Prepares a scatter. The send buffer is significant only at the root.
fn scatter<S: ToRankBuffers>(
    send: S,
    recv: Elements,
    root_: c_int,
    handle: Comm,
) -> Prepared<impl Make> {
    let comm = comm(handle)?;
    let root = root(&comm, root_)?;
    let (at_root, at_leaf) = (at_root(&comm, root), at_leaf(root));
    let out = if at_root { send.rank_buffers(comm.peers().size())? } else { RankBuffers::Nothing };
    let receive = if at_leaf { in_place(&comm, recv)? } else { None };
    root_in_place(&comm, root, receive.as_ref())?;
    own_fits(&comm, out.get(comm.rank()).as_ref(), receive.as_ref())?;
    ready(comm, move |c: Rc<CommObject>| c.scatter(out.clone(), receive.clone(), root, S::LENGTHS))
}

#[inline(always)]
fn scatter_at_once<A: Arguments, S: ToRankBuffers>(
    operation: CollectiveKind,
    send: S,
    recv: Elements,
    root: c_int,
    handle: Comm,
) -> FastPath {
    let comm = fixed_comm(handle)?;
    let (me, root) = (comm.rank(), a_rank(comm, root)?);
    let mine = recv.plain()?;
    let mut blocks = List::new();
    if me == root {
        send.list(comm.size(), &mut blocks)?;
        if blocks[me].len() != mine.len() {
            return None;
        }
    }
    at_once::<A>(comm, operation, key::<S>(mine.len()), async |call| {
        call.scatter(root, &blocks, mine).await
    })
}

both! {
    /// MPI_Scatter, MPI_Scatter_c, MPI_Iscatter, MPI_Iscatter_c, MPI_Scatter_init, MPI_Scatter_init_c.
    Collective for Scatter by scatter, scatter_at_once (sendbuf, recvbuf, root, comm)
}
both! {
    /// MPI_Scatterv, MPI_Scatterv_c, MPI_Iscatterv, MPI_Iscatterv_c, MPI_Scatterv_init,
    /// MPI_Scatterv_init_c.
    Collective for Scatterv by scatter, scatter_at_once (sendbuf, recvbuf, root, comm)
}

fn allgather(send: Elements, recv: impl ToRankBuffers, handle: Comm) -> Prepared<impl Make> {
    let comm = comm(handle)?;
    let send = in_place(&comm, send)?;
    let into = recv.rank_buffers(comm.peers().size())?;
    own_fits(&comm, send.as_ref(), into.get(comm.rank()).as_ref())?;
    ready(comm, move |c: Rc<CommObject>| c.allgather(send.clone(), into.clone()))
}

/// MPI_Allgather, MPI_Allgather_c, MPI_Iallgather, MPI_Iallgather_c, MPI_Allgather_init,
/// MPI_Allgather_init_c.
impl Collective for Allgather {
    #[inline(always)]
    fn fast_path(self) -> FastPath {
        let comm = fixed_comm(self.comm)?;
        let mine = self.sendbuf.plain()?;
        let mut blocks = List::new();
        self.recvbuf.list(comm.size(), &mut blocks)?;
        if blocks[0].len() != mine.len() {
            return None;
        }
        let asked = CallKey::of(mine.len());
        at_once::<Self>(comm, CollectiveKind::Allgather, asked, async |call| {
            call.allgather(mine, &blocks).await
        })
    }

    fn slow_path(self) -> Prepared<impl Make> {
        allgather(self.sendbuf, self.recvbuf, self.comm)
    }
}

/// MPI_Allgatherv, MPI_Allgatherv_c, MPI_Iallgatherv, MPI_Iallgatherv_c, MPI_Allgatherv_init,
/// MPI_Allgatherv_init_c.
impl Collective for Allgatherv {
    fn slow_path(self) -> Prepared<impl Make> {
        allgather(self.sendbuf, self.recvbuf, self.comm)
    }
}

fn alltoall<S: ToRankBuffers>(send: S, recv: S, handle: Comm) -> Prepared<impl Make> {
    let comm = comm(handle)?;
    let ranks = comm.peers().size();
    let (address, name) = send.start();
    let out =
        if is_in_place(&comm, address, name)? { None } else { Some(send.rank_buffers(ranks)?) };
    let into = recv.rank_buffers(ranks)?;
    let own = out.as_ref().and_then(|out| out.get(comm.rank()));
    own_fits(&comm, own.as_ref(), into.get(comm.rank()).as_ref())?;
    ready(comm, move |c: Rc<CommObject>| c.alltoall(out.clone(), into.clone(), S::LENGTHS))
}

#[inline(always)]
fn alltoall_at_once<A: Arguments, S: ToRankBuffers>(
    operation: CollectiveKind,
    send: S,
    recv: S,
    handle: Comm,
) -> FastPath {
    let comm = fixed_comm(handle)?;
    let (mut out, mut into) = (List::new(), List::new());
    send.list(comm.size(), &mut out)?;
    recv.list(comm.size(), &mut into)?;
    let own = into[comm.rank()].len();
    if out[comm.rank()].len() != own {
        return None;
    }
    at_once::<A>(comm, operation, key::<S>(own), async |call| call.alltoall(&out, &into).await)
}

both! {
    /// MPI_Alltoall, MPI_Alltoall_c, MPI_Ialltoall, MPI_Ialltoall_c, MPI_Alltoall_init,
    /// MPI_Alltoall_init_c.
    Collective for Alltoall by alltoall, alltoall_at_once (sendbuf, recvbuf, comm)
}
both! {
    /// MPI_Alltoallv, MPI_Alltoallv_c, MPI_Ialltoallv, MPI_Ialltoallv_c, MPI_Alltoallv_init,
    /// MPI_Alltoallv_init_c.
    Collective for Alltoallv by alltoall, alltoall_at_once (sendbuf, recvbuf, comm)
}

/// MPI_Alltoallw, MPI_Alltoallw_c, MPI_Ialltoallw, MPI_Ialltoallw_c, MPI_Alltoallw_init,
/// MPI_Alltoallw_init_c.
impl Collective for Alltoallw {
    fn slow_path(self) -> Prepared<impl Make> {
        alltoall(self.sendbuf, self.recvbuf, self.comm)
    }
}
