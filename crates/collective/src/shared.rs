//! Ranks that read each other's memory: where the algorithms named SHM meet.
//!
//! ```text
//!   each rank:  two halves, a desk in each     small data: put down, met, read by whom they concern
//!   rank 0:     slots of the board             large data: the slots hold addresses, the data stay
//!                                              where they are and are read there
//! ```
//! A meeting is a central barrier ([`crate::Board`]): one atomic a rank, and the last to arrive lets the
//! others go, so that each rank waits once and is woken once. An operation has one or more meetings.
//!
//! Why nothing is overwritten unread. What is put down for meeting k (a desk, a slot) is read between
//! meetings k and k + 1. Slots alternate; so do the halves, of which meeting k has one and k + 1 the other. Both are
//! written again, at the earliest, by a rank that has left k + 1, when all have come to k + 1 and so have read what
//! they needed of k. The program's own memory, of which there is one, is read between two meetings of one
//! operation.
//!
//! Why halves are larger than desks: a line that another processor has read a moment ago is slow to write
//! ([`weft_fabric::CopyModel::rewrite`]), one that has left the caches above the last is not. So what is put down goes through
//! more memory than those caches have: a half's desk moves through it.
//!
//! Where each piece has one reader, that takes its lines when it has read them, so that they come back in one transfer;
//! then the desk has one place, and what is put down stays in the caches ([`Hall::taken`]). Of two ranks each is the only reader of
//! the other's desk, and takes the lines of long data if it is far away ([`weft_fabric::copies`]).
//!
//! Slots of the board are read after a meeting only where another meeting follows in the same operation: whoever has left an
//! operation may end the communicator and give the board back.
//!
//! Reads of a desk may go on when their operation is over elsewhere. So each rank says in a word beside its
//! desks which meeting's it has read, and memory that is not needed any more stays aside until all ranks are
//! that far ([`weft_p2p::Endpoint::park`]).
//!
//! Memory: two halves of [`DESK`] bytes a rank and communicator, 192 KiB, made by the first operation on it that
//! needs them; the first communicator of a process has 2.25 MiB a rank, or what 24 MiB have for each. Two ranks work at
//! once and in short parts; more put down up to [`DESK_MOST`] at once, since to them a meeting costs more.

mod made;
mod shown;

use made::{MAKING, Made};
pub use shown::Shown;

use crate::board::Visit;
use crate::said::no_memory;
use crate::{Board, Link};
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use weft_fabric::{Copies, Distance, Fabric, Fault, RemoteAddr, Sge, Work, copies};
use weft_intranode::{pipelined, staged};

/// Bytes that a rank may put down for one meeting, at least.
pub const DESK: usize = 96 << 10;

/// The same at most, whatever the memory: six desks, so that what seven ranks put down is in a last-level cache of usual size.
const DESK_MOST: usize = 576 << 10;

/// The same of two ranks where lines are not taken back ([`Copies::writes_anew`]): fewer meetings, as nothing is gained by parts
/// that stay in the first caches.
const DESK_ANEW: usize = 256 << 10;

/// Bytes of a rank's memory in the communicator that has most, more than a processor's own caches; and of all ranks'.
const MOST: usize = 24 * DESK;
const MOST_OF_ALL: usize = 24 << 20;

/// The largest elements, in bytes, that reductions cut a payload between.
pub const UNIT_MOST: usize = 1024;

/// Bytes of a region's name on a desk.
pub const NAME: usize = 8 * RemoteAddr::WORDS;

/// So many bytes of a half do short desks go round between two ranks that are far from each other: more than first-level
/// caches have, which what is read has left by the time that it is written again.
const AROUND: usize = 128 << 10;

/// Desks move by so many bytes, and those of at least [`MOVING`].
const STEP: usize = 256;
const MOVING: usize = 4 << 10;

/// Bytes up to which the reader of two ranks takes the lines of what was put down: what first-level caches hold beside the
/// program's, and a quarter of that where lines that come back cost much.
fn short(copies: &Copies) -> usize {
    if copies.writes_anew() { pipelined::SHORT / 4 } else { pipelined::SHORT }
}

