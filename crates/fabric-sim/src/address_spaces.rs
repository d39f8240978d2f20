//! Accesses to the memory and the counters of ranks, in the simulator's own address space or in those of the ranks' processes.

use crate::processes::{RankCounter, RankMemory};
use crate::world::WorldState;
use weft_fabric::Fault;

impl WorldState {
    /// Copies bytes between the memories of two ranks.
    pub(crate) fn copy_between(&self, to: RankMemory, from: RankMemory) -> Result<(), Fault> {
        let phantom = to.memory.is_phantom() || from.memory.is_phantom();
        match &self.processes {
            Some(processes) if !phantom && !to.memory.is_empty() => processes.copy(to, from),
            Some(_) => Ok(()),
            None => {
                to.memory.copy_from(from.memory);
                Ok(())
            }
        }
    }

    /// Returns the word at `word`.
    pub(crate) fn read_word(&self, word: RankMemory) -> Result<u64, Fault> {
        let mut bytes = [0; 8];
        match &self.processes {
            Some(processes) => processes.read(word, &mut bytes)?,
            None => word.memory.read(&mut bytes),
        }
        Ok(u64::from_ne_bytes(bytes))
    }

    /// Stores `value` at `word`.
    pub(crate) fn write_word(&self, word: RankMemory, value: u64) -> Result<(), Fault> {
        let bytes = value.to_ne_bytes();
        match &self.processes {
            Some(processes) if !word.memory.is_phantom() => processes.write(word, &bytes),
            Some(_) => Ok(()),
            None => {
                word.memory.fill(&bytes);
                Ok(())
            }
        }
    }

    /// Advances a counter of `rank` by one.
    pub(crate) fn count(&self, rank: usize, counter: RankCounter) {
        if let Some(processes) = &self.processes {
            return processes.advance(rank, counter);
        }
        let counters = &self.rest[rank].counters;
        let counter = match counter {
            RankCounter::Completion(counter) => counter,
            RankCounter::Immediate(immediate) => counters.immediate(immediate),
        };
        counters.add(counter, 1);
    }
}
