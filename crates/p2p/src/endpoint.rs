//! One process's end of all its point-to-point traffic.

use crate::counts::{Counts, Often, Pending, Seldom};
use crate::envelope::{Context, Envelope, MessageKind};
use crate::limits::{Limits, Rendezvous};
use crate::matching::Matching;
use crate::peers::Peers;
use crate::protocol::Tables;
use crate::request::{RequestId, Requests, Slot, Stage, Status};
use crate::slab::Slab;
use crate::state::State;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context as Cx, Poll};
use weft_channel::multicast::Multicasts;
use weft_channel::rails::Rails;
use weft_channel::stream::{self, Stream};
use weft_fabric::{Counter, Distance, Fabric, FabricExt, Fault, Head, Message, Sge, StagingPool};
use weft_intranode::staging::Pool;

/// Messages of one sweep.
const SWEEP: usize = 64;

/// Gives memory back to the fabric if it can by now, and says whether it did.
type Parked<F> = Box<dyn FnMut(&F) -> bool>;

/// Point-to-point messages of one process. Not `Sync`.
pub struct Endpoint<F: Fabric> {
    pub(crate) fabric: F,
    pub(crate) state: RefCell<State>,
    pub(crate) limits: Cell<Limits>,
    pub(crate) arrivals: Counter,
    staging: StagingPool,
    parked: RefCell<Vec<Parked<F>>>,
    streams: Stream,
    rails: Rails,
    waiting: Cell<Option<(Counter, u64)>>,
    next_immediate: Cell<u32>,
    /// A signal handler has left something that a helper can do.
    pub(crate) behind: Cell<bool>,
    /// A look for one message has dealt with another, of which nobody has been told.
    pub(crate) stirred: Cell<bool>,
    /// Made with the first group, or the first word of one.
    pub(crate) multicasts: OnceCell<Box<Multicasts>>,
}

impl<F: Fabric> Endpoint<F> {
    /// Takes over `fabric`, all of whose messages it receives from now on; some of its counters are
    /// allocated here.
    pub fn new(fabric: F, limits: Limits) -> Endpoint<F> {
        let arrivals = fabric.counters().allocate();
        let mut requests: Requests = Slab::new();
        let spare = requests.take();
        let spare_counter = fabric.counters().allocate();
        requests[spare].counter = Some(spare_counter);
        let state = State {
            matching: Matching::new(),
            requests,
            peers: Peers::default(),
            spare,
            spare_counter,
            moving: Vec::new(),
            acting: 0,
            striped: Vec::new(),
            followed: Vec::new(),
            forgotten: VecDeque::new(),
            claims: None,
            staging: Pool::new(limits.staging, limits.ranks_each),
            tables: Tables::default(),
            distance: Distance::Shared,
            cancels: Default::default(),
            fault: None,
            often: Often::default(),
            seldom: Seldom::default(),
        };
        let staging = StagingPool::default();
        let (waiting, multicasts) = (Cell::new(None), OnceCell::new());
        let (state, streams, parked) = (RefCell::new(state), Stream::default(), RefCell::default());
        let rails = Rails::default();
        Endpoint {
            fabric,
            state,
            limits: Cell::new(limits),
            arrivals,
            staging,
            parked,
            streams,
            rails,
            waiting,
            next_immediate: Cell::new(1),
            behind: Cell::new(false),
            stirred: Cell::new(false),
            multicasts,
        }
    }

    /// Keeps what cannot be given back yet, because peers may still read it: `give_back` says whether it
    /// has done it, and is asked again by [`Endpoint::clear_parked`].
    pub fn park(&self, give_back: impl FnMut(&F) -> bool + 'static) {
        self.parked.borrow_mut().push(Box::new(give_back));
    }

    /// How much waits to be given back.
    pub fn parked(&self) -> usize {
        self.parked.borrow().len()
    }

