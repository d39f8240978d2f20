//! Walk through a copy program, completely or from a position of the packed stream on.

use crate::layout::{ProgramBlock, ProgramNode, ProgramNodeKind, goes_on};

/// A receiver of the runs of a type, in the order of its type map.
pub(crate) trait RunSink {
    fn run(&mut self, offset: i64, len: usize);

    fn rows(&mut self, rows: Rows) {
        for i in 0..rows.rows {
            let first = rows.offset.wrapping_add((i as i64).wrapping_mul(rows.row));
            for j in 0..rows.columns {
                let place = first.wrapping_add((j as i64).wrapping_mul(rows.stride));
                self.run(place, rows.block);
            }
        }
    }

    /// Takes runs of `block` bytes at `base` plus each of `offsets`.
    fn scattered(&mut self, base: i64, offsets: &[i64], block: usize) {
        for offset in offsets {
            self.run(base + offset, block);
        }
    }

    fn structs(&mut self, structs: Structs<'_>) {
        for i in 0..structs.count {
            let at = structs.base.wrapping_add((i as i64).wrapping_mul(structs.stride));
            structs.blocks.iter().for_each(|b| self.run(at.wrapping_add(b.offset), b.len));
        }
    }
}

/// Rows of runs: `rows` times `columns` runs of `block` bytes, the first at `offset`. Runs in a row are `stride` bytes apart, and
/// rows are `row` bytes apart.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    pub offset: i64,
    pub rows: usize,
    pub row: i64,
    pub columns: usize,
    pub stride: i64,
    pub block: usize,
}

impl Rows {
    fn one(offset: i64, stride: i64, count: usize, block: usize) -> Rows {
        Rows { offset, rows: 1, row: 0, columns: count, stride, block }
    }
}

/// Array of structs: `count` elements of `blocks` (`size` packed bytes each), `stride` bytes apart, the first at `base`.
#[derive(Clone, Copy)]
pub(crate) struct Structs<'a> {
    pub base: i64,
    pub stride: i64,
    pub count: usize,
    pub size: usize,
    pub blocks: &'a [ProgramBlock],
}

/// Emits the complete `node`, for an element whose address is `at` bytes from the base.
pub(crate) fn whole(node: &ProgramNode, at: i64, sink: &mut impl RunSink) {
    let base = at.wrapping_add(node.offset);
    match &node.kind {
        ProgramNodeKind::Run => sink.run(base, node.size),
        ProgramNodeKind::Strided { count, stride, block } => {
            sink.rows(Rows::one(base, *stride, *count, *block))
        }
        ProgramNodeKind::Loop { count, stride, body } => {
            repeated(body, base, *stride, *count, sink)
        }
        ProgramNodeKind::Scattered { block, offsets } => sink.scattered(base, offsets, *block),
        ProgramNodeKind::Blocks(blocks) => {
            blocks.iter().for_each(|b| sink.run(base + b.offset, b.len))
        }
        ProgramNodeKind::Sequence(parts) => {
            parts.iter().for_each(|(_, part)| whole(part, base, sink))
        }
    }
}

/// Emits `count` elements of `node`, `extent` bytes apart.
pub(crate) fn all(node: &ProgramNode, extent: i64, count: usize, sink: &mut impl RunSink) {
    let &ProgramNode { offset, size, ref kind } = node;
    match *kind {
        _ if size == 0 || count == 0 => {}
        _ if count == 1 => whole(node, 0, sink),
        ProgramNodeKind::Run if extent == size as i64 => sink.run(offset, size * count),
        ProgramNodeKind::Run => sink.rows(Rows::one(offset, extent, count, size)),
        // The elements form one long vector, for instance a column of a matrix that is sent several times.
        ProgramNodeKind::Strided { count: inner, stride, block }
            if goes_on(inner, stride, extent) =>
        {
            sink.rows(Rows::one(offset, stride, inner * count, block));
        }
        _ => repeated(node, 0, extent, count, sink),
    }
}

/// Emits `count` copies of `node`, which lie `stride` bytes apart, the first `at` bytes from the base.
fn repeated(node: &ProgramNode, at: i64, stride: i64, count: usize, sink: &mut impl RunSink) {
    let offset = at.wrapping_add(node.offset);
    match &node.kind {
        ProgramNodeKind::Blocks(blocks) => {
            return sink.structs(Structs { base: offset, stride, count, size: node.size, blocks });
        }
        &ProgramNodeKind::Strided { count: columns, stride: step, block } => {
            let rows = Rows { offset, rows: count, row: stride, columns, stride: step, block };
            return sink.rows(rows);
        }
        _ => {}
    }
    let mut at = at;
    for _ in 0..count {
        whole(node, at, sink);
        at = at.wrapping_add(stride);
    }
}

