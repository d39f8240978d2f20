//! Reductions, compared with the same computation on plain values.

use weft_datatype::{
    Basic, DatatypeError, ElementSpacing, OperandClass, PredefinedOp, ReductionArrays,
};
use weft_fabric::Sge;

fn of(name: &str) -> Basic {
    Basic::all().find(|b| b.name() == name).expect(name)
}

/// Applies `op` at odd addresses, so that reliance on alignment is found.
fn apply(
    op: PredefinedOp,
    basic: Basic,
    form: ElementSpacing,
    count: usize,
    a: &[u8],
    b: &[u8],
) -> Vec<u8> {
    let mut input = [&[0xaa][..], a].concat();
    let mut inout = [&[0xbb][..], b].concat();
    // SAFETY: `Sge::new` needs memory that is valid while in use: both vectors outlive the call, and nothing else refers to
    // them.
    let (x, y) = unsafe {
        (Sge::new(input.as_mut_ptr().add(1), a.len()), Sge::new(inout.as_mut_ptr().add(1), b.len()))
    };
    op.apply(basic, form, count, x, y).unwrap();
    assert_eq!(inout[0], 0xbb);
    inout.split_off(1)
}

macro_rules! check {
    ($name:literal, $t:ty, $a:expr, $b:expr, $($op:ident => $expected:expr),+) => {{
        let (a, b): (Vec<$t>, Vec<$t>) = ($a.into(), $b.into());
        let bytes = |v: &[$t]| v.iter().flat_map(|x| x.to_ne_bytes()).collect::<Vec<u8>>();
        $({
            let out = apply(PredefinedOp::$op, of($name), ElementSpacing::Memory, a.len(), &bytes(&a), &bytes(&b));
            let expected: Vec<$t> = $expected.into();
            assert_eq!(out, bytes(&expected), "{} {}", stringify!($op), $name);
        })+
    }};
}

#[test]
fn integers() {
    check!("MPI_INT", i32, [1, -2, i32::MAX, 6], [10, 3, 1, 3],
        Sum => [11, 1, i32::MIN, 9], Prod => [10, -6, i32::MAX, 18],
        Min => [1, -2, 1, 3], Max => [10, 3, i32::MAX, 6],
        BitAnd => [0, 2, 1, 2], BitOr => [11, -1, i32::MAX, 7], BitXor => [11, -3, i32::MAX - 1, 5],
        Replace => [1, -2, i32::MAX, 6], NoOp => [10, 3, 1, 3]);
    check!("MPI_INT", i32, [0, 0, 5, 5], [0, 7, 0, 7],
        LogicalAnd => [0, 0, 0, 1], LogicalOr => [0, 1, 1, 1], LogicalXor => [0, 1, 1, 0]);
    check!("MPI_UINT8_T", u8, [200, 7], [100, 9], Sum => [44, 16], Max => [200, 9]);
    check!("MPI_INT8_T", i8, [-56, 7], [100, 9], Sum => [44, 16], Max => [100, 9]);
    check!("MPI_UNSIGNED_LONG", u64, [u64::MAX], [2], Prod => [u64::MAX - 1], Min => [2]);
    check!("MPI_AINT", i64, [-1], [2], Min => [-1], BitAnd => [2], Sum => [1]);
    check!("MPI_INTEGER16", i128, [1 << 100], [3], Prod => [3 << 100], Sum => [(1 << 100) + 3]);
    check!("MPI_BYTE", u8, [0x0f], [0x3c], BitXor => [0x33]);
}

#[test]
fn floating_point_and_complex() {
    check!("MPI_DOUBLE", f64, [1.5, -2.0, -0.0], [0.25, 3.0, 0.0],
        Sum => [1.75, 1.0, 0.0], Min => [0.25, -2.0, -0.0], Max => [1.5, 3.0, 0.0]);
    for (a, b) in [(f64::NAN, 1.0), (1.0, f64::NAN)] {
        for op in [PredefinedOp::Sum, PredefinedOp::Min, PredefinedOp::Max] {
            let (a, b) = (a.to_ne_bytes(), b.to_ne_bytes());
            let out = apply(op, of("MPI_DOUBLE"), ElementSpacing::Memory, 1, &a, &b);
            assert!(f64::from_ne_bytes(out.try_into().unwrap()).is_nan(), "{op:?}");
        }
    }
    check!("MPI_REAL", f32, [1.5, -2.0], [0.25, 3.0], Prod => [0.375, -6.0]);
    // (1 + 2i)(3 - i) = 5 + 5i. Counts are in complex elements, so this does not use `check!`.
    let bytes = |v: [f64; 2]| v.iter().flat_map(|x| x.to_ne_bytes()).collect::<Vec<u8>>();
    let complex = of("MPI_C_DOUBLE_COMPLEX");
    let run =
        |op| apply(op, complex, ElementSpacing::Memory, 1, &bytes([1.0, 2.0]), &bytes([3.0, -1.0]));
    assert_eq!(run(PredefinedOp::Prod), bytes([5.0, 5.0]));
    assert_eq!(run(PredefinedOp::Sum), bytes([4.0, 1.0]));
}

