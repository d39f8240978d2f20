//! The copy program that a datatype is compiled to: contiguous runs and strided loops in the order of the type map, merged
//! where possible.
//!
//! ```text
//!   vector(1000, 1, 100, double)            Strided { count 1000, stride 800, block 8 }
//!   struct { int; double } x 10             Loop { count 10, stride 16, Blocks [0+4, 8+8] }
//!   indexed(3, [2, 2, 2], [0, 7, 9], int)   Scattered { block 8, offsets [0, 28, 36] }
//! ```
//!
//! Every node knows its packed size, so the node at a position of the packed stream is found in time proportional to the
//! depth (times the logarithm of the length of an irregular list).

use std::rc::Rc;

/// A node of the program. Offsets are in bytes from the base address of an element of the type.
#[derive(Debug, Clone)]
pub(crate) struct ProgramNode {
    pub offset: i64,
    /// Number of packed bytes.
    pub size: usize,
    pub kind: ProgramNodeKind,
}

#[derive(Debug, Clone)]
pub(crate) enum ProgramNodeKind {
    /// `size` bytes at `offset`.
    Run,
    /// `count` runs of `block` bytes, `stride` bytes apart.
    Strided { count: usize, stride: i64, block: usize },
    /// `body`, repeated `count` times, `stride` bytes apart. `body` is never a `Run`.
    Loop { count: usize, stride: i64, body: Rc<ProgramNode> },
    /// Runs of equal length at irregular places.
    Scattered { block: usize, offsets: Rc<[i64]> },
    /// Runs of various lengths.
    Blocks(Rc<[ProgramBlock]>),
    /// Nodes of any kind, one after another, each with the packed position of its start.
    Sequence(Rc<[(usize, ProgramNode)]>),
}

/// A run of [`ProgramNodeKind::Blocks`]; `start` is the packed position of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProgramBlock {
    pub offset: i64,
    pub start: usize,
    pub len: usize,
}

/// Maximum number of entries of an irregular list whose entries are added one by one to another list, so that neighbours can merge.
const FLATTEN_MAX: usize = 8;

impl ProgramNode {
    pub fn run(offset: i64, size: usize) -> ProgramNode {
        ProgramNode { offset, size, kind: ProgramNodeKind::Run }
    }

    pub fn shifted(mut self, by: i64) -> ProgramNode {
        // A node without data may have any displacement. The offset of such a node is never used, and is set to 0.
        self.offset = if self.size == 0 { 0 } else { self.offset + by };
        self
    }

    /// Returns `self` repeated `count` times, `stride` bytes apart.
    pub fn repeated(self, count: usize, stride: i64) -> ProgramNode {
        if count == 0 || self.size == 0 {
            return ProgramNode::run(0, 0);
        }
        if count == 1 {
            return self;
        }
        let size = self.size * count;
        let ProgramNode { offset, .. } = self;
        match self.kind {
            ProgramNodeKind::Run if stride == self.size as i64 => ProgramNode::run(offset, size),
            ProgramNodeKind::Run => {
                let kind = ProgramNodeKind::Strided { count, stride, block: self.size };
                ProgramNode { offset, size, kind }
            }
            ProgramNodeKind::Strided { count: inner, stride: step, block }
                if goes_on(inner, step, stride) =>
            {
                let kind = ProgramNodeKind::Strided { count: inner * count, stride: step, block };
                ProgramNode { offset, size, kind }
            }
            ProgramNodeKind::Loop { count: inner, stride: step, body }
                if goes_on(inner, step, stride) =>
            {
                let kind = ProgramNodeKind::Loop { count: inner * count, stride: step, body };
                ProgramNode { offset, size, kind }
            }
            kind => {
                let body = Rc::new(ProgramNode { offset: 0, size: self.size, kind });
                ProgramNode { offset, size, kind: ProgramNodeKind::Loop { count, stride, body } }
            }
        }
    }

