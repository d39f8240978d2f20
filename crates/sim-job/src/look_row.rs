//! The time of looks without waiting (MPI_Test) that a rank makes in a row.

use weft_fabric_sim::units::Picoseconds;

/// Looks in a row that have seen nothing new. An event ends the rest after a look, so the steps may grow without loss, for the sake of
/// loops that end at a time of their own. A loop may also end after a number of looks: its time must not explode.
///
/// ```text
///   step   a poll ──── an eighth of the time since the first look ──── 100 us ──── + 1 us with each look
///   time   ~ looks     ~ (9/8)^looks, up to 0.8 ms                                 ~ looks^2 / 2 us
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookRow {
    /// Clock at the first look.
    since: Picoseconds,
    /// Time of the last look.
    step: Picoseconds,
}

impl LookRow {
    /// Begins a row at the time `now`.
    pub fn new(now: Picoseconds) -> LookRow {
        LookRow { since: now, step: 0 }
    }

    /// Returns the time of the end of a look that begins at `now`. `poll` is the minimum time of a look.
    pub fn next(&mut self, now: Picoseconds, poll: Picoseconds) -> Picoseconds {
        let most = self.step.max(LookRow::QUICK) + LookRow::MORE;
        self.step = poll.max((now.saturating_sub(self.since) / LookRow::SHARE).min(most));
        now.saturating_add(self.step)
    }

    /// Part of the time since the first look that a look takes at most.
    const SHARE: Picoseconds = 8;

    /// Step up to which steps grow with the time since the first look.
    const QUICK: Picoseconds = 100_000_000;

    /// Growth of longer steps with each look.
    const MORE: Picoseconds = 1_000_000;
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLL: Picoseconds = 10_000;

    /// Returns the time after `looks` looks.
    fn time(looks: usize) -> Picoseconds {
        let mut row = LookRow::new(0);
        (0..looks).fold(0, |now, _| row.next(now, POLL))
    }

    #[test]
    fn long_waits_take_few_looks() {
        // 10 ms, a second, an hour.
        for (looks, end) in [(300, 10_000_000_000), (2_000, 1 << 40), (90_000, 3600 * (1 << 40))] {
            assert!(time(looks) >= end, "{looks} looks end at {} ps", time(looks));
        }
    }

    #[test]
    fn time_grows_no_more_than_a_square() {
        for looks in [1_000, 10_000, 100_000, 1_000_000] {
            let most = looks as u64 * LookRow::QUICK + (looks as u64).pow(2) / 2 * LookRow::MORE;
            assert!(time(looks) <= most + most / 100, "{looks} looks end at {} ps", time(looks));
        }
        let mut row = LookRow { since: 0, step: 5 };
        assert_eq!(row.next(Picoseconds::MAX - 1, POLL), Picoseconds::MAX);
    }
}
