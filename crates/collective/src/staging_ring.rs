//! Staging rings: a rank copies chunks in for one other rank or for all other ranks, and notifies the readers of the place of each
//! chunk. The rings serve rooted operations of ranks that share memory. A rank waits only for the chunk that it needs next.
//!
//! ```text
//!   each rank   a ring of bytes, in which it copies chunks in
//!               a line for each other rank:  flag (8) | 7 words, by number modulo 7: chunks that it has copied in for this rank
//!               a line for each other rank:  flag (8): the last number that it has read
//!
//!   writer:     chunk k ──copy──> own ring;    word and flag k ──> the readers' lines
//!   reader:     flag >= k;    ring ──copy──> buffer;    flag k ──> the writer's line
//! ```
//! Chunks are numbered, the same on all ranks: an operation has as many numbers as its payload has parts, and operations take
//! their numbers in the order in which they start. A word holds the chunk's place and the payload's length, so that ranks
//! that disagree about the length find out.
//!
//! Nothing is overwritten unread, for this reason. Before a rank copies in chunk k it has learnt that all its chunks with
//! numbers up to k - 7 have been read ([`AHEAD`]). So the word that it overwrites belongs to a chunk that is read. Besides the
//! new chunk, at most six consecutive chunks are unread, and the ring has room for them: each number takes at most an eighth of
//! it, and the space left over at the end of the ring is less.
//!
//! A chunk costs two lines besides its bytes, each a single transfer between caches. A staged message (`weft_p2p`) costs more:
//! it is also matched, tracked and completed by another message.
//!
//! Ranks that disagree about a length would count differently from then on. A rank that finds this out reports to all ranks that it
//! has read everything, so that no rank waits for it. It does not use these rings any more. Each further operation fails with the
//! same fault, and the memory of the rings is kept, since other ranks may still write there.
//!
//! Memory: [`RING`] bytes per rank and communicator, and two lines for each other rank, made by the first operation that needs
//! them. If some rank has no memory to spare, the ranks agree to do without.

use crate::CommView;
use crate::address_exchange::{self, Exchanged};
use crate::outstanding::Outstanding;
use crate::shm_queue::{OperationTicket, Tickets};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use weft_fabric::{
    Counters, Fabric, FabricExt, Fault, Flag, Region, RemoteAddr, RemoteFlag, Sge, Staging, Work,
};
use weft_intranode::staged;

/// Maximum number of chunks that a rank may be ahead of its readers. The flag and this number of words fill a line.
const AHEAD: usize = 7;

/// Maximum number of bytes that a rank may copy in under one number.
pub const CHUNK: usize = 64 << 10;

/// Size of a ring in bytes.
const RING: usize = (AHEAD + 1) * CHUNK;

/// Size of a line in bytes, and offset of the words in a line.
const LINE: usize = 64;
const WORD: usize = 8;

/// Alignment of chunks in bytes.
const STEP: usize = 64;

/// Layout of a word: below this bit the chunk's offset in units of [`STEP`], above it the payload's length in bytes.
const LENGTH_SHIFT: u32 = 16;
const _: () = assert!(RING / STEP <= 1 << LENGTH_SHIFT);

/// Value of the flag by which a rank that stops reading releases all its writers.
const EVERYTHING: u64 = u64::MAX;

/// Returns the maximum number of bytes for each of the other `size` - 1 ranks that share one number.
pub fn each(size: usize) -> usize {
    CHUNK / size / STEP * STEP
}

/// The rings of a communicator, made by the first operation that needs them.
pub(crate) struct StagingRings<F: Fabric> {
    tickets: Tickets<F>,
    /// `None` inside if some rank had no memory for the rings.
    made: OnceCell<Option<Box<Rings<F>>>>,
}

impl<F: Fabric> Default for StagingRings<F> {
    fn default() -> Self {
        StagingRings { tickets: Tickets::default(), made: OnceCell::new() }
    }
}

