//! The processors of one machine, and what they have in common: cores, caches, NUMA domains and sockets.
//!
//! ```text
//!   processor_list   lists such as `0-3,8`, and the processors that the kernel allows to a process
//!   sysfs            the files of one processor, one cache or one NUMA domain, as they are
//!   node_topology    all processors by level, with gaps filled so that every processor has a group at every level
//!   bound_groups     the groups in which a process stays, from the files of a single processor
//!   fake             machines that are written to a directory, for tests
//! ```
//! Every part of the project that asks about processors asks this crate. The files are read below /sys, or below the directory that
//! `WEFT_SYSFS` names, so that tests see machines that are not there.

#![warn(missing_docs)]

mod bound_groups;
pub mod fake;
mod level;
mod node_topology;
mod processor_list;
mod sysfs;

pub use bound_groups::BoundGroups;
pub use level::TopologyLevel;
pub use node_topology::{NodeTopology, PlacedProcessor};
pub use processor_list::{ProcessorSet, allowed, allowed_to, format_list, parse_list};
pub use sysfs::{
    CacheKind, NumaDomain, ProcessorCache, SYSFS_PROCESSORS, SYSFS_ROOT, Siblings, Sysfs,
};