    /// Gives back what can be given back by now.
    pub fn clear_parked(&self) {
        self.parked.borrow_mut().retain_mut(|give_back| !give_back(&self.fabric));
    }

    /// The first of `count` immediates of this process that it does not give out again.
    pub fn new_immediates(&self, count: u32) -> u32 {
        self.next_immediate.replace(self.next_immediate.get() + count)
    }

    /// For what is done without messages: memory, counters, one-sided operations.
    pub fn fabric(&self) -> &F {
        &self.fabric
    }

    /// The numbers in force, a copy: later changes do not show in it.
    pub fn limits(&self) -> Limits {
        self.limits.get()
    }

    /// From here on this process sends so much at once, and moves what is larger so. What is under way goes on as it
    /// began.
    pub fn change(&self, eager: usize, rendezvous: Rendezvous) {
        self.limits.set(Limits { eager, rendezvous, ..self.limits.get() });
        self.state.borrow_mut().look_at_all_again(self);
    }

    /// Temporary buffers.
    pub fn staging(&self) -> &StagingPool {
        &self.staging
    }

    /// The other transport that this endpoint moves on: streams of segments, for collectives.
    pub fn streams(&self) -> &Stream {
        &self.streams
    }

    /// What spreads operations over several rails.
    pub fn rails(&self) -> &Rails {
        &self.rails
    }

    /// Advances by one for every message that found no receive: what a probe waits for.
    pub fn arrivals(&self) -> Counter {
        self.arrivals
    }

