//! The endpoint as host of multicast groups: what arrives for them comes with all other messages, and
//! their progress is part of the endpoint's. Without a group that costs a look at one word.

use super::Endpoint;
use std::time::Instant;
use weft_channel::multicast::{MulticastLimits, Multicasts, ProgressHost};
use weft_fabric::{Counter, Fabric, Fault};

impl<F: Fabric> Endpoint<F> {
    /// The multicast groups of this process.
    pub fn multicasts(&self) -> &Multicasts {
        self.multicasts.get_or_init(Box::default)
    }

    /// Sets the sizes and times of multicast; false if there are groups already.
    pub fn set_multicast_limits(&self, limits: MulticastLimits) -> bool {
        self.multicasts.set(Box::new(Multicasts::new(limits))).is_ok()
    }

    /// When something is overdue and [`Endpoint::progress`] must be called, although nothing arrives.
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
