//! Random types against a type map that is a plain list, as the standard defines it: every entry
//! is a basic type or a marker, and every constructor places copies of the list.

use fastrand::Rng;
use weft_datatype::{
    Basic, DISTRIBUTE_BLOCK, DISTRIBUTE_CYCLIC, DISTRIBUTE_DEFAULT, DISTRIBUTE_NONE, Datatype,
    Distributed, ORDER_C, ORDER_FORTRAN, Predefined, Type, Width::Int,
};
use weft_fabric::Sge;

#[derive(Clone, Copy)]
enum Entry {
    Data { at: i64, len: usize, align: i64 },
    Lower(i64),
    Upper(i64),
}
use Entry::*;

type Map = Vec<Entry>;

fn bounds(map: &Map) -> (i64, i64) {
    let lower = map.iter().filter_map(|e| if let Lower(x) = e { Some(*x) } else { None }).min();
    let upper = map.iter().filter_map(|e| if let Upper(x) = e { Some(*x) } else { None }).max();
    let (low, high) = data_bounds(map);
    let align =
        map.iter().map(|e| if let Data { align, .. } = e { *align } else { 1 }).max().unwrap_or(1);
    let lb = lower.unwrap_or(low);
    (lb, upper.unwrap_or_else(|| lb + (high - lb + align - 1).div_euclid(align) * align))
}

fn data_bounds(map: &Map) -> (i64, i64) {
    let data = || {
        map.iter()
            .filter_map(|e| if let Data { at, len, .. } = e { Some((*at, *len)) } else { None })
    };
    let low = data().map(|d| d.0).min().unwrap_or(0);
    (low, data().map(|d| d.0 + d.1 as i64).max().unwrap_or(0))
}

fn extent(map: &Map) -> i64 {
    let (lb, ub) = bounds(map);
    ub - lb
}

fn moved(map: &Map, by: i64) -> impl Iterator<Item = Entry> + '_ {
    map.iter().map(move |e| match *e {
        Data { at, len, align } => Data { at: at + by, len, align },
        Lower(at) => Lower(at + by),
        Upper(at) => Upper(at + by),
    })
}

/// `length` copies, an extent apart, from `at` on.
fn block(map: &Map, at: i64, length: i64) -> Map {
    (0..length).flat_map(|i| moved(map, at + i * extent(map))).collect()
}

fn resized(map: &Map, lb: i64, extent: i64) -> Map {
    let data = map.iter().copied().filter(|e| matches!(e, Data { .. }));
    data.chain([Lower(lb), Upper(lb + extent)]).collect()
}

fn basic_map(basic: Basic) -> Map {
    let align = basic.align() as i64;
    match (basic.pair(), basic.index_offset()) {
        (Some((value, index)), Some((offset, _))) => vec![
            Data { at: 0, len: value.size(), align: value.align() as i64 },
            Data { at: offset as i64, len: index.size(), align: index.align() as i64 },
        ],
        _ => vec![Data { at: 0, len: basic.size(), align }],
    }
}

fn numbers(rng: &mut Rng, n: usize, range: std::ops::Range<i64>) -> Vec<i64> {
    (0..n).map(|_| rng.i64(range.clone())).collect()
}

