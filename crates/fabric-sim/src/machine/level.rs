//! Levels of the processors of a node.

use crate::units::{Count, Rate, Time};
use serde::Deserialize;

/// A level of the processors of a node. Groups of a level have the same size, and lie within the groups of the next level. The
/// costs hold between two processors whose nearest common group is a group of this level.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessorLevel {
    /// Kind of the level.
    pub name: LevelName,
    /// Number of processors of a group.
    pub processors: Count,
    /// Time until a processor has a cache line that the other processor has just written. An atomic operation takes the same time.
    pub line: Time,
    /// Time for which a processor is busy with a write to a line that the other processor has read.
    #[serde(default)]
    pub rewrite: Time,
    /// Rate of a copy of data that the other processor has just written.
    pub copy: Rate,
    /// Maximum rate of all transfers between processors of a group that cross no nearer group together, such as that of a shared
    /// cache. No limit if missing.
    pub within: Option<Rate>,
    /// Maximum rate of all transfers out of a group, and of all transfers into it, such as that of the link to the rest of the
    /// node. No limit if missing.
    pub out: Option<Rate>,
}

/// Kind of a level, in ascending order of distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LevelName {
    /// A core, which hardware threads share.
    Core,
    /// A last-level cache.
    Cache,
    /// A NUMA domain.
    Numa,
    /// A socket.
    Socket,
    /// The whole node.
    Node,
}

impl LevelName {
    /// Returns the name in machine files.
    pub fn as_str(self) -> &'static str {
        match self {
            LevelName::Core => "core",
            LevelName::Cache => "cache",
            LevelName::Numa => "numa",
            LevelName::Socket => "socket",
            LevelName::Node => "node",
        }
    }
}
