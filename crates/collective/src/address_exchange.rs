//! Exchange of words between all ranks: the address of each rank's memory, and its capabilities.

use crate::CommView;
use crate::allgather::allgather_ring::ring;
use weft_fabric::{Fabric, Fault, RemoteAddr, Sge, Staging};

/// Returns the fault for missing memory that the ranks of a communicator share. If one rank has none, all do without.
#[cold]
pub(crate) fn no_memory() -> Fault {
    Fault::system("making memory for collective operations, on one of the ranks", NO_MEMORY)
}

/// ENOMEM of Linux.
const NO_MEMORY: i32 = 12;

/// Words of all ranks, a record for each.
pub(crate) struct Exchanged {
    memory: Staging,
    /// Number of bytes from one record to the next.
    stride: usize,
}

impl Exchanged {
    /// Wraps records that are in `memory` already, or will be there before they are read.
    pub fn new(memory: Staging, stride: usize) -> Exchanged {
        Exchanged { memory, stride }
    }

    /// Exchanges the words of all ranks, by messages round a ring. All ranks pass the same number of words.
    pub async fn by_all<F: Fabric>(link: &CommView<F>, words: &[u64]) -> Result<Exchanged, Fault> {
        let stride = 8 * words.len();
        let said = Exchanged::new(link.stage(stride * link.size()), stride);
        write(words, said.record(link.rank));
        let records: Vec<Sge> = (0..link.size()).map(|rank| said.record(rank)).collect();
        ring(link, &records).await?;
        Ok(said)
    }

    fn record(&self, rank: usize) -> Sge {
        self.memory.sge().part(self.stride * rank, self.stride)
    }

    /// Returns word `i` of `rank`.
    pub fn word(&self, rank: usize, i: usize) -> u64 {
        read(self.record(rank), i)
    }

    /// Returns the address of which word `first` of `rank` is the first word.
    pub fn addr(&self, rank: usize, first: usize) -> RemoteAddr {
        RemoteAddr::from_words(std::array::from_fn(|i| self.word(rank, first + i)))
    }
}

/// Writes words in the format of a record.
pub(crate) fn write(words: &[u64], to: Sge) {
    for (i, word) in words.iter().enumerate() {
        to.part(8 * i, 8).fill(&word.to_ne_bytes());
    }
}

/// Returns word `i` of a record.
pub(crate) fn read(record: Sge, i: usize) -> u64 {
    let mut bytes = [0; 8];
    record.part(8 * i, 8).read(&mut bytes);
    u64::from_ne_bytes(bytes)
}
