//! Time that a program takes to read the clock if computing takes no time. Without it, a loop that waits for a time would never end.

/// Time in picoseconds of a plain reading.
const READING: u64 = 20_000;

/// Number of readings in a row that are plain: as many a program may make that measures its own work.
const PLAIN: u64 = 10_000;

/// Number of further readings in a row after which a reading takes a plain reading's time more. A wait of a second takes some 10^5
/// readings.
const STEP: u64 = 100;

/// Readings of the clock in a row, between which the clock has not advanced otherwise. Times in picoseconds.
///
/// ```text
///   time of a reading     plain ─────────────── 10,000 ─── + plain ── each 100 ─── + plain ── each 100 ── ...
///   time of n in a row    n plain                     up to n plain + (n - 10,000)^2 / 200 plain
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ClockReadings {
    count: u64,
    /// Time that the present reading returns if it goes on with the row.
    next: u64,
}

impl ClockReadings {
    /// Returns an empty row.
    pub const fn new() -> ClockReadings {
        ClockReadings { count: 0, next: 0 }
    }

    /// Begins a reading after the time `now`. Returns the time that the reading takes.
    pub fn begin(&mut self, now: u64) -> u64 {
        if self.next != now {
            self.count = 0;
        }
        let time = READING * (1 + self.count.saturating_sub(PLAIN) / STEP);
        self.next = now.saturating_add(time);
        time
    }

    /// Ends a reading, which has returned `now`. Other work that was carried out together with the reading ends the row.
    pub fn end(&mut self, now: u64) {
        self.count = if now == self.next { self.count + 1 } else { 0 };
        self.next = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the clock until it shows `end`, or `most` times. Returns the time and the number of readings.
    fn read(readings: &mut ClockReadings, most: u64, end: u64) -> [u64; 2] {
        let (mut now, mut count) = (0, 0);
        while now < end && count < most {
            now += readings.begin(now);
            readings.end(now);
            count += 1;
        }
        [now, count]
    }

    #[test]
    fn a_wait_of_a_second_takes_some_hundred_thousand_readings() {
        let second = 1_000_000_000_000;
        let [now, count] = read(&mut ClockReadings::new(), u64::MAX, second);
        assert!(count < 120_000 && now - second < 25_000_000, "{count} readings until {now}");
    }

    #[test]
    fn time_grows_as_a_square_and_never_more() {
        let time = |count| read(&mut ClockReadings::new(), count, u64::MAX)[0];
        assert_eq!(time(10_000), 10_000 * READING);
        let further = [10_000, 100_000, 1_000_000].map(|further| {
            (time(10_000 + further) - 10_000 * READING) as f64 / READING as f64 / further as f64
        });
        assert_eq!(further.map(f64::round), [51.0, 501.0, 5001.0]);
    }

    #[test]
    fn other_work_ends_the_row() {
        let mut readings = ClockReadings::new();
        let [now, _] = read(&mut readings, 20_000, u64::MAX);
        assert!(readings.begin(now) > READING);
        let (mut between, mut within) = (readings, readings);
        assert_eq!(between.begin(now + 1), READING);
        within.end(now + READING * 1000);
        assert_eq!(within.begin(now + READING * 1000), READING);
    }
}
