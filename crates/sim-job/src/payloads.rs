//! Messages and datagrams, whose payloads are in the slot.

use crate::reply::{known, posted};
use weft_fabric::{Fabric, FabricExt, GroupId, PostOutcome, Sge};
use weft_fabric_sim::Sim;
use weft_fabric_sim_client::{PAYLOAD, RankSlot, SimRequest, SlotWords};

/// Returns the first `len` bytes of a slot's payload, or as many as there are.
fn payload(slot: &RankSlot, len: usize) -> Sge {
    // SAFETY: the slot has `PAYLOAD` bytes, and belongs to the simulation until the rank's next turn, after the last use here.
    unsafe { Sge::new(slot.payload(), len.min(PAYLOAD)) }
}

/// Carries out a request about messages or datagrams. Returns `None` for other requests.
pub fn answer(sim: &Sim, slot: &RankSlot, request: &SimRequest) -> Option<SlotWords> {
    Some(match *request {
        SimRequest::Send { peer, head, phantom, len } => {
            let payload = if phantom { Sge::phantom(len) } else { payload(slot, len) };
            posted(known(sim, peer).map(|peer| {
                let outcome = sim.send(peer, head, payload, None);
                debug_assert_eq!(outcome, PostOutcome::Done, "the slot is used again");
            }))
        }
        SimRequest::Receive { from } => receive(sim, slot, from),
        SimRequest::Join { group } => {
            sim.join(GroupId(group));
            SlotWords::default()
        }
        SimRequest::Leave { group } => {
            sim.leave(GroupId(group));
            SlotWords::default()
        }
        SimRequest::Multicast { group, len } => {
            posted(FabricExt::multicast(sim, GroupId(group), payload(slot, len)))
        }
        SimRequest::ReceiveMulticast { len } => {
            let datagram = FabricExt::receive_multicast(sim, payload(slot, len));
            datagram.map_or(SlotWords::default().put(0), |datagram| {
                let reply = SlotWords::default().put(datagram.source as u64 + 1);
                reply.put(u64::from(datagram.group.0)).put(datagram.len as u64)
            })
        }
        _ => return None,
    })
}

/// Takes the next message, and puts its payload into the slot.
fn receive(sim: &Sim, slot: &RankSlot, from: Option<usize>) -> SlotWords {
    let Some(message) = sim.receive(from) else { return SlotWords::default().put(0) };
    let bytes = message.payload;
    if !bytes.is_phantom() && !bytes.is_empty() {
        payload(slot, bytes.len()).copy_from(bytes);
    }
    let reply = SlotWords::default().put(message.peer as u64 + 1);
    let reply = message.head.0.into_iter().fold(reply, SlotWords::put);
    let reply = reply.put(bytes.len() as u64).put(u64::from(bytes.is_phantom()));
    sim.release(message);
    reply
}