/// Emits `take` packed bytes of `node` from packed position `skip` on, which lie inside `node`.
pub(crate) fn part(node: &ProgramNode, at: i64, skip: usize, take: usize, sink: &mut impl RunSink) {
    debug_assert!(skip + take <= node.size);
    if take == 0 {
        return;
    }
    if take == node.size {
        return whole(node, at, sink);
    }
    let base = at.wrapping_add(node.offset);
    match &node.kind {
        ProgramNodeKind::Run => sink.run(base + skip as i64, take),
        ProgramNodeKind::Strided { stride, block, .. } => {
            strided(base, *stride, *block, skip, take, sink)
        }
        ProgramNodeKind::Loop { stride, body, .. } => {
            partly_repeated(body, base, *stride, skip, take, sink);
        }
        ProgramNodeKind::Scattered { block, offsets } => {
            let (head, middle, tail) = split(*block, skip, take);
            if let Some((i, skip, take)) = head {
                sink.run(base + offsets[i] + skip as i64, take);
            }
            sink.scattered(base, &offsets[middle], *block);
            if let Some((i, take)) = tail {
                sink.run(base + offsets[i], take);
            }
        }
        ProgramNodeKind::Blocks(blocks) => {
            let (mut skip, mut left) = (skip, take);
            let mut i = blocks.partition_point(|b| b.start <= skip) - 1;
            skip -= blocks[i].start;
            while left > 0 {
                let len = left.min(blocks[i].len - skip);
                sink.run(base + blocks[i].offset + skip as i64, len);
                (left, skip, i) = (left - len, 0, i + 1);
            }
        }
        ProgramNodeKind::Sequence(parts) => {
            let (mut skip, mut left) = (skip, take);
            let mut i = parts.partition_point(|(start, _)| *start <= skip) - 1;
            skip -= parts[i].0;
            while left > 0 {
                let len = left.min(parts[i].1.size - skip);
                part(&parts[i].1, base, skip, len, sink);
                (left, skip, i) = (left - len, 0, i + 1);
            }
        }
    }
}

/// Emits `take` packed bytes from `skip` on of elements of `node`, `extent` bytes apart. The number of elements is not needed,
/// because the caller ensures that the bytes lie inside the elements.
pub(crate) fn elements(
    node: &ProgramNode,
    extent: i64,
    skip: usize,
    take: usize,
    sink: &mut impl RunSink,
) {
    if take == 0 {
        return;
    }
    match &node.kind {
        ProgramNodeKind::Run if extent == node.size as i64 => {
            sink.run(node.offset + skip as i64, take)
        }
        ProgramNodeKind::Run => strided(node.offset, extent, node.size, skip, take, sink),
        // The elements form one long vector, for instance a column of a matrix that is sent several times.
        ProgramNodeKind::Strided { count, stride, block } if goes_on(*count, *stride, extent) => {
            strided(node.offset, *stride, *block, skip, take, sink);
        }
        _ => {
            partly_repeated(node, 0, extent, skip, take, sink);
        }
    }
}

/// Emits part of a regular loop of runs.
fn strided(
    base: i64,
    stride: i64,
    block: usize,
    skip: usize,
    take: usize,
    sink: &mut impl RunSink,
) {
    let place = |i: usize| base.wrapping_add((i as i64).wrapping_mul(stride));
    let (head, middle, tail) = split(block, skip, take);
    if let Some((i, skip, take)) = head {
        sink.run(place(i) + skip as i64, take);
    }
    if !middle.is_empty() {
        sink.rows(Rows::one(place(middle.start), stride, middle.len(), block));
    }
    if let Some((i, take)) = tail {
        sink.run(place(i), take);
    }
}

type SplitHead = Option<(usize, usize, usize)>;
type Tail = Option<(usize, usize)>;

/// Splits `take` bytes from `skip` on at the boundaries of blocks of one size. Returns a partial first block (number, skip,
/// length), complete blocks, and a partial last block (number, length).
fn split(block: usize, skip: usize, take: usize) -> (SplitHead, std::ops::Range<usize>, Tail) {
    let (mut first, into) = (skip / block, skip % block);
    let mut left = take;
    let mut head = None;
    if into > 0 {
        let len = left.min(block - into);
        head = Some((first, into, len));
        left -= len;
        first += 1;
    }
    let end = first + left / block;
    let tail = (!left.is_multiple_of(block)).then_some((end, left % block));
    (head, first..end, tail)
}

/// Emits part of a regular loop of nodes.
fn partly_repeated(
    node: &ProgramNode,
    base: i64,
    stride: i64,
    skip: usize,
    take: usize,
    sink: &mut impl RunSink,
) {
    let place = |i: usize| base.wrapping_add((i as i64).wrapping_mul(stride));
    let (head, middle, tail) = split(node.size, skip, take);
    if let Some((i, skip, take)) = head {
        part(node, place(i), skip, take, sink);
    }
    repeated(node, place(middle.start), stride, middle.len(), sink);
    if let Some((i, take)) = tail {
        part(node, place(i), 0, take, sink);
    }
}
