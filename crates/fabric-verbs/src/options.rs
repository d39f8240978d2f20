//! Options of a [`crate::Verbs`].

use crate::VerbsFunctions;
use std::time::Duration;
use weft_bootstrap::Fingerprint;

/// Options of the fabric. The defaults suit most machines.
#[derive(Debug, Clone)]
pub struct VerbsOptions {
    /// Adapters to use, in the order of the rails. `"mlx5_0"` means all ports of the adapter, and `"mlx5_0:1"` means one port. If
    /// empty, all adapters that have an active port are used, in the order of their names.
    pub devices: Vec<String>,
    /// Maximum number of paths of one port that become rails, if the subnet manager gave the port several paths (InfiniBand's LMC).
    pub paths: usize,
    /// Networks, by the names that [`crate::Verbs::networks`] returns. Only ports in these networks become rails, in this order,
    /// unless there is no such port. If a job will be connected with another job, it names the networks of the other job here. Then
    /// both jobs have the same rails. If empty, all networks are used.
    pub networks: Vec<String>,
    /// Maximum number of rails, at most [`crate::RAILS_MAX`].
    pub rails: usize,
    /// The rail for all traffic, which is the same at all processes. If `None`, the sum of the two ranks selects the rail of the
    /// first connection of each pair of processes, and writes and reads also use the other rails.
    pub rail: Option<usize>,
    /// Index in the port's table of addresses, for RoCE. If `None`, RoCE version 2 over IPv4 is used if there is such an address,
    /// else version 2 over IPv6, else version 1.
    pub gid_index: Option<u8>,
    /// Service level of all traffic, 0 to 15.
    pub service_level: u8,
    /// Service level of datagrams (multicast and connect requests), 0 to 15. If `None`, datagrams have the level of all other
    /// traffic. Only multicast on InfiniBand then has the level of the group, which the subnet manager chose.
    pub datagram_service_level: Option<u8>,
    /// Traffic class (DSCP and ECN bits) of all traffic, for RoCE.
    pub traffic_class: u8,
    /// Maximum MTU in bytes, to use less than the MTU of the ports.
    pub mtu: Option<usize>,
    /// Maximum number of messages from one peer that are in flight, or that this process has not received yet.
    pub credits: usize,
    /// Maximum number of connections (queue pairs) of this process.
    pub connections: usize,
    /// Maximum number of additional connections for processes of other jobs that connect with this job later. Queues for each
    /// additional connection (about 10 KiB) are allocated beforehand.
    pub linked: usize,
    /// True if bytes written to this process become visible in ascending order within the MTU. Peers rely on this order only if
    /// both ends of a path declare it. If `None`, it is true for adapters that are known to keep the order.
    pub in_order_placement: Option<bool>,
    /// Timeout of one transmission, as the exponent that verbs use: 4.096 us * 2^`timeout`. With the default (0.27 s, seven
    /// transmissions) a dead peer is detected after 2 s, or after 8 s on adapters that round up. A lost packet costs one timeout.
    pub timeout: u8,
    /// Maximum time for which a peer may leave a connect request unanswered. The default is long, because a peer does not answer
    /// while it computes.
    pub patience: Duration,
    /// Time of silence after which a waiting process checks if a peer is alive. Zero means that peers are never checked.
    pub keepalive: Duration,
    /// True if the connection manager (librdmacm) joins multicast groups on RoCE, too. On InfiniBand it always does.
    pub manager: bool,
    /// Data formats of this process, which must be equal in all processes.
    pub fingerprint: Fingerprint,
    /// For tests: a function that replaces functions of the device.
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
            in_order_placement: None,
            timeout: 16,
            patience: Duration::from_secs(300),
            keepalive: Duration::from_secs(2),
            manager: false,
            fingerprint: Fingerprint::own(&[]),
            interpose: None,
        }
    }
}
