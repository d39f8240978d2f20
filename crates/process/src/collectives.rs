//! Collective operations of a communicator: datatypes around [`weft_collective`].
//!
//! Each method returns the operation as a future that owns all it needs: a blocking call runs it in
//! place, a nonblocking one gives it to [`crate::Engine::spawn`], a persistent one makes it anew.
//! Buffers are by rank where they differ by rank; `None` for the send buffer means in place. In an
//! intercommunicator ranks are those of the other group, and nothing is in place.

use crate::buffer::Piece;
use crate::{Buffer, Comm, Error, inter};
use std::rc::Rc;
use weft_collective::inter::{Root, Sides, leaders};
use weft_collective::{
    Board, CENTRAL_MOST, Link, Reduce, SLOT, allgather, allreduce, alltoall, barrier, bcast,
    gather, reduce, reduce_scatter, scan, scatter, share_memory, shared,
};
use weft_fabric::{Fabric, Sge};

/// Barriers: Kini's baselines by their names, and one for ranks that share memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BarrierAlgorithm {
    /// The central one where it can be, else MPI-DS.
    #[default]
    Automatic,
    /// CENTRAL.
    Central,
    /// MPI-DS.
    Dissemination,
    /// MPI-PE.
    PairwiseExchange,
}

/// Allreduces: Kini's baselines by their names, and one for ranks that share memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AllreduceAlgorithm {
    /// The central one where it can be, else MPI-PE.
    #[default]
    Automatic,
    /// CENTRAL, for at most 64 bytes; beyond, MPI-PE.
    Central,
    /// MPI-PE; operators that do not commute take MPI-GB.
    PairwiseExchange,
    /// MPI-GB.
    GatherBroadcast,
}

/// Which algorithm a communicator uses.
#[derive(Debug, Clone, Copy, Default)]
pub struct Selection {
    pub barrier: BarrierAlgorithm,
    pub allreduce: AllreduceAlgorithm,
}

/// A collective operation, not yet started.
pub trait Operation: Future<Output = Result<(), Error>> + 'static {}
impl<T: Future<Output = Result<(), Error>> + 'static> Operation for T {}

/// Bytes of a scan that go along the chain also where ranks share memory: nobody waits for ranks above, so
/// that those below run ahead.
const CHAIN_MOST: usize = 2 << 10;

/// One rank's blocks, each in one piece.
pub(crate) struct Pieces {
    pieces: Vec<Piece>,
    buffers: Vec<Buffer>,
}

impl Pieces {
    pub(crate) fn sges(&self) -> Vec<Sge> {
        self.pieces.iter().map(|p| p.sge).collect()
    }

    /// Moves what was received to its place.
    pub(crate) fn unpack(&self) {
        for (piece, buffer) in self.pieces.iter().zip(&self.buffers) {
            piece.unpack(buffer, buffer.len());
        }
    }

    fn unpack_except(&self, skip: usize) {
        for (i, (piece, buffer)) in self.pieces.iter().zip(&self.buffers).enumerate() {
            if i != skip {
                piece.unpack(buffer, buffer.len());
            }
        }
    }
}

pub(crate) fn readable<F: Fabric>(link: &Link<F>, buffers: Vec<Buffer>) -> Pieces {
    let pool = link.endpoint.staging();
    Pieces { pieces: buffers.iter().map(|b| b.readable(pool)).collect(), buffers }
}

pub(crate) fn writable<F: Fabric>(link: &Link<F>, buffers: Vec<Buffer>) -> Pieces {
    let pool = link.endpoint.staging();
    Pieces { pieces: buffers.iter().map(|b| b.writable(pool)).collect(), buffers }
}

/// Copies the data of one buffer to another of the same length, through a packed form if needed.
fn copy_local<F: Fabric>(link: &Link<F>, from: &Buffer, to: &Buffer) {
    let source = from.readable(link.endpoint.staging());
    let len = source.sge.len().min(to.len());
    match to.run() {
        Some(run) => run.part(0, len).copy_from(source.sge.part(0, len)),
        None => to.unpack_from(source.sge.part(0, len)),
    }
}

