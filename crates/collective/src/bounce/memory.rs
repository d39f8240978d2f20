//! The memory of [`super`]'s buffers. All ranks make the memory together. Each rank frees its part when all ranks have read the
//! part.

use super::{BUFFER, BUFFERS, MANY, MOST, MOST_OF_ALL, READ, STEP};
use crate::CommView;
use crate::address_exchange::{self, Exchanged};
use crate::area::{AreaSession, SLOT};
use std::cell::Cell;
use std::sync::atomic::Ordering;
use weft_fabric::{Fabric, FabricExt, Fault, PeerWords, Region, RemoteAddr};

/// The buffers of a communicator, and the facts that its ranks know of each other's buffers.
pub(super) struct CommBounceBuffers<F: Fabric> {
    pub(super) endpoint: std::rc::Rc<weft_p2p::Endpoint<F>>,
    pub(super) members: std::rc::Rc<crate::Members>,
    pub(super) mine: Region,
    pub(super) all: Vec<RemoteAddr>,
    /// Number of bytes of each half of a rank's memory. Barriers alternate between the halves.
    pub(super) half: usize,
    /// Maximum length, in bytes, of copied data whose lines the reader takes if there are two ranks.
    pub(super) short: usize,
    /// The last barrier whose buffers this rank has read.
    pub(super) read: Cell<u64>,
    /// Stamp of the operation that made these buffers. The stamp distinguishes these buffers from later buffers at the same
    /// address.
    pub(super) stamp: u64,
    /// Number of slow copies from other ranks' buffers, indexed by the rank that reads. The number of this rank is exact; the
    /// numbers of other ranks are as last seen.
    pub(super) slow: Box<[Cell<u64>]>,
    /// The rank that was last asked for its number of slow copies.
    pub(super) ask: Cell<usize>,
    /// Number of bytes at the start of each half whose pages are present in this process's mappings of all ranks' memory.
    pub(super) ready: Cell<usize>,
}

impl<F: Fabric> Drop for CommBounceBuffers<F> {
    fn drop(&mut self) {
        let (mine, last, stamp) = (self.mine, self.read.get(), self.stamp);
        // The words are mapped now and stay mapped while they are polled. If they were mapped later, ranks of another job might
        // have left, and their numbers in the fabric might belong to other processes.
        let fabric = self.endpoint.fabric();
        let words = self
            .members
            .iter()
            .zip(&self.all)
            .map(|(&peer, at)| fabric.words(peer as usize, at.offset(READ as u64), 2));
        let words: Vec<_> = words.collect();
        self.endpoint.park(move |fabric| {
            // A different stamp means that the memory is used again. So the peer has freed the memory, which it did only after all
            // ranks were done.
            let done = |words: &Option<PeerWords>| {
                words.as_ref().is_some_and(|words| {
                    let [word, found] = [0, 1].map(|i| words[i].load(Ordering::Acquire));
                    found != stamp || word >= last
                })
            };
            let free = words.iter().all(done);
            if free {
                fabric.withdraw(mine);
            }
            free
        });
    }
}

