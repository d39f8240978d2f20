//! Messages and datagrams, whose payloads are in the slot.

use crate::quiet_turn::PrepaidWork;
use crate::reply::{known, posted};
use std::ops::ControlFlow;
use weft_fabric::{Fabric, FabricExt, GroupId, PostOutcome, Sge};
use weft_fabric_sim::{SEND_MAX, Sim};
use weft_fabric_sim_client::{PAYLOAD, RankSlot, SimRequest, SlotWords};

/// The largest message has room in a slot.
const _: () = assert!(SEND_MAX <= PAYLOAD);

/// Returns `len` bytes of a slot's payload from offset `at` on, or as many as there are.
fn payload(slot: &RankSlot, at: usize, len: usize) -> Sge {
    let at = at.min(PAYLOAD);
    // SAFETY: the slot has `PAYLOAD` bytes, and belongs to the simulation until the rank's next turn, after the last use here.
    unsafe { Sge::new(slot.payload().add(at), len.min(PAYLOAD - at)) }
}

/// Carries out a request about messages or datagrams. Returns `None` for other requests.
pub fn answer(sim: &Sim, slot: &RankSlot, request: &SimRequest) -> Option<SlotWords> {
    Some(match *request {
        SimRequest::Send { peer, head, phantom, len, at } => {
            let payload = if phantom { Sge::phantom(len) } else { payload(slot, at, len) };
            posted(known(sim, peer).map(|peer| {
                let outcome = sim.send(peer, head, payload, None);
                debug_assert_eq!(outcome, PostOutcome::Done, "the slot is used again");
            }))
        }
        SimRequest::Take => {
            if let Some(message) = sim.receive(None) {
                sim.release(message);
            }
            SlotWords::default()
        }
        SimRequest::Join { group } => {
            sim.join(GroupId(group));
            SlotWords::default()
        }
        SimRequest::Leave { group } => {
            sim.leave(GroupId(group));
            SlotWords::default()
        }
        SimRequest::Multicast { group, len, at } => {
            posted(FabricExt::multicast(sim, GroupId(group), payload(slot, at, len)))
        }
        SimRequest::ReceiveMulticast { len } => {
            let datagram = FabricExt::receive_multicast(sim, payload(slot, 0, len));
            datagram.map_or(SlotWords::default().put(0), |datagram| {
                let reply = SlotWords::default().put(datagram.source as u64 + 1);
                reply.put(u64::from(datagram.group.0)).put(datagram.len as u64)
            })
        }
        _ => return None,
    })
}

/// Ends showing of messages that the simulation has taken for the rank. Shows the messages after them that have room.
pub fn end_showing(sim: &Sim, slot: &RankSlot, prepaid: &PrepaidWork) {
    if prepaid.messages() > 0 {
        show_arrived(sim, slot);
    }
}

/// Shows the first messages that have arrived to the rank, if it has taken all messages that were shown before.
pub fn show_messages(sim: &Sim, slot: &RankSlot) {
    if !slot.inbox.is_done() {
        return;
    }
    slot.inbox.clear();
    show_arrived(sim, slot);
}

fn show_arrived(sim: &Sim, slot: &RankSlot) {
    sim.look_at_messages(&mut |message| match slot.inbox.show(message) {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    });
    slot.inbox.finish();
}
