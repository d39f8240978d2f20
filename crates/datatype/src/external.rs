//! The representation "external32" (MPI 5.0, section 14.5.2): data in type map order without gaps, as
//! big-endian numbers of fixed sizes, IEEE floating point.
//!
//! ```text
//!   packed here    MPI_LONG (8, little-endian)   MPI_LONG_DOUBLE (x87: 10 bytes of 16)
//!   external32     4 bytes, big-endian           16 bytes, IEEE binary128, big-endian
//! ```
//! For all other numbers only the order of the bytes is reversed.

use crate::{Basic, Datatype, DatatypeError, Repr};

/// Representations of a number in memory and in "external32".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Atom {
    /// A number of this size in both representations, with reversed byte order.
    Reversed(usize),
    /// An integer of `here` bytes in memory and `there` bytes in "external32".
    Narrowed { here: usize, there: usize, sign: Signedness },
    /// x87 extended in memory, binary128 in "external32".
    Extended,
}

/// Meaning of the highest bit of an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signedness {
    Signed,
    Unsigned,
}

impl Atom {
    fn here(self) -> usize {
        match self {
            Atom::Reversed(size) | Atom::Narrowed { here: size, .. } => size,
            Atom::Extended => 16,
        }
    }

    fn there(self) -> usize {
        match self {
            Atom::Reversed(size) | Atom::Narrowed { there: size, .. } => size,
            Atom::Extended => 16,
        }
    }
}

/// Returns the atoms of a predefined type in order. There are at most two kinds of atoms, each with its count.
fn atoms(basic: Basic) -> [Option<(Atom, usize)>; 2] {
    if let Some((value, index)) = basic.pair() {
        return [atoms(value)[0], atoms(index)[0]];
    }
    let sign = if basic.name() == "MPI_LONG" { Signedness::Signed } else { Signedness::Unsigned };
    let long = Atom::Narrowed { here: 8, there: 4, sign };
    let one = match (basic.name(), basic.repr()) {
        ("MPI_LONG" | "MPI_UNSIGNED_LONG", _) => (long, 1),
        ("MPI_WCHAR", _) => (Atom::Narrowed { here: 4, there: 2, sign: Signedness::Unsigned }, 1),
        (_, Repr::F80) => (Atom::Extended, 1),
        (_, Repr::ComplexF80) => (Atom::Extended, 2),
        (_, Repr::ComplexF16 | Repr::ComplexF32 | Repr::ComplexF64 | Repr::ComplexF128) => {
            (Atom::Reversed(basic.size() / 2), 2)
        }
        _ => (Atom::Reversed(basic.size()), 1),
    };
    [Some(one), None]
}

/// Converts x87's extended format, little-endian in 10 bytes, to binary128, big-endian.
fn widen(from: &[u8], to: &mut [u8]) {
    let mantissa = u64::from_le_bytes(from[..8].try_into().expect("8 bytes"));
    let head = u16::from_le_bytes([from[8], from[9]]);
    // The integer bit is explicit in the x87 format and implied in binary128. A denormal number with this bit set is the
    // smallest normal number.
    let head = if head & 0x7fff == 0 && mantissa >> 63 == 1 { head | 1 } else { head };
    let fraction = u128::from(mantissa << 1) << 48;
    to.copy_from_slice(&(u128::from(head) << 112 | fraction).to_be_bytes());
}

