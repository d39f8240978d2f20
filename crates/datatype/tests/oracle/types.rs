//! Random types, compared with a type map that is a plain list, as the standard defines it: every entry is a basic type or a
//! marker, and every constructor places copies of the list.
//!
//! The types are the same in every run. A failure names the seed of its type. `WEFT_ORACLE_SEED=n` tries only this seed; any
//! other number also works.

use crate::map::{Data, Map, bounds, bytes, data_bounds};
use crate::random::any;
use fastrand::Rng;
use std::panic::{AssertUnwindSafe, catch_unwind};
use weft_datatype::{
    Basic, DISTRIBUTE_BLOCK, DISTRIBUTE_CYCLIC, DISTRIBUTE_DEFAULT, Datatype, Distributed, ORDER_C,
    Predefined, Type, Width::Int,
};
use weft_fabric::Sge;

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

    // Pack, completely and in pieces.
    let mut memory: Vec<u8> = (0..len).map(|_| rng.u8(..)).collect();
    let base = memory.as_mut_ptr().wrapping_offset(-first as isize);
    let expected: Vec<u8> = places.iter().map(|p| memory[(p - first) as usize]).collect();
    let mut out = vec![0u8; places.len()];
    // SAFETY: `pack` needs the memory of the elements and room for the packed size: `memory` is the span, `out` has the
    // packed size.
    unsafe { t.pack(base, count, out.as_mut_ptr()) };
    assert_eq!(out, expected, "{t:?} x {count}");
    out.fill(0);
    let longest = if rng.bool() { 100 } else { 2 + places.len() };
    let mut skip = 0;
    loop {
        let piece = rng.usize(1..longest).min(out.len() - skip);
        // SAFETY: `pack_range` needs the memory of the elements and a writable piece: the piece is a part of `out`, which
        // nothing else uses.
        let done =
            unsafe { t.pack_range(base, count, skip, Sge::new(out.as_mut_ptr().add(skip), piece)) };
        assert_eq!(done, piece);
        if done == 0 {
            break;
        }
        skip += done;
    }
    assert_eq!(out, expected, "{t:?} x {count} in pieces");

    // Runs of a part of the stream; if the stream is short, of all parts.
    let runs = |skip: usize, take: usize| {
        let mut listed = Vec::new();
        t.runs(count, skip, take, |at, len| listed.extend(at..at + len as i64));
        assert_eq!(listed, places[skip..skip + take], "{t:?} x {count}, {take} from {skip} on");
    };
    if places.len() <= 24 {
        (0..=places.len()).for_each(|skip| (0..=places.len() - skip).for_each(|n| runs(skip, n)));
    }
    let skip = rng.usize(0..=places.len());
    runs(skip, rng.usize(0..=places.len() - skip));
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

    // Unpack, completely and in pieces; bytes outside the type stay. If entries overlap, any of them may win.
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
    // SAFETY: `unpack` needs the memory of the elements and their packed form: `memory` is the span, `stream` has the packed
    // size.
    unsafe { t.unpack(base, count, stream.as_ptr()) };
    assert_eq!(forget(&memory), forget(&expected), "{t:?} x {count} unpacked");
    memory.copy_from_slice(&start);
    let base = memory.as_mut_ptr().wrapping_offset(-first as isize);
    let mut skip = 0;
    while skip < stream.len() {
        let piece = rng.usize(1..longest).min(stream.len() - skip);
        // SAFETY: `unpack_range` needs the memory of the elements and a readable piece: the piece is a part of `stream`, and
        // is only read.
        skip += unsafe {
            let from = Sge::new(stream.as_ptr().add(skip).cast_mut(), piece);
            t.unpack_range(base, count, skip, from)
        };
    }
    assert_eq!(forget(&memory), forget(&expected), "{t:?} x {count} unpacked in pieces");

    // Elements in a part of the stream.
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
    let whole = (0..=3).find(|n| n * t.size() == bytes);
    assert_eq!(t.count_of(bytes), whole, "{t:?}, {bytes} bytes");
}

/// Calls `check` with many random types, of up to `depth` constructors, and their maps.
pub fn random_types(rounds: u64, depth: usize, check: impl Fn(&mut Rng, &Type, &Map)) {
    let table = Predefined::new();
    let one = std::env::var("WEFT_ORACLE_SEED").ok();
    let one: Option<u64> = one.map(|n| n.parse().expect("WEFT_ORACLE_SEED must be a number"));
    let seeds = one.map_or(0..rounds, |n| n..n + 1);
    let mut largest = 0;
    for seed in seeds {
        let mut rng = Rng::with_seed(seed);
        let depth = rng.usize(0..=depth);
        let (t, map) = any(&mut rng, &table, depth);
        if seed % 2 == 0 {
            t.commit();
        }
        largest = largest.max(map.len());
        let result = catch_unwind(AssertUnwindSafe(|| check(&mut rng, &t, &map)));
        assert!(result.is_ok(), "seed {seed}: {t:?}");
    }
    let large = largest > 1000 || cfg!(miri) || one.is_some();
    assert!(large, "the types were too simple: {largest} entries");
}

#[test]
fn random_types_agree_with_their_maps() {
    random_types(if cfg!(miri) { 16 } else { 20_000 }, 5, check);
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
    let text = |r: Result<Type, weft_datatype::DatatypeError>| r.unwrap_err().to_string();
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
