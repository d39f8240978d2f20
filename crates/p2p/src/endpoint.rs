//! Endpoint: all point-to-point traffic of one process.

mod announce;
mod cancel;
mod completion;
mod interrupted;
mod multicasts;
mod parked;
mod receive;
mod send;
mod state;
mod streams;

pub use announce::AwaitedOperations;
pub use completion::{CompletionBatch, Wait};
pub use receive::Direct;
pub use streams::Streams;

use crate::counts::MessageCounts;
use crate::envelope::{Envelope, MatchingContext, MessageKind, PeerMessage, SignatureMark};
use crate::limits::{ProtocolChange, ProtocolLimits};
use crate::matching::MatchingQueues;
use crate::message::MessageOutcome;
use crate::protocol::{co_copy, eager, rendezvous_pieces, rendezvous_write};
use crate::request::{PendingOperation, StatusFlags};
use crate::stream;
use crate::transport::Transport;
use parked::Parked;
use state::EndpointState;
use std::cell::{Cell, OnceCell, RefCell};
use std::task::{Context as Cx, Poll};
use weft_channel::multicast::Multicasts;
use weft_channel::rails::RailSet;
use weft_fabric::{ArrivedMessage, Counter, Fabric, FabricExt, Fault, StagingPool};

/// Maximum number of messages handled in one sweep.
const SWEEP: usize = 64;

/// Endpoint of one process: all its point-to-point messages. Not `Sync`.
///
/// The endpoint owns the parts, hands each message to its part, and drives the progress of all parts.
// `transport` is the first field here, and the peers are the first field in `state`. So code that uses both fields computes no
// addresses.
#[repr(C)]
pub struct Endpoint<F: Fabric> {
    transport: Transport<F>,
    state: RefCell<EndpointState>,
    parked: RefCell<Parked<F>>,
    /// Multicast groups. The table is created with the first group, or when the first message for a group arrives.
    multicasts: OnceCell<Box<Multicasts>>,
    waiting: Cell<Option<(Counter, u64)>>,
    /// Number of waits that were polled since [`Endpoint::last_wait`] and have not ended.
    pending_waits: Cell<u32>,
    next_immediate: Cell<u32>,
    /// True if a signal handler has left work that a helper can do.
    helper_pending: Cell<bool>,
    /// True if progress was made that no call of [`Endpoint::progress`] has reported yet.
    unreported_progress: Cell<bool>,
    /// A message with a signature mark that [`Endpoint::poll_direct`] has put aside.
    marked: Cell<Option<ArrivedMessage>>,
}

impl<F: Fabric> Endpoint<F> {
    /// Creates an endpoint that takes over `fabric`, and receives all of its messages from now on. Allocates some of the
    /// fabric's counters.
    pub fn new(fabric: F, limits: ProtocolLimits) -> Endpoint<F> {
        let transport = Transport::new(fabric, limits);
        let state = RefCell::new(EndpointState::new(transport.counters(), &limits));
        Endpoint {
            transport,
            state,
            parked: RefCell::default(),
            multicasts: OnceCell::new(),
            waiting: Cell::new(None),
            pending_waits: Cell::new(0),
            next_immediate: Cell::new(1),
            helper_pending: Cell::new(false),
            unreported_progress: Cell::new(false),
            marked: Cell::new(None),
        }
    }

    /// Parks memory that cannot be given back yet, because peers may still read it. [`Endpoint::clear_parked`] calls `give_back`
    /// until it returns true, which means that the memory is given back.
    pub fn park(&self, give_back: impl FnMut(&F) -> bool + 'static) {
        self.parked.borrow_mut().add(give_back);
    }

    /// Returns the number of parked pieces of memory.
    pub fn parked(&self) -> usize {
        self.parked.borrow().len()
    }

    /// Gives back all parked memory that no peer may read any more.
    pub fn clear_parked(&self) {
        self.parked.borrow_mut().clear(&self.transport.fabric);
    }

    /// Reserves `count` immediates, which this process never reserves again. Returns the first of these immediates.
    pub fn new_immediates(&self, count: u32) -> u32 {
        self.next_immediate.replace(self.next_immediate.get() + count)
    }

    /// Returns the fabric, for work without messages: memory, counters, one-sided operations.
    pub fn fabric(&self) -> &F {
        &self.transport.fabric
    }

    /// Returns a copy of the limits in force. Later changes do not affect the copy.
    pub fn limits(&self) -> ProtocolLimits {
        self.transport.limits.get()
    }

