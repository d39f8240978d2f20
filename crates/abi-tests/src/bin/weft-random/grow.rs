//! Random datatypes with a given signature: every constructor, nested, in random layouts. No two bytes of data overlap, in one
//! element or between neighbours.

use crate::basic::{self, Class, ElementType, PAIRS};
use crate::buffer::Piece;
use crate::mpi::{CountWidth, DISTRIBUTE_DFLT_DARG};
use crate::types::{ArrayOrder, Dimension, Distribution, Shape, SharedType, TypeModel};
use fastrand::Rng;

/// Maximum number of basic datatypes in the type map of a random datatype.
const MAP: usize = 48;

/// Returns a random unit of a signature: mostly one basic datatype, sometimes a few, or the two of a pair.
pub fn signature(rng: &mut Rng) -> Vec<ElementType> {
    // A bool cannot have arbitrary bytes, so only logical reductions use it.
    let all: Vec<ElementType> = basic::all().filter(|b| b.class() != Class::Logical).collect();
    match rng.u32(0..8) {
        0 => (0..rng.usize(2..=5)).map(|_| all[rng.usize(..all.len())]).collect(),
        1 => vec![
            ElementType::named(PAIRS[rng.usize(..PAIRS.len())].first),
            ElementType::named("INT"),
        ],
        _ => vec![all[rng.usize(..all.len())]],
    }
}

fn divisors(n: usize) -> Vec<usize> {
    (1..=n).filter(|d| n.is_multiple_of(*d)).collect()
}

/// Returns `n` numbers from 0 on whose sum is `sum`.
pub fn parts(rng: &mut Rng, sum: i64, n: usize) -> Vec<i64> {
    let mut cuts: Vec<i64> = (1..n).map(|_| rng.i64(0..=sum)).collect();
    cuts.extend([0, sum]);
    cuts.sort_unstable();
    cuts.windows(2).map(|w| w[1] - w[0]).collect()
}

/// Splits `product` into `n` factors.
fn factors(rng: &mut Rng, product: i64, n: usize) -> Vec<i64> {
    let mut rest = product as usize;
    let mut all: Vec<i64> = Vec::new();
    for _ in 1..n {
        let some = divisors(rest);
        let one = some[rng.usize(..some.len())];
        all.push(one as i64);
        rest /= one;
    }
    all.push(rest as i64);
    rng.shuffle(&mut all);
    all
}

/// Returns displacements for blocks that extend from `.0` to `.1` (bytes) around them: multiples of `unit` bytes, in random order,
/// with random gaps.
fn place(rng: &mut Rng, reach: &[(i64, i64)], unit: i64) -> Vec<i64> {
    let mut order: Vec<usize> = (0..reach.len()).collect();
    rng.shuffle(&mut order);
    let mut at = vec![0; reach.len()];
    let mut end = rng.i64(-3..=3) * unit;
    for i in order {
        let (lo, hi) = reach[i];
        at[i] = ((end - lo).div_euclid(unit) + i64::from((end - lo).rem_euclid(unit) != 0)) * unit;
        at[i] += rng.i64(0..3) * unit;
        end = at[i] + hi;
    }
    at
}

/// Returns the range of bytes of `n` elements of a datatype.
fn reach(child: &SharedType, n: i64) -> (i64, i64) {
    if n == 0 {
        return (0, 0);
    }
    (child.true_lb, (n - 1) * child.extent() + child.true_ub)
}

/// Returns the unit of displacements in bytes, mostly a multiple that suits the hardware.
fn grain(rng: &mut Rng) -> i64 {
    [8, 8, 8, 4, 2, 1][rng.usize(..6)]
}

/// Makes a datatype whose type map has exactly these basic datatypes in this order.
pub fn grow(rng: &mut Rng, seq: &[ElementType], depth: u32) -> SharedType {
    if let [one] = seq
        && (depth == 0 || rng.u32(..3) > 0)
    {
        return TypeModel::basic(*one);
    }
    if let [first, second] = seq
        && second.name() == "INT"
        && let Some(i) = PAIRS.iter().position(|p| p.first == first.name())
        && rng.bool()
    {
        return TypeModel::new(Shape::Pair(i), CountWidth::Int);
    }
    let width = CountWidth::mostly_int(rng);
    let uniform = seq.iter().all(|b| *b == seq[0]);
    if depth == 0 {
        if uniform {
            let child = TypeModel::basic(seq[0]);
            return TypeModel::new(Shape::Contiguous(seq.len() as i64, child), width);
        }
        return structure(rng, seq, 0, width);
    }
    match rng.u32(..14) {
        0 => {
            let child = grow(rng, seq, depth - 1);
            TypeModel::new(Shape::Dup(child), CountWidth::Int)
        }
        1 | 2 => {
            let child = grow(rng, seq, depth - 1);
            let lb = child.true_lb + rng.i64(-2..=1) * grain(rng);
            let extent = child.span() + rng.i64(0..3) * grain(rng);
            TypeModel::new(Shape::Resized { lb, extent, child }, width)
        }
        3 => structure(rng, seq, depth - 1, width),
        which => repeated(rng, seq, depth - 1, width, which),
    }
}