struct Rings<F: Fabric> {
    endpoint: Rc<weft_p2p::Endpoint<F>>,
    me: usize,
    /// This rank's memory: the lines, then the ring.
    mine: Region,
    peers: Vec<Peer>,
    cursor: Cell<Cursor>,
    /// Chunks that were copied in and may still be unread, the oldest first.
    unread: RefCell<VecDeque<(u64, Readers)>>,
    /// Memory from which the words are written, by rank, then by number modulo [`AHEAD`]. A word stays until its chunk is read.
    words: Staging,
    posted: Outstanding<F>,
    /// Set once the ranks have counted differently.
    broken: OnceCell<Fault>,
}

/// The place of the next chunk in a ring. Chunks of the same length with one reader each rotate through eight places at the
/// beginning of the ring, which stay in the caches.
#[derive(Debug, Clone, Copy, Default)]
struct Cursor {
    /// Offset at which the next chunk may begin, and length of the last chunk.
    head: usize,
    len: usize,
    /// Number of consecutive chunks before the last chunk that were as long as the last chunk. All these chunks had one reader.
    alike: usize,
    /// True if the last chunks rotated at the beginning of the ring.
    is_short: bool,
}

impl Cursor {
    /// Returns the offset of the next chunk, of `len` bytes, and the number of directly preceding chunks that may still be unread.
    fn next(&mut self, len: usize, readers: ReaderCount) -> (usize, usize) {
        self.alike =
            if readers == ReaderCount::One && len == self.len { self.alike + 1 } else { 0 };
        self.len = len;
        // While chunks rotate at the beginning of the ring, unread chunks lie on both sides of the head, so only a chunk of the
        // same length fits between them.
        let anew = self.is_short && self.alike == 0;
        // The last AHEAD chunks have this length and lie next to each other before the head, none of them at the beginning.
        let around = self.alike > AHEAD && self.head >= (AHEAD + 1) * len;
        self.is_short = around || self.is_short && !anew;
        let at = if anew || around || self.head + len > RING { 0 } else { self.head };
        self.head = at + len;
        (at, if anew { 0 } else { AHEAD - 1 })
    }
}

/// A rank of the communicator, as this rank sees it.
struct Peer {
    /// Address of the peer's region.
    at: RemoteAddr,
    /// Flags: number of the last chunk that the peer has copied in for this rank (`told`), and of the last chunk of this rank that
    /// the peer has read (`read`).
    told: Flag,
    read: Flag,
}

/// Number of ranks that read each byte of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReaderCount {
    /// One rank, which takes the lines.
    One,
    /// Several ranks.
    Several,
}

/// Readers of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readers {
    One(usize),
    All,
}

/// Tests whether the readers have read chunk `number`, which rank `me` has copied in.
fn is_read(counters: &Counters, peers: &[Peer], me: usize, number: u64, readers: Readers) -> bool {
    let has = |peer: &Peer| counters.value(peer.read.local) >= number;
    match readers {
        Readers::One(rank) => has(&peers[rank]),
        Readers::All => peers.iter().enumerate().all(|(rank, peer)| rank == me || has(peer)),
    }
}

impl<F: Fabric> StagingRings<F> {
    /// Waits for this rank's turn, for an operation of `numbers` chunks on payloads of `len` bytes. All ranks pass the same values.
    /// Returns `None`, on all ranks, if some rank has no memory for the rings.
    pub(crate) async fn enter<'p>(
        &'p self,
        link: &'p CommView<F>,
        numbers: usize,
        len: usize,
    ) -> Result<Option<RingSession<'p, F>>, Fault> {
        let (turn, first) = self.tickets.enter_for(link, numbers as u64).await?;
        let made = match self.made.get() {
            Some(made) => made,
            None => {
                let made = make(link).await?.map(Box::new);
                self.made.get_or_init(|| made)
            }
        };
        let Some(made) = made else { return Ok(None) };
        match made.broken.get() {
            Some(fault) => Err(fault.clone()),
            None => Ok(Some(RingSession { link, made, _turn: turn, first, len })),
        }
    }
}

