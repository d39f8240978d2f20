//! Placement: finds and checks the memory for the rank, displacement and datatype of an operation (MPI 5.0, section 12.3).

use super::WindowMemory;
use super::attached::AttachedPiece;
use super::protocol::{self, AccessProtocol};
use super::target_address::{AtomicityDomain, TargetAddress, TargetReach};
use crate::core::WindowFlavor;
use crate::core::target_location::TargetLocation;
use weft_fabric::{Fabric, FabricExt, RemoteAddr, Sge};
use weft_process::{Error, class};

impl<F: Fabric> WindowMemory<F> {
    /// Finds the memory of a location. Errors: RMA_RANGE if some data lie outside of the window's memory, DISP for a negative
    /// displacement.
    pub async fn locate(&self, location: &TargetLocation<'_>) -> Result<TargetAddress, Error> {
        if self.core.flavor == WindowFlavor::Dynamic {
            return self.locate_attached(location).await;
        }
        let exposed = self.exposed(location.rank);
        let offset = location.disp.checked_mul(exposed.unit as i64);
        if location.disp < 0 {
            return Err(Error::new(
                class::DISP,
                format_args!(
                    "target_disp = {} of rank {} is negative",
                    location.disp, location.rank
                ),
            ));
        }
        let Some(offset) = offset.filter(|&offset| inside(location, offset, exposed.len)) else {
            return Err(self.out_of_range(location, exposed.len, exposed.unit));
        };
        Ok(TargetAddress {
            reach: self.reach(location.rank),
            peer: self.core.peer(exposed.holder as usize),
            at: exposed.memory,
            offset,
            own: offset,
            domain: self.domain(location.rank),
        })
    }

    /// Returns the agent that updates words of memory, if adapters do not update this memory. `within`: true if the fabric of the
    /// memory's process allocated the memory.
    pub fn by_processors(&self, within: bool) -> AtomicityDomain {
        by_processors(self.core.one_node, within)
    }

    /// Returns the way in which this process reaches memory of `peer`. `within`: true if the fabric of `peer` allocated the memory.
    pub fn reach_of(&self, peer: usize, at: RemoteAddr, len: usize, within: bool) -> TargetReach {
        let fabric = self.core.fabric();
        let seen = fabric.mapped(peer, at, len);
        let able = fabric.capabilities(peer);
        let path = protocol::TargetPath {
            mapped: seen.is_some(),
            within,
            direct: able.direct,
            synchronous: able.synchronous,
            distance: fabric.copies().distance(),
            ranks_each: self.core.endpoint().ranks_each(),
        };
        match (protocol::choose(&path), seen) {
            (AccessProtocol::Mapped, Some(memory)) => TargetReach::Mapped(memory),
            (AccessProtocol::TargetAssisted, _) => TargetReach::TargetAssisted,
            _ => TargetReach::Direct { synchronous: able.synchronous, rails: able.rails },
        }
    }

    async fn locate_attached(&self, location: &TargetLocation<'_>) -> Result<TargetAddress, Error> {
        let (low, len) = location.ty.span(location.count)?;
        let first = location.disp.wrapping_add(low) as u64;
        match self.find_attached(location.rank, first, len).await? {
            Some(piece) => Ok(self.place_in(location.rank, &piece, location.disp)),
            None if location.is_empty() => Ok(NOWHERE),
            None => {
                // If not all data are attached, this call returns the error.
                self.parts(location).await?;
                Ok(self.all_of(location))
            }
        }
    }

    /// Returns an address in an attached piece.
    pub fn place_in(&self, rank: usize, piece: &AttachedPiece, own: i64) -> TargetAddress {
        let AttachedPiece { at, start, len, within } = *piece;
        let peer = self.core.peer(rank);
        TargetAddress {
            reach: self.reach_of(peer, at, len as usize, within),
            peer,
            at,
            offset: own.wrapping_sub(start as i64),
            own,
            domain: self.by_processors(within),
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
        Error::new(class::RMA_RANGE, text)
    }
}

/// Returns the agent that updates words of memory, if adapters do not update this memory.
pub(super) fn by_processors(one_node: bool, within: bool) -> AtomicityDomain {
    match one_node && within {
        true => AtomicityDomain::Processors,
        false => AtomicityDomain::Guarded,
    }
}

/// Address of an operation without data.
const NOWHERE: TargetAddress = TargetAddress {
    reach: TargetReach::Mapped(Sge::EMPTY),
    peer: 0,
    at: RemoteAddr::new(0, 0),
    offset: 0,
    own: 0,
    domain: AtomicityDomain::Guarded,
};

/// Returns true if all data of a location at `offset` lie in memory of `len` bytes.
pub fn inside(location: &TargetLocation, offset: i64, len: u64) -> bool {
    let Ok((low, span)) = location.ty.span(location.count) else { return false };
    if span == 0 {
        return true;
    }
    let first = offset.checked_add(low).and_then(|first| u64::try_from(first).ok());
    first.and_then(|first| first.checked_add(span as u64)).is_some_and(|end| end <= len)
}
