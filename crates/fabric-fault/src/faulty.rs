//! The wrapper: its state, and the trait in terms of late messages, datagrams and writes.

mod datagrams;
mod messages;
mod writes;

use crate::plan::FaultPlan;
use datagrams::FaultyDatagrams;
use messages::FaultyMessages;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use weft_fabric::wait::{Sleep, Token};
use weft_fabric::{
    AnnouncedWait, ArrivedMessage, Capabilities, CompareSwap, Completion, Copies, Counter,
    Counters, Datagram, Fabric, FabricExt, Facets, Fault, FetchAdd, FileClock, Flag, FlagKind,
    FlagWrite, GroupId, Head, PeerWords, PostOutcome, RdmaDirection, Region, RemoteAddr,
    RemoteRead, RemoteWrite, Sge, Work,
};
use writes::{WriteEnding, Writes};

/// A fabric with faults.
pub struct FaultyFabric<F> {
    pub(crate) inner: F,
    pub(crate) plan: FaultPlan,
    pub(crate) rng: RefCell<fastrand::Rng>,
    /// Advances with every poll. Delays are counted in this time.
    pub(crate) clock: Cell<u64>,
    pub(crate) messages: FaultyMessages,
    pub(crate) datagrams: FaultyDatagrams,
    pub(crate) writes: Writes,
    pub(crate) fault: RefCell<Option<Fault>>,
    /// Number of held operations. While there are any, nobody may sleep, because nothing else would wake the sleeper.
    pending: Arc<AtomicUsize>,
}

/// The error number of systems when the limit on locked memory is exceeded.
const ENOMEM: i32 = 12;

/// Maximum delay, in polls.
const DELAY_MAX: u64 = 20;

impl<F: Fabric> FaultyFabric<F> {
    /// Wraps `inner`, which misbehaves by `plan` from now on. Each rank draws its own faults from the plan's seed.
    pub fn new(inner: F, plan: FaultPlan) -> FaultyFabric<F> {
        let rank = inner.rank() as u64;
        let seed = plan.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(rank);
        FaultyFabric {
            messages: FaultyMessages::new(inner.size()),
            datagrams: FaultyDatagrams::default(),
            writes: Writes::default(),
            rng: RefCell::new(fastrand::Rng::with_seed(seed)),
            clock: Cell::new(0),
            fault: RefCell::new(None),
            pending: Arc::default(),
            inner,
            plan,
        }
    }

    /// Returns the wrapped fabric.
    pub fn inner(&self) -> &F {
        &self.inner
    }

    pub(crate) fn chance(&self, probability: f64) -> bool {
        probability > 0.0 && self.rng.borrow_mut().f64() < probability
    }

    /// Returns the time at which an event is due that is delayed with `probability`.
    pub(crate) fn due(&self, probability: f64) -> u64 {
        let delay =
            if self.chance(probability) { self.rng.borrow_mut().u64(1..=DELAY_MAX) } else { 0 };
        self.clock.get() + delay
    }

    /// Fails with the plan's probability. Called where the program's memory would be registered.
    fn register(&self) -> Result<(), Fault> {
        if self.chance(self.plan.registration_failure) {
            return Err(Fault::system("registering memory", ENOMEM));
        }
        Ok(())
    }

    /// Fails with the plan's probability. Called where the fabric's memory would be used up.
    fn take_memory(&self) -> Result<(), Fault> {
        if self.chance(self.plan.memory_failure) {
            return Err(Fault::system("allocating memory of the fabric", ENOMEM));
        }
        Ok(())
    }

    pub(crate) fn tick(&self) -> u64 {
        self.clock.set(self.clock.get() + 1);
        self.clock.get()
    }

    pub(crate) fn note_pending(&self) {
        let held = self.messages.held() + self.datagrams.held() + self.writes.held();
        self.pending.store(held, Ordering::SeqCst);
    }

    pub(crate) fn fail(&self, fault: Fault) {
        self.fault.borrow_mut().get_or_insert(fault);
    }
}

/// A sleep that is short while anything is held.
struct Light {
    inner: Arc<dyn Sleep>,
    /// Maximum length of a sleep.
    most: Duration,
    pending: Arc<AtomicUsize>,
}

impl Sleep for Light {
    fn arm(&self) -> Token {
        self.inner.arm()
    }

    fn sleep(&self, token: Token, limit: Duration) {
        let limit = match self.pending.load(Ordering::SeqCst) {
            0 => limit.min(self.most),
            _ => limit.min(Duration::from_micros(10)),
        };
        self.inner.sleep(token, limit);
    }

    fn disarm(&self) {
        self.inner.disarm();
    }

    fn ring(&self) {
        self.inner.ring();
    }
}