/// Long arrays give the results of single elements. They are longer than any vector register, with a remainder, so that every
/// version of the loop runs.
#[test]
#[cfg_attr(miri, ignore = "slow")]
fn long_arrays_compute_as_single_elements_do() {
    let mut rng = fastrand::Rng::with_seed(1);
    for basic in Basic::all() {
        for op in PredefinedOp::ALL.into_iter().filter(|op| op.allowed(basic)) {
            let count = 531;
            let extent = basic.extent();
            // Small bytes make numbers of all types, and no NaN.
            let mut random = || (0..count * extent).map(|_| rng.u8(..64)).collect::<Vec<u8>>();
            let (a, b) = (random(), random());
            let whole = apply(op, basic, ElementSpacing::Memory, count, &a, &b);
            let single = |(a, b): (&[u8], &[u8])| apply(op, basic, ElementSpacing::Memory, 1, a, b);
            let single: Vec<u8> = a.chunks(extent).zip(b.chunks(extent)).flat_map(single).collect();
            assert!(whole == single, "{op:?} {}", basic.name());
        }
    }
}

/// `combine` gives the same bits as `apply`, for every operator and type, at lengths around those of vectors.
#[test]
fn results_in_memory_of_their_own_are_those_in_place() {
    let mut rng = fastrand::Rng::with_seed(9);
    let mut pairs = 0;
    for basic in Basic::all() {
        for op in PredefinedOp::ALL {
            for count in [0, 1, 17, 256, 519, 1030, 2048] {
                let len = count * basic.size();
                let mut bytes = |len| -> Vec<u8> { (0..len).map(|_| rng.u8(..)).collect() };
                let (mut a, mut b, mut result) = (bytes(len + 1), bytes(len), bytes(len));
                // SAFETY: `Sge::new` needs memory that is valid while in use: the vectors outlive their use, and nothing else
                // refers to them.
                let sge = |data: &mut [u8]| unsafe { Sge::new(data.as_mut_ptr(), data.len()) };
                // One of the arrays is at an odd address.
                let left = sge(&mut a).part(1, len);
                let arrays = ReductionArrays { left, right: sge(&mut b), result: sge(&mut result) };
                let done = op.combine(basic, count, arrays);
                let in_place = op.apply(basic, ElementSpacing::Packed, count, left, sge(&mut b));
                assert_eq!(done.is_ok(), in_place.is_ok(), "{op:?} of {}", basic.name());
                if done.is_ok() {
                    assert_eq!(result, b, "{op:?} of {count} {}", basic.name());
                    pairs += 1;
                }
            }
        }
    }
    assert!(pairs > 1000, "{pairs}");
}

#[test]
fn truth_values_are_zero_or_one() {
    for name in ["MPI_C_BOOL", "MPI_LOGICAL", "MPI_LOGICAL2", "MPI_LOGICAL8", "MPI_LOGICAL16"] {
        let basic = of(name);
        let word = |x: u8| {
            let mut bytes = vec![0; basic.size()];
            bytes[0] = x;
            bytes
        };
        for (a, b) in [(0, 0), (0, 4), (2, 0), (2, 4)] {
            let (x, y) = (a != 0, b != 0);
            let run = |op| apply(op, basic, ElementSpacing::Memory, 1, &word(a), &word(b));
            assert_eq!(run(PredefinedOp::LogicalAnd), word(u8::from(x & y)), "{name}");
            assert_eq!(run(PredefinedOp::LogicalOr), word(u8::from(x | y)), "{name}");
            assert_eq!(run(PredefinedOp::LogicalXor), word(u8::from(x ^ y)), "{name}");
        }
    }
}

/// Returns elements of MPI_DOUBLE_INT in memory, with `gap` in the gap.
fn double_int(pairs: &[(f64, i32)], gap: u8) -> Vec<u8> {
    let element =
        |&(v, i): &(f64, i32)| [&v.to_ne_bytes()[..], &i.to_ne_bytes(), &[gap; 4]].concat();
    pairs.iter().flat_map(element).collect()
}

