//! A fabric to copy when a new one is added: it compiles, connects one process with itself, and
//! marks every place where a real one has something to say. It is not exported.
//!
//! Copy this file to `src/lib.rs` of a new crate `weft-fabric-NAME`, give the crate its row in
//! `xtask/src/layers.rs`, fill in the holes in the order of their numbers, and run
//! `weft_fabric_conformance::tests!` on it. Until the last hole is filled some of those tests fail;
//! which ones tells what is next.
//!
//! | hole | what goes there |
//! |---|---|
//! | `(###) 1` | connect: exchange addresses by the bootstrap, bring queues up, check both ends |
//! | `(###) 2` | capabilities: measured or asked for, never guessed |
//! | `(###) 3` | memory: allocate and register; expose; withdraw and deregister |
//! | `(###) 4` | one-sided operations: check addresses, post, and keep back what finds no room |
//! | `(###) 5` | messages: head and payload in one buffer; credits; release gives them back |
//! | `(###) 6` | multicast, if there is any |
//! | `(###) 7` | progress: completion queues to counters, backlogs to queues, faults to `fault` |
//! | `(###) 8` | sleeping: what interrupts a sleep, and silent flags that do not |

use crate::block::Block;
use crate::wait::{Doorbell, Sleep};
use crate::{
    Capabilities, Completion, Copies, CopyModel, Counter, Counters, Datagram, Fabric, Fault, Flag,
    GroupId, Head, Message, Posted, Region, RemoteAddr, RemoteFlag, Sge,
};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

/// Largest payload of one message, in bytes.
const SEND_MAX: usize = 4096;

struct Skeleton {
    counters: Counters,
    copies: Copies,
    doorbell: Arc<Doorbell>,
    /// Messages on their way to ourselves.
    loopback: RefCell<VecDeque<(Head, Box<[u8]>)>>,
    /// The message that was handed out and not released.
    lent: RefCell<Option<Block<u8>>>,
}

impl Skeleton {
    /// (###) 1: take a `&mut dyn Bootstrap`; `put` our address, `fence`, `get` those of the peers,
    /// connect, and `fence` again. Errors name the peer, the adapter and what to do.
    fn connect() -> Skeleton {
        Skeleton {
            counters: Counters::new(),
            copies: Copies::new(Arc::new(CopyModel::GENERIC)),
            doorbell: Arc::new(Doorbell::new()),
            loopback: RefCell::default(),
            lent: RefCell::default(),
        }
    }
}

/// What a hole answers until it is filled.
fn missing(rank: usize, what: &'static str) -> Result<(), Fault> {
    Err(Fault::unsupported(rank, what))
}

impl Fabric for Skeleton {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn copies(&self) -> &Copies {
        // A network has nothing to say of it; shared memory measures.
        &self.copies
    }

