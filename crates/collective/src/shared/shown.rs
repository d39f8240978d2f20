//! The program's memory, read and written where it is, between two meetings.

use super::made::exchange;
use super::{Hall, NAME};
use crate::said::{self, Said};
use weft_fabric::{Fabric, Fault, Region, RemoteAddr, Sge};

/// A piece of memory of each rank.
pub struct Shown {
    region: Region,
    all: Said,
}

impl Shown {
    fn of(&self, rank: usize) -> RemoteAddr {
        self.all.addr(rank, 0)
    }
}

impl<F: Fabric> Hall<'_, F> {
    /// A meeting in which everybody learns where the others' `memory` is. It is reached until
    /// [`Hall::hide`], before which the ranks meet once more.
    pub async fn show(&self, memory: Sge) -> Result<Shown, Fault> {
        let region = self.link.endpoint.fabric().expose(memory)?;
        let epoch = self.take_number();
        let all = exchange(self.link, &self.turn, epoch, &region.remote.words()).await?;
        Ok(Shown { region, all })
    }

    /// Ends the reach of what was shown.
    pub fn hide(&self, shown: &Shown) {
        self.link.endpoint.fabric().withdraw(shown.region);
    }

    /// Reads what `rank` has shown, from byte `offset` on.
    pub async fn read(
        &self,
        shown: &Shown,
        rank: usize,
        offset: usize,
        into: Sge,
    ) -> Result<(), Fault> {
        self.fetch(rank, shown.of(rank).offset(offset as u64), into).await
    }

    /// Writes over what `rank` has shown, from byte `offset` on.
    pub async fn write(
        &self,
        shown: &Shown,
        rank: usize,
        offset: usize,
        data: Sge,
    ) -> Result<(), Fault> {
        self.store(rank, shown.of(rank).offset(offset as u64), data).await
    }

    /// Names `memory` on the desk for the next meeting, at place `i`: as far as the desk goes, [`NAME`] bytes each.
    /// Whoever does it withdraws the region, after one more meeting.
    pub fn name(&self, i: usize, memory: Sge) -> Result<Region, Fault> {
        let region = self.link.endpoint.fabric().expose(memory)?;
        said::write(&region.remote.words(), self.desk().part(i * NAME, NAME));
        Ok(region)
    }

    /// Reads what `rank` has named at place `i` of its desk of the last meeting.
    pub async fn read_named(&self, rank: usize, i: usize, into: Sge) -> Result<(), Fault> {
        let spare = self.link.stage(NAME);
        let said = self.operand(rank, i * NAME, spare.sge()).await?;
        let words = std::array::from_fn(|j| said::read(said, j));
        self.fetch(rank, RemoteAddr::from_words(words), into).await
    }
}
