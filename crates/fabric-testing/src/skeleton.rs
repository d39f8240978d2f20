//! A fabric to copy when a new one is added: only the core, but complete, for one process that sends to itself. It passes the
//! core's part of this suite.
//!
//! Copy this file to `src/lib.rs` of a new crate `weft-fabric-NAME`, and give the crate its row in `xtask/src/layers.rs`. Replace
//! the code at each mark by that of the network, in the order of the marks' numbers, and run [`crate::core_tests!`] on two and more
//! ranks. Then add the optional parts ([`Facets`]) one by one, with [`crate::tests!`].
//!
//! | mark | what goes there |
//! |---|---|
//! | `(###) 1` | connect: exchange addresses by the bootstrap, bring queues up, check both ends |
//! | `(###) 2` | capabilities: measured or asked for, never guessed |
//! | `(###) 3` | memory: allocate and register; expose; withdraw and deregister |
//! | `(###) 4` | one-sided operations: check addresses, post, and keep back what finds no room |
//! | `(###) 5` | messages: head and payload in one buffer; credits; release gives them back |
//! | `(###) 6` | the optional parts that the network has |
//! | `(###) 7` | progress: completion queues to counters, backlogs to queues, faults to `fault` |
//! | `(###) 8` | sleeping: what interrupts a sleep, and silent flags that do not |

use std::alloc::{Layout, alloc_zeroed};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use weft_fabric::block::OwnedBlock;
use weft_fabric::wait::{Doorbell, Sleep};
use weft_fabric::{
    ArrivedMessage, Capabilities, CompareSwap, Completion, Copies, CopyModel, Counters, Fabric,
    Facets, Fault, FetchAdd, Flag, FlagKind, FlagWrite, Head, PostOutcome, Region, RemoteAddr,
    RemoteFlag, RemoteRead, RemoteWrite, Sge,
};

/// Maximum payload of one message, in bytes.
const SEND_MAX: usize = 4096;

/// Error of the system when there is no memory.
const ENOMEM: i32 = 12;

struct Skeleton {
    counters: Counters,
    copies: Copies,
    doorbell: Arc<Doorbell>,
    /// Memory that peers may reach, by key, with true if it was allocated here. Then the last key that was given.
    regions: RefCell<HashMap<u64, (Sge, bool)>>,
    keys: Cell<u64>,
    /// Allocated memory that was withdrawn. It stays mapped, because counters may lie in it.
    free: RefCell<Vec<Sge>>,
    /// Messages of this process to itself, and messages that were handed out, by token.
    loopback: RefCell<VecDeque<(Head, Box<[u8]>)>>,
    lent: RefCell<HashMap<u64, OwnedBlock<u8>>>,
}

impl Skeleton {
    /// (###) 1: take a `&mut dyn Bootstrap`, `put` the address of this process, `fence`, `get` the addresses of the peers, connect,
    /// and `fence` again. Errors name the peer, the adapter and what to do.
    fn connect() -> Skeleton {
        Skeleton {
            counters: Counters::new(),
            copies: Copies::new(Arc::new(CopyModel::GENERIC)),
            doorbell: Arc::new(Doorbell::new()),
            regions: RefCell::default(),
            keys: Cell::new(0),
            free: RefCell::default(),
            loopback: RefCell::default(),
            lent: RefCell::default(),
        }
    }

    fn name(&self, local: Sge, allocated: bool) -> Region {
        self.keys.set(self.keys.get() + 1);
        self.regions.borrow_mut().insert(self.keys.get(), (local, allocated));
        Region { local, remote: RemoteAddr::new(self.keys.get(), local.ptr().addr() as u64) }
    }

