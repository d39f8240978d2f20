//! One process's end of all its point-to-point traffic.

mod cancel;
mod completion;
mod interrupted;
mod multicasts;
mod parked;
mod receive;
mod send;
mod state;
mod streams;

pub use completion::{CompletionBatch, Wait};
pub use receive::Direct;
pub use streams::Streams;

use crate::counts::MessageCounts;
use crate::envelope::{Envelope, MatchingContext, MessageKind};
use crate::limits::{ProtocolLimits, Rendezvous};
use crate::message::Outcome;
use crate::protocol::{co_copy, eager, pieces, written};
use crate::request::PendingOperation;
use crate::stream;
use crate::transport::Transport;
use parked::Parked;
use state::EndpointState;
use std::cell::{Cell, OnceCell, RefCell};
use std::task::{Context as Cx, Poll};
use weft_channel::multicast::Multicasts;
use weft_channel::rails::RailSet;
use weft_fabric::{ArrivedMessage, Counter, Fabric, FabricExt, Fault, StagingPool};

/// Messages of one sweep.
const SWEEP: usize = 64;

/// Point-to-point messages of one process. Not `Sync`.
///
/// It owns the parts, hands each message to that which it is for, and moves all of them on.
// The transport and, in the state, the peers come first: what is given to both needs no addresses computed.
#[repr(C)]
pub struct Endpoint<F: Fabric> {
    transport: Transport<F>,
    state: RefCell<EndpointState>,
    parked: RefCell<Parked<F>>,
    /// Made with the first group, or the first word of one.
    multicasts: OnceCell<Box<Multicasts>>,
    waiting: Cell<Option<(Counter, u64)>>,
    next_immediate: Cell<u32>,
    /// A signal handler has left something that a helper can do.
    helper_pending: Cell<bool>,
    /// A look for one message has dealt with another, of which nobody has been told.
    unreported_progress: Cell<bool>,
}

impl<F: Fabric> Endpoint<F> {
    /// Takes over `fabric`, all of whose messages it receives from now on; some of its counters are
    /// allocated here.
    pub fn new(fabric: F, limits: ProtocolLimits) -> Endpoint<F> {
        let transport = Transport::new(fabric, limits);
        let state = RefCell::new(EndpointState::new(transport.counters(), &limits));
        Endpoint {
            transport,
            state,
            parked: RefCell::default(),
            multicasts: OnceCell::new(),
            waiting: Cell::new(None),
            next_immediate: Cell::new(1),
            helper_pending: Cell::new(false),
            unreported_progress: Cell::new(false),
        }
    }

    /// Keeps what cannot be given back yet, because peers may still read it: `give_back` says whether it
    /// has done it, and is asked again by [`Endpoint::clear_parked`].
    pub fn park(&self, give_back: impl FnMut(&F) -> bool + 'static) {
        self.parked.borrow_mut().add(give_back);
    }

    /// How much waits to be given back.
    pub fn parked(&self) -> usize {
        self.parked.borrow().len()
    }

    /// Gives back what can be given back by now.
    pub fn clear_parked(&self) {
        self.parked.borrow_mut().clear(&self.transport.fabric);
    }

    /// The first of `count` immediates of this process that it does not give out again.
    pub fn new_immediates(&self, count: u32) -> u32 {
        self.next_immediate.replace(self.next_immediate.get() + count)
    }

    /// For what is done without messages: memory, counters, one-sided operations.
    pub fn fabric(&self) -> &F {
        &self.transport.fabric
    }

    /// The numbers in force, a copy: later changes do not show in it.
    pub fn limits(&self) -> ProtocolLimits {
        self.transport.limits.get()
    }

    /// From here on this process sends so much at once, and moves what is larger so. What is under way goes on as it
    /// began.
    pub fn change(&self, eager: usize, eager_fixed: bool, rendezvous: Rendezvous) {
        let transport = &self.transport;
        let limits = transport.limits.get();
        transport.limits.set(ProtocolLimits { eager, eager_fixed, rendezvous, ..limits });
        self.state.borrow_mut().operations.peers.look_at_all_again(transport);
    }

    /// Temporary buffers.
    pub fn staging(&self) -> &StagingPool {
        &self.transport.staging
    }

    /// What spreads operations over several rails.
    pub fn rails(&self) -> &RailSet {
        &self.transport.rails
    }

    /// Advances by one for every message that found no receive: what a probe waits for.
    pub fn arrivals(&self) -> Counter {
        self.transport.arrivals
    }

    /// Has all who wait for [`Endpoint::arrivals`] look again: for whoever takes what another one may wait for.
    pub fn notify_probes(&self) {
        self.transport.notify_probes();
    }

    /// Unexpected envelopes now and at most, and their payload in bytes now and at most.
    pub fn unexpected(&self) -> (usize, usize, u64, u64) {
        self.state.borrow().matching.load()
    }

    /// Posted receives now and at most. Receives that find their message at once are never posted.
    pub fn posted(&self) -> (usize, usize) {
        self.state.borrow().matching.posted()
    }

    /// Posted receives and unexpected messages that were looked at, and did not match what was looked for.
    pub fn passed(&self) -> u64 {
        self.state.borrow().matching.passed()
    }

    /// Posted receives and unexpected envelopes of the contexts that `ours` names.
    pub fn load_of(&self, ours: impl Fn(MatchingContext) -> bool) -> (usize, usize) {
        self.state.borrow().matching.load_of(ours)
    }

