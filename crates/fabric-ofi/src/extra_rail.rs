//! All rails of a process except the first.

use crate::object::Objects;
use std::net::SocketAddr;
use std::sync::Arc;
use weft_fabric::{Region, RemoteAddr};

/// Size of the memory for probes, in bytes: a word that peers read, and the destination of a word that is read from a peer.
pub const PROBE: usize = 16;

/// A rail of this process other than the first rail, with the addresses of all processes on it.
pub struct ExtraRail {
    pub objects: Arc<Objects>,
    /// By rank: `numbers` are the provider's numbers for the addresses, `addresses` the addresses in readable form, and `ips` the
    /// TCP addresses.
    pub numbers: Vec<u64>,
    pub addresses: Vec<String>,
    pub ips: Vec<Option<SocketAddr>>,
}

/// Memory for testing rails.
pub struct Probes {
    pub own: Region,
    /// Address of the word that a probe reads, by rank.
    pub words: Vec<RemoteAddr>,
}
