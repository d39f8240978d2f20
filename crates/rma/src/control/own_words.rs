//! Control words of this rank, and the flags in them on which this rank waits. The words are memory of the fabric, separate from
//! the window's memory.

use super::layout::{ControlTable, words_of};
use crate::core::WindowCore;
use std::cell::OnceCell;
use std::rc::Rc;
use weft_fabric::{Counter, Fabric, FabricExt, Fault, FlagKind, Region, RemoteAddr};
use weft_p2p::Endpoint;

/// Control words of this rank: memory of the fabric, in which peers set flags and perform atomics.
pub struct OwnWords<F: Fabric> {
    endpoint: Rc<Endpoint<F>>,
    region: Region,
    size: usize,
    rails: usize,
    /// Flags on which this rank waits, made at first use: grants, posted, completed, rails.
    flags: Box<[Box<[OnceCell<Counter>]>]>,
}

impl<F: Fabric> OwnWords<F> {
    /// Allocates the words for a window whose ranks reach these words over `rails` rails.
    pub fn new(core: &WindowCore<F>, rails: usize) -> Result<OwnWords<F>, Fault> {
        let (endpoint, size) = (core.endpoint(), core.size());
        let bytes = 8 * words_of(size, rails);
        // If all ranks are on one node, the processors perform the atomics.
        let region = match core.one_node {
            true => endpoint.fabric().allocate_on_node(bytes)?,
            false => endpoint.fabric().allocate(bytes)?,
        };
        let row = |_| (0..size).map(|_| OnceCell::new()).collect();
        let flags = (0..4 + 2 * rails).map(row).collect();
        Ok(OwnWords { endpoint: endpoint.clone(), region, size, rails, flags })
    }

    /// Returns the number of rails with words.
    pub fn rails(&self) -> usize {
        self.rails
    }

    pub fn at(&self) -> RemoteAddr {
        self.region.remote
    }

    /// Returns the memory of `count` words from `index` on.
    pub fn local(&self, index: usize, count: usize) -> weft_fabric::Sge {
        self.region.local.part(8 * index, 8 * count)
    }

    /// Returns the counter behind word `index` of a table on which this rank waits.
    pub fn flag(&self, table: ControlTable, index: usize) -> Counter {
        let which = table.number().checked_sub(2).expect("slots are no flags");
        *self.flags[which][index].get_or_init(|| {
            let offset = 8 * table.word(self.size, index);
            self.endpoint.fabric().flag(&self.region, offset, FlagKind::Waking).local
        })
    }
}

impl<F: Fabric> Drop for OwnWords<F> {
    fn drop(&mut self) {
        let fabric = self.endpoint.fabric();
        let flags = self.flags.iter().flat_map(|table| table.iter().filter_map(OnceCell::get));
        flags.for_each(|&flag| fabric.counters().release(flag));
        fabric.withdraw(self.region);
    }
}
