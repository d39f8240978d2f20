//! What it can do beyond the core of a fabric.

use super::*;
use weft_fabric::{Counter, Immediates, Nodes, Registration};

impl Registration for Ofi {
    fn prepare(&self, _memory: Sge, _lands: bool) -> Result<Option<Region>, Fault> {
        Ok(None)
    }

    fn adopt(&self, memory: Sge) -> Result<Region, Fault> {
        self.state.borrow_mut().memory.adopt(memory)
    }
}

impl Immediates for Ofi {
    fn write_imm(
        &self,
        peer: usize,
        src: Sge,
        dst: RemoteAddr,
        immediate: u32,
        done: Completion,
    ) -> Result<(), Fault> {
        self.write_with(peer, src, dst, Some(Tail::Immediate(immediate)), done)
    }

    fn immediate(&self, immediate: u32) -> Counter {
        self.core.counters.immediate(immediate)
    }
}

impl Nodes for Ofi {
    fn node(&self, _peer: usize) -> usize {
        0
    }

    fn same_arithmetic(&self) -> bool {
        self.core.same_arithmetic
    }
}
