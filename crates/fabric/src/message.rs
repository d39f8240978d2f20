//! Two-sided messages and datagrams.

use crate::Sge;

/// The first 24 bytes of a message, opaque to the fabric: the layer above keeps its envelope here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Head(pub [u64; 3]);

/// What became of a posted send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostOutcome {
    /// The payload has been taken; its memory may be used again. The counter is not touched.
    Done,
    /// The payload is still needed; the completion counter advances when it has been taken.
    Later,
}

/// A message that has arrived and still lies in the fabric's buffer: it must be given back with
/// [`crate::Fabric::release`] before the next [`crate::Fabric::receive`].
#[derive(Debug)]
pub struct ArrivedMessage {
    /// Sender's rank in this fabric.
    pub peer: usize,
    /// What the sender passed to [`crate::Fabric::send`], unread by the fabric.
    pub head: Head,
    /// The payload, readable until release. The sender has no business with it any more, but a
    /// faulty sender may still change it: copy before checking.
    pub payload: Sge,
    /// The fabric's own note of where to release.
    pub token: u64,
}

/// What [`crate::FabricExt::peek`] shall do with a message that it has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peek {
    /// It was dealt with: release it.
    Taken,
    /// It stays; the next ones of its peer may be shown, too.
    Left,
    /// It stays, and none of its peer may overtake it.
    Behind,
}

/// A multicast group, numbered by its users; all ranks must use one number for one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub u32);

/// A multicast datagram that was copied into the caller's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram {
    /// Sender's rank in this fabric.
    pub source: usize,
    /// The joined group that it was sent to.
    pub group: GroupId,
    /// Bytes written to the caller's buffer.
    pub len: usize,
}
