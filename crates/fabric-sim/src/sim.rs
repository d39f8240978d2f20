//! One rank's handle of the simulated cluster: the fabric.

use crate::in_flight::{AfterWrite, FlightAction, FlightAtomic};
use crate::machine::SEND_MAX;
use crate::trace::Activity;
use crate::units::Picoseconds;
use crate::world::WorldState;
use std::cell::{Ref, RefCell, RefMut};
use std::rc::Rc;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use weft_fabric::wait::{Doorbell, Sleep};
use weft_fabric::{
    ArrivedMessage, Capabilities, CompareSwap, Completion, Copies, Counter, Counters, Datagram,
    Fabric, FabricExt, Facets, Fault, FaultCause, FetchAdd, Flag, FlagKind, FlagWrite, GroupId,
    Head, Peek, PostOutcome, Region, RemoteFlag, RemoteRead, RemoteWrite, Sge, Work,
};

/// A rank of a simulated cluster. Cheap to clone.
#[derive(Clone)]
pub struct Sim {
    state: Rc<RefCell<WorldState>>,
    counters: Rc<Counters>,
    /// Costs of copies, the same for the whole run, so that virtual time does not depend on earlier copies. All ranks have the same
    /// costs, except for the groups of their processors.
    copies: Rc<Copies>,
    rank: usize,
    size: usize,
}

/// Origin of virtual time, as an [`Instant`].
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Doorbell at which no thread ever sleeps.
static BELL: LazyLock<Arc<Doorbell>> = LazyLock::new(|| Arc::new(Doorbell::new()));

impl Sim {
    pub(crate) fn new(state: &Rc<RefCell<WorldState>>, rank: usize) -> Sim {
        let counters = state.borrow().rest[rank].counters.clone();
        let size = state.borrow().ranks.len();
        let copies = state.borrow().copies_of(rank);
        Sim { state: state.clone(), counters, copies, rank, size }
    }

    pub(crate) fn state(&self) -> RefMut<'_, WorldState> {
        self.state.borrow_mut()
    }

    pub(crate) fn shared(&self) -> &RefCell<WorldState> {
        &self.state
    }

    fn look(&self) -> Ref<'_, WorldState> {
        self.state.borrow()
    }

    /// Charges this rank for the registration of `len` bytes.
    pub(crate) fn register(&self, state: &mut WorldState, len: usize) {
        let pages = len.div_ceil(4096) as u64;
        let time = state.prices.registration + pages * state.prices.registration_page;
        state.spend(self.rank, time, Activity::Post);
    }

    /// Returns this rank's local time.
    pub fn clock(&self) -> Picoseconds {
        self.look().ranks[self.rank].clock
    }

    /// Returns the instant `span` after local time, for deadlines.
    pub fn after(&self, span: Picoseconds) -> Instant {
        self.now() + Duration::from_nanos(span.div_ceil(1000))
    }

    /// Waits until global time has reached local time. Then the rank can see everything that has happened until its local time.
    pub async fn catch_up(&self) {
        std::future::poll_fn(|cx| self.poll_clock(cx)).await;
    }
}

