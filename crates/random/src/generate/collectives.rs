//! One collective call: who has what, in which datatypes, on every rank of the communicator.

use crate::basic::Basic;
use crate::buffer::Piece;
use crate::grow::{Use, element, piece, signature};
use crate::program::{Collective, CommId, Form, Kind};
use crate::reduce;
use crate::types::Type;
use fastrand::Rng;

const KINDS: [Kind; 17] = [
    Kind::Barrier,
    Kind::Bcast,
    Kind::Gather,
    Kind::Gatherv,
    Kind::Scatter,
    Kind::Scatterv,
    Kind::Allgather,
    Kind::Allgatherv,
    Kind::Alltoall,
    Kind::Alltoallv,
    Kind::Alltoallw,
    Kind::Reduce,
    Kind::Allreduce,
    Kind::ReduceScatterBlock,
    Kind::ReduceScatter,
    Kind::Scan,
    Kind::Exscan,
];

type Pieces = Vec<Vec<Piece>>;

fn bytes(unit: &[Basic]) -> usize {
    unit.iter().map(|b| b.size()).sum()
}

pub fn collective(rng: &mut Rng, comm: CommId, n: usize) -> Collective {
    let kind = KINDS[rng.usize(..KINDS.len())];
    let form = [Form::Blocking, Form::Immediate, Form::Immediate, Form::Persistent][rng.usize(..4)];
    let root = rng.usize(..n);
    let in_place = rng.u32(..3) == 0 && !matches!(kind, Kind::Barrier | Kind::Bcast);
    let mut op = None;
    let (send, recv) = match kind {
        Kind::Barrier => (vec![Vec::new(); n], vec![Vec::new(); n]),
        _ if kind.reduces() => {
            let (o, e) = reduce::choose(rng);
            op = Some((o, e));
            reduction(rng, kind, n, root, in_place, &e.datatype())
        }
        _ => movement(rng, kind, n, root, in_place),
    };
    let large = (0..n).map(|_| kind != Kind::Barrier && rng.u32(..3) == 0).collect();
    Collective { comm, kind, form, large, in_place, root, send, recv, op }
}

/// Pieces of the same datatype one behind the other, as without displacements.
fn row(ty: &Type, counts: impl IntoIterator<Item = i64>) -> Vec<Piece> {
    let mut at = 0;
    let next = |count: i64| {
        let piece = Piece::new(ty.clone(), count, at);
        at += count * ty.extent();
        piece
    };
    counts.into_iter().map(next).collect()
}

/// Pieces of the same datatype in random order, with gaps, at whole extents.
fn scattered(rng: &mut Rng, ty: &Type, counts: &[i64]) -> Vec<Piece> {
    let mut order: Vec<usize> = (0..counts.len()).collect();
    rng.shuffle(&mut order);
    let mut at = vec![0; counts.len()];
    let mut next = rng.i64(-3..=3);
    for i in order {
        at[i] = next * ty.extent();
        next += counts[i] + rng.i64(0..3);
    }
    counts.iter().zip(at).map(|(count, at)| Piece::new(ty.clone(), *count, at)).collect()
}

