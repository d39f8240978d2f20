//! Operations whose data lie in several regions that their target attached, side by side or not (MPI 5.0, section
//! 12.2.4: what is accessed must be attached, but not as one region).
//!
//! ```text
//!   attached       │ region 1 │ region 2 │        │ region 3 │
//!   data           ....│ run ───────│..│ run │.....│ run │.....
//!   parts              │ 1  │ 2     │  ✗: not attached        each lies in one region, and is reached as that is
//! ```
//! Such an operation is over when its call returns. Elements that lie across regions are updated under the guard; so
//! does every origin, since all find the same regions. Cost: one transfer a part; accumulates as under the guard, but
//! for elements that lie in one region, which are those of an operation in that region alone.

use crate::Window;
use crate::accumulate::Packed;
use crate::attach::{Piece, holding};
use crate::fragments::Fragments;
use crate::place::{Reach, TargetAddress, TargetLocation, Words};
use crate::request::RmaRequest;
use crate::transfer::Issued;
use crate::whole::is_solid;
use weft_channel::rails::Way;
use weft_datatype::Basic;
use weft_fabric::{Fabric, FabricExt, RemoteAddr, Sge, Work};
use weft_process::{Buffer, Error, class};

/// A part of an operation's data that lies in one region.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    /// Where its first byte is; what is seen is the part alone.
    pub place: TargetAddress,
    /// Where it begins among the packed bytes, and its length.
    pub skip: usize,
    pub len: usize,
}

impl Part {
    /// Memory of this process: `memory` holds the packed bytes from `skip` on.
    pub fn own(peer: usize, memory: Sge, skip: usize, words: Words) -> Part {
        let at = RemoteAddr::default();
        let place =
            TargetAddress { reach: Reach::Seen(memory), peer, at, offset: 0, own: 0, words };
        Part { place, skip, len: memory.len() }
    }
}

/// Cuts `len` bytes at address `at` at the borders of regions, which are in order: each piece with the address and
/// the length of what lies in it. The address of the first byte in none, if there is one.
pub(crate) fn cut(
    pieces: &[Piece],
    (mut at, mut len): (u64, u64),
    mut f: impl FnMut(&Piece, u64, u64),
) -> Result<(), u64> {
    while len > 0 {
        let piece = holding(pieces, at).ok_or(at)?;
        let here = len.min(piece.len - (at - piece.start));
        f(piece, at, here);
        (at, len) = (at.wrapping_add(here), len - here);
    }
    Ok(())
}