    /// Begins what [`Endpoint::unexpected`] and [`Endpoint::posted`] say "at most" of anew.
    pub fn restart_most(&self) {
        self.state.borrow_mut().matching.restart_most();
    }

    /// Processes with which payload was exchanged.
    pub fn peers(&self) -> usize {
        self.state.borrow().operations.peers.len()
    }

    /// Forgets a process of another job, with which nothing is under way: its number may be another's before long. So
    /// whatever is kept by peer is named here.
    pub fn forget_peer(&self, peer: usize) {
        let mut state = self.state.borrow_mut();
        state.operations.peers.forget(peer);
        state.matching.words.forget(peer);
        state.streams.forget(peer);
    }

    /// What was sent and received since the endpoint was made.
    pub fn counts(&self) -> MessageCounts {
        let operations = &self.state.borrow().operations;
        MessageCounts { often: operations.often, seldom: operations.seldom }
    }

    /// Moves everything on: fabric, arrived messages, reads that are over. True if anything moved.
    pub fn progress(&self) -> bool {
        self.progress_with_more().0
    }

    /// [`Endpoint::progress`] in the middle of an operation. The next one says that something moved, so that other threads
    /// hear of what is theirs.
    pub fn progress_between(&self) {
        self.unreported_progress.set(self.progress());
    }

    /// [`Endpoint::progress`], and whether more messages may be there: there is a bound on those of one call, and what comes
    /// after the last posted receive was met waits in the fabric, where the next one takes it from without a
    /// copy in between.
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

    /// Acts on what has arrived, up to a bound, in one sweep: whether there was any, and whether more may be there. What is
    /// sent at once and awaited, most of all, goes straight to its receive; its sender is told of the room once.
    #[inline(always)]
    fn take_arrived(&self) -> (bool, bool) {
        let (transport, fabric) = (&self.transport, &self.transport.fabric);
        let Some(mut message) = fabric.receive(None) else { return (false, false) };
        let state = &mut *self.state.borrow_mut();
        let awaited = state.matching.posted().0 > 0;
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
            if left == 0 || awaited && state.matching.posted().0 == 0 {
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

    /// Acts on an arrived message and gives its buffer back.
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

    /// Hands a message to the part that it is for.
    #[inline(always)]
    fn dispatch(
        &self,
        state: &mut EndpointState,
        message: &ArrivedMessage,
        e: Envelope,
    ) -> Outcome {
        let EndpointState { operations, in_flight, matching, .. } = state;
        let (transport, peer, payload) = (&self.transport, message.peer, message.payload);
        let from = (peer, e);
        match e.kind {
            MessageKind::Eager | MessageKind::EagerSync => {
                eager::on_eager(transport, operations, matching, from, payload)
            }
            MessageKind::Ack => eager::on_ack(transport, operations, peer, e),
            MessageKind::Credit => eager::on_credit(transport, operations, peer, e),
            MessageKind::Rts => in_flight.on_rts(transport, operations, matching, from, payload),
            MessageKind::Ats => in_flight.on_ats(transport, operations, from, payload),
            MessageKind::Cts => pieces::on_cts(transport, operations, from, payload),
            MessageKind::Data => {
                pieces::on_data(transport, &mut operations.requests, from, payload)
            }
            MessageKind::CoCopyRequest => co_copy::on_request(transport, operations, from, payload),
            MessageKind::CoCopyReply => {
                let requests = &mut operations.requests;
                in_flight.co_copy.on_reply(transport, requests, peer, e)
            }
            MessageKind::Rtr => in_flight.on_rtr(transport, operations, from, payload),
            MessageKind::Atp => written::on_atp(transport, operations, from, payload),
            // It has woken this process, which looks after what it follows.
            MessageKind::StagedComplete => Ok(()),
            MessageKind::Cancel => {
                let done = u64::from(matching.take_back(peer, e.request));
                let head = Envelope::reply(MessageKind::Cancelled, e.request, done);
                transport.control(peer, head);
                Ok(())
            }
            MessageKind::Cancelled => cancel::on_cancelled(transport, operations, peer, e),
            MessageKind::CancelWords => {
                let near = operations.peers.of(transport, peer).near;
                matching.words.on_words(peer, near, e, payload)
            }
        }
    }

    /// [`crate::ProtocolLimits::ranks_each`].
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
            self.transport.fabric.poll_any(waits, None, cx).map_ok(|_| ())
        })
        .await
    }

    fn poll_until(&self, counter: Counter, target: u64, cx: &mut Cx) -> Poll<Result<(), Fault>> {
        if let Some(fault) = &self.state.borrow().operations.fault {
            return Poll::Ready(Err(fault.clone()));
        }
        self.waiting.set(Some((counter, target)));
        // A fault of the fabric ends the wait there.
        self.transport.fabric.poll_any(&[(counter, target)], None, cx).map_ok(|_| ())
    }

    /// What the last future that was polled waits for: the progress engine need not poll it before.
    pub fn last_wait(&self) -> Option<(Counter, u64)> {
        self.waiting.take()
    }

    /// What ended all waits, if anything did.
    pub fn fault(&self) -> Option<Fault> {
        self.state.borrow().operations.fault.clone().or_else(|| self.transport.fabric.fault())
    }

    /// Operations under way, at most `limit`.
    pub fn pending(&self, limit: usize) -> Vec<PendingOperation> {
        self.state.borrow().operations.requests.pending(self.transport.counters(), limit)
    }
}
