//! The options of a [`crate::Shm`].

use std::time::Duration;
use weft_intranode::ModelSource;

/// The options of a [`crate::Shm`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShmOptions {
    /// True if cross-memory attach is tried for the program's own memory. If this is not tried, or the system does not permit it,
    /// [`weft_fabric::Capabilities::direct`] is false.
    pub cma: bool,
    /// Maximum memory of the boxes of all pairs when all are in use, in bytes; at least 4 MiB for each rank, unless the value
    /// is 0. The lowest rank's choice holds for all ranks.
    pub box_budget: u64,
    /// Maximum address space of the whole segment, in bytes, in addition to the system's limits. The lowest rank's choice holds
    /// for all ranks.
    pub segment_limit: u64,
    /// True if this rank sleeps in poll(2) on [`crate::Shm::descriptor`] in addition to [`weft_fabric::Fabric::sleeper`].
    pub polls: bool,
    /// Number of lanes that this rank can use, at least 1. Each lane has boxes and arenas of its own ([`crate::Shm::open_lane`]).
    /// The ranks use as many lanes as all of them can, and the lowest rank's choice is the maximum.
    pub lanes: usize,
    /// Maximum time to wait for the other ranks while connecting.
    pub patience: Duration,
    /// The source of the model of [`weft_fabric::Fabric::copies`]. The lowest rank's choice holds for all ranks.
    pub copies: ModelSource,
}

impl Default for ShmOptions {
    fn default() -> ShmOptions {
        ShmOptions {
            cma: true,
            box_budget: 256 << 20,
            segment_limit: u64::MAX,
            polls: false,
            lanes: 1,
            patience: Duration::from_secs(120),
            copies: ModelSource::Generic,
        }
    }
}
