//! Access of a simulated signal handler to messages that have arrived: the handler examines messages, and may take some of them.

use crate::in_flight::{FlightAction, NONE};
use crate::sim::Sim;
use crate::trace::Activity;
use std::ops::ControlFlow;
use weft_fabric::{ArrivedMessage, Fabric, Peek};

impl Sim {
    /// Implements [`FabricExt::peek`]. A message that is taken costs as much as a message that is received.
    pub(crate) fn peek_at_messages(&self, look: &mut dyn FnMut(&ArrivedMessage) -> Peek) {
        let mut behind = Vec::new();
        let (mut before, mut number) = (NONE, self.state().ranks[self.rank()].first);
        while number != NONE {
            let (message, next) = self.shown(number);
            let stays = behind.contains(&message.peer);
            match if stays { Peek::Behind } else { look(&message) } {
                Peek::Taken => self.take(before, number),
                Peek::Left => before = number,
                Peek::Behind => {
                    behind.push(message.peer);
                    before = number;
                }
            }
            number = next;
        }
    }

    /// Shows the messages that have arrived, in order, until `look` breaks. They stay.
    pub fn look_at_messages(&self, look: &mut dyn FnMut(&ArrivedMessage) -> ControlFlow<()>) {
        let mut number = self.state().ranks[self.rank()].first;
        while number != NONE {
            let (message, next) = self.shown(number);
            if look(&message).is_break() {
                return;
            }
            number = next;
        }
    }

    /// Returns a message in the inbox, and the number of the next message.
    fn shown(&self, number: u32) -> (ArrivedMessage, u32) {
        let flight = &self.state().flights[number];
        let FlightAction::Message { head, payload, .. } = &flight.action else {
            unreachable!("an inbox holds messages")
        };
        let (peer, token) = (flight.from as usize, u64::from(number));
        (ArrivedMessage { peer, head: *head, payload: payload.sge(), token }, flight.next)
    }

    /// Removes message `number`, which comes after message `before` in the inbox.
    fn take(&self, before: u32, number: u32) {
        let state = &mut *self.state();
        let (next, peer) = (state.flights[number].next, state.flights[number].from as usize);
        match before {
            NONE => state.ranks[self.rank()].first = next,
            _ => state.flights[before].next = next,
        }
        if next == NONE {
            state.ranks[self.rank()].last = before;
        }
        state.ranks[self.rank()].arrived -= 1;
        if state.prices.descriptor > 0 && !state.is_local(self.rank(), peer) {
            state.spend(self.rank(), state.prices.descriptor, Activity::Receive);
        }
        state.flights.end(number);
    }
}
