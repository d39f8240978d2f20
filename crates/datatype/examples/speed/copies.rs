//! Timing of packing and unpacking, for the four kinds of types, in caches and beyond them.

use crate::Options;
use crate::hand::Hand;
use crate::pages::Pages;
use crate::race::race;
use std::hint::black_box;
use weft_datatype::{Basic, Datatype, Predefined, Type, Width::Int};

/// A layout: the type, `count` elements of it, and the arguments of the loop by hand.
struct Layout {
    hand: String,
    name: String,
    t: Type,
    count: usize,
    n: usize,
    s: usize,
    k: usize,
    plane: usize,
    places: Vec<i32>,
}

/// Approximate sums of the sizes of packed data and memory, in bytes: most of a usual L1, half of a usual L2, and more than
/// any L3 holds.
const SIZES: [(&str, usize); 3] = [("L1", 24 << 10), ("L2", 256 << 10), ("far", 200 << 20)];

/// Times all wanted layouts. Returns ratio and name of each.
pub fn all(options: &Options, hand: &Hand) -> Vec<(f64, String)> {
    let mut ratios = Vec::new();
    for (level, bytes) in SIZES {
        let blocks = [1, 2, 3, 4, 8, 16, 100];
        let vectors = blocks.into_iter().flat_map(|b| {
            [vector(b, 2 * b, bytes), vector(b, b + 1, bytes), vector(b, 8 * b + 3, bytes)]
        });
        let others = blocks.into_iter().flat_map(|b| [nested(b, bytes), indexed(b, bytes)]);
        for layout in vectors.chain(others).chain(structs(bytes)) {
            ratios.extend(layout.race(options, hand, level));
        }
    }
    ratios
}

fn double() -> Type {
    Predefined::new().of(Basic::DOUBLE).clone()
}

fn vector(b: usize, s: usize, bytes: usize) -> Layout {
    let n = (bytes / 8 / (b + s)).max(2);
    let t = Datatype::vector(Int, n as i64, b as i64, s as i64, &double()).unwrap();
    let (hand, name) = (format!("vector_{b}"), format!("vector({n}, {b}, {s})"));
    Layout { hand, name, t, count: 1, n, s, k: 1, plane: 0, places: Vec::new() }
}

/// Makes a layout of a part of each row of each plane, of a cube whose rows have 20 more numbers.
fn nested(b: usize, bytes: usize) -> Layout {
    let (s, n) = (b + 20, if bytes < 1 << 20 { 8 } else { 100 });
    let plane = s * (n + 3);
    let k = (bytes / 8 / (plane + b * n)).max(2);
    let rows = Datatype::vector(Int, n as i64, b as i64, s as i64, &double()).unwrap();
    let t = Datatype::hvector(Int, k as i64, 1, 8 * plane as i64, &rows).unwrap();
    let (hand, name) = (format!("nested_{b}"), format!("nested({k}, vector({n}, {b}, {s}))"));
    Layout { hand, name, t, count: 1, n, s, k, plane, places: Vec::new() }
}

/// Makes a layout of blocks that are one to five elements apart.
fn indexed(b: usize, bytes: usize) -> Layout {
    let n = bytes / 8 / (2 * b + 3);
    let mut place = 0;
    let places: Vec<i32> = (0..n)
        .map(|i| {
            place += b + 1 + i * 7919 % 5;
            (place - b - 1) as i32
        })
        .collect();
    let wide: Vec<i64> = places.iter().map(|p| i64::from(*p)).collect();
    let t = Datatype::indexed_block(Int, b as i64, &wide, &double()).unwrap();
    let (hand, name) = (format!("indexed_{b}"), format!("indexed_block({n}, {b})"));
    Layout { hand, name, t, count: 1, n, s: 0, k: 1, plane: 0, places }
}

