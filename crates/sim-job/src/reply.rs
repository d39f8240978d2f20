//! Replies to requests of ranks.

use weft_fabric::{Fabric, Fault};
use weft_fabric_sim::Sim;
use weft_fabric_sim_client::{SlotWords, fault_word};

/// Returns the reply that an operation was posted, or its fault.
pub fn posted(result: Result<(), Fault>) -> SlotWords {
    SlotWords::default().put(result.as_ref().err().map_or(0, fault_word))
}

/// Returns the peer of a request, if there is such a rank. A rank out of range comes from memory that the program has overwritten.
pub fn known(sim: &Sim, peer: usize) -> Result<usize, Fault> {
    if peer < sim.size() { Ok(peer) } else { Err(Fault::corrupt(sim.rank(), "rank of a request")) }
}
