//! Requests that the target's own process carries out: what they ask for, and how they travel.
//!
//! ```text
//!   head (kind, operator, runs, bytes, answer) │ more: runs, data          one tag for heads, one for the rest
//!   answer: how it ended │ data                                            a tag of its own; none if nobody waits
//! ```
//! Who sends them: operations on memory that no fabric reaches ([`crate::serve`]), and Fence-2S
//! ([`crate::fence`]). At most [`MOST`] bytes at once, so that neither side needs memory for the whole.

use crate::Window;
use crate::accumulate::Packed;
use crate::place::{TargetAddress, TargetLocation};
use weft_datatype::{Basic, Op};
use weft_fabric::{Fabric, Sge, Staging};
use weft_p2p::{Mode, RequestId, Source, Target, Want};
use weft_process::{Error, class};

/// Largest part of an operation, in packed bytes: a multiple of every element.
pub(crate) const MOST: usize = 1 << 20;

/// Tags of the messages; answers have the rest.
pub(crate) mod tags {
    /// A head for the service, and for a fence.
    pub const REQUEST: i32 = 1;
    pub const FENCE: i32 = 2;
    /// What follows each of them.
    pub const MORE: i32 = 3;
    pub const FENCE_MORE: i32 = 4;
    pub const ANSWERS: i32 = 16;
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum RequestKind {
    Put = 1,
    Get = 2,
    Reduce = 3,
    Swap = 4,
    Stop = 5,
}

/// The first message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub kind: RequestKind,
    pub op: u64,
    pub basic: u64,
    /// Runs of the target's memory, and their bytes together.
    pub runs: u64,
    pub bytes: u64,
    /// Tag of the answer; 0: nobody waits for one.
    pub answer: i32,
    /// The last one of an epoch.
    pub last: bool,
}

const WORDS: usize = 7;
/// Its length in bytes.
pub(crate) const HEAD: usize = 8 * WORDS;

impl Request {
    pub const STOP: Request = Request {
        kind: RequestKind::Stop,
        op: 0,
        basic: 0,
        runs: 0,
        bytes: 0,
        answer: 0,
        last: false,
    };

    pub fn encode(&self) -> Vec<u8> {
        let Request { kind, op, basic, runs, bytes, answer, last } = *self;
        bytes_of([kind as u64, op, basic, runs, bytes, answer as u64, u64::from(last)])
    }

    /// What a peer asks for, if it can be.
    pub fn decode(from: Sge) -> Option<Request> {
        use RequestKind::*;
        let [kind, op, basic, runs, bytes, answer, last] = words(from);
        let kind = [Put, Get, Reduce, Swap, Stop].into_iter().find(|&k| k as u64 == kind)?;
        let answer = i32::try_from(answer).ok().filter(|&tag| tag == 0 || tag >= tags::ANSWERS)?;
        let fits = bytes <= MOST as u64 && runs <= bytes && last <= 1;
        fits.then_some(Request { kind, op, basic, runs, bytes, answer, last: last == 1 })
    }

    pub fn op(&self) -> Option<Op> {
        Op::of_handle(u32::try_from(self.op).ok()?)
    }

    pub fn basic(&self) -> Option<Basic> {
        Basic::of_handle(u32::try_from(self.basic).ok()?)
    }

    /// Data that come with it.
    pub fn brings(&self) -> usize {
        match self.kind {
            RequestKind::Put => self.bytes as usize,
            RequestKind::Reduce if self.op() == Some(Op::NoOp) => 0,
            RequestKind::Reduce => self.bytes as usize,
            RequestKind::Swap => 2 * self.bytes as usize,
            RequestKind::Get | RequestKind::Stop => 0,
        }
    }

    /// Data that go back, to whoever waits for them.
    pub fn returns(&self) -> usize {
        match self.kind {
            RequestKind::Get | RequestKind::Reduce | RequestKind::Swap => self.bytes as usize,
            RequestKind::Put | RequestKind::Stop => 0,
        }
    }
}

/// The first word of an answer.
pub(crate) const DONE: u64 = 0;
pub(crate) const REFUSED: u64 = 1;

pub(crate) fn words<const N: usize>(from: Sge) -> [u64; N] {
    let mut bytes = vec![0; 8 * N];
    from.part(0, 8 * N).read(&mut bytes);
    std::array::from_fn(|i| u64::from_ne_bytes(bytes[8 * i..][..8].try_into().expect("8 bytes")))
}

pub(crate) fn bytes_of(words: impl IntoIterator<Item = u64>) -> Vec<u8> {
    words.into_iter().flat_map(u64::to_ne_bytes).collect()
}

/// An operation's data, packed, as requests carry them.
#[derive(Clone, Copy)]
pub(crate) enum RmaRequest {
    Put(Sge),
    Get,
    Change(Packed, Basic),
}

impl RmaRequest {
    fn kind(self) -> RequestKind {
        match self {
            RmaRequest::Put(_) => RequestKind::Put,
            RmaRequest::Get => RequestKind::Get,
            RmaRequest::Change(Packed::Reduce { .. }, _) => RequestKind::Reduce,
            RmaRequest::Change(Packed::Swap { .. }, _) => RequestKind::Swap,
        }
    }

    /// Handles of operator and element type, 0 for none.
    fn names(self) -> [u64; 2] {
        match self {
            RmaRequest::Change(Packed::Reduce { op, .. }, basic) => {
                [op.handle().into(), basic.handle().into()]
            }
            RmaRequest::Change(Packed::Swap { .. }, basic) => [0, basic.handle().into()],
            _ => [0; 2],
        }
    }

