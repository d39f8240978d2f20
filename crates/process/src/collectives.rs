//! Collective operations of a communicator: datatypes around [`weft_collective`].
//!
//! Each method returns the operation as a future that owns all it needs. A blocking call runs the future in place, a nonblocking
//! call gives it to [`crate::Engine::spawn`], a persistent operation makes it anew at each start. Buffers are given by rank if they
//! differ by rank. `None` for the send buffer means in place. In an intercommunicator, ranks are those of the other group, and no
//! buffer is in place.

use crate::comm_selection::CallKey;
use crate::rank_buffers::{RankBuffers, RankPieces};
use crate::{Buffer, Comm, Error, WaitHooks, inter};
use smallvec::SmallVec;
use std::rc::Rc;
use weft_collective::inter::{Root, Sides, leaders};
use weft_collective::{
    AlgorithmChoice, CollectiveKind, CollectiveState, CommView, ElementReduction,
    ReduceScatterBuffers, ReductionBuffers, run,
};
use weft_fabric::{Fabric, Fault, Sge};

/// A collective operation that has not started.
pub trait CollectiveOperation: Future<Output = Result<(), Error>> + 'static {}
impl<T: Future<Output = Result<(), Error>> + 'static> CollectiveOperation for T {}

/// Copies the data of one buffer to another of the same length, through a packed form if needed.
fn copy_local<F: Fabric>(link: &CommView<F>, from: &Buffer, to: &Buffer) {
    let source = from.readable(link.endpoint.staging());
    let len = source.sge.len().min(to.len());
    match to.run() {
        Some(run) => run.part(0, len).copy_from(source.sge.part(0, len)),
        None => to.unpack_from(source.sge.part(0, len)),
    }
}

/// Returns the root of an operation of one group.
fn in_group(root: Root) -> usize {
    match root {
        Root::Rank(root) => root,
        _ => unreachable!("roots beside the group are an intercommunicator's"),
    }
}

/// Knowledge of the lengths of an operation's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lengths {
    /// All blocks have one length, and all ranks know it, so that a choice may depend on it.
    Equal,
    /// Blocks have different lengths, as in the `v` forms of MPI: most ranks know only some of them.
    Varying,
}

impl<F: Fabric> Comm<F> {
    fn choose_reduction(
        &self,
        operation: CollectiveKind,
        buffer: Option<&Buffer>,
        op: &dyn ElementReduction,
    ) -> AlgorithmChoice {
        let (bytes, element) = buffer.map_or((0, 1), |b| (b.len(), b.ty().size()));
        let asked = CallKey { bytes, element, commutes: op.commutes(), equal: true };
        self.choose(operation, asked)
    }

    /// Runs an operation of this group to its end, on memory that the caller keeps until then. `run` gets the arguments that the
    /// operations of [`weft_collective::run`] take. All ranks must ask for the same operation.
    #[inline]
    pub fn run_in_place(
        &self,
        outside: &dyn WaitHooks,
        operation: CollectiveKind,
        asked: CallKey,
        run: impl AsyncFnOnce(&CommView<F>, &CollectiveState<F>, AlgorithmChoice) -> Result<(), Fault>,
    ) -> Result<(), Error> {
        let link = self.link();
        let choice = self.choose(operation, asked);
        let link = link.carried(choice);
        let running = std::pin::pin!(run(&link, &self.state, choice));
        Ok(self.engine.block_on(outside, running)?)
    }

    /// Synchronizes: ends on no rank before all ranks have started it (MPI 5.0, section 6.3). Between two groups, it ends on no
    /// rank before all ranks of the other group have started it.
    pub fn barrier(&self) -> impl CollectiveOperation + use<F> {
        let (link, bridge) = self.links();
        let state = self.state.clone();
        let choice = self.choose(CollectiveKind::Barrier, CallKey::of(0));
        async move {
            if let Some(bridge) = bridge {
                let sides = Sides { local: link, bridge };
                return Ok(Box::pin(async move { leaders::barrier(&sides).await }).await?);
            }
            let link = link.carried(choice);
            Ok(run::barrier(&link, &state, choice).await?)
        }
    }

