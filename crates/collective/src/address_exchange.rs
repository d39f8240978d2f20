//! Exchange of words between all ranks: the address of each rank's memory, and its capabilities.

use crate::allgather::allgather_ring::ring;
pub(crate) use crate::words::{read, write};
use crate::{CommView, words};
use weft_fabric::{Fabric, Fault, RemoteAddr, Sge, Staging};

/// Returns the error that is reported if some rank has no memory to share with the other ranks of a communicator. Then no rank uses
/// such memory.
#[cold]
pub(crate) fn no_memory() -> Fault {
    Fault::system("making memory for collective operations, on one of the ranks", NO_MEMORY)
}

/// ENOMEM of Linux.
const NO_MEMORY: i32 = 12;

/// Words of all ranks. Each rank has a record.
pub(crate) struct Exchanged {
    memory: Staging,
    /// Number of bytes from one record to the next.
    stride: usize,
}

impl Exchanged {
    /// Wraps the records in `memory`. A record may arrive later, but before it is read.
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

    /// Returns the remote address that starts at word `first` of `rank`'s record.
    pub fn addr(&self, rank: usize, first: usize) -> RemoteAddr {
        words::read_addr(self.record(rank).part(8 * first, 8 * RemoteAddr::WORDS))
    }
}
