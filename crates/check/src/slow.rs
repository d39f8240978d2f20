//! Waits: what was slow by the program's own doing. The user asks for them with WEFT_CHECK_SLOW=1 or `mpiexec -check-slow`.
//!
//! In this mode each send has a mark of its own, so a record with the time of the send travels with each message. The steady clock of a
//! host is the same for all its ranks.
//!
//! ```text
//!   receiver   the message was sent after its receiver had begun to wait    late sender, counted at once
//!              the message was sent before its receive began                 a LateReceive, kept until MPI_Finalize
//!   sender     at MPI_Finalize, a LateReceive whose send has waited          late receiver
//!              a LateReceive whose send has not                               unexpected message
//!   all        a rank begins a collective operation after this one           late in a collective operation
//! ```

use crate::call_site::CallSite;
use crate::collective::LastRank;
use crate::marks::SendRecord;
use crate::wait_clock::{self, is_on, moment};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};

mod table;
pub use table::report;

/// Shortest wait that counts, in nanoseconds.
pub const THRESHOLD: u64 = 50_000;

/// Maximum number of late receives that a rank keeps, and of its sends that have waited.
const KEPT: usize = 1 << 18;

/// Time that a call has lasted.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct CallSpan {
    pub began: u64,
    pub ended: u64,
}

impl CallSpan {
    /// Returns the span of a call that ends now.
    pub fn since(began: u64) -> CallSpan {
        CallSpan { began, ended: moment() }
    }

    /// Returns the part of the span before a moment, unless it is too short to count.
    fn until(self, moment: u64) -> Option<u64> {
        let part = moment.min(self.ended).saturating_sub(self.began);
        (part >= THRESHOLD).then_some(part)
    }

    /// Returns true if the call has lasted long enough to count.
    pub fn is_long(self) -> bool {
        self.until(self.ended).is_some()
    }
}

/// Kinds of waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SlowKind {
    LateSender,
    LateReceiver,
    UnexpectedMessage,
    LateInCollective,
}

impl SlowKind {
    const ALL: [SlowKind; 4] = [
        SlowKind::LateSender,
        SlowKind::LateReceiver,
        SlowKind::UnexpectedMessage,
        SlowKind::LateInCollective,
    ];

    /// Returns the name in reports.
    fn name(self) -> &'static str {
        match self {
            SlowKind::LateSender => "late sender",
            SlowKind::LateReceiver => "late receiver",
            SlowKind::UnexpectedMessage => "unexpected message",
            SlowKind::LateInCollective => "late in a collective operation",
        }
    }
}

/// A call of a rank that takes part in a wait.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct SlowCall {
    pub site: CallSite,
    /// Index of the function, or [`SlowCall::NO_FUNCTION`].
    pub function: u32,
    /// Rank in MPI_COMM_WORLD, or -1.
    pub rank: i32,
}

impl SlowCall {
    /// Index that stands for no function.
    pub const NO_FUNCTION: u32 = u32::MAX;

    /// Returns a rank whose call is not known.
    pub fn of_rank(rank: i32) -> SlowCall {
        SlowCall { site: CallSite::default(), function: SlowCall::NO_FUNCTION, rank }
    }
}

/// Key of a row: waits of the same calls count together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct SlowKey {
    kind: SlowKind,
    /// Call that waited, or whose message came too early.
    own: SlowCall,
    /// Call that it waited for.
    peer: SlowCall,
}

/// Sum of the waits of a row.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct SlowSum {
    count: u64,
    nanoseconds: u64,
    bytes: u64,
}

impl SlowSum {
    fn add(&mut self, other: SlowSum) {
        self.count += other.count;
        self.nanoseconds += other.nanoseconds;
        self.bytes += other.bytes;
    }
}

/// A receive that began after its message was sent. The sender gets it at MPI_Finalize.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct LateReceive {
    /// Time of the send, which is its name at the sender.
    sent: u64,
    /// Time at which the receive began.
    received: u64,
    bytes: u64,
    send: SlowCall,
    receive: SlowCall,
}

/// A message that a call of this thread has received.
#[derive(Clone, Copy, Debug)]
pub struct SlowArrival {
    record: SendRecord,
    bytes: u64,
}

/// Times of the present call of a thread.
#[derive(Default)]
struct ThreadWaits {
    /// Messages that the present call has received.
    arrivals: RefCell<Vec<SlowArrival>>,
    /// Times of the sends that the present call has completed.
    sends: RefCell<Vec<u64>>,
    /// Begin of a probe that no receive has followed.
    probe: Cell<u64>,
}

