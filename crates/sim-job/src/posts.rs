//! Posts of one-sided operations.

use crate::account::{JobAccount, TrafficKind};
use crate::reply::{known, posted};
use weft_fabric::{
    CompareSwap, Fabric, FabricExt, Fault, FetchAdd, FlagWrite, RemoteRead, RemoteWrite,
};
use weft_fabric_sim::Sim;
use weft_fabric_sim_client::{SimRequest, SlotWords, WriteEnd};

/// Counts a request that moves data.
pub fn count(account: &mut JobAccount, rank: usize, request: &SimRequest) {
    let (kind, peer, bytes) = match *request {
        SimRequest::Write { peer, src, .. } => (TrafficKind::Write, peer, src.len()),
        SimRequest::Read { peer, dst, .. } => (TrafficKind::Read, peer, dst.len()),
        SimRequest::Add { peer, .. } | SimRequest::Swap { peer, .. } => {
            (TrafficKind::Atomic, peer, 8)
        }
        SimRequest::Send { peer, len, .. } => (TrafficKind::Message, peer, len),
        _ => return,
    };
    account.operation(kind, rank, peer, bytes);
}

/// Carries out a post. Returns `None` for other requests.
pub fn answer(sim: &Sim, request: &SimRequest) -> Option<SlotWords> {
    let result = match *request {
        SimRequest::Write { rail, peer, src, dst, then, done } => {
            let write = RemoteWrite::new(src, dst, done);
            known(sim, peer).and_then(|peer| post_write(sim, rail, peer, &write, then))
        }
        SimRequest::Read { rail, peer, dst, src, done } => {
            let read = RemoteRead::new(dst, src, done);
            known(sim, peer).and_then(|peer| match rail {
                None => sim.read(peer, &read),
                Some(rail) => sim.read_over(rail, peer, &read),
            })
        }
        SimRequest::FlagAfter { rail, peer, flag, value } => {
            let set = FlagWrite { flag, value };
            known(sim, peer).and_then(|peer| sim.write_flag_after(rail, peer, &set).map(drop))
        }
        SimRequest::Add { peer, target, operand, result, done } => {
            let add = FetchAdd { target, operand, result, done };
            known(sim, peer).and_then(|peer| sim.fetch_add(peer, &add))
        }
        SimRequest::Swap { peer, target, compare, swap, result, done } => {
            let swap = CompareSwap { target, compare, swap, result, done };
            known(sim, peer).and_then(|peer| sim.compare_swap(peer, &swap))
        }
        _ => return None,
    };
    Some(posted(result))
}

fn post_write(
    sim: &Sim,
    rail: Option<usize>,
    peer: usize,
    write: &RemoteWrite,
    then: WriteEnd,
) -> Result<(), Fault> {
    match (then, rail) {
        (WriteEnd::Data, None) => sim.write(peer, write),
        (WriteEnd::Data, Some(rail)) => sim.write_over(rail, peer, write),
        (WriteEnd::Flag(flag, value), _) => sim.write_flag(peer, write, &FlagWrite { flag, value }),
        (WriteEnd::Immediate(immediate), _) => sim.write_imm(peer, write, immediate),
    }
}
