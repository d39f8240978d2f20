//! Turns that the simulation takes instead of a rank that rests: everything that has arrived is quiet ([`weft_fabric::AnnouncedWait`]), so
//! that only time passes.
//!
//! ```text
//!   the rank                                  the simulation
//!   announces its wait, rests ──────────────▶ arrival 1 is quiet: take it, charge its work, show it in the inbox
//!                                             arrival 2 is quiet: the same
//!                                             arrival 3 ends the wait
//!        ◀─────────────────────────────────── turn of the rank
//!   handles 1, 2, 3; the journal has the work
//!   of all three ───────────────────────────▶ the work of 1 and 2 has been charged ([`PrepaidWork`]), that of 3 is charged now
//! ```
//! The clocks, and the order of all events, are those of a run in which the rank has all turns itself.

use std::ops::ControlFlow;
use weft_fabric::{ArrivedMessage, Fabric, FabricExt, Work};
use weft_fabric_sim::Sim;
use weft_fabric_sim_client::{IMMEDIATE, InboxRoom, RankSlot, RestingWait};

/// Number of rounds of progress of a rank in a turn in which its wait goes on: before it looks, and before it sleeps. If one of several
/// awaited requests has ended, there is a further round for the next request.
const ROUNDS: u32 = 2;

/// Work of a rank that the simulation has charged before the rank does it.
#[derive(Debug, Default)]
pub struct PrepaidWork {
    messages: usize,
    matches: usize,
    /// Numbers of bytes of copies.
    copies: Vec<usize>,
    /// Number of rounds of progress in which the rank would have done the work.
    rounds: u32,
}

impl PrepaidWork {
    /// Returns the number of messages that the simulation has taken and the rank has not.
    pub fn messages(&self) -> usize {
        self.messages
    }

    /// Takes the number of rounds of progress in which the rank would have done the work.
    pub fn take_rounds(&mut self) -> u32 {
        std::mem::take(&mut self.rounds)
    }

    /// Returns true if the rank has done all of the work.
    pub fn is_done(&self) -> bool {
        self.messages == 0 && self.matches == 0 && self.copies.is_empty()
    }

    /// Counts a message that the rank takes. Returns true if the simulation has taken the message.
    pub fn take_message(&mut self) -> bool {
        let is_taken = self.messages > 0;
        self.messages -= usize::from(is_taken);
        is_taken
    }

    /// Counts work that the rank does. Returns true if the work has been charged.
    pub fn covers(&mut self, work: Work) -> bool {
        match work {
            Work::Match if self.matches > 0 => {
                self.matches -= 1;
                true
            }
            Work::Copy(len) => {
                let place = self.copies.iter().position(|&copied| copied == len);
                place.map(|place| self.copies.swap_remove(place)).is_some()
            }
            _ => false,
        }
    }
}

/// The wait of a rank that rests. All arrivals so far were quiet.
pub struct QuietWait {
    /// The wait, without what has arrived.
    wait: RestingWait,
    /// Receives that are complete, by their place in the list.
    complete: Vec<bool>,
    /// Number of counters whose work is done, from the first on.
    passed: usize,
    /// Number of advances of counters that were examined.
    advances: usize,
}

/// A wait after further arrivals, and the room that is left in the inbox.
struct ExaminedWait<'w> {
    wait: &'w RestingWait,
    complete: Vec<bool>,
    missing: Vec<u64>,
    room: InboxRoom,
}

impl QuietWait {
    /// Begins a wait. The inbox of the slot is empty.
    pub fn new(wait: RestingWait) -> QuietWait {
        let complete = vec![false; wait.messages.len()];
        QuietWait { wait, complete, passed: 0, advances: 0 }
    }

    /// Handles what has arrived, if all of it is quiet: time passes for the work, which is added to `prepaid`. `advances` are the counters
    /// that have advanced since the wait began. Returns false, and does nothing, if the rank has to run.
    pub fn handle(
        &mut self,
        sim: &Sim,
        slot: &RankSlot,
        advances: &[u64],
        prepaid: &mut PrepaidWork,
    ) -> bool {
        if sim.fault().is_some() || sim.arrived_datagrams() > 0 {
            return false;
        }
        let fresh = advances.get(self.advances..).unwrap_or_default();
        if self.wait.acts && !fresh.is_empty() {
            return false;
        }
        let Some((complete, missing)) = self.examine(sim, slot, fresh) else { return false };
        self.advances = advances.len();
        self.complete = complete;
        for (awaited, missing) in self.wait.counters.iter_mut().zip(missing) {
            awaited.missing = missing;
        }
        while let Some(message) = sim.receive(None) {
            let len = message.payload.len();
            slot.inbox.show(&message);
            sim.release(message);
            prepaid.messages += 1;
            if len > 0 {
                sim.charge(Work::Copy(len));
                prepaid.copies.push(len);
            }
        }
        let passed = self.passed;
        while let Some(awaited) = self.wait.counters.get(self.passed)
            && awaited.missing == 0
        {
            self.passed += 1;
            if awaited.matches {
                sim.charge(Work::Match);
                prepaid.matches += 1;
            }
        }
        prepaid.rounds += ROUNDS + u32::from(self.passed > passed);
        true
    }

