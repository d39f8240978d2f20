//! Ranks that read each other's memory: where the algorithms named SHARED meet.
//!
//! ```text
//!   each rank:  desk [parity], DESK bytes each     small data: put down, met, read by whom they concern
//!   rank 0:     slots of the board                 large data: the slots hold addresses, the data stay
//!                                                  where they are and are read there
//! ```
//! A meeting is a central barrier ([`crate::Board`]): one atomic a rank, and the last to arrive lets the
//! others go, so that each rank waits once and is woken once. An operation has one or more meetings.
//!
//! Why nothing is overwritten unread. What is put down for meeting k (a desk, a slot) is read between
//! meetings k and k + 1, and has parity k mod 2: it is written again by a rank that has left k + 1, when
//! all have come to k + 1 and so have read what they needed of k. The program's own memory, which has no
//! parity, is read between two meetings of one operation.
//!
//! Memory: two desks of [`DESK`] bytes a rank and communicator, made by the first operation on it that needs
//! them.

use crate::board::Turn;
use crate::{Board, Link, Reduce, SLOT};
use std::cell::{Cell, OnceCell};
use std::ops::Range;
use weft_fabric::{Fabric, Fault, Region, RemoteAddr, Sge, Staging, Work};

/// Bytes that a rank may put down for one meeting.
pub const DESK: usize = 32 << 10;

/// Bytes that are read and combined at once: they stay in the processor's cache in between.
pub const CHUNK: usize = 64 << 10;

/// The desks of a communicator, or the place for them.
pub(crate) struct Desks<F: Fabric> {
    made: OnceCell<Made<F>>,
    /// An operation that makes them has been started.
    begun: Cell<bool>,
}

impl<F: Fabric> Default for Desks<F> {
    fn default() -> Self {
        Desks { made: OnceCell::new(), begun: Cell::new(false) }
    }
}

struct Made<F: Fabric> {
    endpoint: std::rc::Rc<weft_p2p::Endpoint<F>>,
    mine: Region,
    all: Vec<RemoteAddr>,
    direct: bool,
}

impl<F: Fabric> Drop for Made<F> {
    fn drop(&mut self) {
        self.endpoint.fabric().withdraw(self.mine);
    }
}

/// One operation's time with the desks.
pub struct Hall<'b, F: Fabric> {
    link: &'b Link<F>,
    turn: Turn<'b, F>,
    desks: &'b Made<F>,
    /// The number of the next meeting.
    next: Cell<u64>,
}

impl<F: Fabric> Board<F> {
    /// Whether all ranks can read and write each other's own memory, which payloads above [`DESK`] bytes need.
    /// All find the same. The first question is asked of all ranks at once.
    pub async fn direct(&self, link: &Link<F>) -> Result<bool, Fault> {
        match self.desks.made.get() {
            Some(made) => Ok(made.direct),
            None => Ok(self.hall(link, 0).await?.desks.direct),
        }
    }

    /// Waits for this rank's turn, for an operation of so many meetings.
    pub(crate) async fn hall<'b>(
        &'b self,
        link: &'b Link<F>,
        meetings: u64,
    ) -> Result<Hall<'b, F>, Fault> {
        // Said before anything is awaited: all ranks start their operations in one order.
        let first = !self.desks.begun.replace(true);
        let (turn, epoch) = self.enter_for(link, meetings + u64::from(first)).await?;
        let next = Cell::new(epoch);
        if first {
            let made = Made::make(link, &turn, epoch).await?;
            next.set(epoch + 1);
            let _ = self.desks.made.set(made);
        }
        let desks = self.desks.made.get().expect("made by the first operation in turn");
        Ok(Hall { link, turn, desks, next })
    }
}

