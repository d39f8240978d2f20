//! The memory of dynamic windows. A rank attaches and detaches its memory without the other ranks. The other ranks find the memory
//! when they need it (MPI 5.0, section 12.2.4).
//!
//! ```text
//!   control words   | version | entries | where the table is |        version odd: being changed
//!   the table       | start, length, how to reach it | ...             memory of the fabric, made anew to grow
//! ```
//! An origin reads the version before each operation, and reads the table if the version has changed. Cost: one atomic read per
//! operation, and three more reads after a change. Memory: 64 bytes per region at its rank, and at each origin that accesses the
//! rank. Limit: [`REGIONS`] per rank, and the memory that the fabric can register. Data in several regions: [`super::regions`].

use super::WindowMemory;
use crate::control::layout::TABLE;
use crate::control::remote_atomics;
use crate::core::WindowFlavor;
use std::cell::RefCell;
use weft_collective::words;
use weft_fabric::{Fabric, FabricExt, Region, RemoteAddr, Sge};
use weft_process::{Error, class};

/// A piece of attached memory, as an origin finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttachedPiece {
    pub at: RemoteAddr,
    /// Address in the target, and length in bytes.
    pub start: u64,
    pub len: u64,
    pub within: bool,
}

const WORDS: usize = 8;
/// Words of the header: version, entries, address of the table.
const HEADER: usize = 2 + RemoteAddr::WORDS;

impl AttachedPiece {
    fn encode(&self) -> [u64; WORDS] {
        let [a, b, c, d] = self.at.words();
        [self.start, self.len, a, b, c, d, u64::from(self.within), 0]
    }

    fn decode(words: &[u64]) -> AttachedPiece {
        let at = RemoteAddr::from_words([words[2], words[3], words[4], words[5]]);
        AttachedPiece { start: words[0], len: words[1], at, within: words[6] == 1 }
    }

    fn holds(&self, first: u64, len: usize) -> bool {
        first
            .checked_sub(self.start)
            .is_some_and(|offset| offset <= self.len && len as u64 <= self.len - offset)
    }
}

/// Returns the piece that holds the byte at an address. `pieces` are sorted.
fn holding(pieces: &[AttachedPiece], at: u64) -> Option<&AttachedPiece> {
    let next = pieces.partition_point(|piece| piece.start <= at);
    let piece = &pieces[next.checked_sub(1)?];
    (at - piece.start < piece.len).then_some(piece)
}

/// Cuts `len` bytes at address `at` at the borders of regions, which are sorted. Calls `f` for each region that holds some of the
/// bytes, with the address and the number of these bytes. The error is the address of the first byte that lies in no region.
pub fn cut(
    pieces: &[AttachedPiece],
    mut at: u64,
    mut len: u64,
    mut f: impl FnMut(&AttachedPiece, u64, u64),
) -> Result<(), u64> {
    while len > 0 {
        let piece = holding(pieces, at).ok_or(at)?;
        let here = len.min(piece.len - (at - piece.start));
        f(piece, at, here);
        (at, len) = (at.wrapping_add(here), len - here);
    }
    Ok(())
}

/// Attached memory of this rank, and known attached memory of other ranks.
#[derive(Default)]
pub struct AttachedMemory {
    own: RefCell<Own>,
    /// Pieces of other ranks, by rank, with the version at which they were read; sorted by address.
    known: RefCell<Vec<(u64, Vec<AttachedPiece>)>>,
}

#[derive(Default)]
struct Own {
    /// Pieces, sorted by address.
    pieces: Vec<AttachedPiece>,
    /// Registrations of the pieces, in the same order.
    regions: Vec<Region>,
    table: Option<Region>,
    /// Former tables, which an origin may still read.
    former: Vec<Region>,
}

impl<F: Fabric> WindowMemory<F> {
    /// Makes memory part of this rank's window.
    pub async fn attach(&self, memory: Sge) -> Result<(), Error> {
        self.only_dynamic("MPI_Win_attach")?;
        if memory.is_empty() {
            return Ok(());
        }
        let (start, len) = (memory.ptr().expose_provenance() as u64, memory.len() as u64);
        let (place, other) = {
            let pieces = &self.attached.own.borrow().pieces;
            if pieces.len() >= REGIONS {
                let text = format!(
                    "MPI_Win_attach: {REGIONS} regions are attached, the most there can be"
                );
                return Err(Error::new(class::RMA_ATTACH, text));
            }
            let place = pieces.partition_point(|piece| piece.start < start);
            let beside = [place.checked_sub(1).map(|before| &pieces[before]), pieces.get(place)];
            let overlaps = |p: &&AttachedPiece| start < p.start + p.len && p.start < start + len;
            (place, beside.into_iter().flatten().find(overlaps).copied())
        };
        if let Some(AttachedPiece { start: at, len: its, .. }) = other {
            let text = format!(
                "MPI_Win_attach of {len} bytes at {start:#x}: it overlaps {its} bytes at {at:#x}, which \
                 are attached"
            );
            return Err(Error::new(class::RMA_ATTACH, text));
        }
        let fabric = self.core.fabric();
        let region = fabric.expose_to_writers(memory)?;
        let piece =
            AttachedPiece { at: region.remote, start, len, within: fabric.lies_within(memory) };
        {
            let own = &mut *self.attached.own.borrow_mut();
            own.pieces.insert(place, piece);
            own.regions.insert(place, region);
        }
        self.publish().await
    }

