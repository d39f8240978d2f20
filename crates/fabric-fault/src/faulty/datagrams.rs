//! Datagrams that are lost, repeated and overtaken, for each receiver by itself.

use super::FaultyFabric;
use std::cell::RefCell;
use weft_fabric::{Datagram, Fabric, FabricExt, GroupId, Sge};

#[derive(Default)]
pub(crate) struct FaultyDatagrams {
    /// The held datagrams: the time when each is due, its description, and its content.
    late: RefCell<Vec<(u64, Datagram, Vec<u8>)>>,
}

impl FaultyDatagrams {
    pub fn held(&self) -> usize {
        self.late.borrow().len()
    }

    /// Drops the held datagrams of a group that was left.
    pub fn forget(&self, group: GroupId) {
        self.late.borrow_mut().retain(|entry| entry.1.group != group);
    }

    fn take(&self, now: u64, into: Sge) -> Option<Datagram> {
        let mut late = self.late.borrow_mut();
        let due = |entry: &(u64, Datagram, Vec<u8>)| entry.0 <= now && entry.1.len <= into.len();
        let found = late.iter().position(due)?;
        let (_, datagram, content) = late.swap_remove(found);
        into.fill(&content);
        Some(datagram)
    }
}

impl<F: Fabric> FaultyFabric<F> {
    pub(crate) fn receive_multicast_badly(&self, into: Sge) -> Option<Datagram> {
        let now = self.tick();
        let plan = &self.plan;
        let mut result = self.datagrams.take(now, into);
        while result.is_none() {
            let Some(datagram) = self.inner.receive_multicast(into) else { break };
            if self.chance(plan.multicast_loss) {
                continue;
            }
            let copy = |due: u64| {
                let mut content = vec![0; datagram.len];
                into.read(&mut content);
                self.datagrams.late.borrow_mut().push((due, datagram, content));
            };
            if self.chance(plan.multicast_duplicate) {
                copy(self.due(1.0));
            }
            if self.chance(plan.multicast_delay) {
                copy(self.due(1.0));
            } else {
                result = Some(datagram);
            }
        }
        self.note_pending();
        result
    }
}