/// A type and its map.
fn any(rng: &mut Rng, table: &Predefined, depth: usize) -> (Type, Map) {
    let all: Vec<Basic> = Basic::all().collect();
    if depth == 0 {
        let basic = all[rng.usize(..all.len())];
        return (table.of(basic).clone(), basic_map(basic));
    }
    let (old, map) = any(rng, table, depth - 1);
    if map.len() > if cfg!(miri) { 20 } else { 300 } {
        return (old, map);
    }
    let ext = extent(&map);
    let n = rng.usize(0..5);
    match rng.u8(0..12) {
        0 => {
            let n = n as i64;
            (Datatype::contiguous_of(Int, n, &old).unwrap(), block(&map, 0, n))
        }
        1 => {
            let (n, length, stride) = (n as i64, rng.i64(0..4), rng.i64(-5..6));
            let map = (0..n).flat_map(|i| block(&map, i * stride * ext, length)).collect();
            (Datatype::vector(Int, n, length, stride, &old).unwrap(), map)
        }
        2 => {
            let (n, length, stride) = (n as i64, rng.i64(0..4), rng.i64(-50..100));
            let map = (0..n).flat_map(|i| block(&map, i * stride, length)).collect();
            (Datatype::hvector(Int, n, length, stride, &old).unwrap(), map)
        }
        3 => {
            let (lengths, places) = (numbers(rng, n, 0..4), numbers(rng, n, -9..10));
            let all = lengths.iter().zip(&places).flat_map(|(l, p)| block(&map, p * ext, *l));
            let all = all.collect();
            (Datatype::indexed(Int, &lengths, &places, &old).unwrap(), all)
        }
        4 => {
            let (lengths, places) = (numbers(rng, n, 0..4), numbers(rng, n, -90..100));
            let all = lengths.iter().zip(&places).flat_map(|(l, p)| block(&map, *p, *l)).collect();
            (Datatype::hindexed(Int, &lengths, &places, &old).unwrap(), all)
        }
        5 => {
            let (length, places) = (rng.i64(0..4), numbers(rng, n * 3, -9..10));
            let all = places.iter().flat_map(|p| block(&map, p * ext, length)).collect();
            (Datatype::indexed_block(Int, length, &places, &old).unwrap(), all)
        }
        6 => {
            let (length, places) = (rng.i64(0..4), numbers(rng, n * 3, -90..100));
            let all = places.iter().flat_map(|p| block(&map, *p, length)).collect();
            (Datatype::hindexed_block(Int, length, &places, &old).unwrap(), all)
        }
        7 | 8 => {
            let mut fields: Vec<(Type, Map)> = vec![(old, map)];
            for _ in 0..n {
                let depth = rng.usize(0..depth);
                fields.push(any(rng, table, depth));
            }
            rng.shuffle(&mut fields);
            let n = fields.len();
            let (lengths, places) = (numbers(rng, n, 0..3), numbers(rng, n, -90..100));
            let types: Vec<Type> = fields.iter().map(|f| f.0.clone()).collect();
            let all = fields.iter().zip(lengths.iter().zip(&places));
            let all = all.flat_map(|(f, (l, p))| block(&f.1, *p, *l)).collect();
            (Datatype::structure(Int, &lengths, &places, &types).unwrap(), all)
        }
        9 => {
            let (lb, extent) = (rng.i64(-40..40), rng.i64(-10..90));
            (Datatype::resized(Int, &old, lb, extent).unwrap(), resized(&map, lb, extent))
        }
        10 => (Datatype::duplicate(&old).unwrap(), map),
        _ => array(rng, &old, &map),
    }
}

/// A subarray or a process's share of a distributed array, element by element.
fn array(rng: &mut Rng, old: &Type, map: &Map) -> (Type, Map) {
    let n = rng.usize(1..4);
    let sizes = numbers(rng, n, 1..6);
    let order = if rng.bool() { ORDER_C } else { ORDER_FORTRAN };
    let (made, mine): (Type, Box<dyn Fn(usize, i64) -> bool>) = if rng.bool() {
        let parts: Vec<i64> = sizes.iter().map(|s| rng.i64(1..=*s)).collect();
        let starts: Vec<i64> = sizes.iter().zip(&parts).map(|(s, p)| rng.i64(0..=s - p)).collect();
        let made = Datatype::subarray(Int, &sizes, &parts, &starts, order, old).unwrap();
        (made, Box::new(move |d, i| (starts[d]..starts[d] + parts[d]).contains(&i)))
    } else {
        let kinds: Vec<i64> =
            (0..n).map(|_| rng.i64(DISTRIBUTE_NONE..=DISTRIBUTE_CYCLIC)).collect();
        let grid: Vec<i64> =
            kinds.iter().map(|&k| if k == DISTRIBUTE_NONE { 1 } else { rng.i64(1..4) }).collect();
        let share = |d: usize| (sizes[d] + grid[d] - 1) / grid[d];
        let blocks: Vec<i64> = (0..n)
            .map(|d| match kinds[d] {
                _ if rng.bool() => DISTRIBUTE_DEFAULT,
                DISTRIBUTE_CYCLIC => rng.i64(1..8),
                _ => share(d) + rng.i64(0..3),
            })
            .collect();
        let size: i64 = grid.iter().product();
        let rank = rng.i64(0..size);
        let array = Distributed {
            size,
            rank,
            global: &sizes,
            kinds: &kinds,
            blocks: &blocks,
            grid: &grid,
            order,
        };
        let made = Datatype::darray(Int, array, old).unwrap();
        // The place in the grid, by counting through it row by row.
        let mut place = vec![0; n];
        for _ in 0..rank {
            for d in (0..n).rev() {
                place[d] += 1;
                if place[d] < grid[d] {
                    break;
                }
                place[d] = 0;
            }
        }
        let block: Vec<i64> = (0..n)
            .map(|d| match (kinds[d], blocks[d]) {
                (DISTRIBUTE_NONE, _) => sizes[d],
                (DISTRIBUTE_BLOCK, DISTRIBUTE_DEFAULT) => share(d),
                (_, DISTRIBUTE_DEFAULT) => 1,
                (_, block) => block,
            })
            .collect();
        (made, Box::new(move |d, i| i / block[d] % grid[d] == place[d]))
    };
    let total: i64 = sizes.iter().product();
    let mut all = Map::new();
    let dimensions: Vec<usize> =
        if order == ORDER_C { (0..n).rev().collect() } else { (0..n).collect() };
    for element in 0..total {
        let mut rest = element;
        let inside = dimensions.iter().fold(true, |inside, &d| {
            let i = rest % sizes[d];
            rest /= sizes[d];
            inside & mine(d, i)
        });
        if inside {
            all.extend(moved(map, element * extent(map)));
        }
    }
    (made, resized(&all, 0, total * extent(map)))
}

