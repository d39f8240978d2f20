//! Ranks that read each other's memory: the bounce buffers of the algorithms named SHM.
//!
//! ```text
//!   each rank:  two halves, a buffer in each     small data: copied in, barrier, copied out by whom they concern
//!   rank 0:     slots of the area               large data: the slots hold addresses, the data stay
//!                                              where they are and are read there
//! ```
//! A barrier here is the central one (`area.rs`): one atomic a rank, and the last to arrive lets the
//! others go, so that each rank waits once and is woken once. An operation has one or more barriers.
//!
//! Why nothing is overwritten unread. What is copied in for barrier k (a buffer, a slot) is read between
//! barriers k and k + 1. Slots alternate; so do the halves, of which barrier k has one and k + 1 the other. Both are
//! written again, at the earliest, by a rank that has left k + 1, when all have come to k + 1 and so have read what
//! they needed of k. The program's own memory, of which there is one, is read between two barriers of one
//! operation.
//!
//! Why halves are larger than buffers: a line that another processor has read a moment ago is slow to write
//! ([`weft_fabric::CopyModel::rewrite`]), one that has left the caches above the last is not. So what is copied in goes through
//! more memory than those caches have: a half's buffer moves through it.
//!
//! Where each piece has one reader, that takes its lines when it has read them, so that they come back in one transfer;
//! then the buffer has one place, and what is copied in stays in the caches ([`BounceSession::taken`]). Of two ranks each is
//! the only reader of the other's buffer, and takes the lines of long data if it is far away ([`weft_fabric::copies`]).
//!
//! Slots of the area are read after a barrier only where another barrier follows in the same operation: whoever has left an
//! operation may end the communicator and give the area back.
//!
//! Reads of a buffer may go on when their operation is over elsewhere. So each rank says in a word beside its
//! buffers which barrier's it has read, and memory that is not needed any more stays aside until all ranks are
//! that far ([`weft_p2p::Endpoint::park`]).
//!
//! Memory: two halves of [`BUFFER`] bytes a rank and communicator, 192 KiB, made by the first operation on it that
//! needs them; the first communicator of a process has 2.25 MiB a rank, or what 24 MiB have for each. Two ranks work at
//! once and in short parts; more copied in up to `BUFFER_MOST` at once, since to them a barrier costs more.

mod exposed;
mod memory;

pub use exposed::ExposedPieces;
use memory::{CommBounceBuffers, MAKING};

use crate::CommView;
use crate::address_exchange::no_memory;
use crate::area::{Area, AreaSession};
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use weft_fabric::{CacheDistance, Copies, Fabric, FabricExt, Fault, RemoteAddr, Sge, Work, copies};
use weft_intranode::{pipelined, staged};

/// Bytes that a rank may copy in for one barrier, at least.
pub const BUFFER: usize = 96 << 10;

/// The same at most, whatever the memory: six buffers, so that what seven ranks copied in is in a last-level cache of usual size.
const BUFFER_MOST: usize = 576 << 10;

/// The same of two ranks where lines are not taken back ([`Copies::writes_anew`]): fewer barriers, as nothing is gained by parts
/// that stay in the first caches.
const BUFFER_ANEW: usize = 256 << 10;

/// Bytes of a rank's memory in the communicator that has most, more than a processor's own caches; and of all ranks'.
const MOST: usize = 24 * BUFFER;
const MOST_OF_ALL: usize = 24 << 20;

/// The largest elements, in bytes, that reductions cut a payload between.
pub const UNIT_MOST: usize = 1024;

/// Bytes of a region's name in a buffer.
pub const NAME: usize = 8 * RemoteAddr::WORDS;

/// So many bytes of a half do short buffers go round between two ranks that are far from each other: more than first-level
/// caches have, which what is read has left by the time that it is written again.
const AROUND: usize = 128 << 10;

/// Buffers move by so many bytes, and those of at least [`MOVING`].
const STEP: usize = 256;
const MOVING: usize = 4 << 10;

/// Bytes up to which the reader of two ranks takes the lines of what was copied in: what first-level caches hold beside the
/// program's, and a quarter of that where lines that come back cost much.
fn short(copies: &Copies) -> usize {
    if copies.writes_anew() { pipelined::SHORT / 4 } else { pipelined::SHORT }
}

/// The largest part of a payload, in elements of `unit` bytes, that fits in a `buffer` of so many bytes with one rank's
/// slice of it behind, from the next line on.
pub fn segment(buffer: usize, unit: usize) -> usize {
    let unit = unit.max(1);
    (buffer / 3 * 2 - 4 * UNIT_MOST) / unit * unit
}

