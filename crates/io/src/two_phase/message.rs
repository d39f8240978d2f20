//! Messages between ranks and aggregators: heads, which say what pieces there are; data; and what became of them.

use crate::failure::Failure;
use crate::strided_runs::{StridedRun, StridedRuns};
use weft_datatype::Type;
use weft_fabric::{Fabric, Sge, Staging};
use weft_p2p::Mode;
use weft_process::{Active, Buffer, Comm, Destination, Error, Origin};

/// One rank's data in one window.
pub struct Part {
    /// Their places.
    pub runs: StridedRuns,
    /// The data, or where they go.
    pub data: Sge,
}

/// StridedRuns that fit into a head: of a loop there are three, a first piece that begins before, whole ones, and a last one.
const INLINE: usize = 3;
/// Bytes, number of runs, and the first of them.
const HEAD: usize = 2 + INLINE * StridedRun::WORDS;
/// What became of data: a failure, and bytes.
const FATE: usize = Failure::WORDS + 1;

/// The first tag: those below are of the one-sided operations of the shared pointer, whose communicator this is.
const TAGS: i32 = 1 << 30;

/// Messages of one operation. Those to aggregators and those from them are matched apart.
pub struct Line<'a, F: Fabric> {
    comm: &'a Comm<F>,
    byte: &'a Type,
    number: i32,
}

/// Which way a message goes.
#[derive(Clone, Copy)]
enum Way {
    ToAggregator = 0,
    FromAggregator = 1,
}

/// A message under way, with what it is sent from or received into.
pub struct Post {
    active: Active,
    kept: Option<Staging>,
}

