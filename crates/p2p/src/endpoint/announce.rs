//! Announcements of waits in virtual time ([`weft_fabric::AnnouncedWait`]).
//!
//! An eager message is quiet if it meets a posted receive, or none: the endpoint charges a copy, and posts nothing as long as the credit of
//! the sender need not be reported. All other messages may be answered.

use super::Endpoint;
use super::state::EndpointState;
use crate::envelope::{MessageKind, eager_word};
use crate::matching::PostedPattern;
use crate::request::RequestId;
use weft_fabric::{
    AnnouncedWait, AwaitedCounter, AwaitedMessage, Counter, Fabric, Head, HeadPattern,
};

/// Maximum number of posted receives of an announced wait.
const MOST: usize = 32;

/// Bits of the first word of a head without the tag.
const KIND: u64 = u32::MAX as u64;

/// Eager messages of any tag, rank and context.
const EAGER: HeadPattern =
    HeadPattern { head: Head([MessageKind::Eager as u64, 0, 0]), mask: Head([KIND, 0, 0]) };

/// Operations that a thread awaits.
#[derive(Debug, Clone, Copy)]
pub enum AwaitedOperations<'a> {
    /// All of these requests, which the thread ends in this order.
    Requests(&'a [RequestId]),
    /// One counter, and its target.
    Counter(Counter, u64),
}

impl<F: Fabric> Endpoint<F> {
    /// Returns true if the time of this process is simulated.
    pub fn is_simulated(&self) -> bool {
        self.transport.is_simulated
    }

    /// Handles the quiet messages of the last sleep, which follow no round of progress. Counts the rounds that the process would have
    /// made during the sleep, because every Nth round reads datagrams.
    #[inline]
    pub fn handle_quiet_messages(&self) {
        let Some(simulated) = self.transport.fabric.facets().simulated else { return };
        if let Some(multicasts) = self.multicasts.get() {
            multicasts.count_rounds(simulated.take_quiet_rounds());
        }
        while simulated.has_quiet_messages() {
            let (moved, _) = self.take_arrived();
            self.unreported_progress.set(self.unreported_progress.get() | moved);
        }
    }

    /// Announces that the calling thread, which is the only one of this process, is about to sleep until all of `awaited` have ended. Does
    /// nothing if arrivals may concern other operations.
    pub fn announce_wait(&self, awaited: AwaitedOperations<'_>) {
        let transport = &self.transport;
        let Some(simulated) = transport.fabric.facets().simulated else { return };
        let state = &*self.state.borrow();
        let EndpointState { operations, in_flight, matching, streams } = state;
        if streams.is_busy()
            || transport.rails.is_busy()
            || in_flight.staged.any_followed()
            || operations.requests.any_forgotten()
            || operations.fault.is_some()
            || matching.posted.len() > MOST
        {
            return;
        }
        let counters = self.awaited_counters(state, awaited);
        let Some(counters) = counters.filter(|counters| !counters.is_empty()) else { return };
        let messages = awaited_messages(state);
        simulated.announce(&AnnouncedWait {
            messages: &messages,
            kept: EAGER,
            counters: &counters,
            acts: !in_flight.transfers.is_empty(),
        });
    }

    /// Returns the counters of operations. Returns `None` if memory that peers write ends an operation, or an unexpected message.
    fn awaited_counters(
        &self,
        state: &EndpointState,
        awaited: AwaitedOperations<'_>,
    ) -> Option<Vec<AwaitedCounter>> {
        let counters = self.transport.counters();
        let one = |counter, target: u64, matches| {
            let missing = target.saturating_sub(counters.value(counter));
            let immediate = counters.immediate_of(counter);
            let known = counter != self.transport.arrivals && !counters.is_adopted(counter);
            known.then_some(AwaitedCounter { counter, immediate, missing, matches })
        };
        match awaited {
            AwaitedOperations::Counter(counter, target) => Some(vec![one(counter, target, false)?]),
            AwaitedOperations::Requests(ids) => {
                let request = |id: &RequestId| {
                    let slot = &state.operations.requests[id.0];
                    one(slot.counter(), slot.target, slot.receives)
                };
                ids.iter().map(request).collect()
            }
        }
    }
}

/// Describes the posted receives.
fn awaited_messages(
    EndpointState { operations, matching, .. }: &EndpointState,
) -> Vec<AwaitedMessage> {
    let mut messages: Vec<AwaitedMessage> = Vec::new();
    for PostedPattern { request, context, rank, tag } in matching.posted.list() {
        let slot = &operations.requests[request];
        let from = rank.and(slot.peer).map(|peer| peer as usize);
        let pattern = HeadPattern {
            head: Head([
                tag.map_or(MessageKind::Eager as u64, eager_word),
                context.0,
                rank.map_or(0, u64::from),
            ]),
            mask: Head([tag.map_or(KIND, |_| u64::MAX), u64::MAX, rank.map_or(0, |_| KIND)]),
        };
        // The credit of all receives from the same sender is reported together.
        let room = slot.buffer.len();
        let before: usize =
            messages.iter().filter(|m| m.from == from).filter_map(|message| message.quiet).sum();
        let owes = |peer| operations.peers.may_owe(peer, (before + room) as u64);
        let quiet = from.filter(|&peer| owes(peer)).map(|_| room);
        messages.push(AwaitedMessage { from, pattern, quiet, counter: slot.counter() });
    }
    messages
}