    /// Sends `buffer` of the root to the buffers of all other ranks, which must have room for the same number of bytes (MPI 5.0,
    /// section 6.4).
    pub fn bcast(&self, buffer: Buffer, root: Root) -> impl CollectiveOperation + use<F> {
        let (link, bridge) = self.links();
        let state = self.state.clone();
        let choice = self.choose(CollectiveKind::Bcast, CallKey::of(buffer.len()));
        async move {
            if let Some(bridge) = bridge {
                let sides = Sides { local: link, bridge };
                return Box::pin(inter::bcast(sides, buffer, root)).await;
            }
            let root = in_group(root);
            let link = link.carried(choice);
            let pool = link.endpoint.staging();
            let at_root = link.rank == root;
            let piece = if at_root { buffer.readable(pool) } else { buffer.writable(pool) };
            run::bcast(&link, &state, choice, root, piece.sge).await?;
            if !at_root {
                piece.unpack(&buffer, buffer.len());
            }
            Ok(())
        }
    }

    /// Reduces to the root. `send` is `None` at a root that reduces in place. `receive` is given at the root.
    pub fn reduce(
        &self,
        send: Option<Buffer>,
        receive: Option<Buffer>,
        root: Root,
        op: Rc<dyn ElementReduction>,
    ) -> impl CollectiveOperation + use<F> {
        let (link, bridge) = self.links();
        let state = self.state.clone();
        let choice =
            self.choose_reduction(CollectiveKind::Reduce, send.as_ref().or(receive.as_ref()), &*op);
        async move {
            if let Some(bridge) = bridge {
                let sides = Sides { local: link, bridge };
                let reduce = async move { inter::reduce(sides, send, receive, root, &*op).await };
                return Box::pin(reduce).await;
            }
            let root = in_group(root);
            let link = link.carried(choice);
            let element = send.as_ref().or(receive.as_ref()).map_or(1, |b| b.ty().size());
            let pool = link.endpoint.staging();
            let input = send.as_ref().or(receive.as_ref()).map(|b| b.readable(pool));
            let data = input.as_ref().map_or(Sge::EMPTY, |p| p.sge);
            let output = receive.as_ref().map(|b| b.writable(pool));
            let result = output.as_ref().map_or(Sge::EMPTY, |p| p.sge);
            let buffers = ReductionBuffers { data, result, element };
            run::reduce(&link, &state, choice, root, buffers, &*op).await?;
            if let (Some(piece), Some(buffer), true) = (output, &receive, link.rank == root) {
                piece.unpack(buffer, buffer.len());
            }
            Ok(())
        }
    }

    /// Combines what all ranks `send` into `receive` on every rank. If `send` is `None`, the operation is in place, and `receive`
    /// has the operand (MPI 5.0, section 6.9.6).
    pub fn allreduce(
        &self,
        send: Option<Buffer>,
        receive: Buffer,
        op: Rc<dyn ElementReduction>,
    ) -> impl CollectiveOperation + use<F> {
        let (link, bridge) = self.links();
        let state = self.state.clone();
        let choice = self.choose_reduction(CollectiveKind::Allreduce, Some(&receive), &*op);
        async move {
            if let Some(bridge) = bridge {
                let sides = Sides { local: link, bridge };
                let send = send.unwrap_or_else(|| receive.clone());
                let reduce = async move { inter::allreduce(sides, send, receive, &*op).await };
                return Box::pin(reduce).await;
            }
            let link = link.carried(choice);
            let pool = link.endpoint.staging();
            let input = send.as_ref().unwrap_or(&receive).readable(pool);
            let output = receive.writable(pool);
            let element = receive.ty().size();
            let buffers = ReductionBuffers { data: input.sge, result: output.sge, element };
            run::allreduce(&link, &state, choice, buffers, &*op).await?;
            output.unpack(&receive, receive.len());
            Ok(())
        }
    }

