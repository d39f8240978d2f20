//! Time that a program takes to read the clock. Without it, a loop that waits for a time would never end.

/// Time in picoseconds of a reading.
const READING: u64 = 20_000;

/// Number of readings in a row until the time of a reading doubles, roughly. A long wait takes few readings.
const READINGS: u64 = 64;

/// Readings of the clock in a row, between which the clock has not advanced otherwise. Times in picoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClockReadings {
    first: u64,
    last: u64,
}

impl ClockReadings {
    /// Returns an empty row.
    pub const fn new() -> ClockReadings {
        ClockReadings { first: 0, last: 0 }
    }

    /// Returns the time that a reading takes at the time `now`: 20 ns, or a 64th of the time since the row began.
    pub fn next(&mut self, now: u64) -> u64 {
        if self.last != now {
            self.first = now;
        }
        READING.max((now - self.first) / READINGS)
    }

    /// Ends a reading, which has returned `now`.
    pub fn end(&mut self, now: u64) {
        self.last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_takes_few_readings_and_ends_close_to_its_time() {
        let (mut readings, mut now, mut count) = (ClockReadings::default(), 5_000_000, 0);
        let end = now + 1_000_000_000;
        while now < end {
            now += readings.next(now);
            readings.end(now);
            count += 1;
        }
        assert!(count < 500 && now - end < 20_000_000, "{count} readings, {} ps late", now - end);
        // Other work has ended the row.
        assert_eq!(readings.next(now + 1), READING);
    }
}
