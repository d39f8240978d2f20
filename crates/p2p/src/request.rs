//! Operations under way, by number, from beginning to end. `state.rs` has the states and their transitions.
//!
//! Invariants:
//! - A slot that is not [`RequestStage::Free`] has a counter, which stays with the slot for good and never falls. The operation is
//!   complete once the counter has reached the slot's target. Only the end of the operation advances the counter.
//! - One slot is the spare: it is taken, has no operation, and has a counter. So a send can give this counter to the fabric before
//!   it is known whether the send needs a request.
//! - [`ProcessRequests::acting`] is the number of slots with [`RequestSlot::acts`].

mod state;

pub use state::{RequestStage, RequestState};

use crate::envelope::{MatchingContext, SignatureMark, Tag};
use crate::message::{MessageTarget, TransferPattern};
use crate::slab::Slab;
use std::collections::VecDeque;
use weft_fabric::{Counter, Counters, Fabric, Region, Sge};

/// An operation under way. Valid until [`crate::Endpoint::finish`] returns its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestId(pub u32);

/// Result of an operation (MPI 5.0, section 3.2.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Status {
    /// Sender's rank in the communicator; meaningless for a send.
    pub source: i32,
    /// The message's tag, even if the receive accepted any tag.
    pub tag: Tag,
    /// Bytes received.
    pub bytes: u64,
    /// Bytes of the message that did not fit the buffer.
    pub lost: u64,
    /// Cancelled flag and signature mark.
    pub flags: StatusFlags,
}

/// Facts about a message besides its envelope: bit 0 is set if the operation was cancelled, the bits above are the signature mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StatusFlags(u32);

impl StatusFlags {
    /// Flags of an operation that was cancelled before it was matched; nothing was moved.
    pub const CANCELLED: StatusFlags = StatusFlags(1);
    /// Flags of a message without a mark.
    pub const NONE: StatusFlags = StatusFlags(0);

    /// Returns true if the operation was cancelled.
    #[inline(always)]
    pub fn cancelled(self) -> bool {
        self.0 & 1 != 0
    }

    /// Returns the flags of a received message with a mark.
    pub fn of_mark(mark: SignatureMark) -> StatusFlags {
        StatusFlags(mark.number() << 1)
    }

    /// Returns the bits: the cancelled flag, and above it the mark.
    #[inline(always)]
    pub fn bits(self) -> u32 {
        self.0
    }

    /// Returns only the cancelled flag.
    pub fn without_mark(self) -> StatusFlags {
        StatusFlags(self.0 & 1)
    }
}

/// Description of an operation under way, for the report of a hang.
#[derive(Debug, Clone, Copy)]
pub struct PendingOperation {
    /// True if the operation receives, false if it sends.
    pub receive: bool,
    /// The matching space, which identifies the communicator.
    pub context: MatchingContext,
    /// Peer's rank in the fabric; `None`: any.
    pub peer: Option<usize>,
    /// Tag of the message; `None`: any.
    pub tag: Option<Tag>,
    /// Length of the payload of a send, or of the buffer of a receive.
    pub bytes: u64,
}

/// A payload of which both ends copy pieces (`protocol/co_copy.rs`).
#[derive(Debug, Clone, Copy)]
pub struct CoCopiedPayload {
    /// Index of the claim word, and the number of this sharing, which the word shows.
    pub word: u32,
    pub number: u32,
    pub pieces: u32,
    /// Number of pieces that this process has copied.
    pub own: u32,
}

/// An operation. The counter stays with the slot for good and is never reset.
#[derive(Debug, Default)]
pub struct RequestSlot {
    pub state: RequestState,
    pub counter: Option<Counter>,
    /// Value of the counter at the end: the operation is complete once the counter has reached this value and the stage is not
    /// `Reading` or `Writing`.
    pub target: u64,
    pub context: MatchingContext,
    /// Peer's rank in the fabric; `None`: any source.
    pub peer: Option<u32>,
    pub rank: i32,
    pub tag: Tag,
    pub buffer: Sge,
    /// Bytes that have arrived so far, of a payload that comes in pieces.
    pub progress: u64,
    /// The peer's request.
    pub remote: u32,
    pub region: Option<Region>,
    pub shared: Option<CoCopiedPayload>,
    pub status: Status,
    /// True if the program asked to cancel the operation.
    pub cancelling: bool,
    /// True if a cancel word shows whether the operation is cancelled (`matching/cancel.rs`).
    pub word: bool,
    /// True if the operation receives.
    pub receives: bool,
    /// Pattern of a receive, as far as its caller knows the pattern.
    pub pattern: TransferPattern,
    /// True if this process must act when the peer answers.
    pub acts: bool,
}