impl Fabric for Sim {
    fn facets(&self) -> Facets<'_> {
        Facets {
            mapped_memory: None,
            registration: None,
            rails: Some(self),
            immediates: Some(self),
            signal_safe: Some(self),
            helper: Some(self),
            multicast: Some(self),
            nodes: Some(self),
            simulated: Some(self),
        }
    }

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn copies(&self) -> &Copies {
        &self.copies
    }

    fn capabilities(&self, peer: usize) -> Capabilities {
        let state = self.look();
        let local = state.is_local(self.rank, peer);
        let prices = &state.prices;
        Capabilities {
            fabric: "sim",
            send_max: SEND_MAX,
            inline_max: prices.inline.clamp(64, SEND_MAX),
            mtu: prices.mtu,
            multicast_max: state.machine.multicast.as_ref().map_or(0, |m| m.largest.0),
            direct: !local || state.machine.local.in_place,
            in_order_placement: prices.in_order || local,
            shares_memory: local && state.machine.local.shared,
            coherent_atomics: local && state.machine.local.shared,
            atomics: true,
            synchronous: false,
            by_progress: false,
            rails: state.machine.rail.len(),
            round_trip: if local { 0 } else { prices.round_trip },
            flags_wake: true,
        }
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn fault(&self) -> Option<Fault> {
        let state = self.look();
        if state.ranks[self.rank].failed { state.rest[self.rank].fault.clone() } else { None }
    }

    fn allocate(&self, len: usize) -> Result<Region, Fault> {
        let state = &mut *self.state();
        let region = state.memory.allocate(self.rank, len)?;
        self.register(state, len);
        Ok(region)
    }

    fn expose(&self, memory: Sge) -> Result<Region, Fault> {
        let state = &mut *self.state();
        self.register(state, memory.len());
        Ok(state.memory.expose(self.rank, memory))
    }

    fn withdraw(&self, region: Region) {
        self.state().memory.withdraw(region);
    }

    fn flag(&self, region: &Region, offset: usize, kind: FlagKind) -> Flag {
        let at = region.at(offset);
        let word = self.look().memory.word(self.rank, at).expect("a word of an allocated region");
        let word = std::ptr::NonNull::new(word.ptr().cast()).expect("not null");
        // SAFETY: the word is 8-byte aligned (`WorldMemory::word` checks it), and allocated memory stays mapped until the world
        // ends, after the last use of a counter.
        let local = unsafe { self.counters.adopt(word) };
        Flag { local, remote: RemoteFlag { at, waking: kind == FlagKind::Waking } }
    }

    fn write(&self, peer: usize, write: &RemoteWrite) -> Result<(), Fault> {
        self.post_write(None, peer, write, AfterWrite::Nothing)
    }

    fn write_flag(&self, peer: usize, write: &RemoteWrite, then: &FlagWrite) -> Result<(), Fault> {
        self.post_write(None, peer, write, AfterWrite::Flag(then.flag, then.value))
    }

    fn read(&self, peer: usize, read: &RemoteRead) -> Result<(), Fault> {
        self.post_read(None, peer, read)
    }

    fn fetch_add(&self, peer: usize, add: &FetchAdd) -> Result<(), Fault> {
        let &FetchAdd { target, operand, result, done } = add;
        self.post_atomic(peer, target, FlightAtomic::Add(operand), result, done)
    }

    fn compare_swap(&self, peer: usize, request: &CompareSwap) -> Result<(), Fault> {
        let &CompareSwap { target, compare, swap, result, done } = request;
        self.post_atomic(peer, target, FlightAtomic::Swap { compare, swap }, result, done)
    }

    fn send(&self, peer: usize, head: Head, payload: Sge, done: Completion) -> PostOutcome {
        self.send_marked(peer, head, false, payload, done)
    }

    fn receive(&self, from: Option<usize>) -> Option<ArrivedMessage> {
        let state = &mut *self.state();
        let number = state.take_message(self.rank, from)?;
        let peer = state.flights[number].from as usize;
        if state.prices.descriptor > 0 && !state.is_local(self.rank, peer) {
            state.spend(self.rank, state.prices.descriptor, Activity::Receive);
        }
        state.carry_message(self.rank, number);
        let FlightAction::Message { head, payload, .. } = &state.flights[number].action else {
            unreachable!("an inbox holds messages")
        };
        Some(ArrivedMessage { peer, head: *head, payload: payload.sge(), token: u64::from(number) })
    }

    fn release(&self, message: ArrivedMessage) {
        self.state().flights.end(message.token as u32);
    }

    fn progress(&self) -> bool {
        false
    }

    fn sleeper(&self) -> Arc<dyn Sleep> {
        BELL.clone()
    }
    fn keeps_back(&self) -> bool {
        !self.idle()
    }
    fn idle(&self) -> bool {
        true
    }
}

impl weft_fabric::Rails for Sim {
    fn write_over(&self, rail: usize, peer: usize, write: &RemoteWrite) -> Result<(), Fault> {
        self.post_write(Some(rail), peer, write, AfterWrite::Nothing)
    }

    fn read_over(&self, rail: usize, peer: usize, read: &RemoteRead) -> Result<(), Fault> {
        self.post_read(Some(rail), peer, read)
    }

    fn write_flag_after(&self, rail: usize, peer: usize, set: &FlagWrite) -> Result<bool, Fault> {
        let nothing = RemoteWrite::new(Sge::EMPTY, set.flag.at, None);
        let then = AfterWrite::Flag(set.flag, set.value);
        self.post_write(Some(rail), peer, &nothing, then).map(|()| true)
    }

    fn rail_works(&self, rail: usize, peer: usize) -> bool {
        self.look().rail_works(rail, self.rank, peer)
    }

    fn fragment_min(&self) -> Option<usize> {
        self.look().machine.fragment.map(|count| count.0)
    }
}

impl weft_fabric::Immediates for Sim {
    fn write_imm(&self, peer: usize, write: &RemoteWrite, immediate: u32) -> Result<(), Fault> {
        self.post_write(None, peer, write, AfterWrite::Immediate(immediate))
    }

    fn immediate(&self, immediate: u32) -> Counter {
        self.counters.immediate(immediate)
    }
}

impl weft_fabric::SignalSafe for Sim {
    fn peek(&self, look: &mut dyn FnMut(&ArrivedMessage) -> Peek) -> bool {
        self.peek_at_messages(look);
        false
    }

    fn try_read(&self, peer: usize, read: &RemoteRead) -> bool {
        self.read(peer, read).is_ok()
    }

    fn try_write(&self, peer: usize, write: &RemoteWrite) -> bool {
        self.write(peer, write).is_ok()
    }

    fn try_send(&self, peer: usize, head: Head) -> bool {
        self.send(peer, head, Sge::EMPTY, None) == PostOutcome::Done
    }
}