#[test]
fn locations_take_the_lower_index_of_equals() {
    let basic = of("MPI_DOUBLE_INT");
    let a = [(1.0, 5), (2.0, 5), (3.0, 1), (f64::NAN, 9), (0.0, 2), (f64::NAN, 3)];
    let b = [(2.0, 1), (1.0, 1), (3.0, 4), (7.0, 1), (f64::NAN, 1), (f64::NAN, 4)];
    let min = [(1.0, 5), (1.0, 1), (3.0, 1), (f64::NAN, 9), (f64::NAN, 1), (f64::NAN, 3)];
    let max = [(2.0, 1), (2.0, 5), (3.0, 1), (f64::NAN, 9), (f64::NAN, 1), (f64::NAN, 3)];
    for (op, expected) in [(PredefinedOp::MinLoc, min), (PredefinedOp::MaxLoc, max)] {
        let out =
            apply(op, basic, ElementSpacing::Memory, 6, &double_int(&a, 1), &double_int(&b, 2));
        assert_eq!(out, double_int(&expected, 2), "{op:?}");
        let packed = |x: &[(f64, i32)]| -> Vec<u8> {
            double_int(x, 0).chunks(16).flat_map(|c| c[..12].to_vec()).collect()
        };
        let out = apply(op, basic, ElementSpacing::Packed, 6, &packed(&a), &packed(&b));
        assert_eq!(out, packed(&expected), "{op:?} packed");
    }
    let out = apply(
        PredefinedOp::Replace,
        basic,
        ElementSpacing::Memory,
        6,
        &double_int(&a, 1),
        &double_int(&b, 2),
    );
    assert_eq!(out, double_int(&a, 2));

    check_pair("MPI_2INT", |v, i| [v.to_ne_bytes(), i.to_ne_bytes()].concat());
    check_pair("MPI_2REAL", |v, i| [(v as f32).to_ne_bytes(), (i as f32).to_ne_bytes()].concat());
    check_pair("MPI_FLOAT_INT", |v, i| [(v as f32).to_ne_bytes(), i.to_ne_bytes()].concat());
    check_pair("MPI_2DOUBLE_PRECISION", |v, i| {
        [f64::from(v).to_ne_bytes(), f64::from(i).to_ne_bytes()].concat()
    });
    check_pair("MPI_SHORT_INT", |v, i| {
        [&(v as i16).to_ne_bytes()[..], &[0; 2], &i.to_ne_bytes()].concat()
    });
    check_pair("MPI_LONG_INT", |v, i| {
        [&i64::from(v).to_ne_bytes()[..], &i.to_ne_bytes(), &[0; 4]].concat()
    });
}

fn check_pair(name: &str, element: impl Fn(i32, i32) -> Vec<u8>) {
    let run = |op, a: (i32, i32), b: (i32, i32)| {
        apply(op, of(name), ElementSpacing::Memory, 1, &element(a.0, a.1), &element(b.0, b.1))
    };
    assert_eq!(run(PredefinedOp::MinLoc, (-3, 7), (2, 1)), element(-3, 7), "{name}");
    assert_eq!(run(PredefinedOp::MaxLoc, (-3, 7), (2, 1)), element(2, 1), "{name}");
    assert_eq!(run(PredefinedOp::MaxLoc, (4, 7), (4, 9)), element(4, 7), "{name}");
    assert_eq!(run(PredefinedOp::MinLoc, (4, 9), (4, 7)), element(4, 7), "{name}");
}

#[test]
fn every_allowed_pair_computes_and_every_other_is_refused() {
    let mut computed = 0;
    for basic in Basic::all() {
        for op in PredefinedOp::ALL {
            let memory = vec![0; 3 * basic.extent()];
            if op.allowed(basic) {
                apply(op, basic, ElementSpacing::Memory, 3, &memory, &memory);
                apply(op, basic, ElementSpacing::Packed, 3, &memory, &memory);
                computed += 1;
            } else {
                let mut memory = memory;
                // SAFETY: `Sge::new` needs memory that is valid while in use: `memory` outlives the call. The call is refused
                // before it uses the overlapping elements.
                let sge = unsafe { Sge::new(memory.as_mut_ptr(), memory.len()) };
                let error = op.apply(basic, ElementSpacing::Memory, 3, sge, sge).unwrap_err();
                let undefined = matches!(error, DatatypeError::Undefined { .. });
                let opaque = basic.class() == OperandClass::Opaque;
                assert!(undefined || !opaque, "{error}");
            }
        }
    }
    assert!(computed > 400, "{computed}");
}

