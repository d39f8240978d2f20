//! [`Ofi`], the fabric on top of a provider.

use crate::OfiConnectError;
use crate::address;
use crate::connect;
use crate::job::OfiCore;
use crate::options::{OfiOptions, RAILS_MAX};
use crate::registrations::RegistrationCounts;
use crate::requests::{RemoteTransfer, TransferTail};
use crate::state::arrive::{atomically, word};
use crate::state::{EventCounts, OfiState};
use crate::wire::OfiMessageKind;
use crate::work::{INLINE_MAX, OfiWork, PLACE_MAX, check};
use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use weft_bootstrap::Bootstrap;
use weft_fabric::wait::Sleep;
use weft_fabric::{
    ArrivedMessage, Capabilities, CompareSwap, Completion, Copies, CopyModel, Counters, Fabric,
    Facets, Fault, FetchAdd, Flag, FlagKind, FlagWrite, Head, PostOutcome, Region, RemoteAddr,
    RemoteFlag, RemoteRead, RemoteWrite, Sge,
};

mod ending;
mod facets;
mod other_jobs;

/// Resources that the endpoint of one process uses, and counts of its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Number of peers with which this process has exchanged data. With a provider that makes connections, this is the number of
    /// connections.
    pub peers: usize,
    /// Size of the endpoint's own buffers, in bytes.
    pub buffers: usize,
    /// Number of bytes registered with the provider, including the buffers.
    pub registered: usize,
    /// Number of registered pieces of memory.
    pub registrations: usize,
    /// Number of pieces of memory registered so far.
    pub registrations_made: u64,
    /// Number of uses of memory that found an existing registration.
    pub registrations_found: u64,
    /// Number of messages that were dropped because they did not belong to the job.
    pub strangers: u64,
    /// Number of bytes of completed writes and reads, by rail.
    pub carried: [u64; RAILS_MAX],
    /// Number of writes and reads that were repeated because their rail had failed.
    pub repeated: u64,
    /// Number of peers that were reached over a network other than the agreed network.
    pub detours: u64,
}

/// Endpoint of one process in a network that libfabric supports.
pub struct Ofi {
    core: OfiCore,
    copies: Copies,
    state: RefCell<OfiState>,
}

impl Ofi {
    /// Connects the processes of a job. All these processes call this function, each with its own options.
    pub fn connect(
        bootstrap: &mut dyn Bootstrap,
        options: OfiOptions,
    ) -> Result<Ofi, OfiConnectError> {
        Ofi::connect_counting(bootstrap, options, Rc::new(Counters::new()))
    }

    /// Connects like [`Ofi::connect`], with a table of counters that another fabric of this process also uses.
    pub fn connect_counting(
        bootstrap: &mut dyn Bootstrap,
        options: OfiOptions,
        counters: Rc<Counters>,
    ) -> Result<Ofi, OfiConnectError> {
        let (core, state) = connect::connect(bootstrap, &options, counters)?;
        let copies = Copies::new(Arc::new(CopyModel::GENERIC));
        Ok(Ofi { core, copies, state: RefCell::new(state) })
    }

    /// Lets `other` wake the program's threads when it becomes readable. `other` is the descriptor that rings another fabric of
    /// this process.
    pub fn watch(&self, other: OwnedFd) {
        self.core.sleeper.watch(other);
    }

    /// Lets `other` wake the helper thread, as [`Ofi::watch`] does for the program's threads.
    pub fn watch_for_helper(&self, other: OwnedFd) {
        self.core.helper.watch(other);
    }

    /// Returns the reason for the reported fault, with host, address and interface, or `None` if there is no fault.
    pub fn trouble(&self) -> Option<String> {
        self.state.borrow().trouble.text().map(str::to_owned)
    }

    /// Returns true if the provider is the built-in TCP, which needs no library.
    pub fn is_built_in(&self) -> bool {
        self.core.objects.version().is_none()
    }

    /// Describes the networks and resources in use, with reasons, in lines for the user.
    pub fn describe(&self) -> Vec<String> {
        let core = &self.core;
        let facts = &core.objects.facts;
        let usage = self.usage();
        let Usage {
            peers, buffers, registered, registrations, strangers, carried, repeated, ..
        } = usage;
        let sleeps = match core.objects.wait() {
            Some(_) => "sleeps on the provider's descriptor",
            None => "naps of 50 us to 1 ms, since the provider has no descriptor to sleep on",
        };
        let by = match core.objects.version() {
            Some(version) => format!("libfabric {version}: {}", facts.provider),
            None => format!("{}, which needs no library,", facts.provider),
        };
        let mut lines = vec![
            format!("{by} on {}, network {} ({})", facts.domain, facts.network, core.why),
            format!("address: {}; {sleeps}", core.place(core.rank).address),
            format!(
                "peers: {peers} of {}, each with room for {} messages of up to {} bytes; buffers: {} KiB",
                self.processes() - 1,
                core.credits,
                facts.send_max(),
                buffers >> 10
            ),
            format!(
                "registered memory: {} KiB in {registrations} pieces; {} were made, {} found",
                registered >> 10,
                usage.registrations_made,
                usage.registrations_found
            ),
        ];
        for (rail, bytes) in core.others.iter().zip(&carried[1..]) {
            let facts = &rail.objects.facts;
            let (domain, network) = (&facts.domain, &facts.network);
            let (address, mib) = (&rail.addresses[core.rank], bytes >> 20);
            lines.push(format!(
                "rail: {domain}, network {network}, address {address}; has carried {mib} MiB"
            ));
        }
        if repeated > 0 {
            lines.push(format!("{repeated} writes and reads were repeated over the first rail"));
        }
        lines.extend(self.state.borrow().trouble.notes().iter().cloned());
        if strangers > 0 {
            lines.push(format!("{strangers} messages of strangers, dropped"));
        }
        lines
    }

