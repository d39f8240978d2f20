//! Format of a request that the target's own process carries out.
//!
//! ```text
//!   head (kind, operator, runs, bytes, answer) │ more: runs, data          one tag for heads, another for the rest
//!   answer: outcome │ data                                                 a tag of its own; none if nobody waits
//! ```
//! A request has at most [`MOST`] bytes of data, so that neither side needs memory for the whole operation. The contents of a
//! peer's request are checked when the request is decoded ([`ControlRequest::decode`]).

use super::packed_change::PackedChange;
use weft_collective::words;
use weft_datatype::{Basic, PredefinedOp};
use weft_fabric::Sge;

/// Maximum number of packed bytes of an operation in one request. It is a multiple of every element size.
pub const MOST: usize = 1 << 20;

/// First tag of answers. Requests have lower tags.
pub const ANSWERS: i32 = 16;

/// Kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum ControlRequestKind {
    Put = 1,
    Get = 2,
    Reduce = 3,
    Swap = 4,
    Stop = 5,
}

/// Head of a request, its first message.
#[derive(Debug, Clone, Copy)]
pub struct ControlRequest {
    pub kind: ControlRequestKind,
    pub op: u64,
    pub basic: u64,
    /// Number of runs of the target's memory, and their total number of bytes.
    pub runs: u64,
    pub bytes: u64,
    /// Tag of the answer, or 0 if no answer is wanted.
    pub answer: i32,
    /// True if the request is the last of an epoch.
    pub last: bool,
}

const WORDS: usize = 7;
/// Length of a head in bytes.
pub const HEAD: usize = 8 * WORDS;

impl ControlRequest {
    pub const STOP: ControlRequest = ControlRequest {
        kind: ControlRequestKind::Stop,
        op: 0,
        basic: 0,
        runs: 0,
        bytes: 0,
        answer: 0,
        last: false,
    };

    pub fn encode(&self) -> [u64; WORDS] {
        let ControlRequest { kind, op, basic, runs, bytes, answer, last } = *self;
        [kind as u64, op, basic, runs, bytes, answer as u64, u64::from(last)]
    }

    /// Decodes a peer's request. Returns `None` if the request is impossible.
    pub fn decode(from: Sge) -> Option<ControlRequest> {
        use ControlRequestKind::*;
        let [kind, op, basic, runs, bytes, answer, last] = words::read_array(from);
        let kind = [Put, Get, Reduce, Swap, Stop].into_iter().find(|&k| k as u64 == kind)?;
        let answer = i32::try_from(answer).ok().filter(|&tag| tag == 0 || tag >= ANSWERS)?;
        let fits = bytes <= MOST as u64 && runs <= bytes && last <= 1;
        fits.then_some(ControlRequest { kind, op, basic, runs, bytes, answer, last: last == 1 })
    }

    pub fn op(&self) -> Option<PredefinedOp> {
        PredefinedOp::of_handle(u32::try_from(self.op).ok()?)
    }

    pub fn basic(&self) -> Option<Basic> {
        Basic::of_handle(u32::try_from(self.basic).ok()?)
    }

    /// Returns the number of bytes of data that come with the request.
    pub fn brings(&self) -> usize {
        match self.kind {
            ControlRequestKind::Put => self.bytes as usize,
            ControlRequestKind::Reduce if self.op() == Some(PredefinedOp::NoOp) => 0,
            ControlRequestKind::Reduce => self.bytes as usize,
            ControlRequestKind::Swap => 2 * self.bytes as usize,
            ControlRequestKind::Get | ControlRequestKind::Stop => 0,
        }
    }

    /// Returns the number of bytes of data that the target returns, if an answer is wanted.
    pub fn returns(&self) -> usize {
        match self.kind {
            ControlRequestKind::Get | ControlRequestKind::Reduce | ControlRequestKind::Swap => {
                self.bytes as usize
            }
            ControlRequestKind::Put | ControlRequestKind::Stop => 0,
        }
    }
}

/// First word of an answer: its outcome.
pub const DONE: u64 = 0;
pub const REFUSED: u64 = 1;

/// Operation and data of a request, packed.
#[derive(Clone, Copy)]
pub enum RmaRequest {
    Put(Sge),
    Get,
    Change(PackedChange, Basic),
}

impl RmaRequest {
    pub fn kind(self) -> ControlRequestKind {
        match self {
            RmaRequest::Put(_) => ControlRequestKind::Put,
            RmaRequest::Get => ControlRequestKind::Get,
            RmaRequest::Change(PackedChange::Reduce { .. }, _) => ControlRequestKind::Reduce,
            RmaRequest::Change(PackedChange::Swap { .. }, _) => ControlRequestKind::Swap,
        }
    }

    /// Returns the handles of operator and element type, 0 for none.
    pub fn names(self) -> [u64; 2] {
        match self {
            RmaRequest::Change(PackedChange::Reduce { op, .. }, basic) => {
                [op.handle().into(), basic.handle().into()]
            }
            RmaRequest::Change(PackedChange::Swap { .. }, basic) => [0, basic.handle().into()],
            _ => [0; 2],
        }
    }

    /// Returns the data of the packed bytes `skip..skip + take`.
    pub fn data(self, skip: usize, take: usize) -> [Sge; 2] {
        match self {
            RmaRequest::Put(data) => [data.part(skip, take), Sge::EMPTY],
            RmaRequest::Change(PackedChange::Reduce { op: PredefinedOp::NoOp, .. }, _)
            | RmaRequest::Get => [Sge::EMPTY; 2],
            RmaRequest::Change(PackedChange::Reduce { origin, .. }, _) => {
                [origin.part(skip, take), Sge::EMPTY]
            }
            RmaRequest::Change(PackedChange::Swap { compare, new }, _) => [compare, new],
        }
    }

    /// Iterates over the parts of `len` packed bytes, as separate requests carry them: the offset and the length of each part.
    pub fn parts(self, len: usize) -> impl Iterator<Item = (usize, usize)> {
        let most = match self {
            RmaRequest::Change(_, basic) => MOST / basic.size() * basic.size(),
            _ => MOST,
        };
        (0..len).step_by(most).map(move |skip| (skip, most.min(len - skip)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_fabric::StagingPool;

    #[test]
    fn requests_are_read_back_and_checked() {
        let pool = StagingPool::default();
        let op = u64::from(PredefinedOp::Sum.handle());
        let request = ControlRequest {
            kind: ControlRequestKind::Reduce,
            op,
            basic: 0x214,
            runs: 2,
            bytes: 16,
            answer: 99,
            last: true,
        };
        let memory = pool.take(HEAD);
        words::write(request.encode(), memory.sge());
        let back = ControlRequest::decode(memory.sge()).unwrap();
        assert_eq!((back.encode(), back.brings(), back.returns()), (request.encode(), 16, 16));
        let good = request.encode();
        let wrong = [(0, 9), (3, 17), (4, MOST as u64 + 1), (5, 3), (5, u64::MAX), (6, 2)];
        for (word, value) in wrong {
            let mut bad = good;
            bad[word] = value;
            words::write(bad, memory.sge());
            assert!(ControlRequest::decode(memory.sge()).is_none(), "word {word} = {value}");
        }
    }
}
