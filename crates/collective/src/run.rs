//! Dispatch to the algorithm that was chosen: one method per operation.
//!
//! Choices come from the catalogue, so a method that the catalogue does not list for an operation never arrives here.

mod agreement;
mod steps;

use crate::algorithm::{Algorithm, AlgorithmChoice, Carrier, Method};
use crate::{
    BlockList, CollectiveState, CommView, ElementReduction, Largest, Packed, Prefix,
    ReduceScatterBuffers, ReductionBuffers, allgather, allreduce, alltoall, barrier, bcast, gather,
    reduce, reduce_scatter, scan, scatter, two_level,
};
use weft_channel::multicast::ReleaseMode;
use weft_fabric::{Fabric, Fault, Sge};

/// Panics, because the catalogue lists a choice for which no function exists.
fn unlisted(choice: AlgorithmChoice) -> ! {
    let Algorithm { operation, name, .. } = choice.algorithm;
    unreachable!("{name} is in the catalogue of {operation} but nothing runs it")
}

/// Returns how the root of RGM learns that all ranks have received the root's multicast.
fn multicast_ends(method: Method) -> ReleaseMode {
    match method {
        Method::GatherMulticastAcknowledged => ReleaseMode::EachAcknowledged,
        _ => ReleaseMode::Heard,
    }
}

/// Returns true if RDMA writes into notify buffers carry the algorithm. Such an algorithm returns false if it finds no notify
/// buffers. Messages then carry the operation.
fn writes(choice: AlgorithmChoice) -> bool {
    matches!(choice.algorithm.carrier, Carrier::Writes | Carrier::Immediates)
}

/// Runs SHM-LINES without work between. Returns false if some rank has no memory.
async fn lines<F: Fabric>(
    link: &CommView<F>,
    state: &CollectiveState<F>,
    buffers: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<bool, Fault> {
    let result = buffers.result;
    let between = async |sum: Sge| {
        result.copy_from(sum);
        Ok(())
    };
    allreduce::shm_lines(link, &state.area, buffers, op, between).await
}

/// Call of an operation, on one rank.
pub struct CollectiveCall<'c, F: Fabric> {
    /// View that carries the call.
    pub link: &'c CommView<F>,
    /// State of the communicator.
    pub state: &'c CollectiveState<F>,
    /// The chosen algorithm, which is the same on all ranks.
    pub choice: AlgorithmChoice,
}

/// Binds the fields of a call. If several operations may be under way at once, an operation that uses shared memory waits for its
/// turn.
macro_rules! in_order {
    ($call:ident => $link:ident, $state:ident, $choice:ident) => {
        let CollectiveCall { link: $link, state: $state, choice: $choice } = $call;
        let _turn = match $state.area.order($choice) {
            Some(order) => Some(order.enter($link).await?),
            None => None,
        };
    };
}