    /// Scans, inclusively or exclusively (MPI_Exscan).
    pub fn scan(
        &self,
        send: Option<Buffer>,
        receive: Buffer,
        op: Rc<dyn ElementReduction>,
        exclusive: bool,
    ) -> impl CollectiveOperation + use<F> {
        let link = self.link();
        let state = self.state.clone();
        let operation = if exclusive { CollectiveKind::Exscan } else { CollectiveKind::Scan };
        let choice = self.choose_reduction(operation, Some(&receive), &*op);
        async move {
            let link = link.carried(choice);
            let pool = link.endpoint.staging();
            let input = send.as_ref().unwrap_or(&receive).readable(pool);
            let output = receive.writable(pool);
            let element = receive.ty().size();
            let buffers = ReductionBuffers { data: input.sge, result: output.sge, element };
            if exclusive {
                run::exscan(&link, &state, choice, buffers, &*op).await?;
                if link.rank > 0 {
                    output.unpack(&receive, receive.len());
                }
            } else {
                run::scan(&link, &state, choice, buffers, &*op).await?;
                output.unpack(&receive, receive.len());
            }
            Ok(())
        }
    }

    /// Gathers to the root. `send` is `None` at a root that gathers in place. `blocks` is given at the root, by rank.
    pub fn gather(
        &self,
        send: Option<Buffer>,
        blocks: RankBuffers,
        root: Root,
        lengths: Lengths,
    ) -> impl CollectiveOperation + use<F> {
        let (link, bridge) = self.links();
        let state = self.state.clone();
        let own = blocks.get(self.rank());
        let choice = match lengths {
            Lengths::Equal => {
                let mine = send.as_ref().or(own.as_ref());
                self.choose(CollectiveKind::Gather, CallKey::of(mine.map_or(0, Buffer::len)))
            }
            Lengths::Varying => self.choose(CollectiveKind::Gatherv, CallKey::of(0)),
        };
        async move {
            if let Some(bridge) = bridge {
                return Box::pin(inter::gather(bridge, send, blocks, root)).await;
            }
            let root = in_group(root);
            let link = link.carried(choice);
            let me = link.rank;
            if me != root {
                let mine = send.as_ref().map(|b| b.readable(link.endpoint.staging()));
                let mine = mine.as_ref().map_or(Sge::EMPTY, |p| p.sge);
                return Ok(run::gather(&link, &state, choice, root, mine, &[]).await?);
            }
            if let (Some(send), Some(own)) = (&send, &own) {
                copy_local(&link, send, own);
            }
            let pieces = blocks.writable(link.endpoint.staging());
            let sges = &pieces.sges;
            run::gather(&link, &state, choice, root, sges[me], sges).await?;
            pieces.unpack_except(me);
            Ok(())
        }
    }

    /// Scatters from the root. `blocks` is given at the root, by rank. `receive` is `None` at a root that scatters in place.
    pub fn scatter(
        &self,
        blocks: RankBuffers,
        receive: Option<Buffer>,
        root: Root,
        lengths: Lengths,
    ) -> impl CollectiveOperation + use<F> {
        let (link, bridge) = self.links();
        let state = self.state.clone();
        let own = blocks.get(self.rank());
        let choice = match lengths {
            Lengths::Equal => {
                let mine = receive.as_ref().or(own.as_ref());
                self.choose(CollectiveKind::Scatter, CallKey::of(mine.map_or(0, Buffer::len)))
            }
            Lengths::Varying => self.choose(CollectiveKind::Scatterv, CallKey::of(0)),
        };
        async move {
            if let Some(bridge) = bridge {
                return Box::pin(inter::scatter(bridge, blocks, receive, root)).await;
            }
            let root = in_group(root);
            let link = link.carried(choice);
            let me = link.rank;
            if me != root {
                let Some(receive) = receive else { return Ok(()) };
                let piece = receive.writable(link.endpoint.staging());
                run::scatter(&link, &state, choice, root, &[], piece.sge).await?;
                piece.unpack(&receive, receive.len());
                return Ok(());
            }
            if let (Some(receive), Some(own)) = (&receive, &own) {
                copy_local(&link, own, receive);
            }
            let pieces = blocks.readable(link.endpoint.staging());
            let sges = &pieces.sges;
            run::scatter(&link, &state, choice, root, sges, sges[me]).await?;
            Ok(())
        }
    }

