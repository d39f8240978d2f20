//! Choices by hints, views and the file system: data sieving, guards, and the thread that moves data.

use crate::access_direction::AccessDirection;
use crate::access_policy::{AccessPolicy, Synchronism};
use crate::hints::{CollectiveBuffering, Sieving};
use crate::open_file::OpenFile;
use crate::storage::WriteGuard;
use crate::storage::disk::FileSystemKind;
use crate::thread_pool::RunOn;
use weft_fabric::Fabric;

/// Maximum time in nanoseconds for which a waiting rank may ignore messages.
const MAX_UNRESPONSIVE: f64 = 1e6;

impl<F: Fabric> OpenFile<F> {
    /// Returns the rules for pieces that this rank moves.
    pub fn access_policy(&self, direction: AccessDirection) -> AccessPolicy {
        let hints = self.hints.get();
        let (sieving, buffer) = match direction {
            AccessDirection::Read => (hints.ds_read, hints.ind_rd_buffer_size),
            AccessDirection::Write => {
                (self.write_sieving(hints.ds_write), hints.ind_wr_buffer_size)
            }
        };
        let guard = self.write_guard();
        // With the guard `Ranks`, pieces of other ranks lie in the gaps of this rank's view, and these ranks may write at the same
        // time.
        let others = u64::from(direction == AccessDirection::Write && guard == WriteGuard::Ranks);
        AccessPolicy { sieving, buffer, costs: self.costs.with_other_writers(others), guard }
    }

    /// Decides whether gaps are written back, given the hint `asked`. The old contents of a gap must be readable, and only a lock
    /// can prevent another opening from writing in the gap meanwhile. On a network file system, locks may be valid only within the
    /// host. So there the program must ask for sieving, or state that the file has no other opening.
    fn write_sieving(&self, asked: Sieving) -> Sieving {
        match self.kind() {
            _ if !self.can_sieve_writes || !self.storage.state().other_openings.is_known() => {
                Sieving::Off
            }
            FileSystemKind::Local => asked,
            // On NFS, a lock discards the host's cached pages of the file. Therefore sieving does not pay, and is used only if a
            // hint asks for it.
            FileSystemKind::Nfs if asked == Sieving::Auto => Sieving::Off,
            _ if asked == Sieving::Auto && !self.amode.is_unique() => Sieving::Off,
            _ => asked,
        }
    }

    fn write_guard(&self) -> WriteGuard {
        match (self.contiguous_views.get(), self.comm.size()) {
            (true, _) => WriteGuard::None,
            (false, 1) => WriteGuard::Threads,
            (false, _) => WriteGuard::Ranks,
        }
    }

    /// Chooses the thread for work that takes `cost` nanoseconds in a page cache. Work that may wait for another host or for a lock
    /// is given to a thread of the pool. In a nonblocking access, the caller's thread does only work that is shorter than two
    /// handovers. In a blocking access, the caller's thread does all work that does not delay its answers to messages for too long.
    pub fn run_on(&self, cost: f64, synchronism: Synchronism) -> RunOn {
        let most = match synchronism {
            Synchronism::Nonblocking => 2.0 * self.costs.handover,
            Synchronism::Blocking => MAX_UNRESPONSIVE,
        };
        let waits = self.atomic.locks_bytes() || self.kind() != FileSystemKind::Local;
        if cost < most && !waits { RunOn::Caller } else { RunOn::Thread }
    }

    /// Reports whether ranks move their own data in collective accesses, because the hints ask for it, or because no rank's view
    /// has gaps in which pieces of other ranks could lie. All ranks get the same result without communication.
    pub fn is_collective_independent(&self, direction: AccessDirection) -> bool {
        match self.hints.get().collective_buffering(direction) {
            // In atomic mode each rank takes locks for its own access.
            _ if self.comm.size() == 1 || self.atomic.is_enabled() => true,
            CollectiveBuffering::Off => true,
            CollectiveBuffering::On => false,
            CollectiveBuffering::Auto => self.contiguous_views.get(),
        }
    }
}
