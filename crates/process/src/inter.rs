//! Collective operations of intercommunicators: datatypes around [`weft_collective::inter`].
//!
//! [`crate::collectives`] boxes these futures, so that the futures of operations in one group stay small.

use crate::rank_buffers::RankBuffers;
use crate::{Buffer, Error};
use std::rc::Rc;
use weft_collective::inter::{Root, Sides, direct, leaders};
use weft_collective::{ElementReduction, ReduceScatterBuffers, ReductionBuffers};
use weft_fabric::{Fabric, Sge};

const NOT_IN_PLACE: &str = "in place is for one group";

pub(crate) async fn bcast<F: Fabric>(
    sides: Sides<F>,
    buffer: Buffer,
    root: Root,
) -> Result<(), Error> {
    let pool = sides.local.endpoint.staging();
    match root {
        Root::NotInvolved => Ok(()),
        Root::ThisProcess => {
            let piece = buffer.readable(pool);
            Ok(leaders::broadcast(&sides, root, piece.sge).await?)
        }
        Root::Rank(_) => {
            let piece = buffer.writable(pool);
            leaders::broadcast(&sides, root, piece.sge).await?;
            piece.unpack(&buffer, buffer.len());
            Ok(())
        }
    }
}

pub(crate) async fn reduce<F: Fabric>(
    sides: Sides<F>,
    send: Option<Buffer>,
    receive: Option<Buffer>,
    root: Root,
    op: Rc<dyn ElementReduction>,
) -> Result<(), Error> {
    let pool = sides.local.endpoint.staging();
    let input = send.as_ref().map(|b| b.readable(pool));
    let output = receive.as_ref().map(|b| b.writable(pool));
    let data = input.as_ref().map_or(Sge::EMPTY, |p| p.sge);
    let result = output.as_ref().map_or(Sge::EMPTY, |p| p.sge);
    let element = send.as_ref().or(receive.as_ref()).map_or(1, |b| b.ty().size());
    leaders::reduce(&sides, root, ReductionBuffers { data, result, element }, &*op).await?;
    if let (Some(piece), Some(buffer)) = (&output, &receive) {
        piece.unpack(buffer, buffer.len());
    }
    Ok(())
}

pub(crate) async fn allreduce<F: Fabric>(
    sides: Sides<F>,
    send: Option<Buffer>,
    receive: Buffer,
    op: Rc<dyn ElementReduction>,
) -> Result<(), Error> {
    let pool = sides.local.endpoint.staging();
    let send = send.as_ref().unwrap_or(&receive);
    let (input, output) = (send.readable(pool), receive.writable(pool));
    let element = receive.ty().size();
    let buffers = ReductionBuffers { data: input.sge, result: output.sge, element };
    leaders::allreduce(&sides, buffers, &*op).await?;
    output.unpack(&receive, receive.len());
    Ok(())
}

/// Reduces and scatters. `counts`: number of elements by rank of this group.
pub(crate) async fn reduce_scatter<F: Fabric>(
    sides: Sides<F>,
    send: Buffer,
    counts: impl AsRef<[usize]>,
    receive: Buffer,
    op: Rc<dyn ElementReduction>,
) -> Result<(), Error> {
    let pool = sides.local.endpoint.staging();
    let (input, output) = (send.readable(pool), receive.writable(pool));
    let (data, result, element) = (input.sge, output.sge, send.ty().size());
    let lens: Vec<usize> = counts.as_ref().iter().map(|count| count * element).collect();
    let buffers = ReduceScatterBuffers { data, lens: &lens, result, element };
    leaders::reduce_scatter(&sides, buffers, &*op).await?;
    output.unpack(&receive, receive.len());
    Ok(())
}

pub(crate) async fn gather<F: Fabric>(
    Sides { bridge, .. }: Sides<F>,
    send: Option<Buffer>,
    blocks: RankBuffers,
    root: Root,
) -> Result<(), Error> {
    let mine = send.as_ref().map(|b| b.readable(bridge.endpoint.staging()));
    let mine = mine.as_ref().map_or(Sge::EMPTY, |p| p.sge);
    let pieces = blocks.writable(bridge.endpoint.staging());
    direct::gather(&bridge, root, mine, &pieces.sges).await?;
    pieces.unpack();
    Ok(())
}

pub(crate) async fn scatter<F: Fabric>(
    Sides { bridge, .. }: Sides<F>,
    blocks: RankBuffers,
    receive: Option<Buffer>,
    root: Root,
) -> Result<(), Error> {
    let mine = receive.as_ref().map(|b| b.writable(bridge.endpoint.staging()));
    let to = mine.as_ref().map_or(Sge::EMPTY, |p| p.sge);
    let pieces = blocks.readable(bridge.endpoint.staging());
    direct::scatter(&bridge, root, &pieces.sges, to).await?;
    if let (Some(piece), Some(buffer)) = (&mine, &receive) {
        piece.unpack(buffer, buffer.len());
    }
    Ok(())
}

/// Gathers blocks of the other group. `send` goes to all ranks of the other group.
pub(crate) async fn allgather<F: Fabric>(
    Sides { bridge, .. }: Sides<F>,
    send: Option<Buffer>,
    blocks: RankBuffers,
) -> Result<(), Error> {
    let send = send.expect(NOT_IN_PLACE);
    let mine = send.readable(bridge.endpoint.staging());
    let pieces = blocks.writable(bridge.endpoint.staging());
    let out = vec![mine.sge; bridge.size()];
    direct::exchange(&bridge, &out, &pieces.sges).await?;
    pieces.unpack();
    Ok(())
}

pub(crate) async fn alltoall<F: Fabric>(
    Sides { bridge, .. }: Sides<F>,
    send: Option<RankBuffers>,
    receive: RankBuffers,
) -> Result<(), Error> {
    let send = send.expect(NOT_IN_PLACE);
    let pool = bridge.endpoint.staging();
    let (out, into) = (send.readable(pool), receive.writable(pool));
    direct::exchange(&bridge, &out.sges, &into.sges).await?;
    into.unpack();
    Ok(())
}
