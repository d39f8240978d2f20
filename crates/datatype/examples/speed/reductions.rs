//! Timing of all operators on the usual types, against loops that a C compiler vectorises.

use crate::Options;
use crate::hand::Hand;
use crate::pages::Pages;
use crate::race::race;
use std::hint::black_box;
use weft_datatype::{Basic, ElementSpacing, PredefinedOp};
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
    ("cfloat", "MPI_C_COMPLEX"),
    ("cdouble", "MPI_C_DOUBLE_COMPLEX"),
    ("bool", "MPI_C_BOOL"),
    ("double_int_", "MPI_DOUBLE_INT"),
    ("float_int_", "MPI_FLOAT_INT"),
    ("int_int_", "MPI_2INT"),
    ("long_int_", "MPI_LONG_INT"),
];

const OPS: [(&str, PredefinedOp); 9] = [
    ("sum", PredefinedOp::Sum),
    ("prod", PredefinedOp::Prod),
    ("min", PredefinedOp::Min),
    ("max", PredefinedOp::Max),
    ("band", PredefinedOp::BitAnd),
    ("land", PredefinedOp::LogicalAnd),
    ("lxor", PredefinedOp::LogicalXor),
    ("minloc", PredefinedOp::MinLoc),
    ("maxloc", PredefinedOp::MaxLoc),
];

/// Sizes of an array in bytes: a small one, half of a usual L1 and L2, and more than any L3 holds.
const SIZES: [(&str, usize); 4] =
    [("small", 128), ("L1", 8 << 10), ("L2", 128 << 10), ("far", 100 << 20)];

/// Times all wanted reductions. Returns ratio and name of each.
pub fn all(options: &Options, hand: &Hand) -> Vec<(f64, String)> {
    let mut ratios = Vec::new();
    for (level, bytes) in SIZES {
        let (input, inout) = (Pages::new(bytes, 0), Pages::new(bytes, 1));
        for (ty, mpi) in TYPES {
            for (verb, op) in OPS {
                let name = format!("{level} {verb} {ty}");
                let Some(function) = hand.reduce(&format!("{verb}_{ty}")) else { continue };
                if !options.wanted(&name) {
                    continue;
                }
                let basic = Basic::all().find(|b| b.name() == mpi).expect("predefined");
                let count = bytes / basic.extent();
                let len = count * basic.extent();
                let (x, y) = (input.start(), inout.start());
                // SAFETY: `Sge::new` needs memory that is valid while in use: both arrays outlive the timing, and nothing
                // else uses them.
                let (a, b) = unsafe { (Sge::new(x, len), Sge::new(y, len)) };
                let ours = || {
                    black_box(op)
                        .apply(black_box(basic), ElementSpacing::Memory, count, a, b)
                        .unwrap();
                };
                // SAFETY: the function by hand needs arrays of `count` elements of its type: `x` and `y` are such arrays.
                let by_hand = || unsafe { function(black_box(y), black_box(x), count as i64) };
                fill(&input, basic, 3);
                fill(&inout, basic, 5);
                ours();
                let result = inout.bytes().to_vec();
                fill(&inout, basic, 5);
                by_hand();
                assert!(inout.bytes() == result, "{name}: reduced by hand to something else");
                let times = race(options.seconds, ours, by_hand);
                ratios.push((options.report(&name, bytes, times), name));
            }
        }
    }
    ratios
}

/// Fills the array with ones and zeros of the type in an irregular order. They stay small however often they are combined,
/// except by sums, for which this does not matter.
fn fill(array: &Pages, basic: Basic, seed: u64) {
    let one = |basic: Basic| match basic.name() {
        "MPI_FLOAT" | "MPI_C_COMPLEX" => 1f32.to_ne_bytes().to_vec(),
        "MPI_DOUBLE" | "MPI_C_DOUBLE_COMPLEX" => 1f64.to_ne_bytes().to_vec(),
        _ => {
            let mut bytes = vec![0; basic.size()];
            bytes[0] = 1;
            bytes
        }
    };
    let put = |element: &mut [u8], at: usize, basic: Basic| {
        let one = one(basic);
        element[at..at + one.len()].copy_from_slice(&one);
    };
    // Elements without ones, with a one as value, as index, and as both.
    let kinds: Vec<Vec<u8>> = (0..4)
        .map(|kind| {
            let mut element = vec![0; basic.extent()];
            if kind & 1 != 0 {
                put(&mut element, 0, basic.pair().map_or(basic, |(value, _)| value));
            }
            if let (2.., Some((at, index))) = (kind, basic.index_offset()) {
                put(&mut element, at, index);
            }
            element
        })
        .collect();
    let mut random = fastrand::Rng::with_seed(seed);
    let count = array.bytes().len() / basic.extent();
    let chosen: Vec<u8> = (0..count).map(|_| random.u8(0..4)).collect();
    array.fill(|i| match chosen.get(i / basic.extent()) {
        Some(&kind) => kinds[usize::from(kind)][i % basic.extent()],
        None => 0,
    });
}
