//! Operations whose data lie in several regions that their target has attached ([`crate::memory::regions`]).
//!
//! Such an operation is complete when its call returns. Elements that cross the border of two regions are updated under the guard.
//! All origins do this for the same elements, because they find the same regions. Cost: one transfer per part. An accumulate of
//! elements within one region costs as much as an operation in that region. Other elements cost as much as under the guard.

use super::WindowAccess;
use super::accumulate_protocol::is_solid;
use super::in_flight::Issued;
use crate::control::packed_change::ElementChange;
use crate::control::request::RmaRequest;
use crate::core::target_location::TargetLocation;
use crate::memory::regions::RegionPart;
use crate::memory::target_address::{AtomicityDomain, TargetReach};
use weft_datatype::Basic;
use weft_fabric::{Fabric, FabricExt, RdmaDirection, Sge, Work};
use weft_process::{Buffer, Error};

impl<F: Fabric> WindowAccess<F> {
    pub(super) async fn put_scattered(
        &self,
        origin: &Buffer,
        location: &TargetLocation<'_>,
    ) -> Result<Issued, Error> {
        let parts = self.memory.parts(location).await?;
        let piece = origin.readable(self.core.endpoint().staging());
        match asks_target(location, &parts) {
            Some(own) => {
                self.control.ask_for(own, location, RmaRequest::Put(piece.sge), None).await?
            }
            None => {
                let whole = [(0, location.len())];
                self.move_parts(RdmaDirection::Write, location.rank, &parts, &whole, piece.sge)
                    .await?
            }
        }
        Ok(Issued::OVER)
    }

    pub(super) async fn get_scattered(
        &self,
        origin: &Buffer,
        location: &TargetLocation<'_>,
    ) -> Result<Issued, Error> {
        let parts = self.memory.parts(location).await?;
        let piece = origin.writable(self.core.endpoint().staging());
        match asks_target(location, &parts) {
            Some(own) => {
                self.control.ask_for(own, location, RmaRequest::Get, Some(piece.sge)).await?
            }
            None => {
                let whole = [(0, location.len())];
                self.move_parts(RdmaDirection::Read, location.rank, &parts, &whole, piece.sge)
                    .await?
            }
        }
        piece.unpack(origin, location.len());
        Ok(Issued::OVER)
    }

    pub(super) async fn change_scattered(
        &self,
        location: &TargetLocation<'_>,
        change: ElementChange,
    ) -> Result<(), Error> {
        let parts = self.memory.parts(location).await?;
        match asks_target(location, &parts) {
            Some(own) => {
                let request = RmaRequest::Change(change.packed, change.basic);
                self.control.ask_for(own, location, request, change.former).await
            }
            None => self.change_parts(location.rank, &parts, location.len(), change).await,
        }
    }

    /// Changes `bytes` of packed elements, which lie in `parts`.
    pub(super) async fn change_parts(
        &self,
        rank: usize,
        parts: &[RegionPart],
        bytes: usize,
        change: ElementChange,
    ) -> Result<(), Error> {
        let mut inside = Vec::new();
        let rest = within(parts, bytes, change.basic, |skip, run| inside.push((skip, run)));
        if !inside.is_empty() {
            let changed = self.locks.whole(rank, || {
                inside.iter().try_for_each(|&(skip, run)| change.part(skip, run.len()).apply(run))
            });
            changed.await??;
        }
        if rest.is_empty() {
            return Ok(());
        }
        let guarded = async {
            let elements = self.core.endpoint().staging().take(bytes);
            let elements = elements.sge();
            self.core.fabric().charge(Work::Reduce(bytes));
            self.move_parts(RdmaDirection::Read, rank, parts, &rest, elements).await?;
            for &(skip, len) in &rest {
                change.part(skip, len).apply(elements.part(skip, len))?;
            }
            if change.packed.changes() {
                self.move_parts(RdmaDirection::Write, rank, parts, &rest, elements).await?;
            }
            Ok(())
        };
        self.locks.guarded(rank, guarded).await
    }

