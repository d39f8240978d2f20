//! Retries of calls that find memory or a table full: operations that have ended may give back room.

use super::Engine;
use weft_fabric::{Fabric, FabricExt, Fault, Region};

/// Maximum number of rounds of progress, each of some dozens of messages, so that peers that keep sending do not delay the call
/// for ever.
const ROUNDS: usize = 10_000;

impl<F: Fabric> Engine<F> {
    /// Tries `attempt`. While it fails, makes progress without waiting, gives back memory that is kept for peers, and tries
    /// again, until no progress is possible any more: operations that have ended may have made room. Returns the error of the
    /// last attempt.
    pub fn retry_when_full<T, E>(&self, mut attempt: impl FnMut() -> Result<T, E>) -> Result<T, E> {
        let first = attempt();
        if first.is_ok() { first } else { self.retry(first, attempt) }
    }

    /// Allocates memory of the fabric. Other memory may have to be released by peers first.
    pub fn allocate(&self, len: usize) -> Result<Region, Fault> {
        self.retry_when_full(|| self.endpoint.fabric().allocate(len))
    }

    /// Allocates memory that the ranks of the node map. Retries as [`Engine::allocate`].
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
