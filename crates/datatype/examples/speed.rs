//! Times packing and reduction against loops written by hand; prints ratios (below 1: faster than
//! by hand). Best of several interleaved rounds.
//!
//!     cargo run --release -p weft-datatype --example speed

use std::hint::black_box;
use std::time::Instant;
use weft_datatype::{Basic, Datatype, Form, Op, Predefined, Width::Int};
use weft_fabric::Sge;

const ROUNDS: usize = 15;

/// Nanoseconds of one call of each, best of the rounds.
fn race(mut ours: impl FnMut(), mut hand: impl FnMut()) -> (f64, f64) {
    let time = |f: &mut dyn FnMut()| {
        // Double the calls until they take long enough for the clock.
        let mut calls = 1;
        loop {
            let start = Instant::now();
            (0..calls).for_each(|_| f());
            let spent = start.elapsed();
            if spent.as_micros() > 1000 {
                return spent.as_nanos() as f64 / f64::from(calls);
            }
            calls *= 2;
        }
    };
    let mut best = (f64::MAX, f64::MAX);
    for _ in 0..ROUNDS {
        best.0 = best.0.min(time(&mut ours));
        best.1 = best.1.min(time(&mut hand));
    }
    best
}

fn report(name: &str, bytes: usize, (ours, hand): (f64, f64)) {
    println!(
        "{name:<42} {:>8.2} GB/s {:>8.2} GB/s by hand   ratio {:.2}",
        bytes as f64 / ours,
        bytes as f64 / hand,
        ours / hand
    );
}

fn vector_of_doubles(table: &Predefined, count: usize, stride: usize) {
    let double = table.of(Basic::DOUBLE);
    let t = Datatype::vector(Int, count as i64, 1, stride as i64, double).unwrap();
    t.commit();
    let mut memory: Vec<f64> = (0..count * stride).map(|i| i as f64).collect();
    let mut packed = vec![0f64; count];
    let mut by_hand = vec![0f64; count];
    let times = race(
        // SAFETY: `memory` holds one element of the type, `packed` its data.
        || unsafe { t.pack(black_box(&memory).as_ptr().cast(), 1, packed.as_mut_ptr().cast()) },
        || {
            for (to, from) in by_hand.iter_mut().zip(black_box(&memory).chunks_exact(stride)) {
                *to = from[0];
            }
        },
    );
    assert_eq!(packed, by_hand);
    report(&format!("pack vector({count}, 1, {stride}, double)"), 8 * count, times);

    let mut other = memory.clone();
    let times = race(
        // SAFETY: as above.
        || unsafe { t.unpack(memory.as_mut_ptr().cast(), 1, black_box(&packed).as_ptr().cast()) },
        || {
            for (to, from) in other.chunks_exact_mut(stride).zip(black_box(&by_hand)) {
                to[0] = *from;
            }
        },
    );
    report(&format!("unpack vector({count}, 1, {stride}, double)"), 8 * count, times);
}

/// The inner plane of a cube: two nested loops.
fn plane(table: &Predefined, n: usize) {
    let double = table.of(Basic::DOUBLE);
    let (size, part) = ([n as i64; 3], [n as i64, n as i64, 2]);
    let t = Datatype::subarray(Int, &size, &part, &[0, 0, 3], weft_datatype::ORDER_C, double);
    let t = t.unwrap();
    let memory: Vec<f64> = (0..n * n * n).map(|i| i as f64).collect();
    let mut packed = vec![0f64; 2 * n * n];
    let mut by_hand = packed.clone();
    let times = race(
        // SAFETY: `memory` is the whole cube, `packed` holds the plane.
        || unsafe { t.pack(black_box(&memory).as_ptr().cast(), 1, packed.as_mut_ptr().cast()) },
        || {
            for (to, from) in by_hand.chunks_exact_mut(2).zip(black_box(&memory).chunks_exact(n)) {
                to.copy_from_slice(&from[3..5]);
            }
        },
    );
    assert_eq!(packed, by_hand);
    report(&format!("pack plane of {n}^3 doubles"), 16 * n * n, times);
}