impl<F: Fabric> CollectiveCall<'_, F> {
    /// Runs a barrier, which ends on no rank before all ranks have arrived.
    pub async fn barrier(self) -> Result<(), Fault> {
        in_order!(self => link, state, choice);
        let fan_in = choice.parameter;
        match choice.algorithm.method {
            Method::Central => barrier::central(link, &state.area).await,
            Method::PairwiseExchange if writes(choice) && barrier::rpe(link, state).await? => {
                Ok(())
            }
            Method::Dissemination if writes(choice) && barrier::rds(link, state).await? => Ok(()),
            method @ (Method::GatherMulticast | Method::GatherMulticastAcknowledged)
                if barrier::rgm(link, state, fan_in, multicast_ends(method)).await? =>
            {
                Ok(())
            }
            Method::FetchAdd if barrier::fetch_add(link, state, fan_in).await? => Ok(()),
            Method::PairwiseExchange => barrier::pairwise_exchange(link).await,
            Method::Dissemination
            | Method::GatherMulticast
            | Method::GatherMulticastAcknowledged
            | Method::FetchAdd => barrier::dissemination(link).await,
            Method::Lines => {
                let nothing = ReductionBuffers { data: Sge::EMPTY, result: Sge::EMPTY, element: 1 };
                match self::lines(link, state, nothing, &Largest).await? {
                    true => Ok(()),
                    false => barrier::dissemination(link).await,
                }
            }
            Method::NWay => barrier::n_way_dissemination(link, choice.parameter).await,
            Method::TwoLevel | Method::Levels => two_level::barrier(link, state).await,
            _ => unlisted(choice),
        }
    }

    /// Broadcasts `data` of `root` to `data` of all other ranks; all buffers have the same length.
    pub async fn bcast(self, root: usize, data: Sge) -> Result<(), Fault> {
        in_order!(self => link, state, choice);
        let parameter = choice.parameter;
        match choice.algorithm.method {
            Method::Flat => bcast::flat(link, root, data).await,
            Method::Binomial => bcast::binomial(link, root, data).await,
            Method::KNomial => bcast::k_nomial(link, root, data, parameter).await,
            Method::Binary => bcast::binary(link, root, data, parameter).await,
            Method::SplitBinary => bcast::split_binary(link, root, data, parameter).await,
            Method::Chain => bcast::chain(link, root, data, parameter).await,
            Method::ScatterAllgather => bcast::scatter_allgather(link, root, data).await,
            Method::ScatterDoubling => bcast::scatter_doubling(link, root, data).await,
            Method::Circulant => bcast::circulant(link, root, data, parameter).await,
            Method::GatherMulticast => bcast::multicast(link, state, root, data, parameter).await,
            Method::StagingRing => bcast::shm_ring(link, &state.area, root, data).await,
            Method::LevelPipeline => {
                let carrier = state.segment_carrier(link);
                bcast::level_pipeline(link, &state.trees, root, data, parameter, carrier).await
            }
            Method::TwoLevel | Method::Levels => two_level::bcast(link, state, root, data).await,
            _ => unlisted(choice),
        }
    }

    /// Gathers `mine` of each rank in `blocks` of the root.
    pub async fn gather(self, root: usize, mine: Sge, blocks: &[Sge]) -> Result<(), Fault> {
        in_order!(self => link, state, choice);
        use crate::CollectiveKind::Gatherv;
        match (choice.algorithm.method, choice.algorithm.operation) {
            (Method::Flat, _) => gather::flat(link, root, mine, blocks).await,
            (Method::Binomial, Gatherv) => gather::binomial_unequal(link, root, mine, blocks).await,
            (Method::Binomial, _) => gather::binomial(link, root, mine, blocks).await,
            (Method::StagingRing, _) => {
                gather::shm_ring(link, &state.area, root, mine, blocks).await
            }
            (Method::Allgather, _) => {
                gather::through_allgather(link, state, root, mine, blocks).await
            }
            (Method::TwoLevel | Method::Levels, _) => {
                two_level::gather(link, state, root, mine, blocks).await
            }
            _ => unlisted(choice),
        }
    }

    /// Scatters `blocks` of the root to `mine` of each rank.
    pub async fn scatter(self, root: usize, blocks: &[Sge], mine: Sge) -> Result<(), Fault> {
        in_order!(self => link, state, choice);
        use crate::CollectiveKind::Scatterv;
        match (choice.algorithm.method, choice.algorithm.operation) {
            (Method::Flat, _) => scatter::flat(link, root, blocks, mine).await,
            (Method::Binomial, Scatterv) => {
                scatter::binomial_unequal(link, root, blocks, mine).await
            }
            (Method::Binomial, _) => scatter::binomial(link, root, blocks, mine).await,
            (Method::StagingRing, _) => {
                scatter::shm_ring(link, &state.area, root, blocks, mine).await
            }
            (Method::TwoLevel | Method::Levels, _) => {
                two_level::scatter(link, state, root, blocks, mine).await
            }
            _ => unlisted(choice),
        }
    }

    /// Gathers `mine` of each rank in `blocks[rank]` of all ranks, including the rank itself. `mine` may be the rank's own block.
    pub async fn allgather(self, mine: Sge, blocks: &[Sge]) -> Result<(), Fault> {
        in_order!(self => link, state, choice);
        let area = &state.area;
        let memory = choice.algorithm.carrier == Carrier::Memory;
        match choice.algorithm.method {
            Method::Swap => return allgather::shm_swap(link, area, mine, blocks).await,
            Method::Read if memory && allgather::shm_read(link, area, mine, blocks).await? => {
                return Ok(());
            }
            Method::Staged | Method::Read if memory => {
                return allgather::shm_staged(link, area, mine, blocks).await;
            }
            _ => {}
        }
        if mine.ptr() != blocks[link.rank].ptr() {
            blocks[link.rank].copy_from(mine);
        }
        match choice.algorithm.method {
            Method::Read if allgather::read(link, blocks, choice.parameter).await? => return Ok(()),
            Method::Ring | Method::Read => return allgather::ring(link, blocks).await,
            Method::TwoLevel | Method::Levels => {
                return two_level::allgather(link, state, blocks).await;
            }
            Method::GatherMulticast => return allgather::multicast(link, state, blocks).await,
            Method::Dissemination
                if allgather::rds(link, state, blocks, choice.parameter).await? =>
            {
                return Ok(());
            }
            _ => {}
        }
        // The other algorithms send neighbouring blocks as one message.
        let packed = match Sge::join(blocks) {
            Some(whole) => Err(BlockList::of(whole, blocks.iter().map(|b| b.len()))),
            None => Ok(Packed::own(link, blocks)),
        };
        let cut = packed.as_ref().map_or_else(|blocks| blocks, |packed| &packed.blocks);
        match choice.algorithm.method {
            Method::Bruck | Method::Dissemination => allgather::bruck(link, cut).await?,
            Method::Circulant => allgather::circulant(link, cut).await?,
            Method::RecursiveDoubling => allgather::recursive_doubling(link, cut).await?,
            Method::Neighbors => allgather::neighbor_exchange(link, cut).await?,
            Method::GatherBroadcast => allgather::gather_broadcast(link, cut).await?,
            _ => unlisted(choice),
        }
        if let Ok(packed) = packed {
            packed.deliver(link, blocks);
        }
        Ok(())
    }

    /// Sends `out[r]` to rank r, and receives `into[r]` from rank r.
    pub async fn alltoall(self, out: &[Sge], into: &[Sge]) -> Result<(), Fault> {
        in_order!(self => link, state, choice);
        let (parameter, area) = (choice.parameter, &state.area);
        let memory = choice.algorithm.carrier == Carrier::Memory;
        match choice.algorithm.method {
            Method::Swap => alltoall::shm_swap(link, area, out, into).await,
            Method::Read if memory && alltoall::shm_read(link, area, out, into).await? => Ok(()),
            Method::Staged | Method::Read if memory => {
                alltoall::shm_staged(link, area, out, into).await
            }
            Method::Read if alltoall::read(link, out, into, parameter).await? => Ok(()),
            Method::Pairwise | Method::Read => alltoall::pairwise(link, out, into).await,
            Method::Linear => alltoall::linear(link, out, into, parameter).await,
            Method::Dissemination if alltoall::rds(link, state, out, into, parameter).await? => {
                Ok(())
            }
            Method::Bruck | Method::Dissemination => {
                alltoall::bruck(link, out, into, parameter).await
            }
            Method::TwoLevel | Method::Levels => two_level::alltoall(link, state, out, into).await,
            _ => unlisted(choice),
        }
    }

    /// Reduces `data` of all ranks to `result` of the root.
    pub async fn reduce(
        self,
        root: usize,
        buffers: ReductionBuffers,
        op: &dyn ElementReduction,
    ) -> Result<(), Fault> {
        in_order!(self => link, state, choice);
        let (parameter, area) = (choice.parameter, &state.area);
        match choice.algorithm.method {
            Method::Binomial => reduce::binomial(link, root, buffers, op).await,
            Method::KNomial => reduce::k_nomial(link, root, buffers, op, parameter).await,
            Method::Chain => {
                let segment = parameter.max(buffers.element);
                reduce::chain(link, root, buffers, op, segment).await
            }
            Method::Rabenseifner => reduce::scatter_gather(link, root, buffers, op).await,
            Method::LevelPipeline => {
                reduce::level_pipeline(link, &state.trees, root, buffers, op, parameter).await
            }
            Method::Flat => reduce::flat(link, root, buffers, op).await,
            Method::Pair => reduce::shm_pair(link, area, root, buffers, op).await,
            Method::Read if allreduce::shm_read(link, area, buffers, Some(root), op).await? => {
                Ok(())
            }
            Method::ReadWhole if reduce::shm_read_whole(link, area, root, buffers, op).await? => {
                Ok(())
            }
            Method::Slices | Method::Read | Method::ReadWhole => {
                allreduce::shm_slices(link, area, buffers, Some(root), op).await
            }
            Method::TwoLevel | Method::Levels => {
                two_level::reduce(link, state, root, buffers, op).await
            }
            _ => unlisted(choice),
        }
    }

    /// Reduces `data` of all ranks to `result` of all ranks.
    pub async fn allreduce(
        self,
        buffers: ReductionBuffers,
        op: &dyn ElementReduction,
    ) -> Result<(), Fault> {
        in_order!(self => link, state, choice);
        let (parameter, area) = (choice.parameter, &state.area);
        match choice.algorithm.method {
            Method::Central => allreduce::central(link, area, buffers, op).await,
            Method::PairwiseExchange
                if writes(choice) && allreduce::rpe(link, state, buffers, op).await? =>
            {
                Ok(())
            }
            method @ (Method::GatherMulticast | Method::GatherMulticastAcknowledged)
                if allreduce::rgm(link, state, buffers, op, parameter, multicast_ends(method))
                    .await? =>
            {
                Ok(())
            }
            Method::PairwiseExchange => allreduce::pairwise_exchange(link, buffers, op).await,
            Method::GatherBroadcast
            | Method::GatherMulticast
            | Method::GatherMulticastAcknowledged => {
                allreduce::gather_broadcast(link, buffers, op).await
            }
            Method::KNomial => allreduce::k_nomial(link, buffers, op, parameter).await,
            Method::Rabenseifner => allreduce::rabenseifner(link, buffers, op).await,
            Method::Ring => allreduce::ring(link, buffers, op).await,
            Method::Circulant => allreduce::circulant(link, buffers, op).await,
            Method::Swing => allreduce::swing(link, buffers, op).await,
            Method::ReduceBroadcast => allreduce::reduce_broadcast(link, state, buffers, op).await,
            Method::Lines if self::lines(link, state, buffers, op).await? => Ok(()),
            Method::Lines => allreduce::gather_broadcast(link, buffers, op).await,
            Method::Last => allreduce::shm_last(link, area, buffers, op).await,
            Method::Pair => allreduce::shm_pair(link, area, buffers, op).await,
            Method::Read if allreduce::shm_read(link, area, buffers, None, op).await? => Ok(()),
            Method::ReadStaged if allreduce::shm_read_staged(link, area, buffers, op).await? => {
                Ok(())
            }
            Method::ReadWhole if allreduce::shm_read_whole(link, area, buffers, 0, op).await? => {
                Ok(())
            }
            Method::Slices | Method::Read | Method::ReadStaged | Method::ReadWhole => {
                allreduce::shm_slices(link, area, buffers, None, op).await
            }
            Method::TwoLevel | Method::Levels => {
                two_level::allreduce(link, state, buffers, op).await
            }
            Method::LevelPipeline => {
                let (trees, carrier) = (&state.trees, state.segment_carrier(link));
                allreduce::level_pipeline(link, trees, buffers, op, parameter, carrier).await
            }
            Method::LevelSlices => two_level::allreduce_slices(link, state, buffers, op).await,
            _ => unlisted(choice),
        }
    }

    /// Reduces `data` of all ranks. The first `lens[0]` bytes go to `result` of rank 0, the next `lens[1]` to `result` of
    /// rank 1, and so on.
    pub async fn reduce_scatter(
        self,
        buffers: ReduceScatterBuffers<'_>,
        op: &dyn ElementReduction,
    ) -> Result<(), Fault> {
        in_order!(self => link, state, choice);
        let area = &state.area;
        match choice.algorithm.method {
            Method::Swap => return reduce_scatter::shm_swap(link, area, buffers, op).await,
            Method::Read if reduce_scatter::shm_read(link, area, buffers, op).await? => {
                return Ok(());
            }
            Method::Staged | Method::Read => {
                return reduce_scatter::shm_staged(link, area, buffers, op).await;
            }
            Method::ReduceScatterv => {
                return reduce_scatter::reduce_scatterv(link, buffers, op).await;
            }
            Method::TwoLevel | Method::Levels => {
                return two_level::reduce_scatter(link, state, buffers, op).await;
            }
            _ => {}
        }
        let ReduceScatterBuffers { data, lens, result, .. } = buffers;
        let data = BlockList::of(data, lens.iter().copied());
        match choice.algorithm.method {
            Method::Pairwise => reduce_scatter::pairwise(link, &data, result, op).await,
            Method::Ring => reduce_scatter::ring(link, &data, result, op).await,
            Method::Circulant => reduce_scatter::circulant(link, &data, result, op).await,
            Method::Halving => reduce_scatter::recursive_halving(link, &data, result, op).await,
            _ => unlisted(choice),
        }
    }

    /// Combines `data` of the ranks of `prefix`, in their order, into `result` of each rank.
    pub async fn scan(
        self,
        prefix: Prefix,
        buffers: ReductionBuffers,
        op: &dyn ElementReduction,
    ) -> Result<(), Fault> {
        in_order!(self => link, state, choice);
        let area = &state.area;
        match choice.algorithm.method {
            Method::Chain => scan::chain(link, buffers, op, prefix).await,
            Method::RecursiveDoubling => scan::recursive_doubling(link, buffers, op, prefix).await,
            Method::Staged => scan::shm_staged(link, area, buffers, op, prefix).await,
            Method::Read if scan::shm_read(link, area, buffers, op, prefix).await? => Ok(()),
            Method::Slices | Method::Read => {
                scan::shm_slices(link, area, buffers, op, prefix).await
            }
            Method::TwoLevel | Method::Levels => {
                two_level::scan(link, state, prefix, buffers, op).await
            }
            _ => unlisted(choice),
        }
    }
}
