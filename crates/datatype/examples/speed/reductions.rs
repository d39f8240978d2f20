//! Every operator on the usual types, against the loop that a compiler vectorises.

use crate::Options;
use crate::hand::Hand;
use crate::race::race;
use std::hint::black_box;
use weft_datatype::{Basic, Form, Op};
use weft_fabric::Sge;

const TYPES: [(&str, &str); 15] = [
    ("int8", "MPI_INT8_T"),
    ("uint8", "MPI_UINT8_T"),
    ("int16", "MPI_INT16_T"),
    ("uint16", "MPI_UINT16_T"),
    ("int32", "MPI_INT32_T"),
    ("int64", "MPI_INT64_T"),
    ("float", "MPI_FLOAT"),
    ("double", "MPI_DOUBLE"),
    ("cfloat", "MPI_C_FLOAT_COMPLEX"),
    ("cdouble", "MPI_C_DOUBLE_COMPLEX"),
    ("bool", "MPI_C_BOOL"),
    ("double_int_", "MPI_DOUBLE_INT"),
    ("float_int_", "MPI_FLOAT_INT"),
    ("int_int_", "MPI_2INT"),
    ("long_int_", "MPI_LONG_INT"),
];

const OPS: [(&str, Op); 9] = [
    ("sum", Op::Sum),
    ("prod", Op::Prod),
    ("min", Op::Min),
    ("max", Op::Max),
    ("band", Op::BitAnd),
    ("land", Op::LogicalAnd),
    ("lxor", Op::LogicalXor),
    ("minloc", Op::MinLoc),
    ("maxloc", Op::MaxLoc),
];

/// Bytes of one array: a small one, half of a usual L1 and L2, more than any L3 holds.
const SIZES: [(&str, usize); 4] =
    [("small", 128), ("L1", 8 << 10), ("L2", 128 << 10), ("far", 100 << 20)];

/// All that are wanted: ratio and name.
pub fn all(options: &Options, hand: &Hand) -> Vec<(f64, String)> {
    let mut ratios = Vec::new();
    for (level, bytes) in SIZES {
        // Numbers that stay what they are (0, 1, or small) however often they are combined.
        let mut input = vec![0u8; bytes];
        let mut inout = vec![0u8; bytes];
        let mut other = vec![0u8; bytes];
        for (ty, mpi) in TYPES {
            for (verb, op) in OPS {
                let name = format!("{level} {verb} {ty}");
                let Some(function) = hand.reduce(&format!("{verb}_{ty}")) else { continue };
                if !options.wanted(&name) {
                    continue;
                }
                let basic = Basic::all().find(|b| b.name() == mpi).expect("predefined");
                let count = bytes / basic.extent();
                fill(&mut input, basic, 3);
                fill(&mut inout, basic, 5);
                fill(&mut other, basic, 5);
                let len = count * basic.extent();
                // SAFETY: all vectors outlive the race, and nothing else uses them in it.
                let (a, b) = unsafe {
                    (Sge::new(input.as_mut_ptr(), len), Sge::new(inout.as_mut_ptr(), len))
                };
                let ours = || {
                    black_box(op).apply(black_box(basic), Form::Memory, count, a, b).unwrap();
                };
                let (x, y) = (input.as_ptr(), other.as_mut_ptr());
                // SAFETY: as above; the function is that of the type.
                let by_hand = || unsafe { function(black_box(y), black_box(x), count as i64) };
                ours();
                by_hand();
                assert!(inout == other, "{name}: reduced by hand to something else");
                let times = race(options.seconds, ours, by_hand);
                ratios.push((options.report(&name, bytes, times), name));
            }
        }
    }
    ratios
}

/// Ones and zeros of the type in an irregular order.
fn fill(array: &mut [u8], basic: Basic, seed: usize) {
    let one = |basic: Basic| match basic.name() {
        "MPI_FLOAT" | "MPI_C_FLOAT_COMPLEX" => 1f32.to_ne_bytes().to_vec(),
        "MPI_DOUBLE" | "MPI_C_DOUBLE_COMPLEX" => 1f64.to_ne_bytes().to_vec(),
        _ => {
            let mut bytes = vec![0; basic.size()];
            bytes[0] = 1;
            bytes
        }
    };
    array.fill(0);
    let (value, index) = match (basic.pair(), basic.index_offset()) {
        (Some((value, _)), Some((at, index))) => (one(value), Some((at, one(index)))),
        _ => (one(basic), None),
    };
    let mut random = fastrand::Rng::with_seed(seed as u64);
    for element in array.chunks_exact_mut(basic.extent()) {
        if random.bool() {
            element[..value.len()].copy_from_slice(&value);
        }
        if let Some((at, index)) = &index
            && random.bool()
        {
            element[*at..at + index.len()].copy_from_slice(index);
        }
    }
}
