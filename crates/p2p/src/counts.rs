//! What happened so far.

use crate::request::Status;

/// What happened so far, the messages of collective operations among it.
#[derive(Debug, Clone, Copy, Default)]
pub struct MessageCounts {
    /// Of what small messages count.
    pub often: SmallMessageCounts,
    /// Of what large ones count.
    pub seldom: LargeMessageCounts,
}

/// Counts that small messages advance.
// What advances together is apart: as neighbours they would go through a vector register, which costs
// four instructions more.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct SmallMessageCounts {
    /// Messages sent at once.
    pub eager: u64,
    /// Messages received, once their requests have ended.
    pub received: u64,
    /// Calls of [`crate::Endpoint::progress`].
    pub polls: u64,
    /// Payload sent at once, in bytes.
    pub bytes_eager: u64,
    /// Payload received that found room, in bytes.
    pub bytes_received: u64,
}

/// Counts that only large messages advance, and those without credit.
#[derive(Debug, Clone, Copy, Default)]
pub struct LargeMessageCounts {
    /// Messages offered (rendezvous).
    pub rendezvous: u64,
    /// Payload that went by rendezvous, in bytes.
    pub bytes_rendezvous: u64,
    /// Those of them whose payload was staged.
    pub staged: u64,
    /// Those of them that were small, but the receiver's credit was used up.
    pub out_of_credit: u64,
    /// Those of them that the receiver could not read, so that they were sent in pieces.
    pub sent_pieces: u64,
    /// Offered messages that were received by reading the sender's memory.
    pub read: u64,
    /// Offered messages of which both ends copied pieces.
    pub shared: u64,
    /// Offered messages that came in pieces, because their sender's memory cannot be read.
    pub pieces: u64,
    /// Those that their sender wrote.
    pub written: u64,
    /// Reads and writes that a signal handler has started.
    pub interrupted: u64,
}

impl SmallMessageCounts {
    #[inline]
    pub(crate) fn count_received(&mut self, status: &Status) {
        self.received += u64::from(!status.cancelled);
        self.bytes_received += status.bytes;
    }
}
