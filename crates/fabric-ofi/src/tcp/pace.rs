//! Limit on the bytes of reads that are under way at a time.
//!
//! ```text
//!   bytes under way = 5/4 x (measured rate) x (time of a request with a short answer) + one part
//! ```
//! With fewer bytes than the first term, the connection is idle between requests. Additional bytes stay in the kernels' buffers,
//! and have left all caches by the time they are copied out: windows of 1 MiB messages were a third slower with all bytes under
//! way. Therefore the rate and the time are measured, as in congestion control by rate. The additional quarter shows if a higher
//! rate is possible. While the program computes there is no limit, because each answer would wake the helper to request more.
//! Source: Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 14 (5), 2016.

use std::time::{Duration, Instant};

/// Maximum length of a part of a read, in bytes.
pub const PART: usize = 64 << 10;

/// Minimum number of bytes in a busy period for a valid sample of the rate.
const SEEN: usize = 4 * PART;

/// Fraction by which each sample reduces the known rate and increases the known time, since the load of the network changes.
const FADE: f64 = 0.01;

#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Rate in bytes per nanosecond, or 0 if not known.
    rate: f64,
    /// Time from a request to its answer while no other request is under way, in nanoseconds.
    answer: f64,
    /// Number of bytes that were requested and have not come.
    under_way: usize,
    /// Start of the present busy period, in which bytes are always under way, and number of bytes that have come since.
    busy: Option<(Instant, usize)>,
}

impl Pace {
    pub fn new() -> Pace {
        Pace { rate: 0.0, answer: 0.0, under_way: 0, busy: None }
    }

    /// Returns the maximum number of bytes under way.
    fn most(&self) -> usize {
        PART + (1.25 * self.rate * self.answer) as usize
    }

    /// Returns the number of bytes that were requested and have not come.
    pub fn under_way(&self) -> usize {
        self.under_way
    }

    /// Returns true if `len` more bytes may be requested.
    pub fn may_ask(&self, len: usize) -> bool {
        self.under_way == 0 || self.under_way + len <= self.most().max(2 * PART)
    }

    /// Notes that `len` bytes were requested.
    pub fn asks(&mut self, len: usize, now: Instant) {
        self.under_way += len;
        self.busy.get_or_insert((now, 0));
    }

    /// Notes that `len` bytes have come or were refused.
    pub fn comes(&mut self, len: usize, now: Instant) {
        self.under_way -= len;
        let Some((since, come)) = &mut self.busy else { return };
        let passed = now.duration_since(*since).max(Duration::from_nanos(1)).as_nanos() as f64;
        if *come == 0 && len <= PART {
            let known = if self.answer > 0.0 { self.answer * (1.0 + FADE) } else { passed };
            self.answer = known.min(passed);
        }
        *come += len;
        if *come >= SEEN {
            self.rate = (self.rate * (1.0 - FADE)).max(*come as f64 / passed);
        }
        if self.under_way == 0 {
            self.busy = None;
        } else if *come >= 4 * SEEN {
            // A long busy period begins anew, since old samples say little about the present rate.
            (*since, *come) = (now, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of bytes under way after many reads, over a connection of `rate` bytes per nanosecond that answers
    /// after `delay` nanoseconds.
    fn settles(rate: f64, delay: f64) -> usize {
        let (mut pace, start) = (Pace::new(), Instant::now());
        let at = |ns: f64| start + Duration::from_nanos(ns as u64);
        let (mut now, mut free) = (0.0f64, 0.0f64);
        let mut most = 0;
        // A few reads of 8 MiB, with pauses. Each part takes the delay, and the connection carries one part at a time.
        for _ in 0..40 {
            let (mut left, mut coming) = (128, std::collections::VecDeque::new());
            most = 0;
            while left > 0 || !coming.is_empty() {
                while left > 0 && pace.may_ask(PART) {
                    pace.asks(PART, at(now));
                    free = free.max(now + delay) + PART as f64 / rate;
                    coming.push_back(free);
                    left -= 1;
                    most = most.max(pace.under_way);
                }
                now = coming.pop_front().expect("something is asked for");
                pace.comes(PART, at(now));
            }
            now += 1e6;
        }
        most
    }

    #[test]
    fn what_is_under_way_fits_the_way() {
        for (rate, delay) in [(3.0, 10e3), (1.0, 50e3), (12.0, 30e3), (1.0, 1e6), (0.1, 20e3)] {
            let (most, product) = (settles(rate, delay), rate * delay);
            let least = product + PART as f64;
            let bound = 1.25 * (product + PART as f64) + 2.0 * PART as f64;
            assert!(
                most as f64 >= 0.9 * least.max(2.0 * PART as f64)
                    && most as f64 <= bound.max(2.0 * PART as f64),
                "{rate} B/ns, {delay} ns: {most} bytes of {least} to {bound}"
            );
        }
    }
}
