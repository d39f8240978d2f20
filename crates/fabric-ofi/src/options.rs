//! What may be chosen about an [`crate::Ofi`].

use std::time::Duration;
use weft_bootstrap::Fingerprint;

/// Choices; the defaults suit most machines.
#[derive(Debug, Clone)]
pub struct OfiOptions {
    /// Provider, as libfabric names it: `"tcp"`, `"efa"`, `"cxi"`, `"verbs;ofi_rxm"`, `"udp;ofi_rxd"`. `None`: the first that is
    /// there in [`crate::PROVIDERS`].
    pub provider: Option<String>,
    /// Interfaces or domains to use, as libfabric names domains (`"eth0"`), best first. Empty: those on whose network the other
    /// hosts are, too.
    pub interfaces: Vec<String>,
    /// Whether processes of other hosts may become peers later, though those of this job are on one: so the loopback interface
    /// does not do.
    pub outward: bool,
    /// Most rails: interfaces, times their paths, 1 to [`crate::RAILS_MAX`].
    pub rails: usize,
    /// Connections with a peer on one interface that count as a rail each: some networks bound what one connection carries.
    pub paths: usize,
    /// File of the library; `None`: the machine's `libfabric.so.1`.
    pub library: Option<String>,
    /// Messages that one peer may have on their way to this process or unreceived here, 4 to 16384.
    pub credits: usize,
    /// How long the end waits for what other processes still have to hear or say.
    pub leave: Duration,
    /// How long a peer may be silent before a process that waits asks it for a sign of life; zero: it is never asked.
    pub keepalive: Duration,
    /// How long the host of a peer may leave something unacknowledged, or a request for a connection unanswered, before the peer
    /// is lost. Of providers that speak TCP; others have times of their own.
    pub patience: Duration,
    /// Function that prints a line for the user while the job runs.
    pub say: fn(&str),
    /// What this process's bytes mean; all must mean the same.
    pub fingerprint: Fingerprint,
}

impl Default for OfiOptions {
    fn default() -> OfiOptions {
        OfiOptions {
            provider: None,
            interfaces: Vec::new(),
            outward: false,
            rails: crate::RAILS_MAX,
            paths: 1,
            library: None,
            credits: 64,
            leave: Duration::from_secs(2),
            keepalive: Duration::from_secs(2),
            patience: Duration::from_secs(30),
            say: |_| (),
            fingerprint: Fingerprint::own(&[]),
        }
    }
}