    /// Gathers to all ranks. `blocks`: the receive buffers by rank. This rank's own block holds its data if `send` is `None`.
    pub fn allgather(
        &self,
        send: Option<Buffer>,
        blocks: RankBuffers,
    ) -> impl CollectiveOperation + use<F> {
        let (link, bridge) = self.links();
        let state = self.state.clone();
        let (all, equal) = blocks.bytes();
        let asked = CallKey { equal, ..CallKey::of(all / blocks.count()) };
        let choice = self.choose(CollectiveKind::Allgather, asked);
        async move {
            if let Some(bridge) = bridge {
                let send = send.expect("in place is for one group");
                return Box::pin(inter::allgather(bridge, send, blocks)).await;
            }
            let link = link.carried(choice);
            let (me, pool) = (link.rank, link.endpoint.staging());
            let input = send.as_ref().map(|send| send.readable(pool));
            let own = blocks.get(me);
            let pieces = blocks.writable(pool);
            let mut mine = pieces.sges[me];
            match (&input, &own) {
                // The algorithm moves the own block to its place.
                (Some(input), _) if !pieces.is_apart(me) && input.sge.len() == mine.len() => {
                    mine = input.sge;
                }
                (Some(input), Some(own)) => {
                    own.unpack_from(input.sge);
                    pieces.pack(me);
                }
                _ => pieces.pack(me),
            }
            run::allgather(&link, &state, choice, mine, &pieces.sges).await?;
            pieces.unpack_except(me);
            Ok(())
        }
    }

    /// Exchanges blocks between all ranks. `send`: by rank, or `None` in place (then the data to send lie in `receive`). `receive`:
    /// by rank.
    pub fn alltoall(
        &self,
        send: Option<RankBuffers>,
        receive: RankBuffers,
        lengths: Lengths,
    ) -> impl CollectiveOperation + use<F> {
        let (link, bridge) = self.links();
        let state = self.state.clone();
        let choice = match lengths {
            Lengths::Equal => {
                let each = receive.bytes().0 / receive.count();
                self.choose(CollectiveKind::Alltoall, CallKey::of(each))
            }
            Lengths::Varying => self.choose(CollectiveKind::Alltoallv, CallKey::of(0)),
        };
        async move {
            if let Some(bridge) = bridge {
                let send = send.expect("in place is for one group");
                return Box::pin(inter::alltoall(bridge, send, receive)).await;
            }
            let link = link.carried(choice);
            let pool = link.endpoint.staging();
            let mut out = match send {
                Some(send) => send.readable(pool),
                None => RankPieces::aside(receive.clone(), pool),
            };
            let mut into = receive.writable(pool);
            // The own block may have different types on the two sides.
            let (from, to) = (&mut out.sges[link.rank], &mut into.sges[link.rank]);
            let own = from.len().min(to.len());
            (*from, *to) = (from.part(0, own), to.part(0, own));
            run::alltoall(&link, &state, choice, &out.sges, &into.sges).await?;
            into.unpack();
            Ok(())
        }
    }

    /// Reduces, then scatters `counts[rank]` elements to each rank. `send` holds the elements for all ranks, `receive` gets those
    /// of this rank.
    pub fn reduce_scatter<C: AsRef<[usize]> + 'static>(
        &self,
        send: Buffer,
        counts: C,
        receive: Buffer,
        op: Rc<dyn ElementReduction>,
    ) -> impl CollectiveOperation + use<F, C> {
        let (link, bridge) = self.links();
        let state = self.state.clone();
        let equal = counts.as_ref().windows(2).all(|two| two[0] == two[1]);
        let element = send.ty().size();
        let asked = CallKey { bytes: send.len(), element, commutes: op.commutes(), equal };
        let choice = self.choose(CollectiveKind::ReduceScatter, asked);
        async move {
            if let Some(bridge) = bridge {
                let sides = Sides { local: link, bridge };
                let reduce = async move {
                    inter::reduce_scatter(sides, send, counts.as_ref(), receive, &*op).await
                };
                return Box::pin(reduce).await;
            }
            let link = link.carried(choice);
            let input = send.readable(link.endpoint.staging());
            let lens: SmallVec<[usize; 8]> =
                counts.as_ref().iter().map(|count| count * element).collect();
            let piece = receive.writable(link.endpoint.staging());
            let (data, result) = (input.sge, piece.sge);
            let buffers = ReduceScatterBuffers { data, lens: &lens, result, element };
            run::reduce_scatter(&link, &state, choice, buffers, &*op).await?;
            piece.unpack(&receive, receive.len());
            Ok(())
        }
    }
}
