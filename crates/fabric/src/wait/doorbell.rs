//! Where an idle process sleeps, and how a peer wakes it without a lost wake-up.

use std::time::Duration;

/// What [`Sleep::arm`] saw; a ring after it makes the sleep return at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token(pub u32);

/// The place where the threads of one process sleep. May be used without the lock on the fabric.
///
/// Contract: `let t = arm(); poll everything; if nothing { sleep(t, limit) }; disarm()`. Whatever
/// becomes visible to a poll after `arm` makes that `sleep` return.
pub trait Sleep: Send + Sync {
    /// Announces that this thread is about to sleep: from here on, peers ring.
    fn arm(&self) -> Token;

    /// Sleeps until somebody rings after `token` was taken, or `limit` has passed.
    fn sleep(&self, token: Token, limit: Duration);

    /// Takes the announcement back. Once for each `arm`.
    fn disarm(&self);

    /// Wakes all threads of this process that sleep here.
    fn ring(&self);
}
