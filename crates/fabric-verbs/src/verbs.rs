//! The fabric itself: the implementation of the fabric trait on [`VerbsState`].

use crate::address;
use crate::connect;
use crate::connection::ConnectionPhase;
use crate::connection::pending::{Attention, PendingAtomic, PostedMessage, WriteTail};
use crate::job::VerbsCore;
use crate::memory::{RegistrationTotals, Uses};
use crate::sizes::{INLINE_MAX, SEND_MAX};
use crate::sleep::VerbsSleeper;
use crate::sleep::helper_thread::SleepPlace;
use crate::state::onesided;
use crate::state::{VerbsState, peek};
use crate::watch;
use crate::{VerbsConnectError, VerbsOptions};
use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use weft_bootstrap::Bootstrap;
use weft_fabric::wait::Sleep;
use weft_fabric::{
    ArrivedMessage, Capabilities, CompareSwap, Completion, Copies, CopyModel, Counter, Counters,
    Datagram, Fabric, Facets, Fault, FetchAdd, Flag, FlagKind, FlagWrite, GroupId, Head, Peek,
    PostOutcome, RdmaDirection, Region, RemoteFlag, RemoteRead, RemoteWrite, Sge,
};

/// Maximum duration of a sleep while a connect request awaits its answer.
const WHILE_CONNECTING: Duration = Duration::from_millis(10);

/// The processes of a job, connected through InfiniBand or RoCE.
pub struct Verbs {
    pub(crate) state: RefCell<VerbsState>,
    pub(crate) core: VerbsCore,
    pub(crate) sleeper: Arc<VerbsSleeper>,
    copies: Copies,
}

// SAFETY: the fields that are not `Send` are pointers to registered memory and to objects of libibverbs, and the shared ownership
// of the counters. None of these fields is bound to a thread. Another owner of the counters is a fabric of the same process,
// which moves to another thread together with this fabric. `Verbs` is not `Sync`.
unsafe impl Send for Verbs {}

impl Verbs {
    /// Connects the processes of a job. All these processes call this function.
    pub fn connect(bootstrap: &mut dyn Bootstrap) -> Result<Verbs, VerbsConnectError> {
        Verbs::connect_with(bootstrap, VerbsOptions::default())
    }

    /// Connects like [`Verbs::connect`], with options.
    pub fn connect_with(
        bootstrap: &mut dyn Bootstrap,
        options: VerbsOptions,
    ) -> Result<Verbs, VerbsConnectError> {
        Verbs::connect_counting(bootstrap, options, Rc::default())
    }

    /// Connects like [`Verbs::connect_with`], but with counters that another fabric of this process also uses.
    pub fn connect_counting(
        bootstrap: &mut dyn Bootstrap,
        options: VerbsOptions,
        counters: Rc<Counters>,
    ) -> Result<Verbs, VerbsConnectError> {
        let (core, state) = connect::connect(bootstrap, options, counters)?;
        let bases = state.rails.iter().map(|rail| rail.base.clone()).collect();
        let sleeper = VerbsSleeper::new(bases).map_err(|error| {
            let device = "this process".to_owned();
            VerbsConnectError::System { what: "making a descriptor to sleep on", device, error }
        })?;
        if !core.options.keepalive.is_zero() {
            sleeper.set_limit(core.options.keepalive / 2);
        }
        // Ranks of one machine share memory through another fabric, so this fabric needs no measured copy model.
        let copies = Copies::new(Arc::new(CopyModel::GENERIC));
        Ok(Verbs { state: RefCell::new(state), core, sleeper: Arc::new(sleeper), copies })
    }

    /// Describes [`Fabric::fault`] in words: the peer, its host, the time for which the adapter tried, and the likely causes.
    pub fn trouble(&self) -> Option<String> {
        self.state.borrow().trouble.text().map(str::to_owned)
    }

    /// Lets `other` end sleeps when it becomes readable, so that another fabric of this process can wake this fabric. After such a
    /// sleep, all bytes are read from `other`, which must not block. Only the first call has an effect.
    pub fn watch(&self, other: OwnedFd) {
        self.sleeper.watch(other);
    }

    /// Lets `other` end sleeps of the helper thread ([`weft_fabric::FabricExt::helper`]), as [`Verbs::watch`] does for the
    /// program's threads.
    pub fn watch_for_helper(&self, other: OwnedFd) {
        self.sleeper.helping.watch(other);
    }

    /// Returns the totals of registrations with the adapters.
    pub fn registrations(&self) -> RegistrationTotals {
        self.state.borrow().memories.totals
    }

    /// Returns the number of first connections, one per connected peer.
    pub fn connections(&self) -> usize {
        self.state.borrow().connections.connected()
    }