/// Converts binary128 back to the x87 format, rounded to nearest (ties to even).
fn narrow(from: &[u8], to: &mut [u8]) {
    let bits = u128::from_be_bytes(from.try_into().expect("16 bytes"));
    let (head, fraction) = ((bits >> 112) as u16, bits << 16 >> 16);
    let (kept, lost) = ((fraction >> 49) as u64, fraction & ((1 << 49) - 1));
    let (exponent, half) = (head & 0x7fff, 1 << 48);
    let special = exponent == 0x7fff;
    // A NaN must stay a NaN even if rounding removes all its payload bits, so the quiet bit is set.
    let quiet = u64::from(special && kept == 0 && lost != 0) << 62;
    let up = !special && (lost > half || lost == half && kept & 1 == 1);
    let mantissa = (u64::from(exponent != 0) << 63 | kept | quiet).wrapping_add(u64::from(up));
    let (mantissa, head) = match mantissa {
        // If rounding carried out of the mantissa, it became the next power of two, or a denormal number became normal.
        0 if up => (1 << 63, head + 1),
        m if up && exponent == 0 && m >> 63 == 1 => (m, head + 1),
        m => (m, head),
    };
    to.fill(0);
    to[..8].copy_from_slice(&mantissa.to_le_bytes());
    to[8..10].copy_from_slice(&head.to_le_bytes());
}

fn sign_extended(bytes: u64, size: usize, sign: Signedness) -> u64 {
    let unused = 64 - 8 * size as u32;
    match sign {
        Signedness::Signed => ((bytes << unused) as i64 >> unused) as u64,
        Signedness::Unsigned => bytes << unused >> unused,
    }
}

fn integer(bytes: impl DoubleEndedIterator<Item = u8>) -> u64 {
    bytes.rev().fold(0, |number, byte| number << 8 | u64::from(byte))
}

fn export(basic: Basic, atom: Atom, from: &[u8], to: &mut [u8]) -> Result<(), DatatypeError> {
    match atom {
        Atom::Reversed(_) => {
            to.copy_from_slice(from);
            to.reverse();
        }
        Atom::Narrowed { here, there, sign } => {
            let number = sign_extended(integer(from.iter().copied()), here, sign);
            if sign_extended(number, there, sign) != number {
                return Err(DatatypeError::Conversion {
                    basic,
                    value: number as i64,
                    bytes: there,
                });
            }
            to.copy_from_slice(&number.to_be_bytes()[8 - there..]);
        }
        Atom::Extended => widen(from, to),
    }
    Ok(())
}

fn import(atom: Atom, from: &[u8], to: &mut [u8]) {
    match atom {
        Atom::Reversed(_) => {
            to.copy_from_slice(from);
            to.reverse();
        }
        Atom::Narrowed { here, there, sign } => {
            let number = sign_extended(integer(from.iter().rev().copied()), there, sign);
            to.copy_from_slice(&number.to_le_bytes()[..here]);
        }
        Atom::Extended => narrow(from, to),
    }
}

impl Datatype {
    /// Calls `f` with the predefined types of `count` elements in type map order, in runs of the same type.
    fn basics(
        &self,
        count: usize,
        f: &mut dyn FnMut(Basic, usize) -> Result<(), DatatypeError>,
    ) -> Result<(), DatatypeError> {
        if let Some(basic) = self.basic().or(self.uniform()) {
            return f(basic, self.packed_size(count)? / basic.size().max(1));
        }
        let mut result = Ok(());
        for _ in 0..count {
            self.composition(&mut |child, times| {
                result = child.basics(times, f);
                result.is_ok()
            });
            result.clone()?;
        }
        result
    }

    /// Returns the number of bytes of `count` elements in "external32" (`MPI_Pack_external_size`).
    pub fn external_size(&self, count: usize) -> Result<usize, DatatypeError> {
        let overflow = DatatypeError::Overflow { what: "size" };
        let mut size = 0usize;
        self.basics(1, &mut |basic, times| {
            let each: usize =
                atoms(basic).into_iter().flatten().map(|(atom, n)| n * atom.there()).sum();
            let more = each.checked_mul(times).and_then(|more| size.checked_add(more));
            size = more.ok_or(overflow.clone())?;
            Ok(())
        })?;
        // A multiplication is used instead of a loop over the elements, because `count` may be arbitrarily large for a type without
        // data.
        let all = size.checked_mul(count).filter(|&all| i64::try_from(all).is_ok());
        all.ok_or(overflow)
    }

    /// Calls `f` with the predefined types of `count` elements in type map order, in runs of the same type. Stops at the
    /// first error.
    pub fn each_basic(
        &self,
        count: usize,
        mut f: impl FnMut(Basic, usize) -> Result<(), DatatypeError>,
    ) -> Result<(), DatatypeError> {
        self.basics(count, &mut f)
    }