    /// Changes limits for messages that begin from now on. Messages under way keep the old limits.
    pub fn change(&self, change: ProtocolChange) {
        let transport = &self.transport;
        let ProtocolChange { eager, eager_fixed, rendezvous } = change;
        let limits = transport.limits.get();
        transport.limits.set(ProtocolLimits { eager, eager_fixed, rendezvous, ..limits });
        self.state.borrow_mut().operations.peers.look_at_all_again(transport);
    }

    /// Returns the pool of temporary buffers.
    pub fn staging(&self) -> &StagingPool {
        &self.transport.staging
    }

    /// Returns the rails over which operations are spread.
    pub fn rails(&self) -> &RailSet {
        &self.transport.rails
    }

    /// Returns the counter that advances by one for every message without a matching receive. A probe waits for this counter.
    pub fn arrivals(&self) -> Counter {
        self.transport.arrivals
    }

    /// Makes all waiters on [`Endpoint::arrivals`] look again. Called after this thread has taken a message for which another
    /// thread may wait.
    pub fn notify_probes(&self) {
        self.transport.notify_probes();
    }

    /// Returns the present and the maximum number of unexpected envelopes, and then the present and the maximum size of their
    /// payload in bytes.
    pub fn unexpected(&self) -> (usize, usize, u64, u64) {
        let arrived = &self.state.borrow().matching.arrived;
        let (bytes, most_bytes) = arrived.payload();
        (arrived.len(), arrived.most(), bytes, most_bytes)
    }

    /// Returns the present and the maximum number of posted receives. Receives that match a message at once are never posted.
    pub fn posted(&self) -> (usize, usize) {
        let posted = &self.state.borrow().matching.posted;
        (posted.len(), posted.most())
    }

    /// Returns the number of queue entries (posted receives and unexpected messages) that were examined without a match.
    pub fn passed(&self) -> u64 {
        let MatchingQueues { posted, arrived, .. } = &self.state.borrow().matching;
        posted.passed() + arrived.passed()
    }

    /// Returns the numbers of posted receives and unexpected envelopes in the contexts for which `ours` returns true.
    pub fn load_of(&self, ours: impl Fn(MatchingContext) -> bool) -> (usize, usize) {
        let MatchingQueues { posted, arrived, .. } = &self.state.borrow().matching;
        (posted.count(&ours), arrived.count(&ours))
    }

    /// Restarts the maxima of [`Endpoint::unexpected`] and [`Endpoint::posted`] from the present values.
    pub fn restart_most(&self) {
        let MatchingQueues { posted, arrived, .. } = &mut self.state.borrow_mut().matching;
        posted.restart_most();
        arrived.restart_most();
    }

    /// Returns the number of processes with which payload was exchanged.
    pub fn peers(&self) -> usize {
        self.state.borrow().operations.peers.len()
    }

    /// Forgets a process of another job. No operation with this process is under way. The number of this process may soon belong to
    /// another process, so all state of this peer must be dropped here.
    pub fn forget_peer(&self, peer: usize) {
        let mut state = self.state.borrow_mut();
        state.operations.peers.forget(peer);
        state.matching.words.forget(peer);
        state.streams.forget(peer);
    }

    /// Returns the counts of messages sent and received since the endpoint was made.
    pub fn counts(&self) -> MessageCounts {
        let operations = &self.state.borrow().operations;
        MessageCounts { often: operations.often, seldom: operations.seldom }
    }

    /// Drives the fabric, handles arrived messages, and ends complete transfers. Returns true if anything moved.
    pub fn progress(&self) -> bool {
        self.progress_with_more().0
    }

    /// Calls [`Endpoint::progress`] in the middle of an operation. The next call of [`Endpoint::progress`] also reports this
    /// progress, so that other threads learn of their messages.
    pub fn progress_between(&self) {
        self.unreported_progress.set(self.progress());
    }