/// Makes a structure of random pieces of the sequence.
fn structure(rng: &mut Rng, seq: &[ElementType], depth: u32, width: CountWidth) -> SharedType {
    let (mut blocks, mut children) = (Vec::new(), Vec::new());
    let mut rest = seq;
    while !rest.is_empty() {
        let alike = rest.iter().take_while(|b| **b == rest[0]).count();
        // At depth 0 a piece has only one basic datatype, elsewhere any.
        let len = if depth == 0 || rng.bool() {
            rng.usize(1..=alike)
        } else {
            rng.usize(1..=rest.len().min(12))
        };
        let (now, after) = rest.split_at(len);
        rest = after;
        if now.iter().all(|b| *b == now[0]) {
            let some = divisors(len);
            let unit = some[rng.usize(..some.len())];
            blocks.push((len / unit) as i64);
            children.push(if depth == 0 && unit == 1 {
                TypeModel::basic(now[0])
            } else {
                grow(rng, &now[..unit], depth.saturating_sub(1))
            });
        } else {
            blocks.push(1);
            children.push(grow(rng, now, depth - 1));
        }
        if rng.u32(..6) == 0 {
            blocks.push(0);
            children.push(TypeModel::basic(seq[0]));
        }
    }
    let reaches: Vec<_> = children.iter().zip(&blocks).map(|(t, n)| reach(t, *n)).collect();
    let unit = grain(rng);
    let at = place(rng, &reaches, unit);
    TypeModel::new(Shape::Struct { blocks, at, children }, width)
}

fn order(rng: &mut Rng) -> ArrayOrder {
    if rng.bool() { ArrayOrder::Fortran } else { ArrayOrder::C }
}

/// Makes a constructor that repeats a child, whose sequence is a period of this sequence.
fn repeated(
    rng: &mut Rng,
    seq: &[ElementType],
    depth: u32,
    width: CountWidth,
    which: u32,
) -> SharedType {
    let period = |d: &usize| seq.iter().enumerate().all(|(i, b)| *b == seq[i % d]);
    let some: Vec<usize> = divisors(seq.len()).into_iter().filter(period).collect();
    let unit = some[rng.usize(..some.len())];
    let n = (seq.len() / unit) as i64;
    let child = grow(rng, &seq[..unit], depth);
    let unit = child.extent();
    let sign = if rng.u32(..4) == 0 { -1 } else { 1 };
    let count = divisors(n as usize);
    let count = count[rng.usize(..count.len())] as i64;
    let block = n / count;
    let shape = match which {
        4 => Shape::Contiguous(n, child),
        5 => {
            let stride = sign * (block + rng.i64(0..4));
            Shape::Vector { count, block, stride, child }
        }
        6 => {
            let (lo, hi) = reach(&child, block);
            let stride = sign * (hi - lo + rng.i64(0..4) * grain(rng));
            Shape::Hvector { count, block, stride, child }
        }
        7 | 8 => {
            let many = rng.usize(1..=4);
            let blocks = parts(rng, n, many);
            let reaches: Vec<_> = blocks.iter().map(|b| reach(&child, *b)).collect();
            if which == 7 {
                let at = place(rng, &reaches, unit).iter().map(|a| a / unit).collect();
                Shape::Indexed { blocks, at, child }
            } else {
                let bytes = grain(rng);
                Shape::Hindexed { blocks, at: place(rng, &reaches, bytes), child }
            }
        }
        9 => {
            let at = place(rng, &vec![reach(&child, block); count as usize], unit);
            Shape::IndexedBlock { block, at: at.iter().map(|a| a / unit).collect(), child }
        }
        10 => {
            let bytes = grain(rng);
            let at = place(rng, &vec![reach(&child, block); count as usize], bytes);
            Shape::HindexedBlock { block, at, child }
        }
        11 | 12 => {
            let dimensions = rng.usize(1..=3);
            let subsizes = factors(rng, n, dimensions);
            let sizes: Vec<i64> = subsizes.iter().map(|s| s + rng.i64(0..3)).collect();
            let starts = sizes.iter().zip(&subsizes).map(|(a, s)| rng.i64(0..=a - s)).collect();
            Shape::Subarray { sizes, subsizes, starts, order: order(rng), child }
        }
        _ => {
            let dimensions = rng.usize(1..=3);
            let owned = factors(rng, n, dimensions);
            let dimensions = owned.into_iter().map(|n| dimension(rng, n)).collect();
            Shape::Darray { dimensions, order: order(rng), child }
        }
    };
    TypeModel::new(shape, width)
}