impl RequestSlot {
    /// Resets the slot for a new operation, which is complete at `target`. Resets only the fields that the operation does not set
    /// itself.
    #[inline(always)]
    pub fn renew(&mut self, target: u64) {
        self.target = target;
        self.peer = None;
        self.rank = -1;
        self.progress = 0;
        self.remote = 0;
        self.status = Status::default();
        self.cancelling = false;
        self.word = false;
        self.receives = false;
        self.pattern = TransferPattern::Plain;
        self.acts = false;
        if self.region.is_some() || self.shared.is_some() {
            (self.region, self.shared) = (None, None);
        }
    }

    pub fn counter(&self) -> Counter {
        self.counter.expect("an open request has one")
    }

    /// Sets the fields of the slot for a message to or from `to` in `buffer`. The caller begins the state.
    pub fn describe(&mut self, to: MessageTarget, buffer: Sge) {
        self.context = to.context;
        self.peer = Some(to.peer as u32);
        self.rank = -1;
        self.tag = to.tag;
        self.buffer = buffer;
    }

    /// Advances the counter by one.
    #[inline(always)]
    pub fn advance(&self, counters: &Counters) {
        counters.add(self.counter(), 1);
    }

    /// Returns true if the counter has reached the target.
    #[inline(always)]
    pub fn has_counted(&self, counters: &Counters) -> bool {
        counters.value(self.counter()) >= self.target
    }

    /// Returns true if nothing is left to do, not even a report to the peer.
    pub fn is_over(&self, counters: &Counters) -> bool {
        !self.state.is_rdma() && self.has_counted(counters)
    }

    /// Ends the operation because of a message of its peer. Nothing uses the operation's memory any more.
    pub fn end_by_peer<F: Fabric>(&mut self, fabric: &F) {
        self.state.end_by_peer();
        self.withdraw(fabric);
        self.advance(fabric.counters());
    }

    /// Withdraws the registration of the operation's memory, if there is one.
    #[inline(always)]
    pub fn withdraw<F: Fabric>(&mut self, fabric: &F) {
        if let Some(region) = self.region.take() {
            fabric.withdraw(region);
        }
    }

    fn pending(&self) -> PendingOperation {
        PendingOperation {
            receive: self.state.receives(),
            context: self.context,
            peer: self.peer.map(|p| p as usize),
            tag: (self.tag >= 0).then_some(self.tag),
            bytes: self.buffer.len() as u64,
        }
    }
}

/// Maximum number of forgotten requests examined per pass.
const LOOKS: usize = 16;

/// All operations of a process.
#[repr(C)]
pub struct ProcessRequests {
    /// A prepared request for a send whose payload the fabric may have to queue.
    spare: u32,
    spare_counter: Counter,
    /// Number of requests with [`RequestSlot::acts`], and of the sends among them.
    acting: usize,
    acting_sends: usize,
    /// Requests that the program has freed before their end (MPI_Request_free).
    forgotten: VecDeque<u32>,
    slots: Slab<RequestSlot>,
}

impl ProcessRequests {
    /// Creates the requests, with the spare. Allocates the spare's counter.
    pub fn new(counters: &Counters) -> ProcessRequests {
        let mut slots: Slab<RequestSlot> = Slab::new();
        let spare = slots.take();
        let spare_counter = counters.allocate();
        slots[spare].counter = Some(spare_counter);
        ProcessRequests {
            spare,
            spare_counter,
            acting: 0,
            acting_sends: 0,
            forgotten: VecDeque::new(),
            slots,
        }
    }