/// Length, place in bytes, and type of a member.
type Member = (i64, i64, &'static str);

fn structs(bytes: usize) -> Vec<Layout> {
    let of = |name: &str| Basic::all().find(|b| b.name() == name).expect("predefined");
    let table = Predefined::new();
    let cases: [(&str, i64, &[Member]); 5] = [
        ("int_double", 16, &[(1, 0, "MPI_INT"), (1, 8, "MPI_DOUBLE")]),
        ("double_int", 16, &[(1, 0, "MPI_DOUBLE"), (1, 8, "MPI_INT")]),
        ("char_int_short", 12, &[(1, 0, "MPI_CHAR"), (1, 4, "MPI_INT"), (1, 8, "MPI_SHORT")]),
        ("particle", 32, &[(3, 0, "MPI_DOUBLE"), (1, 24, "MPI_CHAR"), (1, 28, "MPI_FLOAT")]),
        ("large", 104, &[(8, 0, "MPI_DOUBLE"), (3, 72, "MPI_DOUBLE"), (1, 100, "MPI_INT")]),
    ];
    let layout = |(hand, extent, members): (&str, i64, &[Member])| {
        let lengths: Vec<i64> = members.iter().map(|m| m.0).collect();
        let places: Vec<i64> = members.iter().map(|m| m.1).collect();
        let types: Vec<Type> = members.iter().map(|m| table.of(of(m.2)).clone()).collect();
        let t = Datatype::structure(Int, &lengths, &places, &types).unwrap();
        let t = Datatype::resized(Int, &t, 0, extent).unwrap();
        let count = bytes / (t.size() + extent as usize);
        let (name, n) = (format!("struct {hand} x {count}"), count);
        let hand = hand.to_owned();
        Layout { hand, name, t, count, n, s: 0, k: 1, plane: 0, places: Vec::new() }
    };
    cases.into_iter().map(layout).collect()
}

impl Layout {
    fn race(&self, options: &Options, hand: &Hand, level: &str) -> Vec<(f64, String)> {
        let mut ratios = Vec::new();
        let names = ["pack", "unpack"].map(|verb| format!("{level} {verb} {}", self.name));
        if !names.iter().any(|name| options.wanted(name)) {
            return ratios;
        }
        self.t.commit();
        let size = self.t.packed_size(self.count).unwrap();
        let (low, len) = self.t.span(self.count).unwrap();
        assert_eq!(low, 0);
        let memory = Pages::new(len, 0);
        let (packed, other) = (Pages::new(size, 1), Pages::new(size, 1));
        memory.fill(|i| (i * 31 + (i >> 8) * 7) as u8);
        let copy = |verb: &str, packed: *mut u8, memory: *mut u8| {
            let function = hand.copy(&format!("{verb}_{}", self.hand));
            let [n, s, k, t] = [self.n, self.s, self.k, self.plane].map(|x| x as i64);
            let (function, x) = (*function, self.places.as_ptr());
            // SAFETY: the loop by hand needs memory and packed form of its type: `m` and `packed` have their sizes.
            move || unsafe { function(black_box(packed), black_box(memory), n, s, k, t, x) }
        };
        let (m, p, count) = (memory.start(), packed.start(), self.count);
        copy("pack", other.start(), m)();
        // SAFETY: `pack` needs the memory of `count` elements and room for the packed size: `m` and `p` have these sizes.
        unsafe { self.t.pack(m, count, p) };
        assert!(packed.bytes() == other.bytes(), "{}: packed by hand otherwise", self.name);
        if options.wanted(&names[0]) {
            // SAFETY: `pack` needs the memory of `count` elements and room for the packed size: `m` and `p` have these sizes.
            let ours = || unsafe { self.t.pack(black_box(m), count, black_box(p)) };
            let times = race(options.seconds, ours, copy("pack", p, m));
            ratios.push((options.report(&names[0], size, times), names[0].clone()));
        }
        if options.wanted(&names[1]) {
            memory.fill(|_| 0);
            // SAFETY: `unpack` needs the memory of `count` elements and their packed form: `m` and `p` have these sizes.
            unsafe { self.t.unpack(m, count, p) };
            let ours = memory.bytes().to_vec();
            memory.fill(|_| 0);
            copy("unpack", p, m)();
            assert!(memory.bytes() == ours, "{}: unpacked by hand otherwise", self.name);
            // SAFETY: `unpack` needs the memory of `count` elements and their packed form: `m` and `p` have these sizes.
            let ours = || unsafe { self.t.unpack(black_box(m), count, black_box(p)) };
            let times = race(options.seconds, ours, copy("unpack", p, m));
            ratios.push((options.report(&names[1], size, times), names[1].clone()));
        }
        ratios
    }
}
