//! Rails of a process besides the first.

use crate::object::Objects;
use std::net::SocketAddr;
use std::sync::Arc;
use weft_fabric::{Region, RemoteAddr};

/// Size of the memory for probes, in bytes: a word that peers read, and the place for the word that is read from a peer.
pub const PROBE: usize = 16;

/// A rail other than the first.
pub struct ExtraRail {
    pub objects: Arc<Objects>,
    /// By rank: the provider's number for the address, the address in readable form, and the address of TCP.
    pub numbers: Vec<u64>,
    pub addresses: Vec<String>,
    pub ips: Vec<Option<SocketAddr>>,
}

/// Memory by which rails are tried.
pub struct Probes {
    pub own: Region,
    /// Words to read, by rank.
    pub words: Vec<RemoteAddr>,
}
