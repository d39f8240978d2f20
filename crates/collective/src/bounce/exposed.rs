//! The program's own memory, read and written in place between two barriers.

use super::memory::exchange;
use super::{BounceSession, NAME};
use crate::address_exchange::{self, Exchanged};
use weft_fabric::{Fabric, FabricExt, Fault, Region, RemoteAddr, RemoteWrite, Sge};

/// Exposed memory: one piece of each rank.
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
    /// Runs a barrier in which all ranks exchange the addresses of their `memory`. The memory is accessible until
    /// [`BounceSession::withdraw`]. Before the withdrawal, another barrier is needed. If some rank cannot expose memory, returns
    /// `None` on all ranks, and completes the remaining `rest` barriers of this operation (at least 1).
    pub async fn expose(&self, memory: Sge, rest: u64) -> Result<Option<ExposedPieces>, Fault> {
        // If memory cannot be registered now, this rank reports the failure to the other ranks, and no error is returned.
        self.exposed(self.link.endpoint.fabric().expose(memory).ok(), rest).await
    }

    /// Exposes memory like [`BounceSession::expose`], but for [writes](BounceSession::write) of other ranks.
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

    /// Runs a barrier after which all ranks know if every rank has passed true as `could`. If not, completes the remaining `rest`
    /// barriers of this operation (at least 1).
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

    /// Ends an operation after an exchange, with at least one barrier. The barrier is needed because other ranks may still read the
    /// exchanged words, and a rank that has left may end the communicator and free the memory.
    async fn give_up(&self, rest: u64) -> Result<(), Fault> {
        let epoch = self.next.replace(self.next.get() + rest);
        self.session.end_early(self.link, epoch, rest).await
    }

    /// Ends access to the exposed memory of this rank.
    pub fn withdraw(&self, exposed: &ExposedPieces) {
        self.link.endpoint.fabric().withdraw(exposed.region);
    }

    /// Reads the exposed memory of `rank`, from byte `offset` on.
    pub async fn read(
        &self,
        exposed: &ExposedPieces,
        rank: usize,
        offset: usize,
        into: Sge,
    ) -> Result<(), Fault> {
        self.fetch(rank, exposed.of(rank).offset(offset as u64), into).await
    }

    /// Overwrites the exposed memory of `rank`, from byte `offset` on.
    pub async fn write(
        &self,
        exposed: &ExposedPieces,
        rank: usize,
        offset: usize,
        data: Sge,
    ) -> Result<(), Fault> {
        self.store(rank, exposed.of(rank).offset(offset as u64), data).await
    }

    /// Registers `memory`, and writes its remote address at index `i` of the buffer for the next barrier. Each index takes [`NAME`]
    /// bytes; `i` is limited by the buffer's length. The caller withdraws the region after one more barrier.
    pub fn name(&self, i: usize, memory: Sge) -> Result<Region, Fault> {
        let region = self.link.endpoint.fabric().expose(memory)?;
        address_exchange::write(region.remote.words(), self.next_buffer().part(i * NAME, NAME));
        Ok(region)
    }

    /// Reads the memory whose address `rank` has written at index `i` of its buffer of the last barrier.
    pub async fn read_named(&self, rank: usize, i: usize, into: Sge) -> Result<(), Fault> {
        let spare = self.link.stage(NAME);
        let said = self.operand(rank, i * NAME, spare.sge()).await?;
        let words = std::array::from_fn(|j| address_exchange::read(said, j));
        self.fetch(rank, RemoteAddr::from_words(words), into).await
    }

    /// Declares that only names of memory are copied in ([`BounceSession::name`]), so that slow lines do not matter.
    pub fn without_data(mut self) -> Self {
        self.nth = 0;
        self
    }

    pub(super) async fn store(&self, rank: usize, to: RemoteAddr, data: Sge) -> Result<(), Fault> {
        let peer = self.link.members[rank] as usize;
        self.session
            .finish(|fabric, done| fabric.write(peer, &RemoteWrite::new(data, to, done)))
            .await
    }
}
