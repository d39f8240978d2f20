//! Virtual time in integer picoseconds, and rates in picoseconds per mebibyte. Sums of integers are the same on every machine.

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use std::fmt;

/// Virtual time since the start, or a span of virtual time, in picoseconds.
pub type Picoseconds = u64;

/// Picoseconds in a microsecond.
pub const MICROSECOND: Picoseconds = 1_000_000;

/// A span of time; in machine files a number of microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Time(pub Picoseconds);

impl Time {
    /// Converts microseconds, rounded to a picosecond. Negative values become 0.
    pub fn from_us(us: f64) -> Time {
        Time((us * MICROSECOND as f64).round() as u64)
    }

    /// Returns the time in microseconds, for output and for machine files.
    pub fn us(self) -> f64 {
        self.0 as f64 / MICROSECOND as f64
    }
}

/// A rate of bytes; in machine files a number of megabytes (10^6 bytes) a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rate {
    picoseconds_per_mib: u64,
}

impl Rate {
    /// Infinite rate, at which any number of bytes takes no time.
    pub const INFINITE: Rate = Rate { picoseconds_per_mib: 0 };

    /// Returns the rate of `rate` times 10^6 bytes a second, rounded in picoseconds per mebibyte.
    pub fn from_mb_per_s(rate: f64) -> Rate {
        // 10^12 ps/s over 10^6 bytes/MB is 10^6 ps a byte at 1 MB/s.
        Rate { picoseconds_per_mib: (1e6 * 1_048_576.0 / rate).round() as u64 }
    }

    /// Returns the time for `bytes`, rounded down to a picosecond.
    pub fn time(self, bytes: usize) -> Picoseconds {
        ((u128::from(self.picoseconds_per_mib) * bytes as u128) >> 20) as u64
    }
}

/// Maximum time in a machine file, in microseconds.
const MOST_US: f64 = 1e9;
/// Minimum and maximum rate in a machine file, in MB/s.
const RATES: (f64, f64) = (1e-3, 1e9);

struct Number {
    expected: &'static str,
    least: f64,
    most: f64,
}

impl Number {
    fn check<E: Error>(self, value: f64, given: Unexpected) -> Result<f64, E> {
        if (self.least..=self.most).contains(&value) {
            Ok(value)
        } else {
            Err(E::invalid_value(given, &self))
        }
    }
}

impl Visitor<'_> for Number {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<f64, E> {
        self.check(value, Unexpected::Float(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<f64, E> {
        self.check(value as f64, Unexpected::Signed(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<f64, E> {
        self.check(value as f64, Unexpected::Unsigned(value))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Time, D::Error> {
        let expected = "a time in microseconds from 0 to 1e9";
        from.deserialize_any(Number { expected, least: 0.0, most: MOST_US }).map(Time::from_us)
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Rate, D::Error> {
        let (least, most) = RATES;
        let expected = "a rate in MB/s from 0.001 to 1e9";
        from.deserialize_any(Number { expected, least, most }).map(Rate::from_mb_per_s)
    }
}

/// A probability; in machine files a number from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Chance(pub f64);

impl<'de> Deserialize<'de> for Chance {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Chance, D::Error> {
        let expected = "a probability from 0 to 1";
        from.deserialize_any(Number { expected, least: 0.0, most: 1.0 }).map(Chance)
    }
}

/// A count that must not be zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count(pub usize);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Count, D::Error> {
        let expected = "a whole number from 1 to 1000000";
        whole(from, Number { expected, least: 1.0, most: 1e6 }).map(Count)
    }
}

/// Reads a number of bytes that may be zero, for `#[serde(deserialize_with)]`.
pub(crate) fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    let expected = "a whole number of bytes from 0 to 1000000";
    whole(from, Number { expected, least: 0.0, most: 1e6 })
}

/// Reads the length of a transfer in bytes, for `#[serde(deserialize_with)]`.
pub(crate) fn length<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    let expected = "a whole number of bytes from 1 to 1000000000";
    whole(from, Number { expected, least: 1.0, most: 1e9 })
}

fn whole<'de, D: Deserializer<'de>>(from: D, number: Number) -> Result<usize, D::Error> {
    let expected = number.expected;
    let value = from.deserialize_any(number)?;
    if value.fract() == 0.0 {
        Ok(value as usize)
    } else {
        Err(D::Error::invalid_value(Unexpected::Float(value), &expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_rates_are_whole_picoseconds() {
        assert_eq!(Time::from_us(5.8), Time(5_800_000));
        assert_eq!(Rate::from_mb_per_s(1000.0).time(1), 1000);
        assert_eq!(
            Rate::from_mb_per_s(1000.0).time(1 << 30),
            1_000_000_000 / 1_000_000 * (1 << 30)
        );
        assert_eq!(Rate::INFINITE.time(usize::MAX), 0);
    }
}