    /// Examines what has arrived. Returns the complete receives, and how much is missing of each counter. Returns `None` if an arrival is
    /// not quiet, or ends the wait.
    fn examine(&self, sim: &Sim, slot: &RankSlot, fresh: &[u64]) -> Option<(Vec<bool>, Vec<u64>)> {
        let mut examined = ExaminedWait {
            wait: &self.wait,
            complete: self.complete.clone(),
            missing: self.wait.counters.iter().map(|awaited| awaited.missing).collect(),
            room: slot.inbox.room(),
        };
        fresh.iter().for_each(|&word| examined.advance(word));
        let mut is_quiet = true;
        sim.look_at_messages(&mut |message| {
            is_quiet = examined.add(message);
            if is_quiet { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        let ends = examined.missing.iter().all(|&missing| missing == 0);
        (is_quiet && !ends).then_some((examined.complete, examined.missing))
    }
}

impl ExaminedWait<'_> {
    /// Advances the counter of a word of [`RankSlot::advances`].
    fn advance(&mut self, word: u64) {
        for (awaited, missing) in self.wait.counters.iter().zip(&mut self.missing) {
            let own = match awaited.immediate {
                Some(immediate) => IMMEDIATE | u64::from(immediate),
                None => u64::from(awaited.counter.0),
            };
            *missing = missing.saturating_sub(u64::from(own == word));
        }
    }

    /// Adds a message. Returns false if the message is not quiet, or has no room.
    fn add(&mut self, message: &ArrivedMessage) -> bool {
        let receive = self.wait.messages.iter().zip(&self.complete).position(|(awaited, done)| {
            !done
                && awaited.from.is_none_or(|from| from == message.peer)
                && awaited.pattern.contains(&message.head)
        });
        if !self.room.take(message.payload) {
            return false;
        }
        let Some(index) = receive else { return self.wait.kept.contains(&message.head) };
        let awaited = &self.wait.messages[index];
        self.complete[index] = true;
        self.advance(u64::from(awaited.counter.0));
        awaited.quiet.is_some_and(|most| message.payload.len() <= most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;
    use weft_fabric::{AwaitedCounter, AwaitedMessage, Counter, Head, HeadPattern, Sge};
    use weft_fabric_sim::{Cluster, Machine, SimOptions};

    const KIND: Head = Head([0xff, 0, 0]);

    /// A wait for messages of kind 1 from ranks 1 and 2, of up to 100 bytes. Messages of kind 2 are kept.
    fn wait() -> QuietWait {
        let pattern = |kind| HeadPattern { head: Head([kind, 0, 0]), mask: KIND };
        let message = |from, counter| AwaitedMessage {
            from: Some(from),
            pattern: pattern(1),
            quiet: Some(100),
            counter: Counter(counter),
        };
        let counter = |counter| AwaitedCounter {
            counter: Counter(counter),
            immediate: None,
            missing: 1,
            matches: true,
        };
        QuietWait::new(RestingWait {
            messages: vec![message(1, 5), message(2, 6)],
            kept: pattern(2),
            counters: vec![counter(5), counter(6)],
            acts: false,
        })
    }

    /// Sends a message of `kind` and `len` bytes from a rank to rank 0, and lets the wait of rank 0 handle it.
    fn handles(
        wait: &mut QuietWait,
        prepaid: &mut PrepaidWork,
        sent: &[(usize, u64, usize)],
    ) -> bool {
        let changes = [("ranks_per_node", "1")];
        let machine = Rc::new(Machine::load_with("ndr", &changes).unwrap());
        let cluster = Cluster::new(&machine, SimOptions::new(3)).unwrap();
        for &(from, kind, len) in sent {
            let _ = cluster.rank(from).send(0, Head([kind, 0, 0]), Sge::phantom(len), None);
        }
        while cluster.advance() {
            while let Some(rank) = cluster.due() {
                cluster.rest(rank);
            }
        }
        // SAFETY: zeros are valid for the atomics and bytes of a slot.
        let slot: Box<RankSlot> = unsafe { Box::new_zeroed().assume_init() };
        let (sim, before) = (cluster.rank(0), cluster.clock(0));
        let quiet = wait.handle(&sim, &slot, &[], prepaid);
        assert_eq!((cluster.clock(0) > before, sim.arrived_messages() == 0), (quiet, quiet));
        quiet
    }

    #[test]
    fn quiet_messages_take_time_and_leave_work_to_the_rank() {
        let (mut wait, mut prepaid) = (wait(), PrepaidWork::default());
        assert!(handles(&mut wait, &mut prepaid, &[(2, 1, 70), (1, 2, 500)]));
        assert_eq!(
            (prepaid.messages, prepaid.matches, &prepaid.copies[..]),
            (2, 0, &[70, 500][..])
        );
        assert_eq!(prepaid.take_rounds(), ROUNDS);
        assert!(prepaid.take_message() && prepaid.take_message() && !prepaid.take_message());
        assert!(prepaid.covers(Work::Copy(500)) && !prepaid.covers(Work::Copy(500)));
        assert!(!prepaid.is_done() && prepaid.covers(Work::Copy(70)) && prepaid.is_done());
        assert!(!prepaid.covers(Work::Match) && !prepaid.covers(Work::Entry));
    }

    #[test]
    fn work_of_ended_requests_is_charged_in_their_order() {
        let (mut wait, mut prepaid) = (wait(), PrepaidWork::default());
        assert!(handles(&mut wait, &mut prepaid, &[(1, 1, 0)]));
        assert_eq!((prepaid.messages, prepaid.matches), (1, 1));
        assert_eq!(prepaid.take_rounds(), ROUNDS + 1);
        // The other message ends the wait.
        assert!(!handles(&mut wait, &mut prepaid, &[(2, 1, 0)]));
    }

    #[test]
    fn other_arrivals_let_the_rank_run() {
        for sent in [(1, 3, 0), (1, 1, 101), (2, 3, 0)] {
            assert!(!handles(&mut wait(), &mut PrepaidWork::default(), &[sent]), "{sent:?}");
        }
        // A second message for the same receive is of no known kind.
        assert!(!handles(&mut wait(), &mut PrepaidWork::default(), &[(1, 1, 0), (1, 1, 0)]));
    }
}
