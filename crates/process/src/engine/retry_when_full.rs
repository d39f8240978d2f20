//! Retries of calls that fail because memory or a table is full. Operations that end meanwhile may free memory or table entries.

use super::Engine;
use weft_fabric::{Fabric, FabricExt, Fault, Region};

/// Maximum number of rounds of progress in a retry. Each round takes some dozens of messages. Without this limit, peers that keep
/// sending could delay the call for ever.
const ROUNDS: usize = 10_000;

impl<F: Fabric> Engine<F> {
    /// Tries `attempt`. If it fails, makes progress without waiting, releases memory that is kept for peers, and tries again,
    /// because operations that have ended may have freed memory. Gives up when progress finds nothing to do. Returns the result of
    /// the last attempt.
    pub fn retry_when_full<T, E>(&self, mut attempt: impl FnMut() -> Result<T, E>) -> Result<T, E> {
        let first = attempt();
        if first.is_ok() { first } else { self.retry(first, attempt) }
    }

    /// Allocates memory of the fabric. Retries while peers may still release other memory.
    pub fn allocate(&self, len: usize) -> Result<Region, Fault> {
        self.retry_when_full(|| self.endpoint.fabric().allocate(len))
    }

    /// Allocates memory that the ranks of the node map. Retries like [`Engine::allocate`].
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