/// The largest part of a payload, in elements of `unit` bytes, that fits on a `desk` of so many bytes with one rank's
/// slice of it behind, from the next line on.
pub fn segment(desk: usize, unit: usize) -> usize {
    let unit = unit.max(1);
    (desk / 3 * 2 - 4 * UNIT_MOST) / unit * unit
}

// Half of a segment, rounded up to elements and to lines, fits behind it.
const _: () =
    assert!(DESK / 3 * 2 - 4 * UNIT_MOST + 64 + DESK / 3 - 2 * UNIT_MOST + UNIT_MOST <= DESK);

/// Where the word with the last meeting read is; the stamp follows, and in a further line the word with the number of slow
/// copies; then the desks.
const READ: usize = 0;
const SLOW: usize = 64;
const DESKS: usize = 256;

/// The desks of a communicator, or the place for them.
pub(crate) struct Desks<F: Fabric> {
    made: OnceCell<Made<F>>,
    /// An operation that makes them has been started.
    begun: Cell<bool>,
    /// Whether a communicator of the process may still have many.
    many: Rc<Cell<bool>>,
}

impl<F: Fabric> Desks<F> {
    pub fn new(many: Rc<Cell<bool>>) -> Self {
        Desks { made: OnceCell::new(), begun: Cell::new(false), many }
    }
}

/// One operation's time with the desks.
pub struct Hall<'b, F: Fabric> {
    pub(crate) link: &'b Link<F>,
    turn: Visit<'b, F>,
    desks: &'b Made<F>,
    /// Each piece has one reader, who takes its lines: they are written again soon.
    soon: bool,
    /// Bytes that a rank puts down for a meeting at most.
    span: usize,
    /// Of two ranks, each is found to be far from the other.
    far: bool,
    /// From where to where this rank has put something down for the next meeting, and its number.
    put: Cell<(usize, usize)>,
    next: Cell<u64>,
}

impl<F: Fabric> Drop for Hall<'_, F> {
    fn drop(&mut self) {
        let last = self.next.get() - 1;
        self.desks.read.set(last);
        // What was read has been read before this can be seen.
        std::sync::atomic::fence(std::sync::atomic::Ordering::Release);
        self.desks.mine.local.part(READ, 8).fill(&last.to_ne_bytes());
    }
}

impl<F: Fabric> Board<F> {
    /// Bytes that a rank may put down for one meeting: [`DESK`] and more. All find the same. The first question is asked of
    /// all ranks at once.
    pub async fn desk(&self, link: &Link<F>) -> Result<usize, Fault> {
        let Made { half, short, .. } = *self.desks(link).await?;
        Ok(match link.size() {
            2 if short < pipelined::SHORT => half.min(DESK_ANEW),
            2 => DESK,
            _ => half.min(DESK_MOST),
        })
    }

    /// The same where two ranks put down blocks of so many bytes each: long ones are out of the caches all the same, and go in
    /// the shortest parts.
    pub async fn desk_for(&self, link: &Link<F>, block: usize) -> Result<usize, Fault> {
        let desk = self.desk(link).await?;
        let long = link.size() == 2 && block > 2 * self.model(link).private;
        Ok(if long { desk.min(DESK) } else { desk })
    }

    async fn desks<'b>(&'b self, link: &'b Link<F>) -> Result<&'b Made<F>, Fault> {
        match self.desks.made.get() {
            Some(made) => Ok(made),
            None => Ok(self.hall(link, 0, 0).await?.desks),
        }
    }

    /// Waits for this rank's turn, for an operation of so many meetings, for each of which a rank puts down
    /// at most `span` bytes: all ranks say the same.
    pub(crate) async fn hall<'b>(
        &'b self,
        link: &'b Link<F>,
        meetings: u64,
        span: usize,
    ) -> Result<Hall<'b, F>, Fault> {
        // Said before anything is awaited: all ranks start their operations in one order.
        let first = !self.desks.begun.replace(true);
        let far = link.size() == 2 && self.distance(link) == Distance::Apart;
        let making = if first { MAKING } else { 0 };
        let (turn, epoch) = self.enter_for(link, making + meetings).await?;
        let next = Cell::new(epoch);
        if first {
            let many = self.desks.many.take();
            match Made::make(link, &turn, epoch, many).await? {
                Some(made) => {
                    next.set(epoch + MAKING);
                    let _ = self.desks.made.set(made);
                }
                None => {
                    // Others have begun already where they do not wait for each other: they fail as well.
                    self.desks.begun.set(!self.is_in_turn());
                    self.desks.many.set(many);
                    turn.end_early(link, epoch + MAKING, meetings).await?;
                    return Err(no_memory());
                }
            }
        }
        let Some(desks) = self.desks.made.get() else {
            turn.end_early(link, epoch, meetings).await?;
            return Err(no_memory());
        };
        let span = span.max(1).next_multiple_of(STEP).min(desks.half);
        let put = Cell::default();
        Ok(Hall { link, turn, desks, soon: false, span, far, put, next })
    }
}