    /// Returns the resources used until now.
    pub fn usage(&self) -> Usage {
        let state = self.state.borrow();
        let (registrations, registered) = state.memory.totals();
        let EventCounts { carried, repeated, detours, strangers } = state.counts;
        let RegistrationCounts { made, found } = state.memory.registrations.totals;
        Usage {
            peers: state.peers.count(),
            buffers: state.pools.bytes(),
            registered,
            registrations,
            registrations_made: made,
            registrations_found: found,
            strangers,
            carried,
            repeated,
            detours,
        }
    }

    fn posting<R>(&self, post: impl FnOnce(&mut OfiState, &OfiCore) -> R) -> R {
        post(&mut self.state.borrow_mut(), &self.core)
    }

    /// Writes data to this process itself, and performs the tail of the write.
    fn write_here(
        &self,
        src: Sge,
        dst: Option<RemoteAddr>,
        tail: Option<TransferTail>,
    ) -> Result<(), Fault> {
        let (core, state) = (&self.core, &*self.state.borrow());
        let flag = match tail {
            Some(TransferTail::Flag(at, value)) => {
                Some((state.memory.find_word(core.rank, at)?, value))
            }
            _ => None,
        };
        if let Some(dst) = dst {
            state.memory.find(core.rank, dst, src.len())?.copy_from(src);
        }
        if let Some((memory, value)) = flag {
            word(memory).store(value, Ordering::Release);
        }
        if let Some(TransferTail::Immediate(number)) = tail {
            let counter = core.counters.immediate(number);
            core.counters.add(counter, 1);
        }
        core.sleeper.ring();
        Ok(())
    }

    fn write_with(
        &self,
        peer: usize,
        write: &RemoteWrite,
        tail: Option<TransferTail>,
    ) -> Result<(), Fault> {
        let &RemoteWrite { src, dst, done } = write;
        if let Some(tail) = tail {
            check(peer, tail)?;
        }
        let target = match (src.is_empty(), tail) {
            // For a flag without data, the address of the data is not used. For an immediate without data, the address must be
            // valid.
            (true, Some(TransferTail::Flag(..)) | None) => None,
            _ => Some(address::decode(peer, dst, src.len())?),
        };
        if peer == self.core.rank {
            self.write_here(src, target.map(|_| dst), tail)?;
            self.core.complete(done);
            return Ok(());
        }
        let Some(target) = target else {
            return match tail {
                Some(tail) => self.posting(|state, core| {
                    state.ask(
                        core,
                        peer,
                        OfiWork::Place { src: Box::default(), dst: None, tail, done },
                    )
                }),
                None => {
                    self.core.complete(done);
                    Ok(())
                }
            };
        };
        if let Some(tail) = tail
            && src.len() <= PLACE_MAX
        {
            let mut copy = vec![0; src.len()].into_boxed_slice();
            src.read(&mut copy);
            let work = OfiWork::Place { src: copy, dst: Some(dst), tail, done };
            return self.posting(|state, core| state.ask(core, peer, work));
        }
        self.transfer(peer, RemoteTransfer::write(src, target, tail, done), None)
    }

    /// Posts a transfer in parts that are short enough for the provider, over `rail` if a rail is given.
    fn transfer(
        &self,
        peer: usize,
        whole: RemoteTransfer,
        rail: Option<usize>,
    ) -> Result<(), Fault> {
        let most = self.core.objects.facts.transfer_max;
        self.posting(|state, core| {
            for part in whole.parts(most) {
                match rail {
                    None => state.ask(core, peer, OfiWork::Transfer(part))?,
                    Some(rail) => state.ask_over(core, rail, peer, part)?,
                }
            }
            Ok(())
        })
    }

    fn atomic(
        &self,
        peer: usize,
        kind: OfiMessageKind,
        at: RemoteAddr,
        operands: [u64; 2],
        result: Sge,
        done: Completion,
    ) -> Result<(), Fault> {
        address::decode_word(peer, at)?;
        if peer != self.core.rank {
            let work = OfiWork::Atomic { kind, at, operands, result, done };
            return self.posting(|state, core| state.ask(core, peer, work));
        }
        let word = word(self.state.borrow().memory.find_word(peer, at)?);
        result.fill(&atomically(word, kind, operands).to_ne_bytes());
        self.core.complete(done);
        self.core.sleeper.ring();
        Ok(())
    }
}

