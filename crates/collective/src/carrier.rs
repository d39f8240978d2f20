//! The ways in which algorithms move data.

/// Carrier of an algorithm's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Carrier {
    /// MPI point-to-point messages.
    Messages,
    /// The component's own streams of segments (CollGM).
    Streams,
    /// RDMA writes into slots, and multicast (Kini).
    Writes,
    /// RDMA writes with immediate into slots, and multicast.
    Immediates,
    /// Atomic operations of the adapters, and RDMA writes.
    Atomics,
    /// RDMA reads of memory that all ranks expose to each other.
    Reads,
    /// Memory that the ranks share.
    Memory,
    /// Any carrier. Each level of a composition chooses its carrier.
    Hierarchy,
}