/// Makes a dimension of which this process owns `n` indices.
fn dimension(rng: &mut Rng, n: i64) -> Dimension {
    let processes = rng.i64(1..=3);
    let at = rng.i64(0..processes);
    let spread = match rng.u32(..5) {
        0 => return Dimension { size: n, spread: Distribution::None, processes: 1, at: 0 },
        1 => Distribution::Block(None),
        // The standard ABI's number for the default is 19, so no block can have 19 elements explicitly.
        2 => Distribution::Block(Some(n + rng.i64(0..2)).filter(|b| *b != DISTRIBUTE_DFLT_DARG)),
        3 => Distribution::Cyclic(None),
        _ => Distribution::Cyclic(Some(rng.i64(1..=3))),
    };
    // The size follows from the owned indices, so it is searched. A block of more than `n` has only one size.
    let mut fits = Vec::new();
    for size in 1..=(n + 4) * processes {
        let legal = !matches!(spread, Distribution::Block(Some(b)) if b * processes < size);
        let dimension = Dimension { size, spread, processes, at };
        if legal && dimension.owned().len() as i64 == n {
            fits.push(dimension);
        }
    }
    if fits.is_empty() {
        return Dimension { size: n, spread: Distribution::None, processes: 1, at: 0 };
    }
    fits[rng.usize(..fits.len())]
}

/// Use of a piece: data that are only read may overlap.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Use {
    Send,
    Receive,
}

/// Returns a datatype with a whole number of `unit`s that divides `times`, and the number of its elements in `times` units. If
/// `times` is 0, the datatype may be any.
pub fn element(rng: &mut Rng, unit: &[ElementType], times: usize) -> (SharedType, i64) {
    let most = MAP / unit.len();
    let some = divisors(if times == 0 { rng.usize(1..=4) } else { times });
    let some: Vec<usize> = some.into_iter().filter(|d| *d <= most).collect();
    // There are many small divisors, so half of the picks are from the upper half.
    let pick =
        if rng.bool() { rng.usize(..some.len()) } else { rng.usize(some.len() / 2..some.len()) };
    let in_one = some[pick];
    let seq: Vec<ElementType> = (0..in_one).flat_map(|_| unit.iter().copied()).collect();
    let depth = rng.u32(0..4);
    (grow(rng, &seq, depth), (times / in_one) as i64)
}

/// Makes a piece of `times` units. It is the only piece in its buffer, so its elements may be interleaved (columns of a matrix),
/// and overlap if they are only read.
pub fn piece(rng: &mut Rng, unit: &[ElementType], times: usize, what: Use) -> Piece {
    let (ty, count) = element(rng, unit, times);
    let ty = tighten(rng, ty, count, what);
    Piece::new(ty, count, 0)
}

fn tighten(rng: &mut Rng, ty: SharedType, count: i64, what: Use) -> SharedType {
    let overlap = what == Use::Send && rng.u32(..16) == 0;
    if !(2..=64).contains(&count) || (!overlap && rng.u32(..4) > 0) {
        return ty;
    }
    let extent = if overlap { rng.i64(1..=ty.extent()) } else { ty.map[0].0.size() as i64 };
    if !overlap && (ty.runs.len() < 2 || !ty.disjoint(count, extent)) {
        return ty;
    }
    let (lb, width) = (ty.lb, CountWidth::any(rng));
    TypeModel::exact(Shape::Resized { lb, extent, child: ty }, width).0.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn signatures_are_kept_and_nothing_overlaps() {
        let mut seen = BTreeSet::new();
        for seed in 0..20_000 {
            let mut rng = Rng::with_seed(seed);
            let unit = signature(&mut rng);
            let times = rng.usize(1..=30);
            let what = if rng.bool() { Use::Receive } else { Use::Send };
            let piece = piece(&mut rng, &unit, times, what);
            let ty = &piece.ty;
            assert_eq!(piece.items, times * unit.len());
            let same = ty.map.iter().enumerate().all(|(i, (b, _))| *b == unit[i % unit.len()]);
            assert!(same, "seed {seed}: {ty}");
            assert!(ty.disjoint(1, 0), "seed {seed}: {ty} overlaps itself");
            if what == Use::Receive {
                assert!(ty.disjoint(piece.count, ty.extent()), "seed {seed}: {ty} overlaps");
            }
            let text = ty.to_string();
            seen.extend(text.split(|c: char| !c.is_lowercase() && c != '_').map(str::to_owned));
        }
        for name in [
            "contiguous",
            "vector",
            "hvector",
            "indexed",
            "hindexed",
            "indexed_block",
            "hindexed_block",
            "struct",
            "subarray",
            "darray",
            "resized",
            "dup",
            "darray_c",
            "struct_c",
        ] {
            assert!(seen.contains(name), "{name} never came up: {seen:?}");
        }
    }
}
