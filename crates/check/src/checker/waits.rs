//! Waits of the program's calls, see [`crate::slow`].

use super::buffer_arguments::{elements, receiver};
use super::messages::ReceiveCall;
use super::{Checker, call_memory, with};
use crate::FUNCTIONS;
use crate::call_site::CallSite;
use crate::collective::{ComparisonUnderWay, LastRank};
use crate::function::CheckedCall;
use crate::marks::{self, SendRecord};
use crate::requests::{RequestFacts, TimedSend};
use crate::role::Timing;
use crate::slow::{self, CallSpan, SlowCall};
use crate::wait_clock;

/// Returns a call of this process.
fn slow_call(rank: i32, name: &str, site: CallSite) -> SlowCall {
    let function = FUNCTIONS.iter().position(|function| function.name() == name);
    SlowCall { site, function: function.map_or(SlowCall::NO_FUNCTION, |at| at as u32), rank }
}

impl Checker {
    /// Sets the mark of a send. Returns the send if the user asks for waits.
    pub(super) fn set_mark(
        &mut self,
        index: usize,
        call: &CheckedCall<'_>,
        timing: Timing,
    ) -> Option<Box<TimedSend>> {
        let send = self.timed_send(index, call, timing);
        let mark = match &send {
            Some(send) => send.mark,
            None => self.mark(index, call).unwrap_or(0),
        };
        if mark != 0 && send.is_none() {
            call_memory::remember_send(index, call, mark);
        }
        marks::set_next(mark);
        send
    }

    /// Begins a send if the user asks for waits: sends its record, unless the send is persistent.
    fn timed_send(
        &mut self,
        index: usize,
        call: &CheckedCall<'_>,
        timing: Timing,
    ) -> Option<Box<TimedSend>> {
        if !wait_clock::is_on() {
            return None;
        }
        let to = receiver(call)?;
        let facts = elements(self, call, &["buf", "sendbuf"])?.facts;
        let record = SendRecord::new(call.site, index, self.rank, &facts);
        let mut send = Box::new(TimedSend { to, mark: self.marks.of_own(to), record });
        if timing != Timing::Persistent {
            self.send_begins(&mut send);
        }
        Some(send)
    }

    /// Sends the record of a send that begins now.
    fn send_begins(&mut self, send: &mut TimedSend) {
        let Some(slow) = &mut self.slow else { return };
        send.record.posted = slow.send_moment();
        send.record.host = slow.host;
        marks::send_own(send.to, send.mark, send.record);
    }

    /// Notes that a request begins again.
    pub(super) fn request_begins(&mut self, request: &mut RequestFacts) {
        if let Some(send) = &mut request.send {
            self.send_begins(send);
        }
        if let Some(receive) = &mut request.receive {
            receive.began = wait_clock::moment();
        }
    }

    /// Notes that a receive has got a message.
    pub(super) fn note_arrival(
        &mut self,
        receive: &ReceiveCall<'_>,
        record: &SendRecord,
        bytes: u64,
    ) {
        if let Some(slow) = &mut self.slow {
            let rank = self.rank;
            let own = || slow_call(rank, receive.function, receive.site);
            slow.received(record, bytes, receive.began, own);
        }
    }
}

/// Notes that a blocking call is at its end. It began to wait at a time, which is 0 if the user does not ask for waits.
pub(super) fn ended(function: &'static str, site: CallSite, began: u64) {
    if began == 0 {
        return;
    }
    let span = CallSpan::since(began);
    with(|checker| {
        let rank = checker.rank;
        let slow = checker.slow.as_mut();
        slow.map(|slow| slow.waited(span, || slow_call(rank, function, site)))
    });
}

/// Notes that a blocking send is at its end.
pub(super) fn send_ended(call: &CheckedCall<'_>, send: &TimedSend) {
    slow::note_send(send.record.posted);
    ended(call.function.name(), call.site, send.record.posted);
}

/// Notes that this rank has waited for the other ranks of a collective operation.
pub(super) fn collective_ended(comparison: &ComparisonUnderWay, began: u64) {
    if began == 0 {
        return;
    }
    let span = CallSpan::since(began);
    let record = &comparison.record;
    let own = SlowCall { site: record.site, function: record.function, rank: record.rank };
    let unknown = LastRank { rank: -1, began: span.ended };
    let last = comparison.last().unwrap_or(unknown);
    with(|checker| checker.slow.as_mut().map(|slow| slow.collective(own, span, last)));
}