thread_local! {
    static THREAD: ThreadWaits = ThreadWaits::default();
}

/// Notes the begin of a blocking probe. The next receive of this thread began to wait then.
pub fn note_probe(began: u64) {
    if began != 0 {
        THREAD.with(|thread| thread.probe.set(began));
    }
}

/// Returns the time at which a receive that is called now began to wait.
pub fn receive_moment() -> u64 {
    if !is_on() {
        return 0;
    }
    let probe = THREAD.with(|thread| thread.probe.take());
    if probe == 0 { moment() } else { probe }
}

/// Notes a send that the present call has completed.
pub fn note_send(sent: u64) {
    if sent != 0 {
        THREAD.with(|thread| thread.sends.borrow_mut().push(sent));
    }
}

/// Forgets what the present call has completed, because it has not waited.
pub fn forget_call() {
    if is_on() {
        THREAD.with(|thread| (thread.arrivals.take(), thread.sends.take()));
    }
}

/// A wait of a send.
#[derive(Clone, Copy)]
struct BlockedSend {
    span: CallSpan,
    call: SlowCall,
    /// Number of the wait. Sends that one call has completed have one wait.
    wait: u64,
}

/// Number of all waits that count for a late sender already.
const COUNTED: u64 = 0;

/// Waits of this process.
#[derive(Default)]
pub struct SlowLedger {
    /// Name of the host's clock.
    pub host: u64,
    rows: FxHashMap<SlowKey, SlowSum>,
    late: Vec<LateReceive>,
    /// Sends that have waited, by the time of the send.
    blocked: FxHashMap<u64, BlockedSend>,
    waits: u64,
    last: u64,
    /// Number of late receives and waits that were not kept.
    dropped: u64,
}

impl SlowLedger {
    /// Makes the ledger if the user asks for it.
    pub fn begin() -> Option<SlowLedger> {
        let is_wanted = wait_clock::begin();
        // Processes of one kernel have one steady clock.
        let kernel = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let host = crate::call_site::hash(&kernel);
        is_wanted.then(|| SlowLedger { host, ..SlowLedger::default() })
    }

    /// Returns the time of a send that begins now. No other send of this process has the same.
    pub fn send_moment(&mut self) -> u64 {
        self.last = moment().max(self.last + 1);
        self.last
    }

    fn add(&mut self, key: SlowKey, nanoseconds: u64, bytes: u64) {
        self.rows.entry(key).or_default().add(SlowSum { count: 1, nanoseconds, bytes });
    }

    /// Notes that a receive which began at a time has got a message.
    pub fn received(
        &mut self,
        record: &SendRecord,
        bytes: u64,
        began: u64,
        receive: impl FnOnce() -> SlowCall,
    ) {
        let arrival = SlowArrival { record: *record, bytes };
        THREAD.with(|thread| thread.arrivals.borrow_mut().push(arrival));
        let is_late = record.posted != 0 && began >= record.posted + THRESHOLD;
        if !is_late || record.host != self.host {
            return;
        }
        if self.late.len() == KEPT {
            self.dropped += 1;
            return;
        }
        let SendRecord { site, function, rank, posted, .. } = *record;
        let send = SlowCall { site, function, rank };
        let receive = receive();
        self.late.push(LateReceive { sent: posted, received: began, bytes, send, receive });
    }

    /// Notes that a call has waited. Its arrivals, or else its sends, say for whom.
    pub fn waited(&mut self, span: CallSpan, call: impl FnOnce() -> SlowCall) {
        let (arrivals, sends) = THREAD.with(|thread| (thread.arrivals.take(), thread.sends.take()));
        if !span.is_long() {
            return;
        }
        let call = call();
        // The last message ends the wait. The clocks of other hosts differ, so the whole wait counts there.
        let sent = |arrival: &SlowArrival| match &arrival.record {
            record if record.posted == 0 => 0,
            record if record.host == self.host => record.posted,
            _ => span.ended,
        };
        let last = arrivals.iter().max_by_key(|arrival| sent(arrival));
        let late = last.and_then(|last| Some((*last, span.until(sent(last))?)));
        if let Some((SlowArrival { record, bytes }, nanoseconds)) = late {
            let SendRecord { site, function, rank, .. } = record;
            let peer = SlowCall { site, function, rank };
            let key = SlowKey { kind: SlowKind::LateSender, own: call, peer };
            self.add(key, nanoseconds, bytes);
        }
        self.waits += 1;
        let wait = late.map_or(self.waits, |_| COUNTED);
        for sent in sends {
            if self.blocked.len() == KEPT {
                self.dropped += 1;
                continue;
            }
            self.blocked.insert(sent, BlockedSend { span, call, wait });
        }
    }