/// Allgather of ranks that share memory.
async fn gather_all<F: Fabric>(
    link: &Link<F>,
    board: &Board<F>,
    send: Option<Buffer>,
    blocks: Vec<Buffer>,
) -> Result<(), Error> {
    let me = link.rank;
    let pieces = writable(link, blocks);
    let own = send.as_ref().unwrap_or(&pieces.buffers[me]).readable(link.endpoint.staging());
    let mut sges = pieces.sges();
    // Both sides may describe the block in other types, and should agree about its length.
    sges[me] = sges[me].part(0, own.sge.len().min(sges[me].len()));
    allgather::shared(link, board, own.sge.part(0, sges[me].len()), &sges).await?;
    pieces.unpack();
    Ok(())
}

/// The root of an operation of one group.
fn in_group(root: Root) -> usize {
    match root {
        Root::Rank(root) => root,
        _ => unreachable!("roots beside the group are an intercommunicator's"),
    }
}

impl<F: Fabric> Comm<F> {
    /// Whether the central algorithms serve this communicator: its ranks share memory.
    fn central(&self) -> bool {
        *self.shares_memory.get_or_init(|| {
            let fabric = self.engine.endpoint().fabric();
            self.size() <= CENTRAL_MOST && share_memory(fabric, self.group().ranks())
        })
    }

    /// Whether there are others, and all share memory.
    fn near(&self) -> bool {
        self.size() > 1 && self.central()
    }

    pub fn barrier(&self) -> impl Operation + use<F> {
        let (link, bridge) = self.links();
        let board = self.board.clone();
        let algorithm = match self.selection.get().barrier {
            BarrierAlgorithm::Automatic if self.central() => BarrierAlgorithm::Central,
            other => other,
        };
        async move {
            if let Some(bridge) = bridge {
                let sides = Sides { local: link, bridge };
                return Ok(Box::pin(async move { leaders::barrier(&sides).await }).await?);
            }
            match algorithm {
                BarrierAlgorithm::Central => barrier::central(&link, &board).await?,
                BarrierAlgorithm::Automatic | BarrierAlgorithm::Dissemination => {
                    barrier::dissemination(&link).await?
                }
                BarrierAlgorithm::PairwiseExchange => barrier::pairwise_exchange(&link).await?,
            }
            Ok(())
        }
    }

    pub fn bcast(&self, buffer: Buffer, root: Root) -> impl Operation + use<F> {
        let (link, bridge) = self.links();
        let (near, board) = (self.near(), self.board.clone());
        async move {
            if let Some(bridge) = bridge {
                let sides = Sides { local: link, bridge };
                return Box::pin(inter::bcast(sides, buffer, root)).await;
            }
            let root = in_group(root);
            let pool = link.endpoint.staging();
            let at_root = link.rank == root;
            let piece = if at_root { buffer.readable(pool) } else { buffer.writable(pool) };
            match near {
                true => bcast::shared(&link, &board, root, piece.sge).await?,
                false => bcast::binomial(&link, root, piece.sge).await?,
            }
            if !at_root {
                piece.unpack(&buffer, buffer.len());
            }
            Ok(())
        }
    }

