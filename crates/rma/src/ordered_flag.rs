//! How a target learns that an access epoch is over (MPI_Win_complete): by flags behind the data, on the rails
//! that carry them.
//!
//! ```text
//!   acknowledged   rail 0  data ──▶ ◀── ack            flag ──▶     one flag, once all is acknowledged
//!                  rail 1  data ──▶ ◀── ack
//!   used           rail 0  data ──▶ flag: rails = {1} ──▶           a flag behind the data of each rail that has some;
//!                  rail 1  data ──▶ flag ──▶                        the first says which others there are
//!   every          the same on all rails, whether they have data or not: the document's way
//! ```
//! Cost until the target knows: a latency for `used` and `every`, three for `acknowledged`; a flag a rail. What
//! is read is waited for first: a flag does not come after a read at its target. Where a fabric promises no order
//! ([`FabricExt::write_flag_after`]), and of operations that are over when they are posted, it is `acknowledged`.
//! Source: Vishnu et al. 2005, section 3.2 ("multiple synchronization messages") and figure 4.
//!
//! The word `completed` is epochs x 256 + the set of rails whose own words are to be awaited. Words are written
//! again if a rail dies, always with the same value and before a later one: so they are no counts of arrivals.

use crate::Window;
use crate::control::Table;
use crate::place::Reach;
use std::str::FromStr;
use weft_fabric::{Fabric, FabricExt, Fault};
use weft_process::Error;

/// By what an access epoch ends at its targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Ending {
    /// Flags on the rails that were used.
    #[default]
    Used,
    /// Flags on every rail.
    Every,
    /// One flag after all acknowledgements.
    Acknowledged,
}

impl Ending {
    /// Each once, for settings and tests that go through them.
    pub const ALL: [Ending; 3] = [Ending::Used, Ending::Every, Ending::Acknowledged];

    /// The word by which a setting chooses it; its case does not matter there.
    pub fn name(self) -> &'static str {
        match self {
            Ending::Used => "used",
            Ending::Every => "every",
            Ending::Acknowledged => "acknowledged",
        }
    }
}

impl FromStr for Ending {
    type Err = ();

    fn from_str(name: &str) -> Result<Ending, ()> {
        Ending::ALL.into_iter().find(|it| it.name().eq_ignore_ascii_case(name)).ok_or(())
    }
}

/// Rails that have words of their own, at most; the lowest one of an epoch needs none.
pub const RAILS: usize = 8;

/// What the word `completed` says: so many epochs, and rails to hear of.
pub fn encode(count: u64, rails: u8) -> u64 {
    count << 8 | u64::from(rails)
}

/// Rails of a set, ascending.
fn each(rails: u8) -> impl Iterator<Item = usize> {
    (0..RAILS).filter(move |rail| rails >> rail & 1 == 1)
}

impl<F: Fabric> Window<F> {
    /// A rank's operations travel over `rail`.
    #[inline]
    pub(crate) fn uses(&self, rank: usize, rail: usize) {
        let used = &self.targets[rank].used;
        // One that has no place in the set has no word either.
        used.set(used.get() | 1u16.checked_shl(rail as u32).unwrap_or(1 << RAILS));
    }

    /// Tells a rank that this one has completed once more, behind the data on their way. False: nothing was
    /// told, since that is to come after the end of what was issued.
    pub(crate) fn tell_behind(&self, rank: usize) -> Result<bool, Error> {
        let target = &self.targets[rank];
        self.issue_queued(rank)?;
        let Some(Reach::Direct { rails, .. }) = target.reach.get() else { return Ok(false) };
        let used = target.used.get();
        let set = match self.options.ending {
            Ending::Acknowledged => return Ok(false),
            Ending::Used => used,
            Ending::Every => used | ((1 << rails) - 1),
        };
        // A rail without a word there leaves nothing to do but to wait.
        let within = set >> self.shown[rank].rails == 0;
        if used == 0 || target.reads.get() || !within {
            return Ok(false);
        }
        let (count, set) = (target.completed.get() + 1, set as u8);
        let (fabric, peer) = (self.endpoint().fabric(), self.peer(rank));
        let lead = set.trailing_zeros() as usize;
        let others = set & !(1 << lead);
        let flag = |table| self.control.remote(self.shown[rank].control, table, self.rank());
        for rail in each(others) {
            let word = flag(Table::Rail(rail, count));
            if !fabric.write_flag_after(rail, peer, word, encode(count, 0))? {
                return Ok(false);
            }
        }
        // What others were told by now is true as well if this fails: their data are there.
        let value = encode(count, others);
        if !fabric.write_flag_after(lead, peer, flag(Table::Completed(count)), value)? {
            return Ok(false);
        }
        target.completed.set(count);
        Ok(true)
    }

    /// Rails to hear of before epoch `count` of a rank is over; `None`: it is not known yet.
    fn behind(&self, rank: usize, count: u64) -> Option<u8> {
        let flag = self.control.flag(Table::Completed(count), rank);
        let value = self.endpoint().fabric().counters().value(flag);
        (value >= encode(count, 0)).then_some(value as u8)
    }

    /// Waits until epoch `count` of a rank is over.
    pub(crate) async fn hear_epoch(&self, rank: usize, count: u64) -> Result<(), Error> {
        let endpoint = self.endpoint();
        let flag = self.control.flag(Table::Completed(count), rank);
        endpoint.until(flag, encode(count, 0)).await?;
        for rail in each(self.behind(rank, count).unwrap_or(0)) {
            if rail == 0 || rail >= self.control.rails() {
                return Err(Fault::corrupt(self.peer(rank), "set of rails").into());
            }
            let flag = self.control.flag(Table::Rail(rail, count), rank);
            endpoint.until(flag, encode(count, 0)).await?;
        }
        Ok(())
    }

    /// Whether epoch `count` of a rank is over by now.
    pub(crate) fn is_heard(&self, rank: usize, count: u64) -> bool {
        let counters = self.endpoint().fabric().counters();
        let there = |rail: usize| {
            let known = rail > 0 && rail < self.control.rails();
            known && {
                let flag = self.control.flag(Table::Rail(rail, count), rank);
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
    fn endings_have_names() {
        for ending in Ending::ALL {
            assert_eq!(ending.name().parse(), Ok(ending));
        }
        assert!("some".parse::<Ending>().is_err());
    }

    #[test]
    fn a_set_of_rails_stands_behind_the_count() {
        assert_eq!(each(0b1000_0110).collect::<Vec<_>>(), [1, 2, 7]);
        assert!(encode(3, 0xff) < encode(4, 0));
        assert_eq!(encode(3, 0b10) as u8, 0b10);
    }
}