#[test]
fn the_table_is_that_of_the_standard() {
    let allowed = |op: PredefinedOp, name: &str| op.allowed(of(name));
    assert!(allowed(PredefinedOp::Sum, "MPI_INT") && allowed(PredefinedOp::Sum, "MPI_CHAR"));
    assert!(!allowed(PredefinedOp::Sum, "MPI_BYTE") && allowed(PredefinedOp::BitOr, "MPI_BYTE"));
    assert!(
        !allowed(PredefinedOp::BitOr, "MPI_DOUBLE")
            && !allowed(PredefinedOp::LogicalOr, "MPI_DOUBLE")
    );
    assert!(
        !allowed(PredefinedOp::Min, "MPI_C_DOUBLE_COMPLEX")
            && allowed(PredefinedOp::Prod, "MPI_COMPLEX")
    );
    assert!(
        !allowed(PredefinedOp::Sum, "MPI_LOGICAL")
            && allowed(PredefinedOp::LogicalXor, "MPI_C_BOOL")
    );
    assert!(
        !allowed(PredefinedOp::LogicalAnd, "MPI_INTEGER")
            && allowed(PredefinedOp::BitAnd, "MPI_INTEGER")
    );
    assert!(!allowed(PredefinedOp::MinLoc, "MPI_INT") && allowed(PredefinedOp::MaxLoc, "MPI_2INT"));
    assert!(
        !allowed(PredefinedOp::Sum, "MPI_2INT") && allowed(PredefinedOp::Replace, "MPI_CHARACTER")
    );
    let text = PredefinedOp::Sum.check(of("MPI_BYTE")).unwrap_err().to_string();
    assert_eq!(text, "MPI_SUM is not defined on MPI_BYTE");
}

/// Tests against values whose ten bytes are written by hand: 1.0 is 8000000000000000 with exponent 3fff.
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod long_double {
    use super::*;

    fn number(mantissa: u64, exponent: u16, gap: u8) -> Vec<u8> {
        [&mantissa.to_le_bytes()[..], &exponent.to_le_bytes(), &[gap; 6]].concat()
    }

    const ONE: (u64, u16) = (1 << 63, 0x3fff);

    fn run(op: PredefinedOp, a: (u64, u16), b: (u64, u16)) -> Vec<u8> {
        let basic = of("MPI_LONG_DOUBLE");
        apply(op, basic, ElementSpacing::Memory, 1, &number(a.0, a.1, 1), &number(b.0, b.1, 2))
    }

    #[test]
    fn has_all_64_bits_of_mantissa_and_keeps_its_gap() {
        // 1 + 2^-63 is the next number after 1, and is rounded away in a double.
        let tiny = (1 << 63, 0x3fff - 63);
        assert_eq!(run(PredefinedOp::Sum, ONE, tiny), number((1 << 63) | 1, 0x3fff, 2));
        // (1 + 2^-63) * 2^10000 exceeds a double's exponents by far.
        let huge = (1 << 63, 0x3fff + 10000);
        assert_eq!(
            run(PredefinedOp::Prod, ((1 << 63) | 1, 0x3fff), huge),
            number((1 << 63) | 1, 0x3fff + 10000, 2)
        );
    }

    #[test]
    fn orders_zeros_and_nans_as_doubles_are() {
        let (zero, minus_zero) = ((0, 0), (0, 0x8000));
        let nan = (3 << 62, 0x7fff);
        for (a, b) in [(zero, minus_zero), (minus_zero, zero)] {
            assert_eq!(run(PredefinedOp::Min, a, b), number(0, 0x8000, 2));
            assert_eq!(run(PredefinedOp::Max, a, b), number(0, 0, 2));
        }
        for (a, b) in [(nan, ONE), (ONE, nan)] {
            assert_eq!(run(PredefinedOp::Min, a, b), number(3 << 62, 0x7fff, 2));
            assert_eq!(run(PredefinedOp::Max, a, b), number(3 << 62, 0x7fff, 2));
        }
        let two = (1 << 63, 0x4000);
        assert_eq!(run(PredefinedOp::Min, two, ONE), number(1 << 63, 0x3fff, 2));
        assert_eq!(run(PredefinedOp::Max, two, ONE), number(1 << 63, 0x4000, 2));
    }

    #[test]
    fn complex_products_and_locations() {
        let two = (1 << 63, 0x4000);
        let minus_one = (1 << 63, 0xbfff);
        let pair = |re: (u64, u16), im: (u64, u16), gap| {
            [number(re.0, re.1, gap), number(im.0, im.1, gap)].concat()
        };
        // (1 + 2i)(2 - i) = 4 + 3i
        let basic = of("MPI_C_LONG_DOUBLE_COMPLEX");
        let out = apply(
            PredefinedOp::Prod,
            basic,
            ElementSpacing::Memory,
            1,
            &pair(ONE, two, 1),
            &pair(two, minus_one, 2),
        );
        assert_eq!(out, pair((1 << 63, 0x4001), (3 << 62, 0x4000), 2));
        let located = |v: (u64, u16), i: i32, gap| {
            [number(v.0, v.1, gap), i.to_ne_bytes().to_vec(), vec![gap; 12]].concat()
        };
        let basic = of("MPI_LONG_DOUBLE_INT");
        let out = apply(
            PredefinedOp::MaxLoc,
            basic,
            ElementSpacing::Memory,
            1,
            &located(two, 3, 1),
            &located(ONE, 1, 2),
        );
        assert_eq!(out, located(two, 3, 2));
    }
}
