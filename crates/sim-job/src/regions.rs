//! Registered memory, and questions about peers.

use crate::reply::known;
use weft_fabric::{Fabric, FabricExt, Fault, Region};
use weft_fabric_sim::Sim;
use weft_fabric_sim_client::{SimRequest, SlotWords, fault_word};

/// Carries out a request about regions and peers. Returns `None` for other requests.
pub fn answer(sim: &Sim, request: &SimRequest) -> Option<SlotWords> {
    let words = SlotWords::default();
    let refused = |fault: Fault| words.put(fault_word(&fault));
    Some(match *request {
        SimRequest::Allocate { memory } => words.put_remote(sim.enter_allocated(memory).remote),
        SimRequest::Expose { memory } => match sim.expose(memory) {
            Ok(region) => words.put_remote(region.remote),
            Err(fault) => refused(fault),
        },
        // A region that is not there comes from memory that the program has overwritten.
        SimRequest::Withdraw { memory, remote } => match sim.memory_of(sim.rank(), remote, 0) {
            Ok(_) => {
                sim.withdraw(Region { local: memory, remote });
                words
            }
            Err(fault) => refused(fault),
        },
        SimRequest::RailWorks { rail, peer } => {
            words.put(u64::from(known(sim, peer).is_ok_and(|peer| sim.rail_works(rail, peer))))
        }
        SimRequest::Groups { peer } => {
            match known(sim, peer).ok().and_then(|peer| sim.groups(peer)) {
                None => words.put(0),
                Some(groups) => {
                    let numbers = groups.from_near().map(u64::from);
                    numbers.into_iter().fold(words.put(1), SlotWords::put)
                }
            }
        }
        SimRequest::MemoryOf { peer, at, len } => {
            match known(sim, peer).and_then(|peer| sim.memory_of(peer, at, len)) {
                Ok(memory) => words.put(0).put_memory(memory),
                Err(fault) => refused(fault),
            }
        }
        _ => return None,
    })
}
