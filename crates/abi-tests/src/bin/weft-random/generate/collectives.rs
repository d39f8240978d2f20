//! A collective call: the data and the datatypes of every rank of the communicator.

use crate::basic::ElementType;
use crate::buffer::Piece;
use crate::comm::{CommId, CommModel, Wiring};
use crate::grow::{Use, element, piece, signature};
use crate::mpi::CountWidth;
use crate::program::{CallForm, CollectiveFunction, CollectiveItem};
use crate::reduce;
use crate::types::SharedType;
use fastrand::Rng;

/// Operations for all communicators. Those before MPI_Scan are also for intercommunicators.
const KINDS: [CollectiveFunction; 17] = [
    CollectiveFunction::Barrier,
    CollectiveFunction::Bcast,
    CollectiveFunction::Gather,
    CollectiveFunction::Gatherv,
    CollectiveFunction::Scatter,
    CollectiveFunction::Scatterv,
    CollectiveFunction::Allgather,
    CollectiveFunction::Allgatherv,
    CollectiveFunction::Alltoall,
    CollectiveFunction::Alltoallv,
    CollectiveFunction::Alltoallw,
    CollectiveFunction::Reduce,
    CollectiveFunction::Allreduce,
    CollectiveFunction::ReduceScatterBlock,
    CollectiveFunction::ReduceScatter,
    CollectiveFunction::Scan,
    CollectiveFunction::Exscan,
];

type Pieces = Vec<Vec<Piece>>;

fn bytes(unit: &[ElementType]) -> usize {
    unit.iter().map(|b| b.size()).sum()
}

/// Operations for communicators with a topology.
const NEIGHBOR_KINDS: [CollectiveFunction; 5] = [
    CollectiveFunction::NeighborAllgather,
    CollectiveFunction::NeighborAllgatherv,
    CollectiveFunction::NeighborAlltoall,
    CollectiveFunction::NeighborAlltoallv,
    CollectiveFunction::NeighborAlltoallw,
];

/// A call, with its communicator and its root.
struct Call<'a> {
    kind: CollectiveFunction,
    comm: &'a CommModel,
    root: usize,
    in_place: bool,
    wiring: &'a Wiring,
}

pub fn collective(rng: &mut Rng, id: CommId, comm: &CommModel) -> CollectiveItem {
    let n = comm.members.len();
    let kinds = KINDS.len() - if comm.first.is_some() { 2 } else { 0 };
    let kind = if comm.topology.is_some() && rng.bool() {
        NEIGHBOR_KINDS[rng.usize(..NEIGHBOR_KINDS.len())]
    } else {
        KINDS[rng.usize(..kinds)]
    };
    let form = [CallForm::Blocking, CallForm::Immediate, CallForm::Immediate, CallForm::Persistent]
        [rng.usize(..4)];
    let root = rng.usize(..n);
    let never =
        matches!(kind, CollectiveFunction::Barrier | CollectiveFunction::Bcast) || kind.neighbors();
    let in_place = rng.u32(..3) == 0 && !never && comm.first.is_none();
    let wiring = comm.wiring(kind.peers());
    let call = Call { kind, comm, root, in_place, wiring: &wiring };
    let mut op = None;
    let (send, recv) = match kind {
        CollectiveFunction::Barrier => (vec![Vec::new(); n], vec![Vec::new(); n]),
        _ if kind.reduces() => {
            let (o, e) = reduce::choose(rng);
            op = Some((o, e));
            call.reduction(rng, &e.datatype())
        }
        _ => call.movement(rng),
    };
    let width = match kind {
        CollectiveFunction::Barrier => vec![CountWidth::Int; n],
        _ => (0..n).map(|_| CountWidth::mostly_int(rng)).collect(),
    };
    CollectiveItem { comm: id, kind, form, width, in_place, root, send, recv, op, wiring }
}

/// Makes pieces of the same datatype one after the other, as without displacements.
fn row(ty: &SharedType, counts: impl IntoIterator<Item = i64>) -> Vec<Piece> {
    let mut at = 0;
    let next = |count: i64| {
        let piece = Piece::new(ty.clone(), count, at);
        at += count * ty.extent();
        piece
    };
    counts.into_iter().map(next).collect()
}

