//! The requests of a rank, carried out on its handle of the simulated cluster.

use crate::account::{JobAccount, TrafficKind};
use crate::job::ComputeTime;
use crate::processes::ProcessAccess;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use weft_fabric::{
    CompareSwap, Fabric, FabricExt, Fault, FaultCause, FetchAdd, FlagWrite, GroupId, PostOutcome,
    RemoteRead, RemoteWrite, Sge, Work,
};
use weft_fabric_sim::Sim;
use weft_fabric_sim::units::Picoseconds;
use weft_fabric_sim_client::{MOST_ADVANCES, RankSlot, Request, Words, WriteEnd};

/// State of a rank after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterRequest {
    /// The rank goes on.
    Runs,
    /// The turn of the rank has ended.
    Rests,
    /// The rank has left the simulation.
    Ended,
}

/// A rank, as the simulation serves it.
pub struct RankServer {
    pub sim: Sim,
    processes: Rc<ProcessAccess>,
    compute: ComputeTime,
    /// Number of calls at the last request, and the call in which the rank was.
    calls: u64,
    /// True once the rank has left.
    pub ended: bool,
    /// Clock at the last request.
    seen: Picoseconds,
}

impl RankServer {
    pub fn new(sim: Sim, processes: Rc<ProcessAccess>, compute: ComputeTime) -> RankServer {
        RankServer { sim, processes, compute, calls: 0, ended: false, seen: 0 }
    }

    /// Fills the fields of a slot that every reply has.
    pub fn publish(&self, slot: &RankSlot) {
        let rank = self.sim.rank();
        let mut count = 0;
        while count < MOST_ADVANCES
            && let Some(word) = self.processes.next_advance(rank)
        {
            slot.advances[count].store(word, Relaxed);
            count += 1;
        }
        slot.advanced.store(count as u32, Relaxed);
        slot.messages.store(self.sim.arrived_messages() as u32, Relaxed);
        slot.datagrams.store(self.sim.arrived_datagrams() as u32, Relaxed);
        slot.clock.store(self.sim.clock(), Relaxed);
        slot.fault.store(self.sim.fault().as_ref().map_or(0, fault_word), Relaxed);
    }

    /// Begins a turn.
    pub fn begin(&mut self, slot: &RankSlot, account: &mut JobAccount) {
        let clock = self.sim.clock();
        let waited = clock.saturating_sub(self.seen);
        let call = slot.call.load(Relaxed);
        account.wait(self.sim.rank(), call, waited, clock, self.sim.last_arrival());
        self.seen = clock;
        self.publish(slot);
        slot.turn_start.store(clock, Relaxed);
    }

    /// Adds the time since the last request to the account. The processor time of the program, and the time of the library, have
    /// been charged already.
    fn note(&mut self, slot: &RankSlot, computed: Picoseconds, account: &mut JobAccount) {
        let clock = self.sim.clock();
        let (rank, call) = (self.sim.rank(), slot.call.load(Relaxed));
        let inside = (clock - self.seen).saturating_sub(computed);
        account.busy(rank, call, computed, inside, clock);
        let calls = slot.calls.load(Relaxed);
        account.ranks[rank].calls.entry(call).or_default().calls +=
            calls.saturating_sub(self.calls);
        self.calls = calls;
        self.seen = clock;
    }

    /// Carries out the request in `slot`, and stores the reply.
    pub fn serve(&mut self, slot: &RankSlot, account: &mut JobAccount) -> AfterRequest {
        let nanos = slot.compute.swap(0, Relaxed);
        let computed = self.compute.of(nanos);
        if computed > 0 {
            self.sim.charge(Work::Compute(computed));
        }
        for work in slot.take_charges() {
            self.sim.charge(work);
        }
        let request = Request::of(Words::load(&slot.words, slot.used.load(Relaxed)));
        let Some(request) = request else {
            return self.reply(slot, Words::default().put(u64::MAX));
        };
        if let Request::Look { idle: true } = request {
            self.sim.charge(Work::Compute(self.sim.look_time()));
        }
        let (after, words) = self.answer(slot, request, account);
        self.note(slot, computed, account);
        match after {
            AfterRequest::Runs => self.reply(slot, words),
            AfterRequest::Rests => {
                slot.used.store(0, Relaxed);
                after
            }
            AfterRequest::Ended => {
                self.ended = true;
                after
            }
        }
    }

    fn reply(&self, slot: &RankSlot, words: Words) -> AfterRequest {
        let used = words.store(&slot.words);
        slot.used.store(used, Relaxed);
        self.publish(slot);
        AfterRequest::Runs
    }

