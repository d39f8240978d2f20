//! Bounce buffers of the SHM algorithms, in which ranks read each other's memory.
//!
//! ```text
//!   each rank:  two halves, a buffer in each     small data: copied in, barrier, copied out by the ranks that need them
//!   rank 0:     slots of the area               large data: the slots hold addresses, the data stay
//!                                              where they are and are read there
//! ```
//! All barriers here are central barriers (`area.rs`). Each rank posts one atomic, and the last rank to arrive releases the others.
//! So each rank waits once and is woken once. An operation has one or more barriers.
//!
//! No data are overwritten before they are read, for the following reason. Data copied in for barrier k (into a buffer, into a
//! slot) are read between barriers k and k + 1. Slots alternate, and so do the halves: barrier k has one half, barrier k + 1 the
//! other half. These places are written again, at the earliest, by a rank that has left barrier k + 1. By then all ranks have
//! arrived at k + 1, and so have read all data of barrier k that they needed. The program's own memory does not alternate, so it is
//! read between two barriers of the same operation.
//!
//! A buffer moves within its half, because a line that another processor has just read is slow to write
//! ([`weft_fabric::CopyModel::rewrite`]). A line that the other processor has read some time ago is not slow. Short buffers move
//! through `AROUND` bytes of each half. This is more than a first-level cache holds, so that lines have left the reader's cache. It
//! is less than a second-level cache holds, so that the program's data stay there. The first operations of a length move through
//! two places of each half, because each page that is used for the first time costs more than a line that is slow to write. After
//! `MANY` operations the pages of `AROUND` bytes are provided at once (`memory.rs`), and buffers of this length move through them.
//! Two places of longer buffers are more than a first-level cache holds, so that these buffers always move through two places.
//!
//! If each piece has a single reader, this reader takes the lines after it has read them: it requests each cache line for exclusive
//! use by its processor, so that the writer gets the line back in one transfer. Then the buffer does not move, and its data stay in
//! the caches ([`BounceSession::taken`]). With two ranks, each rank is the only reader of the other rank's buffer. A rank takes the
//! lines of long data if the other rank is far away ([`weft_fabric::copies`]).
//!
//! Slots of the area are read after a barrier only if another barrier follows in the same operation, because a rank that has left
//! an operation may end the communicator and free the area.
//!
//! A rank may still read a buffer after the operation is complete on other ranks. So each rank publishes, in a word next to its
//! buffers, the last barrier whose buffers it has read. Memory that is no longer needed is parked until all ranks have reached its
//! last barrier ([`weft_p2p::Endpoint::park`]).
//!
//! Memory: two halves of [`BUFFER`] bytes per rank and communicator, 192 KiB, made by the first operation that needs them. The
//! first communicator of a process that needs buffers gets 1.1 MiB per rank, but at most 24 MiB in all. Two ranks work at the same
//! time, in short parts. With more ranks a barrier costs more, so each rank copies in up to `BUFFER_MOST` bytes per barrier.

mod exposed;
mod memory;

pub use exposed::ExposedPieces;
use memory::{CommBounceBuffers, MAKING};

use crate::CommView;
use crate::address_exchange::no_memory;
use crate::area::{Area, AreaSession};
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use weft_fabric::{
    CacheDistance, Copies, Fabric, FabricExt, Fault, RemoteAddr, RemoteRead, Sge, Work, copies,
};
use weft_intranode::{pipelined, staged};

/// Minimum number of bytes that a rank may copy in for one barrier, on any communicator.
pub const BUFFER: usize = 96 << 10;

/// Maximum number of bytes per rank and barrier with more than two ranks: six times [`BUFFER`], so that the data of seven ranks fit
/// a usual last-level cache.
const BUFFER_MOST: usize = 576 << 10;

/// Maximum number of bytes per rank and barrier with two ranks if data are written to other lines each time
/// ([`Copies::writes_anew`]). Then parts need not stay in the first-level caches, and longer parts save barriers.
const BUFFER_ANEW: usize = 256 << 10;

/// Maximum number of bytes of both halves in the communicator with the large buffers. `MOST` is the maximum per rank, and
/// `MOST_OF_ALL` is the maximum for all ranks together.
const MOST: usize = 2 * BUFFER_MOST;
const MOST_OF_ALL: usize = 24 << 20;

/// Maximum size in bytes of an element of a reduction. Reductions cut payloads only between elements.
pub const UNIT_MOST: usize = 1024;

/// Size in bytes of a region's name (its remote address) in a buffer.
pub const NAME: usize = 8 * RemoteAddr::WORDS;

