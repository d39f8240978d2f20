//! What may be chosen about a [`crate::Verbs`].

use crate::VerbsFunctions;
use std::time::Duration;
use weft_bootstrap::Fingerprint;

/// Registrations that outlive their use, see [`VerbsOptions::keep`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Most bytes in registrations that nobody uses.
    pub bytes: usize,
    /// Most such registrations.
    pub entries: usize,
}

/// Choices; the defaults suit most machines.
#[derive(Debug, Clone)]
pub struct VerbsOptions {
    /// Adapters to use, as `"mlx5_0"` or, for one port, `"mlx5_0:1"`; the order is that of the
    /// rails. Empty: all that have an active port, by name.
    pub devices: Vec<String>,
    /// Most paths of one port that become rails, where the subnet manager gave the port several (InfiniBand's LMC).
    pub paths: usize,
    /// Networks, as [`crate::Verbs::networks`] names them: ports in these become rails, in this order, and no others, unless there is
    /// none. So a job has the rails of another one that it will be linked with. Empty: all.
    pub networks: Vec<String>,
    /// Most rails; a [`weft_fabric::RemoteAddr`] has room for the keys of [`crate::RAILS_MAX`].
    pub rails: usize,
    /// The rail for all traffic, the same for all processes; `None`: each pair of processes has its first connection on one
    /// by the sum of its ranks, and writes and reads use the others, too.
    pub rail: Option<usize>,
    /// Entry of the port's table of addresses, for RoCE; `None`: version 2 over IPv4 if there is
    /// one, then over IPv6, then version 1.
    pub gid_index: Option<u8>,
    /// Service level of all traffic, 0 to 15.
    pub service_level: u8,
    /// Service level of datagrams (multicast, and the connect requests before a connection), 0 to 15; `None`: as all
    /// others; for multicast on InfiniBand that of the group, which the subnet manager chose.
    pub datagram_service_level: Option<u8>,
    /// Traffic class (DSCP and ECN bits) of all traffic, for RoCE.
    pub traffic_class: u8,
    /// Largest MTU in bytes, if less than what the ports have.
    pub mtu: Option<usize>,
    /// Messages that one peer may have on their way to this process or unreceived here.
    pub credits: usize,
    /// Most connections (queue pairs) of this process.
    pub connections: usize,
    /// How many of them, at most, beyond those that the job itself may need, for processes of other jobs that come later: room
    /// for each is made beforehand, some 10 KiB of queues.
    pub linked: usize,
    /// Registrations of the program's memory to keep after their use, for the next use of the same
    /// memory. `None`: none. With it, whoever gives memory back to the system (`munmap`, `free` of
    /// large blocks) that was ever exposed or transferred must call [`crate::Verbs::forget`] first:
    /// libc is not patched, so nobody else would notice, and peers would reach the old pages.
    pub keep: Option<Keep>,
    /// Whether bytes that are written here become visible in ascending order within the MTU, so that
    /// peers may rely on it; `None`: by the list of adapters that are known to do so. Both ends of a
    /// path must say so.
    pub in_order_placement: Option<bool>,
    /// Timeout of one transmission, as the exponent that verbs use: 4.096 us times two to it. With
    /// the defaults (0.27 s, seven transmissions) a dead peer is found out after 2 s, on adapters
    /// that round up after 8 s; a packet lost on the way costs one timeout.
    pub timeout: u8,
    /// Transmissions that are repeated before a peer counts as lost, 0 to 6.
    pub retries: u8,
    /// How long a peer may leave the request for a connection unanswered. Long, because a peer that
    /// computes does not answer.
    pub patience: Duration,
    /// A peer that is silent for so long is asked whether it still lives, while this process waits. Zero:
    /// never.
    pub keepalive: Duration,
    /// Multicast groups are joined through the connection manager (librdmacm) on RoCE, too, as they
    /// always are on InfiniBand.
    pub manager: bool,
    /// What this process's bytes mean; all must mean the same.
    pub fingerprint: Fingerprint,
    /// For tests: what to put between the fabric and the device.
    pub interpose: Option<fn(VerbsFunctions) -> VerbsFunctions>,
}

impl Default for VerbsOptions {
    fn default() -> VerbsOptions {
        VerbsOptions {
            devices: Vec::new(),
            networks: Vec::new(),
            paths: 1,
            rails: crate::RAILS_MAX,
            rail: None,
            gid_index: None,
            service_level: 0,
            datagram_service_level: None,
            traffic_class: 0,
            mtu: None,
            credits: 32,
            connections: 4096,
            linked: 0,
            keep: None,
            in_order_placement: None,
            timeout: 16,
            retries: 6,
            patience: Duration::from_secs(300),
            keepalive: Duration::from_secs(2),
            manager: false,
            fingerprint: Fingerprint::own(&[]),
            interpose: None,
        }
    }
}
