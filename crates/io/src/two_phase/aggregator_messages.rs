//! Messages between ranks and aggregators: heads, which describe a rank's pieces; data; and results.

use crate::failure::FileFailure;
use crate::strided_runs::{StridedRun, StridedRuns};
use weft_datatype::Type;
use weft_fabric::{Fabric, Sge, Staging};
use weft_p2p::SendMode;
use weft_process::{Active, Buffer, Comm, Destination, Error, Origin};

/// One rank's data in one window.
pub struct WindowPart {
    /// Places in the file.
    pub runs: StridedRuns,
    /// Memory of the data.
    pub data: Sge,
}

/// Result of some of a rank's pieces.
#[derive(Clone, Copy, Default)]
pub struct PieceResult {
    /// Number of bytes of the pieces that lie before the end of the file.
    pub bytes: u64,
    /// Failure of some of the pieces.
    pub failure: Option<FileFailure>,
}

impl PieceResult {
    /// Adds the result of further pieces.
    pub fn add(&mut self, result: PieceResult) {
        self.bytes += result.bytes;
        self.failure = self.failure.or(result.failure);
    }
}

/// Number of runs that fit into a head. A regular view has up to three: an incomplete first piece, complete pieces, and an
/// incomplete last piece.
const INLINE_RUNS: usize = 3;
/// Number of words of a head: bytes, number of runs, and the first runs.
const HEAD_WORDS: usize = 2 + INLINE_RUNS * StridedRun::WORDS;
/// Number of words of a result: a failure and the number of bytes.
const RESULT_WORDS: usize = FileFailure::WORDS + 1;

/// First tag. Lower tags belong to the one-sided operations of the shared pointer, which has the same communicator.
const FIRST_TAG: i32 = 1 << 30;

/// Messages of one collective access. Messages to aggregators and messages from aggregators have different tags.
pub struct AggregatorMessages<'a, F: Fabric> {
    comm: &'a Comm<F>,
    byte: &'a Type,
    number: i32,
}

/// Part of the tag that distinguishes the directions of messages.
#[derive(Clone, Copy)]
enum MessageTag {
    ToAggregator = 0,
    FromAggregator = 1,
}

/// A message under way, and its memory.
pub struct PendingMessage {
    active: Active,
    staging: Option<Staging>,
}

