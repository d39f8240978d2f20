//! Where an operation acts: from rank, displacement and datatype to memory, checked.

use crate::attach::Piece as Attached;
use crate::protocol::{self, Protocol};
use crate::{Flavor, Window};
use weft_datatype::Type;
use weft_fabric::{Fabric, FabricExt, Fault, RemoteAddr, Sge};
use weft_process::{Buffer, Error, class};

/// The target's side of an operation: `count` elements of `ty` at displacement `disp` of `rank`.
#[derive(Debug, Clone, Copy)]
pub struct TargetLocation<'a> {
    /// The target, as the window's communicator counts.
    pub rank: usize,
    /// In units of the target's displacement unit; in a dynamic window an address of the target.
    pub disp: i64,
    /// Elements of `ty`, which follow each other by its extent.
    pub count: usize,
    /// The layout of one element in the target's memory, as this process describes it.
    pub ty: &'a Type,
}

impl TargetLocation<'_> {
    /// Bytes of data.
    pub fn len(&self) -> usize {
        self.ty.size() * self.count
    }

    /// Whether there are no data, so that the target's memory is not touched.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How this process reaches a piece of a rank's memory.
#[derive(Debug, Clone, Copy)]
pub enum Reach {
    /// It sees it.
    Seen(Sge),
    /// The fabric reads and writes it. With [`weft_fabric::Capabilities::synchronous`] it has when the call returns.
    Direct { synchronous: bool, rails: usize },
    /// Only the rank's own process does.
    Served,
    /// In several ways: it lies in several attached regions ([`crate::scattered`]).
    Scattered,
}

/// A place in a rank's memory.
#[derive(Debug, Clone, Copy)]
pub struct TargetAddress {
    pub reach: Reach,
    /// The process that `at` is an address of.
    pub peer: usize,
    /// The start of the memory: the window's part of that rank, or what it attached.
    pub at: RemoteAddr,
    /// Of the first element from that start on, in bytes. All data lie inside.
    pub offset: i64,
    /// The same as the rank itself names it: an offset in its part of the window, or an address of a dynamic
    /// window.
    pub own: i64,
    pub words: Words,
}

/// Who updates elements that are words; the same for all origins of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Words {
    /// Whoever holds the guard, as all other elements.
    Guarded,
    /// Processors at once: [`weft_datatype::Basic::is_word_at`].
    Processors,
    /// Adapters: [`crate::atomics::is_for`].
    Adapters,
}

impl TargetAddress {
    /// The elements as this process sees them.
    pub fn view(&self, location: &TargetLocation) -> Option<Buffer> {
        match self.reach {
            Reach::Seen(memory) => {
                Buffer::within(memory, self.offset, location.count, location.ty.clone())
            }
            _ => None,
        }
    }

    /// Calls `f(address, skip, length)` for each run of the packed bytes, in order, until it fails.
    pub fn each_run(
        &self,
        location: &TargetLocation,
        mut f: impl FnMut(RemoteAddr, usize, usize) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let (mut done, mut result) = (0, Ok(()));
        location.ty.runs(location.count, 0, location.len(), |offset, len| {
            if result.is_ok() {
                result = f(self.at.offset(self.offset.wrapping_add(offset) as u64), done, len);
                done += len;
            }
        });
        result
    }
}

impl<F: Fabric> Window<F> {
    /// Finds the memory of a location. Errors: RMA_RANGE if data lie outside, DISP for a negative displacement.
    pub(crate) async fn locate(
        &self,
        location: &TargetLocation<'_>,
    ) -> Result<TargetAddress, Error> {
        if self.flavor() == Flavor::Dynamic {
            return self.locate_attached(location).await;
        }
        let shown = &self.shown[location.rank];
        let offset = location.disp.checked_mul(shown.unit as i64);
        if location.disp < 0 {
            return Err(self.wrong(
                class::DISP,
                format_args!(
                    "target_disp = {} of rank {} is negative",
                    location.disp, location.rank
                ),
            ));
        }
        let Some(offset) = offset.filter(|&offset| inside(location, offset, shown.len)) else {
            return Err(self.out_of_range(location, shown.len, shown.unit));
        };
        Ok(TargetAddress {
            reach: self.reach(location.rank),
            peer: self.peer(shown.holder as usize),
            at: shown.memory,
            offset,
            own: offset,
            words: match shown.adapters {
                true => Words::Adapters,
                false => self.by_processors(shown.within),
            },
        })
    }

