//! The calls of a simulation process, which serves a rank that is a process of its own.

use crate::arrival_record::ArrivalRecord;
use crate::processes::RankProcesses;
use crate::sim::Sim;
use std::rc::Rc;
use weft_fabric::{Fabric, Fault, Region, Sge};

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
        self.state().ranks[self.rank()].arrived as usize
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

    /// Returns true if an operation under way still uses this rank's memory, so that the rank's process must not end.
    pub fn uses_memory(&self) -> bool {
        self.state().flights.use_memory_of(self.rank() as u32)
    }

    /// Says that an operation of this rank was refused, for which the rank does not wait. All its waits fail from now on.
    pub fn refuse(&self, fault: Fault) {
        self.state().fail(self.rank(), fault);
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
