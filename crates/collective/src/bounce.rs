//! Bounce buffers of the algorithms named SHM, in which ranks read each other's memory.
//!
//! ```text
//!   each rank:  two halves, a buffer in each     small data: copied in, barrier, copied out by the ranks that need them
//!   rank 0:     slots of the area               large data: the slots hold addresses, the data stay
//!                                              where they are and are read there
//! ```
//! A barrier here is the central barrier (`area.rs`): one atomic per rank, and the last rank to arrive releases the
//! others, so that each rank waits once and is woken once. An operation has one or more barriers.
//!
//! Nothing is overwritten unread, for this reason. Data copied in for barrier k (into a buffer, into a slot) are read between
//! barriers k and k + 1. Slots alternate, and so do the halves: barrier k has one half, barrier k + 1 the other. Both are written
//! again, at the earliest, by a rank that has left k + 1. By then all ranks have come to k + 1, and so have read all data that they
//! needed of k. The program's own memory, of which there is one copy, is read between two barriers of the same operation.
//!
//! Halves are larger than buffers, because a line that another processor has just read is slow to write
//! ([`weft_fabric::CopyModel::rewrite`]), while a line that has left all caches except the last level is not. So data are copied in
//! through more memory than these caches hold: a half's buffer moves through the half.
//!
//! If each piece has a single reader, this reader takes the lines after it has read them: it requests each cache line for its
//! processor only, so that the writer gets the line back in one transfer. Then the buffer has one place, and its data stay in the
//! caches ([`BounceSession::taken`]). With two ranks, each is the only reader of the other's buffer, and takes the lines of long
//! data if the other is far away ([`weft_fabric::copies`]).
//!
//! Slots of the area are read after a barrier only if another barrier follows in the same operation: a rank that has left an
//! operation may end the communicator and free the area.
//!
//! A rank may still read a buffer when the operation is complete on other ranks. So each rank publishes, in a word next to
//! its buffers, the last barrier whose buffers it has read. Memory that is no longer needed is parked until all ranks
//! have reached its last barrier ([`weft_p2p::Endpoint::park`]).
//!
//! Memory: two halves of [`BUFFER`] bytes per rank and communicator, 192 KiB, made by the first operation that needs
//! them. The first such communicator of a process has 2.25 MiB per rank, but at most 24 MiB in all. Two ranks work at the
//! same time, in short parts. With more ranks a barrier costs more, so each copies in up to `BUFFER_MOST` bytes per barrier.

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

/// Minimum number of bytes that a rank may copy in for one barrier, on any communicator.
pub const BUFFER: usize = 96 << 10;

/// Maximum number of bytes per rank and barrier with more than two ranks: six times [`BUFFER`], so that the data of seven ranks fit
/// a usual last-level cache.
const BUFFER_MOST: usize = 576 << 10;

/// Maximum number of bytes per rank and barrier with two ranks if lines are not taken back ([`Copies::writes_anew`]). Parts that
/// stay in the first-level caches gain nothing then, so longer parts save barriers.
const BUFFER_ANEW: usize = 256 << 10;

/// Maximum number of bytes of both halves in the communicator with the large buffers: per rank (more than its private caches hold),
/// and for all ranks together.
const MOST: usize = 24 * BUFFER;
const MOST_OF_ALL: usize = 24 << 20;

/// Maximum size in bytes of an element of a reduction. Reductions cut payloads only between elements.
pub const UNIT_MOST: usize = 1024;

/// Bytes of a region's name (its remote address) in a buffer.
pub const NAME: usize = 8 * RemoteAddr::WORDS;

/// Number of bytes of a half through which short buffers rotate if two ranks are far from each other. A first-level cache holds
/// less, so that a line has left the reader's cache before it is written again.
const AROUND: usize = 128 << 10;

/// Alignment in bytes of moving buffers, and minimum size in bytes of a buffer that moves by its own length.
const STEP: usize = 256;
const MOVING: usize = 4 << 10;