    /// Moves ranges of the packed bytes to or from their places, and waits until they have arrived.
    async fn move_parts(
        &self,
        way: RdmaDirection,
        rank: usize,
        parts: &[RegionPart],
        ranges: &[(usize, usize)],
        data: Sge,
    ) -> Result<(), Error> {
        let mut posts = None;
        let mut outcome = Ok(());
        common(parts, ranges, |part, skip, len| {
            let (offset, here) = (skip - part.skip, data.part(skip, len));
            match (part.place.reach, way) {
                (TargetReach::Mapped(memory), RdmaDirection::Write) => {
                    memory.part(offset, len).copy_from(here)
                }
                (TargetReach::Mapped(memory), RdmaDirection::Read) => {
                    here.copy_from(memory.part(offset, len))
                }
                _ if outcome.is_err() => {}
                _ => {
                    let posts = posts.get_or_insert_with(|| self.counted(&part.place, rank));
                    outcome = posts.transfer(way, here, part.place.at.offset(offset as u64));
                }
            }
        });
        outcome?;
        match posts {
            Some(posts) => posts.wait().await,
            None => Ok(()),
        }
    }
}

/// If only the target reaches some part, returns the place of the data as the target names it. The caller then asks the target for
/// all parts.
fn asks_target(location: &TargetLocation, parts: &[RegionPart]) -> Option<i64> {
    let any = parts.iter().any(|part| matches!(part.place.reach, TargetReach::TargetAssisted));
    any.then_some(location.disp)
}

/// Calls `f` for the whole elements in each mapped part whose words processors update. `f` gets the offset of the first of these
/// elements among the packed bytes, and the memory of these elements. Returns the other ranges of packed bytes: offset and length
/// of each.
fn within(
    parts: &[RegionPart],
    bytes: usize,
    basic: Basic,
    mut f: impl FnMut(usize, Sge),
) -> Vec<(usize, usize)> {
    let (mut rest, mut done, size) = (Vec::new(), 0, basic.size());
    for part in parts {
        let (first, end) = (part.skip.next_multiple_of(size), (part.skip + part.len) / size * size);
        let TargetReach::Mapped(memory) = part.place.reach else { continue };
        if part.place.domain != AtomicityDomain::Processors || first >= end || !is_solid(basic) {
            continue;
        }
        f(first, memory.part(first - part.skip, end - first));
        rest.extend((first > done).then_some((done, first - done)));
        done = end;
    }
    rest.extend((bytes > done).then_some((done, bytes - done)));
    rest
}

/// Calls `f` for the intersection of each part with each range. Parts and ranges are in ascending order. `f` gets the part, and the
/// offset and length of the intersection among the packed bytes.
fn common(
    parts: &[RegionPart],
    ranges: &[(usize, usize)],
    mut f: impl FnMut(&RegionPart, usize, usize),
) {
    let (mut parts, mut ranges) = (parts.iter().peekable(), ranges.iter().peekable());
    while let (Some(&part), Some(&&(skip, len))) = (parts.peek(), ranges.peek()) {
        let (from, to) = (part.skip.max(skip), (part.skip + part.len).min(skip + len));
        if from < to {
            f(part, from, to - from);
        }
        match part.skip + part.len <= skip + len {
            true => drop(parts.next()),
            false => drop(ranges.next()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_whole_elements() {
        let memory = |len| weft_fabric::StagingPool::default().take(len);
        let (a, b) = (memory(64), memory(64));
        let word = Basic::of_handle(0x201).expect("MPI_AINT");
        let part = |memory: Sge, skip, domain| RegionPart::own(0, memory, skip, domain);
        // An element of 8 bytes crosses the border of the parts: 4 bytes are in each part.
        let (one, two) = (a.sge().part(0, 20), b.sge().part(4, 28));
        for (domain, whole) in
            [(AtomicityDomain::Processors, true), (AtomicityDomain::Guarded, false)]
        {
            let parts = [part(one, 0, domain), part(two, 20, domain)];
            let mut seen = Vec::new();
            let rest = within(&parts, 48, word, |skip, run| seen.push((skip, run.len())));
            match whole {
                true => assert_eq!((seen, rest), (vec![(0, 16), (24, 24)], vec![(16, 8)])),
                false => assert_eq!((seen, rest), (vec![], vec![(0, 48)])),
            }
            let mut met = Vec::new();
            common(&parts, &[(16, 8), (40, 8)], |part, skip, len| met.push((part.skip, skip, len)));
            assert_eq!(met, [(0, 16, 4), (20, 20, 4), (20, 40, 8)]);
        }
    }
}