impl weft_fabric::Helper for Sim {
    fn send_solicited(
        &self,
        peer: usize,
        head: Head,
        payload: Sge,
        done: Completion,
    ) -> PostOutcome {
        self.send_marked(peer, head, true, payload, done)
    }

    fn helper(&self) -> Arc<dyn Sleep> {
        self.sleeper()
    }

    fn let_helper_sleep_at_ends(&self) {}

    fn moves_by_progress(&self) -> bool {
        false
    }
}

impl weft_fabric::Multicast for Sim {
    fn join(&self, group: GroupId) {
        let state = &mut *self.state();
        let mine = &mut state.rest[self.rank].groups;
        if !mine.contains(&group) {
            mine.push(group);
            state.members.entry(group).or_default().push(self.rank as u32);
        }
    }

    fn leave(&self, group: GroupId) {
        let state = &mut *self.state();
        let mine = &mut state.rest[self.rank];
        mine.groups.retain(|&g| g != group);
        mine.datagrams.retain(|&(_, g, _)| g != group);
        if let Some(members) = state.members.get_mut(&group) {
            members.retain(|&m| m as usize != self.rank);
        }
    }

    fn multicast(&self, group: GroupId, src: Sge) -> Result<(), Fault> {
        let state = &mut *self.state();
        let me = self.rank;
        let Some(multicast) = &state.machine.multicast else {
            return Err(Fault::unsupported(me, "multicast"));
        };
        if src.len() > multicast.largest.0 {
            return Err(Fault::unsupported(me, "multicast so many bytes"));
        }
        let overhead = multicast.overhead.0;
        let others = state.members.get(&group).map_or(0, |m| m.len()).saturating_sub(1) as u64;
        let latency = multicast.latency.0 + multicast.member.0 * others.saturating_sub(1);
        state.spend(me, overhead, Activity::Post);
        let at = state.ranks[me].clock;
        let payload = state.pool.take_for(src);
        payload.sge().copy_from(src);
        state.launch_datagram(at, me, group, payload, latency);
        Ok(())
    }

    fn receive_multicast(&self, into: Sge) -> Option<Datagram> {
        let state = &mut *self.state();
        let (source, group, payload) = state.rest[self.rank].datagrams.pop_front()?;
        let time = state.machine.multicast.as_ref().map_or(0, |m| m.receive.0);
        state.spend(self.rank, time, Activity::Receive);
        let len = payload.len().min(into.len());
        into.part(0, len).copy_from(payload.sge().part(0, len));
        Some(Datagram { source: source as usize, group, len })
    }
}

impl weft_fabric::Nodes for Sim {
    fn node(&self, peer: usize) -> usize {
        peer / self.look().machine.ranks_per_node.0
    }

    fn groups(&self, peer: usize) -> Option<weft_fabric::copies::ProcessorGroups> {
        self.look().levels.as_ref().map(|levels| levels.groups_of(peer))
    }

    fn same_arithmetic(&self) -> bool {
        !self.look().machine.mixed_arithmetic
    }
}

impl weft_fabric::Simulated for Sim {
    fn poll_any(
        &self,
        waits: &[(Counter, u64)],
        deadline: Option<Instant>,
        _cx: &mut Context<'_>,
    ) -> Poll<Result<usize, Fault>> {
        if let Some(i) = waits.iter().position(|&(c, target)| self.counters.value(c) >= target) {
            return Poll::Ready(Ok(i));
        }
        let mut state = self.state();
        if state.ranks[self.rank].failed
            && let Some(fault) = &state.rest[self.rank].fault
        {
            return Poll::Ready(Err(fault.clone()));
        }
        if let Some(at) = deadline {
            let at = at.saturating_duration_since(*ORIGIN).as_nanos() as Picoseconds * 1000;
            if state.ranks[self.rank].clock >= at {
                return Poll::Ready(Err(FaultCause::TimedOut.into()));
            }
            state.schedule(self.rank, at);
        }
        Poll::Pending
    }

    fn now(&self) -> Instant {
        *ORIGIN + Duration::from_nanos(self.clock() / 1000)
    }

    fn poll_clock(&self, _cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state();
        let clock = state.ranks[self.rank].clock;
        if clock <= state.now {
            return Poll::Ready(());
        }
        state.schedule(self.rank, clock);
        Poll::Pending
    }

    fn charge(&self, work: Work) {
        let state = &mut *self.state();
        let prices = &state.prices;
        let (time, activity) = match work {
            Work::Copy(0) | Work::Stage(0) | Work::Reduce(0) => return,
            Work::Copy(bytes) => {
                (prices.call + state.machine.host.copy_time(bytes), Activity::Copy)
            }
            Work::Stage(bytes) => (prices.call + state.machine.stage_time(bytes), Activity::Copy),
            Work::Reduce(bytes) => (prices.call + prices.reduce.time(bytes), Activity::Reduce),
            Work::Entry => (prices.entry, Activity::Post),
            Work::Match => (prices.matching, Activity::Receive),
            Work::Compute(time) => (time, Activity::Compute),
        };
        state.spend(self.rank, time, activity);
    }

    fn look(&self) {}
}
