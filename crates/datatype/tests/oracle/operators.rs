//! All predefined operators on all predefined types: the defined combinations by the lists of MPI 5.0, 6.9.2, and the results
//! by arithmetic on single values.

use fastrand::Rng;
use weft_datatype::{Basic, DatatypeError, ElementSpacing, PredefinedOp};
use weft_fabric::Sge;

const C_INTEGER: &str = "INT LONG SHORT UNSIGNED_SHORT UNSIGNED UNSIGNED_LONG LONG_LONG_INT \
    UNSIGNED_LONG_LONG SIGNED_CHAR UNSIGNED_CHAR INT8_T INT16_T INT32_T INT64_T UINT8_T UINT16_T \
    UINT32_T UINT64_T";
/// Type that the standard lists for no reduction, but that programs use in reductions.
const CHAR: &str = "CHAR";
const FORTRAN_INTEGER: &str = "INTEGER INTEGER1 INTEGER2 INTEGER4 INTEGER8 INTEGER16";
const FLOATING: &str = "FLOAT DOUBLE REAL DOUBLE_PRECISION LONG_DOUBLE REAL2 REAL4 REAL8 REAL16";
const LOGICAL: &str = "LOGICAL C_BOOL CXX_BOOL LOGICAL1 LOGICAL2 LOGICAL4 LOGICAL8 LOGICAL16";
const COMPLEX: &str = "COMPLEX C_COMPLEX C_DOUBLE_COMPLEX C_LONG_DOUBLE_COMPLEX \
    CXX_FLOAT_COMPLEX CXX_DOUBLE_COMPLEX CXX_LONG_DOUBLE_COMPLEX DOUBLE_COMPLEX COMPLEX4 COMPLEX8 \
    COMPLEX16 COMPLEX32";
const BYTE: &str = "BYTE";
const MULTI_LANGUAGE: &str = "AINT OFFSET COUNT";
const PAIRS: &str = "FLOAT_INT DOUBLE_INT LONG_INT 2INT SHORT_INT LONG_DOUBLE_INT 2REAL \
    2DOUBLE_PRECISION 2INTEGER";

fn named(basic: Basic, lists: &[&str]) -> bool {
    let name = basic.name().strip_prefix("MPI_").expect("all names begin so");
    lists.iter().any(|list| list.split_whitespace().any(|n| n == name))
}

fn defined(op: PredefinedOp, basic: Basic) -> bool {
    let lists: &[&str] = match op {
        PredefinedOp::Max | PredefinedOp::Min => {
            &[C_INTEGER, CHAR, FORTRAN_INTEGER, FLOATING, MULTI_LANGUAGE]
        }
        PredefinedOp::Sum | PredefinedOp::Prod => {
            &[C_INTEGER, CHAR, FORTRAN_INTEGER, FLOATING, MULTI_LANGUAGE, COMPLEX]
        }
        // Logical operators on addresses and counts are allowed as in the other libraries.
        PredefinedOp::LogicalAnd | PredefinedOp::LogicalOr | PredefinedOp::LogicalXor => {
            &[C_INTEGER, CHAR, LOGICAL, MULTI_LANGUAGE]
        }
        PredefinedOp::BitAnd | PredefinedOp::BitOr | PredefinedOp::BitXor => {
            &[C_INTEGER, CHAR, FORTRAN_INTEGER, BYTE, MULTI_LANGUAGE]
        }
        PredefinedOp::MinLoc | PredefinedOp::MaxLoc => &[PAIRS],
        PredefinedOp::Replace | PredefinedOp::NoOp => return true,
    };
    named(basic, lists)
}