    /// Has all who wait for [`Endpoint::arrivals`] look again: for whoever takes what another one may wait for.
    pub fn notify_probes(&self) {
        self.fabric.counters().add(self.arrivals, 1);
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
    pub fn load_of(&self, ours: impl Fn(Context) -> bool) -> (usize, usize) {
        self.state.borrow().matching.load_of(ours)
    }

    /// Begins what [`Endpoint::unexpected`] and [`Endpoint::posted`] say "at most" of anew.
    pub fn restart_most(&self) {
        self.state.borrow_mut().matching.restart_most();
    }

    /// Processes with which payload was exchanged.
    pub fn peers(&self) -> usize {
        self.state.borrow().peers.len()
    }

    /// What was sent and received since the endpoint was made.
    pub fn counts(&self) -> Counts {
        let state = self.state.borrow();
        Counts { often: state.often, seldom: state.seldom }
    }

    /// Moves everything on: fabric, arrived messages, reads that are over. True if anything moved.
    pub fn progress(&self) -> bool {
        self.progress_most().0
    }

    /// [`Endpoint::progress`] in the middle of an operation. The next one says that something moved, so that other threads
    /// hear of what is theirs.
    pub fn progress_between(&self) {
        self.stirred.set(self.progress());
    }

    /// [`Endpoint::progress`], and whether more messages may be there: there is a bound on those of one call, and what comes
    /// after the last posted receive was met waits in the fabric, where the next one takes it from without a
    /// copy in between.
    #[inline]
    pub fn progress_most(&self) -> (bool, bool) {
        let mut moved = self.fabric.progress() | self.stirred.take();
        let (some, more) = self.take_arrived();
        moved |= some;
        if self.streams.is_busy() {
            moved |= self.streams.progress(&self.fabric);
            self.take_stream_fault();
        }
        if let Some(multicasts) = self.multicasts.get() {
            moved |= multicasts.progress(&self.fabric);
        }
        let mut state = self.state.borrow_mut();
        state.often.polls += 1;
        if !state.striped.is_empty() {
            self.settle_striped(&mut state);
        }
        if !state.moving.is_empty() {
            moved |= self.settle_transfers(&mut state);
        }
        if !state.followed.is_empty() {
            moved |= self.follow_all(&mut state);
        }
        if !state.forgotten.is_empty() {
            self.free_forgotten(&mut state);
        }
        (moved, more)
    }

    /// Acts on what has arrived, up to a bound, in one sweep: whether there was any, and whether more may be there. What is
    /// sent at once and awaited, most of all, goes straight to its receive; its sender is told of the room once.
    #[inline(always)]
    fn take_arrived(&self) -> (bool, bool) {
        let Some(mut message) = self.fabric.receive(None) else { return (false, false) };
        let state = &mut *self.state.borrow_mut();
        let awaited = state.matching.posted().0 > 0;
        let (mut owed, mut owed_to) = (0, message.peer);
        let mut left = SWEEP;
        let more = loop {
            if message.peer != owed_to {
                self.owe(state, owed_to, std::mem::take(&mut owed));
                owed_to = message.peer;
            }
            match self.meet(state, &message) {
                Some(len) => {
                    owed += len;
                    self.fabric.release(message);
                }
                None => self.handle_in(state, message),
            }
            left -= 1;
            if left == 0 || awaited && state.matching.posted().0 == 0 {
                break true;
            }
            match self.fabric.receive(None) {
                Some(next) => message = next,
                None => break false,
            }
        };
        self.owe(state, owed_to, owed);
        (true, more)
    }

    fn take_stream_fault(&self) {
        if let Some(fault) = self.streams.take_fault() {
            self.state.borrow_mut().fault = Some(fault);
        }
    }

    /// Acts on an arrived message and gives its buffer back.
    pub(crate) fn handle(&self, message: Message) {
        self.handle_in(&mut self.state.borrow_mut(), message);
    }

    #[inline(never)]
    fn handle_in(&self, state: &mut State, message: Message) {
        let peer = message.peer;
        let outcome = match Envelope::decode(message.head) {
            None if stream::is_ours(&message.head) => self.streams.handle(&self.fabric, &message),
            None => match self.multicasts().handle(&self.fabric, &message) {
                Some(outcome) => outcome,
                None => Err("message of unknown kind"),
            },
            Some(e) => match e.kind {
                MessageKind::Eager | MessageKind::EagerSync => {
                    self.on_eager(state, peer, e, message.payload);
                    Ok(())
                }
                MessageKind::Rts => self.on_rts(state, peer, e, message.payload),
                MessageKind::Cts => self.on_cts(state, peer, e, message.payload),
                MessageKind::Data => self.on_data(state, peer, e, message.payload),
                MessageKind::Ack => self.on_ack(state, peer, e),
                MessageKind::Ats => self.on_ats(state, peer, e),
                MessageKind::Credit => self.on_credit(state, peer, e),
                MessageKind::Cancel => {
                    let done = u64::from(state.matching.take_back(peer, e.request));
                    self.control(peer, Envelope::reply(MessageKind::Cancelled, e.request, done));
                    Ok(())
                }
                MessageKind::CoCopyRequest => {
                    self.on_co_copy_request(state, peer, e, message.payload)
                }
                MessageKind::CoCopyReply => self.on_co_copy_reply(state, peer, e),
                MessageKind::Rtr => self.on_rtr(state, peer, e, message.payload),
                MessageKind::Atp => self.on_atp(state, peer, e),
                MessageKind::CancelWords => self.on_cancel_words(state, peer, e, message.payload),
                MessageKind::Cancelled => self.on_cancelled(state, peer, e),
                // It has woken this process, which looks after what it follows.
                MessageKind::StagedComplete => Ok(()),
            },
        };
        if let Err(what) = outcome {
            state.fault = Some(Fault::corrupt(peer, what));
        }
        self.fabric.release(message);
    }

    /// Sends a head alone.
    #[inline(never)]
    pub(crate) fn control(&self, peer: usize, head: Head) {
        self.fabric.send(peer, head, Sge::EMPTY, None);
    }

    /// [`crate::Limits::ranks_each`].
    pub fn ranks_each(&self) -> u32 {
        self.limits.get().ranks_each
    }

    /// Waits for an operation and ends its request.
    pub fn wait(&self, id: RequestId) -> Wait<'_, F> {
        Wait { endpoint: self, id }
    }

