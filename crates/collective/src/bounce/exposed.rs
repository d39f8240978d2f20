//! The program's memory, read and written where it is, between two barriers.

use super::memory::exchange;
use super::{BounceSession, NAME};
use crate::address_exchange::{self, Exchanged};
use weft_fabric::{Fabric, FabricExt, Fault, Region, RemoteAddr, Sge};

/// A piece of memory of each rank.
pub struct ExposedPieces {
    region: Region,
    all: Exchanged,
}

impl ExposedPieces {
    fn of(&self, rank: usize) -> RemoteAddr {
        self.all.addr(rank, 0)
    }
}

impl<F: Fabric> BounceSession<'_, F> {
    /// A barrier in which everybody learns where the others' `memory` is. It is reached until
    /// [`BounceSession::withdraw`], before which the ranks meet once more. `None` on all ranks: one could not show its own, and the `rest` of
    /// this operation's barriers, of which there is at least one, are over.
    pub async fn expose(&self, memory: Sge, rest: u64) -> Result<Option<ExposedPieces>, Fault> {
        // What cannot be registered now is an answer, not an error.
        self.exposed(self.link.endpoint.fabric().expose(memory).ok(), rest).await
    }

    /// Exposes memory that other ranks [write](BounceSession::write).
    pub async fn expose_to_writers(
        &self,
        memory: Sge,
        rest: u64,
    ) -> Result<Option<ExposedPieces>, Fault> {
        self.exposed(self.link.endpoint.fabric().expose_to_writers(memory).ok(), rest).await
    }

    async fn exposed(
        &self,
        region: Option<Region>,
        rest: u64,
    ) -> Result<Option<ExposedPieces>, Fault> {
        const COULD: usize = RemoteAddr::WORDS;
        let mut words = [0; COULD + 1];
        if let Some(region) = &region {
            words[..COULD].copy_from_slice(&region.remote.words());
            words[COULD] = 1;
        }
        debug_assert!(
            rest > 0,
            "an operation ends with a barrier after which nobody reads what was said"
        );
        let all = exchange(self.link, &self.session, self.take_number(), &words).await?;
        let could = (0..self.link.size()).all(|rank| all.word(rank, COULD) == 1);
        match region {
            Some(region) if could => Ok(Some(ExposedPieces { region, all })),
            region => {
                region.into_iter().for_each(|r| self.link.endpoint.fabric().withdraw(r));
                self.give_up(rest).await?;
                Ok(None)
            }
        }
    }

    /// A barrier in which everybody learns whether all `could`; if not, the `rest` of this operation's, at least one, are over.
    pub async fn barrier_if(&self, could: bool, rest: u64) -> Result<bool, Fault> {
        let words = [u64::from(could)];
        debug_assert!(
            rest > 0,
            "an operation ends with a barrier after which nobody reads what was said"
        );
        let all = exchange(self.link, &self.session, self.take_number(), &words).await?;
        let all = (0..self.link.size()).all(|rank| all.word(rank, 0) == 1);
        if !all {
            self.give_up(rest).await?;
        }
        Ok(all)
    }

    /// Ends an operation after an exchange, with a barrier at least: until then others may still read what was said, and
    /// who has left may end the communicator and give the memory back.
    async fn give_up(&self, rest: u64) -> Result<(), Fault> {
        let epoch = self.next.replace(self.next.get() + rest);
        self.session.end_early(self.link, epoch, rest).await
    }

    /// Ends the reach of what was exposed.
    pub fn withdraw(&self, exposed: &ExposedPieces) {
        self.link.endpoint.fabric().withdraw(exposed.region);
    }

    /// Reads what `rank` has exposed, from byte `offset` on.
    pub async fn read(
        &self,
        exposed: &ExposedPieces,
        rank: usize,
        offset: usize,
        into: Sge,
    ) -> Result<(), Fault> {
        self.fetch(rank, exposed.of(rank).offset(offset as u64), into).await
    }

    /// Writes over what `rank` has exposed, from byte `offset` on.
    pub async fn write(
        &self,
        exposed: &ExposedPieces,
        rank: usize,
        offset: usize,
        data: Sge,
    ) -> Result<(), Fault> {
        self.store(rank, exposed.of(rank).offset(offset as u64), data).await
    }

    /// Names `memory` in the buffer for the next barrier, at place `i`: as far as the buffer goes, [`NAME`] bytes each.
    /// Whoever does it withdraws the region, after one more barrier.
    pub fn name(&self, i: usize, memory: Sge) -> Result<Region, Fault> {
        let region = self.link.endpoint.fabric().expose(memory)?;
        address_exchange::write(&region.remote.words(), self.next_buffer().part(i * NAME, NAME));
        Ok(region)
    }

    /// Reads what `rank` has named at place `i` of its buffer of the last barrier.
    pub async fn read_named(&self, rank: usize, i: usize, into: Sge) -> Result<(), Fault> {
        let spare = self.link.stage(NAME);
        let said = self.operand(rank, i * NAME, spare.sge()).await?;
        let words = std::array::from_fn(|j| address_exchange::read(said, j));
        self.fetch(rank, RemoteAddr::from_words(words), into).await
    }
}