impl<'a, F: Fabric> Line<'a, F> {
    /// Of the operation of that number, which others under way do not have.
    pub fn new(comm: &'a Comm<F>, byte: &'a Type, number: u32) -> Line<'a, F> {
        Line { comm, byte, number: (number & 0x0fff_ffff) as i32 }
    }

    /// This rank.
    pub fn rank(&self) -> usize {
        self.comm.rank()
    }

    fn tag(&self, way: Way) -> i32 {
        TAGS + 2 * self.number + way as i32
    }

    fn send(&self, to: usize, way: Way, data: Sge, kept: Option<Staging>) -> Post {
        let buffer = Buffer::over(data, self.byte.clone());
        let to = Destination::Rank(to);
        Post { active: self.comm.isend(&buffer, to, self.tag(way), Mode::Standard), kept }
    }

    fn receive(&self, from: usize, way: Way, data: Sge, kept: Option<Staging>) -> Post {
        let buffer = Buffer::over(data, self.byte.clone());
        let from = Origin::Rank(from);
        Post { active: self.comm.irecv(&buffer, from, Some(self.tag(way))), kept }
    }

    /// A buffer of the process.
    pub fn stage(&self, len: usize) -> Staging {
        self.comm.engine().endpoint().staging().take(len)
    }

    fn words(&self, words: &[u64]) -> Staging {
        let staging = self.stage(8 * words.len());
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        staging.sge().fill(&bytes);
        staging
    }

    /// Waits for a message.
    pub async fn end(&self, mut post: Post) -> Result<Option<Staging>, Error> {
        match post.active.over(self.comm.engine().endpoint()).await.error {
            None => Ok(post.kept),
            Some(error) => Err(error),
        }
    }

    /// Waits for all.
    pub async fn end_all(&self, posts: impl IntoIterator<Item = Post>) -> Result<(), Error> {
        let mut all = Ok(());
        for post in posts {
            let ended = self.end(post).await.map(|_| ());
            all = all.and(ended);
        }
        all
    }

    /// Tells an aggregator what pieces there are.
    pub fn send_head(&self, to: usize, runs: &StridedRuns, posts: &mut Vec<Post>) {
        let list = runs.list();
        let mut words = vec![runs.bytes(), list.len() as u64];
        words.extend(list.iter().take(INLINE).flat_map(StridedRun::words));
        words.resize(HEAD, 0);
        let head = self.words(&words);
        posts.push(self.send(to, Way::ToAggregator, head.sge(), Some(head)));
        if let Some(more) = list.get(INLINE..).filter(|more| !more.is_empty()) {
            let more = self.words(&more.iter().flat_map(StridedRun::words).collect::<Vec<_>>());
            posts.push(self.send(to, Way::ToAggregator, more.sge(), Some(more)));
        }
    }

    /// What pieces each of `from` has.
    pub async fn receive_heads(&self, from: &[usize]) -> Result<Vec<StridedRuns>, Error> {
        let heads: Vec<Post> = from.iter().map(|&rank| self.receive_words(rank, HEAD)).collect();
        let mut said = Vec::new();
        for (head, &rank) in heads.into_iter().zip(from) {
            let words = self.end_words(head).await?;
            let count = words.get(1).map_or(0, |&count| count as usize);
            let rest = count.saturating_sub(INLINE);
            let more = (rest > 0).then(|| self.receive_words(rank, rest * StridedRun::WORDS));
            said.push((words, count, more));
        }
        let mut all = Vec::new();
        for (mut words, count, more) in said {
            words.drain(..2);
            words.truncate(count.min(INLINE) * StridedRun::WORDS);
            if let Some(more) = more {
                words.extend(self.end_words(more).await?);
            }
            let (runs, _) = words.as_chunks();
            all.push(StridedRuns::of(
                runs.iter().map(|&run| StridedRun::from_words(run)).collect(),
            ));
        }
        Ok(all)
    }

    fn receive_words(&self, from: usize, count: usize) -> Post {
        let staging = self.stage(8 * count);
        self.receive(from, Way::ToAggregator, staging.sge(), Some(staging))
    }

    async fn end_words(&self, post: Post) -> Result<Vec<u64>, Error> {
        let Some(staging) = self.end(post).await? else { return Ok(Vec::new()) };
        let mut bytes = vec![0; staging.len()];
        staging.sge().read(&mut bytes);
        Ok(bytes.as_chunks().0.iter().map(|&word| u64::from_ne_bytes(word)).collect())
    }

    /// Sends data to an aggregator.
    pub fn send_data(&self, to: usize, data: Sge) -> Post {
        self.send(to, Way::ToAggregator, data, None)
    }

    /// Receives the data of a rank.
    pub fn receive_data(&self, from: usize, data: Sge, kept: Option<Staging>) -> Post {
        self.receive(from, Way::ToAggregator, data, kept)
    }

    /// Tells a rank what became of its data: a failure, and how many bytes were moved.
    pub fn send_fate(&self, to: usize, failure: Option<Failure>, bytes: u64) -> Post {
        let mut words = Failure::words(failure).to_vec();
        words.push(bytes);
        let words = self.words(&words);
        self.send(to, Way::FromAggregator, words.sge(), Some(words))
    }

    /// Will say it.
    pub fn receive_fate(&self, from: usize) -> Post {
        let staging = self.stage(8 * FATE);
        self.receive(from, Way::FromAggregator, staging.sge(), Some(staging))
    }

    /// What [`Line::send_fate`] said.
    pub async fn end_fate(&self, post: Post) -> Result<(Option<Failure>, u64), Error> {
        let words = self.end_words(post).await?;
        let failure = words.first_chunk().map(|&words| Failure::from_words(words));
        Ok((failure.flatten(), words.last().copied().unwrap_or(0)))
    }

    /// Sends what was read to a rank.
    pub fn send_read(&self, to: usize, data: Sge, kept: Option<Staging>) -> Post {
        self.send(to, Way::FromAggregator, data, kept)
    }

    /// Receives what was read: as much as there is.
    pub fn receive_read(&self, from: usize, data: Sge) -> Post {
        self.receive(from, Way::FromAggregator, data, None)
    }
}
