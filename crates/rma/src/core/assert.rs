//! Assertions of synchronization calls (MPI 5.0, section 12.5.5): bits of the ABI.

/// The matching call has been made, or need not be made, at the other side: no call waits, and no
/// lock is taken.
pub const NOCHECK: i32 = 1024;
/// To a fence: this process has issued no operation that the fence would have to end.
pub const NOPRECEDE: i32 = 2048;
/// No put or accumulate will reach this rank's part until the next synchronization; a hint that
/// changes nothing here.
pub const NOPUT: i32 = 4096;
/// The program has stored nothing to this rank's part since the last synchronization; a hint
/// that changes nothing here.
pub const NOSTORE: i32 = 8192;
/// To a fence: no operation follows, so that no epoch is opened.
pub const NOSUCCEED: i32 = 16384;
