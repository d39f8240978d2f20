//! A collective call: the requested algorithm and its data, and its memory on one rank with the contents that an oracle expects.

use super::folds::Operands;
use super::memory::{Expected, Layout, Memory};
use super::ops::Op;
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use weft_collective::{AlgorithmChoice, CollectiveKind, Prefix, RankPlacement, SelectionKey};
use weft_fabric::Fabric;
use weft_process::{Comm, Error, Lengths, RankBuffers, Root};

/// A collective call, the same on all ranks.
#[derive(Clone, Copy)]
pub struct Call {
    pub choice: AlgorithmChoice,
    /// Number of elements of the buffer, or of one block.
    pub count: usize,
    pub root: usize,
    pub op: Op,
    /// Layouts of the sent and of the received data.
    pub layouts: (Layout, Layout),
    pub in_place: bool,
    /// True if blocks differ in length, in calls that allow it.
    pub varying: bool,
    pub key: u64,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Call { choice, count, root, op, layouts, in_place, varying, key } = self;
        write!(f, "{} by {choice}: {count} elements, root {root}, {op:?}, ", self.operation())?;
        write!(f, "{layouts:?}, in place {in_place}, varying {varying}, key {key}")
    }
}

/// Number of bytes of an element that is only moved: odd, so that nothing is a whole number of words.
const MOVED: usize = 3;

pub type Running = Pin<Box<dyn Future<Output = Result<(), Error>>>>;

/// Function that makes the operation on a communicator, or on a view of a communicator.
pub type Make<F> = Box<dyn Fn(&Comm<F>) -> Running>;

/// A call on one rank, which can be made any number of times.
pub struct Prepared<F: Fabric> {
    pub memories: Vec<Memory>,
    pub make: Make<F>,
    /// Index of the memory that must hold the same bits on all ranks.
    pub result: Option<usize>,
}

impl Call {
    pub fn operation(&self) -> CollectiveKind {
        self.choice.algorithm.operation
    }

    fn reduces(&self) -> bool {
        use CollectiveKind::*;
        matches!(self.operation(), Reduce | Allreduce | ReduceScatter | Scan | Exscan)
    }

    fn unit(&self) -> usize {
        if self.reduces() { self.op.unit() } else { MOVED }
    }

    fn varies(&self) -> bool {
        use CollectiveKind::*;
        match self.operation() {
            Gatherv | Scatterv | Alltoallv => true,
            Allgather | ReduceScatter => self.varying,
            _ => false,
        }
    }

    /// Returns the number of elements in the block of `rank`. Some blocks have none.
    fn len(&self, rank: usize) -> usize {
        match self.varies() && self.count > 0 {
            true => (7 * rank + self.key as usize) % 3 * self.count / 2 + rank % 2,
            false => self.count,
        }
    }

    /// Returns the number of elements that `from` sends to `to`. In place, both directions have one length.
    fn len_between(&self, from: usize, to: usize) -> usize {
        match (self.varies() && self.count > 0, self.in_place) {
            (false, _) => self.count,
            (true, true) => (from + to + self.key as usize) % 3 * self.count / 2,
            (true, false) => (from + 2 * to + self.key as usize) % 4 * self.count / 3,
        }
    }

    /// Returns the parameters of the choice, as [`CollectiveKind::measure`] defines them.
    pub fn case(&self, ranks: usize, site: RankPlacement) -> SelectionKey {
        use CollectiveKind::*;
        let all: usize = (0..ranks).map(|rank| self.len(rank)).sum();
        let elements = match self.operation() {
            Barrier | Gatherv | Scatterv | Alltoallv => 0,
            ReduceScatter => all,
            _ => self.count,
        };
        let bytes = match self.operation() {
            Allgather => all * self.unit() / ranks,
            _ => elements * self.unit(),
        };
        let element = if self.reduces() { self.unit() } else { 1 };
        let first = self.len(0);
        let equal = !matches!(self.operation(), Allgather | ReduceScatter)
            || (0..ranks).all(|rank| self.len(rank) == first);
        let commutes = !self.reduces() || self.op != Op::Product;
        SelectionKey { ranks, bytes, element, commutes, equal, site }
    }