/// Number of bytes of a half through which short buffers rotate. A first-level cache holds less, so that a line has left the
/// reader's cache before it is written again. A second-level cache holds the halves of two ranks.
const AROUND: usize = 128 << 10;

/// Alignment in bytes of moving buffers.
const STEP: usize = 256;
/// Minimum distance in bytes between two places of a moving buffer whose lines the reader does not take. If the buffer is longer,
/// the distance is its own length.
const MOVING: usize = 4 << 10;
/// Number of bytes of a half through which a moving buffer shorter than `MOVING` moves, if the reader does not take its lines. The
/// number is small, so that such buffers use few pages. Lines that are slow to write are only a small part of the cost of such
/// buffers.
const SMALL_AROUND: usize = 8 * MOVING;

/// Number of operations with buffers of similar length after which these buffers move through more than two places of each half. It is
/// less than ten: a call that follows ten similar calls takes no page fault and no system call, because all pages are provided by then.
const MANY: u32 = 7;

/// Minimum length in bytes of buffers that always move through two places of each half.
const LONG: usize = AROUND / 4;

/// Returns the maximum length, in bytes, of copied data whose lines the reader takes if there are two ranks. First-level caches
/// hold this length and some of the program's data. If lines that come back are expensive, returns a sixteenth of this length. All
/// longer data are written to other lines.
fn short(copies: &Copies) -> usize {
    if copies.writes_anew() { pipelined::SHORT / 16 } else { pipelined::SHORT }
}

/// Returns the maximum length in bytes of a segment of a payload, a multiple of `unit`. A buffer of `buffer` bytes has room for the
/// segment and, from the next line on, for one rank's slice of the segment.
pub fn segment(buffer: usize, unit: usize) -> usize {
    let unit = unit.max(1);
    (buffer / 3 * 2 - 4 * UNIT_MOST) / unit * unit
}

// Behind a segment there is room for half of the segment, rounded up to elements and to lines.
const _: () =
    assert!(BUFFER / 3 * 2 - 4 * UNIT_MOST + 64 + BUFFER / 3 - 2 * UNIT_MOST + UNIT_MOST <= BUFFER);

/// Offsets in bytes of the parts of a rank's memory. `READ`: the word with the last barrier whose buffers were read, followed by
/// the stamp. `SLOW`: the word with the number of slow copies, in a separate line. `BUFFERS`: the buffers.
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
    /// Number of operations by the length of their buffers in bytes: element `i` counts lengths of `i` bits.
    operations: [Cell<u32>; LENGTH_BITS],
}

/// Number of elements of [`BounceBuffers::operations`]. The last element also counts all longer buffers.
const LENGTH_BITS: usize = 24;

impl<F: Fabric> BounceBuffers<F> {
    pub fn new(many: Rc<Cell<bool>>) -> Self {
        let operations = Default::default();
        BounceBuffers { made: OnceCell::new(), begun: Cell::new(false), many, operations }
    }
}

/// Use of the buffers by one operation.
pub struct BounceSession<'b, F: Fabric> {
    pub(crate) link: &'b CommView<F>,
    session: AreaSession<'b, F>,
    buffers: &'b CommBounceBuffers<F>,
    /// True if each piece has a single reader, and the reader takes the lines because they are written again soon.
    soon: bool,
    /// Maximum number of bytes that a rank copies in for a barrier.
    span: usize,
    /// Number of this operation among operations with buffers of similar length, from 1 on; 0 if no data are copied in.
    nth: u32,
    /// True if there are two ranks, and they are known to be far from each other.
    far: bool,
    /// Start and end of the range that this rank has copied in for the next barrier, and the number of this barrier (`next`).
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
        let around = self.far_around();
        // Buffers that do not move far have pages to provide as well: another operation between them may have an odd number of
        // barriers, so that they change to places that they have not used.
        if self.nth >= MANY - 1 && around > self.buffers.ready.get() {
            self.buffers.prepare(&self.session, around, self.nth);
        }
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
        let long = link.size() == 2 && block > 2 * area.model(link.endpoint.fabric()).private;
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
        // Set before the first await. All ranks start their operations in the same order, so the same operation makes the buffers
        // on all ranks.
        let first = !self.begun.replace(true);
        let bits = (usize::BITS - span.leading_zeros()) as usize;
        let operations = &self.operations[bits.min(LENGTH_BITS - 1)];
        let nth = if span == 0 { 0 } else { operations.get().saturating_add(1) };
        operations.set(nth);
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
                    // If operations may overlap, later operations already wait for the buffers. These operations fail as well.
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
        Ok(BounceSession { link, session, buffers, soon: false, span, nth, far, put, next })
    }
}