    /// Returns the number of bytes of packed data in the first `bytes` of an element in "external32". Counts only complete
    /// numbers.
    pub fn packed_of_external(&self, bytes: usize) -> Result<usize, DatatypeError> {
        let (mut here, mut left) = (0, bytes);
        self.basics(1, &mut |basic, times| {
            let atoms = atoms(basic);
            for _ in 0..times {
                for (atom, n) in atoms.into_iter().flatten() {
                    let some = left.checked_div(atom.there()).unwrap_or(n).min(n);
                    here += some * atom.here();
                    left = if some < n { 0 } else { left - n * atom.there() };
                }
                if left == 0 {
                    break;
                }
            }
            Ok(())
        })?;
        Ok(here)
    }

    /// Converts packed data of `count` elements to "external32". Each slice must have the length of the elements in its
    /// representation. Returns an error if a number does not fit.
    pub fn export(
        &self,
        count: usize,
        packed: &[u8],
        external: &mut [u8],
    ) -> Result<(), DatatypeError> {
        let (mut here, mut there) = (0, 0);
        self.basics(count, &mut |basic, times| {
            let atoms = atoms(basic);
            for _ in 0..times {
                for (atom, n) in atoms.into_iter().flatten() {
                    for _ in 0..n {
                        let from = &packed[here..here + atom.here()];
                        export(basic, atom, from, &mut external[there..there + atom.there()])?;
                        (here, there) = (here + atom.here(), there + atom.there());
                    }
                }
            }
            Ok(())
        })
    }

