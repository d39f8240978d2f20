//! Sizes of messages, buffers and queues.

use crate::adapter::device::{DeviceContext, DevicePort};
use crate::ffi::ibv_device_attr;
use crate::{RAILS_MAX, VerbsOptions};
use std::sync::Arc;

/// Number of retransmissions without an answer before a peer counts as lost.
pub const RETRIES: u8 = 6;

/// Maximum payload of a message, in bytes.
pub const SEND_MAX: usize = 8192;
/// Size of the head of a message, in bytes.
pub const HEAD: usize = 24;
/// Maximum payload in bytes that is sent inline. If there is no room to post, such a payload is copied.
pub const INLINE_MAX: usize = 104;
/// Number of work requests that a queue pair holds.
pub const DEPTH: usize = 64;
/// Number of receive buffers of a connection for control messages. At most the following messages are in flight at the same time:
/// two returns of credits for messages, two returns of credits for events, a disconnect, and the shutdown of each secondary rail.
pub const RESERVE: usize = 5 + (RAILS_MAX - 1);

/// Maximum number of flags in flight to a peer over a secondary connection.
const FLAGS: usize = 8;

/// Size of a buffer for one message, in bytes.
pub const BUFFER: usize = (HEAD + SEND_MAX).next_multiple_of(64);

/// Maximum number of datagrams of multicast groups that wait to be read. If another datagram arrives, the oldest is dropped.
pub const MULTICAST_WAITING: usize = 128;
/// Maximum numbers of datagrams of multicast groups in flight: datagrams to receive, and datagrams to send.
pub const MULTICAST_RECEIVED: usize = 2 * MULTICAST_WAITING;
pub const MULTICAST_SENT: usize = 64;

/// Sizes of all queues. All rails have the same sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueDepths {
    pub connections: usize,
    /// Maximum number of additional connections, for processes of other jobs.
    pub linked: usize,
    /// Number of credits of each peer, for messages and for events.
    pub messages: usize,
    pub events: usize,
}

impl QueueDepths {
    /// Returns the largest sizes that the adapters allow for a job of `size` processes. At most `buffers` receive buffers may be
    /// locked in memory.
    pub fn new(
        options: &VerbsOptions,
        size: usize,
        adapters: &[(Arc<DeviceContext>, DevicePort)],
        buffers: usize,
    ) -> QueueDepths {
        let least = |of: fn(&ibv_device_attr) -> i32| {
            adapters.iter().map(|(c, _)| of(&c.attributes).max(1) as usize).min().unwrap_or(1)
        };
        let most = options.connections.max(1).min(least(|a| a.max_qp - 4));
        let wanted = size.min(most);
        let receives = least(|a| a.max_srq_wr).min(least(|a| a.max_cqe)).min(buffers);
        // If there are many peers, each peer gets fewer credits. The minimum is enough for streaming.
        let share = (receives / wanted.max(1)).saturating_sub(RESERVE);
        let messages = options.credits.min(share * 2 / 3).max(4);
        let events = (options.credits / 2).min(share / 3).max(4);
        let room = (receives / (messages + events + RESERVE))
            .min(least(|a| a.max_cqe).saturating_sub(256) / DEPTH);
        let connections = wanted.min(room).max(1);
        // Connections for other jobs use the room that the connections of this job leave.
        let linked = options.linked.min(most.min(room).saturating_sub(connections));
        QueueDepths { connections, linked, messages, events }
    }

    /// Returns the total number of connections: for the job, and for processes of other jobs.
    pub fn all_connections(&self) -> usize {
        self.connections + self.linked
    }

    /// Returns the number of receive buffers of one connection.
    pub fn buffers(&self) -> usize {
        self.messages + self.events + RESERVE
    }

    /// Returns the number of events that a peer may have in flight over a secondary connection. Only flags cause such events.
    pub fn secondary_events(&self) -> usize {
        self.events.min(FLAGS)
    }

    /// Returns the number of receive buffers of a secondary connection: for events, and for two returns of credits.
    pub fn secondary_buffers(&self) -> usize {
        self.secondary_events() + 2
    }
}
