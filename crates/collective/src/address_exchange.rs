//! Words that each rank has said to all: where its memory is, and what it can do.

use crate::CommView;
use crate::allgather::ring::ring;
use weft_fabric::{Fabric, Fault, RemoteAddr, Sge, Staging};

/// No memory for what the ranks of a communicator share: on one of them, so that all do without.
#[cold]
pub(crate) fn no_memory() -> Fault {
    Fault::system("making memory for collective operations, on one of the ranks", NO_MEMORY)
}

/// ENOMEM of Linux.
const NO_MEMORY: i32 = 12;

/// What the ranks have said, a record each.
pub(crate) struct Exchanged {
    memory: Staging,
    /// Bytes from one record to the next.
    stride: usize,
}

impl Exchanged {
    /// Of records that are in `memory` already, or will be before they are looked at.
    pub fn new(memory: Staging, stride: usize) -> Exchanged {
        Exchanged { memory, stride }
    }

    /// All ranks say as many words, by messages round a ring.
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

    /// Word `i` of `rank`.
    pub fn word(&self, rank: usize, i: usize) -> u64 {
        read(self.record(rank), i)
    }

    /// The address of which `first` is the first word.
    pub fn addr(&self, rank: usize, first: usize) -> RemoteAddr {
        RemoteAddr::from_words(std::array::from_fn(|i| self.word(rank, first + i)))
    }
}

/// Writes words as they are said.
pub(crate) fn write(words: &[u64], to: Sge) {
    for (i, word) in words.iter().enumerate() {
        to.part(8 * i, 8).fill(&word.to_ne_bytes());
    }
}

/// Word `i` of a record.
pub(crate) fn read(record: Sge, i: usize) -> u64 {
    let mut bytes = [0; 8];
    record.part(8 * i, 8).read(&mut bytes);
    u64::from_ne_bytes(bytes)
}
