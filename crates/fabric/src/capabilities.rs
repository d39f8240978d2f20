//! The abilities of a fabric towards one peer.

/// Facts about the path to one peer. They do not change after start, with one exception: a fabric may clear `direct` when a
/// first real access is refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Capabilities {
    /// Name of the fabric that carries traffic to this peer: `"shm"`, `"verbs"`, `"sim"`.
    pub fabric: &'static str,
    /// Maximum payload of one [`crate::Fabric::send`], in bytes.
    pub send_max: usize,
    /// Maximum payload that travels with its header without a second buffer, in bytes.
    pub inline_max: usize,
    /// Maximum number of bytes that the network places as a unit. The units of a longer write may become visible in any order.
    /// Zero: there is no such unit, so callers always use a flag.
    pub mtu: usize,
    /// Maximum payload of one multicast datagram, in bytes. Zero: no multicast.
    pub multicast_max: usize,
    /// True if reads and writes reach any memory of the peer that its owner named by [`crate::Fabric::expose`], not only memory
    /// that the fabric allocated.
    pub direct: bool,
    /// True if bytes within one MTU become visible in ascending order, so that a reader may poll the last byte of the payload
    /// ("bottom fill").
    pub in_order_placement: bool,
    /// True if the peer is on this node and both processes share memory: memory of [`crate::FabricExt::allocate_on_node`] is accessed
    /// by loads and stores, or at their speed.
    pub shares_memory: bool,
    /// True if fetch-add and compare-swap on the peer's memory from [`crate::FabricExt::allocate_on_node`] are atomic also
    /// against the peer's processor. Atomics on other memory are atomic against the peer's processor if this field is true for
    /// all ranks.
    pub coherent_atomics: bool,
    /// True if fetch-add and compare-swap on the peer's memory from [`crate::Fabric::allocate`] work, and are atomic against each
    /// other. All ranks have the same value for a peer.
    pub atomics: bool,
    /// True if reads, writes, and atomics on memory from [`crate::FabricExt::allocate_on_node`] are carried out by this
    /// processor and are complete when the call returns. Two ranks that wait for the same copy may share the work.
    pub synchronous: bool,
    /// True if the peer's own process carries out reads, writes and atomics in its progress. If so, an access that takes several
    /// such operations is faster as a request to the peer, in a single message.
    pub by_progress: bool,
    /// Approximate time of a request and its answer, in nanoseconds; 0: too short to matter. Data whose transfer takes less than
    /// this time are better sent at once than requested.
    pub round_trip: u32,
    /// Number of independent paths (adapters, ports) to this peer.
    pub rails: usize,
    /// True if a flag write wakes a peer that sleeps in [`crate::Fabric::sleeper`].
    pub flags_wake: bool,
}
