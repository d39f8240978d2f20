//! Comparison of the data formats and the arithmetic of the processes of a job, at the start of the job. The processes exchange
//! text, which machines of every kind read in the same way.
//!
//! *Formats* are byte order, sizes, the kind of `long double`, and versions. If they differ, another process misreads the bytes
//! of a process, so the job does not start. *Arithmetic* is the result of subnormal numbers, of 0/0, and of an inexact quotient.
//! If it differs, the same operands give other bits, and algorithms in which several processes compute the same result are not
//! used.

use std::ffi::{c_int, c_long};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::hint::black_box;

/// Formats and arithmetic of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// Name and value of each format, in a fixed order.
    formats: Vec<(String, String)>,
    /// Results of operations that depend on the processor.
    arithmetic: String,
}

/// Difference between two processes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Difference {
    /// Different formats: name, value of the other process, value of this process.
    pub formats: Vec<[String; 3]>,
    /// True if the same operands may give other bits in the other process. Data may be exchanged, but algorithms in which several
    /// processes compute the same result are not used.
    pub arithmetic: bool,
}

/// Value of a format that a process does not name.
const UNKNOWN: &str = "unknown";

/// Separator between formats, and between names and values.
const BETWEEN: char = '|';
const IS: char = '=';

impl Fingerprint {
    /// Returns the fingerprint of this process. `more` are formats of the layers above, without `|` and `=`.
    pub fn own(more: &[(&str, &str)]) -> Fingerprint {
        let bits = |bytes: usize| format!("{} bits", 8 * bytes);
        let order = if cfg!(target_endian = "little") { "little-endian" } else { "big-endian" };
        let long_double = if cfg!(any(target_arch = "x86_64", target_arch = "x86")) {
            "x87, 80 bits"
        } else if cfg!(any(target_arch = "aarch64", target_arch = "riscv64", target_arch = "s390x"))
        {
            "IEEE 754, 128 bits"
        } else {
            std::env::consts::ARCH
        };
        let float = if black_box(1.5f32).to_bits() == 0x3fc0_0000 { "IEEE 754" } else { "other" };
        let formats = [
            ("byte order", order.to_owned()),
            ("floating point", float.to_owned()),
            ("long double", long_double.to_owned()),
            ("pointers", bits(size_of::<*const u8>())),
            ("int", bits(size_of::<c_int>())),
            ("long", bits(size_of::<c_long>())),
            ("wchar_t", bits(size_of::<libc::wchar_t>())),
        ];
        let formats = formats.into_iter().map(|(name, value)| (name.to_owned(), value));
        let more = more.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        Fingerprint { formats: formats.chain(more).collect(), arithmetic: arithmetic() }
    }

    /// Encodes the fingerprint in one line.
    pub fn encode(&self) -> String {
        let formats = self.formats.iter().map(|(name, value)| format!("{name}{IS}{value}"));
        let all: Vec<String> = std::iter::once(self.arithmetic.clone()).chain(formats).collect();
        all.join(&BETWEEN.to_string())
    }

    /// Decodes a line of [`Fingerprint::encode`] of any version. A missing format is unknown.
    pub fn decode(line: &str) -> Fingerprint {
        let mut parts = line.split(BETWEEN);
        let arithmetic = parts.next().unwrap_or_default().to_owned();
        let named = |part: &str| {
            part.split_once(IS).map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        Fingerprint { formats: parts.filter_map(named).collect(), arithmetic }
    }

    /// Returns a number that is equal in processes of the same library whose arithmetic is equal; never 0.
    pub fn arithmetic_hash() -> u64 {
        let mut hasher = DefaultHasher::new();
        arithmetic().hash(&mut hasher);
        hasher.finish().max(1)
    }

    fn value<'f>(&'f self, name: &str) -> &'f str {
        let found = self.formats.iter().find(|(other, _)| other == name);
        found.map_or(UNKNOWN, |(_, value)| value)
    }

    /// Compares this fingerprint with the fingerprint of another process.
    pub fn compare(&self, other: &Fingerprint) -> Difference {
        let own = self.formats.iter().map(|(name, _)| name);
        let names = own.chain(other.formats.iter().map(|(name, _)| name));
        let mut formats: Vec<[String; 3]> = Vec::new();
        for name in names {
            let (theirs, here) = (other.value(name), self.value(name));
            if theirs != here && !formats.iter().any(|[known, ..]| known == name) {
                formats.push([name.clone(), theirs.to_owned(), here.to_owned()]);
            }
        }
        Difference { formats, arithmetic: self.arithmetic != other.arithmetic }
    }
}