    /// Opens a request with a counter, and sets the target at which it is complete. The caller sets context, tag and
    /// buffer, and begins the state.
    #[inline(always)]
    pub fn open(&mut self, counters: &Counters) -> (u32, &mut RequestSlot) {
        let index = self.slots.take();
        let slot = &mut self.slots[index];
        let counter = match slot.counter {
            Some(counter) => counter,
            None => first_counter(slot, counters),
        };
        slot.renew(counters.value(counter) + 1);
        (index, slot)
    }

    /// Returns the counter for the end of the next send. The counter is used if the fabric queues the payload of this send.
    #[inline(always)]
    pub fn spare_counter(&self) -> Counter {
        self.spare_counter
    }

    /// Turns the spare request into a send whose payload the fabric has queued, and opens another spare.
    #[cold]
    pub fn use_spare(&mut self, counters: &Counters, to: MessageTarget, buffer: Sge) -> RequestId {
        let spare = self.spare;
        let slot = &mut self.slots[spare];
        slot.target = counters.value(self.spare_counter) + 1;
        slot.describe(to, buffer);
        slot.state.queue();
        let (next, slot) = self.open(counters);
        self.spare_counter = slot.counter();
        self.spare = next;
        RequestId(spare)
    }

    /// Returns the request that a reply names, if the request is in `stage` and its operation is with `peer`.
    pub fn waiting(
        &mut self,
        peer: usize,
        request: u32,
        stage: RequestStage,
    ) -> Option<&mut RequestSlot> {
        let known = self.slots.get(request).is_some();
        let slot = known.then(|| &mut self.slots[request])?;
        (slot.state.is(stage) && slot.peer == Some(peer as u32)).then_some(slot)
    }

    /// Returns the slot of a number, or `None` if the number is out of range.
    pub fn get_mut(&mut self, request: u32) -> Option<&mut RequestSlot> {
        self.slots.get(request)?;
        Some(&mut self.slots[request])
    }

    /// Notes that this process must act when the peer of a request answers.
    pub fn begin_acting(&mut self, request: u32) {
        let slot = &mut self.slots[request];
        let began = usize::from(!std::mem::replace(&mut slot.acts, true));
        self.acting += began;
        self.acting_sends += if slot.receives { 0 } else { began };
    }

    /// Notes that this process need not act for a request any more.
    pub fn end_acting(&mut self, request: u32) {
        let slot = &mut self.slots[request];
        let ended = usize::from(std::mem::take(&mut slot.acts));
        self.acting -= ended;
        self.acting_sends -= if slot.receives { 0 } else { ended };
    }

    /// Returns true if this process must act for any request.
    pub fn any_acts(&self) -> bool {
        self.acting > 0
    }

    /// Returns true if this process must act for any send. Sends that are offered to processes of this node are among these sends.
    pub fn any_send_acts(&self) -> bool {
        self.acting_sends > 0
    }

    /// Frees the number of an operation that has ended.
    #[inline(always)]
    pub fn give(&mut self, request: u32) {
        self.slots.give(request);
    }

    /// Returns the number of requests in use, including the spare.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Notes that the program has freed the request before its end.
    pub fn forget(&mut self, request: u32) {
        self.forgotten.push_back(request);
    }

    #[inline(always)]
    pub fn any_forgotten(&self) -> bool {
        !self.forgotten.is_empty()
    }

    /// Examines the next few forgotten requests, and returns the first request that is complete. `looks` counts the requests that
    /// were examined in this pass.
    pub fn forgotten_over(&mut self, counters: &Counters, looks: &mut usize) -> Option<RequestId> {
        let most = self.forgotten.len().min(LOOKS.saturating_sub(*looks));
        for _ in 0..most {
            *looks += 1;
            let request = self.forgotten.pop_front()?;
            if self.slots[request].is_over(counters) {
                return Some(RequestId(request));
            }
            self.forgotten.push_back(request);
        }
        None
    }

    /// Lists operations under way, at most `limit`.
    pub fn pending(&self, counters: &Counters, limit: usize) -> Vec<PendingOperation> {
        let live = |slot: &&RequestSlot| {
            slot.state.is_under_way() && slot.counter.is_some() && !slot.is_over(counters)
        };
        self.slots.iter().filter(live).take(limit).map(RequestSlot::pending).collect()
    }
}