impl<F: Fabric> Fabric for FaultyFabric<F> {
    /// Returns the parts of the wrapped fabric, except the calls for signal handlers, which would see messages too early.
    fn facets(&self) -> Facets<'_> {
        let inner = self.inner.facets();
        Facets {
            mapped_memory: inner.mapped_memory.map(|_| self as _),
            registration: Some(self),
            rails: inner.rails.map(|_| self as _),
            immediates: inner.immediates.map(|_| self as _),
            signal_safe: None,
            helper: Some(self),
            multicast: inner.multicast.map(|_| self as _),
            nodes: inner.nodes.map(|_| self as _),
            simulated: inner.simulated.map(|_| self as _),
        }
    }

    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn copies(&self) -> &Copies {
        self.inner.copies()
    }

    fn capabilities(&self, peer: usize) -> Capabilities {
        let mut capabilities = self.inner.capabilities(peer);
        // Operations complete late.
        capabilities.synchronous = false;
        if self.plan.reorder && !self.plan.claim_order {
            capabilities.in_order_placement = false;
        }
        capabilities
    }

    fn counters(&self) -> &Counters {
        self.inner.counters()
    }

    fn fault(&self) -> Option<Fault> {
        self.fault.borrow().clone().or_else(|| self.inner.fault())
    }

    fn allocate(&self, len: usize) -> Result<Region, Fault> {
        self.take_memory()?;
        self.inner.allocate(len)
    }

    fn expose(&self, memory: Sge) -> Result<Region, Fault> {
        self.register()?;
        self.inner.expose(memory)
    }

    fn withdraw(&self, region: Region) {
        self.inner.withdraw(region);
    }

    fn flag(&self, region: &Region, offset: usize, kind: FlagKind) -> Flag {
        self.inner.flag(region, offset, kind)
    }

    fn write(&self, peer: usize, write: &RemoteWrite) -> Result<(), Fault> {
        self.write_late(peer, write, WriteEnding::Nothing)
    }

    fn write_flag(&self, peer: usize, write: &RemoteWrite, then: &FlagWrite) -> Result<(), Fault> {
        self.write_late(peer, write, WriteEnding::Flag(*then))
    }

    fn read(&self, peer: usize, read: &RemoteRead) -> Result<(), Fault> {
        if read.dst.len() > self.inner.capabilities(peer).send_max {
            self.register()?;
        }
        self.pass_on(read.done, |done| self.inner.read(peer, &RemoteRead { done, ..*read }))
    }

    fn fetch_add(&self, peer: usize, add: &FetchAdd) -> Result<(), Fault> {
        self.pass_on(add.done, |done| self.inner.fetch_add(peer, &FetchAdd { done, ..*add }))
    }

    fn compare_swap(&self, peer: usize, swap: &CompareSwap) -> Result<(), Fault> {
        self.pass_on(swap.done, |done| {
            self.inner.compare_swap(peer, &CompareSwap { done, ..*swap })
        })
    }

    fn send(&self, peer: usize, head: Head, payload: Sge, done: Completion) -> PostOutcome {
        self.inner.send(peer, head, payload, done)
    }

    fn receive(&self, from: Option<usize>) -> Option<ArrivedMessage> {
        self.receive_late(from)
    }

    fn release(&self, message: ArrivedMessage) {
        self.messages.release(&message);
    }

    fn progress(&self) -> bool {
        self.tick();
        let moved = self.move_writes();
        self.note_pending();
        self.inner.progress() | moved
    }

    fn keeps_back(&self) -> bool {
        self.writes.held() > 0 || self.inner.keeps_back()
    }

    fn idle(&self) -> bool {
        self.writes.held() == 0 && self.inner.idle()
    }

    fn sleeper(&self) -> Arc<dyn Sleep> {
        let (inner, pending) = (self.inner.sleeper(), self.pending.clone());
        Arc::new(Light { inner, most: Duration::MAX, pending })
    }
}

impl<F: Fabric> weft_fabric::MappedMemory for FaultyFabric<F> {
    fn allocate_on_node(&self, len: usize) -> Result<Region, Fault> {
        self.take_memory()?;
        self.inner.allocate_on_node(len)
    }

    fn allocate_spare(&self, len: usize) -> Result<Region, Fault> {
        self.take_memory()?;
        self.inner.allocate_spare(len)
    }

    fn lies_within(&self, _memory: Sge) -> bool {
        false
    }

    fn mapped(&self, _peer: usize, _at: RemoteAddr, _len: usize) -> Option<Sge> {
        None
    }

    // Memory that a process sees is not delayed. So it is hidden, except from programs that ask for it.
    fn shown(&self, peer: usize, at: RemoteAddr, len: usize) -> Option<Sge> {
        self.inner.shown(peer, at, len)
    }

    fn populate(&self, memory: Sge) {
        self.inner.populate(memory);
    }