fn structs(table: &Predefined, n: usize) {
    #[derive(Clone, Copy)]
    #[repr(C)]
    struct Particle {
        position: [f64; 3],
        kind: u8,
        mass: f32,
    }
    let (char, float, double) =
        (table.of(Basic::CHAR), table.of(Basic::FLOAT), table.of(Basic::DOUBLE));
    let types = [double.clone(), char.clone(), float.clone()];
    let t = Datatype::structure(Int, &[3, 1, 1], &[0, 24, 28], &types).unwrap();
    let memory: Vec<Particle> = (0..n)
        .map(|i| Particle { position: [i as f64; 3], kind: i as u8, mass: i as f32 })
        .collect();
    let mut packed = vec![0u8; 29 * n];
    let mut by_hand = packed.clone();
    let times = race(
        // SAFETY: the type is that of the struct; `packed` holds its data.
        || unsafe { t.pack(black_box(&memory).as_ptr().cast(), n, packed.as_mut_ptr()) },
        || {
            for (to, from) in by_hand.chunks_exact_mut(29).zip(black_box(&memory)) {
                for (place, x) in to[..24].chunks_exact_mut(8).zip(from.position) {
                    place.copy_from_slice(&x.to_ne_bytes());
                }
                to[24] = from.kind;
                to[25..].copy_from_slice(&from.mass.to_ne_bytes());
            }
        },
    );
    assert_eq!(packed, by_hand);
    report(&format!("pack {n} structs of 24, 1, 4 bytes"), 29 * n, times);
}

fn irregular(table: &Predefined, n: usize) {
    let double = table.of(Basic::DOUBLE);
    let mut place = 0;
    let places: Vec<i64> = (0..n)
        .map(|i| {
            place += 1 + (i * 7919 % 5) as i64;
            place
        })
        .collect();
    let t = Datatype::indexed_block(Int, 1, &places, double).unwrap();
    let memory: Vec<f64> = (0..=place).map(|i| i as f64).collect();
    let mut packed = vec![0f64; n];
    let mut by_hand = packed.clone();
    let times = race(
        // SAFETY: `memory` reaches to the last place; `packed` holds `n` numbers.
        || unsafe { t.pack(black_box(&memory).as_ptr().cast(), 1, packed.as_mut_ptr().cast()) },
        || {
            for (to, at) in by_hand.iter_mut().zip(&places) {
                *to = black_box(&memory)[*at as usize];
            }
        },
    );
    assert_eq!(packed, by_hand);
    report(&format!("pack indexed_block({n}, 1, double)"), 8 * n, times);
}

fn sum(n: usize) {
    let input: Vec<f64> = (0..n).map(|i| i as f64).collect();
    let mut ours = vec![0f64; n];
    let mut hand = vec![0f64; n];
    let len = 8 * n;
    // SAFETY: both vectors outlive the race and are used by nothing else in it.
    let (a, b) = unsafe {
        (Sge::new(input.as_ptr() as *mut u8, len), Sge::new(ours.as_mut_ptr().cast(), len))
    };
    let times = race(
        || Op::Sum.apply(black_box(Basic::DOUBLE), Form::Memory, n, a, b).unwrap(),
        || {
            for (y, x) in hand.iter_mut().zip(black_box(&input)) {
                *y += *x;
            }
        },
    );
    report(&format!("sum of {n} doubles"), len, times);
    let times = race(
        || Op::Max.apply(black_box(Basic::DOUBLE), Form::Memory, n, a, b).unwrap(),
        || {
            for (y, x) in hand.iter_mut().zip(black_box(&input)) {
                *y = x.max(*y);
            }
        },
    );
    report(&format!("max of {n} doubles (by hand: f64::max)"), len, times);
}

fn main() {
    let table = Predefined::new();
    for (count, stride) in [(1000, 2), (1000, 100), (100_000, 4), (1_000_000, 8)] {
        vector_of_doubles(&table, count, stride);
    }
    plane(&table, 64);
    structs(&table, 1000);
    irregular(&table, 10_000);
    for n in [1, 16, 1024, 65_536, 1 << 20] {
        sum(n);
    }
}
