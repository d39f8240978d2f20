//! Fabric of a real job, chosen by the places of its ranks: shared memory on one node, a network between nodes, either with
//! injected faults. The transport to processes of other jobs is chosen by the fabric.
//!
//! The crate keeps no process-wide state. The caller reads the settings and hands them over as [`JobFabricOptions`].

#![warn(missing_docs)]

mod connect;
mod job_fabric;
mod job_transport;
mod local_peers;
mod memory_and_network;
mod options;

pub use job_fabric::{JobFabric, NonShmFabric};
pub use job_transport::{JobTransport, SharedConnection};
pub use memory_and_network::MemoryAndNetwork;
pub use options::{FabricChoice, HostNetwork, JobFabricOptions};
