//! Fabric of a real job, chosen by the nodes of its ranks: shared memory within a node, a network between nodes, and injected
//! faults on request. The fabric decides the transport to processes of other jobs.
//!
//! The crate keeps no process-wide state. The caller reads the settings and hands them over as [`JobFabricOptions`].

#![warn(missing_docs)]

mod connect;
mod connect_failure;
mod job_fabric;
mod job_transport;
mod local_peers;
mod memory_and_network;
mod options;

pub use connect_failure::ConnectFailure;
pub use job_fabric::{JobFabric, NonShmFabric};
pub use job_transport::{JobTransport, SharedConnection};
pub use memory_and_network::MemoryAndNetwork;
pub use options::{FabricChoice, HostNetwork, JobFabricOptions};
