//! Data in several regions that their target has attached. The regions may be adjacent or not. (MPI 5.0, section 12.2.4: accessed
//! memory must be attached, but not as one region.)
//!
//! ```text
//!   attached       │ region 1 │ region 2 │        │ region 3 │
//!   data           ....│ run ───────│..│ run │.....│ run │.....
//!   parts              │ 1  │ 2     │  ✗: not attached        each lies in one region, and is reached as this region
//! ```

use super::WindowMemory;
use super::attached::{AttachedPiece, cut};
use super::target_address::{AtomicityDomain, TargetAddress, TargetReach};
use crate::core::target_location::TargetLocation;
use weft_fabric::{Fabric, RemoteAddr, Sge};
use weft_process::{Error, class};

/// A part of an operation's data that lies in one region.
#[derive(Debug, Clone, Copy)]
pub struct RegionPart {
    /// Address of the part's first byte. If the part is mapped, the mapped memory has only the bytes of the part.
    pub place: TargetAddress,
    /// Offset among the packed bytes (`skip`), and length.
    pub skip: usize,
    pub len: usize,
}

impl RegionPart {
    /// Returns a part in memory of this process: `memory` holds the packed bytes from `skip` on.
    pub fn own(peer: usize, memory: Sge, skip: usize, domain: AtomicityDomain) -> RegionPart {
        let at = RemoteAddr::default();
        let place = TargetAddress {
            reach: TargetReach::Mapped(memory),
            peer,
            at,
            offset: 0,
            own: 0,
            domain,
        };
        RegionPart { place, skip, len: memory.len() }
    }
}

impl<F: Fabric> WindowMemory<F> {
    /// Returns the parts of a location's data. Error: RMA_RANGE if some of the data are not attached.
    pub async fn parts(&self, location: &TargetLocation<'_>) -> Result<Vec<RegionPart>, Error> {
        let mut runs = Vec::new();
        location.ty.runs(location.count, 0, location.len(), |offset, len| {
            runs.push((location.disp.wrapping_add(offset) as u64, len as u64));
        });
        let mut found = Vec::with_capacity(runs.len());
        let missing = self
            .with_attached(location.rank, |pieces| {
                let mut runs = runs.iter();
                runs.find_map(|&(at, len)| {
                    cut(pieces, at, len, |piece, at, len| found.push((*piece, at, len))).err()
                })
            })
            .await?;
        if let Some(at) = missing {
            let text = format!(
                "{} bytes of data at address {:#x} of rank {}: it has not attached all of them \
                 (MPI_Win_attach), of those at {at:#x} the first is missing",
                location.len(),
                location.disp,
                location.rank
            );
            return Err(Error::new(class::RMA_RANGE, text));
        }
        let mut skip = 0;
        let part = |(piece, at, len): (AttachedPiece, u64, u64)| {
            let (place, len) = (self.place_in(location.rank, &piece, at as i64), len as usize);
            let offset = at - piece.start;
            let reach = match place.reach {
                TargetReach::Mapped(memory) => {
                    TargetReach::Mapped(memory.part(offset as usize, len))
                }
                other => other,
            };
            let place = TargetAddress { reach, at: piece.at.offset(offset), offset: 0, ..place };
            skip += len;
            RegionPart { place, skip: skip - len, len }
        };
        Ok(found.into_iter().map(part).collect())
    }

    /// Returns the address of data in several regions, as the target itself names the place.
    pub fn all_of(&self, location: &TargetLocation) -> TargetAddress {
        TargetAddress {
            reach: TargetReach::Scattered,
            peer: self.core.peer(location.rank),
            at: RemoteAddr::default(),
            offset: 0,
            own: location.disp,
            domain: AtomicityDomain::Guarded,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(all: &[(u64, u64)]) -> Vec<AttachedPiece> {
        let piece = |&(start, len)| AttachedPiece {
            at: RemoteAddr::new(start, 0),
            start,
            len,
            within: false,
        };
        all.iter().map(piece).collect()
    }

    fn cut_up(all: &[(u64, u64)], (at, len): (u64, u64)) -> Result<Vec<(u64, u64, u64)>, u64> {
        let mut found = Vec::new();
        cut(&pieces(all), at, len, |piece, at, len| found.push((piece.start, at, len)))?;
        Ok(found)
    }

    #[test]
    fn runs_are_cut_at_the_borders_of_regions() {
        let all = [(100, 10), (110, 5), (120, 10)];
        assert_eq!(cut_up(&all, (100, 10)), Ok(vec![(100, 100, 10)]));
        assert_eq!(cut_up(&all, (105, 10)), Ok(vec![(100, 105, 5), (110, 110, 5)]));
        assert_eq!(cut_up(&all, (105, 11)), Err(115));
        assert_eq!(cut_up(&all, (99, 3)), Err(99));
        assert_eq!(cut_up(&all, (129, 2)), Err(130));
        assert_eq!(cut_up(&all, (200, 0)), Ok(vec![]));
        assert_eq!(cut_up(&[(u64::MAX - 3, 4)], (u64::MAX - 1, 3)), Err(0));
    }
}