/// For each peer so many units, of one datatype, where the call gives a displacement for each.
fn parts(rng: &mut Rng, unit: &[Basic], times: &[usize]) -> Vec<Piece> {
    // A datatype of several units must divide all; of one unit it always does.
    let common = times.iter().fold(0, |a, b| gcd(a, *b));
    let (ty, count) = element(rng, unit, common);
    let in_one = if common == 0 { 1 } else { common / count as usize };
    let counts: Vec<i64> = times.iter().map(|t| (t / in_one) as i64).collect();
    scattered(rng, &ty, &counts)
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// For each of `n` peers the same number of units, one behind the other.
fn blocks(rng: &mut Rng, unit: &[Basic], times: usize, n: usize) -> Vec<Piece> {
    let (ty, count) = element(rng, unit, times);
    row(&ty, vec![count; n])
}

/// For each peer so many units in a datatype of its own, at any byte.
fn mixed(rng: &mut Rng, unit: &[Basic], times: &[usize]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut end = rng.i64(-2..3) * 8;
    let mut order: Vec<usize> = (0..times.len()).collect();
    rng.shuffle(&mut order);
    for &i in &order {
        let (ty, count) = element(rng, unit, times[i]);
        let lo = ty.true_lb;
        let len = if count == 0 { 0 } else { (count - 1) * ty.extent() + ty.span() };
        let at = (end - lo + 7).div_euclid(8) * 8 + rng.i64(0..3) * 8;
        pieces.push(Piece::new(ty, count, at));
        end = at + lo + len;
    }
    let mut sorted: Vec<(usize, Piece)> = order.into_iter().zip(pieces).collect();
    sorted.sort_by_key(|(i, _)| *i);
    sorted.into_iter().map(|(_, piece)| piece).collect()
}

/// A few units for each of `n` peers: all of it is held by every rank's oracle.
fn few(rng: &mut Rng, unit: &[Basic], n: usize) -> usize {
    super::times(rng, bytes(unit) * n)
}

fn movement(rng: &mut Rng, kind: Kind, n: usize, root: usize, in_place: bool) -> (Pieces, Pieces) {
    let unit = &signature(rng)[..];
    let none = || vec![Vec::new(); n];
    let one = |rng: &mut Rng, times: usize, what: Use| vec![piece(rng, unit, times, what)];
    let varied = |rng: &mut Rng| -> Vec<usize> { (0..n).map(|_| few(rng, unit, n)).collect() };
    let (mut send, mut recv) = (none(), none());
    match kind {
        Kind::Bcast => {
            let times = super::times(rng, bytes(unit));
            recv = (0..n).map(|_| one(rng, times, Use::Receive)).collect();
        }
        Kind::Gather => {
            let times = few(rng, unit, n);
            send = (0..n).map(|_| one(rng, times, Use::Send)).collect();
            recv[root] = blocks(rng, unit, times, n);
        }
        Kind::Gatherv => {
            let times = varied(rng);
            send = times.iter().map(|t| one(rng, *t, Use::Send)).collect();
            recv[root] = parts(rng, unit, &times);
        }
        Kind::Scatter => {
            let times = few(rng, unit, n);
            send[root] = blocks(rng, unit, times, n);
            recv = (0..n).map(|_| one(rng, times, Use::Receive)).collect();
        }
        Kind::Scatterv => {
            let times = varied(rng);
            send[root] = parts(rng, unit, &times);
            recv = times.iter().map(|t| one(rng, *t, Use::Receive)).collect();
        }
        Kind::Allgather => {
            let times = few(rng, unit, n);
            send = (0..n).map(|_| one(rng, times, Use::Send)).collect();
            recv = (0..n).map(|_| blocks(rng, unit, times, n)).collect();
        }
        Kind::Allgatherv => {
            let times = varied(rng);
            send = times.iter().map(|t| one(rng, *t, Use::Send)).collect();
            recv = (0..n).map(|_| parts(rng, unit, &times)).collect();
        }
        Kind::Alltoall => {
            let times = few(rng, unit, n);
            send = (0..n).map(|_| blocks(rng, unit, times, n)).collect();
            recv = (0..n).map(|_| blocks(rng, unit, times, n)).collect();
        }
        Kind::Alltoallv | Kind::Alltoallw => {
            let mut times: Vec<Vec<usize>> = (0..n).map(|_| varied(rng)).collect();
            if in_place {
                // What goes there is as long as what comes from there.
                for (a, b) in (0..n).flat_map(|a| (0..a).map(move |b| (a, b))) {
                    times[a][b] = times[b][a];
                }
            }
            let each = if kind == Kind::Alltoallv { parts } else { mixed };
            send = times.iter().map(|row| each(rng, unit, row)).collect();
            let column = |to: usize| times.iter().map(|row| row[to]).collect::<Vec<_>>();
            recv = (0..n).map(|to| each(rng, unit, &column(to))).collect();
        }
        _ => unreachable!("{kind:?} moves no data"),
    }
    if in_place {
        let replaced =
            if matches!(kind, Kind::Scatter | Kind::Scatterv) { &mut recv } else { &mut send };
        let at = |r: usize| !kind.rooted() || r == root;
        (0..n).filter(|r| at(*r)).for_each(|r| replaced[r].clear());
    }
    (send, recv)
}

fn reduction(
    rng: &mut Rng,
    kind: Kind,
    n: usize,
    root: usize,
    in_place: bool,
    ty: &Type,
) -> (Pieces, Pieces) {
    let count = super::times(rng, ty.size() * 2) as i64;
    let single = |count: i64| vec![Piece::new(ty.clone(), count, 0)];
    let (mut send, mut recv) = match kind {
        Kind::ReduceScatter | Kind::ReduceScatterBlock => {
            let block = count / n as i64;
            let counts: Vec<i64> = (0..n)
                .map(|_| match kind {
                    Kind::ReduceScatterBlock => block,
                    _ => rng.i64(0..=2 * block + 1),
                })
                .collect();
            let all = row(ty, counts.iter().copied());
            let recv = (0..n)
                .map(|r| if in_place { all.clone() } else { single(counts[r]) })
                .collect::<Vec<_>>();
            (vec![all; n], recv)
        }
        _ => (vec![single(count); n], vec![single(count); n]),
    };
    let rooted = kind == Kind::Reduce;
    for r in 0..n {
        if rooted && r != root {
            recv[r].clear();
        }
        if in_place && (!rooted || r == root) {
            send[r].clear();
        }
    }
    (send, recv)
}