impl<F: Fabric> BounceSession<'_, F> {
    fn copies(&self) -> &Copies {
        self.link.endpoint.fabric().copies()
    }

    fn take_number(&self) -> u64 {
        self.next.replace(self.next.get() + 1)
    }

    /// Runs a barrier: no rank continues before all ranks have arrived.
    pub async fn barrier(&self) -> Result<(), Fault> {
        self.barrier_while(|| ()).await
    }

    /// Runs a barrier, and `work` on this rank while the barrier is under way. With two ranks, this rank's arrival is posted before
    /// this function returns. If a future were built first, the processor might wait until all its earlier stores are written.
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
        // `last` accesses the buffers of this barrier, so `next` must already be beyond this barrier.
        self.next.set(epoch + 1);
        last().await?;
        self.session.release(self.link, epoch, Sge::EMPTY).await
    }

    /// Declares that each piece copied in has a single reader, which takes the piece's lines ([`BounceSession::copy_out`],
    /// [`BounceSession::done_with`]). Two buffers are enough then, and the buffers stay in the caches. With two ranks this applies
    /// to short buffers only.
    pub fn taken(mut self) -> Self {
        self.soon = !self.session.is_pair() || self.span <= self.buffers.short;
        self
    }

    /// Returns the number of bytes of each half through which the buffer moves. The result is the same on all ranks, because all
    /// ranks start their operations in the same order.
    fn around(&self) -> usize {
        match self.nth > MANY {
            true => self.far_around(),
            false => self.far_around().min(2 * self.span.max(MOVING)),
        }
    }

    /// Returns true if the buffer moves through fewer bytes than after many operations. Then slow lines do not count, because they
    /// would make near caches seem far.
    fn is_narrow(&self) -> bool {
        self.nth <= MANY && !self.soon && self.around() < self.far_around()
    }

    /// Returns the number of bytes of each half through which the buffer moves after many operations.
    fn far_around(&self) -> usize {
        let half = self.buffers.half;
        match (self.soon, self.far) {
            (true, false) => self.span,
            (false, _) if self.span < MOVING && half > BUFFER => SMALL_AROUND,
            (false, _) if self.span < MOVING => self.span,
            (true, true) | (false, _) if self.span < LONG => half.min(AROUND),
            (true, true) | (false, _) => half.min(AROUND).min(2 * self.span),
        }
    }

    /// Returns the offset of the buffer for `barrier`.
    fn place(&self, barrier: u64) -> usize {
        let stride = if self.soon { self.span } else { self.span.max(MOVING) };
        let places = (self.around() / stride).max(1) as u64;
        BUFFERS
            + self.buffers.half * (barrier % 2) as usize
            + stride * (barrier / 2 % places) as usize
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
        // If readers take the lines, the lines come back by themselves, so no reader needs to be asked about slow copies.
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
        self.link.endpoint.fabric().charge(Work::Stage(data.len()));
    }

    /// Asks another rank if it was slow to read the copied data. Each call asks the next rank.
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
            match self.is_narrow() {
                true => into.copy_from(found),
                false => staged::read(self.copies(), into, found, self.soon),
            }
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
        if found.ptr() != into.ptr() && self.is_narrow() {
            into.copy_from(found);
        } else if found.ptr() != into.ptr() && staged::read_shared(self.copies(), into, found) {
            let CommBounceBuffers { slow, mine, .. } = self.buffers;
            let count = &slow[self.link.rank];
            count.set(count.get() + 1);
            mine.local.part(SLOW, 8).fill(&count.get().to_ne_bytes());
        }
        Ok(())
    }

    /// Returns the piece in place if `rank`'s memory is mapped in this process. Otherwise reads the piece into `spare`. `spare` has
    /// the length of the piece, and may be overwritten in both cases.
    pub async fn operand(&self, rank: usize, offset: usize, spare: Sge) -> Result<Sge, Fault> {
        let found = self.found(rank, offset, spare).await?;
        let senses = (self.soon || self.session.is_pair()) && !self.is_narrow();
        if found.ptr() != spare.ptr() && senses {
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

    async fn fetch(&self, rank: usize, from: RemoteAddr, into: Sge) -> Result<(), Fault> {
        if into.is_empty() {
            return Ok(());
        }
        let peer = self.link.members[rank] as usize;
        self.session
            .finish(|fabric, done| fabric.read(peer, &RemoteRead::new(into, from, done)))
            .await
    }
}
