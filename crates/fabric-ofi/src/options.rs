//! Options of an [`crate::Ofi`].

use std::time::Duration;
use weft_bootstrap::Fingerprint;

/// Maximum number of rails of a process.
pub const RAILS_MAX: usize = 4;

/// Options. The defaults suit most machines.
#[derive(Debug, Clone)]
pub struct OfiOptions {
    /// Provider, as libfabric names it: `"tcp"`, `"efa"`, `"cxi"`, `"verbs;ofi_rxm"`, `"udp;ofi_rxd"`. `None`: the first in
    /// [`crate::PROVIDERS`] that this machine has.
    pub provider: Option<String>,
    /// Interfaces or domains to use, as libfabric names domains (`"eth0"`), best first. Empty: all interfaces whose network the
    /// other hosts also have.
    pub interfaces: Vec<String>,
    /// True if processes of other hosts may become peers later even if all processes of this job are on one host. The loopback
    /// interface is not enough then.
    pub outward: bool,
    /// Maximum number of rails (number of interfaces times paths), 1 to [`crate::RAILS_MAX`].
    pub rails: usize,
    /// Number of connections with a peer on one interface. Each connection counts as a rail. Several connections help if a
    /// network limits the rate of one connection.
    pub paths: usize,
    /// File of the library, or `None` for the machine's `libfabric.so.1`.
    pub library: Option<String>,
    /// Maximum number of messages of one peer that are in flight to this process or not yet received here, 4 to 16384.
    pub credits: usize,
    /// Time of silence after which a waiting process asks a peer for a sign of life. Zero: a peer is never asked.
    pub keepalive: Duration,
    /// Maximum time for which the host of a peer may leave data unacknowledged, or a connection request unanswered, before the
    /// peer is lost. This time applies to providers that use TCP. Other providers have their own times.
    pub patience: Duration,
    /// Function that prints a line for the user while the job runs.
    pub say: fn(&str),
    /// Data formats of this process, which must be the same in all processes.
    pub fingerprint: Fingerprint,
}

impl Default for OfiOptions {
    fn default() -> OfiOptions {
        OfiOptions {
            provider: None,
            interfaces: Vec::new(),
            outward: false,
            rails: RAILS_MAX,
            paths: 1,
            library: None,
            credits: 64,
            keepalive: Duration::from_secs(2),
            patience: Duration::from_secs(30),
            say: |_| (),
            fingerprint: Fingerprint::own(&[]),
        }
    }
}
