//! Collective operations of a communicator: datatypes around [`weft_collective`].
//!
//! Each method returns the operation as a future that owns everything that it needs. A blocking call runs the future in place, a
//! nonblocking call gives the future to [`crate::Engine::spawn`], and a persistent operation makes a new future at each start.
//! Buffers are given by rank if they differ by rank. `None` for the send buffer means in place. In an intercommunicator, ranks are
//! ranks of the other group, and no buffer is in place.

use crate::rank_buffers::{RankBuffers, RankPieces};
use crate::{Buffer, Comm, Error, WaitHooks, inter};
use Scope::{Between, Within};
use smallvec::SmallVec;
use std::rc::Rc;
use weft_collective::algorithm_trials::AlgorithmTrials;
use weft_collective::inter::{Root, Sides, direct, leaders};
use weft_collective::run::CollectiveCall;
use weft_collective::{
    AlgorithmChoice, CallKey, CollectiveKind, CollectiveState, CommView, ElementReduction, Prefix,
    ReduceScatterBuffers, ReductionBuffers,
};
use weft_fabric::{Fabric, Fault, Sge, StagingPool};

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

/// Lengths of an operation's blocks, as far as the ranks know these lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lengths {
    /// All blocks have the same length. All ranks know this length, so the choice of the algorithm may depend on it.
    Equal,
    /// Blocks have different lengths, as in the `v` forms of MPI. Most ranks know only some of the lengths.
    Varying,
}

/// An operation within one group, and the algorithm of the operation. The value owns everything that the operation needs.
struct GroupCall<F: Fabric> {
    link: CommView<F>,
    state: Rc<CollectiveState<F>>,
    choice: AlgorithmChoice,
}

impl<F: Fabric> GroupCall<F> {
    fn call(&self) -> CollectiveCall<'_, F> {
        CollectiveCall { link: &self.link, state: &self.state, choice: self.choice }
    }
}

/// Processes that take part in an operation.
enum Scope<F: Fabric> {
    /// The group of an intracommunicator.
    Within(GroupCall<F>),
    /// Both groups of an intercommunicator.
    Between(Sides<F>),
}

impl<F: Fabric> Scope<F> {
    fn pool(&self) -> &StagingPool {
        match self {
            Within(group) => group.link.endpoint.staging(),
            Between(sides) => sides.local.endpoint.staging(),
        }
    }
}

/// Returns the key of a reduction of the data of `buffer`.
fn reduction_key(buffer: Option<&Buffer>, op: &dyn ElementReduction) -> CallKey {
    let (bytes, element) = buffer.map_or((0, 1), |b| (b.len(), b.ty().size()));
    let order = op.order();
    CallKey { element, commutes: order.commutes(), order, ..CallKey::of(bytes) }
}

impl<F: Fabric> Comm<F> {
    /// Begins an operation of only this group.
    fn begin_in_group(&self, operation: CollectiveKind, asked: CallKey) -> GroupCall<F> {
        let link = self.link();
        let choice = self.choose(operation, asked);
        GroupCall { link: link.carried(choice), state: self.state.clone(), choice }
    }

    fn begin(&self, operation: CollectiveKind, asked: CallKey) -> Scope<F> {
        let (link, bridge) = self.links();
        let choice = self.choose(operation, asked);
        match bridge {
            Some(bridge) => Between(Sides { local: link, bridge }),
            None => {
                Within(GroupCall { link: link.carried(choice), state: self.state.clone(), choice })
            }
        }
    }

    /// Begins the operation `equal` if all blocks have the same length, which `bytes` returns. Otherwise begins the operation
    /// `varying`.
    fn begin_blocks(
        &self,
        lengths: Lengths,
        [equal, varying]: [CollectiveKind; 2],
        bytes: impl FnOnce() -> usize,
    ) -> Scope<F> {
        match lengths {
            Lengths::Equal => self.begin(equal, CallKey::of(bytes())),
            Lengths::Varying => self.begin(varying, CallKey::of(0)),
        }
    }