/// Returns a small whole number. Every type represents it, and its sums and products, exactly.
fn number(basic: Basic, value: i64) -> Vec<u8> {
    let name = basic.name();
    let wide = |exponent: i32, bits: u32, bias: i32| -> u128 {
        // Composes sign, exponent and fraction of a binary format with `bits` bits of fraction.
        if value == 0 {
            return 0;
        }
        let magnitude = u128::from(value.unsigned_abs());
        let top = magnitude.ilog2();
        let fraction = (magnitude ^ 1 << top) << (bits - top);
        let sign = u128::from(value < 0) << (exponent as u32 + bits);
        sign | ((top as i32 + bias) as u128) << bits | fraction
    };
    let format = |bytes: usize| match bytes {
        2 => wide(5, 10, 15),
        4 => wide(8, 23, 127),
        8 => wide(11, 52, 1023),
        _ => wide(15, 112, 16383),
    };
    if name == "MPI_LONG_DOUBLE" && cfg!(target_arch = "x86_64") {
        let (magnitude, sign) = (value.unsigned_abs(), u16::from(value < 0) << 15);
        let mantissa = magnitude.checked_shl(magnitude.leading_zeros()).unwrap_or(0);
        let exponent = if value == 0 { 0 } else { magnitude.ilog2() as u16 + 16383 };
        return [&mantissa.to_le_bytes()[..], &(exponent | sign).to_le_bytes(), &[0; 6]].concat();
    }
    let bits =
        if named(basic, &[FLOATING]) { format(basic.size()) } else { i128::from(value) as u128 };
    bits.to_le_bytes()[..basic.size()].to_vec()
}

fn of(name: &str) -> Basic {
    Basic::all().find(|b| b.name() == name).expect(name)
}

/// Returns the type of a complex number's parts.
fn part(basic: Basic) -> Basic {
    match basic.size() {
        4 => of("MPI_REAL2"),
        8 => of("MPI_FLOAT"),
        16 => of("MPI_DOUBLE"),
        _ if basic.name() == "MPI_COMPLEX32" => of("MPI_REAL16"),
        _ => of("MPI_LONG_DOUBLE"),
    }
}

/// Returns an element made of two numbers, or of the first number only if the type is a single number.
fn element(basic: Basic, (first, second): (i64, i64)) -> Vec<u8> {
    if named(basic, &[COMPLEX]) {
        let part = part(basic);
        return [number(part, first), number(part, second)].concat();
    }
    if let (Some((value, index)), Some((at, _))) = (basic.pair(), basic.index_offset()) {
        let mut all = number(value, first);
        all.resize(at, 0);
        all.extend(number(index, second));
        all.resize(basic.extent(), 0);
        return all;
    }
    number(basic, first)
}