    fn answer(
        &mut self,
        slot: &RankSlot,
        request: Request,
        account: &mut JobAccount,
    ) -> (AfterRequest, Words) {
        let sim = &self.sim;
        let (me, size) = (sim.rank(), sim.size());
        let words = Words::default();
        let refused = |fault: Fault| words.put(fault_word(&fault));
        let posted = |result: Result<(), Fault>| match result {
            Ok(()) => words.put(0),
            Err(fault) => refused(fault),
        };
        // A peer out of range comes from memory that the program has overwritten.
        let known = |peer: usize| match peer < size {
            true => Ok(peer),
            false => Err(Fault::corrupt(me, "rank of a request")),
        };
        let reply = match request {
            Request::Rest { until } => {
                // Counters that did not fit into the last reply may end the wait.
                let now = self.processes.has_advances(me).then_some(0);
                if let Some(at) = now.or(until) {
                    sim.wake_at(at);
                }
                return (AfterRequest::Rests, words);
            }
            Request::Look { .. } => {
                sim.wake_at(sim.clock());
                return (AfterRequest::Rests, words);
            }
            Request::End => return (AfterRequest::Ended, words),
            Request::Clock => words,
            Request::Write { rail, peer, src, dst, then, done } => {
                account.operation(TrafficKind::Write, me, peer, src.len());
                let write = RemoteWrite::new(src, dst, done);
                posted(known(peer).and_then(|peer| match (then, rail) {
                    (WriteEnd::Data, None) => sim.write(peer, &write),
                    (WriteEnd::Data, Some(rail)) => sim.write_over(rail, peer, &write),
                    (WriteEnd::Flag(flag, value), _) => {
                        sim.write_flag(peer, &write, &FlagWrite { flag, value })
                    }
                    (WriteEnd::Immediate(immediate), _) => sim.write_imm(peer, &write, immediate),
                }))
            }
            Request::Read { rail, peer, dst, src, done } => {
                account.operation(TrafficKind::Read, me, peer, dst.len());
                let read = RemoteRead::new(dst, src, done);
                posted(known(peer).and_then(|peer| match rail {
                    None => sim.read(peer, &read),
                    Some(rail) => sim.read_over(rail, peer, &read),
                }))
            }
            Request::FlagAfter { rail, peer, flag, value } => {
                let set = FlagWrite { flag, value };
                posted(
                    known(peer).and_then(|peer| sim.write_flag_after(rail, peer, &set).map(drop)),
                )
            }
            Request::Add { peer, target, operand, result, done } => {
                account.operation(TrafficKind::Atomic, me, peer, 8);
                let add = FetchAdd { target, operand, result, done };
                posted(known(peer).and_then(|peer| sim.fetch_add(peer, &add)))
            }
            Request::Swap { peer, target, compare, swap, result, done } => {
                account.operation(TrafficKind::Atomic, me, peer, 8);
                let swap = CompareSwap { target, compare, swap, result, done };
                posted(known(peer).and_then(|peer| sim.compare_swap(peer, &swap)))
            }
            Request::Send { peer, head, solicited, phantom, len } => {
                account.operation(TrafficKind::Message, me, peer, len);
                let payload = match phantom {
                    true => Sge::phantom(len),
                    // SAFETY: the slot has room for the largest message, and belongs to the simulation during its turn.
                    false => unsafe { Sge::new(slot.payload(), len.min(Self::PAYLOAD)) },
                };
                posted(known(peer).map(|peer| {
                    let outcome = match solicited {
                        false => sim.send(peer, head, payload, None),
                        true => sim.send_solicited(peer, head, payload, None),
                    };
                    debug_assert_eq!(outcome, PostOutcome::Done);
                }))
            }
            Request::Receive { from } => match sim.receive(from) {
                None => words.put(0),
                Some(message) => {
                    let payload = message.payload;
                    if !payload.is_phantom() && !payload.is_empty() {
                        // SAFETY: the slot has room for the largest message, and belongs to the simulation during its turn.
                        unsafe { Sge::new(slot.payload(), payload.len()) }.copy_from(payload);
                    }
                    let head = message.head.0;
                    let phantom = u64::from(payload.is_phantom());
                    let reply = words.put(message.peer as u64 + 1).put(head[0]).put(head[1]);
                    let reply = reply.put(head[2]).put(payload.len() as u64).put(phantom);
                    sim.release(message);
                    reply
                }
            },
            Request::Allocate { memory } => words.put_remote(sim.enter_allocated(memory).remote),
            Request::Expose { memory } => match sim.expose(memory) {
                Ok(region) => words.put_remote(region.remote),
                Err(fault) => refused(fault),
            },
            Request::Withdraw { memory, remote } => {
                sim.withdraw(weft_fabric::Region { local: memory, remote });
                words
            }
            Request::RailWorks { rail, peer } => {
                words.put(u64::from(peer < size && sim.rail_works(rail, peer)))
            }
            Request::Join { group } => {
                sim.join(GroupId(group));
                words
            }
            Request::Leave { group } => {
                sim.leave(GroupId(group));
                words
            }
            Request::Multicast { group, len } => {
                // SAFETY: the slot has room for the largest datagram, and belongs to the simulation during its turn.
                let payload = unsafe { Sge::new(slot.payload(), len.min(Self::PAYLOAD)) };
                posted(FabricExt::multicast(sim, GroupId(group), payload))
            }
            Request::ReceiveMulticast { len } => {
                // SAFETY: as above.
                let into = unsafe { Sge::new(slot.payload(), len.min(Self::PAYLOAD)) };
                match FabricExt::receive_multicast(sim, into) {
                    None => words.put(0),
                    Some(datagram) => {
                        let reply = words.put(datagram.source as u64 + 1);
                        reply.put(u64::from(datagram.group.0)).put(datagram.len as u64)
                    }
                }
            }
            Request::Groups { peer } => match known(peer).ok().and_then(|peer| sim.groups(peer)) {
                None => words.put(0),
                Some(groups) => {
                    groups.from_near().into_iter().fold(words.put(1), |w, g| w.put(u64::from(g)))
                }
            },
            Request::MemoryOf { peer, at, len } => {
                match known(peer).and_then(|peer| sim.memory_of(peer, at, len)) {
                    Ok(memory) => words.put(0).put_memory(memory),
                    Err(fault) => refused(fault),
                }
            }
        };
        (AfterRequest::Runs, reply)
    }

    /// Maximum payload of a slot in bytes.
    const PAYLOAD: usize = 64 << 10;
}

/// Returns a fault as a word of a reply: the lost peer plus 1, or `u64::MAX`.
fn fault_word(fault: &Fault) -> u64 {
    match *fault.cause() {
        FaultCause::PeerLost { rank } => rank as u64 + 1,
        _ => u64::MAX,
    }
}