// Half of a segment, rounded up to elements and to lines, fits behind it.
const _: () =
    assert!(BUFFER / 3 * 2 - 4 * UNIT_MOST + 64 + BUFFER / 3 - 2 * UNIT_MOST + UNIT_MOST <= BUFFER);

/// Where the word with the last barrier read is; the stamp follows, and in a further line the word with the number of slow
/// copies; then the buffers.
const READ: usize = 0;
const SLOW: usize = 64;
const BUFFERS: usize = 256;

/// The buffers of a communicator, or the place for them.
pub(crate) struct BounceBuffers<F: Fabric> {
    made: OnceCell<Box<CommBounceBuffers<F>>>,
    /// An operation that makes them has been started.
    begun: Cell<bool>,
    /// Whether a communicator of the process may still have many.
    many: Rc<Cell<bool>>,
}

impl<F: Fabric> BounceBuffers<F> {
    pub fn new(many: Rc<Cell<bool>>) -> Self {
        BounceBuffers { made: OnceCell::new(), begun: Cell::new(false), many }
    }
}

/// One operation's time with the buffers.
pub struct BounceSession<'b, F: Fabric> {
    pub(crate) link: &'b CommView<F>,
    session: AreaSession<'b, F>,
    buffers: &'b CommBounceBuffers<F>,
    /// Each piece has one reader, who takes its lines: they are written again soon.
    soon: bool,
    /// Bytes that a rank copies in for a barrier at most.
    span: usize,
    /// Of two ranks, each is found to be far from the other.
    far: bool,
    /// From where to where this rank has copied something in for the next barrier, and its number.
    put: Cell<(usize, usize)>,
    next: Cell<u64>,
}

impl<F: Fabric> Drop for BounceSession<'_, F> {
    fn drop(&mut self) {
        let last = self.next.get() - 1;
        self.buffers.read.set(last);
        // What was read has been read before this can be seen.
        std::sync::atomic::fence(std::sync::atomic::Ordering::Release);
        self.buffers.mine.local.part(READ, 8).fill(&last.to_ne_bytes());
    }
}

impl<F: Fabric> BounceBuffers<F> {
    /// See [`crate::ReleaseGather::buffer_len`].
    pub async fn len(&self, area: &Area<F>, link: &CommView<F>) -> Result<usize, Fault> {
        let CommBounceBuffers { half, short, .. } = *self.made(area, link).await?;
        Ok(match link.size() {
            2 if short < pipelined::SHORT => half.min(BUFFER_ANEW),
            2 => BUFFER,
            _ => half.min(BUFFER_MOST),
        })
    }

    /// See [`crate::ReleaseGather::buffer_len_for`].
    pub async fn len_for(
        &self,
        area: &Area<F>,
        link: &CommView<F>,
        block: usize,
    ) -> Result<usize, Fault> {
        let buffer = self.len(area, link).await?;
        let long = link.size() == 2 && block > 2 * area.model(link).private;
        Ok(if long { buffer.min(BUFFER) } else { buffer })
    }

    async fn made<'b>(
        &'b self,
        area: &'b Area<F>,
        link: &'b CommView<F>,
    ) -> Result<&'b CommBounceBuffers<F>, Fault> {
        match self.made.get() {
            Some(made) => Ok(made),
            None => Ok(self.enter(area, link, 0, 0).await?.buffers),
        }
    }

    /// See [`crate::ReleaseGather::bounce`].
    pub async fn enter<'b>(
        &'b self,
        area: &'b Area<F>,
        link: &'b CommView<F>,
        barriers: u64,
        span: usize,
    ) -> Result<BounceSession<'b, F>, Fault> {
        // Said before anything is awaited: all ranks start their operations in one order.
        let first = !self.begun.replace(true);
        let far = link.size() == 2 && area.distance(link) == CacheDistance::Apart;
        let making = if first { MAKING } else { 0 };
        let (session, epoch) = area.enter_for(link, making + barriers).await?;
        let next = Cell::new(epoch);
        if first {
            let many = self.many.take();
            match CommBounceBuffers::make(link, &session, epoch, many).await? {
                Some(made) => {
                    next.set(epoch + MAKING);
                    let _ = self.made.set(Box::new(made));
                }
                None => {
                    // Others have begun already where they do not wait for each other: they fail as well.
                    self.begun.set(!area.is_in_turn());
                    self.many.set(many);
                    session.end_early(link, epoch + MAKING, barriers).await?;
                    return Err(no_memory());
                }
            }
        }
        let Some(buffers) = self.made.get() else {
            session.end_early(link, epoch, barriers).await?;
            return Err(no_memory());
        };
        let span = span.max(1).next_multiple_of(STEP).min(buffers.half);
        let put = Cell::default();
        Ok(BounceSession { link, session, buffers, soon: false, span, far, put, next })
    }
}

