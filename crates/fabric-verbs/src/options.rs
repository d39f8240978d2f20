//! Options of a [`crate::Verbs`].

use crate::VerbsFunctions;
use std::time::Duration;
use weft_bootstrap::Fingerprint;

/// Bounds of the registration cache: registrations that outlive their use, see [`VerbsOptions::keep`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Maximum number of bytes in unused registrations.
    pub bytes: usize,
    /// Maximum number of unused registrations.
    pub entries: usize,
}

/// Options of the fabric. The defaults suit most machines.
#[derive(Debug, Clone)]
pub struct VerbsOptions {
    /// Adapters to use, as `"mlx5_0"` or, for one port, `"mlx5_0:1"`, in the order of the rails. Empty: all adapters that
    /// have an active port, by name.
    pub devices: Vec<String>,
    /// Maximum number of paths of one port that become rails, if the subnet manager gave the port several (InfiniBand's LMC).
    pub paths: usize,
    /// Networks, by the names of [`crate::Verbs::networks`]: only ports in these networks become rails, in this order, unless
    /// there is no such port. A job that will be connected with another job names that job's networks here, to get the same
    /// rails. Empty: all networks.
    pub networks: Vec<String>,
    /// Maximum number of rails. A [`weft_fabric::RemoteAddr`] has room for the keys of [`crate::RAILS_MAX`].
    pub rails: usize,
    /// The rail for all traffic, the same at all processes. `None`: each pair of processes chooses the rail of its first
    /// connection by the sum of the two ranks, and writes and reads use the other rails, too.
    pub rail: Option<usize>,
    /// Index in the port's table of addresses, for RoCE. `None`: RoCE version 2 over IPv4 if there is such an address, then
    /// version 2 over IPv6, then version 1.
    pub gid_index: Option<u8>,
    /// Service level of all traffic, 0 to 15.
    pub service_level: u8,
    /// Service level of datagrams (multicast, and the connect requests before a connection), 0 to 15. `None`: the level of
    /// all other traffic; for multicast on InfiniBand the level of the group, which the subnet manager chose.
    pub datagram_service_level: Option<u8>,
    /// Traffic class (DSCP and ECN bits) of all traffic, for RoCE.
    pub traffic_class: u8,
    /// Maximum MTU in bytes, if smaller than the MTU of the ports.
    pub mtu: Option<usize>,
    /// Maximum number of messages from one peer that are in flight or not yet received here.
    pub credits: usize,
    /// Maximum number of connections (queue pairs) of this process.
    pub connections: usize,
    /// Maximum number of additional connections, beyond the connections of the job itself, for processes of other jobs that
    /// come later. Room for each is made beforehand, some 10 KiB of queues.
    pub linked: usize,
    /// Registrations of the program's memory to keep after their use, for the next use of the same memory. `None`: no
    /// registration is kept. With this option, a caller must call [`crate::Verbs::forget`] before it returns memory to the system
    /// (`munmap`, `free` of large blocks) that was ever exposed or transferred. libc is not patched, so the fabric does not
    /// notice by itself, and peers would access the old pages.
    pub keep: Option<Keep>,
    /// True if bytes written to this process become visible in ascending order within the MTU, so that peers may rely on the
    /// order. `None`: true for adapters that are known to keep the order. Peers rely on the order only if both ends of a path
    /// declare it.
    pub in_order_placement: Option<bool>,
    /// Timeout of one transmission, as the exponent that verbs use: 4.096 us * 2^`timeout`. With the defaults (0.27 s, seven
    /// transmissions) a dead peer is detected after 2 s, or after 8 s on adapters that round up. A lost packet costs one timeout.
    pub timeout: u8,
    /// Number of retransmissions before a peer counts as lost, 0 to 6.
    pub retries: u8,
    /// Maximum time that a peer may leave a connect request unanswered. It is long, because a peer that computes does not
    /// answer.
    pub patience: Duration,
    /// Silence of a peer after which this process, while it waits, asks if the peer is alive. Zero: never.
    pub keepalive: Duration,
    /// True if multicast groups are joined through the connection manager (librdmacm) on RoCE too, as they always are on
    /// InfiniBand.
    pub manager: bool,
    /// Data formats of this process, which must be equal in all processes.
    pub fingerprint: Fingerprint,
    /// For tests: a function that puts its own functions between the fabric and the device.
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