impl<F: Fabric> Drop for StagingRings<F> {
    fn drop(&mut self) {
        let Some(Some(made)) = self.made.take() else { return };
        // The endpoint owns the parked closure, so the closure must not own the endpoint.
        let Rings { endpoint, me, mine, peers, unread, broken, .. } = *made;
        endpoint.park(move |fabric| {
            let read =
                |&(number, readers): &_| is_read(fabric.counters(), &peers, me, number, readers);
            // A peer that has read everything does not write here any more. If the ranks counted differently, it is unknown whether
            // a peer has read everything.
            let free = broken.get().is_none() && unread.borrow().iter().all(read);
            if free {
                let flags = peers.iter().flat_map(|peer| [peer.told, peer.read]);
                flags.for_each(|flag| fabric.counters().release(flag.local));
                fabric.withdraw(mine);
            }
            free
        });
    }
}

/// Returns the offset of the line for chunks that `rank` copies in. The line for the last number that `rank` has read follows
/// ([`read`]).
fn told(rank: usize) -> usize {
    2 * LINE * rank
}

fn read(rank: usize) -> usize {
    2 * LINE * rank + LINE
}

async fn make<F: Fabric>(link: &CommView<F>) -> Result<Option<Rings<F>>, Fault> {
    let (size, fabric) = (link.size(), link.endpoint.fabric());
    link.endpoint.clear_parked();
    let len = told(size) + RING;
    // If selected by name, these algorithms also run across nodes.
    let mine = match crate::share_memory(fabric, &link.members) {
        true => fabric.allocate_spare(len),
        false => fabric.allocate(len),
    }
    .ok();
    let here = mine.map_or(RemoteAddr::default(), |mine| mine.remote);
    let facts = [&here.words()[..], &[u64::from(mine.is_some())]].concat();
    let said = Exchanged::by_all(link, &facts).await?;
    let all = (0..size).all(|rank| said.word(rank, RemoteAddr::WORDS) == 1);
    let Some(mine) = mine else { return Ok(None) };
    if !all {
        fabric.withdraw(mine);
        return Ok(None);
    }
    let peers = (0..size).map(|rank| Peer {
        at: said.addr(rank, 0),
        told: fabric.flag(&mine, told(rank), true),
        read: fabric.flag(&mine, read(rank), true),
    });
    Ok(Some(Rings {
        endpoint: link.endpoint.clone(),
        me: link.rank,
        peers: peers.collect(),
        mine,
        cursor: Cell::default(),
        unread: RefCell::new(VecDeque::with_capacity(AHEAD + 1)),
        words: link.stage(8 * AHEAD * size),
        posted: Outstanding::new(link.endpoint.clone()),
        broken: OnceCell::new(),
    }))
}

/// Use of the rings by one operation.
pub(crate) struct RingSession<'p, F: Fabric> {
    link: &'p CommView<F>,
    made: &'p Rings<F>,
    _turn: OperationTicket<'p, F>,
    /// Number of the operation's first part.
    first: u64,
    /// Length of the payload in bytes.
    len: usize,
}

