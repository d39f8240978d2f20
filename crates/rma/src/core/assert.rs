//! Assertions of synchronization calls (MPI 5.0, section 12.5.5): bits of the ABI.

/// Assertion: the matching call has been made at the other side, or need not be made. So the call does not wait, and takes no lock.
pub const NOCHECK: i32 = 1024;
/// Assertion to a fence: this process has issued no operation that the fence would have to end.
pub const NOPRECEDE: i32 = 2048;
/// Assertion to a fence: no operation follows, so the fence opens no epoch.
pub const NOSUCCEED: i32 = 16384;