impl Fabric for Ofi {
    fn facets(&self) -> Facets<'_> {
        Facets {
            registration: Some(self),
            rails: if self.core.others.is_empty() { None } else { Some(self) },
            immediates: Some(self),
            helper: Some(self),
            nodes: Some(self),
            ..Facets::NONE
        }
    }

    fn rank(&self) -> usize {
        self.core.rank
    }

    fn size(&self) -> usize {
        self.core.size
    }

    fn capabilities(&self, peer: usize) -> Capabilities {
        Capabilities {
            fabric: "ofi",
            send_max: self.core.objects.facts.send_max(),
            inline_max: INLINE_MAX,
            mtu: 0,
            multicast_max: 0,
            direct: true,
            in_order_placement: false,
            // The target's processor does the atomics.
            shares_memory: false,
            coherent_atomics: true,
            atomics: true,
            synchronous: false,
            by_progress: true,
            round_trip: self.core.objects.facts.round_trip,
            rails: if peer == self.core.rank || peer >= self.core.size {
                1
            } else {
                self.core.rails()
            },
            // A flag is a message, and messages wake sleepers.
            flags_wake: true,
        }
    }

    fn copies(&self) -> &Copies {
        &self.copies
    }

    fn counters(&self) -> &Counters {
        &self.core.counters
    }

    fn fault(&self) -> Option<Fault> {
        self.state.borrow().trouble.fault().cloned()
    }

    fn allocate(&self, len: usize) -> Result<Region, Fault> {
        self.state.borrow_mut().memory.allocate(len)
    }

    fn expose(&self, memory: Sge) -> Result<Region, Fault> {
        self.state.borrow_mut().memory.expose(memory)
    }

    fn withdraw(&self, region: Region) {
        self.state.borrow_mut().memory.withdraw(region);
    }

    fn flag(&self, region: &Region, offset: usize, kind: FlagKind) -> Flag {
        let word = region.local.part(offset, 8).ptr().cast();
        let word = NonNull::new(word).expect("memory");
        // SAFETY: `adopt` needs a word that stays mapped: allocated memory is not unmapped before this fabric is dropped.
        let local = unsafe { self.core.counters.adopt(word) };
        let waking = kind == FlagKind::Waking;
        Flag { local, remote: RemoteFlag { at: region.at(offset), waking } }
    }

    fn write(&self, peer: usize, write: &RemoteWrite) -> Result<(), Fault> {
        self.write_with(peer, write, None)
    }

    fn write_flag(&self, peer: usize, write: &RemoteWrite, then: &FlagWrite) -> Result<(), Fault> {
        self.write_with(peer, write, Some(TransferTail::Flag(then.flag.at, then.value)))
    }

    fn read(&self, peer: usize, read: &RemoteRead) -> Result<(), Fault> {
        let &RemoteRead { dst, src, done } = read;
        if dst.is_empty() {
            self.core.complete(done);
            return Ok(());
        }
        let target = address::decode(peer, src, dst.len())?;
        if peer == self.core.rank {
            dst.copy_from(self.state.borrow().memory.find(peer, src, dst.len())?);
            self.core.complete(done);
            return Ok(());
        }
        self.transfer(peer, RemoteTransfer::read(dst, target, done), None)
    }

    fn fetch_add(&self, peer: usize, add: &FetchAdd) -> Result<(), Fault> {
        let &FetchAdd { target, operand, result, done } = add;
        self.atomic(peer, OfiMessageKind::FetchAdd, target, [operand, 0], result, done)
    }

    fn compare_swap(&self, peer: usize, request: &CompareSwap) -> Result<(), Fault> {
        let &CompareSwap { target, compare, swap, result, done } = request;
        self.atomic(peer, OfiMessageKind::CompareSwap, target, [compare, swap], result, done)
    }

    fn send(&self, peer: usize, head: Head, payload: Sge, done: Completion) -> PostOutcome {
        let posted = self.posting(|state, core| state.send(core, peer, head, payload, done));
        if peer == self.core.rank {
            self.core.sleeper.ring();
        }
        posted
    }

    fn receive(&self, from: Option<usize>) -> Option<ArrivedMessage> {
        self.posting(|state, core| state.receive(core, from))
    }

    fn release(&self, message: ArrivedMessage) {
        self.posting(|state, core| state.release(core, &message));
    }

    fn progress(&self) -> bool {
        self.posting(|state, core| state.look(core))
    }

    fn keeps_back(&self) -> bool {
        let state = self.state.borrow();
        state.peers.waits() || state.repeats() || self.core.has_unsent()
    }

    fn idle(&self) -> bool {
        let state = self.state.borrow();
        state.requests.open() == 0
            && !state.peers.must_leave()
            && !state.repeats()
            && !self.core.has_unsent()
    }

    fn sleeper(&self) -> Arc<dyn Sleep> {
        self.core.sleeper.clone()
    }
}
