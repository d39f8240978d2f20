//! Completion of an access epoch at its target (MPI_Win_complete): by flags behind the data, on the rails
//! that carry them.
//!
//! ```text
//!   acknowledged   rail 0  data ──▶ ◀── ack            flag ──▶     one flag, once all data are acknowledged
//!                  rail 1  data ──▶ ◀── ack
//!   used           rail 0  data ──▶ flag: rails = {1} ──▶           a flag behind the data, on each rail that has data;
//!                  rail 1  data ──▶ flag ──▶                        the first flag names the other rails
//!   every          the same on all rails, whether they have data or not: the document's way
//! ```
//! Time until the target has the flag: one latency for `used` and `every`, three latencies for `acknowledged`. Cost: one flag per
//! rail. The origin first waits for its reads, because a flag may arrive before the target's memory has been read. If a fabric
//! guarantees no order ([`FabricExt::write_flag_after`]), or if operations are complete when they are posted, the method is
//! `acknowledged`. Source: Vishnu et al. 2005, section 3.2 ("multiple synchronization messages") and figure 4.
//!
//! The word `completed` is epochs x 256 + the set of rails whose own words must be awaited. If a rail fails, a word is written
//! again, always with the same value and before any later value. Since a word may arrive more than once, words do not count
//! arrivals.

use super::flags::{PairFlags, encode};
use crate::access::WindowAccess;
use crate::control::layout::{ControlTable, RAILS};
use crate::memory::WindowMemory;
use crate::memory::target_address::TargetReach;
use crate::options::EpochEnding;
use weft_fabric::{Fabric, FabricExt};
use weft_process::Error;

/// Iterates over the rails of a set, in ascending order.
fn each(rails: u8) -> impl Iterator<Item = usize> {
    (0..RAILS).filter(move |rail| rails >> rail & 1 == 1)
}

impl<F: Fabric> PairFlags<F> {
    /// Reports to a rank, by flags behind the data under way, that this rank has completed one more access epoch. Returns false,
    /// and sends no flag, if the flag must not be sent before the issued operations are complete.
    pub fn tell_behind(
        &self,
        memory: &WindowMemory<F>,
        access: &WindowAccess<F>,
        rank: usize,
    ) -> Result<bool, Error> {
        access.issue_deferred(rank)?;
        let Some(TargetReach::Direct { rails, .. }) = memory.known_reach(rank) else {
            return Ok(false);
        };
        let (used, reads) = access.in_flight().rails(rank);
        let set = match self.core.options.ending {
            EpochEnding::Acknowledged => return Ok(false),
            EpochEnding::Used => used,
            EpochEnding::Every => used | ((1 << rails) - 1),
        };
        // If a rail has no word at the target, the origin must wait until the data are acknowledged.
        let within = set >> self.control.rails(rank) == 0;
        if used == 0 || reads || !within {
            return Ok(false);
        }
        let (count, set) = (self.next_completed(rank), set as u8);
        let (fabric, peer) = (self.core.fabric(), self.core.peer(rank));
        let lead = set.trailing_zeros() as usize;
        let others = set & !(1 << lead);
        let flag = |table| self.control.remote_flag(rank, table, self.core.rank());
        for rail in each(others) {
            let word = flag(ControlTable::Rail(rail, count));
            if !fabric.write_flag_after(rail, peer, &word.with(encode(count, 0)))? {
                return Ok(false);
            }
        }
        // If this write fails, the words that were already written are still correct, because the data on their rails have arrived.
        let value = encode(count, others);
        let completed = flag(ControlTable::Completed(count)).with(value);
        if !fabric.write_flag_after(lead, peer, &completed)? {
            return Ok(false);
        }
        self.count_completed(rank);
        Ok(true)
    }

    /// Returns the rails whose words must arrive to complete epoch `count` of a rank. Returns `None` if the first flag has not
    /// arrived yet.
    fn behind(&self, rank: usize, count: u64) -> Option<u8> {
        let flag = self.control.flag(ControlTable::Completed(count), rank);
        let value = self.core.fabric().counters().value(flag);
        (value >= encode(count, 0)).then_some(value as u8)
    }

    /// Waits until epoch `count` of a rank has ended.
    pub async fn hear_epoch(&self, rank: usize, count: u64) -> Result<(), Error> {
        let flag = self.control.flag(ControlTable::Completed(count), rank);
        self.control.until(flag, encode(count, 0)).await?;
        for rail in each(self.behind(rank, count).unwrap_or(0)) {
            if rail == 0 || rail >= self.control.own().rails() {
                return Err(self.control.corrupt(rank, "set of rails").into());
            }
            let flag = self.control.flag(ControlTable::Rail(rail, count), rank);
            self.control.until(flag, encode(count, 0)).await?;
        }
        Ok(())
    }

    /// Returns true if epoch `count` of a rank has ended by now.
    pub fn is_heard(&self, rank: usize, count: u64) -> bool {
        let counters = self.core.fabric().counters();
        let there = |rail: usize| {
            let known = rail > 0 && rail < self.control.own().rails();
            known && {
                let flag = self.control.flag(ControlTable::Rail(rail, count), rank);
                counters.value(flag) >= encode(count, 0)
            }
        };
        self.behind(rank, count).is_some_and(|rails| each(rails).all(there))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_rails_stands_behind_the_count() {
        assert_eq!(each(0b1000_0110).collect::<Vec<_>>(), [1, 2, 7]);
        assert!(encode(3, 0xff) < encode(4, 0));
        assert_eq!(encode(3, 0b10) as u8, 0b10);
    }
}