impl fmt::Display for Difference {
    /// Writes the formats: `byte order (big-endian there, little-endian here), ...`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = (self.formats.iter())
            .map(|[name, there, here]| format!("{name} ({there} there, {here} here)"))
            .collect();
        f.write_str(&words.join(", "))
    }
}

/// Computes results that depend on the processor and on its modes: an inexact quotient (rounding), a subnormal number (which
/// `-ffast-math` flushes to zero), and 0/0 (whose sign depends on the processor).
fn arithmetic() -> String {
    let (one, three, zero) = (black_box(1.0f64), black_box(3.0f64), black_box(0.0f64));
    let (none, least) = (black_box(0.0f64), black_box(f64::MIN_POSITIVE));
    let double = [one / three, -one / three, least / three, zero / none].map(f64::to_bits);
    let least = black_box(f32::MIN_POSITIVE);
    let single = [black_box(1.0f32) / black_box(3.0f32), least / black_box(3.0f32)];
    let double = double.iter().map(|bits| format!("{bits:x}"));
    let single = single.iter().map(|value| format!("{:x}", value.to_bits()));
    double.chain(single).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded_and_equal_to_itself() {
        let own = Fingerprint::own(&[("Weft", "1.2.3")]);
        let line = own.encode();
        assert!(!line.contains('\n') && line.contains("|byte order="), "{line}");
        assert_eq!(Fingerprint::decode(&line), own);
        assert_eq!(own.compare(&own), Difference::default());
        assert_eq!(Fingerprint::own(&[("Weft", "1.2.3")]), own);
    }

    #[test]
    fn formats_that_differ_are_named_with_both_values() {
        let own = Fingerprint::own(&[("MPI ABI", "1.0")]);
        for (name, value) in own.formats.clone() {
            let line = own.encode().replace(&format!("{name}={value}"), &format!("{name}=9"));
            let difference = own.compare(&Fingerprint::decode(&line));
            assert_eq!(difference.to_string(), format!("{name} (9 there, {value} here)"));
            assert!(!difference.arithmetic);
        }
        let older = Fingerprint::own(&[]);
        assert_eq!(own.compare(&older).to_string(), "MPI ABI (unknown there, 1.0 here)");
        assert_eq!(older.compare(&own).to_string(), "MPI ABI (1.0 there, unknown here)");
        assert!(!own.compare(&Fingerprint::decode("")).formats.is_empty());
    }

    #[test]
    fn another_arithmetic_is_no_other_format() {
        let own = Fingerprint::own(&[]);
        let other = Fingerprint { arithmetic: "0".to_owned(), ..own.clone() };
        let difference = own.compare(&Fingerprint::decode(&other.encode()));
        assert!(difference.arithmetic && difference.formats.is_empty());
    }

    /// Sets the processor's mode as a program compiled with `-ffast-math` does when it starts.
    #[test]
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fn subnormals_that_are_flushed_are_another_arithmetic() {
        use std::arch::asm;
        let own = arithmetic();
        let (mut before, mut during) = (0u32, 0u32);
        // SAFETY: reads the control word of this thread's floating point unit into a variable.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut before) };
        during |= before | 1 << 15;
        // SAFETY: sets the bit for flushing to zero, whose effect the test checks.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw mut during) };
        let flushed = arithmetic();
        // SAFETY: restores the control word that was read above.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw mut before) };
        assert_ne!(flushed, own);
        assert_eq!(arithmetic(), own);
    }
}