    /// Does the work of [`Endpoint::progress`]. Returns whether anything moved, and whether more messages may be there. One call
    /// handles a bounded number of messages. The call also stops after it has matched the last posted receive. Later messages then
    /// stay in the fabric until the next receive takes them without an intermediate copy.
    #[inline]
    pub fn progress_with_more(&self) -> (bool, bool) {
        let (transport, fabric) = (&self.transport, &self.transport.fabric);
        let mut moved = fabric.progress() | self.unreported_progress.take();
        let (some, more) = self.take_arrived();
        moved |= some;
        let mut state = self.state.borrow_mut();
        let EndpointState { operations, in_flight, streams, .. } = &mut *state;
        if streams.is_busy() {
            moved |= streams.progress(fabric, operations);
        }
        if let Some(multicasts) = self.multicasts.get() {
            moved |= multicasts.progress(fabric);
        }
        operations.often.polls += 1;
        moved |= in_flight.progress(transport, operations);
        if operations.requests.any_forgotten() {
            self.free_forgotten(&mut state);
        }
        (moved, more)
    }

    /// Handles arrived messages, up to a bound, in one sweep. Returns whether any message was there, and whether more messages may
    /// be there. On a fast path, an eager message goes straight to its posted receive. Released credit is reported once per run of
    /// messages from one sender.
    #[inline(always)]
    fn take_arrived(&self) -> (bool, bool) {
        let (transport, fabric) = (&self.transport, &self.transport.fabric);
        let Some(mut message) = fabric.receive(None) else { return (false, false) };
        let state = &mut *self.state.borrow_mut();
        let awaited = state.matching.posted.len() > 0;
        let (mut owed, mut owed_to) = (0, message.peer);
        let mut left = SWEEP;
        let more = loop {
            if message.peer != owed_to {
                state.operations.peers.return_credit(transport, owed_to, std::mem::take(&mut owed));
                owed_to = message.peer;
            }
            let EndpointState { operations, matching, .. } = &mut *state;
            match eager::meet(transport, &mut operations.requests, matching, &message) {
                Some(len) => {
                    owed += len;
                    fabric.release(message);
                }
                None => self.handle_in(state, message),
            }
            left -= 1;
            if left == 0 || awaited && state.matching.posted.len() == 0 {
                break true;
            }
            match fabric.receive(None) {
                Some(next) => message = next,
                None => break false,
            }
        };
        state.operations.peers.return_credit(transport, owed_to, owed);
        (true, more)
    }

    /// Acts on an arrived message and returns its buffer to the fabric.
    fn handle(&self, message: ArrivedMessage) {
        self.handle_in(&mut self.state.borrow_mut(), message);
    }

    #[inline(never)]
    fn handle_in(&self, state: &mut EndpointState, message: ArrivedMessage) {
        let fabric = &self.transport.fabric;
        let outcome = match Envelope::decode(message.head) {
            Some(e) => self.dispatch(state, &message, e),
            None if stream::is_ours(&message.head) => {
                state.streams.handle(fabric, &mut state.operations, &message)
            }
            None => match self.multicasts().handle(fabric, &message) {
                Some(outcome) => outcome,
                None => Err("message of unknown kind"),
            },
        };
        if let Err(what) = outcome {
            state.operations.fault = Some(Fault::corrupt(message.peer, what));
        }
        fabric.release(message);
    }

    /// Hands a message to the part that handles its kind.
    #[inline(always)]
    fn dispatch(
        &self,
        state: &mut EndpointState,
        arrived: &ArrivedMessage,
        e: Envelope,
    ) -> MessageOutcome {
        let EndpointState { operations, in_flight, matching, .. } = state;
        let transport = &self.transport;
        let message = &PeerMessage { peer: arrived.peer, envelope: e, payload: arrived.payload };
        match e.kind {
            MessageKind::Eager | MessageKind::EagerSync => {
                eager::on_eager(transport, operations, matching, message)
            }
            MessageKind::EagerWithMark
            | MessageKind::EagerSyncWithMark
            | MessageKind::RtsWithMark => self.handle_with_mark(state, arrived),
            MessageKind::Ack => eager::on_ack(transport, operations, message),
            MessageKind::Credit => eager::on_credit(transport, operations, message),
            MessageKind::Rts => in_flight.on_rts(transport, operations, matching, message),
            MessageKind::Ats => in_flight.on_ats(transport, operations, message),
            MessageKind::Cts => rendezvous_pieces::on_cts(transport, operations, message),
            MessageKind::Data => {
                rendezvous_pieces::on_data(transport, &mut operations.requests, message)
            }
            MessageKind::CoCopyRequest => co_copy::on_request(transport, operations, message),
            MessageKind::CoCopyReply => {
                in_flight.co_copy.on_reply(transport, &mut operations.requests, message)
            }
            MessageKind::Rtr => in_flight.on_rtr(transport, operations, message),
            MessageKind::Atp => rendezvous_write::on_atp(transport, operations, message),
            // The message only had to wake this process. The process copies the staged payload whenever it makes progress.
            MessageKind::StagedComplete => Ok(()),
            MessageKind::Cancel => {
                let done = u64::from(matching.arrived.take_back(message.peer, e.request));
                let head = Envelope::reply(MessageKind::Cancelled, e.request, done);
                transport.control(message.peer, head);
                Ok(())
            }
            MessageKind::Cancelled => cancel::on_cancelled(transport, operations, message),
            MessageKind::CancelWords => match operations.peers.of(transport, message.peer).near {
                true => matching.words.on_words(message),
                false => Err("place of words"),
            },
        }
    }

