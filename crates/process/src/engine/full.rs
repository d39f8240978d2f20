//! Calls that find something full: they look at what has ended before they report it.

use super::Engine;
use weft_fabric::{Fabric, FabricExt, Fault, Region};

/// Rounds of progress at most, of which each takes some dozens of messages: peers that go on sending do not keep the call.
const ROUNDS: usize = 10_000;

impl<F: Fabric> Engine<F> {
    /// Tries `attempt`. While it fails, moves on what can move without waiting, gives back what was kept for peers, and tries
    /// again, until nothing moves any more: what has ended may have made room. The error is that of the last attempt.
    pub fn retry_when_full<T, E>(&self, mut attempt: impl FnMut() -> Result<T, E>) -> Result<T, E> {
        let first = attempt();
        if first.is_ok() { first } else { self.retry(first, attempt) }
    }

    /// Allocates memory of the fabric, for which peers may have to leave other memory first.
    pub fn allocate(&self, len: usize) -> Result<Region, Fault> {
        self.retry_when_full(|| self.endpoint.fabric().allocate(len))
    }

    /// Allocates, as [`Engine::allocate`], memory that the ranks of the node map.
    pub fn allocate_on_node(&self, len: usize) -> Result<Region, Fault> {
        self.retry_when_full(|| self.endpoint.fabric().allocate_on_node(len))
    }

    #[cold]
    fn retry<T, E>(
        &self,
        mut last: Result<T, E>,
        mut attempt: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        for _ in 0..ROUNDS {
            let moved = self.progress();
            self.endpoint.clear_parked();
            last = attempt();
            if last.is_ok() || !moved {
                break;
            }
        }
        last
    }
}