    /// Returns the `len` bytes at `at`, if a peer may reach them. The address is checked, because the peer may have sent anything.
    fn find(&self, at: RemoteAddr, len: usize) -> Result<Sge, Fault> {
        let regions = self.regions.borrow();
        let region = regions.get(&at.words()[0]).filter(|_| at.words()[2..] == [0, 0]);
        let found = region.and_then(|(region, _)| {
            let offset = usize::try_from(at.addr).ok()?.checked_sub(region.ptr().addr())?;
            (offset.checked_add(len)? <= region.len()).then(|| region.part(offset, len))
        });
        found.ok_or_else(|| Fault::corrupt(0, "an address that was not given"))
    }

    fn word(&self, at: RemoteAddr) -> Result<&AtomicU64, Fault> {
        let word = self.find(at, 8)?.ptr().cast::<AtomicU64>();
        match word.is_aligned() {
            // SAFETY: the word lies in a region, which stays mapped, and is aligned. All users access it by atomics only.
            true => Ok(unsafe { &*word }),
            false => Err(Fault::corrupt(0, "a word that is not aligned")),
        }
    }

    fn complete(&self, done: Completion) {
        if let Some(counter) = done {
            self.counters.add(counter, 1);
        }
    }
}

impl Fabric for Skeleton {
    fn facets(&self) -> Facets<'_> {
        // (###) 6: the core is enough to begin with.
        Facets::NONE
    }

    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn copies(&self) -> &Copies {
        // A network has nothing to say about copies. Shared memory measures them.
        &self.copies
    }

    fn capabilities(&self, _peer: usize) -> Capabilities {
        // (###) 2: every field as its documentation says. When in doubt, give the weaker answer: `mtu: 0`, `in_order_placement:
        // false`, `flags_wake: false`.
        Capabilities {
            fabric: "skeleton",
            send_max: SEND_MAX,
            inline_max: SEND_MAX,
            mtu: 0,
            multicast_max: 0,
            direct: true,
            in_order_placement: false,
            shares_memory: false,
            coherent_atomics: false,
            atomics: true,
            synchronous: false,
            by_progress: false,
            rails: 1,
            round_trip: 0,
            flags_wake: false,
        }
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn fault(&self) -> Option<Fault> {
        None
    }

    fn allocate(&self, len: usize) -> Result<Region, Fault> {
        // (###) 3: zeroed, 64-byte aligned, reserved before it is handed out. `expose` registers
        // the program's memory (through a cache, if that is slow); `withdraw` undoes either.
        let again = self.free.borrow().iter().position(|memory| memory.len() == len);
        if let Some(at) = again {
            let memory = self.free.borrow_mut().swap_remove(at);
            memory.fill(&vec![0; len]);
            return Ok(self.name(memory, true));
        }
        let refused = || Fault::system("allocating memory", ENOMEM);
        let layout = Layout::from_size_align(len.max(1), 64).map_err(|_| refused())?;
        // SAFETY: `alloc_zeroed` needs a layout of nonzero size: it has at least one byte.
        let memory = unsafe { alloc_zeroed(layout) };
        if memory.is_null() {
            return Err(refused());
        }
        // SAFETY: `Sge::new` needs memory that stays allocated: these are at least `len` bytes, which are never freed.
        Ok(self.name(unsafe { Sge::new(memory, len) }, true))
    }

    fn expose(&self, memory: Sge) -> Result<Region, Fault> {
        Ok(self.name(memory, false))
    }

    fn withdraw(&self, region: Region) {
        let named = self.regions.borrow_mut().remove(&region.remote.words()[0]);
        if let Some((memory, true)) = named {
            self.free.borrow_mut().push(memory);
        }
    }

    fn flag(&self, region: &Region, offset: usize, kind: FlagKind) -> Flag {
        // (###) 3, continued: if a network raises no event for a plain write, its waking flag carries the number of an immediate in
        // its key.
        let word = region.local.part(offset, 8).ptr().cast::<AtomicU64>();
        let word = NonNull::new(word).expect("memory");
        // SAFETY: `adopt` needs a word that stays mapped: allocated memory is never freed.
        let local = unsafe { self.counters.adopt(word) };
        let waking = kind == FlagKind::Waking;
        Flag { local, remote: RemoteFlag { at: region.at(offset), waking } }
    }

    fn write(&self, _peer: usize, write: &RemoteWrite) -> Result<(), Fault> {
        // (###) 4: keys and addresses come from peers, so check what the adapter does not check. Never wait for room: keep the
        // operation back and let `progress` post it.
        self.find(write.dst, write.src.len())?.copy_from(write.src);
        self.complete(write.done);
        Ok(())
    }

    fn write_flag(&self, peer: usize, write: &RemoteWrite, then: &FlagWrite) -> Result<(), Fault> {
        let word = self.word(then.flag.at)?;
        self.write(peer, write)?;
        word.store(then.value, Ordering::Release);
        self.doorbell.wake();
        Ok(())
    }

    fn read(&self, _peer: usize, read: &RemoteRead) -> Result<(), Fault> {
        read.dst.copy_from(self.find(read.src, read.dst.len())?);
        self.complete(read.done);
        Ok(())
    }

    fn fetch_add(&self, _peer: usize, add: &FetchAdd) -> Result<(), Fault> {
        let before = self.word(add.target)?.fetch_add(add.operand, Ordering::AcqRel);
        add.result.fill(&before.to_ne_bytes());
        self.complete(add.done);
        self.doorbell.wake();
        Ok(())
    }

    fn compare_swap(&self, _peer: usize, request: &CompareSwap) -> Result<(), Fault> {
        let &CompareSwap { target, compare, swap, result, done } = request;
        let (ok, failed) = (Ordering::AcqRel, Ordering::Acquire);
        let before = self.word(target)?.compare_exchange(compare, swap, ok, failed);
        result.fill(&before.unwrap_or_else(|found| found).to_ne_bytes());
        self.complete(done);
        self.doorbell.wake();
        Ok(())
    }

    fn send(&self, _peer: usize, head: Head, payload: Sge, _done: Completion) -> PostOutcome {
        // (###) 5: into a registered buffer of the peer, in order, within its credits. Return `Later` if there is no credit and the
        // payload is longer than `inline_max`. Wake the peer.
        let mut copy = vec![0; payload.len()].into_boxed_slice();
        payload.read(&mut copy);
        self.loopback.borrow_mut().push_back((head, copy));
        self.doorbell.wake();
        PostOutcome::Done
    }

    fn receive(&self, _from: Option<usize>) -> Option<ArrivedMessage> {
        let (head, copy) = self.loopback.borrow_mut().pop_front()?;
        let copy = OwnedBlock::new(copy);
        // SAFETY: `Sge::new` needs memory that stays until the operation is complete. The block stays in `lent` until `release`,
        // and its bytes do not move.
        let payload = unsafe { Sge::new(copy.first().as_ptr(), copy.len()) };
        self.keys.set(self.keys.get() + 1);
        let token = self.keys.get();
        self.lent.borrow_mut().insert(token, copy);
        Some(ArrivedMessage { peer: 0, head, payload, token })
    }

    fn release(&self, message: ArrivedMessage) {
        // (###) 5, continued: the buffer goes back to the queue, and its credit to the sender.
        self.lent.borrow_mut().remove(&message.token);
    }

    fn progress(&self) -> bool {
        // (###) 7: nearly free when there is nothing to do, because it is called at every poll.
        false
    }

    fn keeps_back(&self) -> bool {
        !self.idle()
    }

    fn idle(&self) -> bool {
        true
    }

    fn sleeper(&self) -> Arc<dyn Sleep> {
        // (###) 8: a network sleeps in `poll` over its completion channel and an eventfd. An event that is published after `arm`
        // must end the sleep.
        self.doorbell.clone()
    }
}

mod conforms {
    use super::Skeleton;
    use crate::conformance::Maker;

    crate::core_tests!(|| -> Vec<Maker<Skeleton>> { vec![Box::new(Skeleton::connect)] });
}