impl<F: Fabric> Made<F> {
    async fn make(link: &Link<F>, turn: &Turn<'_, F>, epoch: u64) -> Result<Made<F>, Fault> {
        let fabric = link.endpoint.fabric();
        let mine = match crate::share_memory(fabric, &link.members) {
            true => fabric.allocate_on_node(2 * DESK)?,
            // By name, these algorithms can be had across nodes, too.
            false => fabric.allocate(2 * DESK)?,
        };
        let reaches = |&peer: &u32| fabric.capabilities(peer as usize).direct;
        let direct = link.members.iter().all(reaches);
        let words = [&mine.remote.words()[..], &[u64::from(direct)]].concat();
        let all = exchange(link, turn, epoch, &words).await?;
        let word = |rank: usize, i: usize| read_word(all.sge(), rank, i);
        let addr = |rank| RemoteAddr::from_words(std::array::from_fn(|i| word(rank, i)));
        Ok(Made {
            endpoint: link.endpoint.clone(),
            mine,
            all: (0..link.size()).map(addr).collect(),
            direct: (0..link.size()).all(|rank| word(rank, RemoteAddr::WORDS) == 1),
        })
    }
}

fn read_word(all: Sge, rank: usize, i: usize) -> u64 {
    let mut bytes = [0; 8];
    all.part(SLOT * rank + 8 * i, 8).read(&mut bytes);
    u64::from_ne_bytes(bytes)
}

/// A meeting in which each rank says up to eight words to all: slots of `SLOT` bytes by rank.
async fn exchange<F: Fabric>(
    link: &Link<F>,
    turn: &Turn<'_, F>,
    epoch: u64,
    words: &[u64],
) -> Result<Staging, Fault> {
    let said = link.stage(8 * words.len());
    for (i, word) in words.iter().enumerate() {
        said.sge().part(8 * i, 8).fill(&word.to_ne_bytes());
    }
    turn.contribute(link, epoch, said.sge()).await?;
    meet(link, turn, epoch).await?;
    let all = link.stage(SLOT * link.size());
    turn.collect(link, epoch, all.sge()).await?;
    Ok(all)
}

async fn meet<F: Fabric>(link: &Link<F>, turn: &Turn<'_, F>, epoch: u64) -> Result<(), Fault> {
    match turn.arrive(link, epoch).await? {
        true => turn.release(link, epoch, Sge::EMPTY).await,
        false => turn.await_release(epoch, Sge::EMPTY).await,
    }
}