impl<F: Fabric> CommBounceBuffers<F> {
    /// Makes the buffers in [`MAKING`] barriers from `epoch` on. Returns `None` if some rank has no memory for its buffers.
    pub(super) async fn make(
        link: &CommView<F>,
        session: &AreaSession<'_, F>,
        epoch: u64,
        many: bool,
    ) -> Result<Option<CommBounceBuffers<F>>, Fault> {
        let fabric = link.endpoint.fabric();
        link.endpoint.clear_parked();
        let near = crate::share_memory(fabric, &link.members);
        let room = |half: usize| BUFFERS + 2 * half;
        let wished = match many && near {
            true => (MOST_OF_ALL / link.size()).min(MOST) / 2 / STEP * STEP,
            false => BUFFER,
        };
        let (mine, half) = match near {
            true => match (wished > BUFFER).then(|| fabric.allocate_spare(room(wished))) {
                Some(Ok(mine)) => (Some(mine), wished),
                _ => (fabric.allocate_on_node(room(BUFFER)).ok(), BUFFER),
            },
            // If selected by name, these algorithms also run across nodes.
            false => (fabric.allocate(room(BUFFER)).ok(), BUFFER),
        };
        let stamp = link.context.0.rotate_left(32) ^ u64::from(link.tag as u32) ^ 1 << 63;
        if let Some(mine) = &mine {
            mine.local.part(READ + 8, 8).fill(&stamp.to_ne_bytes());
        }
        // A length of 0 reports to the other ranks that this rank has no memory.
        let half = if mine.is_some() { half } else { 0 };
        let here = mine.map_or(RemoteAddr::default(), |mine| mine.remote);
        let facts = [half as u64, super::short(fabric.copies()) as u64];
        let words = [&here.words()[..], &facts].concat();
        let all = exchange(link, session, epoch, &words).await?;
        // The second barrier is needed because this operation may be the last operation on the communicator, and some ranks may
        // then free the communicator.
        session.barrier(link, epoch + 1).await?;
        let word = |rank: usize, i: usize| all.word(rank, i);
        let least =
            |i: usize| (0..link.size()).map(|rank| word(rank, i)).min().unwrap_or(0) as usize;
        let half = least(RemoteAddr::WORDS);
        let Some(mine) = mine.filter(|_| half > 0) else {
            mine.into_iter().for_each(|mine| fabric.withdraw(mine));
            return Ok(None);
        };
        Ok(Some(CommBounceBuffers {
            endpoint: link.endpoint.clone(),
            members: link.members.clone(),
            read: Cell::new(epoch + 1),
            stamp,
            slow: (0..link.size()).map(|_| Cell::new(0)).collect(),
            ask: Cell::new(0),
            ready: Cell::new(0),
            mine,
            all: (0..link.size()).map(|rank| all.addr(rank, 0)).collect(),
            half,
            short: least(RemoteAddr::WORDS + 1),
        }))
    }

    /// Provides the pages of the first `bytes` bytes of each half. After the first [`MANY`] operations, buffers move through these
    /// bytes. Operation `MANY` - 1 provides the pages of this rank's memory. Operation `MANY` maps the other ranks' pages in this
    /// process, because all ranks have ended operation `MANY` - 1 by then.
    #[cold]
    pub(super) fn prepare(&self, session: &AreaSession<'_, F>, bytes: usize, nth: u32) {
        let fabric = session.fabric();
        let halves = [BUFFERS, BUFFERS + self.half];
        if nth < MANY {
            halves.iter().for_each(|&half| fabric.populate(self.mine.local.part(half, bytes)));
            return;
        }
        for (&peer, at) in self.members.iter().zip(&self.all).take(NEAR_MOST) {
            let seen = |half| fabric.mapped(peer as usize, at.offset(half), bytes);
            let seen = halves.map(|half| seen(half as u64));
            seen.into_iter().flatten().for_each(|seen| fabric.populate(seen));
        }
        self.ready.set(bytes);
    }
}

/// Maximum number of ranks whose buffers are mapped ahead. With more ranks, an operation takes so long that page faults do not
/// matter.
const NEAR_MOST: usize = 64;

/// Number of barriers of [`CommBounceBuffers::make`].
pub(super) const MAKING: u64 = 2;

/// Runs a barrier in which each rank sends up to eight words to all ranks, in slots of `SLOT` bytes ordered by rank. The words are
/// read after the barrier, so another barrier must follow in the same operation.
pub(super) async fn exchange<F: Fabric>(
    link: &CommView<F>,
    session: &AreaSession<'_, F>,
    epoch: u64,
    words: &[u64],
) -> Result<Exchanged, Fault> {
    let said = link.stage(8 * words.len());
    address_exchange::write(words, said.sge());
    let all = link.stage(SLOT * link.size());
    if session.is_pair() {
        let other = session.swap(link, epoch, said.sge()).await?;
        let slot = |rank: usize| all.sge().part(SLOT * rank, said.len());
        slot(link.rank).copy_from(said.sge());
        slot(1 - link.rank).copy_from(other);
        return Ok(Exchanged::new(all, SLOT));
    }
    session.contribute(link, epoch, said.sge()).await?;
    session.barrier(link, epoch).await?;
    session.collect(link, epoch, all.sge()).await?;
    Ok(Exchanged::new(all, SLOT))
}
