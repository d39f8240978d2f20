//! Replies to requests of ranks.

use weft_fabric::{Fabric, Fault, FaultCause};
use weft_fabric_sim::Sim;
use weft_fabric_sim_client::SlotWords;

/// Returns a fault as a word of a reply: the lost peer plus 1, or `u64::MAX`.
pub fn fault_word(fault: &Fault) -> u64 {
    match *fault.cause() {
        FaultCause::PeerLost { rank } => rank as u64 + 1,
        _ => u64::MAX,
    }
}

/// Returns the fault of a word of a reply; `None` for 0.
pub fn fault_of(word: u64) -> Option<Fault> {
    match word {
        0 => None,
        u64::MAX => Some(Fault::system("the simulation refused an operation", 0)),
        peer => Some(Fault::lost(peer as usize - 1)),
    }
}

/// Returns the reply that an operation was posted, or its fault.
pub fn posted(result: Result<(), Fault>) -> SlotWords {
    SlotWords::default().put(result.as_ref().err().map_or(0, fault_word))
}

/// Returns the peer of a request, if there is such a rank. A rank out of range comes from memory that the program has overwritten.
pub fn known(sim: &Sim, peer: usize) -> Result<usize, Fault> {
    if peer < sim.size() { Ok(peer) } else { Err(Fault::corrupt(sim.rank(), "rank of a request")) }
}
