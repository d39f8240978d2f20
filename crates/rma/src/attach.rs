//! Memory of dynamic windows: attached and detached by its rank alone, found by the others when they need
//! it (MPI 5.0, section 12.2.4).
//!
//! ```text
//!   control words   | version | entries | where the table is |        version odd: being changed
//!   the table       | start, length, how to reach it | ...             memory of the fabric, made anew to grow
//! ```
//! An origin reads the version before each operation, and the table where it has changed since. Cost: one
//! atomic read an operation; three reads more after a change.

use crate::control::{TABLE, word};
use crate::{Flavor, Window};
use std::cell::RefCell;
use weft_fabric::{Fabric, Region, RemoteAddr, Sge};
use weft_process::{Error, class};

/// Attached memory, as an origin finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    pub at: RemoteAddr,
    /// Its address in the target, and its length.
    pub start: u64,
    pub len: u64,
    pub within: bool,
}

const WORDS: usize = 8;
/// Version, entries, place of the table.
const HEADER: usize = 2 + RemoteAddr::WORDS;

impl Piece {
    fn encode(&self) -> [u64; WORDS] {
        let [a, b, c, d] = self.at.words();
        [self.start, self.len, a, b, c, d, u64::from(self.within), 0]
    }

    fn decode(words: &[u64]) -> Piece {
        let at = RemoteAddr::from_words([words[2], words[3], words[4], words[5]]);
        Piece { start: words[0], len: words[1], at, within: words[6] == 1 }
    }

    fn holds(&self, first: u64, len: usize) -> bool {
        first
            .checked_sub(self.start)
            .is_some_and(|offset| offset <= self.len && len as u64 <= self.len - offset)
    }
}

/// What this rank has attached.
#[derive(Default)]
pub struct Attached {
    own: RefCell<Own>,
    /// What others have, by rank, as it was at a version.
    known: RefCell<Vec<(u64, Vec<Piece>)>>,
}

#[derive(Default)]
struct Own {
    pieces: Vec<(Piece, Region)>,
    table: Option<Region>,
    /// Tables that somebody may still read.
    former: Vec<Region>,
}

impl<F: Fabric> Window<F> {
    /// Makes memory part of this rank's window.
    pub async fn attach(&self, memory: Sge) -> Result<(), Error> {
        self.only_dynamic("MPI_Win_attach")?;
        if memory.is_empty() {
            return Ok(());
        }
        let (start, len) = (memory.ptr().expose_provenance() as u64, memory.len() as u64);
        let overlaps = |p: &Piece| start < p.start + p.len && p.start < start + len;
        let other = self.attached.own.borrow().pieces.iter().map(|p| p.0).find(overlaps);
        if let Some(Piece { start: at, len: its, .. }) = other {
            let text = format!(
                "MPI_Win_attach of {len} bytes at {start:#x}: it overlaps {its} bytes at {at:#x}, which \
                 are attached"
            );
            return Err(self.wrong(class::RMA_ATTACH, text));
        }
        let fabric = self.endpoint().fabric();
        let region = fabric.expose(memory)?;
        let piece = Piece { at: region.remote, start, len, within: fabric.lies_within(memory) };
        self.attached.own.borrow_mut().pieces.push((piece, region));
        self.publish().await
    }

    /// Takes it out; `base` is where it was attached.
    pub async fn detach(&self, base: usize) -> Result<(), Error> {
        self.only_dynamic("MPI_Win_detach")?;
        let region = {
            let pieces = &mut self.attached.own.borrow_mut().pieces;
            let Some(at) = pieces.iter().position(|(piece, _)| piece.start == base as u64) else {
                let text = format!("MPI_Win_detach: nothing is attached at {base:#x}");
                return Err(self.wrong(class::BASE, text));
            };
            pieces.remove(at).1
        };
        self.publish().await?;
        self.endpoint().fabric().withdraw(region);
        Ok(())
    }

