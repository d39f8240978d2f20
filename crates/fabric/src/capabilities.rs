//! What a fabric can do towards one peer.

/// Facts about the path to one peer. They do not change after start, except `direct`, which a
/// fabric may clear when a first real access is refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Capabilities {
    /// Name of the fabric that carries traffic to this peer: `"shm"`, `"verbs"`, `"sim"`.
    pub fabric: &'static str,
    /// Largest payload of one [`crate::Fabric::send`], in bytes.
    pub send_max: usize,
    /// Largest payload that travels with its header without a second buffer, in bytes.
    pub inline_max: usize,
    /// Largest unit that is placed at once, in bytes. Beyond it the parts of a write may become
    /// visible in any order. Zero: no such unit, always use a flag.
    pub mtu: usize,
    /// Largest payload of one multicast datagram, in bytes. Zero: no multicast.
    pub multicast_max: usize,
    /// Reads and writes reach any memory of the peer that its owner named by
    /// [`crate::Fabric::expose`], not only memory that the fabric allocated.
    pub direct: bool,
    /// Bytes within one MTU become visible in ascending order, so that a reader may poll the last
    /// byte of the payload ("bottom fill").
    pub in_order_placement: bool,
    /// The peer is on this node, and what one of both allocates by [`crate::FabricExt::allocate_on_node`] the other reaches by
    /// loads and stores, or as fast.
    pub shares_memory: bool,
    /// fetch-add and compare-swap on the peer's memory from [`crate::FabricExt::allocate_on_node`] are
    /// atomic also against its processor. On other memory they are if this holds for all ranks.
    pub coherent_atomics: bool,
    /// fetch-add and compare-swap on the peer's memory from [`crate::Fabric::allocate`] are there, and atomic
    /// against each other. All ranks find the same of a peer.
    pub atomics: bool,
    /// Reads, writes, and atomics on memory from [`crate::FabricExt::allocate_on_node`] are carried out
    /// by this processor and are over when the call returns: two ends that wait for one copy may share the work.
    pub synchronous: bool,
    /// Reads, writes and atomics are carried out by the peer's own process, in its progress: what takes several of them is better
    /// asked for as a whole.
    pub by_progress: bool,
    /// Nanoseconds that a question and its answer take, roughly; 0: so few that it decides nothing. What is short beside it is
    /// better sent at once than asked for.
    pub round_trip: u32,
    /// Number of independent paths (adapters, ports) to this peer.
    pub rails: usize,
    /// A flag write wakes a peer that sleeps in [`crate::Fabric::sleeper`].
    pub flags_wake: bool,
}