impl<F: Fabric> Hall<'_, F> {
    fn copies(&self) -> &Copies {
        self.link.endpoint.fabric().copies()
    }

    fn take_number(&self) -> u64 {
        self.next.replace(self.next.get() + 1)
    }

    /// Everybody comes, then everybody goes on.
    pub async fn meet(&self) -> Result<(), Fault> {
        self.meet_while(|| ()).await
    }

    /// The same with something that this rank does beside it. Of two ranks, it has come when this returns: a future that
    /// says so later is first put together, for which the processor may have to wait until all it wrote is written.
    #[inline]
    pub fn meet_while<W: FnOnce()>(
        &self,
        work: W,
    ) -> impl Future<Output = Result<(), Fault>> + use<'_, F, W> {
        let (epoch, (start, end)) = (self.take_number(), self.put.take());
        let put = self.desk_met().part(start, end - start);
        let said = self.turn.is_pair().then(|| self.turn.say(self.link, epoch, Sge::EMPTY));
        async move {
            if let Some(flag) = said {
                let flag = flag?;
                staged::told_of(self.copies(), put);
                work();
                return self.turn.hear(flag, epoch).await;
            }
            self.turn.meet(self.link, epoch).await?;
            work();
            Ok(())
        }
    }

    /// A meeting for which the last to arrive does something before it lets the others go.
    pub async fn meet_after(
        &self,
        last: impl AsyncFnOnce() -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let epoch = self.next.get();
        if !self.turn.arrive(self.link, epoch).await? {
            self.next.set(epoch + 1);
            return self.turn.await_release(epoch, Sge::EMPTY).await;
        }
        // What runs now looks at the desks of this meeting.
        self.next.set(epoch + 1);
        last().await?;
        self.turn.release(self.link, epoch, Sge::EMPTY).await
    }

    /// Each piece that is put down has one reader, who takes its lines ([`Hall::look`], [`Hall::done_with`]): two desks are
    /// enough then, which stay in the caches. Of two ranks only short ones do.
    pub fn taken(mut self) -> Self {
        self.soon = !self.turn.is_pair() || self.span <= self.desks.short;
        self
    }

    /// Where the desk for a meeting begins.
    fn place(&self, meeting: u64) -> usize {
        let half = self.desks.half;
        // Short ones are far from each other: what they cost is not the lines.
        let stride = if self.span < MOVING { DESK } else { self.span };
        let (stride, room) = match (self.soon, self.far) {
            (true, true) => (self.span, half.min(AROUND)),
            (true, false) => (stride, stride),
            (false, _) => (stride, half),
        };
        let places = (room / stride).max(1) as u64;
        DESKS + half * (meeting % 2) as usize + stride * (meeting / 2 % places) as usize
    }

    /// This rank's desk for the next meeting.
    pub fn desk(&self) -> Sge {
        self.desks.mine.local.part(self.place(self.next.get()), self.span)
    }

    /// This rank's desk of the meeting that has taken place.
    pub fn desk_met(&self) -> Sge {
        self.desks.mine.local.part(self.place(self.next.get() - 1), self.span)
    }

    /// Puts `data` down for the next meeting, at byte `offset` of the desk.
    pub fn put(&self, offset: usize, data: Sge) {
        // Lines that readers take come back by themselves.
        let taken = self.soon && !self.turn.is_pair();
        if data.len() >= copies::LEAST && !taken {
            self.ask_a_reader(data.len());
        }
        self.copy(offset, data, !taken && self.copies().is_past(data.len()));
    }

    /// The same for a piece with several readers among others with one, while [`Hall::taken`].
    pub fn put_for_all(&self, offset: usize, data: Sge) {
        self.copy(offset, data, self.copies().is_past_far(data.len()));
    }

    fn copy(&self, offset: usize, data: Sge, past: bool) {
        staged::write(self.copies(), self.desk().part(offset, data.len()), data, past);
        let end = offset + data.len();
        self.put.set(match self.put.get() {
            (0, 0) => (offset, end),
            (from, to) => (from.min(offset), to.max(end)),
        });
        self.link.endpoint.fabric().charge(Work::Copy(data.len()));
    }

    /// Hears whether one of the others has read slowly what was put down, the next one each time.
    fn ask_a_reader(&self, len: usize) {
        let Made { all, slow, ask, .. } = self.desks;
        let next = (ask.get() + 1) % all.len();
        ask.set(next);
        let (peer, at) = (self.link.members[next] as usize, all[next].offset(SLOW as u64));
        if next != self.link.rank
            && let Some(word) = self.turn.fabric().mapped(peer, at, 8)
        {
            let mut count = [0; 8];
            word.read(&mut count);
            let count = u64::from_ne_bytes(count);
            self.copies().told(len, slow[next].replace(count) != count);
        }
    }

    fn desk_of(&self, rank: usize, offset: usize) -> RemoteAddr {
        // Of the meeting that has taken place.
        self.desks.all[rank].offset((self.place(self.next.get() - 1) + offset) as u64)
    }

    /// Copies what `rank` put down for the last meeting, from byte `offset` on.
    pub async fn look(&self, rank: usize, offset: usize, into: Sge) -> Result<(), Fault> {
        if into.is_empty() {
            return Ok(());
        }
        if !self.soon && !self.turn.is_pair() {
            return self.look_with_others(rank, offset, into).await;
        }
        let found = self.found(rank, offset, into).await?;
        if found.ptr() != into.ptr() {
            staged::read(self.copies(), into, found, self.soon);
        }
        Ok(())
    }

    /// The same for a piece with several readers ([`Hall::put_for_all`]).
    pub async fn look_with_others(
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
            let Made { slow, mine, .. } = self.desks;
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
        if found.ptr() != spare.ptr() && (self.soon || self.turn.is_pair()) {
            staged::sense(self.copies(), spare, found);
        }
        Ok(found)
    }

    async fn found(&self, rank: usize, offset: usize, spare: Sge) -> Result<Sge, Fault> {
        let (peer, from) = (self.link.members[rank] as usize, self.desk_of(rank, offset));
        if let Some(seen) = self.turn.fabric().mapped(peer, from, spare.len()) {
            return Ok(seen);
        }
        self.fetch(rank, from, spare).await?;
        Ok(spare)
    }

    /// This rank has read, as the only one, what each other put down for the last meeting, `len` bytes from byte `offset`
    /// on. Takes the lines if [`Hall::taken`], or if of two ranks the other is far away.
    pub fn done_with(&self, offset: usize, len: usize) {
        if len == 0 || !(self.soon || self.turn.is_pair() && self.copies().is_far()) {
            return;
        }
        for rank in (0..self.link.size()).filter(|rank| *rank != self.link.rank) {
            let (peer, from) = (self.link.members[rank] as usize, self.desk_of(rank, offset));
            if let Some(seen) = self.turn.fabric().mapped(peer, from, len) {
                staged::give_back(self.copies(), seen);
            }
        }
    }

    /// Writes over what `rank` put down for the last meeting, from byte `offset` on.
    pub async fn overwrite(&self, rank: usize, offset: usize, data: Sge) -> Result<(), Fault> {
        self.store(rank, self.desk_of(rank, offset), data).await
    }

    async fn store(&self, rank: usize, to: RemoteAddr, data: Sge) -> Result<(), Fault> {
        let peer = self.link.members[rank] as usize;
        self.turn.finish(|fabric, done| fabric.write(peer, data, to, done)).await
    }

    async fn fetch(&self, rank: usize, from: RemoteAddr, into: Sge) -> Result<(), Fault> {
        if into.is_empty() {
            return Ok(());
        }
        let peer = self.link.members[rank] as usize;
        self.turn.finish(|fabric, done| fabric.read(peer, into, from, done)).await
    }
}
