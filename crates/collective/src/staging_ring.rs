//! Staging rings: a rank copies chunks into its ring for one other rank or for all other ranks, and notifies the readers of the
//! place of each chunk. The rings serve rooted operations of ranks that share memory. A rank waits only for the chunk that it needs
//! next.
//!
//! ```text
//!   each rank   a ring of bytes, in which it copies chunks in
//!               a line for each other rank:  flag (8) | 7 words, by number modulo 7: chunks that it has copied in for this rank
//!               a line for each other rank:  flag (8): the last number that it has read
//!
//!   writer:     chunk k ──copy──> own ring;    word and flag k ──> the readers' lines
//!   reader:     flag >= k;    ring ──copy──> buffer;    flag k ──> the writer's line
//! ```
//! Chunks have the same numbers on all ranks: an operation has as many numbers as its payload has parts, and operations take their
//! numbers in the order in which they start. A word holds the chunk's place and the payload's length, so that ranks notice if they
//! disagree about the length.
//!
//! No data are overwritten before they are read, for the following reason. Before a rank copies in chunk k, it has learnt that all
//! its chunks with numbers up to k - 7 have been read ([`AHEAD`]). So the word that it overwrites belongs to a chunk that has been
//! read. Besides the new chunk, at most six consecutive chunks are unread. The ring has room for them: each number takes at most an
//! eighth of the ring, and the unused space at the end of the ring is smaller than an eighth.
//!
//! In addition to its bytes, a chunk costs two lines, each of which is transferred between caches once. A staged message
//! (`weft_p2p`) costs more, because it is also matched and tracked, and another message completes it.
//!
//! Ranks that disagree about a length would from then on assign different numbers to chunks. A rank that notices this reports to
//! all ranks that it has read all chunks, so that no rank waits for it, and does not use these rings any more. Each further
//! operation fails with the same fault. The memory of the rings is not freed, since other ranks may still write there.
//!
//! Memory: [`RING`] bytes per rank and communicator, and two lines for each other rank, made by the first operation that needs
//! them. If some rank has no memory to spare, the ranks agree not to use rings.

mod cursor;

use cursor::{RingCursor, rotation};

use crate::CommView;
use crate::address_exchange::{self, Exchanged};
use crate::outstanding::Outstanding;
use crate::shm_queue::{OperationTicket, Tickets};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use weft_fabric::{
    Counters, Fabric, FabricExt, Fault, Flag, FlagKind, Region, RemoteAddr, RemoteFlag, RemoteRead,
    RemoteWrite, Sge, Staging, Work,
};
use weft_intranode::staged;

/// Maximum number of chunks that a rank may be ahead of its readers. The flag and this number of words fill a line.
const AHEAD: usize = 7;

/// Maximum number of bytes that a rank may copy in under one chunk number.
pub const CHUNK: usize = 64 << 10;

/// Size of a ring in bytes.
const RING: usize = (AHEAD + 1) * CHUNK;

/// Size of a line in bytes, and offset of the words in a line.
const LINE: usize = 64;
const WORD: usize = 8;

/// Alignment of chunks in bytes.
const STEP: usize = 64;

/// Number of bits of a word for the chunk's offset, in units of [`STEP`]. The higher bits are the payload's length in bytes.
const LENGTH_SHIFT: u32 = 16;
const _: () = assert!(RING / STEP <= 1 << LENGTH_SHIFT);

/// Value of the flag by which a rank that stops reading releases all its writers.
const EVERYTHING: u64 = u64::MAX;

/// Returns the maximum number of bytes per rank if one number covers chunks for all other `size` - 1 ranks.
pub fn each(size: usize) -> usize {
    CHUNK / size / STEP * STEP
}

/// The rings of a communicator, made by the first operation that needs them.
pub(crate) struct StagingRings<F: Fabric> {
    tickets: Tickets<F>,
    /// Contains `None` if some rank had no memory for the rings.
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
    cursor: Cell<RingCursor>,
    /// Number of bytes at the beginning of the ring whose pages are present.
    ready: Cell<usize>,
    /// Chunks that were copied in and may still be unread, the oldest first.
    unread: RefCell<VecDeque<(u64, Readers)>>,
    /// Memory from which the words are written, by rank, then by number modulo [`AHEAD`]. A word stays until its chunk is read.
    words: Staging,
    posted: Outstanding<F>,
    /// Fault of all further operations. Set once the ranks have assigned different numbers.
    broken: OnceCell<Fault>,
}

/// A rank of the communicator, as this rank sees it.
struct Peer {
    /// Number of bytes at the beginning of the peer's ring whose pages are mapped in this rank.
    ready: Cell<usize>,
    /// Address of the peer's region.
    at: RemoteAddr,
    /// Flags. `told`: number of the last chunk that the peer has copied in for this rank. `read`: number of the last chunk of this
    /// rank that the peer has read.
    told: Flag,
    read: Flag,
}