    /// Waits for an operation of [`Endpoint::streams`] and ends it.
    pub async fn wait_stream(&self, id: stream::Id) -> Result<stream::Ended, Fault> {
        let (counter, target) = self.streams.wait_of(id);
        loop {
            if let Some(ended) = self.streams.finish(&self.fabric, id) {
                return Ok(ended);
            }
            self.take_stream_fault();
            self.until(counter, target).await?;
        }
    }

    /// Waits until `counter >= target`.
    pub async fn until(&self, counter: Counter, target: u64) -> Result<(), Fault> {
        std::future::poll_fn(|cx| self.poll_until(counter, target, cx)).await
    }

    /// Waits until one of several counters has reached its target.
    pub async fn until_any(&self, waits: &[(Counter, u64)]) -> Result<(), Fault> {
        std::future::poll_fn(|cx| {
            if let Some(fault) = &self.state.borrow().fault {
                return Poll::Ready(Err(fault.clone()));
            }
            self.waiting.set(None);
            self.fabric.poll_any(waits, None, cx).map_ok(|_| ())
        })
        .await
    }

    fn poll_until(&self, counter: Counter, target: u64, cx: &mut Cx) -> Poll<Result<(), Fault>> {
        if let Some(fault) = &self.state.borrow().fault {
            return Poll::Ready(Err(fault.clone()));
        }
        self.waiting.set(Some((counter, target)));
        // A fault of the fabric ends the wait there.
        self.fabric.poll_any(&[(counter, target)], None, cx).map_ok(|_| ())
    }

    /// What the last future that was polled waits for: the progress engine need not poll it before.
    pub fn last_wait(&self) -> Option<(Counter, u64)> {
        self.waiting.take()
    }

    /// What ended all waits, if anything did.
    pub fn fault(&self) -> Option<Fault> {
        self.state.borrow().fault.clone().or_else(|| self.fabric.fault())
    }

    /// Operations under way, at most `limit`.
    pub fn pending(&self, limit: usize) -> Vec<Pending> {
        let state = self.state.borrow();
        let live = |s: &&Slot| {
            !matches!(s.stage, Stage::Free | Stage::Complete)
                && s.counter.is_some()
                && !self.over(s)
        };
        let describe = |s: &Slot| Pending {
            receive: matches!(
                s.stage,
                Stage::Posted | Stage::Reading | Stage::Filling | Stage::Landing | Stage::Sharing
            ),
            context: s.context,
            peer: s.peer.map(|p| p as usize),
            tag: (s.tag >= 0).then_some(s.tag),
            bytes: s.buffer.len() as u64,
        };
        state.requests.iter().filter(live).take(limit).map(describe).collect()
    }
}

/// A wait for one operation; see [`Endpoint::wait`].
pub struct Wait<'e, F: Fabric> {
    endpoint: &'e Endpoint<F>,
    id: RequestId,
}

impl<F: Fabric> Future for Wait<'_, F> {
    type Output = Result<Status, Fault>;

    fn poll(self: Pin<&mut Self>, cx: &mut Cx<'_>) -> Poll<Self::Output> {
        let Wait { endpoint, id } = *self;
        loop {
            let state = &mut *endpoint.state.borrow_mut();
            if endpoint.looks_over(state, id) {
                return Poll::Ready(Ok(endpoint.close(state, id)));
            }
            if let Some(fault) = &state.fault {
                return Poll::Ready(Err(fault.clone()));
            }
            let slot = &state.requests[id.0];
            let wait = (slot.counter.expect("an open request has one"), slot.target);
            endpoint.waiting.set(Some(wait));
            // A fault of the fabric ends the wait there.
            match endpoint.fabric.poll_any(&[wait], None, cx) {
                Poll::Ready(Ok(_)) => continue,
                Poll::Ready(Err(fault)) => return Poll::Ready(Err(fault)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
