//! Collective operations. Each algorithm is written once: an `async fn` over a [`CommView`]. A blocking call polls the future of
//! the algorithm in place. A nonblocking call gives the future to the progress engine.
//!
//! Buffers are contiguous bytes; the layer above packs. All ranks must pass the same algorithm.
//!
//! # Parts
//!
//! ```text
//!   run            the algorithm that was chosen; run/steps: whole operations of one level, for compositions
//!      ▼
//!   algorithms     a folder per operation, a file per algorithm; two_level; neighbor, inter
//!      ▼
//!   state          state of a communicator: its hierarchy, selection (map), slots, counters, release-gather area, multicast
//!      │           a level of the hierarchy has a state of its own, and its operations are in run/steps
//!      ▼
//!   catalog        all algorithms by name, with costs of algorithms of shared memory and of the simplest algorithms
//!      ▼
//!   algorithms that need no state: by messages, and by shared memory over
//!      │           release_gather (area, bounce buffers, staging rings), exposed_reads, address_exchange
//!      ▼
//!   comm_view      ranks and messages of one operation; over it blocks, segments, local_ops, reduction, shm_queue
//!      ▼
//!   members        ranks in the fabric, and the node of each
//!      ▼
//!   algorithm, operation, selection_key, costs; rank, rdma_pattern, trees, circulant, notified_write, words
//! ```
//! Arrows only point down.

#![warn(missing_docs)]

mod address_exchange;
pub mod algorithm;
pub mod algorithm_trials;
pub mod allgather;
pub mod allreduce;
pub mod alltoall;
mod area;
pub mod arena;
pub mod barrier;
pub mod bcast;
pub mod blocks;
pub mod bounce;
mod carrier;
pub mod catalog;
pub mod circulant;
mod comm_view;
pub mod costs;
mod distance;
mod exposed_reads;
pub mod gather;
mod halving;
pub mod installed_maps;
pub mod inter;
pub mod leader_lines;
pub mod level_steps;
mod level_tree;
mod local_ops;
mod members;
pub mod neighbor;
pub mod notified_write;
mod operand_order;
mod operation;
mod outstanding;
pub mod rank;
pub mod rdma_pattern;
pub mod reduce;
pub mod reduce_scatter;
mod reduction;
mod release_gather;
pub mod run;
pub mod scan;
pub mod scatter;
mod segment_copies;
mod segment_sums;
mod segments;
mod selection;
pub mod selection_key;
pub mod selection_map;
mod shm_queue;
pub mod slots;
mod staging_ring;
mod state;
pub mod tree_counters;
mod trees;
pub mod two_level;
pub mod words;

pub use algorithm::AlgorithmChoice;
pub use area::SLOT;
pub use blocks::{BlockList, Packed};
pub use comm_view::{CommView, Reception, Via};
pub use members::{Members, carried_by_kernel, share_memory};
pub use operand_order::OperandOrder;
pub use operation::CollectiveKind;
pub use reduction::{
    Accumulator, ElementReduction, Largest, OperandSide, Prefix, ReduceScatterBuffers,
    ReductionBuffers,
};
pub use release_gather::ReleaseGather;
pub use selection::{
    Composition, CompositionStep, SelectedAlgorithm, Selection, SelectionReason, StepRanks, apart,
    candidates,
};
pub use selection_key::{CallKey, RankPlacement, SelectionKey};
pub use selection_map::SelectionMap;
pub use state::{CollectiveState, hierarchy};

/// Maximum number of ranks for the central algorithms. With more ranks, the N - 1 writes of the last rank cost more than the rounds
/// of a tree.
pub const CENTRAL_MOST: usize = 64;
