//! Random types in "external32": every number of the type map is converted separately.

use crate::map::{Data, Map};
use crate::types::random_types;
use fastrand::Rng;
use weft_datatype::{Basic, DatatypeError, OperandClass, Repr, Type};

/// Returns a number in memory and in external32 (MPI 5.0, 14.5.2). The latter is `None` if the number does not fit.
fn number(rng: &mut Rng, basic: Basic) -> (Vec<u8>, Option<Vec<u8>>) {
    match (basic.name(), basic.repr()) {
        ("MPI_LONG", _) => {
            let value = if rng.u8(..) == 0 { rng.i64(..) } else { i64::from(rng.i32(..)) };
            let there = i32::try_from(value).ok().map(|v| v.to_be_bytes().to_vec());
            (value.to_ne_bytes().to_vec(), there)
        }
        ("MPI_UNSIGNED_LONG", _) => {
            let value = if rng.u8(..) == 0 { rng.u64(..) } else { u64::from(rng.u32(..)) };
            let there = u32::try_from(value).ok().map(|v| v.to_be_bytes().to_vec());
            (value.to_ne_bytes().to_vec(), there)
        }
        ("MPI_WCHAR", _) => {
            let value = if rng.u8(..) == 0 { rng.u32(..) } else { u32::from(rng.u16(..)) };
            let there = u16::try_from(value).ok().map(|v| v.to_be_bytes().to_vec());
            (value.to_ne_bytes().to_vec(), there)
        }
        (_, Repr::F80) => extended(rng),
        (_, Repr::ComplexF80) => {
            let ((re, there), (im, other)) = (extended(rng), extended(rng));
            ([re, im].concat(), there.zip(other).map(|(a, b)| [a, b].concat()))
        }
        _ => {
            let parts = if basic.class() == OperandClass::Complex { 2 } else { 1 };
            let here: Vec<u8> = (0..basic.size()).map(|_| rng.u8(..)).collect();
            let there = here.chunks(basic.size() / parts);
            let there = there.flat_map(|part| part.iter().rev().copied()).collect();
            (here, Some(there))
        }
    }
}

/// Returns a sum of a power of two and a smaller power, in the x87 format (63 bits after the point) and in binary128 (112 bits).
fn extended(rng: &mut Rng) -> (Vec<u8>, Option<Vec<u8>>) {
    let (head, bit) = (rng.u16(..) & 0xfffe | 1, rng.u32(0..63));
    let head = if head & 0x7fff == 0x7fff { 0x3fff } else { head };
    let mantissa: u64 = 1 << 63 | 1 << bit;
    let here = [&mantissa.to_le_bytes()[..], &head.to_le_bytes(), &[0; 6]].concat();
    let there = u128::from(head) << 112 | 1u128 << (bit + 112 - 63);
    (here, Some(there.to_be_bytes().to_vec()))
}

fn check(rng: &mut Rng, t: &Type, map: &Map) {
    let count = rng.usize(0..4);
    let (mut packed, mut external, mut fits) = (Vec::new(), Vec::new(), true);
    let mut there = 0;
    for _ in 0..count {
        for entry in map {
            let Data { basic, .. } = *entry else { continue };
            let (here, outside) = number(rng, basic);
            fits &= outside.is_some();
            there += match basic.name() {
                "MPI_LONG" | "MPI_UNSIGNED_LONG" => 4,
                "MPI_WCHAR" => 2,
                _ => here.len(),
            };
            packed.extend(here);
            external.extend(outside.unwrap_or_default());
        }
    }
    assert_eq!(t.external_size(count), Ok(there), "{t:?} x {count}");
    let mut out = vec![0xee; there];
    match t.export(count, &packed, &mut out) {
        Ok(()) => assert!(fits && out == external, "{t:?} x {count}: {out:?}, not {external:?}"),
        Err(DatatypeError::Conversion { .. }) if !fits => return,
        Err(error) => panic!("{t:?} x {count}: {error}"),
    }
    let mut back = vec![0xee; packed.len()];
    t.import(count, &external, &mut back).unwrap();
    assert_eq!(back, packed, "{t:?} x {count} and back");
}

#[test]
fn random_types_in_external32_are_their_numbers() {
    random_types(if cfg!(miri) { 8 } else { 5_000 }, 4, check);
}
