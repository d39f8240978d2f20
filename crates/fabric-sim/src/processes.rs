//! Ranks that are processes of their own. Their memory and their counters lie in other address spaces, where only a
//! [`RankProcesses`] reaches them.
//!
//! ```text
//!   event.rs, post.rs ── WorldState::copy_between, read_word, write_word, count
//!                          ├─ no processes: the memory is the simulator's own
//!                          └─ RankProcesses: the operating system copies between the processes
//! ```

use crate::arrival_record::ArrivalRecord;
use crate::sim::Sim;
use crate::world::WorldState;
use std::rc::Rc;
use weft_fabric::{Counter, Fabric, Fault, Region, Sge};

/// Memory of a rank.
#[derive(Debug, Clone, Copy)]
pub struct RankMemory {
    /// The rank whose address space has the memory.
    pub rank: usize,
    /// The bytes, by their address in the rank's address space. The simulator never accesses them itself if the rank is a process
    /// of its own.
    pub memory: Sge,
}

/// A counter of a rank, by the rank's own number for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankCounter {
    /// The counter of a completed operation.
    Completion(Counter),
    /// The counter of arrivals of this immediate.
    Immediate(u32),
}

/// Access to ranks that are processes of their own.
pub trait RankProcesses {
    /// Copies `from` to `to`, which has the same length. Errors: [`weft_fabric::FaultCause::PeerLost`] if a process is gone,
    /// [`weft_fabric::FaultCause::System`] if the operating system refuses the access.
    fn copy(&self, to: RankMemory, from: RankMemory) -> Result<(), Fault>;

    /// Copies the start of `from` into `out`. Errors as of [`RankProcesses::copy`].
    fn read(&self, from: RankMemory, out: &mut [u8]) -> Result<(), Fault>;

    /// Copies `bytes` to the start of `to`. Errors as of [`RankProcesses::copy`].
    fn write(&self, to: RankMemory, bytes: &[u8]) -> Result<(), Fault>;

    /// Advances a counter of `rank` by one. The rank sees the new value at its next turn at the latest.
    fn advance(&self, rank: usize, counter: RankCounter);
}

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

impl Sim {
    /// Says that all ranks of the cluster are processes of their own. Must be called before the first operation.
    pub fn set_processes(&self, processes: Rc<dyn RankProcesses>) {
        let state = &mut *self.state();
        if state.processes.is_none() {
            state.arrivals = Some(Box::new(ArrivalRecord::new(state.ranks.len())));
        }
        state.processes = Some(processes);
    }

    /// Registers memory of this rank's process, which allocated it for peers: flags and atomics may be in it. Costs as much time
    /// as [`weft_fabric::Fabric::allocate`].
    pub fn enter_allocated(&self, memory: Sge) -> Region {
        let state = &mut *self.state();
        self.register(state, memory.len());
        state.memory.enter(self.rank(), memory, true)
    }

    /// Returns the number of messages that have arrived and were not taken yet.
    pub fn arrived_messages(&self) -> usize {
        let state = &*self.state();
        let mut number = state.ranks[self.rank()].first;
        let mut count = 0;
        while number != crate::in_flight::NONE {
            count += 1;
            number = state.flights[number].next;
        }
        count
    }

    /// Returns the number of datagrams that have arrived and were not taken yet.
    pub fn arrived_datagrams(&self) -> usize {
        self.state().rest[self.rank()].datagrams.len()
    }

    /// Returns the bytes at `at` of `peer`, by their address in the peer's address space.
    pub fn memory_of(
        &self,
        peer: usize,
        at: weft_fabric::RemoteAddr,
        len: usize,
    ) -> Result<Sge, Fault> {
        self.state().memory.find(peer, at, len)
    }

    /// Schedules a turn of this rank at time `at`, or at its clock if `at` has passed.
    pub fn wake_at(&self, at: crate::units::Picoseconds) {
        let state = &mut *self.state();
        let at = at.max(state.ranks[self.rank()].clock);
        state.schedule(self.rank(), at);
    }

    /// Returns the tick by which the clock of a rank advances when it looks without waiting: the time of a poll, or 10 ns if the
    /// machine file names no such time. So no loop of looks is endless.
    pub fn look_time(&self) -> crate::units::Picoseconds {
        self.state().prices.poll.max(10_000)
    }
}