impl<F: Fabric> BounceSession<'_, F> {
    fn copies(&self) -> &Copies {
        self.link.endpoint.fabric().copies()
    }

    fn take_number(&self) -> u64 {
        self.next.replace(self.next.get() + 1)
    }

    /// Everybody comes, then everybody goes on.
    pub async fn barrier(&self) -> Result<(), Fault> {
        self.barrier_while(|| ()).await
    }

    /// The same with something that this rank does beside it. Of two ranks, it has come when this returns: a future that
    /// says so later is first put together, for which the processor may have to wait until all it wrote is written.
    #[inline]
    pub fn barrier_while<W: FnOnce()>(
        &self,
        work: W,
    ) -> impl Future<Output = Result<(), Fault>> + use<'_, F, W> {
        let (epoch, (start, end)) = (self.take_number(), self.put.take());
        let put = self.last_buffer().part(start, end - start);
        let said = self.session.is_pair().then(|| self.session.say(self.link, epoch, Sge::EMPTY));
        async move {
            if let Some(flag) = said {
                let flag = flag?;
                staged::told_of(self.copies(), put);
                work();
                return self.session.hear(flag, epoch).await;
            }
            self.session.barrier(self.link, epoch).await?;
            work();
            Ok(())
        }
    }

    /// A barrier for which the last to arrive does something before it lets the others go.
    pub async fn barrier_after(
        &self,
        last: impl AsyncFnOnce() -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let epoch = self.next.get();
        if !self.session.arrive(self.link, epoch).await? {
            self.next.set(epoch + 1);
            return self.session.await_release(epoch, Sge::EMPTY).await;
        }
        // What runs now looks at the buffers of this barrier.
        self.next.set(epoch + 1);
        last().await?;
        self.session.release(self.link, epoch, Sge::EMPTY).await
    }

    /// Each piece that is copied in has one reader, who takes its lines ([`BounceSession::copy_out`], [`BounceSession::done_with`]): two buffers are
    /// enough then, which stay in the caches. Of two ranks only short ones do.
    pub fn taken(mut self) -> Self {
        self.soon = !self.session.is_pair() || self.span <= self.buffers.short;
        self
    }

    /// Where the buffer for a barrier begins.
    fn place(&self, barrier: u64) -> usize {
        let half = self.buffers.half;
        // Short ones are far from each other: what they cost is not the lines.
        let stride = if self.span < MOVING { BUFFER } else { self.span };
        let (stride, room) = match (self.soon, self.far) {
            (true, true) => (self.span, half.min(AROUND)),
            (true, false) => (stride, stride),
            (false, _) => (stride, half),
        };
        let places = (room / stride).max(1) as u64;
        BUFFERS + half * (barrier % 2) as usize + stride * (barrier / 2 % places) as usize
    }

    /// This rank's buffer for the next barrier.
    pub fn next_buffer(&self) -> Sge {
        self.buffers.mine.local.part(self.place(self.next.get()), self.span)
    }

    /// This rank's buffer of the barrier that has taken place.
    pub fn last_buffer(&self) -> Sge {
        self.buffers.mine.local.part(self.place(self.next.get() - 1), self.span)
    }

    /// Copies `data` in for the next barrier, at byte `offset` of the buffer.
    pub fn copy_in(&self, offset: usize, data: Sge) {
        // Lines that readers take come back by themselves.
        let taken = self.soon && !self.session.is_pair();
        if data.len() >= copies::LEAST && !taken {
            self.ask_a_reader(data.len());
        }
        self.copy(offset, data, !taken && self.copies().is_past(data.len()));
    }

    /// The same for a piece with several readers among others with one, while [`BounceSession::taken`].
    pub fn copy_in_for_all(&self, offset: usize, data: Sge) {
        self.copy(offset, data, self.copies().is_past_far(data.len()));
    }

    fn copy(&self, offset: usize, data: Sge, past: bool) {
        staged::write(self.copies(), self.next_buffer().part(offset, data.len()), data, past);
        let end = offset + data.len();
        self.put.set(match self.put.get() {
            (0, 0) => (offset, end),
            (from, to) => (from.min(offset), to.max(end)),
        });
        self.link.endpoint.fabric().charge(Work::Copy(data.len()));
    }

    /// Hears whether one of the others has read slowly what was copied in, the next one each time.
    fn ask_a_reader(&self, len: usize) {
        let CommBounceBuffers { all, slow, ask, .. } = self.buffers;
        let next = (ask.get() + 1) % all.len();
        ask.set(next);
        let (peer, at) = (self.link.members[next] as usize, all[next].offset(SLOW as u64));
        if next != self.link.rank
            && let Some(word) = self.session.fabric().mapped(peer, at, 8)
        {
            let mut count = [0; 8];
            word.read(&mut count);
            let count = u64::from_ne_bytes(count);
            self.copies().told(len, slow[next].replace(count) != count);
        }
    }

    fn place_of(&self, rank: usize, offset: usize) -> RemoteAddr {
        // Of the barrier that has taken place.
        self.buffers.all[rank].offset((self.place(self.next.get() - 1) + offset) as u64)
    }

    /// Copies what `rank` copied in for the last barrier, from byte `offset` on.
    pub async fn copy_out(&self, rank: usize, offset: usize, into: Sge) -> Result<(), Fault> {
        if into.is_empty() {
            return Ok(());
        }
        if !self.soon && !self.session.is_pair() {
            return self.copy_out_shared(rank, offset, into).await;
        }
        let found = self.found(rank, offset, into).await?;
        if found.ptr() != into.ptr() {
            staged::read(self.copies(), into, found, self.soon);
        }
        Ok(())
    }

    /// The same for a piece with several readers ([`BounceSession::copy_in_for_all`]).
    pub async fn copy_out_shared(
        &self,
        rank: usize,
        offset: usize,
        into: Sge,
    ) -> Result<(), Fault> {
        if into.is_empty() {
            return Ok(());
        }
        let found = self.operand(rank, offset, into).await?;
        if found.ptr() != into.ptr() && staged::read_shared(self.copies(), into, found) {
            let CommBounceBuffers { slow, mine, .. } = self.buffers;
            let count = &slow[self.link.rank];
            count.set(count.get() + 1);
            mine.local.part(SLOW, 8).fill(&count.get().to_ne_bytes());
        }
        Ok(())
    }

    /// The same without a copy where `rank`'s memory is seen here; else in `spare`, whose length it has and which is
    /// written in any case.
    pub async fn operand(&self, rank: usize, offset: usize, spare: Sge) -> Result<Sge, Fault> {
        let found = self.found(rank, offset, spare).await?;
        if found.ptr() != spare.ptr() && (self.soon || self.session.is_pair()) {
            staged::sense(self.copies(), spare, found);
        }
        Ok(found)
    }

    async fn found(&self, rank: usize, offset: usize, spare: Sge) -> Result<Sge, Fault> {
        let (peer, from) = (self.link.members[rank] as usize, self.place_of(rank, offset));
        if let Some(seen) = self.session.fabric().mapped(peer, from, spare.len()) {
            return Ok(seen);
        }
        self.fetch(rank, from, spare).await?;
        Ok(spare)
    }

    /// This rank has read, as the only one, what each other copied in for the last barrier, `len` bytes from byte `offset`
    /// on. Takes the lines if [`BounceSession::taken`], or if of two ranks the other is far away.
    pub fn done_with(&self, offset: usize, len: usize) {
        if len == 0 || !(self.soon || self.session.is_pair() && self.copies().is_far()) {
            return;
        }
        for rank in (0..self.link.size()).filter(|rank| *rank != self.link.rank) {
            let (peer, from) = (self.link.members[rank] as usize, self.place_of(rank, offset));
            if let Some(seen) = self.session.fabric().mapped(peer, from, len) {
                staged::give_back(self.copies(), seen);
            }
        }
    }

    /// Writes over what `rank` copied in for the last barrier, from byte `offset` on.
    pub async fn overwrite(&self, rank: usize, offset: usize, data: Sge) -> Result<(), Fault> {
        self.store(rank, self.place_of(rank, offset), data).await
    }

    async fn store(&self, rank: usize, to: RemoteAddr, data: Sge) -> Result<(), Fault> {
        let peer = self.link.members[rank] as usize;
        self.session.finish(|fabric, done| fabric.write(peer, data, to, done)).await
    }

    async fn fetch(&self, rank: usize, from: RemoteAddr, into: Sge) -> Result<(), Fault> {
        if into.is_empty() {
            return Ok(());
        }
        let peer = self.link.members[rank] as usize;
        self.session.finish(|fabric, done| fabric.read(peer, into, from, done)).await
    }
}
