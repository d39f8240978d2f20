//! Two-sided messages and datagrams.

use crate::Sge;

/// The first 24 bytes of a message, opaque to the fabric. The layer above keeps its envelope here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Head(pub [u64; 3]);

/// The state of a send after it was posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostOutcome {
    /// The payload has been copied or sent, and its memory may be used again. The counter is not touched.
    Done,
    /// The payload is still needed. The completion counter advances when the memory may be used again.
    Later,
}

/// A message that has arrived and still lies in the fabric's buffer. It must be given back with [`crate::Fabric::release`]
/// before the next [`crate::Fabric::receive`].
#[derive(Debug)]
pub struct ArrivedMessage {
    /// Sender's rank in this fabric.
    pub peer: usize,
    /// The head that the sender passed to [`crate::Fabric::send`]. The fabric does not read it.
    pub head: Head,
    /// The payload, readable until release. A correct sender does not touch it any more, but a faulty sender may still change
    /// it: copy before checking.
    pub payload: Sge,
    /// The place to release, in the fabric's own encoding.
    pub token: u64,
}

/// The decision of a caller of [`crate::FabricExt::peek`] on a message that was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peek {
    /// The message was handled, and is released.
    Taken,
    /// The message stays. Later messages of its peer may be shown, too.
    Left,
    /// The message stays, and no message of its peer may overtake it.
    Behind,
}

/// A multicast group. Its users choose the number, and all ranks must use the same number for a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub u32);

/// A multicast datagram that was copied into the caller's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram {
    /// Sender's rank in this fabric.
    pub source: usize,
    /// The joined group to which the datagram was sent.
    pub group: GroupId,
    /// Number of bytes written to the caller's buffer.
    pub len: usize,
}