    /// `send`: `None` at a root that reduces in place; `receive`: at the root.
    pub fn reduce(
        &self,
        send: Option<Buffer>,
        receive: Option<Buffer>,
        root: Root,
        op: Rc<dyn Reduce>,
    ) -> impl Operation + use<F> {
        let (link, bridge) = self.links();
        let (near, board) = (self.near(), self.board.clone());
        async move {
            if let Some(bridge) = bridge {
                let sides = Sides { local: link, bridge };
                let reduce = async move { inter::reduce(sides, send, receive, root, &*op).await };
                return Box::pin(reduce).await;
            }
            let root = in_group(root);
            let pool = link.endpoint.staging();
            let input = send.as_ref().or(receive.as_ref()).map(|b| b.readable(pool));
            let input = input.as_ref().map_or(Sge::EMPTY, |p| p.sge);
            let output = receive.as_ref().map(|b| b.writable(pool));
            let into = output.as_ref().map_or(Sge::EMPTY, |p| p.sge);
            let unit = send.as_ref().or(receive.as_ref()).map_or(0, |b| b.ty().size());
            if near && unit <= shared::UNIT_MOST {
                reduce::shared(&link, &board, root, (input, into), unit, &*op).await?;
            } else {
                reduce::binomial(&link, root, input, into, &*op).await?;
            }
            if let (Some(piece), Some(buffer), true) = (output, &receive, link.rank == root) {
                piece.unpack(buffer, buffer.len());
            }
            Ok(())
        }
    }

    pub fn allreduce(
        &self,
        send: Option<Buffer>,
        receive: Buffer,
        op: Rc<dyn Reduce>,
    ) -> impl Operation + use<F> {
        let (link, bridge) = self.links();
        let (near, board) = (self.near(), self.board.clone());
        let algorithm = match self.selection.get().allreduce {
            AllreduceAlgorithm::Automatic if self.central() => AllreduceAlgorithm::Central,
            other => other,
        };
        async move {
            if let Some(bridge) = bridge {
                let sides = Sides { local: link, bridge };
                let send = send.unwrap_or_else(|| receive.clone());
                let reduce = async move { inter::allreduce(sides, send, receive, &*op).await };
                return Box::pin(reduce).await;
            }
            let pool = link.endpoint.staging();
            let input = send.as_ref().unwrap_or(&receive).readable(pool);
            let output = receive.writable(pool);
            let (from, to, unit) = (input.sge, output.sge, receive.ty().size());
            match algorithm {
                AllreduceAlgorithm::Central if from.len() <= SLOT => {
                    allreduce::central(&link, &board, from, to, &*op).await?
                }
                AllreduceAlgorithm::Central if near && unit <= shared::UNIT_MOST => {
                    allreduce::shared(&link, &board, from, to, unit, &*op).await?
                }
                AllreduceAlgorithm::GatherBroadcast => {
                    allreduce::gather_broadcast(&link, from, to, &*op).await?
                }
                _ if op.commutes() => allreduce::pairwise_exchange(&link, from, to, &*op).await?,
                _ => allreduce::gather_broadcast(&link, from, to, &*op).await?,
            }
            output.unpack(&receive, receive.len());
            Ok(())
        }
    }

    /// Inclusive, or exclusive (MPI_Exscan).
    pub fn scan(
        &self,
        send: Option<Buffer>,
        receive: Buffer,
        op: Rc<dyn Reduce>,
        exclusive: bool,
    ) -> impl Operation + use<F> {
        let link = self.link();
        let (near, board) = (self.near(), self.board.clone());
        async move {
            let pool = link.endpoint.staging();
            let input = send.as_ref().unwrap_or(&receive).readable(pool);
            let output = receive.writable(pool);
            let unit = receive.ty().size();
            let short = input.sge.len() <= CHAIN_MOST;
            if near && !short && 2 * unit <= shared::UNIT_MOST {
                let buffers = (input.sge, output.sge);
                scan::shared(&link, &board, buffers, unit, exclusive, &*op).await?;
                if !exclusive || link.rank > 0 {
                    output.unpack(&receive, receive.len());
                }
            } else if exclusive {
                scan::exclusive_chain(&link, input.sge, output.sge, &*op).await?;
                if link.rank > 0 {
                    output.unpack(&receive, receive.len());
                }
            } else {
                scan::chain(&link, input.sge, output.sge, &*op).await?;
                output.unpack(&receive, receive.len());
            }
            Ok(())
        }
    }

