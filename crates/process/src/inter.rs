//! Collective operations of intercommunicators whose blocks differ from those of one group: datatypes around
//! [`weft_collective::inter`].
//!
//! [`crate::collectives`] boxes these futures, so that the futures of operations in one group stay small.

use crate::rank_buffers::RankBuffers;
use crate::{Buffer, Error};
use weft_collective::inter::{Root, Sides, direct};
use weft_fabric::{Fabric, Sge};

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
    let send = send.expect("in place is for one group");
    let mine = send.readable(bridge.endpoint.staging());
    let pieces = blocks.writable(bridge.endpoint.staging());
    let out = vec![mine.sge; bridge.size()];
    direct::exchange(&bridge, &out, &pieces.sges).await?;
    pieces.unpack();
    Ok(())
}