    /// Returns true if both nodes have the same bytes in the same order. The check is short, and may also return false for two such
    /// nodes, which is harmless.
    fn same_shape(&self, other: &ProgramNode) -> bool {
        self.size == other.size
            && match (&self.kind, &other.kind) {
                (ProgramNodeKind::Run, ProgramNodeKind::Run) => true,
                (
                    ProgramNodeKind::Strided { count, stride, block },
                    ProgramNodeKind::Strided { count: c, stride: s, block: b },
                ) => (count, stride, block) == (c, s, b),
                (
                    ProgramNodeKind::Loop { count, stride, body },
                    ProgramNodeKind::Loop { count: c, stride: s, body: b },
                ) => (count, stride) == (c, s) && (Rc::ptr_eq(body, b) || body.same_shape(b)),
                (
                    ProgramNodeKind::Scattered { offsets, .. },
                    ProgramNodeKind::Scattered { offsets: o, .. },
                ) => Rc::ptr_eq(offsets, o),
                (ProgramNodeKind::Blocks(a), ProgramNodeKind::Blocks(b)) => Rc::ptr_eq(a, b),
                (ProgramNodeKind::Sequence(a), ProgramNodeKind::Sequence(b)) => Rc::ptr_eq(a, b),
                _ => false,
            }
    }
}

/// Returns true if the outer stride continues the inner loop without a gap.
pub(crate) fn goes_on(count: usize, stride: i64, outer: i64) -> bool {
    i64::try_from(count).ok().and_then(|c| c.checked_mul(stride)) == Some(outer)
}

/// Builder that collects nodes one after another and merges neighbours.
#[derive(Default)]
pub(crate) struct Sequence {
    parts: Vec<ProgramNode>,
}

impl Sequence {
    pub fn with_capacity(parts: usize) -> Sequence {
        Sequence { parts: Vec::with_capacity(parts) }
    }

    pub fn push(&mut self, node: ProgramNode) {
        match &node.kind {
            _ if node.size == 0 => {}
            ProgramNodeKind::Run => self.push_run(node.offset, node.size),
            ProgramNodeKind::Blocks(blocks) if blocks.len() <= FLATTEN_MAX => {
                blocks.iter().for_each(|b| self.push_run(node.offset + b.offset, b.len));
            }
            ProgramNodeKind::Scattered { block, offsets } if offsets.len() <= FLATTEN_MAX => {
                offsets.iter().for_each(|o| self.push_run(node.offset + o, *block));
            }
            ProgramNodeKind::Sequence(parts) if parts.len() <= FLATTEN_MAX => {
                for (_, part) in parts.iter() {
                    self.push(part.clone().shifted(node.offset));
                }
            }
            _ => self.parts.push(node),
        }
    }

    pub fn push_run(&mut self, offset: i64, len: usize) {
        if len == 0 {
            return;
        }
        match self.parts.last_mut() {
            Some(ProgramNode { offset: o, size, kind: ProgramNodeKind::Run })
                if *o + *size as i64 == offset =>
            {
                *size += len;
            }
            _ => self.parts.push(ProgramNode::run(offset, len)),
        }
    }

    pub fn finish(mut self) -> ProgramNode {
        match self.parts.len() {
            0 => return ProgramNode::run(0, 0),
            1 => return self.parts.remove(0),
            _ => {}
        }
        let first = &self.parts[0];
        let origin = first.offset;
        let step = self.parts[1].offset - origin;
        let alike = self.parts.iter().all(|p| p.same_shape(first));
        let even = self.parts.windows(2).all(|w| w[1].offset - w[0].offset == step);
        if alike && even {
            let count = self.parts.len();
            return self.parts.swap_remove(0).repeated(count, step);
        }
        let size = self.parts.iter().map(|p| p.size).sum();
        let runs = self.parts.iter().all(|p| matches!(p.kind, ProgramNodeKind::Run));
        let kind = if runs && alike {
            let offsets = self.parts.iter().map(|p| p.offset - origin).collect();
            ProgramNodeKind::Scattered { block: first.size, offsets }
        } else {
            let mut start = 0;
            let starts = self.parts.iter().map(|p| {
                start += p.size;
                start - p.size
            });
            if runs {
                let block = |(p, start): (&ProgramNode, usize)| ProgramBlock {
                    offset: p.offset - origin,
                    start,
                    len: p.size,
                };
                let starts: Vec<usize> = starts.collect();
                ProgramNodeKind::Blocks(self.parts.iter().zip(starts).map(block).collect())
            } else {
                let starts: Vec<usize> = starts.collect();
                let parts = self.parts.into_iter().map(|p| p.shifted(-origin));
                ProgramNodeKind::Sequence(starts.into_iter().zip(parts).collect())
            }
        };
        ProgramNode { offset: origin, size, kind }
    }
}