    /// `send`: `None` at a root that gathers in place; `blocks`: at the root, by rank.
    pub fn gather(
        &self,
        send: Option<Buffer>,
        blocks: Vec<Buffer>,
        root: Root,
    ) -> impl Operation + use<F> {
        let (link, bridge) = self.links();
        async move {
            if let Some(bridge) = bridge {
                return Box::pin(inter::gather(bridge, send, blocks, root)).await;
            }
            let root = in_group(root);
            let me = link.rank;
            if me != root {
                let mine = send.as_ref().map(|b| b.readable(link.endpoint.staging()));
                let mine = mine.as_ref().map_or(Sge::EMPTY, |p| p.sge);
                return Ok(gather::flat(&link, root, mine, &[]).await?);
            }
            if let Some(send) = &send {
                copy_local(&link, send, &blocks[me]);
            }
            let pieces = writable(&link, blocks);
            let sges = pieces.sges();
            gather::flat(&link, root, sges[me], &sges).await?;
            pieces.unpack_except(me);
            Ok(())
        }
    }

    /// `blocks`: at the root, by rank; `receive`: `None` at a root that scatters in place.
    pub fn scatter(
        &self,
        blocks: Vec<Buffer>,
        receive: Option<Buffer>,
        root: Root,
    ) -> impl Operation + use<F> {
        let (link, bridge) = self.links();
        async move {
            if let Some(bridge) = bridge {
                return Box::pin(inter::scatter(bridge, blocks, receive, root)).await;
            }
            let root = in_group(root);
            let me = link.rank;
            if me != root {
                let Some(receive) = receive else { return Ok(()) };
                let piece = receive.writable(link.endpoint.staging());
                scatter::flat(&link, root, &[], piece.sge).await?;
                piece.unpack(&receive, receive.len());
                return Ok(());
            }
            if let Some(receive) = &receive {
                copy_local(&link, &blocks[me], receive);
            }
            let pieces = readable(&link, blocks);
            let sges = pieces.sges();
            scatter::flat(&link, root, &sges, sges[me]).await?;
            Ok(())
        }
    }

    /// `blocks`: by rank, the receive buffers; this rank's own holds its data if `send` is `None`.
    pub fn allgather(&self, send: Option<Buffer>, blocks: Vec<Buffer>) -> impl Operation + use<F> {
        let (link, bridge) = self.links();
        let (near, board) = (self.near(), self.board.clone());
        async move {
            if let Some(bridge) = bridge {
                let send = send.expect("in place is for one group");
                return Box::pin(inter::allgather(bridge, send, blocks)).await;
            }
            let me = link.rank;
            if near {
                return gather_all(&link, &board, send, blocks).await;
            }
            if let Some(send) = &send {
                copy_local(&link, send, &blocks[me]);
            }
            let pieces = writable(&link, blocks);
            if pieces.pieces[me].staging.is_some() {
                pieces.buffers[me].pack_to(pieces.pieces[me].sge);
            }
            allgather::ring(&link, &pieces.sges()).await?;
            pieces.unpack_except(me);
            Ok(())
        }
    }

    /// The same for blocks that all have one length, side by side in extents of their type.
    pub fn alltoall_equal(
        &self,
        send: Option<Vec<Buffer>>,
        receive: Vec<Buffer>,
    ) -> impl Operation + use<F> {
        let near = self.remote().is_none() && self.near();
        // Taken now: it numbers the operation.
        let other = (!near).then(|| self.alltoall(send.clone(), receive.clone()));
        let (link, board) = (near.then(|| self.link()), self.board.clone());
        async move {
            let (Some(link), None) = (link, &other) else {
                return Box::pin(other.expect("one of the two")).await;
            };
            let blocks = send.as_ref().unwrap_or(&receive);
            let whole = blocks[0].block(0, blocks[0].count() * blocks.len());
            let into = writable(&link, receive);
            let pool = link.endpoint.staging();
            let mut out = whole.readable(pool);
            let total = out.sge.len();
            let each = total / link.size();
            let mut places = into.sges();
            places.iter_mut().for_each(|sge| *sge = sge.part(0, each.min(sge.len())));
            if send.is_none() && out.staging.is_none() && total > shared::DESK {
                // In place: what is sent is set aside, because it is overwritten.
                let copy = pool.take(total);
                copy.sge().copy_from(out.sge);
                out = Piece { sge: copy.sge(), staging: Some(copy) };
            }
            alltoall::shared(&link, &board, out.sge, &places).await?;
            into.unpack();
            Ok(())
        }
    }