    /// Returns the number of open secondary connections: at most one for each peer and further rail, for writes and reads.
    pub fn secondary_connections(&self) -> usize {
        self.state.borrow().connections.secondary_open()
    }

    /// Returns the number of multicast datagrams that this process has dropped, because there was no room to send or to keep them.
    pub fn datagrams_lost(&self) -> u64 {
        self.state.borrow().multicast.as_ref().map_or(0, |multicast| multicast.lost)
    }

    /// Describes rails, limits and usage, line by line.
    pub fn describe(&self) -> Vec<String> {
        crate::describe::describe(&self.core, &self.state.borrow())
    }

    #[inline]
    fn posting<R>(&self, post: impl FnOnce(&mut VerbsState, &VerbsCore) -> R) -> R {
        let state = &mut *self.state.borrow_mut();
        let result = post(state, &self.core);
        if state.is_busy(&self.core) {
            self.sleeper.helping.set_busy(true);
        }
        result
    }

    /// Posts a one-sided operation.
    fn posting_for<R>(
        &self,
        done: Completion,
        post: impl FnOnce(&mut VerbsState, &VerbsCore) -> R,
    ) -> R {
        if done.is_some() {
            self.sleeper.helping.expect(&self.sleeper.bases);
        }
        self.posting(post)
    }

    /// Does the work that is due at this time: repeats connect requests, and probes silent peers.
    #[cold]
    fn look_at_the_clock(&self, state: &mut VerbsState) {
        let now = Instant::now();
        state.greet_again(&self.core, now);
        if self.core.alarm.load(Ordering::Acquire) {
            state.hear_of_links(&self.core);
        }
        let keepalive = self.core.options.keepalive;
        // The interval has two checks, so that a peer that becomes silent right after a check is still probed within the interval.
        let look = keepalive / 2;
        let connecting = state.handshakes.is_connecting(&self.core, &state.connections);
        let limit = match (!connecting, keepalive.is_zero()) {
            (false, _) => WHILE_CONNECTING,
            (true, false) => look,
            (true, true) => Duration::MAX,
        };
        self.sleeper.set_limit(limit);
        if !keepalive.is_zero() && state.watch.is_keepalive_due(now, look) {
            state.ask_silent_peers();
        }
        if self.sleeper.take_asynchronous() {
            for rail in &state.rails {
                watch::hear(rail, &mut state.trouble);
            }
        }
    }
}

mod facets;