    /// The data of the packed bytes `skip..skip + take`.
    fn data(self, skip: usize, take: usize) -> [Sge; 2] {
        match self {
            RmaRequest::Put(data) => [data.part(skip, take), Sge::EMPTY],
            RmaRequest::Change(Packed::Reduce { op: Op::NoOp, .. }, _) | RmaRequest::Get => {
                [Sge::EMPTY; 2]
            }
            RmaRequest::Change(Packed::Reduce { origin, .. }, _) => {
                [origin.part(skip, take), Sge::EMPTY]
            }
            RmaRequest::Change(Packed::Swap { compare, new }, _) => [compare, new],
        }
    }

    /// Offsets and lengths of the parts that requests carry, of `len` packed bytes.
    pub fn parts(self, len: usize) -> impl Iterator<Item = (usize, usize)> {
        let most = match self {
            RmaRequest::Change(_, basic) => MOST / basic.size() * basic.size(),
            _ => MOST,
        };
        (0..len).step_by(most).map(move |skip| (skip, most.min(len - skip)))
    }
}

/// Which requests these are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The service takes them; they wake its helper.
    Service,
    /// A fence takes them.
    Fence { last: bool },
}

/// One request on its way.
pub(crate) struct InFlight {
    sent: [Option<RequestId>; 2],
    /// The answer, and where it lands.
    answer: Option<(RequestId, Staging)>,
    /// What is sent.
    _all: Staging,
}

impl<F: Fabric> Window<F> {
    /// Sends a request for the packed bytes `skip..skip + take` of a location. `answer`: somebody wants to know
    /// how it ends, or its data.
    pub(crate) fn ask(
        &self,
        way: Way,
        place: &TargetAddress,
        location: &TargetLocation,
        wish: RmaRequest,
        (skip, take): (usize, usize),
        answer: bool,
    ) -> InFlight {
        let mut runs = Vec::new();
        location.ty.runs(location.count, skip, take, |offset, len| {
            runs.extend([place.own.wrapping_add(offset) as u64, len as u64]);
        });
        let [op, basic] = wish.names();
        let request = Request {
            kind: wish.kind(),
            op,
            basic,
            runs: runs.len() as u64 / 2,
            bytes: take as u64,
            answer: if answer { self.next_answer() } else { 0 },
            last: way == Way::Fence { last: true },
        };
        let (endpoint, pool) = (self.endpoint(), self.endpoint().staging());
        let answer = answer.then(|| {
            let into = pool.take(8 + request.returns());
            (endpoint.irecv(&self.want_of(location.rank, request.answer), into.sge()), into)
        });
        let (head, runs) = (request.encode(), bytes_of(runs));
        let all = pool.take(HEAD + runs.len() + request.brings());
        all.sge().fill(&head);
        let more = all.sge().part(HEAD, all.len() - HEAD);
        more.fill(&runs);
        let mut at = runs.len();
        for data in wish.data(skip, take) {
            more.part(at, data.len()).copy_from(data);
            at += data.len();
        }
        let (tags, mode) = match way {
            Way::Service => ([tags::REQUEST, tags::MORE], Mode::Synchronous),
            Way::Fence { .. } => ([tags::FENCE, tags::FENCE_MORE], Mode::Standard),
        };
        let messages = [(tags[0], all.sge().part(0, HEAD)), (tags[1], more)];
        let sent = messages
            .map(|(tag, sge)| endpoint.isend(self.target_of(location.rank, tag), sge, mode));
        InFlight { sent, answer, _all: all }
    }

    /// Waits until a request has been sent, and for its answer, if there is to be one: its data, in memory
    /// that they begin at byte 8 of.
    pub(crate) async fn answered(
        &self,
        rank: usize,
        asked: InFlight,
    ) -> Result<Option<Staging>, Error> {
        let endpoint = self.endpoint();
        let answer = match asked.answer {
            Some((id, into)) => {
                endpoint.wait(id).await?;
                Some(into)
            }
            None => None,
        };
        for request in asked.sent.into_iter().flatten() {
            endpoint.wait(request).await?;
        }
        match &answer {
            Some(into) if words(into.sge()) != [DONE] => {
                let text = format!("rank {rank} refused an operation: its memory is not there");
                Err(self.wrong(class::RMA_RANGE, text))
            }
            _ => Ok(answer),
        }
    }

    fn next_answer(&self) -> i32 {
        let number = self.answers.get();
        self.answers.set((number + 1) % (1 << 28));
        tags::ANSWERS + number
    }

    pub(crate) fn want_of(&self, rank: usize, tag: i32) -> Want {
        let source = Source::Rank { rank: rank as u32, peer: self.peer(rank) };
        Want { context: self.comm().context(), source, tag: Some(tag) }
    }

    pub(crate) fn target_of(&self, rank: usize, tag: i32) -> Target {
        let context = self.comm().context();
        Target { context, peer: self.peer(rank), rank: self.rank() as u32, tag }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_fabric::StagingPool;

    #[test]
    fn requests_are_read_back_and_checked() {
        let pool = StagingPool::default();
        let op = u64::from(Op::Sum.handle());
        let request = Request {
            kind: RequestKind::Reduce,
            op,
            basic: 0x214,
            runs: 2,
            bytes: 16,
            answer: 99,
            last: true,
        };
        let memory = pool.take(HEAD);
        memory.sge().fill(&request.encode());
        let back = Request::decode(memory.sge()).unwrap();
        assert_eq!((back.encode(), back.brings(), back.returns()), (request.encode(), 16, 16));
        let good = words::<WORDS>(memory.sge());
        let wrong = [(0, 9), (3, 17), (4, MOST as u64 + 1), (5, 3), (5, u64::MAX), (6, 2)];
        for (word, value) in wrong {
            let mut words = good;
            words[word] = value;
            memory.sge().fill(&bytes_of(words));
            assert!(Request::decode(memory.sge()).is_none(), "word {word} = {value}");
        }
    }
}
