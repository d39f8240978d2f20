//! The rate of a network, and its token bucket, from times after rests.
//!
//! ```text
//!   time of n bytes = the rest of a message + max(n / line, (n - bytes) / bandwidth)
//!
//!   line        between messages of 16 KiB and 64 KiB
//!   bandwidth   between streams of n and 2 n bytes, which empty the bucket
//!   bytes       what the shorter stream takes less than at the bandwidth
//! ```

use super::rank::{BURSTS, NetworkFigures};

/// Rates of a rail in MB/s, and its bucket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RailRates {
    pub bandwidth: f64,
    pub bucket: Option<FittedBucket>,
}

/// A token bucket that meets the measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FittedBucket {
    /// Number of bytes that pass at the rate of the line.
    pub bytes: f64,
    /// Rate of the line, in MB/s.
    pub line: f64,
}

impl RailRates {
    /// Returns the rates that meet `far`. There is a bucket if the line is faster than the bandwidth, and the bucket holds the messages by
    /// which the line is measured.
    pub fn of(far: &NetworkFigures) -> RailRates {
        let after = &far.after_rest;
        let rate = |bytes: f64, us: f64| bytes / us.max(f64::MIN_POSITIVE);
        let [short, long] = after.bursts;
        let line = rate((BURSTS[1] - BURSTS[0]) as f64, long - short);
        let bandwidth = rate(after.bytes, after.streams[1] - after.streams[0]);
        // The rest of the stream is a message of a few bytes and its answer.
        let bytes = after.bytes - bandwidth * (after.streams[0] - 2.0 * far.short);
        // A burst may be disturbed in all passes. Then the line is not known.
        if long > short && line > bandwidth && bytes >= BURSTS[1] as f64 {
            RailRates { bandwidth, bucket: Some(FittedBucket { bytes, line }) }
        } else {
            RailRates { bandwidth: far.rate, bucket: None }
        }
    }

    /// Returns the rate of a message that fits in the bucket, in MB/s.
    pub fn line(&self) -> f64 {
        self.bucket.map_or(self.bandwidth, |bucket| bucket.line)
    }
}

#[cfg(test)]
mod tests {
    use super::super::rank::StreamFigures;
    use super::*;

    /// Returns the figures of a network with a token bucket.
    fn network(bytes: f64, line: f64, bandwidth: f64) -> NetworkFigures {
        let time = |n: f64| 10.0 + (n / line).max((n - bytes) / bandwidth);
        let stream = 2e6;
        let after_rest = StreamFigures {
            bursts: BURSTS.map(|n| time(n as f64)),
            streams: [stream, 2.0 * stream].map(|n| time(n) + 10.0),
            bytes: stream,
        };
        NetworkFigures { short: 10.0, rate: 777.0, after_rest, ..NetworkFigures::default() }
    }

    #[test]
    fn a_bucket_is_found_by_its_streams() {
        let rates = RailRates::of(&network(256e3, 900.0, 125.0));
        let bucket = rates.bucket.unwrap();
        let found = [rates.bandwidth, bucket.bytes, bucket.line];
        for (found, expected) in found.into_iter().zip([125.0, 256e3, 900.0]) {
            assert!((found / expected - 1.0).abs() < 1e-6, "{found} for {expected}");
        }
    }

    #[test]
    fn a_network_without_a_bucket_has_the_rate_of_its_window() {
        for network in [network(0.0, 900.0, 900.0), network(0.0, 900.0, 125.0)] {
            assert_eq!(RailRates::of(&network), RailRates { bandwidth: 777.0, bucket: None });
        }
        // Long streams are faster than short ones.
        let faster = network(-1e5, 900.0, 2000.0);
        assert_eq!(RailRates::of(&faster).bucket, None);
    }
}
