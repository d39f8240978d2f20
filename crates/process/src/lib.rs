//! MPI world of one process: communicators, groups, requests, and the engine that progresses them.
//!
//! There is no process-wide state: everything belongs to an [`Engine`], because a simulator has thousands of engines. Only one
//! thread at a time uses an engine. If the layer above has several threads, it passes a [`WaitHooks`], through which a waiting
//! thread lets other threads in.
//!
//! # Parts
//!
//! ```text
//!   collectives, neighbors, inter, algorithm_selection    operations of a communicator, and the choice of the algorithm
//!   partitioned, messages                      messages of a communicator
//!   creation, intercomm, linking, agreement    how communicators are made
//!      ▼
//!   comm      a communicator: group, link, contexts; comm_selection, topology, attributes, info
//!      ▼
//!   request   operations under way, as requests see them
//!      ▼
//!   engine    progress: tasks, persistent tasks, work of the helper; mailbox of agreements, resources for communicators;
//!             connected: processes of other jobs
//!      ▼
//!   group, buffer, error
//! ```
//! Dependencies only point down.

#![warn(missing_docs)]

mod agreement;
mod algorithm_selection;
mod attributes;
mod buffer;
mod collectives;
mod comm;
mod comm_selection;
mod creation;
mod dims;
mod engine;
mod error;
mod group;
mod info;
mod inter;
mod intercomm;
mod linking;
mod mailbox;
mod messages;
mod neighbors;
mod partitioned;
mod rank_buffers;
mod request;
mod resources;
mod signature_records;
mod topology;

pub use attributes::Attributes;
pub use buffer::{Buffer, BufferPiece};
pub use collectives::{CollectiveOperation, Lengths};
pub use comm::{Comm, TAG_UB};
pub use dims::balanced_dims;
pub use engine::{
    Engine, Executor, ForeignPeer, Identity, LinkId, NonblockingTask, PersistentTask, Single,
    TaskCounts, WaitHooks, WaitRecord,
};
pub use error::{Error, class};
pub use group::{Compare, Group};
pub use info::{Info, KEY_MAX, VALUE_MAX};
pub use intercomm::{MergePlace, Parties};
pub use messages::{Destination, Origin};
pub use neighbors::Neighbors;
pub use partitioned::{PartitionedReceive, PartitionedSend};
pub use rank_buffers::RankBuffers;
pub use request::{Active, External, OperationOutcome};
pub use signature_records::RecordSpace;
pub use topology::{Cartesian, CommTopology, Edge, Graph, Neighborhood};
pub use weft_collective::CallKey;
pub use weft_collective::inter::Root;
pub use weft_p2p::{Matched, RequestId, SignatureMark, Status, StatusFlags};