/// Returns the maximum length, in bytes, of copied data whose lines the reader takes if there are two ranks. First-level caches
/// hold this much next to the program's data. If lines that come back are expensive, a quarter of this length.
fn short(copies: &Copies) -> usize {
    if copies.writes_anew() { pipelined::SHORT / 4 } else { pipelined::SHORT }
}

/// Returns the maximum length in bytes, a multiple of `unit`, of a segment of a payload. The segment fits in a buffer of `buffer`
/// bytes, together with one rank's slice of the segment, which starts at the next line behind the segment.
pub fn segment(buffer: usize, unit: usize) -> usize {
    let unit = unit.max(1);
    (buffer / 3 * 2 - 4 * UNIT_MOST) / unit * unit
}

// Half of a segment, rounded up to elements and to lines, fits behind the segment.
const _: () =
    assert!(BUFFER / 3 * 2 - 4 * UNIT_MOST + 64 + BUFFER / 3 - 2 * UNIT_MOST + UNIT_MOST <= BUFFER);

/// Offsets in bytes: of the word with the last barrier whose buffers were read (the stamp follows), of the word with the number of
/// slow copies (in a line of its own), and of the buffers.
const READ: usize = 0;
const SLOW: usize = 64;
const BUFFERS: usize = 256;

/// The buffers of a communicator, made by the first operation that needs them.
pub(crate) struct BounceBuffers<F: Fabric> {
    made: OnceCell<Box<CommBounceBuffers<F>>>,
    /// True if an operation that makes the buffers has been started.
    begun: Cell<bool>,
    /// True as long as no communicator of the process has taken the large buffers.
    many: Rc<Cell<bool>>,
}

impl<F: Fabric> BounceBuffers<F> {
    pub fn new(many: Rc<Cell<bool>>) -> Self {
        BounceBuffers { made: OnceCell::new(), begun: Cell::new(false), many }
    }
}

/// Use of the buffers by one operation.
pub struct BounceSession<'b, F: Fabric> {
    pub(crate) link: &'b CommView<F>,
    session: AreaSession<'b, F>,
    buffers: &'b CommBounceBuffers<F>,
    /// True if each piece has a single reader. The reader takes the lines, which are written again soon.
    soon: bool,
    /// Maximum number of bytes that a rank copies in for a barrier.
    span: usize,
    /// True if there are two ranks, and they are known to be far from each other.
    far: bool,
    /// Start and end of the range that this rank has copied in for the next barrier; `next` is that barrier's number.
    put: Cell<(usize, usize)>,
    next: Cell<u64>,
}

impl<F: Fabric> Drop for BounceSession<'_, F> {
    fn drop(&mut self) {
        let last = self.next.get() - 1;
        self.buffers.read.set(last);
        // Orders all reads of the buffers before the store that publishes them as done.
        std::sync::atomic::fence(std::sync::atomic::Ordering::Release);
        self.buffers.mine.local.part(READ, 8).fill(&last.to_ne_bytes());
    }
}

impl<F: Fabric> BounceBuffers<F> {
    /// Returns the buffer length: see [`crate::ReleaseGather::buffer_len`].
    pub async fn len(&self, area: &Area<F>, link: &CommView<F>) -> Result<usize, Fault> {
        let CommBounceBuffers { half, short, .. } = *self.made(area, link).await?;
        Ok(match link.size() {
            2 if short < pipelined::SHORT => half.min(BUFFER_ANEW),
            2 => BUFFER,
            _ => half.min(BUFFER_MOST),
        })
    }

    /// Returns the buffer length for a block: see [`crate::ReleaseGather::buffer_len_for`].
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