/// Makes pieces of the same datatype in random order, with gaps, at whole extents.
fn scattered(rng: &mut Rng, ty: &SharedType, counts: &[i64]) -> Vec<Piece> {
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

/// Makes a piece for each peer, of `times` units, of one datatype. For calls that give a displacement for each piece.
fn parts(rng: &mut Rng, unit: &[ElementType], times: &[usize]) -> Vec<Piece> {
    // A datatype of several units must divide all counts. A datatype of one unit always does.
    let common = times.iter().fold(0, |a, b| gcd(a, *b));
    let (ty, count) = element(rng, unit, common);
    let in_one = if common == 0 { 1 } else { common / count as usize };
    let counts: Vec<i64> = times.iter().map(|t| (t / in_one) as i64).collect();
    scattered(rng, &ty, &counts)
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Makes, for each of `n` peers, a piece of the same number of units, one piece after the other.
fn blocks(rng: &mut Rng, unit: &[ElementType], times: usize, n: usize) -> Vec<Piece> {
    let (ty, count) = element(rng, unit, times);
    row(&ty, vec![count; n])
}

/// Makes a piece for each peer, of `times` units in a datatype of its own, at any byte.
fn mixed(rng: &mut Rng, unit: &[ElementType], times: &[usize]) -> Vec<Piece> {
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

/// Returns a small number of units for each of `n` peers: the oracle of every rank holds all of them.
fn few(rng: &mut Rng, unit: &[ElementType], n: usize) -> usize {
    super::times(rng, bytes(unit) * n)
}

impl Call<'_> {
    fn movement(&self, rng: &mut Rng) -> (Pieces, Pieces) {
        use CollectiveFunction::*;
        let Call { kind, comm, root, .. } = *self;
        let n = comm.members.len();
        let unit = &signature(rng)[..];
        let one = |rng: &mut Rng, times: usize, what: Use| vec![piece(rng, unit, times, what)];
        let (mut send, mut recv) = (vec![Vec::new(); n], vec![Vec::new(); n]);
        // Number of units that each seat sends: the same within a group unless the call has counts.
        let varied = matches!(kind, Gatherv | Scatterv | Allgatherv | NeighborAllgatherv);
        let both = [few(rng, unit, n), few(rng, unit, n)];
        let alike = |s: usize| both[usize::from(comm.group(s).start > 0)];
        let times: Vec<usize> =
            (0..n).map(|s| if varied { few(rng, unit, n) } else { alike(s) }).collect();
        match kind {
            Bcast => {
                let times = super::times(rng, bytes(unit));
                recv[root] = one(rng, times, Use::Receive);
                comm.others(root).for_each(|s| recv[s] = one(rng, times, Use::Receive));
            }
            Gather | Gatherv => {
                comm.others(root).for_each(|s| send[s] = one(rng, times[s], Use::Send));
                let heard: Vec<usize> = comm.others(root).map(|s| times[s]).collect();
                recv[root] = if varied {
                    parts(rng, unit, &heard)
                } else {
                    blocks(rng, unit, heard[0], heard.len())
                };
            }
            Scatter | Scatterv => {
                comm.others(root).for_each(|s| recv[s] = one(rng, times[s], Use::Receive));
                let said: Vec<usize> = comm.others(root).map(|s| times[s]).collect();
                send[root] = if varied {
                    parts(rng, unit, &said)
                } else {
                    blocks(rng, unit, said[0], said.len())
                };
            }
            Allgather | Allgatherv | NeighborAllgather | NeighborAllgatherv => {
                send = times.iter().map(|t| one(rng, *t, Use::Send)).collect();
                for (to, heard) in self.wiring.iter().enumerate() {
                    let from = |w: &Option<(usize, usize)>| w.map_or(times[0], |w| times[w.0]);
                    let heard: Vec<usize> = heard.iter().map(from).collect();
                    recv[to] = if varied {
                        parts(rng, unit, &heard)
                    } else {
                        blocks(rng, unit, heard.first().copied().unwrap_or(0), heard.len())
                    };
                }
            }
            Alltoall | NeighborAlltoall => {
                let said = comm.outgoing(kind.peers());
                for s in 0..n {
                    send[s] = blocks(rng, unit, times[s], said[s].len());
                    let from = self.wiring[s].iter().flatten().next();
                    let heard = from.map_or(times[s], |w| times[w.0]);
                    recv[s] = blocks(rng, unit, heard, self.wiring[s].len());
                }
            }
            _ => return self.edges(rng, unit),
        }
        if self.in_place {
            let scatters = matches!(kind, Scatter | Scatterv);
            let replaced = if scatters { &mut recv } else { &mut send };
            let at = |r: usize| !kind.rooted() || r == root;
            (0..n).filter(|r| at(*r)).for_each(|r| replaced[r].clear());
        }
        (send, recv)
    }

    /// Makes the pieces of calls in which each seat sends another length to each peer.
    fn edges(&self, rng: &mut Rng, unit: &[ElementType]) -> (Pieces, Pieces) {
        let n = self.comm.members.len();
        let said = self.comm.outgoing(self.kind.peers());
        let mut times: Vec<Vec<usize>> =
            said.iter().map(|to| to.iter().map(|_| few(rng, unit, n)).collect()).collect();
        if self.in_place {
            // In place, a message to a seat is as long as the message from that seat.
            for (a, b) in (0..n).flat_map(|a| (0..a).map(move |b| (a, b))) {
                times[a][b] = times[b][a];
            }
        }
        let mixes = matches!(
            self.kind,
            CollectiveFunction::Alltoallw | CollectiveFunction::NeighborAlltoallw
        );
        let each = if mixes { mixed } else { parts };
        let send = match self.in_place {
            true => vec![Vec::new(); n],
            false => times.iter().map(|row| each(rng, unit, row)).collect(),
        };
        let heard = |w: &Option<(usize, usize)>| w.map_or(3, |(from, slot)| times[from][slot]);
        let recv = (self.wiring.iter())
            .map(|list| each(rng, unit, &list.iter().map(heard).collect::<Vec<_>>()))
            .collect();
        (send, recv)
    }

    fn reduction(&self, rng: &mut Rng, ty: &SharedType) -> (Pieces, Pieces) {
        let Call { kind, comm, root, in_place, .. } = *self;
        let n = comm.members.len();
        let count = super::times(rng, ty.size() * 2) as i64;
        let single = |count: i64| vec![Piece::new(ty.clone(), count, 0)];
        if matches!(
            kind,
            CollectiveFunction::ReduceScatter | CollectiveFunction::ReduceScatterBlock
        ) {
            let counts = self.shares(rng, count);
            // Data that a seat sends, in the parts that the receivers get.
            let said = |s: usize| row(ty, comm.others(s).map(|to| counts[to]));
            if in_place {
                return (vec![Vec::new(); n], (0..n).map(said).collect());
            }
            return ((0..n).map(said).collect(), counts.iter().map(|c| single(*c)).collect());
        }
        let (mut send, mut recv) = (vec![single(count); n], vec![single(count); n]);
        for s in 0..n {
            let rooted = kind == CollectiveFunction::Reduce;
            if rooted && s != root {
                recv[s].clear();
            }
            let says = !rooted || comm.others(root).contains(&s);
            if !says || in_place && (!rooted || s == root) {
                send[s].clear();
            }
        }
        (send, recv)
    }

    /// Returns the number of elements of a reduction's result for each seat. Both groups get the same total number.
    fn shares(&self, rng: &mut Rng, count: i64) -> Vec<i64> {
        let n = self.comm.members.len() as i64;
        let first = self.comm.first.map_or(n, |f| f as i64);
        let second = n - first;
        if self.kind == CollectiveFunction::ReduceScatterBlock {
            let (a, b) = if second == 0 {
                (count / n, 0)
            } else {
                let block = count / (first * second);
                (block * second, block * first)
            };
            return (0..n).map(|s| if s < first { a } else { b }).collect();
        }
        let mut all = crate::grow::parts(rng, count, first as usize);
        if second > 0 {
            all.extend(crate::grow::parts(rng, count, second as usize));
        }
        all
    }
}