    /// Handles a message with a signature mark, which goes to the status of the receive.
    #[cold]
    fn handle_with_mark(
        &self,
        EndpointState { operations, in_flight, matching, .. }: &mut EndpointState,
        message: &ArrivedMessage,
    ) -> MessageOutcome {
        let transport = &self.transport;
        let (head, mark) = SignatureMark::split(message.head);
        let e = Envelope::decode(head).ok_or("message with a mark")?;
        let receive = matching.posted.find(e.context, e.rank, e.tag);
        let (posted, kept) = (matching.posted.len(), matching.arrived.len());
        let message = &PeerMessage { peer: message.peer, envelope: e, payload: message.payload };
        match e.kind {
            MessageKind::Rts => in_flight.on_rts(transport, operations, matching, message)?,
            _ => eager::on_eager(transport, operations, matching, message)?,
        }
        // A message that its sender has cancelled changes neither queue.
        if let Some(receive) = receive.filter(|_| matching.posted.len() < posted) {
            operations.requests[receive].status.flags = StatusFlags::of_mark(mark);
        } else if matching.arrived.len() > kept {
            matching.arrived.mark_last(mark);
        }
        Ok(())
    }

    /// Returns [`crate::ProtocolLimits::ranks_each`].
    pub fn ranks_each(&self) -> u32 {
        self.transport.limits.get().ranks_each
    }

    /// Waits until `counter >= target`.
    pub async fn until(&self, counter: Counter, target: u64) -> Result<(), Fault> {
        std::future::poll_fn(|cx| self.poll_until(counter, target, cx)).await
    }

    /// Waits until one of several counters has reached its target.
    pub async fn until_any(&self, waits: &[(Counter, u64)]) -> Result<(), Fault> {
        std::future::poll_fn(|cx| {
            if let Some(fault) = &self.state.borrow().operations.fault {
                return Poll::Ready(Err(fault.clone()));
            }
            self.waiting.set(None);
            self.count_pending(self.transport.fabric.poll_any(waits, None, cx)).map_ok(|_| ())
        })
        .await
    }

    fn poll_until(&self, counter: Counter, target: u64, cx: &mut Cx) -> Poll<Result<(), Fault>> {
        if let Some(fault) = &self.state.borrow().operations.fault {
            return Poll::Ready(Err(fault.clone()));
        }
        self.waiting.set(Some((counter, target)));
        // A fault of the fabric ends the wait, because `poll_any` returns the fault.
        let polled = self.transport.fabric.poll_any(&[(counter, target)], None, cx);
        self.count_pending(polled).map_ok(|_| ())
    }

    /// Counts a wait that has not ended.
    #[inline(always)]
    fn count_pending<T>(&self, polled: Poll<T>) -> Poll<T> {
        self.pending_waits.set(self.pending_waits.get() + u32::from(polled.is_pending()));
        polled
    }

    /// Takes the wait of the future that was polled last. The progress engine need not poll this future before the wait has ended.
    pub fn last_wait(&self) -> Option<(Counter, u64)> {
        self.pending_waits.set(0);
        self.waiting.take()
    }

    /// Takes the wait of the future that was polled last, if the future has no other wait.
    pub fn only_wait(&self) -> Option<(Counter, u64)> {
        let others = self.pending_waits.get() > 1;
        self.last_wait().filter(|_| !others)
    }

    /// Returns the fault that ended all waits, if there is one.
    pub fn fault(&self) -> Option<Fault> {
        self.state.borrow().operations.fault.clone().or_else(|| self.transport.fabric.fault())
    }

    /// Lists operations under way, at most `limit`.
    pub fn pending(&self, limit: usize) -> Vec<PendingOperation> {
        self.state.borrow().operations.requests.pending(self.transport.counters(), limit)
    }
}
