//! Random types of all constructors, each with its map.

use crate::map::{Map, basic_map, block, extent, moved, padded, resized};
use fastrand::Rng;
use weft_datatype::{
    Basic, DISTRIBUTE_BLOCK, DISTRIBUTE_CYCLIC, DISTRIBUTE_DEFAULT, DISTRIBUTE_NONE, Datatype,
    Distributed, ORDER_C, ORDER_FORTRAN, Predefined, Type, Width::Int,
};

fn numbers(rng: &mut Rng, n: usize, range: std::ops::Range<i64>) -> Vec<i64> {
    (0..n).map(|_| rng.i64(range.clone())).collect()
}

/// Returns a type and its map.
pub fn any(rng: &mut Rng, table: &Predefined, depth: usize) -> (Type, Map) {
    let all: Vec<Basic> = Basic::all().collect();
    if depth == 0 {
        let basic = all[rng.usize(..all.len())];
        return (table.of(basic).clone(), basic_map(basic));
    }
    let (old, map) = any(rng, table, depth - 1);
    if map.len() > if cfg!(miri) { 40 } else { 600 } {
        return (old, map);
    }
    let ext = extent(&map);
    // Few entries with many repetitions exercise the long copy loops.
    if map.len() <= 8 && rng.u8(..) < 40 && !cfg!(miri) {
        return regular(rng, &old, &map);
    }
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
            (Datatype::structure(Int, &lengths, &places, &types).unwrap(), padded(all))
        }
        9 => {
            let (lb, extent) = (rng.i64(-40..40), rng.i64(-10..90));
            (Datatype::resized(Int, &old, lb, extent).unwrap(), resized(&map, lb, extent))
        }
        10 => (Datatype::duplicate(&old).unwrap(), map),
        _ => array(rng, &old, &map),
    }
}

/// Makes many blocks, of lengths for which there may be special loops: adjacent, apart, backwards or at irregular places.
fn regular(rng: &mut Rng, old: &Type, map: &Map) -> (Type, Map) {
    let (n, length, ext) = (rng.usize(1..70), rng.i64(1..20), extent(map));
    let step = match rng.u8(0..4) {
        0 => length,
        1 => -length,
        2 => length + 1,
        _ => rng.i64(-40..40),
    };
    if rng.bool() {
        let places: Vec<i64> = (0..n as i64)
            .map(|i| i * step + if rng.u8(..) < 20 { rng.i64(0..3) } else { 0 })
            .collect();
        let all = places.iter().flat_map(|p| block(map, p * ext, length)).collect();
        if rng.bool() {
            return (Datatype::indexed_block(Int, length, &places, old).unwrap(), all);
        }
        let lengths = vec![length; n];
        return (Datatype::indexed(Int, &lengths, &places, old).unwrap(), all);
    }
    let n = n as i64;
    let all = (0..n).flat_map(|i| block(map, i * step * ext, length)).collect();
    (Datatype::vector(Int, n, length, step, old).unwrap(), all)
}

/// Makes a subarray, or a process's part of a distributed array. The map is made element by element.
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
        // The coordinates in the grid, found by counting in row-major order.
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
