//! Credit between two processes. Credit limits the number of units that a sender has sent and the receiver has not released yet.
//!
//! ```text
//!   sender      charged ── units sent so far            released ── units that the receiver has reported released
//!   receiver    owed ── units released so far           told ── units that were reported to the sender
//! ```
//! Invariants: `released <= charged` and `told <= owed`; none of the four numbers decreases, except `charged` by a refund; the
//! unreleased units of a sender are at most the agreed maximum. Each report carries the total so far. So a report may be left out,
//! but reports must not be reordered. For messages, a unit is a byte of payload. For streams, a unit is a small message.

/// Credit in both directions between this process and a peer.
#[derive(Debug, Clone, Default)]
pub struct Credit {
    charged: u64,
    released: u64,
    owed: u64,
    told: u64,
}

impl Credit {
    /// Returns true if at most `most` units would be unreleased after `units` more units were sent.
    #[inline(always)]
    pub fn covers(&self, units: u64, most: u64) -> bool {
        self.charged + units - self.released <= most
    }

    /// Charges `units` if the credit covers this number of units. Otherwise charges nothing and returns false.
    #[inline(always)]
    pub fn try_charge(&mut self, units: u64, most: u64) -> bool {
        let covered = self.covers(units, most);
        if covered {
            self.charged += units;
        }
        covered
    }

    /// Takes back a charge of `units`, which will never be released.
    pub fn refund(&mut self, units: u64) {
        self.charged -= units;
    }

    /// Notes that the peer has released `released` units in total. Returns false if the peer cannot have released that much.
    pub fn release_to(&mut self, released: u64) -> bool {
        let sound = (self.released..=self.charged).contains(&released);
        if sound {
            self.released = released;
        }
        sound
    }

    /// Adds `units` that came from the peer and that this process has released. If more than `beyond` units are not reported yet,
    /// returns the total, which the caller reports to the peer.
    #[inline(always)]
    pub fn add_returned(&mut self, units: u64, beyond: u64) -> Option<u64> {
        self.owed += units;
        if self.owed - self.told <= beyond {
            return None;
        }
        self.told = self.owed;
        Some(self.owed)
    }

    /// Returns the credit to add to a message that is sent anyway: the low half of the total released so far. Returns 0 if fewer
    /// than `least` units are unreported, or if the low half is 0.
    #[inline(always)]
    pub fn ride(&mut self, least: u64) -> u32 {
        if self.owed - self.told < least || self.owed as u32 == 0 {
            return 0;
        }
        self.told = self.owed;
        self.owed as u32
    }

    /// Handles a report of the peer: the low half of the total number of units that the peer has released. Returns false if the
    /// peer cannot have released that much.
    pub fn release_to_low(&mut self, low: u32) -> bool {
        // The low half is enough, because the unreleased part is less than 2^32.
        let more = low.wrapping_sub(self.released as u32);
        self.release_to(self.released + u64::from(more))
    }

    /// Returns the total number of units of the peer that this process has released.
    pub fn owed(&self) -> u64 {
        self.owed
    }

    /// Returns true if at most `beyond` units would be unreported after this process released `units` more units of the peer.
    pub fn may_owe(&self, units: u64, beyond: u64) -> bool {
        self.owed + units - self.told <= beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_unreleased_than_was_agreed() {
        let mut credit = Credit::default();
        assert!(
            credit.try_charge(60, 100) && !credit.try_charge(41, 100) && credit.covers(40, 100)
        );
        assert!(credit.release_to(50));
        assert!(credit.try_charge(90, 100) && !credit.covers(1, 100));
        credit.refund(90);
        assert!(credit.covers(90, 100));
    }

    #[test]
    fn a_peer_releases_what_it_has_got_and_never_less_than_before() {
        let mut credit = Credit::default();
        assert!(credit.try_charge(10, 10));
        assert!(credit.release_to(4) && !credit.release_to(3) && !credit.release_to(11));
        assert!(credit.release_to(10));
    }

    #[test]
    fn what_rides_along_is_the_low_half_of_all() {
        let (mut sender, mut receiver) = (Credit::default(), Credit::default());
        assert_eq!(receiver.ride(1), 0, "nothing is owed");
        // The total grows beyond 32 bits.
        for round in 1..=100u64 {
            let (units, most) = (100_000_000, 400_000_000);
            assert!(sender.try_charge(units, most));
            assert_eq!(receiver.add_returned(units, most), None);
            if round % 3 == 0 {
                assert_eq!(receiver.ride(units * 4), 0, "not worth it");
                assert!(sender.release_to_low(receiver.ride(units)));
                assert_eq!((sender.released, receiver.told), (round * units, round * units));
                assert_eq!(receiver.ride(1), 0, "told once");
            }
        }
        assert!(!sender.release_to_low(receiver.told as u32 - 1), "less than before");
        assert!(!sender.release_to_low(sender.charged as u32 + 1), "more than was sent");
    }

    #[test]
    fn a_peer_is_told_once_it_is_worth_a_word() {
        let mut credit = Credit::default();
        assert_eq!(
            [credit.add_returned(20, 25), credit.add_returned(5, 25), credit.add_returned(1, 25)],
            [None, None, Some(26)]
        );
        assert!(credit.may_owe(25, 25) && !credit.may_owe(26, 25));
        assert_eq!([credit.add_returned(25, 25), credit.add_returned(1, 25)], [None, Some(52)]);
        assert_eq!(credit.owed(), 52);
    }
}