impl<F: Fabric> Window<F> {
    /// The parts of a location's data. Error: RMA_RANGE if some of them are not attached.
    pub(crate) async fn parts(&self, location: &TargetLocation<'_>) -> Result<Vec<Part>, Error> {
        let mut runs = Vec::new();
        location.ty.runs(location.count, 0, location.len(), |offset, len| {
            runs.push((location.disp.wrapping_add(offset) as u64, len as u64));
        });
        let mut found = Vec::with_capacity(runs.len());
        let missing = self
            .with_attached(location.rank, |pieces| {
                let mut runs = runs.iter();
                runs.find_map(|&run| {
                    cut(pieces, run, |piece, at, len| found.push((*piece, at, len))).err()
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
            return Err(self.wrong(class::RMA_RANGE, text));
        }
        let mut skip = 0;
        let part = |(piece, at, len): (Piece, u64, u64)| {
            let (place, len) = (self.place_in(location.rank, &piece, at as i64), len as usize);
            let offset = at - piece.start;
            let reach = match place.reach {
                Reach::Seen(memory) => Reach::Seen(memory.part(offset as usize, len)),
                other => other,
            };
            let place = TargetAddress { reach, at: piece.at.offset(offset), offset: 0, ..place };
            skip += len;
            Part { place, skip: skip - len, len }
        };
        Ok(found.into_iter().map(part).collect())
    }

    /// What asks the target for all of it, where some part of it is not reached otherwise.
    fn served(&self, location: &TargetLocation, parts: &[Part]) -> Option<TargetAddress> {
        let any = parts.iter().any(|part| matches!(part.place.reach, Reach::Served));
        any.then(|| self.all_of(location))
    }

    /// The place of data in several regions, as the target names it.
    pub(crate) fn all_of(&self, location: &TargetLocation) -> TargetAddress {
        TargetAddress {
            reach: Reach::Scattered,
            peer: self.peer(location.rank),
            at: RemoteAddr::default(),
            offset: 0,
            own: location.disp,
            words: Words::Guarded,
        }
    }

    pub(crate) async fn put_scattered(
        &self,
        origin: &Buffer,
        location: &TargetLocation<'_>,
    ) -> Result<Issued, Error> {
        let parts = self.parts(location).await?;
        let piece = origin.readable(self.endpoint().staging());
        match self.served(location, &parts) {
            Some(all) => self.ask_for(&all, location, RmaRequest::Put(piece.sge), None).await?,
            None => {
                self.write_parts(location.rank, &parts, &[(0, location.len())], piece.sge).await?
            }
        }
        Ok(Issued::OVER)
    }

    pub(crate) async fn get_scattered(
        &self,
        origin: &Buffer,
        location: &TargetLocation<'_>,
    ) -> Result<Issued, Error> {
        let parts = self.parts(location).await?;
        let piece = origin.writable(self.endpoint().staging());
        match self.served(location, &parts) {
            Some(all) => self.ask_for(&all, location, RmaRequest::Get, Some(piece.sge)).await?,
            None => {
                self.read_parts(location.rank, &parts, &[(0, location.len())], piece.sge).await?
            }
        }
        piece.unpack(origin, location.len());
        Ok(Issued::OVER)
    }

    pub(crate) async fn change_scattered(
        &self,
        location: &TargetLocation<'_>,
        basic: Basic,
        change: Packed,
        former: Option<Sge>,
    ) -> Result<(), Error> {
        let parts = self.parts(location).await?;
        match self.served(location, &parts) {
            Some(all) => {
                self.ask_for(&all, location, RmaRequest::Change(change, basic), former).await
            }
            None => {
                self.change_parts(location.rank, &parts, location.len(), basic, change, former)
                    .await
            }
        }
    }

    /// Changes `bytes` of packed elements, which lie in `parts`.
    pub(crate) async fn change_parts(
        &self,
        rank: usize,
        parts: &[Part],
        bytes: usize,
        basic: Basic,
        change: Packed,
        former: Option<Sge>,
    ) -> Result<(), Error> {
        let mut inside = Vec::new();
        let rest = within(parts, bytes, basic, |skip, run| inside.push((skip, run)));
        if !inside.is_empty() {
            let changed = self.whole(rank, || {
                inside.iter().try_for_each(|&(skip, run)| {
                    let former = former.map(|former| former.part(skip, run.len()));
                    change.part(skip, run.len()).apply(basic, run, former)
                })
            });
            changed.await??;
        }
        if rest.is_empty() {
            return Ok(());
        }
        let guarded = async {
            let elements = self.endpoint().staging().take(bytes);
            let elements = elements.sge();
            self.endpoint().fabric().charge(Work::Reduce(bytes));
            self.read_parts(rank, parts, &rest, elements).await?;
            for &(skip, len) in &rest {
                let former = former.map(|former| former.part(skip, len));
                change.part(skip, len).apply(basic, elements.part(skip, len), former)?;
            }
            if change.changes() {
                self.write_parts(rank, parts, &rest, elements).await?;
            }
            Ok(())
        };
        self.guarded(rank, guarded).await
    }

    /// Writes some of the packed bytes to where they belong, and waits until they are there.
    async fn write_parts(
        &self,
        rank: usize,
        parts: &[Part],
        ranges: &[(usize, usize)],
        data: Sge,
    ) -> Result<(), Error> {
        self.move_parts(Way::Write, rank, parts, ranges, data).await
    }

    /// Reads some of the packed bytes from where they lie, and waits until they are here.
    async fn read_parts(
        &self,
        rank: usize,
        parts: &[Part],
        ranges: &[(usize, usize)],
        into: Sge,
    ) -> Result<(), Error> {
        self.move_parts(Way::Read, rank, parts, ranges, into).await
    }

    async fn move_parts(
        &self,
        way: Way,
        rank: usize,
        parts: &[Part],
        ranges: &[(usize, usize)],
        data: Sge,
    ) -> Result<(), Error> {
        let mut posts = None;
        let mut outcome = Ok(());
        common(parts, ranges, |part, skip, len| {
            let (offset, here) = (skip - part.skip, data.part(skip, len));
            match (part.place.reach, way) {
                (Reach::Seen(memory), Way::Write) => memory.part(offset, len).copy_from(here),
                (Reach::Seen(memory), Way::Read) => here.copy_from(memory.part(offset, len)),
                _ if outcome.is_err() => {}
                _ => {
                    let posts =
                        posts.get_or_insert_with(|| Fragments::new(self, &part.place, rank, true));
                    let there = part.place.at.offset(offset as u64);
                    outcome = match way {
                        Way::Write => posts.write(here, there),
                        Way::Read => posts.read(here, there),
                    };
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

/// Calls `f` for the elements that lie each in one of `parts` whose words processors update, and where they begin among
/// the packed bytes; returns the ranges of packed bytes, of whole elements, that are left.
fn within(
    parts: &[Part],
    bytes: usize,
    basic: Basic,
    mut f: impl FnMut(usize, Sge),
) -> Vec<(usize, usize)> {
    let (mut rest, mut done, size) = (Vec::new(), 0, basic.size());
    for part in parts {
        let (first, end) = (part.skip.next_multiple_of(size), (part.skip + part.len) / size * size);
        let Reach::Seen(memory) = part.place.reach else { continue };
        if part.place.words != Words::Processors || first >= end || !is_solid(basic) {
            continue;
        }
        f(first, memory.part(first - part.skip, end - first));
        rest.extend((first > done).then_some((done, first - done)));
        done = end;
    }
    rest.extend((bytes > done).then_some((done, bytes - done)));
    rest
}

/// Calls `f` for what each part has in common with each of the ranges, both in order: the part, and those packed bytes.
fn common(parts: &[Part], ranges: &[(usize, usize)], mut f: impl FnMut(&Part, usize, usize)) {
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

    fn pieces(all: &[(u64, u64)]) -> Vec<Piece> {
        let piece =
            |&(start, len)| Piece { at: RemoteAddr::new(start, 0), start, len, within: false };
        all.iter().map(piece).collect()
    }

    fn cut_up(all: &[(u64, u64)], run: (u64, u64)) -> Result<Vec<(u64, u64, u64)>, u64> {
        let mut found = Vec::new();
        cut(&pieces(all), run, |piece, at, len| found.push((piece.start, at, len)))?;
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

    #[test]
    fn what_is_left_is_whole_elements() {
        let memory = |len| weft_fabric::StagingPool::default().take(len);
        let (a, b) = (memory(64), memory(64));
        let word = Basic::of_handle(0x201).expect("MPI_AINT");
        let part = |memory: Sge, skip, words| Part::own(0, memory, skip, words);
        // An element of 8 bytes lies across: 4 bytes in each.
        let (one, two) = (a.sge().part(0, 20), b.sge().part(4, 28));
        for (words, whole) in [(Words::Processors, true), (Words::Guarded, false)] {
            let parts = [part(one, 0, words), part(two, 20, words)];
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
