//! Counts of messages.

use crate::request::Status;

/// Counts of messages so far, including messages of collective operations.
#[derive(Debug, Clone, Copy, Default)]
pub struct MessageCounts {
    /// Counts that small messages advance.
    pub often: SmallMessageCounts,
    /// Counts that only large messages advance.
    pub seldom: LargeMessageCounts,
}

/// Counts that small messages advance.
// Fields that advance together are not neighbours in memory. The compiler would advance neighbours through a vector register, which
// takes four more instructions.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct SmallMessageCounts {
    /// Messages sent eagerly.
    pub eager: u64,
    /// Received messages whose requests have ended.
    pub received: u64,
    /// Calls of [`crate::Endpoint::progress`].
    pub polls: u64,
    /// Payload sent eagerly, in bytes.
    pub bytes_eager: u64,
    /// Received payload that fitted its buffer, in bytes.
    pub bytes_received: u64,
}

/// Counts that only large messages and messages without credit advance.
#[derive(Debug, Clone, Copy, Default)]
pub struct LargeMessageCounts {
    /// Messages offered (rendezvous).
    pub rendezvous: u64,
    /// Payload that went by rendezvous, in bytes.
    pub bytes_rendezvous: u64,
    /// Offered messages whose payload was staged.
    pub staged: u64,
    /// Small messages that were offered because the receiver's credit was used up.
    pub out_of_credit: u64,
    /// Offered messages that this process sent in pieces, because the receiver could not read them.
    pub sent_pieces: u64,
    /// Offered messages that were received by reading the sender's memory.
    pub read: u64,
    /// Offered messages whose payload was copied in pieces by both ends.
    pub shared: u64,
    /// Offered messages that this process received in pieces, because it could not read the sender's memory.
    pub pieces: u64,
    /// Offered messages whose payload the sender wrote.
    pub written: u64,
    /// Reads and writes that a signal handler has started.
    pub interrupted: u64,
}

impl SmallMessageCounts {
    #[inline]
    pub(crate) fn count_received(&mut self, status: &Status) {
        self.received += u64::from(!status.flags.cancelled());
        self.bytes_received += status.bytes;
    }
}