impl<'a, F: Fabric> AggregatorMessages<'a, F> {
    /// Creates the messages of the operation with this number. No other active operation may have the same number.
    pub fn new(comm: &'a Comm<F>, byte: &'a Type, number: u32) -> AggregatorMessages<'a, F> {
        AggregatorMessages { comm, byte, number: (number & 0x0fff_ffff) as i32 }
    }

    /// Returns the rank of this process.
    pub fn rank(&self) -> usize {
        self.comm.rank()
    }

    fn tag(&self, tag: MessageTag) -> i32 {
        FIRST_TAG + 2 * self.number + tag as i32
    }

    fn send(
        &self,
        to: usize,
        tag: MessageTag,
        data: Sge,
        staging: Option<Staging>,
    ) -> PendingMessage {
        let buffer = Buffer::over(data, self.byte.clone());
        let to = Destination::Rank(to);
        let active = self.comm.isend(&buffer, to, self.tag(tag), SendMode::Standard);
        PendingMessage { active, staging }
    }

    fn receive(
        &self,
        from: usize,
        tag: MessageTag,
        data: Sge,
        staging: Option<Staging>,
    ) -> PendingMessage {
        let buffer = Buffer::over(data, self.byte.clone());
        let from = Origin::Rank(from);
        PendingMessage { active: self.comm.irecv(&buffer, from, Some(self.tag(tag))), staging }
    }

    /// Returns a staging buffer of the process.
    pub fn stage(&self, len: usize) -> Staging {
        self.comm.engine().endpoint().staging().take(len)
    }

    fn send_words(&self, to: usize, tag: MessageTag, words: &[u64]) -> PendingMessage {
        let staging = self.stage(8 * words.len());
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        staging.sge().fill(&bytes);
        self.send(to, tag, staging.sge(), Some(staging))
    }

    fn receive_words(&self, from: usize, tag: MessageTag, count: usize) -> PendingMessage {
        let staging = self.stage(8 * count);
        self.receive(from, tag, staging.sge(), Some(staging))
    }

    /// Waits for a message. Returns its staging buffer.
    pub async fn end(&self, mut message: PendingMessage) -> Result<Option<Staging>, Error> {
        match message.active.over(self.comm.engine().endpoint()).await.error {
            None => Ok(message.staging),
            Some(error) => Err(error),
        }
    }

    /// Waits for all messages. Returns the first error.
    pub async fn end_all(
        &self,
        messages: impl IntoIterator<Item = PendingMessage>,
    ) -> Result<(), Error> {
        let mut all = Ok(());
        for message in messages {
            let ended = self.end(message).await.map(|_| ());
            all = all.and(ended);
        }
        all
    }

    async fn end_words(&self, message: PendingMessage) -> Result<Vec<u64>, Error> {
        let Some(staging) = self.end(message).await? else { return Ok(Vec::new()) };
        let mut bytes = vec![0; staging.len()];
        staging.sge().read(&mut bytes);
        Ok(bytes.as_chunks().0.iter().map(|&word| u64::from_ne_bytes(word)).collect())
    }

    /// Sends the description of this rank's pieces to an aggregator.
    pub fn send_head(&self, to: usize, runs: &StridedRuns, messages: &mut Vec<PendingMessage>) {
        let list = runs.list();
        let mut words = vec![runs.bytes(), list.len() as u64];
        words.extend(list.iter().take(INLINE_RUNS).flat_map(StridedRun::words));
        words.resize(HEAD_WORDS, 0);
        messages.push(self.send_words(to, MessageTag::ToAggregator, &words));
        if let Some(more) = list.get(INLINE_RUNS..).filter(|more| !more.is_empty()) {
            let more: Vec<u64> = more.iter().flat_map(StridedRun::words).collect();
            messages.push(self.send_words(to, MessageTag::ToAggregator, &more));
        }
    }

    /// Receives the descriptions of the pieces of all ranks in `from`.
    pub async fn receive_heads(&self, from: &[usize]) -> Result<Vec<StridedRuns>, Error> {
        let tag = MessageTag::ToAggregator;
        let heads: Vec<PendingMessage> =
            from.iter().map(|&rank| self.receive_words(rank, tag, HEAD_WORDS)).collect();
        let mut received = Vec::new();
        for (head, &rank) in heads.into_iter().zip(from) {
            let words = self.end_words(head).await?;
            let count = words.get(1).map_or(0, |&count| count as usize);
            let rest = count.saturating_sub(INLINE_RUNS);
            let more = (rest > 0).then(|| self.receive_words(rank, tag, rest * StridedRun::WORDS));
            received.push((words, count, more));
        }
        let mut all = Vec::new();
        for (mut words, count, more) in received {
            words.drain(..2);
            words.truncate(count.min(INLINE_RUNS) * StridedRun::WORDS);
            if let Some(more) = more {
                words.extend(self.end_words(more).await?);
            }
            let (runs, _) = words.as_chunks();
            let runs = runs.iter().map(|&run| StridedRun::from_words(run)).collect();
            all.push(StridedRuns::of(runs));
        }
        Ok(all)
    }

    /// Sends data to an aggregator.
    pub fn send_data(&self, to: usize, data: Sge) -> PendingMessage {
        self.send(to, MessageTag::ToAggregator, data, None)
    }

    /// Receives a rank's data.
    pub fn receive_data(&self, from: usize, data: Sge, staging: Option<Staging>) -> PendingMessage {
        self.receive(from, MessageTag::ToAggregator, data, staging)
    }

    /// Sends a rank the result of its pieces.
    pub fn send_result(&self, to: usize, result: PieceResult) -> PendingMessage {
        let mut words = FileFailure::words(result.failure).to_vec();
        words.push(result.bytes);
        self.send_words(to, MessageTag::FromAggregator, &words)
    }

    /// Receives a result from an aggregator.
    pub fn receive_result(&self, from: usize) -> PendingMessage {
        self.receive_words(from, MessageTag::FromAggregator, RESULT_WORDS)
    }

    /// Waits for a result.
    pub async fn end_result(&self, message: PendingMessage) -> Result<PieceResult, Error> {
        let words = self.end_words(message).await?;
        let failure = words.first_chunk().and_then(|&words| FileFailure::from_words(words));
        Ok(PieceResult { bytes: words.last().copied().unwrap_or(0), failure })
    }

    /// Sends a rank its data from the file.
    pub fn send_read(&self, to: usize, data: Sge) -> PendingMessage {
        self.send(to, MessageTag::FromAggregator, data, None)
    }

    /// Receives data from an aggregator, at most as many bytes as `data` can hold.
    pub fn receive_read(&self, from: usize, data: Sge) -> PendingMessage {
        self.receive(from, MessageTag::FromAggregator, data, None)
    }
}