impl<F: Fabric> RingSession<'_, F> {
    /// Copies in part `t` for `reader`, at most [`CHUNK`] bytes.
    pub async fn copy_in_for(&self, t: usize, reader: usize, data: Sge) -> Result<(), Fault> {
        let number = self.first + t as u64;
        let at = self.room(number, data.len(), ReaderCount::One).await?;
        self.copy(at, data, false);
        self.made.unread.borrow_mut().push_back((number, Readers::One(reader)));
        self.tell(number, reader, at)?;
        self.made.posted.all_done().await
    }

    /// Copies in part `t` for all other ranks, at most [`CHUNK`] bytes.
    pub async fn copy_in_for_all(&self, t: usize, data: Sge) -> Result<(), Fault> {
        let number = self.first + t as u64;
        let at = self.room(number, data.len(), ReaderCount::Several).await?;
        self.copy(at, data, self.link.endpoint.fabric().copies().is_past_far(data.len()));
        self.made.unread.borrow_mut().push_back((number, Readers::All));
        for reader in self.others() {
            self.tell(number, reader, at)?;
        }
        self.made.posted.all_done().await
    }

    /// Copies in, for each other rank, part `t` of its own data: at most `each` bytes per rank and [`CHUNK`] bytes in all.
    pub async fn copy_in_for_each(
        &self,
        t: usize,
        each: usize,
        data: impl Fn(usize) -> Sge,
    ) -> Result<(), Fault> {
        let number = self.first + t as u64;
        let each = each.next_multiple_of(STEP);
        let mut at = self.room(number, each * (self.link.size() - 1), ReaderCount::One).await?;
        self.made.unread.borrow_mut().push_back((number, Readers::All));
        for reader in self.others() {
            self.copy(at, data(reader), false);
            self.tell(number, reader, at)?;
            at += each;
        }
        self.made.posted.all_done().await
    }

    /// Returns true if `from` has copied in part `t`.
    pub fn is_there(&self, t: usize, from: usize) -> bool {
        let told = self.made.peers[from].told.local;
        self.made.endpoint.fabric().counters().value(told) >= self.first + t as u64
    }

    /// Waits for part `t` of the data that `from` copies in for this rank, and copies it out.
    pub async fn copy_out(
        &self,
        t: usize,
        from: usize,
        into: Sge,
        readers: ReaderCount,
    ) -> Result<(), Fault> {
        let (number, Rings { endpoint, peers, mine, .. }) = (self.first + t as u64, self.made);
        if !self.is_there(t, from) {
            endpoint.until(peers[from].told.local, number).await?;
        }
        let word = address_exchange::read(mine.local.part(told(from) + WORD + place(number), 8), 0);
        let (len, at) =
            ((word >> LENGTH_SHIFT) as usize, word as usize & ((1 << LENGTH_SHIFT) - 1));
        let peer = self.link.members[from] as usize;
        if len != self.len {
            let fault = Fault::truncated(from, self.len as u64, len as u64);
            let _ = self.made.broken.set(fault.clone());
            for rank in self.others() {
                self.has_read(EVERYTHING, rank).await?;
            }
            return Err(fault);
        }
        let start = told(self.link.size());
        let chunk = peers[from].at.offset((start + at * STEP) as u64);
        let copies = endpoint.fabric().copies();
        match endpoint.fabric().mapped(peer, chunk, into.len()) {
            _ if into.is_empty() => {}
            Some(seen) if readers == ReaderCount::One => staged::read(copies, into, seen, true),
            Some(seen) => {
                staged::sense(copies, into, seen);
                staged::copy_shared(copies, into, seen);
            }
            None => self.made.posted.finish(|f, done| f.read(peer, into, chunk, done)).await?,
        }
        endpoint.fabric().charge(Work::Copy(into.len()));
        self.has_read(number, from).await
    }

    async fn has_read(&self, number: u64, from: usize) -> Result<(), Fault> {
        let at = self.made.peers[from].at.offset(read(self.link.rank) as u64);
        let (peer, flag) = (self.link.members[from] as usize, RemoteFlag { at, waking: true });
        // Writes are not ordered among themselves, so the next write must come after this one is complete.
        self.made
            .posted
            .finish(|f, done| f.write_flag(peer, Sge::EMPTY, at, flag, number, done))
            .await
    }

    /// Returns the other ranks, starting behind this rank, so that roots that take turns do not all serve the same rank last.
    pub fn others(&self) -> impl Iterator<Item = usize> + use<F> {
        let (me, size) = (self.link.rank, self.link.size());
        (1..size).map(move |i| (me + i) % size)
    }

    /// Waits until `len` bytes may be copied in under `number`, and returns their offset.
    async fn room(&self, number: u64, len: usize, readers: ReaderCount) -> Result<usize, Fault> {
        let mut cursor = self.made.cursor.get();
        let (at, unread) = cursor.next(len.next_multiple_of(STEP), readers);
        self.await_readers(number.saturating_sub(1 + unread as u64)).await?;
        self.made.cursor.set(cursor);
        Ok(at)
    }

    /// Waits until all chunks with numbers up to `last` have been read.
    async fn await_readers(&self, last: u64) -> Result<(), Fault> {
        let Rings { unread, .. } = self.made;
        loop {
            let oldest = unread.borrow().front().copied();
            let Some((number, readers)) = oldest.filter(|(number, _)| *number <= last) else {
                return Ok(());
            };
            match readers {
                Readers::One(rank) => self.await_read(rank, number).await?,
                Readers::All => {
                    for rank in self.others() {
                        self.await_read(rank, number).await?;
                    }
                }
            }
            unread.borrow_mut().pop_front();
        }
    }

    async fn await_read(&self, rank: usize, number: u64) -> Result<(), Fault> {
        let Rings { endpoint, peers, .. } = self.made;
        let read = peers[rank].read.local;
        match endpoint.fabric().counters().value(read) >= number {
            true => Ok(()),
            false => endpoint.until(read, number).await,
        }
    }

    fn copy(&self, at: usize, data: Sge, past: bool) {
        if !data.is_empty() {
            let to = self.made.mine.local.part(told(self.link.size()) + at, data.len());
            staged::write(self.link.endpoint.fabric().copies(), to, data, past);
            self.link.endpoint.fabric().charge(Work::Copy(data.len()));
        }
    }

    /// Notifies `reader` that chunk `number` is at offset `at`.
    fn tell(&self, number: u64, reader: usize, at: usize) -> Result<(), Fault> {
        let (made, link) = (self.made, self.link);
        debug_assert!(self.len >> (64 - LENGTH_SHIFT) == 0, "{} bytes", self.len);
        let word = (self.len as u64) << LENGTH_SHIFT | (at / STEP) as u64;
        let from = made.words.sge().part(8 * AHEAD * reader + place(number), 8);
        address_exchange::write(&[word], from);
        let line = made.peers[reader].at.offset(told(link.rank) as u64);
        let (to, flag) =
            (line.offset((WORD + place(number)) as u64), RemoteFlag { at: line, waking: true });
        let peer = link.members[reader] as usize;
        made.posted.post(|f, done| f.write_flag(peer, from, to, flag, number, done))
    }
}