    /// Converts `count` elements from "external32" to packed data.
    pub fn import(
        &self,
        count: usize,
        external: &[u8],
        packed: &mut [u8],
    ) -> Result<(), DatatypeError> {
        let (mut here, mut there) = (0, 0);
        self.basics(count, &mut |basic, times| {
            let atoms = atoms(basic);
            for _ in 0..times {
                for (atom, n) in atoms.into_iter().flatten() {
                    for _ in 0..n {
                        let from = &external[there..there + atom.there()];
                        import(atom, from, &mut packed[here..here + atom.here()]);
                        (here, there) = (here + atom.here(), there + atom.there());
                    }
                }
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Predefined, Type, Width};

    fn of(name: &str) -> Type {
        let basic = Basic::all().find(|basic| basic.name() == name).expect("a predefined type");
        Predefined::new().get(basic.handle()).expect("a type").clone()
    }

    #[test]
    fn a_part_of_an_element_holds_the_numbers_of_which_all_bytes_are_there() {
        let here = |names: &[&str]| -> (Type, Vec<(usize, usize)>) {
            let types: Vec<Type> = names.iter().map(|name| of(name)).collect();
            let places: Vec<i64> = (0..names.len() as i64).map(|i| 64 * i).collect();
            let ones = vec![1; names.len()];
            let ty = Datatype::structure(Width::Int, &ones, &places, &types).unwrap();
            let sizes = types.iter().map(|ty| (ty.size(), ty.external_size(1).unwrap()));
            (ty, sizes.collect())
        };
        let names =
            ["MPI_INT", "MPI_LONG", "MPI_CHAR", "MPI_WCHAR", "MPI_SHORT", "MPI_LONG", "MPI_LONG"];
        let (ty, sizes) = here(&names);
        let (all, packed) = (ty.external_size(1).unwrap(), ty.size());
        for bytes in 0..all + 2 {
            let (mut expected, mut end) = (0, 0);
            for &(size, there) in &sizes {
                end += there;
                expected += if end <= bytes { size } else { 0 };
            }
            assert_eq!(ty.packed_of_external(bytes), Ok(expected), "{bytes} bytes");
        }
        assert_eq!(ty.packed_of_external(all), Ok(packed));
        // The bytes contain the value of a pair, and the real part of a complex number.
        assert_eq!(of("MPI_DOUBLE_INT").packed_of_external(8), Ok(8));
        assert_eq!(of("MPI_C_DOUBLE_COMPLEX").packed_of_external(15), Ok(8));
    }

    #[test]
    fn every_type_comes_back() {
        let predefined = Predefined::new();
        for basic in Basic::all() {
            let ty = predefined.get(basic.handle()).unwrap();
            let count = 5;
            // Small positive numbers fit into every type. In the x87 format they are denormal.
            let mut packed = vec![0; ty.packed_size(count).unwrap()];
            packed.iter_mut().step_by(basic.size()).enumerate().for_each(|(i, b)| *b = i as u8 + 1);
            let mut external = vec![0; ty.external_size(count).unwrap()];
            ty.export(count, &packed, &mut external).unwrap();
            let mut back = vec![0xff; packed.len()];
            ty.import(count, &external, &mut back).unwrap();
            assert_eq!(back, packed, "{}", basic.name());
        }
    }

    #[test]
    fn sizes_and_bytes_are_those_of_the_standard() {
        let external = |name: &str, packed: &[u8]| {
            let ty = of(name);
            let mut bytes = vec![0; ty.external_size(1).unwrap()];
            ty.export(1, packed, &mut bytes).map(|()| bytes)
        };
        assert_eq!(external("MPI_INT", &1i32.to_le_bytes()).unwrap(), [0, 0, 0, 1]);
        assert_eq!(external("MPI_LONG", &(-2i64).to_le_bytes()).unwrap(), [255, 255, 255, 254]);
        assert_eq!(external("MPI_DOUBLE", &1f64.to_le_bytes()).unwrap(), 1f64.to_be_bytes());
        assert_eq!(of("MPI_WCHAR").external_size(3), Ok(6));
        assert_eq!(of("MPI_DOUBLE_INT").external_size(2), Ok(24));
        assert_eq!(of("MPI_C_DOUBLE_COMPLEX").external_size(1), Ok(16));
        let text = external("MPI_LONG", &(1i64 << 40).to_le_bytes()).unwrap_err().to_string();
        assert!(text.contains("MPI_LONG") && text.contains("1099511627776"), "{text}");
        assert!(external("MPI_UNSIGNED_LONG", &u64::from(u32::MAX).to_le_bytes()).is_ok());
    }

    #[test]
    fn extended_numbers_become_quadruple_ones_and_are_rounded_back() {
        let x87 = |mantissa: u64, head: u16| {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&mantissa.to_le_bytes());
            bytes[8..10].copy_from_slice(&head.to_le_bytes());
            bytes
        };
        let there = |from: [u8; 16]| {
            let mut to = [0; 16];
            widen(&from, &mut to);
            u128::from_be_bytes(to)
        };
        let back = |bits: u128| {
            let mut to = [0xff; 16];
            narrow(&bits.to_be_bytes(), &mut to);
            to
        };
        let one = x87(1 << 63, 0x3fff);
        assert_eq!(there(one), 0x3fff << 112);
        assert_eq!(there(x87(3 << 62, 0xc000)), 0xc000_8000 << 96, "-3");
        assert_eq!(there(x87(1 << 63, 0x7fff)), 0x7fff << 112, "infinity");
        for bytes in [one, x87(u64::MAX, 0x7ffe), x87(5, 0), x87(0, 0x8000), x87(3 << 62, 0x7fff)] {
            assert_eq!(back(there(bytes)), bytes);
        }
        let half = 1 << 48;
        assert_eq!(back(0x3fff << 112 | half), one, "to the even one");
        assert_eq!(back(0x3fff << 112 | half | 1), x87(1 << 63 | 1, 0x3fff));
        assert_eq!(back(0x3fff << 112 | (u128::MAX >> 16)), x87(1 << 63, 0x4000), "to two");
        assert_eq!(back(u128::MAX >> 16), x87(1 << 63, 1), "to the smallest normal number");
        assert_ne!(back(0x7fff << 112 | 1)[..8], x87(1 << 63, 0x7fff)[..8], "still not a number");
    }
}
