//! The processors of the ranks of this host.

use std::ffi::OsString;

use nix::sched::CpuSet;
use weft_topology::{NodeTopology, ProcessorSet, SYSFS_PROCESSORS, SYSFS_ROOT, Sysfs, format_list};

use crate::placement::{Placement, describe, set};

/// The processors of each rank of this host.
pub struct HostBinding {
    topology: NodeTopology,
    /// Absent if ranks are not bound.
    plan: Option<Vec<ProcessorSet>>,
    is_fake: bool,
}

impl HostBinding {
    /// Plans the processors of `ranks` ranks on this host.
    pub fn new(placement: &Placement, ranks: usize) -> Result<HostBinding, String> {
        let topology = NodeTopology::here();
        let plan = placement.plan(&topology, ranks)?;
        Ok(HostBinding { topology, plan, is_fake: Sysfs::here().is_fake() })
    }

    /// Returns a warning if ranks cannot be bound as planned, because the processors are those of another machine.
    pub fn warning(&self) -> Option<String> {
        let text = || format!("mpiexec: {SYSFS_ROOT} describes another machine: no rank is bound");
        (self.is_fake && self.plan.is_some()).then(text)
    }

    /// Describes the processors of the rank at `place` on this host.
    pub fn describe(&self, place: usize) -> String {
        let plan = self.plan.as_ref();
        plan.map_or("all processors".into(), |plan| describe(&self.topology, &plan[place]))
    }

    /// Returns the variable by which the rank at `place` on this host knows its processors, if they are those of another machine.
    pub fn variable(&self, place: usize) -> Option<(&'static str, OsString)> {
        let plan = self.plan.as_ref().filter(|_| self.is_fake)?;
        Some((SYSFS_PROCESSORS, format_list(plan[place].iter().copied()).into()))
    }

    /// Returns the processors to which the rank at `place` on this host is to be bound.
    pub fn set(&self, place: usize) -> Option<CpuSet> {
        let plan = self.plan.as_ref().filter(|_| !self.is_fake)?;
        set(&plan[place])
    }
}