/// Returns the offset in bytes of the word of `number` among the words of a line.
fn place(number: u64) -> usize {
    8 * (number as usize % AHEAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_piece_lies_on_one_that_may_be_unread() {
        let mut rng = fastrand::Rng::with_seed(7);
        let (mut cursor, mut usual) = (Cursor::default(), 0);
        // Number, start and end of each chunk that is copied in.
        let mut unread: VecDeque<(u64, usize, usize)> = VecDeque::new();
        let (mut shorts, mut longs) = (0, 0);
        let lens = [STEP, STEP, 1024, 4096, CHUNK - STEP, CHUNK];
        for number in 1..if cfg!(miri) { 2_000 } else { 200_000 } {
            if number % 40 == 1 {
                usual = rng.usize(0..lens.len());
            }
            let len = lens[if rng.u8(0..30) == 0 { rng.usize(0..lens.len()) } else { usual }];
            if rng.u8(0..8) == 0 {
                continue;
            }
            let readers = if rng.u8(0..50) > 0 { ReaderCount::One } else { ReaderCount::Several };
            let (at, before) = cursor.next(len, readers);
            unread.retain(|(other, ..)| *other + before as u64 >= number);
            assert!(at + len <= RING);
            let apart = |&(_, start, end): &_| at + len <= start || end <= at;
            assert!(unread.iter().all(apart), "{number}: {len} bytes at {at} among {unread:?}");
            unread.push_back((number, at, at + len));
            shorts += usize::from(cursor.is_short);
            longs += usize::from(at + len > RING - CHUNK);
        }
        assert!(shorts > 100 && longs > 10, "{shorts} {longs}");
    }
}
