//! A token bucket: bursts pass at the rate of the line, and a long stream at the rate at which the bucket is filled.
//!
//! ```text
//!   bytes sent                          .-'          a message of n bytes that starts at s ends at
//!    |                              .-'   bandwidth      max(s + n / line, full - bytes / bandwidth)
//!    |                          .-'                  and the bucket is full again at
//!    |        bytes run out ─ o                          full = max(s, full before) + n / bandwidth
//!    |                      /
//!    |                    /  line
//!    |__________________/_____________ time
//! ```
//! Linux shapes a port so (tc-tbf(8)), and so do switches and the virtual networks of clouds. The rule is the virtual scheduling
//! algorithm of ATM Forum, "Traffic Management Specification 4.1" (1999), section 4.4, with bytes in place of cells.

use crate::machine::NetworkPort;
use crate::units::{Picoseconds, Rate};

/// Constants of the bucket of a direction of a port.
#[derive(Debug, Clone, Copy)]
pub struct BucketLimits {
    /// Rate at which the bucket is filled.
    fill: Rate,
    /// Time in which an empty bucket is filled.
    depth: Picoseconds,
}

impl BucketLimits {
    /// Returns the limits of `port`, if the port has a bucket.
    pub fn of(port: &NetworkPort) -> Option<BucketLimits> {
        let bucket = port.bucket?;
        Some(BucketLimits { fill: port.bandwidth, depth: port.bandwidth.time(bucket.bytes) })
    }
}

/// State of the bucket of a direction of a port.
#[derive(Debug, Clone, Copy, Default)]
pub struct TokenBucket {
    /// Time at which the bucket is full if no further message passes.
    full: Picoseconds,
}

impl TokenBucket {
    /// Takes the tokens of a message of `bytes` bytes that starts at `start`. Returns the earliest time at which the last byte leaves.
    pub fn send(&mut self, limits: BucketLimits, start: Picoseconds, bytes: usize) -> Picoseconds {
        self.full = self.full.max(start) + limits.fill.time(bytes);
        self.full.saturating_sub(limits.depth)
    }

    /// Takes the tokens of a message of `bytes` bytes whose last byte comes at `now`. Returns the earliest time at which the last byte
    /// passes. The other bytes may have come before, so a stream that a bucket of these limits has shaped is never delayed.
    pub fn receive(&mut self, limits: BucketLimits, now: Picoseconds, bytes: usize) -> Picoseconds {
        self.full = (self.full + limits.fill.time(bytes)).max(now);
        self.full.saturating_sub(limits.depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the limits of a bucket of 1000 bytes, which gets a byte in a nanosecond.
    fn limits() -> BucketLimits {
        BucketLimits { fill: Rate::from_mb_per_s(1000.0), depth: 1_000_000 }
    }

    #[test]
    fn a_burst_passes_and_a_stream_waits_for_tokens() {
        let mut bucket = TokenBucket::default();
        // All 1000 tokens are there, then none: each further byte takes a nanosecond.
        assert_eq!(bucket.send(limits(), 5_000_000, 1000), 5_000_000);
        assert_eq!(bucket.send(limits(), 5_000_000, 300), 5_300_000);
        // 200 tokens have come by then, beyond the 300 that were owed.
        assert_eq!(bucket.send(limits(), 5_500_000, 500), 5_800_000);
        // A full bucket gets no more tokens.
        assert_eq!(bucket.send(limits(), 90_000_000, 1400), 90_400_000);
    }

    #[test]
    fn a_shaped_stream_is_not_shaped_again() {
        let line = Rate::from_mb_per_s(4000.0);
        let (mut out, mut into) = (TokenBucket::default(), TokenBucket::default());
        let (latency, mut start) = (700_000, 3_000_000);
        for bytes in [400, 3000, 10, 900, 900, 5000, 1, 2000] {
            let end = out.send(limits(), start, bytes).max(start + line.time(bytes));
            let now = end + latency;
            assert!(into.receive(limits(), now, bytes) <= now, "{bytes}");
            start = end + bytes as u64 * 100;
        }
        // Of three senders, the bytes of the last are too many. Those of the first may have come before.
        let now = start + 90_000_000;
        assert!(into.receive(limits(), now, 1000) <= now);
        assert_eq!(into.receive(limits(), now, 1000), now);
        assert_eq!(into.receive(limits(), now, 1000), now + 1_000_000);
    }
}
