//! What may be chosen about a [`crate::Shm`].

use std::time::Duration;
use weft_intranode::Wanted;

/// What may be chosen about a [`crate::Shm`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShmOptions {
    /// Try cross-memory attach for the program's own memory. If not, or if the system does not
    /// permit it, [`weft_fabric::Capabilities::direct`] is false.
    pub cma: bool,
    /// Memory that the boxes of all pairs may take together when all are in use, in bytes; at least 4 MiB a
    /// rank, unless it is 0. The lowest rank's choice holds for all.
    pub box_budget: u64,
    /// Address space for the whole segment, in bytes, beside what the system's limits allow. The
    /// lowest rank's choice holds for all.
    pub segment_limit: u64,
    /// This rank sleeps in poll(2) on [`crate::Shm::descriptor`], not on [`weft_fabric::Fabric::sleeper`] alone.
    pub polls: bool,
    /// How long to wait for the other ranks while connecting.
    pub patience: Duration,
    /// Whence [`weft_fabric::Fabric::copies`] has its model. The lowest rank's choice holds for all.
    pub copies: Wanted,
}

impl Default for ShmOptions {
    fn default() -> ShmOptions {
        ShmOptions {
            cma: true,
            box_budget: 256 << 20,
            segment_limit: u64::MAX,
            polls: false,
            patience: Duration::from_secs(120),
            copies: Wanted::Generic,
        }
    }
}