    /// Returns true if data must travel between ranks: between all pairs that an algorithm may use.
    pub fn moves(&self, ranks: usize) -> bool {
        ranks > 1 && (self.count >= ranks || self.operation() == CollectiveKind::Barrier)
    }

    fn content(&self, from: usize, to: usize, len: usize) -> Vec<u8> {
        let key = self.key << 16 | (from << 8) as u64 | to as u64;
        let mut rng = fastrand::Rng::with_seed(key);
        std::iter::repeat_with(|| rng.u8(..)).take(MOVED * len).collect()
    }

    /// Returns the operands of the call, `count` elements on each rank.
    fn operands(&self, count: usize) -> Operands {
        Operands { op: self.op, key: self.key, count }
    }

    fn sum(&self, data: &[u8]) -> Expected {
        let data = data.to_vec();
        if self.op == Op::Float { Expected::Near(data) } else { Expected::These(data) }
    }

    fn lengths(&self) -> Lengths {
        if self.varies() { Lengths::Varying } else { Lengths::Equal }
    }

    /// Makes the call's memory on this rank of `comm`.
    pub fn prepare<F: Fabric>(&self, comm: &Comm<F>) -> Prepared<F> {
        use CollectiveKind::*;
        match self.operation() {
            Barrier => Prepared {
                memories: Vec::new(),
                make: Box::new(|c| Box::pin(c.barrier())),
                result: None,
            },
            Bcast => self.bcast(comm),
            Gather | Gatherv => self.gather(comm),
            Scatter | Scatterv => self.scatter(comm),
            Allgather => self.allgather(comm),
            Alltoall | Alltoallv => self.alltoall(comm),
            Reduce | Allreduce | Scan | Exscan => self.reduce(comm),
            ReduceScatter => self.reduce_scatter(comm),
        }
    }

    /// Makes memory to send from, which must not change.
    fn out<F: Fabric>(&self, comm: &Comm<F>, len: usize, data: Vec<u8>) -> Memory {
        let form = (self.layouts.0, self.unit(), len);
        let pool = comm.engine().endpoint().staging();
        Memory::new(pool, "what was sent", form, data.clone(), Expected::These(data))
    }

    fn into<F: Fabric>(
        &self,
        comm: &Comm<F>,
        len: usize,
        before: Vec<u8>,
        expected: Expected,
    ) -> Memory {
        let form = (self.layouts.1, self.unit(), len);
        let pool = comm.engine().endpoint().staging();
        Memory::new(pool, "what was received", form, before, expected)
    }

    fn bcast<F: Fabric>(&self, comm: &Comm<F>) -> Prepared<F> {
        let (root, len) = (self.root, self.count);
        let data = self.content(root, 0, len);
        let memory = match comm.rank() == root {
            true => self.out(comm, len, data),
            false => self.into(comm, len, Vec::new(), Expected::These(data)),
        };
        let buffer = memory.whole();
        let make = Box::new(move |c: &Comm<F>| -> Running {
            Box::pin(c.bcast(buffer.clone(), Root::Rank(root)))
        });
        Prepared { memories: vec![memory], make, result: None }
    }

    /// Returns the first element of each block, and the end of the last block.
    fn starts(&self, ranks: usize, len: impl Fn(usize) -> usize) -> Vec<usize> {
        let mut starts = vec![0];
        for rank in 0..ranks {
            starts.push(starts[rank] + len(rank));
        }
        starts
    }