    /// Removes memory from this rank's window. `base` is the address at which the memory was attached.
    pub async fn detach(&self, base: usize) -> Result<(), Error> {
        self.only_dynamic("MPI_Win_detach")?;
        let region = {
            let own = &mut *self.attached.own.borrow_mut();
            let Ok(at) = own.pieces.binary_search_by_key(&(base as u64), |piece| piece.start)
            else {
                let text = format!("MPI_Win_detach: nothing is attached at {base:#x}");
                return Err(Error::new(class::BASE, text));
            };
            own.pieces.remove(at);
            own.regions.remove(at)
        };
        self.publish().await?;
        self.core.fabric().withdraw(region);
        Ok(())
    }

    fn only_dynamic(&self, call: &str) -> Result<(), Error> {
        if self.core.flavor == WindowFlavor::Dynamic {
            return Ok(());
        }
        let text = format!("{call} on a window that MPI_Win_create_dynamic did not make");
        Err(Error::new(class::RMA_FLAVOR, text))
    }

    /// Writes the table anew, for the other ranks to read.
    async fn publish(&self) -> Result<(), Error> {
        let fabric = self.core.fabric();
        let words: Vec<u64> = {
            let own = &mut *self.attached.own.borrow_mut();
            let words: Vec<u64> = own.pieces.iter().flat_map(AttachedPiece::encode).collect();
            let room = own.table.map_or(0, |table| table.local.len());
            if 8 * words.len() > room {
                let len = (8 * words.len()).next_power_of_two().max(16 * 8 * WORDS);
                own.former.extend(own.table.replace(fabric.allocate(len)?));
            }
            words
        };
        let own = self.attached.own.borrow().table;
        let entries = self.attached.own.borrow().pieces.len() as u64;
        let at = own.map_or([0; RemoteAddr::WORDS], |table| table.remote.words());
        let me = self.core.rank();
        self.control.add(me, TABLE, 1).await?;
        if let Some(table) = own {
            words::write(words, table.local);
        }
        let header = self.control.own().local(TABLE + 1, HEADER - 1);
        words::write(std::iter::once(entries).chain(at), header);
        self.control.add(me, TABLE, 1).await?;
        Ok(())
    }

    /// Finds the attached memory of `rank` that holds `len` bytes at address `first` in one piece.
    pub async fn find_attached(
        &self,
        rank: usize,
        first: u64,
        len: usize,
    ) -> Result<Option<AttachedPiece>, Error> {
        let find = |pieces: &[AttachedPiece]| {
            holding(pieces, first).filter(|p| p.holds(first, len)).copied()
        };
        self.with_attached(rank, find).await
    }

    /// Calls `f` with all memory that `rank` has attached now, sorted by address.
    pub async fn with_attached<R>(
        &self,
        rank: usize,
        f: impl FnOnce(&[AttachedPiece]) -> R,
    ) -> Result<R, Error> {
        if rank == self.core.rank() {
            return Ok(f(&self.attached.own.borrow().pieces));
        }
        loop {
            let version = self.control.add(rank, TABLE, 0).await?;
            if let Some((known, pieces)) = self.attached.known.borrow().get(rank)
                && *known == version
            {
                return Ok(f(pieces));
            }
            if version % 2 == 1 {
                continue;
            }
            let header = self.control.read(rank, TABLE + 1, HEADER - 1).await?;
            let entries = header[0] as usize;
            let at = RemoteAddr::from_words([header[1], header[2], header[3], header[4]]);
            let table = match entries {
                0 => Vec::new(),
                _ => {
                    let (endpoint, peer) = (self.core.endpoint(), self.core.peer(rank));
                    let words = entries.saturating_mul(WORDS).min(MOST);
                    remote_atomics::read(endpoint, peer, at, words).await?
                }
            };
            if self.control.add(rank, TABLE, 0).await? != version {
                continue;
            }
            let mut pieces: Vec<_> = table.chunks_exact(WORDS).map(AttachedPiece::decode).collect();
            // A rank keeps its own pieces sorted, but a peer's table may be in any order.
            pieces.sort_unstable_by_key(|piece| piece.start);
            let known = &mut *self.attached.known.borrow_mut();
            known.resize_with(self.core.size(), || (u64::MAX, Vec::new()));
            known[rank] = (version, pieces);
        }
    }

    /// Cuts `len` bytes at an address of this rank into parts, one per piece of attached memory. Calls `f` with the memory of each
    /// part and its piece. Returns false if not all bytes are attached.
    pub fn own_attached(&self, at: u64, len: u64, mut f: impl FnMut(Sge, &AttachedPiece)) -> bool {
        let own = self.attached.own.borrow();
        let part = |piece: &AttachedPiece, at: u64, len: u64| {
            let region = own.pieces.binary_search_by_key(&piece.start, |piece| piece.start);
            let memory = own.regions[region.expect("one of them")].local;
            f(memory.part((at - piece.start) as usize, len as usize), piece);
        };
        cut(&own.pieces, at, len, part).is_ok()
    }

    /// Withdraws all attached memory, and its tables.
    pub(super) fn withdraw_attached(&self) {
        let own = std::mem::take(&mut *self.attached.own.borrow_mut());
        let fabric = self.core.fabric();
        let regions = own.regions.into_iter().chain(own.table).chain(own.former);
        regions.for_each(|region| fabric.withdraw(region));
    }
}

/// Maximum number of regions that a rank may have attached at once.
pub const REGIONS: usize = 1 << 21;

/// Maximum length of a peer's table, in words.
const MOST: usize = WORDS * REGIONS;