    /// Who updates words of memory that adapters do not.
    pub(crate) fn by_processors(&self, within: bool) -> Words {
        if self.one_node && within { Words::Processors } else { Words::Guarded }
    }

    /// How this process reaches the window's part of a rank; found out once.
    #[inline]
    pub(crate) fn reach(&self, rank: usize) -> Reach {
        *self.targets[rank].reach.get_or_init(|| {
            let shown = &self.shown[rank];
            if rank == self.rank() {
                return Reach::Seen(self.memory());
            }
            let peer = self.peer(shown.holder as usize);
            let len = shown.len as usize;
            if self.flavor() == Flavor::Shared
                && let Some(memory) = self.endpoint().fabric().shown(peer, shown.memory, len)
            {
                return Reach::Seen(memory);
            }
            self.reach_of(peer, shown.memory, len, shown.within)
        })
    }

    /// The same for any memory of a process that its fabric allocated, or not.
    pub(crate) fn reach_of(&self, peer: usize, at: RemoteAddr, len: usize, within: bool) -> Reach {
        let fabric = self.endpoint().fabric();
        let seen = fabric.mapped(peer, at, len);
        let able = fabric.capabilities(peer);
        let path = protocol::Path {
            mapped: seen.is_some(),
            within,
            direct: able.direct,
            synchronous: able.synchronous,
            distance: fabric.copies().distance(),
            ranks_each: self.endpoint().ranks_each(),
        };
        match (protocol::choose(&path), seen) {
            (Protocol::Mapped, Some(memory)) => Reach::Seen(memory),
            (Protocol::Served, _) => Reach::Served,
            _ => Reach::Direct { synchronous: able.synchronous, rails: able.rails },
        }
    }

    async fn locate_attached(&self, location: &TargetLocation<'_>) -> Result<TargetAddress, Error> {
        let (low, len) = location.ty.span(location.count)?;
        let first = location.disp.wrapping_add(low) as u64;
        match self.attached(location.rank, first, len).await? {
            Some(piece) => Ok(self.place_in(location.rank, &piece, location.disp)),
            None if location.is_empty() => Ok(NOWHERE),
            None => {
                // Whether all of it is attached is said now.
                self.parts(location).await?;
                Ok(self.all_of(location))
            }
        }
    }

    /// An address in an attached piece.
    pub(crate) fn place_in(&self, rank: usize, piece: &Attached, own: i64) -> TargetAddress {
        let Attached { at, start, len, within } = *piece;
        let peer = self.peer(rank);
        TargetAddress {
            reach: self.reach_of(peer, at, len as usize, within),
            peer,
            at,
            offset: own.wrapping_sub(start as i64),
            own,
            words: self.by_processors(within),
        }
    }

    #[cold]
    fn out_of_range(&self, location: &TargetLocation, len: u64, unit: u64) -> Error {
        let (rank, disp, count) = (location.rank, location.disp, location.count);
        let at = match location.ty.span(count) {
            Ok((low, span)) => {
                let first = i128::from(disp) * i128::from(unit) + i128::from(low);
                format!("bytes {first} to {}", first + span as i128 - 1)
            }
            Err(_) => "more bytes than there are".to_owned(),
        };
        let text = format!(
            "rank {rank}: displacement {disp} (of {unit} bytes) with {count} elements touches {at} of a \
             window of {len} bytes"
        );
        self.wrong(class::RMA_RANGE, text)
    }
}

/// A place for no data.
const NOWHERE: TargetAddress = TargetAddress {
    reach: Reach::Seen(Sge::EMPTY),
    peer: 0,
    at: RemoteAddr::new(0, 0),
    offset: 0,
    own: 0,
    words: Words::Guarded,
};

/// Whether all data of a location at `offset` lie in memory of `len` bytes.
pub(crate) fn inside(location: &TargetLocation, offset: i64, len: u64) -> bool {
    let Ok((low, span)) = location.ty.span(location.count) else { return false };
    if span == 0 {
        return true;
    }
    let first = offset.checked_add(low).and_then(|first| u64::try_from(first).ok());
    first.and_then(|first| first.checked_add(span as u64)).is_some_and(|end| end <= len)
}