    fn gather<F: Fabric>(&self, comm: &Comm<F>) -> Prepared<F> {
        let (me, n, root, lengths) = (comm.rank(), comm.size(), self.root, self.lengths());
        let mine = self.content(me, 0, self.len(me));
        let mut memories = Vec::new();
        let mut blocks = Vec::new();
        let in_place = self.in_place && me == root;
        if me == root {
            let starts = self.starts(n, |r| self.len(r));
            let all: Vec<u8> = (0..n).flat_map(|r| self.content(r, 0, self.len(r))).collect();
            // In place, the own block is there already, and the other blocks hold anything.
            let before =
                if in_place { hide(&all, MOVED, starts[me]..starts[me + 1]) } else { vec![] };
            let whole = self.into(comm, starts[n], before, Expected::These(all));
            blocks = (0..n).map(|r| whole.block(starts[r], self.len(r))).collect();
            memories.push(whole);
        }
        let send = (!in_place).then(|| self.out(comm, self.len(me), mine));
        let buffer = send.as_ref().map(Memory::whole);
        memories.extend(send);
        let make = Box::new(move |c: &Comm<F>| -> Running {
            Box::pin(c.gather(buffer.clone(), blocks.clone().into(), Root::Rank(root), lengths))
        });
        Prepared { memories, make, result: None }
    }

    fn scatter<F: Fabric>(&self, comm: &Comm<F>) -> Prepared<F> {
        let (me, n, root, lengths) = (comm.rank(), comm.size(), self.root, self.lengths());
        let mut memories = Vec::new();
        let mut blocks = Vec::new();
        if me == root {
            let starts = self.starts(n, |r| self.len(r));
            let all = (0..n).flat_map(|r| self.content(r, 0, self.len(r))).collect();
            let whole = self.out(comm, starts[n], all);
            blocks = (0..n).map(|r| whole.block(starts[r], self.len(r))).collect();
            memories.push(whole);
        }
        let mine = Expected::These(self.content(me, 0, self.len(me)));
        let in_place = self.in_place && me == root;
        let receive = (!in_place).then(|| self.into(comm, self.len(me), Vec::new(), mine));
        let buffer = receive.as_ref().map(Memory::whole);
        memories.extend(receive);
        let make = Box::new(move |c: &Comm<F>| -> Running {
            Box::pin(c.scatter(blocks.clone().into(), buffer.clone(), Root::Rank(root), lengths))
        });
        Prepared { memories, make, result: None }
    }

    fn allgather<F: Fabric>(&self, comm: &Comm<F>) -> Prepared<F> {
        let (me, n) = (comm.rank(), comm.size());
        let starts = self.starts(n, |r| self.len(r));
        let all: Vec<u8> = (0..n).flat_map(|r| self.content(r, 0, self.len(r))).collect();
        let before =
            if self.in_place { hide(&all, MOVED, starts[me]..starts[me + 1]) } else { vec![] };
        let whole = self.into(comm, starts[n], before, Expected::These(all));
        let blocks: Vec<_> = (0..n).map(|r| whole.block(starts[r], self.len(r))).collect();
        let mine = self.content(me, 0, self.len(me));
        let send = (!self.in_place).then(|| self.out(comm, self.len(me), mine));
        let buffer = send.as_ref().map(Memory::whole);
        let make = Box::new(move |c: &Comm<F>| -> Running {
            Box::pin(c.allgather(buffer.clone(), blocks.clone().into()))
        });
        Prepared { memories: [whole].into_iter().chain(send).collect(), make, result: Some(0) }
    }

    fn alltoall<F: Fabric>(&self, comm: &Comm<F>) -> Prepared<F> {
        let (me, n, lengths) = (comm.rank(), comm.size(), self.lengths());
        let contents = |pairs: &dyn Fn(usize) -> (usize, usize)| -> Vec<u8> {
            let block = |(from, to)| self.content(from, to, self.len_between(from, to));
            (0..n).flat_map(|r| block(pairs(r))).collect()
        };
        let (sent, got) = (contents(&|r| (me, r)), contents(&|r| (r, me)));
        let (out_len, in_len) = (|r| self.len_between(me, r), |r| self.len_between(r, me));
        let (outs, ins) = (self.starts(n, out_len), self.starts(n, in_len));
        let before = if self.in_place { sent.clone() } else { Vec::new() };
        let into = self.into(comm, ins[n], before, Expected::These(got));
        let receive: Vec<_> = (0..n).map(|r| into.block(ins[r], in_len(r))).collect();
        let out = (!self.in_place).then(|| self.out(comm, outs[n], sent));
        let send: Option<Vec<_>> =
            out.as_ref().map(|out| (0..n).map(|r| out.block(outs[r], out_len(r))).collect());
        let make = Box::new(move |c: &Comm<F>| -> Running {
            Box::pin(c.alltoall(
                send.clone().map(RankBuffers::from),
                receive.clone().into(),
                lengths,
            ))
        });
        Prepared { memories: [into].into_iter().chain(out).collect(), make, result: None }
    }