/// Places of the bytes of `count` elements, in packed order.
fn bytes(map: &Map, count: usize) -> Vec<i64> {
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

fn check(rng: &mut Rng, t: &Type, map: &Map) {
    let (low, high) = data_bounds(map);
    let (lb, ub) = bounds(map);
    assert_eq!((t.lb(), t.ub(), t.true_lb(), t.true_ub()), (lb, ub, low, high), "{t:?}");
    let count = if rng.u8(..) == 0 && !cfg!(miri) { 130 } else { rng.usize(0..4) };
    let places = bytes(map, count);
    assert_eq!(t.packed_size(count), Ok(places.len()));
    let first = places.iter().copied().min().unwrap_or(0);
    let end = places.iter().copied().max().map_or(first, |x| x + 1);
    let (first, len) = (first, (end - first) as usize);
    assert_eq!(t.span(count), Ok((first, len)), "{t:?} x {count}");

    // Pack, whole and in pieces.
    let mut memory: Vec<u8> = (0..len).map(|_| rng.u8(..)).collect();
    let base = memory.as_mut_ptr().wrapping_offset(-first as isize);
    let expected: Vec<u8> = places.iter().map(|p| memory[(p - first) as usize]).collect();
    let mut out = vec![0u8; places.len()];
    // SAFETY: `memory` is the span, `out` the packed size.
    unsafe { t.pack(base, count, out.as_mut_ptr()) };
    assert_eq!(out, expected, "{t:?} x {count}");
    out.fill(0);
    let mut skip = 0;
    loop {
        let piece = rng.usize(1..100).min(out.len() - skip);
        // SAFETY: a part of `out`, which is not otherwise used.
        let done =
            unsafe { t.pack_range(base, count, skip, Sge::new(out.as_mut_ptr().add(skip), piece)) };
        assert_eq!(done, piece);
        if done == 0 {
            break;
        }
        skip += done;
    }
    assert_eq!(out, expected, "{t:?} x {count} in pieces");

    // Runs of a part.
    let skip = rng.usize(0..=places.len());
    let take = rng.usize(0..=places.len() - skip);
    let mut listed = Vec::new();
    t.runs(count, skip, take, |at, len| listed.extend(at..at + len as i64));
    assert_eq!(listed, places[skip..skip + take], "{t:?} x {count} runs");
    if let Some((at, len)) = t.as_run(count) {
        assert!(places.iter().copied().eq(at..at + len as i64), "{t:?} is no run");
    }
    let joined = (0..places.len() as i64).eq(places.iter().copied());
    assert_eq!(
        t.contiguous(),
        t.extent() == t.size() as i64
            && bytes(map, 1).into_iter().eq(0..t.size() as i64)
            && lb == 0,
        "{t:?}"
    );
    assert!(joined || !t.contiguous());

    // Unpack, whole and in pieces; what is not the type's stays. Where entries overlap, any may win.
    let mut sorted = places.clone();
    sorted.sort_unstable();
    let overlapping: Vec<i64> = sorted.windows(2).filter(|w| w[0] == w[1]).map(|w| w[0]).collect();
    let forget = |memory: &[u8]| {
        let mut memory = memory.to_vec();
        overlapping.iter().for_each(|p| memory[(p - first) as usize] = 0);
        memory
    };
    let stream: Vec<u8> = (0..places.len()).map(|_| rng.u8(..)).collect();
    let mut expected = memory.clone();
    for (place, byte) in places.iter().zip(&stream) {
        expected[(place - first) as usize] = *byte;
    }
    let start = memory.clone();
    let base = memory.as_mut_ptr().wrapping_offset(-first as isize);
    // SAFETY: as for packing.
    unsafe { t.unpack(base, count, stream.as_ptr()) };
    assert_eq!(forget(&memory), forget(&expected), "{t:?} x {count} unpacked");
    memory.copy_from_slice(&start);
    let base = memory.as_mut_ptr().wrapping_offset(-first as isize);
    let mut skip = 0;
    while skip < stream.len() {
        let piece = rng.usize(1..100).min(stream.len() - skip);
        // SAFETY: a part of `stream`, only read.
        skip += unsafe {
            let from = Sge::new(stream.as_ptr().add(skip).cast_mut(), piece);
            t.unpack_range(base, count, skip, from)
        };
    }
    assert_eq!(forget(&memory), forget(&expected), "{t:?} x {count} unpacked in pieces");

    // Elements of a part of the stream.
    let ends: Vec<usize> = (0..3)
        .flat_map(|_| map.iter())
        .filter_map(|e| if let Data { len, .. } = e { Some(*len) } else { None })
        .scan(0, |end, len| {
            *end += len;
            Some(*end)
        })
        .collect();
    assert_eq!(t.elements() * 3, ends.len());
    let bytes = rng.usize(0..=3 * t.size());
    let expected =
        if bytes == 0 { Some(0) } else { ends.iter().position(|e| *e == bytes).map(|i| i + 1) };
    assert_eq!(t.elements_of(bytes), expected, "{t:?}, {bytes} bytes");
}

#[test]
fn random_types_agree_with_their_maps() {
    let table = Predefined::new();
    let rounds = if cfg!(miri) { 16 } else { 20_000 };
    let mut largest = 0;
    for seed in 0..rounds {
        let mut rng = Rng::with_seed(seed);
        let depth = rng.usize(0..6);
        let (t, map) = any(&mut rng, &table, depth);
        if seed % 2 == 0 {
            t.commit();
        }
        largest = largest.max(map.len());
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            check(&mut rng, &t, &map);
        }));
        assert!(result.is_ok(), "seed {seed}");
    }
    assert!(largest > 100 || cfg!(miri), "the types were too simple: {largest}");
}