fn expected(op: PredefinedOp, basic: Basic, a: (i64, i64), b: (i64, i64)) -> (i64, i64) {
    let truth = |t: bool| (i64::from(t), 0);
    let (x, y) = (a.0 != 0, b.0 != 0);
    match op {
        PredefinedOp::Sum => (a.0 + b.0, a.1 + b.1),
        PredefinedOp::Prod if named(basic, &[COMPLEX]) => {
            (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
        }
        PredefinedOp::Prod => (a.0 * b.0, 0),
        PredefinedOp::Min => (a.0.min(b.0), 0),
        PredefinedOp::Max => (a.0.max(b.0), 0),
        PredefinedOp::BitAnd => (a.0 & b.0, 0),
        PredefinedOp::BitOr => (a.0 | b.0, 0),
        PredefinedOp::BitXor => (a.0 ^ b.0, 0),
        PredefinedOp::LogicalAnd => truth(x && y),
        PredefinedOp::LogicalOr => truth(x || y),
        PredefinedOp::LogicalXor => truth(x != y),
        PredefinedOp::MinLoc => a.min(b),
        PredefinedOp::MaxLoc if a.0 == b.0 => (a.0, a.1.min(b.1)),
        PredefinedOp::MaxLoc => a.max(b),
        PredefinedOp::Replace => a,
        PredefinedOp::NoOp => b,
    }
}

fn apply(
    op: PredefinedOp,
    basic: Basic,
    count: usize,
    input: &mut [u8],
    inout: &mut [u8],
) -> Result<(), DatatypeError> {
    // SAFETY: `Sge::new` needs memory that is valid while in use: both slices outlive the call, and nothing else refers to
    // them.
    let (a, b) = unsafe {
        (Sge::new(input.as_mut_ptr(), input.len()), Sge::new(inout.as_mut_ptr(), inout.len()))
    };
    op.apply(basic, ElementSpacing::Memory, count, a, b)
}

#[test]
fn all_are_defined_where_the_standard_says_and_compute_what_it_says() {
    let mut rng = Rng::with_seed(5);
    let mut pairs = 0;
    for basic in Basic::all() {
        let x87 = basic.name().contains("LONG_DOUBLE");
        for op in PredefinedOp::ALL {
            if x87 && cfg!(miri) {
                continue;
            }
            // Counts: one, a few, and enough for vectors.
            for count in [1, 3, if cfg!(miri) { 4 } else { 333 }] {
                let unsigned = basic.name().contains("UNSIGNED") || basic.name().contains("UINT");
                let low = if unsigned || op == PredefinedOp::Replace { 0 } else { -7 };
                // A product with zero may be -0, so the factors are not zero.
                let least = if op == PredefinedOp::Prod { 1 } else { 0 };
                let mut numbers = || -> Vec<(i64, i64)> {
                    let mut one = || (rng.i64(low..8), rng.i64(0..8));
                    let all = std::iter::repeat_with(&mut one);
                    let all = all.filter(|n| n.0.abs() >= least && n.1 >= least);
                    all.take(count).collect()
                };
                let (a, b) = (numbers(), numbers());
                let memory = |v: &[(i64, i64)]| -> Vec<u8> {
                    v.iter().flat_map(|&x| element(basic, x)).collect()
                };
                let (mut input, mut inout) = (memory(&a), memory(&b));
                let before = inout.clone();
                let result = apply(op, basic, count, &mut input, &mut inout);
                if !defined(op, basic) {
                    assert_eq!(result, Err(DatatypeError::Undefined { op, basic }));
                    let text = result.unwrap_err().to_string();
                    assert!(text.contains(op.name()) && text.contains(basic.name()), "{text}");
                    assert_eq!(inout, before);
                    continue;
                }
                result.unwrap();
                let both = a.iter().zip(&b);
                let right: Vec<_> = both.map(|(&a, &b)| expected(op, basic, a, b)).collect();
                let elements = inout.chunks(basic.extent()).zip(&right).enumerate();
                for (i, (ours, &right)) in elements {
                    let (op, name) = (op.name(), basic.name());
                    assert_eq!(ours, element(basic, right), "{op} {name} {:?} {:?}", a[i], b[i]);
                }
                pairs += 1;
            }
        }
    }
    assert!(pairs > 3 * 380, "{pairs}");
}

/// Rounding and order of the formats without a type in Rust, which small whole numbers do not test.
#[test]
fn half_and_quadruple_numbers_are_rounded_and_ordered() {
    let one = |op: PredefinedOp, name: &str, a: u128, b: u128| -> u128 {
        let size = of(name).size();
        let mut input = a.to_le_bytes()[..size].to_vec();
        let mut inout = b.to_le_bytes()[..size].to_vec();
        apply(op, of(name), 1, &mut input, &mut inout).unwrap();
        inout.resize(16, 0);
        u128::from_le_bytes(inout.try_into().unwrap())
    };
    // 1 + 2^-11 lies half way to the next number, and 1 is the even number of the two. The largest number is 65504.
    assert_eq!(one(PredefinedOp::Sum, "MPI_REAL2", 0x3c00, 0x1000), 0x3c00);
    assert_eq!(one(PredefinedOp::Sum, "MPI_REAL2", 0x3c01, 0x1000), 0x3c02);
    assert_eq!(one(PredefinedOp::Prod, "MPI_REAL2", 0x7bff, 0x4000), 0x7c00, "infinity");
    assert_eq!(one(PredefinedOp::Min, "MPI_REAL2", 0x0000, 0x8000), 0x8000, "-0");
    let (unit, next) = (0x3fff << 112, 1u128);
    assert_eq!(one(PredefinedOp::Sum, "MPI_REAL16", unit, (0x3fff - 112) << 112), unit | next);
    assert_eq!(one(PredefinedOp::Sum, "MPI_REAL16", unit, (0x3fff - 113) << 112), unit);
    assert_eq!(one(PredefinedOp::Prod, "MPI_REAL16", unit | next, unit | next), unit | 2);
    let (minus_zero, nan) = (1u128 << 127, 0x7fff8 << 108);
    for (a, b) in [(0, minus_zero), (minus_zero, 0)] {
        assert_eq!(one(PredefinedOp::Min, "MPI_REAL16", a, b), minus_zero);
        assert_eq!(one(PredefinedOp::Max, "MPI_REAL16", a, b), 0);
    }
    for (a, b) in [(nan, unit), (unit, nan)] {
        assert_eq!(one(PredefinedOp::Min, "MPI_REAL16", a, b), nan);
        assert_eq!(one(PredefinedOp::Max, "MPI_REAL16", a, b), nan);
    }
}