    /// Prepares reduce, allreduce and both scans.
    fn reduce<F: Fabric>(&self, comm: &Comm<F>) -> Prepared<F> {
        let (me, n, root, operation) = (comm.rank(), comm.size(), self.root, self.operation());
        let operands = self.operands(self.count);
        let mine = operands.of_rank(me);
        let (receives, expected) = match operation {
            CollectiveKind::Reduce if me != root => (false, Expected::Anything),
            CollectiveKind::Scan => (true, self.sum(&operands.fold(me + 1))),
            CollectiveKind::Exscan if me == 0 => (true, Expected::Anything),
            CollectiveKind::Exscan => (true, self.sum(&operands.fold(me))),
            _ => (true, self.sum(&operands.fold(n))),
        };
        let in_place = self.in_place && receives;
        let before = if in_place { mine.clone() } else { Vec::new() };
        let receive = receives.then(|| self.into(comm, self.count, before, expected));
        let send = (!in_place).then(|| self.out(comm, self.count, mine));
        let (out, into) = (send.as_ref().map(Memory::whole), receive.as_ref().map(Memory::whole));
        let op = Rc::new(self.op);
        let make = Box::new(move |c: &Comm<F>| -> Running {
            let (out, op) = (out.clone(), op.clone());
            match (operation, into.clone()) {
                (CollectiveKind::Reduce, into) => {
                    Box::pin(c.reduce(out, into, Root::Rank(root), op))
                }
                (CollectiveKind::Allreduce, Some(into)) => Box::pin(c.allreduce(out, into, op)),
                (_, Some(into)) => {
                    let prefix = match operation {
                        CollectiveKind::Exscan => Prefix::Exclusive,
                        _ => Prefix::Inclusive,
                    };
                    Box::pin(c.scan(out, into, op, prefix))
                }
                _ => unreachable!("all ranks receive"),
            }
        });
        let result = (operation == CollectiveKind::Allreduce).then_some(0);
        Prepared { memories: receive.into_iter().chain(send).collect(), make, result }
    }

    fn reduce_scatter<F: Fabric>(&self, comm: &Comm<F>) -> Prepared<F> {
        let (me, n, unit) = (comm.rank(), comm.size(), self.unit());
        let starts = self.starts(n, |r| self.len(r));
        let counts: Vec<usize> = (0..n).map(|r| self.len(r)).collect();
        let operands = self.operands(starts[n]);
        let mine = operands.of_rank(me);
        let part = operands.fold(n)[starts[me] * unit..starts[me + 1] * unit].to_vec();
        let op = Rc::new(self.op);
        let mut memories = Vec::new();
        let (out, into) = if self.in_place {
            // The standard allows anything behind the result in the buffer. Here it must be the old contents.
            let mut after = part;
            after.extend(&mine[after.len()..]);
            let both = self.into(comm, starts[n], mine, self.sum(&after));
            let buffers = (both.whole(), both.block(0, counts[me]));
            memories.push(both);
            buffers
        } else {
            let (out, into) = (
                self.out(comm, starts[n], mine),
                self.into(comm, counts[me], Vec::new(), self.sum(&part)),
            );
            let buffers = (out.whole(), into.whole());
            memories.extend([into, out]);
            buffers
        };
        let make = Box::new(move |c: &Comm<F>| -> Running {
            Box::pin(c.reduce_scatter(out.clone(), counts.clone(), into.clone(), op.clone()))
        });
        Prepared { memories, make, result: None }
    }
}

/// Returns `data` with other bytes in all elements except the elements `seen`.
fn hide(data: &[u8], unit: usize, seen: std::ops::Range<usize>) -> Vec<u8> {
    let seen = seen.start * unit..seen.end * unit;
    data.iter().enumerate().map(|(i, &b)| if seen.contains(&i) { b } else { !b }).collect()
}