impl Fabric for Verbs {
    fn facets(&self) -> Facets<'_> {
        Facets {
            mapped_memory: None,
            registration: Some(self),
            rails: Some(self),
            immediates: Some(self),
            signal_safe: Some(self),
            helper: Some(self),
            multicast: Some(self),
            nodes: Some(self),
            simulated: None,
        }
    }

    fn rank(&self) -> usize {
        self.core.rank
    }

    fn size(&self) -> usize {
        self.core.size
    }

    fn copies(&self) -> &Copies {
        &self.copies
    }

    fn capabilities(&self, peer: usize) -> Capabilities {
        let core = &self.core;
        let state = self.state.borrow();
        let number = core.rail_to(peer);
        let rail = &state.rails[number];
        let there = core.address_of(peer, number);
        let multicast = state.multicast.as_ref().filter(|_| peer < core.size);
        Capabilities {
            fabric: "verbs",
            send_max: SEND_MAX,
            inline_max: INLINE_MAX,
            mtu: rail.port.mtu.min(there.mtu as usize),
            // Multicast groups contain only processes of this job.
            multicast_max: multicast.map_or(0, |multicast| multicast.max),
            direct: true,
            // The adapter at the other end determines the order of the bytes, but both ends must declare the order.
            in_order_placement: rail.in_order() && there.in_order,
            shares_memory: false,
            coherent_atomics: false,
            // Atomics on the memory of a peer go through only one rail.
            atomics: core.address_of(peer, core.home(peer) % core.rails).atomics,
            synchronous: false,
            by_progress: false,
            rails: core.rails_to(peer),
            round_trip: 0,
            flags_wake: false,
        }
    }

    fn counters(&self) -> &Counters {
        &self.core.counters
    }

    fn fault(&self) -> Option<Fault> {
        self.state.borrow().trouble.fault().cloned()
    }

    fn allocate(&self, len: usize) -> Result<Region, Fault> {
        self.state.borrow_mut().memories.allocate(len)
    }

    fn expose(&self, memory: Sge) -> Result<Region, Fault> {
        // SAFETY: `expose` needs memory that stays mapped: the maker of the `Sge` promised that the memory lives until it is
        // withdrawn.
        unsafe { self.state.borrow_mut().memories.expose(memory, Uses::Reads) }
    }

    fn withdraw(&self, region: Region) {
        let state = &mut *self.state.borrow_mut();
        let (start, len) = (region.local.ptr().addr(), region.local.len());
        if !address::is_programs(&region) {
            state.silent.retain(|&word| word < start || word >= start + len);
            self.sleeper.set_silent(!state.silent.is_empty());
        }
        state.memories.withdraw(region);
    }

    fn flag(&self, region: &Region, offset: usize, kind: FlagKind) -> Flag {
        assert!(!address::is_programs(region), "a flag outside of allocated memory");
        let word = region.local.part(offset, 8).ptr().cast::<AtomicU64>();
        assert!(word.is_aligned(), "a flag at offset {offset}, which is not a multiple of 8");
        let state = &mut *self.state.borrow_mut();
        let waking = kind == FlagKind::Waking;
        if !waking {
            state.silent.push(word.addr());
            self.sleeper.set_silent(true);
        }
        let word = NonNull::new(word).expect("part of allocated memory");
        // SAFETY: `adopt` needs a word that lives as long as the counters: allocated memory stays mapped as long as the
        // fabric.
        let local = unsafe { self.core.counters.adopt(word) };
        let mut at = region.at(offset);
        if waking {
            // The address carries the waking mark, so atomics on the word also wake its owner.
            at = address::waking(at);
        }
        Flag { local, remote: RemoteFlag { at, waking } }
    }

    fn write(&self, peer: usize, write: &RemoteWrite) -> Result<(), Fault> {
        self.posting_for(write.done, |state, core| {
            state.write(core, peer, write, WriteTail::Nothing)
        })
    }

    fn write_flag(&self, peer: usize, write: &RemoteWrite, then: &FlagWrite) -> Result<(), Fault> {
        let tail = onesided::flag(peer, then)?;
        self.posting_for(write.done, |state, core| state.write(core, peer, write, tail))
    }

    fn read(&self, peer: usize, read: &RemoteRead) -> Result<(), Fault> {
        self.posting_for(read.done, |state, core| state.read(core, peer, read))
    }

    fn fetch_add(&self, peer: usize, add: &FetchAdd) -> Result<(), Fault> {
        let &FetchAdd { target, operand, result, done } = add;
        let what = PendingAtomic::Add { operand };
        self.posting_for(done, |state, core| state.atomic(core, peer, target, what, result, done))
    }

    fn compare_swap(&self, peer: usize, request: &CompareSwap) -> Result<(), Fault> {
        let &CompareSwap { target, compare, swap, result, done } = request;
        let what = PendingAtomic::Swap { compare, swap };
        self.posting_for(done, |state, core| state.atomic(core, peer, target, what, result, done))
    }

    #[inline]
    fn send(&self, peer: usize, head: Head, payload: Sge, done: Completion) -> PostOutcome {
        let message = PostedMessage { head, attention: Attention::Program, payload };
        self.posting(|state, core| state.send(core, peer, message, done))
    }

    #[inline]
    fn receive(&self, from: Option<usize>) -> Option<ArrivedMessage> {
        let VerbsState { arrivals, connections, rails, .. } = &mut *self.state.borrow_mut();
        arrivals.receive(connections, rails, from)
    }

    #[inline]
    fn release(&self, message: ArrivedMessage) {
        self.posting(|state, core| state.release(core, &message));
    }

    #[inline]
    fn progress(&self) -> bool {
        let state = &mut *self.state.borrow_mut();
        let mut moved = state.poll(&self.core);
        if !state.debts.is_empty() {
            moved |= state.pay(&self.core);
        }
        if state.kept.waits() {
            moved |= state.drain_all(&self.core);
        }
        if state.secondary.holds_work() {
            moved |= state.tend(&self.core);
        }
        let nth = state.watch.count_turn();
        let slept = self.sleeper.take_slept();
        if slept || nth && !moved {
            self.look_at_the_clock(state);
        }
        self.sleeper.helping.set_awaited(state.posting.awaits());
        self.sleeper.helping.set_busy(state.is_busy(&self.core));
        moved
    }

    fn keeps_back(&self) -> bool {
        self.state.borrow().is_busy(&self.core)
    }

    fn idle(&self) -> bool {
        let state = &mut *self.state.borrow_mut();
        if state.keeps_work() {
            return false;
        }
        let mut idle = true;
        for peer in state.connections.numbers() {
            let Some(link) = state.connections.get(peer) else { continue };
            if link.phase != ConnectionPhase::Open || link.outstanding() == 0 {
                continue;
            }
            idle = false;
            // Without a probe, this process would never learn that the last unsignaled requests have completed.
            if link.unsignaled > 0 {
                state.probe(peer);
            }
        }
        idle
    }

    fn sleeper(&self) -> Arc<dyn Sleep> {
        self.sleeper.clone()
    }
}
