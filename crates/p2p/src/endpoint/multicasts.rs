//! Multicast groups of an endpoint. Messages of the groups arrive together with all other messages, and [`Endpoint::progress`] also
//! advances the groups. Without a group, progress only reads one more word.

use super::Endpoint;
use std::time::Instant;
use weft_channel::multicast::{MulticastLimits, Multicasts, ProgressHost};
use weft_fabric::{Counter, Fabric, Fault};

impl<F: Fabric> Endpoint<F> {
    /// Returns the multicast groups of this process.
    pub fn multicasts(&self) -> &Multicasts {
        self.multicasts.get_or_init(Box::default)
    }

    /// Sets the sizes and times of multicast. Returns false if the table of groups exists already.
    pub fn set_multicast_limits(&self, limits: MulticastLimits) -> bool {
        self.multicasts.set(Box::new(Multicasts::new(limits))).is_ok()
    }

    /// Returns the time at which [`Endpoint::progress`] must be called even if nothing arrives, because a multicast is then
    /// overdue.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        self.multicasts.get()?.deadline()
    }
}

impl<F: Fabric> ProgressHost for Endpoint<F> {
    type Fabric = F;

    fn fabric(&self) -> &F {
        &self.transport.fabric
    }

    fn multicasts(&self) -> &Multicasts {
        self.multicasts()
    }

    async fn until(&self, counter: Counter, target: u64) -> Result<(), Fault> {
        Endpoint::until(self, counter, target).await
    }
}