    fn only_dynamic(&self, call: &str) -> Result<(), Error> {
        if self.flavor() == Flavor::Dynamic {
            return Ok(());
        }
        let text = format!("{call} on a window that MPI_Win_create_dynamic did not make");
        Err(self.wrong(class::RMA_FLAVOR, text))
    }

    /// Writes the table anew for the others to read.
    async fn publish(&self) -> Result<(), Error> {
        let fabric = self.endpoint().fabric();
        let bytes: Vec<u8> = {
            let own = &mut *self.attached.own.borrow_mut();
            let words = own.pieces.iter().flat_map(|(piece, _)| piece.encode());
            let bytes: Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
            let room = own.table.map_or(0, |table| table.local.len());
            if bytes.len() > room {
                let len = bytes.len().next_power_of_two().max(16 * 8 * WORDS);
                own.former.extend(own.table.replace(fabric.allocate(len)?));
            }
            bytes
        };
        let own = self.attached.own.borrow().table;
        let entries = self.attached.own.borrow().pieces.len() as u64;
        let at = own.map_or([0; RemoteAddr::WORDS], |table| table.remote.words());
        let me = self.peer(self.rank());
        let version = self.control.own(TABLE);
        self.add(me, version, 1).await?;
        if let Some(table) = own {
            table.local.fill(&bytes);
        }
        let header: Vec<u8> =
            std::iter::once(entries).chain(at).flat_map(u64::to_ne_bytes).collect();
        self.control.local(TABLE + 1, HEADER - 1).fill(&header);
        self.add(me, version, 1).await?;
        Ok(())
    }

    /// The attached memory of `rank` that holds `len` bytes at address `first`.
    pub(crate) async fn attached(
        &self,
        rank: usize,
        first: u64,
        len: usize,
    ) -> Result<Option<Piece>, Error> {
        if rank == self.rank() {
            let own = self.attached.own.borrow();
            return Ok(own.pieces.iter().map(|p| p.0).find(|p| p.holds(first, len)));
        }
        let (peer, words) = (self.peer(rank), self.shown[rank].control);
        loop {
            let version = self.add(peer, word(words, TABLE), 0).await?;
            let find = |pieces: &[Piece]| pieces.iter().find(|p| p.holds(first, len)).copied();
            if let Some((known, pieces)) = self.attached.known.borrow().get(rank)
                && *known == version
            {
                return Ok(find(pieces));
            }
            if version % 2 == 1 {
                continue;
            }
            let header = self.fetch(peer, word(words, TABLE + 1), HEADER - 1).await?;
            let entries = header[0] as usize;
            let at = RemoteAddr::from_words([header[1], header[2], header[3], header[4]]);
            let table = match entries {
                0 => Vec::new(),
                _ => self.fetch(peer, at, entries.saturating_mul(WORDS).min(MOST)).await?,
            };
            if self.add(peer, word(words, TABLE), 0).await? != version {
                continue;
            }
            let pieces = table.chunks_exact(WORDS).map(Piece::decode).collect();
            let known = &mut *self.attached.known.borrow_mut();
            known.resize_with(self.shown.len(), || (u64::MAX, Vec::new()));
            known[rank] = (version, pieces);
        }
    }

    /// All memory that this rank has attached, with its addresses.
    pub(crate) fn own_attached(&self) -> Vec<(Sge, u64)> {
        let own = self.attached.own.borrow();
        own.pieces.iter().map(|(piece, region)| (region.local, piece.start)).collect()
    }

    /// Everything goes back to the fabric.
    pub(crate) fn withdraw_attached(&self) {
        let own = std::mem::take(&mut *self.attached.own.borrow_mut());
        let fabric = self.endpoint().fabric();
        let regions = own.pieces.into_iter().map(|p| p.1).chain(own.table).chain(own.former);
        regions.for_each(|region| fabric.withdraw(region));
    }
}

/// Bound on a table that a peer speaks of, in words.
const MOST: usize = 1 << 24;