    /// Runs an operation of this group until it is complete. Until then, the caller keeps the memory of the operation. All ranks
    /// must ask for the same operation.
    #[inline]
    pub fn run_in_place(
        &self,
        outside: &dyn WaitHooks,
        operation: CollectiveKind,
        asked: CallKey,
        run: impl AsyncFnOnce(CollectiveCall<'_, F>) -> Result<(), Fault>,
    ) -> Result<(), Error> {
        let link = self.link();
        let choice = self.choose(operation, asked);
        let link = link.carried(choice);
        let call = CollectiveCall { link: &link, state: &self.state, choice };
        if self.state.trials().is_some_and(AlgorithmTrials::has_due) {
            return self.run_tried(outside, call, run);
        }
        let running = std::pin::pin!(run(call));
        Ok(self.engine.block_on(outside, running)?)
    }

    /// Runs an operation like [`Comm::run_in_place`], in a call with a task of the trials.
    #[inline(never)]
    fn run_tried<'c>(
        &self,
        outside: &dyn WaitHooks,
        call: CollectiveCall<'c, F>,
        run: impl AsyncFnOnce(CollectiveCall<'c, F>) -> Result<(), Fault>,
    ) -> Result<(), Error> {
        let running = std::pin::pin!(async {
            let _watch = call.begin_trial().await?;
            run(call).await
        });
        Ok(self.engine.block_on(outside, running)?)
    }

    /// Synchronizes all ranks: a rank leaves the barrier only after all ranks have started the barrier (MPI 5.0, section 6.3).
    /// Between two groups, a rank leaves the barrier only after all ranks of the other group have started the barrier.
    pub fn barrier(&self) -> impl CollectiveOperation + use<F> {
        let scope = self.begin(CollectiveKind::Barrier, CallKey::of(0));
        async move {
            match &scope {
                Within(group) => group.call().barrier().await?,
                Between(sides) => Box::pin(leaders::barrier(sides)).await?,
            }
            Ok(())
        }
    }

    /// Sends `buffer` of the root to the buffers of all other ranks, which must have room for the same number of bytes (MPI 5.0,
    /// section 6.4).
    pub fn bcast(&self, buffer: Buffer, root: Root) -> impl CollectiveOperation + use<F> {
        let scope = self.begin(CollectiveKind::Bcast, CallKey::of(buffer.len()));
        async move {
            let at_root = match (&scope, root) {
                (Within(group), root) => group.link.rank == in_group(root),
                (_, Root::NotInvolved) => return Ok(()),
                (_, root) => root == Root::ThisProcess,
            };
            let pool = scope.pool();
            let piece = if at_root { buffer.readable(pool) } else { buffer.writable(pool) };
            match &scope {
                Within(group) => {
                    let _watch = group.call().begin_trial().await?;
                    group.call().bcast(in_group(root), piece.sge).await?
                }
                Between(sides) => Box::pin(leaders::broadcast(sides, root, piece.sge)).await?,
            }
            if !at_root {
                piece.unpack(&buffer, buffer.len());
            }
            Ok(())
        }
    }

    /// Reduces to the root. `send` is `None` at a root that reduces in place. `receive` is `None` on ranks other than the root.
    pub fn reduce(
        &self,
        send: Option<Buffer>,
        receive: Option<Buffer>,
        root: Root,
        op: Rc<dyn ElementReduction>,
    ) -> impl CollectiveOperation + use<F> {
        let asked = reduction_key(send.as_ref().or(receive.as_ref()), &*op);
        let scope = self.begin(CollectiveKind::Reduce, asked);
        async move {
            let pool = scope.pool();
            let element = send.as_ref().or(receive.as_ref()).map_or(1, |b| b.ty().size());
            // In an intercommunicator, the root has no operand, and its receive buffer need not be readable.
            let operand = match &scope {
                Within(_) => send.as_ref().or(receive.as_ref()),
                Between(_) => send.as_ref(),
            };
            let input = operand.map(|b| b.readable(pool));
            let data = input.as_ref().map_or(Sge::EMPTY, |p| p.sge);
            let output = receive.as_ref().map(|b| b.writable(pool));
            let result = output.as_ref().map_or(Sge::EMPTY, |p| p.sge);
            let buffers = ReductionBuffers { data, result, element };
            let takes = match &scope {
                Within(group) => {
                    let _watch = group.call().begin_trial().await?;
                    group.call().reduce(in_group(root), buffers, &*op).await?;
                    group.link.rank == in_group(root)
                }
                Between(sides) => {
                    Box::pin(leaders::reduce(sides, root, buffers, &*op)).await?;
                    root == Root::ThisProcess
                }
            };
            if let (Some(piece), Some(buffer), true) = (output, &receive, takes) {
                piece.unpack(buffer, buffer.len());
            }
            Ok(())
        }
    }

    /// Combines the `send` buffers of all ranks into `receive` on every rank. If `send` is `None`, the operation is in place, and
    /// `receive` has the operand (MPI 5.0, section 6.9.6).
    pub fn allreduce(
        &self,
        send: Option<Buffer>,
        receive: Buffer,
        op: Rc<dyn ElementReduction>,
    ) -> impl CollectiveOperation + use<F> {
        let scope = self.begin(CollectiveKind::Allreduce, reduction_key(Some(&receive), &*op));
        async move {
            let pool = scope.pool();
            let input = send.as_ref().unwrap_or(&receive).readable(pool);
            let output = receive.writable(pool);
            let element = receive.ty().size();
            let buffers = ReductionBuffers { data: input.sge, result: output.sge, element };
            match &scope {
                Within(group) => {
                    let _watch = group.call().begin_trial().await?;
                    group.call().allreduce(buffers, &*op).await?
                }
                Between(sides) => Box::pin(leaders::allreduce(sides, buffers, &*op)).await?,
            }
            output.unpack(&receive, receive.len());
            Ok(())
        }
    }

    /// Scans, inclusively (MPI_Scan) or exclusively (MPI_Exscan).
    pub fn scan(
        &self,
        send: Option<Buffer>,
        receive: Buffer,
        op: Rc<dyn ElementReduction>,
        prefix: Prefix,
    ) -> impl CollectiveOperation + use<F> {
        let asked = reduction_key(Some(&receive), &*op);
        let group = self.begin_in_group(prefix.operation(), asked);
        async move {
            let pool = group.link.endpoint.staging();
            let input = send.as_ref().unwrap_or(&receive).readable(pool);
            let output = receive.writable(pool);
            let element = receive.ty().size();
            let buffers = ReductionBuffers { data: input.sge, result: output.sge, element };
            group.call().scan(prefix, buffers, &*op).await?;
            // Rank 0 has no result of an exclusive scan.
            if prefix == Prefix::Inclusive || group.link.rank > 0 {
                output.unpack(&receive, receive.len());
            }
            Ok(())
        }
    }

    /// Gathers to the root. `send` is `None` at a root that gathers in place. `blocks` has a buffer for each rank at the root, and
    /// is empty on other ranks.
    pub fn gather(
        &self,
        send: Option<Buffer>,
        blocks: RankBuffers,
        root: Root,
        lengths: Lengths,
    ) -> impl CollectiveOperation + use<F> {
        let own = blocks.get(self.rank());
        let forms = [CollectiveKind::Gather, CollectiveKind::Gatherv];
        let scope = self
            .begin_blocks(lengths, forms, || send.as_ref().or(own.as_ref()).map_or(0, Buffer::len));
        async move {
            let group = match scope {
                Between(sides) => return Box::pin(inter::gather(sides, send, blocks, root)).await,
                Within(group) => group,
            };
            let (root, link) = (in_group(root), &group.link);
            let me = link.rank;
            let _watch = group.call().begin_trial().await?;
            if me != root {
                let mine = send.as_ref().map(|b| b.readable(link.endpoint.staging()));
                let mine = mine.as_ref().map_or(Sge::EMPTY, |p| p.sge);
                return Ok(group.call().gather(root, mine, &[]).await?);
            }
            if let (Some(send), Some(own)) = (&send, &own) {
                copy_local(link, send, own);
            }
            let pieces = blocks.writable(link.endpoint.staging());
            let sges = &pieces.sges;
            group.call().gather(root, sges[me], sges).await?;
            pieces.unpack_except(me);
            Ok(())
        }
    }

    /// Scatters from the root. `blocks` has a buffer for each rank at the root, and is empty on other ranks. `receive` is `None` at
    /// a root that scatters in place.
    pub fn scatter(
        &self,
        blocks: RankBuffers,
        receive: Option<Buffer>,
        root: Root,
        lengths: Lengths,
    ) -> impl CollectiveOperation + use<F> {
        let own = blocks.get(self.rank());
        let forms = [CollectiveKind::Scatter, CollectiveKind::Scatterv];
        let scope = self.begin_blocks(lengths, forms, || {
            receive.as_ref().or(own.as_ref()).map_or(0, Buffer::len)
        });
        async move {
            let group = match scope {
                Between(sides) => {
                    return Box::pin(inter::scatter(sides, blocks, receive, root)).await;
                }
                Within(group) => group,
            };
            let (root, link) = (in_group(root), &group.link);
            let me = link.rank;
            let _watch = group.call().begin_trial().await?;
            if me != root {
                let Some(receive) = receive else { return Ok(()) };
                let piece = receive.writable(link.endpoint.staging());
                group.call().scatter(root, &[], piece.sge).await?;
                piece.unpack(&receive, receive.len());
                return Ok(());
            }
            if let (Some(receive), Some(own)) = (&receive, &own) {
                copy_local(link, own, receive);
            }
            let pieces = blocks.readable(link.endpoint.staging());
            let sges = &pieces.sges;
            group.call().scatter(root, sges, sges[me]).await?;
            Ok(())
        }
    }

    /// Gathers to all ranks. `blocks`: the receive buffers by rank. If `send` is `None`, this rank's data are already in this
    /// rank's block.
    pub fn allgather(
        &self,
        send: Option<Buffer>,
        blocks: RankBuffers,
    ) -> impl CollectiveOperation + use<F> {
        let (all, equal) = blocks.bytes();
        let asked = CallKey { equal, ..CallKey::of(all / blocks.count()) };
        let scope = self.begin(CollectiveKind::Allgather, asked);
        async move {
            let group = match scope {
                Between(sides) => return Box::pin(inter::allgather(sides, send, blocks)).await,
                Within(group) => group,
            };
            let (me, pool) = (group.link.rank, group.link.endpoint.staging());
            let input = send.as_ref().map(|send| send.readable(pool));
            let own = blocks.get(me);
            let pieces = blocks.writable(pool);
            let mut mine = pieces.sges[me];
            match (&input, &own) {
                // The algorithm moves this rank's data to this rank's block.
                (Some(input), _) if !pieces.is_apart(me) && input.sge.len() == mine.len() => {
                    mine = input.sge;
                }
                (Some(input), Some(own)) => {
                    own.unpack_from(input.sge);
                    pieces.pack(me);
                }
                _ => pieces.pack(me),
            }
            let _watch = group.call().begin_trial().await?;
            group.call().allgather(mine, &pieces.sges).await?;
            pieces.unpack_except(me);
            Ok(())
        }
    }

    /// Exchanges blocks between all ranks. `send` and `receive` have a buffer for each rank. If `send` is `None`, the operation is
    /// in place, and the data to send lie in `receive`.
    pub fn alltoall(
        &self,
        send: Option<RankBuffers>,
        receive: RankBuffers,
        lengths: Lengths,
    ) -> impl CollectiveOperation + use<F> {
        let forms = [CollectiveKind::Alltoall, CollectiveKind::Alltoallv];
        let scope = self.begin_blocks(lengths, forms, || receive.bytes().0 / receive.count());
        async move {
            let pool = scope.pool();
            let mut out = match send {
                Some(send) => send.readable(pool),
                None => RankPieces::aside(receive.clone(), pool),
            };
            let mut into = receive.writable(pool);
            match &scope {
                Within(group) => {
                    // This rank's own block may have one type in `send` and another type in `receive`.
                    let me = group.link.rank;
                    let (from, to) = (&mut out.sges[me], &mut into.sges[me]);
                    let own = from.len().min(to.len());
                    (*from, *to) = (from.part(0, own), to.part(0, own));
                    let _watch = group.call().begin_trial().await?;
                    group.call().alltoall(&out.sges, &into.sges).await?;
                }
                Between(Sides { bridge, .. }) => {
                    Box::pin(direct::exchange(bridge, &out.sges, &into.sges)).await?
                }
            }
            into.unpack();
            Ok(())
        }
    }

    /// Reduces, then scatters `counts[rank]` elements to each rank. `send` holds the elements for all ranks, `receive` gets the
    /// elements of this rank.
    pub fn reduce_scatter<C: AsRef<[usize]> + 'static>(
        &self,
        send: Buffer,
        counts: C,
        receive: Buffer,
        op: Rc<dyn ElementReduction>,
    ) -> impl CollectiveOperation + use<F, C> {
        let equal = counts.as_ref().windows(2).all(|two| two[0] == two[1]);
        let element = send.ty().size();
        let (bytes, order) = (send.len(), op.order());
        let asked = CallKey { bytes, element, commutes: order.commutes(), equal, order };
        let scope = self.begin(CollectiveKind::ReduceScatter, asked);
        async move {
            let pool = scope.pool();
            let input = send.readable(pool);
            let lens: SmallVec<[usize; 8]> =
                counts.as_ref().iter().map(|count| count * element).collect();
            let piece = receive.writable(pool);
            let (data, result) = (input.sge, piece.sge);
            let buffers = ReduceScatterBuffers { data, lens: &lens, result, element };
            match &scope {
                Within(group) => group.call().reduce_scatter(buffers, &*op).await?,
                Between(sides) => Box::pin(leaders::reduce_scatter(sides, buffers, &*op)).await?,
            }
            piece.unpack(&receive, receive.len());
            Ok(())
        }
    }
}