    /// Waits for this rank's turn: see [`crate::ReleaseGather::bounce`].
    pub async fn enter<'b>(
        &'b self,
        area: &'b Area<F>,
        link: &'b CommView<F>,
        barriers: u64,
        span: usize,
    ) -> Result<BounceSession<'b, F>, Fault> {
        // Set before the first await. All ranks start their operations in the same order, so all agree on the operation
        // that makes the buffers.
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
                    // If operations may overlap, later operations have already begun and expect the buffers. They fail as well.
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

    /// Runs a barrier: no rank goes on before all ranks have come.
    pub async fn barrier(&self) -> Result<(), Fault> {
        self.barrier_while(|| ()).await
    }

    /// Runs a barrier, and `work` on this rank while the barrier is under way. With two ranks, this rank's arrival is posted before
    /// this function returns: to build a future first may make the processor wait until all its earlier stores are written.
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

    /// Runs a barrier in which the last rank to arrive runs `last` before it releases the others.
    pub async fn barrier_after(
        &self,
        last: impl AsyncFnOnce() -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let epoch = self.next.get();
        if !self.session.arrive(self.link, epoch).await? {
            self.next.set(epoch + 1);
            return self.session.await_release(epoch, Sge::EMPTY).await;
        }
        // `last` accesses the buffers of this barrier, so this barrier counts as past.
        self.next.set(epoch + 1);
        last().await?;
        self.session.release(self.link, epoch, Sge::EMPTY).await
    }

    /// Declares that each piece copied in has a single reader, which takes its lines ([`BounceSession::copy_out`],
    /// [`BounceSession::done_with`]). Two buffers are enough then, and they stay in the caches. With two ranks this applies to
    /// short buffers only.
    pub fn taken(mut self) -> Self {
        self.soon = !self.session.is_pair() || self.span <= self.buffers.short;
        self
    }

    /// Returns the offset of the buffer for `barrier`.
    fn place(&self, barrier: u64) -> usize {
        let half = self.buffers.half;
        // Buffers shorter than MOVING lie far apart, because the lines do not dominate their cost.
        let stride = if self.span < MOVING { BUFFER } else { self.span };
        let (stride, room) = match (self.soon, self.far) {
            (true, true) => (self.span, half.min(AROUND)),
            (true, false) => (stride, stride),
            (false, _) => (stride, half),
        };
        let places = (room / stride).max(1) as u64;
        BUFFERS + half * (barrier % 2) as usize + stride * (barrier / 2 % places) as usize
    }

    /// Returns this rank's buffer for the next barrier.
    pub fn next_buffer(&self) -> Sge {
        self.buffers.mine.local.part(self.place(self.next.get()), self.span)
    }

    /// Returns this rank's buffer of the last barrier.
    pub fn last_buffer(&self) -> Sge {
        self.buffers.mine.local.part(self.place(self.next.get() - 1), self.span)
    }

    /// Copies `data` in for the next barrier, at byte `offset` of the buffer.
    pub fn copy_in(&self, offset: usize, data: Sge) {
        // If readers take the lines, the lines come back by themselves, so no reader is asked.
        let taken = self.soon && !self.session.is_pair();
        if data.len() >= copies::LEAST && !taken {
            self.ask_a_reader(data.len());
        }
        self.copy(offset, data, !taken && self.copies().is_past(data.len()));
    }

    /// Copies in a piece that has several readers, in a session in which other pieces have one reader ([`BounceSession::taken`]).
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

    /// Asks one of the other ranks, the next rank each time, whether it was slow to read the data copied in.
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
        // The place of the last barrier's buffer.
        self.buffers.all[rank].offset((self.place(self.next.get() - 1) + offset) as u64)
    }

    /// Copies the piece that `rank` copied in for the last barrier, from byte `offset` on.
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

    /// Copies a piece that has several readers ([`BounceSession::copy_in_for_all`]).
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

    /// Returns the piece in place if `rank`'s memory is mapped in this process; otherwise reads it into `spare`. `spare` has the
    /// length of the piece, and may be overwritten in both cases.
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

    /// Declares that this rank, as the only reader, has read `len` bytes, from byte `offset` on, of the data that each other rank
    /// copied in for the last barrier. Takes the lines after [`BounceSession::taken`], or if there are two ranks far from each
    /// other.
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

    /// Overwrites the data that `rank` copied in for the last barrier, from byte `offset` on.
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