    /// `send`: by rank, `None` in place (then the data to send lie in `receive`); `receive`: by rank.
    pub fn alltoall(
        &self,
        send: Option<Vec<Buffer>>,
        receive: Vec<Buffer>,
    ) -> impl Operation + use<F> {
        let (link, bridge) = self.links();
        async move {
            if let Some(bridge) = bridge {
                let send = send.expect("in place is for one group");
                return Box::pin(inter::alltoall(bridge, send, receive)).await;
            }
            let mut kept = Vec::new();
            let out = match send {
                Some(send) => readable(&link, send),
                None => {
                    // In place: what is sent is set aside, because it is overwritten.
                    let pool = link.endpoint.staging();
                    for buffer in &receive {
                        let copy = pool.take(buffer.len());
                        buffer.pack_to(copy.sge());
                        kept.push(copy);
                    }
                    let pieces =
                        kept.drain(..).map(|s| Piece { sge: s.sge(), staging: Some(s) }).collect();
                    Pieces { pieces, buffers: receive.clone() }
                }
            };
            let into = writable(&link, receive);
            let me = link.rank;
            let (outs, mut ins) = (out.sges(), into.sges());
            // The own block may be given in other types on both sides.
            let own = outs[me].len().min(ins[me].len());
            ins[me] = ins[me].part(0, own);
            let mut outs = outs;
            outs[me] = outs[me].part(0, own);
            alltoall::pairwise(&link, &outs, &ins).await?;
            into.unpack();
            Ok(())
        }
    }

    /// Reduces, then scatters `counts[rank]` elements to each rank; `whole` describes all of them.
    pub fn reduce_scatter(
        &self,
        send: Buffer,
        counts: Vec<usize>,
        receive: Buffer,
        op: Rc<dyn Reduce>,
    ) -> impl Operation + use<F> {
        let (link, bridge) = self.links();
        let second = self.link();
        let (near, board) = (self.near(), self.board.clone());
        async move {
            if let Some(bridge) = bridge {
                let sides = Sides { local: link, bridge };
                let reduce =
                    async move { inter::reduce_scatter(sides, send, counts, receive, &*op).await };
                return Box::pin(reduce).await;
            }
            let input = send.readable(link.endpoint.staging());
            let unit = send.ty().size();
            if near && unit <= shared::UNIT_MOST {
                let lens: Vec<_> = counts.iter().map(|count| count * unit).collect();
                let piece = receive.writable(link.endpoint.staging());
                let data = (input.sge, &lens[..]);
                reduce_scatter::shared(&link, &board, data, piece.sge, unit, &*op).await?;
                piece.unpack(&receive, receive.len());
                return Ok(());
            }
            let whole = link.stage(send.len());
            reduce::binomial(&link, 0, input.sge, whole.sge(), &*op).await?;
            let size = send.ty().size();
            let mut blocks = Vec::new();
            let mut at = 0;
            for count in &counts {
                blocks.push(whole.sge().part(at, count * size));
                at += count * size;
            }
            let piece = receive.writable(link.endpoint.staging());
            let at_root = link.rank == 0;
            scatter::flat(&second, 0, if at_root { &blocks } else { &[] }, piece.sge).await?;
            piece.unpack(&receive, receive.len());
            Ok(())
        }
    }
}
