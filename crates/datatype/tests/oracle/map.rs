//! Type maps as the standard defines them (MPI 5.0, 5.1): plain lists of basic types, markers and their displacements, with
//! the bounds of all members.

use weft_datatype::Basic;

#[derive(Clone, Copy)]
pub enum Entry {
    /// A number at `at`. `len` and `align` are the size and alignment of its type, in bytes.
    Data {
        at: i64,
        basic: Basic,
        len: usize,
        align: i64,
    },
    Lower(i64),
    Upper(i64),
    /// Lower and upper bound of a basic type or a padded struct.
    Member(i64, i64),
}
pub use Entry::*;

pub type Map = Vec<Entry>;

pub fn bounds(map: &Map) -> (i64, i64) {
    let lower = map.iter().filter_map(|e| if let Lower(x) = e { Some(*x) } else { None }).min();
    let upper = map.iter().filter_map(|e| if let Upper(x) = e { Some(*x) } else { None }).max();
    let (low, high) = member_bounds(map);
    (lower.unwrap_or(low), upper.unwrap_or(high))
}

/// Returns the map of a struct, whose extent is a multiple of the strictest alignment.
pub fn padded(mut map: Map) -> Map {
    let align = map.iter().map(|e| if let Data { align, .. } = e { *align } else { 1 }).max();
    let (low, high) = member_bounds(&map);
    let align = align.unwrap_or(1);
    if map.iter().any(|e| matches!(e, Member(..))) {
        map.push(Member(low, low + (high - low + align - 1).div_euclid(align) * align));
    }
    map
}

fn member_bounds(map: &Map) -> (i64, i64) {
    let members =
        || map.iter().filter_map(|e| if let Member(a, b) = e { Some((*a, *b)) } else { None });
    let low = members().map(|m| m.0).min().unwrap_or(0);
    (low, members().map(|m| m.1).max().unwrap_or(0))
}

pub fn data_bounds(map: &Map) -> (i64, i64) {
    let data = || {
        map.iter()
            .filter_map(|e| if let Data { at, len, .. } = e { Some((*at, *len)) } else { None })
    };
    let low = data().map(|d| d.0).min().unwrap_or(0);
    (low, data().map(|d| d.0 + d.1 as i64).max().unwrap_or(0))
}

pub fn extent(map: &Map) -> i64 {
    let (lb, ub) = bounds(map);
    ub - lb
}

pub fn moved(map: &Map, by: i64) -> impl Iterator<Item = Entry> + '_ {
    map.iter().map(move |e| match *e {
        Data { at, basic, len, align } => Data { at: at + by, basic, len, align },
        Lower(at) => Lower(at + by),
        Upper(at) => Upper(at + by),
        Member(low, high) => Member(low + by, high + by),
    })
}

/// Returns `length` copies, an extent apart, from `at` on.
pub fn block(map: &Map, at: i64, length: i64) -> Map {
    (0..length).flat_map(|i| moved(map, at + i * extent(map))).collect()
}

pub fn resized(map: &Map, lb: i64, extent: i64) -> Map {
    let data = map.iter().copied().filter(|e| matches!(e, Data { .. }));
    data.chain([Lower(lb), Upper(lb + extent)]).collect()
}

/// Returns the map of a predefined type: one number, or the two numbers of a pair, placed as in a C struct.
pub fn basic_map(basic: Basic) -> Map {
    let data = |at: usize, basic: Basic| Data {
        at: at as i64,
        basic,
        len: basic.size(),
        align: basic.align() as i64,
    };
    let member = Member(0, basic.extent() as i64);
    match (basic.pair(), basic.index_offset()) {
        (Some((value, index)), Some((offset, _))) => {
            vec![data(0, value), data(offset, index), member]
        }
        _ => vec![data(0, basic), member],
    }
}

/// Returns the places of the bytes of `count` elements, in packed order.
pub fn bytes(map: &Map, count: usize) -> Vec<i64> {
    let mut all = Vec::new();
    for i in 0..count as i64 {
        for entry in moved(map, i * extent(map)) {
            if let Data { at, len, .. } = entry {
                all.extend(at..at + len as i64);
            }
        }
    }
    all
}