    fn words(&self, _peer: usize, _at: RemoteAddr, _count: usize) -> Option<PeerWords> {
        None
    }
}

impl<F: Fabric> weft_fabric::Registration for FaultyFabric<F> {
    fn prepare(&self, memory: Sge, way: RdmaDirection) -> Result<Option<Region>, Fault> {
        self.register()?;
        self.inner.prepare(memory, way)
    }

    fn adopt(&self, memory: Sge) -> Result<Region, Fault> {
        self.inner.adopt(memory)
    }
}

/// Writes are late on every rail, so no write can be promised to come after the writes before it.
impl<F: Fabric> weft_fabric::Rails for FaultyFabric<F> {
    fn write_over(&self, _rail: usize, peer: usize, write: &RemoteWrite) -> Result<(), Fault> {
        self.write(peer, write)
    }

    fn read_over(&self, rail: usize, peer: usize, read: &RemoteRead) -> Result<(), Fault> {
        self.pass_on(read.done, |done| {
            self.inner.read_over(rail, peer, &RemoteRead { done, ..*read })
        })
    }

    fn write_flag_after(&self, _: usize, _: usize, _: &FlagWrite) -> Result<bool, Fault> {
        Ok(false)
    }

    fn rail_works(&self, rail: usize, peer: usize) -> bool {
        self.inner.rail_works(rail, peer)
    }

    fn fragment_min(&self) -> Option<usize> {
        self.inner.fragment_min()
    }
}

impl<F: Fabric> weft_fabric::Immediates for FaultyFabric<F> {
    fn write_imm(&self, peer: usize, write: &RemoteWrite, immediate: u32) -> Result<(), Fault> {
        self.write_late(peer, write, WriteEnding::Immediate(immediate))
    }

    fn immediate(&self, immediate: u32) -> Counter {
        self.inner.immediate(immediate)
    }
}

impl<F: Fabric> weft_fabric::Helper for FaultyFabric<F> {
    fn send_solicited(
        &self,
        peer: usize,
        head: Head,
        payload: Sge,
        done: Completion,
    ) -> PostOutcome {
        self.inner.send_solicited(peer, head, payload, done)
    }

    fn helper(&self) -> Arc<dyn Sleep> {
        // Operations that the main thread has left behind and that are held wake nobody.
        let (inner, pending) = (self.inner.helper(), self.pending.clone());
        Arc::new(Light { inner, most: Duration::from_millis(1), pending })
    }

    fn let_helper_sleep_at_ends(&self) {
        self.inner.let_helper_sleep_at_ends();
    }

    fn moves_by_progress(&self) -> bool {
        self.inner.moves_by_progress()
    }
}

impl<F: Fabric> weft_fabric::Multicast for FaultyFabric<F> {
    fn join(&self, group: GroupId) {
        self.inner.join(group);
    }

    fn leave(&self, group: GroupId) {
        self.inner.leave(group);
        self.datagrams.forget(group);
    }

    fn multicast(&self, group: GroupId, src: Sge) -> Result<(), Fault> {
        self.inner.multicast(group, src)
    }

    fn receive_multicast(&self, into: Sge) -> Option<Datagram> {
        self.receive_multicast_badly(into)
    }
}

impl<F: Fabric> weft_fabric::Nodes for FaultyFabric<F> {
    fn node(&self, peer: usize) -> usize {
        self.inner.node(peer)
    }

    fn groups(&self, peer: usize) -> Option<weft_fabric::copies::ProcessorGroups> {
        self.inner.groups(peer)
    }

    fn same_arithmetic(&self) -> bool {
        self.inner.same_arithmetic()
    }
}

impl<F: Fabric> weft_fabric::Simulated for FaultyFabric<F> {
    fn poll_any(
        &self,
        waits: &[(Counter, u64)],
        deadline: Option<Instant>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<usize, Fault>> {
        match &*self.fault.borrow() {
            Some(fault) => Poll::Ready(Err(fault.clone())),
            None => self.inner.poll_any(waits, deadline, cx),
        }
    }

    fn now(&self) -> Instant {
        self.inner.now()
    }

    fn poll_clock(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.inner.poll_clock(cx)
    }

    fn charge(&self, work: Work) {
        self.inner.charge(work);
    }

    fn look(&self) {
        self.inner.look();
    }

    /// Announces nothing, because messages may be kept back or come in another order.
    fn announce(&self, _wait: &AnnouncedWait<'_>) {}

    fn has_quiet_messages(&self) -> bool {
        false
    }

    fn take_quiet_rounds(&self) -> u32 {
        0
    }

    fn file_clock(&self) -> Option<Arc<dyn FileClock>> {
        self.inner.facets().simulated.and_then(|simulated| simulated.file_clock())
    }
}
