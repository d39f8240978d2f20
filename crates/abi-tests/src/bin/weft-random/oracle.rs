//! Contents of every buffer before a step, and expected contents after it, computed in one process.

use crate::buffer::{Image, Piece};
use crate::generate::key;
use crate::program::{CollectiveFunction, CollectiveItem, Item, Message, Shift};
use crate::reduce;
use fastrand::Rng;

/// Side of an item, which has two buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BufferSide {
    Send,
    Recv,
}

/// An item in a round of a phase. All contents follow from the key and the item.
pub struct Oracle<'a> {
    pub item: &'a Item,
    pub key: u64,
}

/// Expected contents, and data that the standard leaves undefined.
pub struct Expected {
    pub image: Image,
    pub open: Vec<Piece>,
}

/// Returns the pieces of one buffer. Empty if the rank has no such buffer.
pub fn pieces(item: &Item, rank: usize, side: BufferSide) -> &[Piece] {
    let one = std::slice::from_ref;
    match (item, side) {
        (Item::Message(m), BufferSide::Send) if m.from == Some(rank) => one(&m.send),
        (Item::Message(m), BufferSide::Recv) if m.to == Some(rank) => one(&m.recv),
        (Item::Message(_), _) => &[],
        (Item::Shift(s), BufferSide::Send) => one(&s.send[rank]),
        (Item::Shift(s), BufferSide::Recv) if !s.replace => one(&s.recv[rank]),
        (Item::Shift(_), BufferSide::Recv) => &[],
        (Item::Collective(c), BufferSide::Send) => &c.send[rank],
        (Item::Collective(c), BufferSide::Recv) => &c.recv[rank],
    }
}

impl Oracle<'_> {
    /// Returns the contents before the step.
    pub fn initial(&self, rank: usize, side: BufferSide) -> Image {
        let pieces = pieces(self.item, rank, side);
        let key = key(&[self.key, rank as u64, side as u64]);
        let mut image = Image::random(pieces, key);
        if let Item::Collective(CollectiveItem { op: Some((op, element)), .. }) = self.item {
            let mut rng = Rng::with_seed(key ^ 1);
            for piece in pieces {
                let values = reduce::values(&mut rng, *op, *element, piece.count as usize);
                image.unpack(piece, &values);
            }
        }
        image
    }

    /// Returns the contents after the step. `matched` is the message that a receive from any source took.
    pub fn expected(&self, rank: usize, side: BufferSide, matched: Option<Oracle>) -> Expected {
        let image = self.initial(rank, side);
        match self.item {
            Item::Message(m) => self.message(m, image, side, matched),
            Item::Shift(s) => self.shift(s, image, rank, side),
            Item::Collective(c) => self.collective(c, image, rank, side),
        }
    }

    fn message(
        &self,
        m: &Message,
        mut image: Image,
        side: BufferSide,
        matched: Option<Oracle>,
    ) -> Expected {
        if side == BufferSide::Recv {
            let source = matched.as_ref().unwrap_or(self);
            let Item::Message(sent) = source.item else { unreachable!("a message matched") };
            if let Some(from) = sent.from {
                let data = source.initial(from, BufferSide::Send).pack(&sent.send);
                image.unpack(&m.recv, &data);
            }
        }
        Expected { image, open: Vec::new() }
    }

    fn shift(&self, s: &Shift, mut image: Image, rank: usize, side: BufferSide) -> Expected {
        let written = if s.replace { BufferSide::Send } else { BufferSide::Recv };
        if let Some(from) = s.from(rank)
            && side == written
        {
            let data = self.initial(from, BufferSide::Send).pack(&s.send[from]);
            image.unpack(if s.replace { &s.send[rank] } else { &s.recv[rank] }, &data);
        }
        Expected { image, open: Vec::new() }
    }

    fn collective(
        &self,
        c: &CollectiveItem,
        mut image: Image,
        rank: usize,
        side: BufferSide,
    ) -> Expected {
        let mut open = Vec::new();
        if side == BufferSide::Send || c.recv[rank].is_empty() {
            return Expected { image, open };
        }
        if let Some((op, element)) = c.op {
            let first = Piece { count: self.result(c, rank), ..c.recv[rank][0].clone() };
            let all = c.wiring[rank].iter().flatten();
            let heard = match c.kind {
                CollectiveFunction::Scan => rank + 1,
                CollectiveFunction::Exscan => rank,
                _ => c.wiring[rank].len(),
            };
            let inputs = all.take(heard).map(|(from, slot)| self.data(c, *from, *slot));
            match inputs.reduce(|a, b| reduce::combine(op, element, &a, &b)) {
                Some(data) => image.unpack(&first, &data),
                None => open.push(first),
            }
            // Of data in place, the standard defines only the result.
            if c.in_place
                && matches!(
                    c.kind,
                    CollectiveFunction::ReduceScatter | CollectiveFunction::ReduceScatterBlock
                )
            {
                let rest: i64 = c.recv[rank].iter().map(|p| p.count).sum();
                let skipped = self.result(c, rank);
                let ty = c.recv[rank][0].ty.clone();
                let at = skipped * ty.extent();
                open.push(Piece::new(ty, rest - skipped, at));
            }
            return Expected { image, open };
        }
        match c.kind {
            CollectiveFunction::Bcast => {
                let data = self.initial(c.root, BufferSide::Recv).pack(&c.recv[c.root][0]);
                image.unpack(&c.recv[rank][0], &data);
            }
            CollectiveFunction::Scatter | CollectiveFunction::Scatterv => {
                let mut heard = c.wiring[rank].iter().flatten();
                let (root, slot) =
                    heard.find(|(from, _)| *from == c.root).expect("all hear the root");
                image.unpack(&c.recv[rank][0], &self.data(c, *root, *slot));
            }
            _ => {
                for (piece, heard) in c.recv[rank].iter().zip(&c.wiring[rank]) {
                    if let Some((from, slot)) = heard {
                        image.unpack(piece, &self.data(c, *from, *slot));
                    }
                }
            }
        }
        Expected { image, open }
    }

    /// Returns the number of elements in the result of a reduction.
    fn result(&self, c: &CollectiveItem, rank: usize) -> i64 {
        match c.kind {
            CollectiveFunction::ReduceScatter | CollectiveFunction::ReduceScatterBlock
                if c.in_place =>
            {
                c.recv[rank][rank].count
            }
            _ => c.recv[rank][0].count,
        }
    }

    /// Returns the data that one seat sends in its piece of this number, packed.
    fn data(&self, c: &CollectiveItem, from: usize, slot: usize) -> Vec<u8> {
        if !c.send[from].is_empty() {
            let i = if c.send[from].len() == 1 { 0 } else { slot };
            return self.initial(from, BufferSide::Send).pack(&c.send[from][i]);
        }
        // In place. In gather and allgather, the own part. In other operations, the part for the other seat.
        let i = match c.kind {
            CollectiveFunction::Gather
            | CollectiveFunction::Gatherv
            | CollectiveFunction::Allgather
            | CollectiveFunction::Allgatherv => from,
            _ if c.recv[from].len() == 1 => 0,
            _ => slot,
        };
        self.initial(from, BufferSide::Recv).pack(&c.recv[from][i])
    }
}