#[test]
fn an_array_share_of_every_rank_covers_the_array_once() {
    let table = Predefined::new();
    let int = table.of(Basic::INT);
    let mut seen = vec![0; 7 * 10];
    for rank in 0..6 {
        let array = Distributed {
            size: 6,
            rank,
            global: &[7, 10],
            kinds: &[DISTRIBUTE_CYCLIC, DISTRIBUTE_BLOCK],
            blocks: &[2, DISTRIBUTE_DEFAULT],
            grid: &[2, 3],
            order: ORDER_C,
        };
        let t = Datatype::darray(Int, array, int).unwrap();
        assert_eq!((t.lb(), t.extent()), (0, 280));
        t.runs(1, 0, t.size(), |at, len| {
            for i in at / 4..(at + len as i64) / 4 {
                seen[i as usize] += 1;
            }
        });
    }
    assert!(seen.iter().all(|&n| n == 1), "{seen:?}");
}

#[test]
fn wrong_array_arguments_are_named() {
    let table = Predefined::new();
    let int = table.of(Basic::INT);
    let text = |r: Result<Type, weft_datatype::Error>| r.unwrap_err().to_string();
    assert_eq!(
        text(Datatype::subarray(Int, &[4, 4], &[2, 2], &[0, 3], ORDER_C, int)),
        "array_of_starts[1] is 3, but the part must lie inside the array"
    );
    assert_eq!(
        text(Datatype::subarray(Int, &[4], &[2], &[0], 7, int)),
        "order is 7, but it must be MPI_ORDER_C or MPI_ORDER_FORTRAN"
    );
    let huge = [i64::MAX, i64::MAX];
    assert!(Datatype::subarray(Int, &huge, &[1, 1], &[0, 0], ORDER_C, int).is_err());
    let array = Distributed {
        size: 4,
        rank: 0,
        global: &[10],
        kinds: &[DISTRIBUTE_BLOCK],
        blocks: &[2],
        grid: &[4],
        order: ORDER_C,
    };
    assert_eq!(
        text(Datatype::darray(Int, array, int)),
        "array_of_dargs[0] is 2, but blocks of this length do not cover the array"
    );
    assert_eq!(
        text(Datatype::darray(Int, Distributed { size: 5, ..array }, int)),
        "size is 5, but it must be the product of array_of_psizes"
    );
}