/// Number of ranks that read each byte of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReaderCount {
    /// One rank, which takes the chunk's lines.
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
    /// Waits until an operation of `numbers` chunks on payloads of `len` bytes has its turn on this rank. All ranks pass the same
    /// values. Returns `None`, on all ranks, if some rank has no memory for the rings.
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
            // A peer that has read all chunks does not write here any more. If the ranks assigned different numbers, it is unknown
            // whether a peer has read all chunks.
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

/// Returns the offset of the line for chunks that `rank` copies in. The next line ([`read`]) is for the last number that `rank` has
/// read.
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
        ready: Cell::new(0),
        at: said.addr(rank, 0),
        told: fabric.flag(&mine, told(rank), FlagKind::Waking),
        read: fabric.flag(&mine, read(rank), FlagKind::Waking),
    });
    Ok(Some(Rings {
        endpoint: link.endpoint.clone(),
        me: link.rank,
        peers: peers.collect(),
        mine,
        cursor: Cell::default(),
        ready: Cell::new(0),
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

    /// Copies in, for each other rank, part `t` of the data for that rank: at most `each` bytes per rank and [`CHUNK`] bytes in
    /// total.
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
        // This is the third chunk of a length. The writer has provided the pages before it copied the chunk in
        // ([`RingSession::room`]).
        let third = at * STEP >= 2 * into.len().next_multiple_of(STEP);
        if at * STEP + into.len() > peers[from].ready.get() && third {
            let end = rotation(into.len(), readers).max(at * STEP + into.len()).min(RING);
            let ring = endpoint.fabric().mapped(peer, peers[from].at.offset(start as u64), end);
            ring.into_iter().for_each(|ring| endpoint.fabric().populate(ring));
            peers[from].ready.set(end);
        }
        match endpoint.fabric().mapped(peer, chunk, into.len()) {
            _ if into.is_empty() => {}
            Some(seen) => {
                match readers {
                    ReaderCount::One => staged::read(copies, into, seen, true),
                    ReaderCount::Several => {
                        staged::sense(copies, into, seen);
                        staged::copy_shared(copies, into, seen);
                    }
                }
                endpoint.fabric().charge(Work::Copy(into.len()));
            }
            // The read is the copy.
            None => {
                self.made
                    .posted
                    .finish(|f, done| f.read(peer, &RemoteRead::new(into, chunk, done)))
                    .await?
            }
        }
        self.has_read(number, from).await
    }

    async fn has_read(&self, number: u64, from: usize) -> Result<(), Fault> {
        let at = self.made.peers[from].at.offset(read(self.link.rank) as u64);
        let (peer, flag) = (self.link.members[from] as usize, RemoteFlag { at, waking: true });
        // Writes are not ordered among themselves, so this write must be complete before the next write starts.
        self.made
            .posted
            .finish(|f, done| {
                f.write_flag(peer, &RemoteWrite::new(Sge::EMPTY, at, done), &flag.with(number))
            })
            .await
    }

    /// Returns the other ranks, starting behind this rank. If roots take turns, the rank that is served last then changes as well.
    pub fn others(&self) -> impl Iterator<Item = usize> + use<F> {
        let (me, size) = (self.link.rank, self.link.size());
        (1..size).map(move |i| (me + i) % size)
    }

    /// Waits until `len` bytes may be copied in under `number`, and returns the offset of these bytes.
    async fn room(&self, number: u64, len: usize, readers: ReaderCount) -> Result<usize, Fault> {
        let mut cursor = self.made.cursor.get();
        let (at, unread) = cursor.next(len.next_multiple_of(STEP), readers);
        self.await_readers(number.saturating_sub(1 + unread as u64)).await?;
        self.made.cursor.set(cursor);
        // Two chunks of the same length came before this chunk, so more are likely to follow.
        if at + len > self.made.ready.get() && cursor.alike > 1 {
            let end = rotation(cursor.len, readers).max(at + len).min(RING);
            let ring = self.made.mine.local.part(told(self.link.size()), end);
            self.link.endpoint.fabric().populate(ring);
            self.made.ready.set(end);
        }
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
            self.link.endpoint.fabric().charge(Work::Stage(data.len()));
        }
    }

    /// Notifies `reader` that chunk `number` is at offset `at`.
    fn tell(&self, number: u64, reader: usize, at: usize) -> Result<(), Fault> {
        let (made, link) = (self.made, self.link);
        debug_assert!(self.len >> (64 - LENGTH_SHIFT) == 0, "{} bytes", self.len);
        let word = (self.len as u64) << LENGTH_SHIFT | (at / STEP) as u64;
        let from = made.words.sge().part(8 * AHEAD * reader + place(number), 8);
        address_exchange::write([word], from);
        let line = made.peers[reader].at.offset(told(link.rank) as u64);
        let (to, flag) =
            (line.offset((WORD + place(number)) as u64), RemoteFlag { at: line, waking: true });
        let peer = link.members[reader] as usize;
        made.posted.post(|f, done| {
            f.write_flag(peer, &RemoteWrite::new(from, to, done), &flag.with(number))
        })
    }
}

/// Returns the offset in bytes of the word of `number` among the words of a line.
fn place(number: u64) -> usize {
    8 * (number as usize % AHEAD)
}
