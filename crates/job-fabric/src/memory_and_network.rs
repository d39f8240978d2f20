//! Shared memory together with a network, as a transport to processes of other jobs.

use weft_fabric::Fabric;
use weft_fabric_join::Joined;
use weft_fabric_shm::Shm;
use weft_job_connections::Connectable;

/// Shared memory joined with a network of any kind: the part that deals with processes of other jobs.
pub trait MemoryAndNetwork {
    /// Returns the shared memory.
    fn near(&self) -> &Shm;
    /// Returns the network.
    fn far(&self) -> &dyn Connectable;
    /// See [`Joined::near_number`].
    fn near_number(&self, peer: usize) -> Option<usize>;
    /// See [`Joined::add_near`].
    fn add_near(&self, peer: usize, near: usize);
    /// See [`Joined::forget_near`].
    fn forget_near(&self, peer: usize);
}

impl<R: Fabric + Connectable> MemoryAndNetwork for Joined<Shm, R> {
    fn near(&self) -> &Shm {
        Joined::near(self)
    }

    fn far(&self) -> &dyn Connectable {
        Joined::<Shm, R>::far(self)
    }

    fn near_number(&self, peer: usize) -> Option<usize> {
        Joined::near_number(self, peer)
    }

    fn add_near(&self, peer: usize, near: usize) {
        Joined::add_near(self, peer, near);
    }

    fn forget_near(&self, peer: usize) {
        Joined::forget_near(self, peer);
    }
}