    /// Notes the rank that was the last one in a collective operation. -1 is a rank that is not known.
    pub fn collective(&mut self, call: SlowCall, span: CallSpan, last: LastRank) {
        if let Some(nanoseconds) = span.until(last.began) {
            let peer = SlowCall::of_rank(last.rank);
            self.add(SlowKey { kind: SlowKind::LateInCollective, own: call, peer }, nanoseconds, 0);
        }
    }

    /// Adds the late receives of this process's messages.
    fn judge(&mut self, late: &[LateReceive]) {
        // Of the sends that one call completed, the last one counts.
        let mut waits: FxHashMap<u64, (u64, SlowKey, u64)> = FxHashMap::default();
        for receive in late {
            let &LateReceive { sent, received, bytes, send, receive } = receive;
            let blocked = self.blocked.get(&sent);
            let waited = blocked.and_then(|b| Some((b, b.span.until(received)?)));
            let Some((&BlockedSend { call, wait, .. }, nanoseconds)) = waited else {
                let key = SlowKey { kind: SlowKind::UnexpectedMessage, own: send, peer: receive };
                self.add(key, received - sent, bytes);
                continue;
            };
            if wait == COUNTED {
                continue;
            }
            let key = SlowKey { kind: SlowKind::LateReceiver, own: call, peer: receive };
            let longest = waits.entry(wait).or_insert((0, key, 0));
            if nanoseconds > longest.0 {
                *longest = (nanoseconds, key, bytes);
            }
        }
        for (nanoseconds, key, bytes) in waits.into_values() {
            self.add(key, nanoseconds, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn ledger() -> SlowLedger {
        SlowLedger { host: 7, ..SlowLedger::default() }
    }

    fn rows(ledger: &SlowLedger) -> Vec<(SlowKind, u64, u64)> {
        let sum = |(key, sum): (&SlowKey, &SlowSum)| (key.kind, sum.count, sum.nanoseconds);
        ledger.rows.iter().map(sum).collect()
    }

    fn record(posted: u64) -> SendRecord {
        SendRecord { posted, host: 7, ..SendRecord::default() }
    }

    #[test]
    fn the_last_message_of_a_wait_is_the_late_one() {
        let mut ledger = ledger();
        let call = SlowCall::of_rank(0);
        for sent in [MS, 3 * MS, 2 * MS] {
            ledger.received(&record(sent), 8, MS, || call);
        }
        ledger.waited(CallSpan { began: MS, ended: 4 * MS }, || call);
        assert_eq!(rows(&ledger), [(SlowKind::LateSender, 1, 2 * MS)]);
        // Nothing is left for the next wait, which was too short.
        ledger.received(&record(5 * MS + 10), 8, 5 * MS, || call);
        ledger.waited(CallSpan { began: 5 * MS, ended: 5 * MS + 20 }, || call);
        assert_eq!(rows(&ledger).len(), 1);
    }

    #[test]
    fn a_send_that_waited_has_a_late_receiver() {
        let mut ledger = ledger();
        let call = SlowCall::of_rank(0);
        let late =
            |sent, received| LateReceive { sent, received, bytes: 8, ..LateReceive::default() };
        note_send(MS);
        ledger.waited(CallSpan { began: 2 * MS, ended: 9 * MS }, || call);
        ledger.judge(&[late(MS, 5 * MS), late(MS + 1, 3 * MS)]);
        let mut all = rows(&ledger);
        all.sort_by_key(|row| row.2);
        let unexpected = (SlowKind::UnexpectedMessage, 1, 2 * MS - 1);
        assert_eq!(all, [unexpected, (SlowKind::LateReceiver, 1, 3 * MS)]);
    }

    #[test]
    fn messages_of_other_hosts_count_as_a_whole() {
        let mut ledger = ledger();
        let call = SlowCall::of_rank(0);
        ledger.received(&SendRecord { host: 8, ..record(1) }, 8, MS, || call);
        ledger.waited(CallSpan { began: MS, ended: 4 * MS }, || call);
        assert_eq!(rows(&ledger), [(SlowKind::LateSender, 1, 3 * MS)]);
        assert!(ledger.late.is_empty());
    }
}
