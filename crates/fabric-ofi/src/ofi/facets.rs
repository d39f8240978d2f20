//! The optional parts of the fabric trait that an [`Ofi`] has.

use super::*;
use weft_fabric::{Counter, Helper, Immediates, Nodes, Rails, RdmaDirection, Registration};

impl Registration for Ofi {
    fn prepare(&self, memory: Sge, _way: RdmaDirection) -> Result<Option<Region>, Fault> {
        if !self.core.objects.registers_local() {
            return Ok(None);
        }
        self.state.borrow_mut().memory.expose(memory).map(Some)
    }

    fn adopt(&self, memory: Sge) -> Result<Region, Fault> {
        self.state.borrow_mut().memory.adopt(memory)
    }
}

impl Rails for Ofi {
    fn write_over(&self, rail: usize, peer: usize, write: &RemoteWrite) -> Result<(), Fault> {
        let &RemoteWrite { src, dst, done } = write;
        if src.is_empty() || peer == self.core.rank {
            return self.write(peer, write);
        }
        let target = address::decode(peer, dst, src.len())?;
        self.transfer(peer, RemoteTransfer::write(src, target, None, done), Some(rail))
    }

    fn read_over(&self, rail: usize, peer: usize, read: &RemoteRead) -> Result<(), Fault> {
        let &RemoteRead { dst, src, done } = read;
        if dst.is_empty() || peer == self.core.rank {
            return self.read(peer, read);
        }
        let target = address::decode(peer, src, dst.len())?;
        self.transfer(peer, RemoteTransfer::read(dst, target, done), Some(rail))
    }

    fn write_flag_after(&self, rail: usize, peer: usize, set: &FlagWrite) -> Result<bool, Fault> {
        if !self.state.borrow().is_behind(rail, peer) {
            return Ok(false);
        }
        let nothing = RemoteWrite::new(Sge::EMPTY, RemoteAddr::default(), None);
        self.write_flag(peer, &nothing, set).map(|()| true)
    }

    fn rail_works(&self, rail: usize, peer: usize) -> bool {
        self.state.borrow().rail_works(rail, peer)
    }

    fn fragment_min(&self) -> Option<usize> {
        None
    }
}

impl Immediates for Ofi {
    fn write_imm(&self, peer: usize, write: &RemoteWrite, immediate: u32) -> Result<(), Fault> {
        self.write_with(peer, write, Some(TransferTail::Immediate(immediate)))
    }

    fn immediate(&self, immediate: u32) -> Counter {
        self.core.counters.immediate(immediate)
    }
}

impl Helper for Ofi {
    fn send_solicited(
        &self,
        peer: usize,
        head: Head,
        payload: Sge,
        done: Completion,
    ) -> PostOutcome {
        self.send(peer, head, payload, done)
    }

    fn helper(&self) -> Arc<dyn Sleep> {
        self.core.helper.clone()
    }

    // Every arrival and every completion wakes the helper.
    fn let_helper_sleep_at_ends(&self) {}

    // Most providers move bytes only when they are polled.
    fn moves_by_progress(&self) -> bool {
        let state = self.state.borrow();
        state.memory.exposed > 0 || state.requests.open() > 0
    }
}

impl Nodes for Ofi {
    fn node(&self, peer: usize) -> usize {
        // A layer above knows the hosts of the processes of this job.
        self.core.roster.borrow().foreign(peer).map_or(0, |foreign| foreign.node)
    }

    // A layer above knows the processors of this node's processes.
    fn groups(&self, _peer: usize) -> Option<weft_fabric::copies::ProcessorGroups> {
        None
    }

    fn same_arithmetic(&self) -> bool {
        self.core.same_arithmetic
    }
}