    fn capabilities(&self, _peer: usize) -> Capabilities {
        // (###) 2: every field by its documentation. When in doubt, the weaker answer: `mtu: 0`,
        // `in_order_placement: false`, `flags_wake: false`.
        Capabilities {
            fabric: "skeleton",
            send_max: SEND_MAX,
            inline_max: SEND_MAX,
            mtu: 0,
            multicast_max: 0,
            direct: false,
            in_order_placement: false,
            coherent_atomics: false,
            atomics: false,
            synchronous: false,
            rails: 1,
            flags_wake: false,
        }
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn allocate(&self, _len: usize) -> Result<Region, Fault> {
        // (###) 3: zeroed, 64-byte aligned, reserved before it is handed out. `expose` registers
        // the program's memory (through a cache, if that is slow); `withdraw` undoes either.
        Err(Fault::unsupported(0, "allocate memory"))
    }

    fn expose(&self, _memory: Sge) -> Result<Region, Fault> {
        Err(Fault::unsupported(0, "expose memory"))
    }

    fn withdraw(&self, _region: Region) {}

    fn flag(&self, _region: &Region, _offset: usize, _waking: bool) -> Flag {
        // (###) 3, continued: `Counters::adopt` of the word; a waking flag of a network that raises
        // no event for a plain write carries the number of an immediate in its key.
        unreachable!("there is no region to have a flag in")
    }

    fn write(
        &self,
        peer: usize,
        _src: Sge,
        _dst: RemoteAddr,
        _done: Completion,
    ) -> Result<(), Fault> {
        // (###) 4: keys and addresses come from peers: check what the adapter does not. Never wait
        // for room: keep the operation back and let `progress` post it.
        missing(peer, "write")
    }

    fn write_flag(
        &self,
        peer: usize,
        _src: Sge,
        _dst: RemoteAddr,
        _flag: RemoteFlag,
        _value: u64,
        _done: Completion,
    ) -> Result<(), Fault> {
        missing(peer, "write a flag")
    }

    fn write_imm(
        &self,
        peer: usize,
        _src: Sge,
        _dst: RemoteAddr,
        _immediate: u32,
        _done: Completion,
    ) -> Result<(), Fault> {
        missing(peer, "write with an immediate")
    }

    fn immediate(&self, _immediate: u32) -> Counter {
        // (###) 4, continued: a table by immediate; arrivals make entries too.
        self.counters.allocate()
    }

    fn read(
        &self,
        peer: usize,
        _dst: Sge,
        _src: RemoteAddr,
        _done: Completion,
    ) -> Result<(), Fault> {
        missing(peer, "read")
    }

    fn fetch_add(
        &self,
        peer: usize,
        _target: RemoteAddr,
        _operand: u64,
        _result: Sge,
        _done: Completion,
    ) -> Result<(), Fault> {
        missing(peer, "fetch and add")
    }

    fn compare_swap(
        &self,
        peer: usize,
        _target: RemoteAddr,
        _compare: u64,
        _swap: u64,
        _result: Sge,
        _done: Completion,
    ) -> Result<(), Fault> {
        missing(peer, "compare and swap")
    }

    fn send(&self, _peer: usize, head: Head, payload: Sge, _done: Completion) -> Posted {
        // (###) 5: into a registered buffer of the peer's, in order, within its credits; `Later`
        // if there is none and the payload is longer than `inline_max`. Wake the peer.
        let mut copy = vec![0; payload.len()].into_boxed_slice();
        payload.read(&mut copy);
        self.loopback.borrow_mut().push_back((head, copy));
        self.doorbell.wake();
        Posted::Done
    }

    fn receive(&self, from: Option<usize>) -> Option<Message> {
        debug_assert!(from.is_none_or(|peer| peer == 0));
        let (head, copy) = self.loopback.borrow_mut().pop_front()?;
        let copy = Block::new(copy);
        // SAFETY: the bytes stay where they are, in `lent`, until release.
        let payload = unsafe { Sge::new(copy.first().as_ptr(), copy.len()) };
        *self.lent.borrow_mut() = Some(copy);
        Some(Message { peer: 0, head, payload, token: 0 })
    }

    fn release(&self, _message: Message) {
        // (###) 5, continued: the buffer goes back to the queue, and its credit to the sender.
        *self.lent.borrow_mut() = None;
    }

    fn join(&self, _group: GroupId) {
        // (###) 6: attach to the group's address; filter what comes for others.
    }

    fn leave(&self, _group: GroupId) {}

    fn multicast(&self, _group: GroupId, _src: Sge) -> Result<(), Fault> {
        missing(0, "multicast")
    }

    fn receive_multicast(&self, _into: Sge) -> Option<Datagram> {
        None
    }

    fn progress(&self) -> bool {
        // (###) 7: nearly free when there is nothing to do; it is called at every poll.
        false
    }

    fn sleeper(&self) -> Arc<dyn Sleep> {
        // (###) 8: a network sleeps in `poll` over its completion channel and an eventfd; what is
        // published after `arm` must end the sleep.
        self.doorbell.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_carries_messages_in_order() {
        let fabric = Skeleton::connect();
        for i in 0..3u64 {
            let mut bytes = i.to_ne_bytes();
            // SAFETY: taken at once.
            let payload = unsafe { Sge::new(bytes.as_mut_ptr(), 8) };
            assert_eq!(fabric.send(0, Head([i; 3]), payload, None), Posted::Done);
        }
        for i in 0..3u64 {
            let message = fabric.receive(None).unwrap();
            let mut bytes = [0; 8];
            message.payload.read(&mut bytes);
            assert_eq!((message.head, u64::from_ne_bytes(bytes)), (Head([i; 3]), i));
            fabric.release(message);
        }
        assert!(fabric.receive(Some(0)).is_none());
    }

    #[test]
    fn unfilled_holes_say_so() {
        let fabric = Skeleton::connect();
        let error = fabric.write(0, Sge::EMPTY, RemoteAddr::default(), None).unwrap_err();
        assert_eq!(error.to_string(), "this fabric cannot write towards process 0");
        assert!(fabric.allocate(8).is_err());
    }
}