#[cold]
fn first_counter(slot: &mut RequestSlot, counters: &Counters) -> Counter {
    *slot.counter.insert(counters.allocate())
}

impl std::ops::Index<u32> for ProcessRequests {
    type Output = RequestSlot;

    #[inline(always)]
    fn index(&self, request: u32) -> &RequestSlot {
        &self.slots[request]
    }
}

impl std::ops::IndexMut<u32> for ProcessRequests {
    #[inline(always)]
    fn index_mut(&mut self, request: u32) -> &mut RequestSlot {
        &mut self.slots[request]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TO: MessageTarget =
        MessageTarget { context: MatchingContext(5), peer: 3, rank: 0, tag: 7 };

    fn offered(requests: &mut ProcessRequests, counters: &Counters) -> u32 {
        let (index, slot) = requests.open(counters);
        slot.describe(TO, Sge::EMPTY);
        slot.state.send_rts();
        index
    }

    #[test]
    fn an_operation_is_over_when_its_counter_is_there_and_not_before() {
        let counters = Counters::new();
        let mut requests = ProcessRequests::new(&counters);
        for _ in 0..3 {
            let index = offered(&mut requests, &counters);
            assert!(!requests[index].is_over(&counters));
            assert_eq!(requests.pending(&counters, 9).len(), 1);
            requests[index].advance(&counters);
            assert!(requests[index].is_over(&counters));
            requests[index].state.recv_rtr();
            assert!(!requests[index].is_over(&counters), "the other end is not told");
            requests[index].state.end_rdma();
            requests[index].state.free();
            requests.give(index);
        }
    }

    #[test]
    fn a_reply_finds_its_request_only_from_its_peer_and_at_its_stage() {
        let counters = Counters::new();
        let mut requests = ProcessRequests::new(&counters);
        let index = offered(&mut requests, &counters);
        assert!(requests.waiting(3, index, RequestStage::Offered).is_some());
        assert!(requests.waiting(2, index, RequestStage::Offered).is_none());
        assert!(requests.waiting(3, index, RequestStage::Sharing).is_none());
        assert!(requests.waiting(3, 1 << 30, RequestStage::Offered).is_none());
    }

    #[test]
    fn the_spare_becomes_a_send_and_there_is_another() {
        let counters = Counters::new();
        let mut requests = ProcessRequests::new(&counters);
        let first = requests.spare_counter();
        let RequestId(send) = requests.use_spare(&counters, TO, Sge::EMPTY);
        assert!(requests[send].counter() == first && requests.spare_counter() != first);
        assert!(!requests[send].is_over(&counters));
        counters.add(first, 1);
        assert!(requests[send].is_over(&counters));
    }

    #[test]
    fn those_that_act_are_counted_once() {
        let counters = Counters::new();
        let mut requests = ProcessRequests::new(&counters);
        let index = offered(&mut requests, &counters);
        requests.begin_acting(index);
        requests.begin_acting(index);
        assert!(requests.any_acts() && requests.any_send_acts());
        requests.end_acting(index);
        assert!(!requests.any_acts() && !requests.any_send_acts());
        requests[index].receives = true;
        requests.begin_acting(index);
        assert!(requests.any_acts() && !requests.any_send_acts());
        requests.end_acting(index);
        assert!(!requests.any_acts() && !requests.any_send_acts());
    }

    #[test]
    fn forgotten_requests_end_whatever_their_order() {
        let counters = Counters::new();
        let mut requests = ProcessRequests::new(&counters);
        let all: Vec<u32> = (0..40).map(|_| offered(&mut requests, &counters)).collect();
        all.iter().for_each(|&index| requests.forget(index));
        requests[all[30]].advance(&counters);
        let mut found = Vec::new();
        for _ in 0..3 {
            let mut looks = 0;
            while let Some(RequestId(over)) = requests.forgotten_over(&counters, &mut looks) {
                found.push(over);
            }
            assert!(looks <= LOOKS);
        }
        assert_eq!(found, [all[30]]);
        assert!(requests.any_forgotten());
    }
}