impl<F: Fabric> Hall<'_, F> {
    fn take_number(&self) -> u64 {
        self.next.replace(self.next.get() + 1)
    }

    /// Everybody comes, then everybody goes on.
    pub async fn meet(&self) -> Result<(), Fault> {
        meet(self.link, &self.turn, self.take_number()).await
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
        // The desks are still those of this meeting's parity for what runs now.
        self.next.set(epoch + 1);
        last().await?;
        self.turn.release(self.link, epoch, Sge::EMPTY).await
    }

    /// A meeting in which everybody learns where two pieces of the others' memory are. They are reached
    /// until [`Hall::hide`], before which the ranks meet once more.
    pub async fn show(&self, memory: [Sge; 2]) -> Result<Shown, Fault> {
        let fabric = self.link.endpoint.fabric();
        let regions = [fabric.expose(memory[0])?, fabric.expose(memory[1])?];
        let epoch = self.take_number();
        let words = regions.map(|region| region.remote.words()).concat();
        let all = exchange(self.link, &self.turn, epoch, &words).await?;
        Ok(Shown { regions, all })
    }

    /// Ends the reach of what was shown.
    pub fn hide(&self, shown: &Shown) {
        for region in shown.regions {
            self.link.endpoint.fabric().withdraw(region);
        }
    }

    /// This rank's desk for the next meeting.
    pub fn desk(&self) -> Sge {
        let at = DESK * (self.next.get() % 2) as usize;
        self.desks.mine.local.part(at, DESK)
    }

    /// This rank's desk of the meeting that has taken place.
    pub fn desk_met(&self) -> Sge {
        let at = DESK * ((self.next.get() + 1) % 2) as usize;
        self.desks.mine.local.part(at, DESK)
    }

    /// Puts `data` down for the next meeting.
    pub fn put(&self, data: Sge) {
        self.desk().part(0, data.len()).copy_from(data);
        self.link.endpoint.fabric().charge(Work::Copy(data.len()));
    }

    fn desk_of(&self, rank: usize, offset: usize) -> RemoteAddr {
        // Of the meeting that has taken place.
        let parity = (self.next.get() + 1) % 2;
        self.desks.all[rank].offset((DESK * parity as usize + offset) as u64)
    }

    /// Reads what `rank` put down for the last meeting, from byte `offset` on.
    pub async fn look(&self, rank: usize, offset: usize, into: Sge) -> Result<(), Fault> {
        self.fetch(rank, self.desk_of(rank, offset), into).await
    }

    /// Writes over what `rank` put down for the last meeting, from byte `offset` on.
    pub async fn overwrite(&self, rank: usize, offset: usize, data: Sge) -> Result<(), Fault> {
        let (peer, to) = (self.link.members[rank] as usize, self.desk_of(rank, offset));
        self.turn.finish(|fabric, done| fabric.write(peer, data, to, done)).await
    }

    /// Reads piece `which` of what `rank` has shown, from byte `offset` on.
    pub async fn read(
        &self,
        shown: &Shown,
        (rank, which): (usize, usize),
        offset: usize,
        into: Sge,
    ) -> Result<(), Fault> {
        self.fetch(rank, shown.of(rank, which).offset(offset as u64), into).await
    }

    /// Writes to piece `which` of what `rank` has shown, from byte `offset` on.
    pub async fn write(
        &self,
        shown: &Shown,
        (rank, which): (usize, usize),
        offset: usize,
        data: Sge,
    ) -> Result<(), Fault> {
        if data.is_empty() {
            return Ok(());
        }
        let to = shown.of(rank, which).offset(offset as u64);
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

/// Two pieces of memory of each rank.
pub struct Shown {
    regions: [Region; 2],
    all: Staging,
}

impl Shown {
    fn of(&self, rank: usize, which: usize) -> RemoteAddr {
        let word = |i| read_word(self.all.sge(), rank, which * RemoteAddr::WORDS + i);
        RemoteAddr::from_words(std::array::from_fn(word))
    }
}

/// `result` = the operands of `ranks`, at least one, combined in their order. The operand of this rank is
/// `own`, which `result` may not overlap; `read` gets the others'. The combination goes from the highest rank
/// down, so that it grows in `result` itself.
pub async fn fold<F: Fabric>(
    link: &Link<F>,
    ranks: Range<usize>,
    (own, result): (Sge, Sge),
    op: &(impl Reduce + ?Sized),
    read: impl AsyncFn(usize, Sge) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let Some(last) = ranks.clone().next_back() else { return Ok(()) };
    match last == link.rank {
        true => result.copy_from(own),
        false => read(last, result).await?,
    }
    let spare = link.endpoint.staging().take_for(result);
    for rank in (ranks.start..last).rev() {
        let operand = if rank == link.rank { own } else { spare.sge() };
        if rank != link.rank {
            read(rank, operand).await?;
        }
        link.endpoint.fabric().charge(Work::Reduce(result.len()));
        op.combine(operand, result);
    }
    Ok(())
}

/// Pieces of at most `most` bytes, in elements of `unit` bytes, of `len` bytes: offset and length.
pub fn chunks(len: usize, unit: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    let step = (most / unit.max(1)).max(1) * unit.max(1);
    (0..len).step_by(step).map(move |at| (at, step.min(len - at)))
}

/// Whether two pieces of memory have bytes in common.
pub fn overlap(a: Sge, b: Sge) -> bool {
    let (first, second) = (a.ptr().addr(), b.ptr().addr());
    !a.is_empty() && !b.is_empty() && first < second + b.len() && second < first + a.len()
}

/// The part of `len` bytes, in elements of `unit` bytes, that rank `r` of `size` works on: offset, length.
pub fn slice(len: usize, unit: usize, r: usize, size: usize) -> (usize, usize) {
    let unit = unit.max(1);
    let at = |r: usize| len / unit * r / size * unit;
    (at(r), at(r + 1) - at(r))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cover_everything_in_whole_elements() {
        for size in 1..=64 {
            for (count, unit) in [(0, 8), (1, 8), (5, 12), (64, 1), (1000, 16), (7, 0)] {
                let len = count * unit;
                let mut at = 0;
                for r in 0..size {
                    let (offset, part) = slice(len, unit, r, size);
                    assert_eq!((offset, part % unit.max(1)), (at, 0), "{count} of {unit}, {size}");
                    at += part;
                }
                assert_eq!(at, len, "{count} of {unit}, {size} ranks");
            }
        }
    }
}
