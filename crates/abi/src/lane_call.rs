//! Result of calls that need not take the main lock.

/// Result of a call's attempt to use only the lock of a lane or of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneCall {
    /// The call is complete.
    Done,
    /// The object has such a lock, but the call needs the main lock.
    Declined,
    /// The object has no lock of its own, or there is no such object.
    OtherLane,
}
