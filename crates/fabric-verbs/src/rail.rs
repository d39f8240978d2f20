//! A rail (one port of one adapter in use): its queues, and its receive buffers.

use crate::datagrams::{DatagramQueuePair, DatagramSizes};
use crate::device::{DeviceContext, DevicePort};
use crate::ffi::*;
use crate::memory::{Memories, NONE};
use crate::multicast;
use crate::object::{
    self, BATCH, Channel, CompletionQueue, Domain, QueuePair, QueuePairParts, SharedQueue,
};
use crate::options::VerbsOptions;
use crate::path::{self, Traffic};
use crate::wire::{CONNECT_REQUEST, RailAddress};
use crate::{RAILS_MAX, VerbsConnectError};
use std::ptr;
use std::sync::Arc;
use weft_fabric::{Fault, Sge};

/// Maximum payload of a message, in bytes.
pub const SEND_MAX: usize = 8192;
/// Size of the head of a message, in bytes.
pub const HEAD: usize = 24;
/// Maximum payload in bytes that is sent inline, or copied if there is no room to post.
pub const INLINE_MAX: usize = 104;
/// Number of work requests that a queue pair holds.
pub const DEPTH: usize = 64;
/// Number of receive buffers of a connection besides those for messages and events. At most these are in flight at the same
/// time: two returns of credits for messages, two for events, a disconnect, and the end of each secondary rail.
pub const RESERVE: usize = 5 + (RAILS_MAX - 1);

/// Maximum number of flags in flight to a peer over a secondary connection.
const FLAGS: usize = 8;

/// Size of a buffer for one message, in bytes.
pub const BUFFER: usize = (HEAD + SEND_MAX).next_multiple_of(64);

/// First `wr_id` of datagrams; the `wr_id` of a connection's request is smaller.
pub const GREETER_TAG: u64 = 1 << 62;
pub const MULTICAST_TAG: u64 = 2 << 62;

/// Queues that a sleeper needs, even after the fabric is gone.
pub struct Base {
    /// Completion queues for receives of connections, for sends, and for receives of datagrams.
    pub arrivals: CompletionQueue,
    pub departures: CompletionQueue,
    pub datagrams: CompletionQueue,
    pub channel: Channel,
}

/// Sizes of all queues; the same on all rails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueDepths {
    pub connections: usize,
    /// Additional connections for processes of other jobs.
    pub linked: usize,
    /// Credits that each peer gets.
    pub messages: usize,
    pub events: usize,
}

impl QueueDepths {
    /// Returns the largest sizes that the adapters allow, for a job of `size` processes, if `buffers` receive buffers may be
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
        // With many peers each gets fewer credits, but at least the minimum for streaming.
        let share = (receives / wanted.max(1)).saturating_sub(RESERVE);
        let messages = options.credits.min(share * 2 / 3).max(4);
        let events = (options.credits / 2).min(share / 3).max(4);
        let room = (receives / (messages + events + RESERVE))
            .min(least(|a| a.max_cqe).saturating_sub(256) / DEPTH);
        let connections = wanted.min(room).max(1);
        // Connections for other jobs come from the room that the job itself does not need.
        let linked = options.linked.min(most.min(room).saturating_sub(connections));
        QueueDepths { connections, linked, messages, events }
    }

    /// Returns the number of the job's connections plus those for processes of other jobs.
    pub fn all_connections(&self) -> usize {
        self.connections + self.linked
    }

    /// Returns the number of receive buffers of one connection.
    pub fn buffers(&self) -> usize {
        self.messages + self.events + RESERVE
    }

    /// Returns the number of events that a peer may send over a secondary connection, which carries flags only.
    pub fn secondary_events(&self) -> usize {
        self.events.min(FLAGS)
    }

    /// Returns the number of receive buffers of a secondary connection: for events, and for two returns of credits.
    pub fn secondary_buffers(&self) -> usize {
        self.secondary_events() + 2
    }
}

/// Kind of arrival that used a receive buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferUse {
    Message,
    Event,
    /// A return of credits, for which no credit is owed.
    Control,
}

/// A receive buffer.
pub struct ReceiveBuffer {
    pub memory: Sge,
    sge: ibv_sge,
    /// The buffer of the next message of the same peer.
    pub next: u32,
    /// Number of bytes received.
    pub len: u32,
    peer: u32,
    of: BufferUse,
}

pub struct VerbsRail {
    pub greeter: DatagramQueuePair,
    pub shared: SharedQueue,
    pub domain: Arc<Domain>,
    pub base: Arc<Base>,
    pub context: Arc<DeviceContext>,
    pub port: DevicePort,
    pub buffers: Vec<ReceiveBuffer>,
    /// Buffers that wait to be posted again together.
    idle: Vec<u32>,
    /// Number of posted buffers that closed connections have left, for the next connections.
    spare: usize,
    /// Number of idle buffers at which they are posted again.
    together: usize,
    /// Maximum number of reads and atomics in flight towards this process, per connection.
    pub reads: u8,
    options: VerbsOptions,
}

/// Maximum number of idle buffers that are collected before they are posted again.
const TOGETHER: usize = 8;

/// Maximum number of idle buffers: a batch of completions may come on top of the collected buffers.
pub const IDLE_MOST: usize = TOGETHER + BATCH;

/// Sizes of the queue pair for connect requests.
const CONNECT_REQUESTS: DatagramSizes =
    DatagramSizes { received: 256, sent: 64, payload: CONNECT_REQUEST };

impl VerbsRail {
    pub fn new(
        (context, port): (&Arc<DeviceContext>, &DevicePort),
        number: usize,
        bounds: QueueDepths,
        options: &VerbsOptions,
        memories: &mut Memories,
        domain: Arc<Domain>,
    ) -> Result<VerbsRail, VerbsConnectError> {
        let channel = object::channel(context)?;
        let queue = |entries| object::completion_queue(context, &channel, entries);
        let connections = bounds.all_connections();
        let all = connections * bounds.buffers();
        let base = Arc::new(Base {
            arrivals: queue(all)?,
            departures: queue(connections * DEPTH + CONNECT_REQUESTS.sent + multicast::SENT)?,
            datagrams: queue(CONNECT_REQUESTS.received + multicast::RECEIVED)?,
            channel,
        });
        let shared = object::shared_queue(&domain, all)?;
        let ends = QueuePairParts {
            domain: &domain,
            send: &base.departures,
            receive: &base.datagrams,
            shared: None,
        };
        let greeter =
            DatagramQueuePair::new(&ends, port, number, memories, CONNECT_REQUESTS, GREETER_TAG)?;
        let attributes = &context.attributes;
        let reads = attributes.max_qp_rd_atom.min(attributes.max_qp_init_rd_atom).clamp(1, 16);
        let together = (bounds.messages.min(bounds.events) / 4).clamp(1, TOGETHER);
        Ok(VerbsRail {
            greeter,
            shared,
            domain,
            base,
            context: context.clone(),
            port: port.clone(),
            buffers: Vec::new(),
            idle: Vec::with_capacity(IDLE_MOST),
            spare: 0,
            together,
            reads: reads as u8,
            options: options.clone(),
        })
    }

    /// Returns true if bytes written to this rail become visible in ascending order within the MTU.
    pub fn in_order(&self) -> bool {
        self.options.in_order_placement.unwrap_or(self.port.places_in_order())
    }

    /// Returns the address that peers need.
    pub fn address(&self) -> RailAddress {
        RailAddress {
            link: self.port.link,
            in_order: self.in_order(),
            atomics: self.context.attributes.atomic_cap != IBV_ATOMIC_NONE,
            mtu: self.port.mtu as u16,
            lid: path::lid(&self.port),
            gid: self.port.gid.map_or([0; 16], |gid| gid.bytes),
            number: self.greeter.pair.number(),
        }
    }

    /// Returns the path to a peer's rail.
    pub fn path(&self, to: &RailAddress, traffic: Traffic) -> ibv_ah_attr {
        path::to_rail(&self.port, &self.options, to, traffic)
    }

    /// Returns the path to a group of the network.
    pub fn path_to_group(&self, gid: ibv_gid) -> ibv_ah_attr {
        path::to(&self.port, &self.options, (gid, 0, true), Traffic::Datagrams)
    }

    /// Returns the path to a group that the connection manager joined.
    pub fn path_of_group(&self, joined: ibv_ah_attr) -> ibv_ah_attr {
        path::of_group(&self.options, joined)
    }

    /// Makes a queue pair for a connection, in the state INIT. Returns it with its inline size in bytes.
    pub fn pair(&self) -> Result<(QueuePair, usize), VerbsConnectError> {
        let ends = QueuePairParts {
            domain: &self.domain,
            send: &self.base.departures,
            receive: &self.base.arrivals,
            shared: Some(&self.shared),
        };
        let mut cap = ibv_qp_cap {
            max_send_wr: DEPTH as u32,
            max_recv_wr: 0,
            max_send_sge: 2,
            max_recv_sge: 0,
            max_inline_data: (HEAD + INLINE_MAX) as u32,
        };
        let pair = object::queue_pair(&ends, IBV_QPT_RC, &mut cap)?;
        if (cap.max_inline_data as usize) < HEAD {
            let device = self.context.name.clone();
            return Err(VerbsConnectError::Lacks { device, what: "inline sends of 24 bytes" });
        }
        let access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
        let mut attributes = ibv_qp_attr {
            qp_state: IBV_QPS_INIT,
            port_num: self.port.number,
            qp_access_flags: access as u32,
            ..ibv_qp_attr::default()
        };
        let mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
        self.modify(&pair, &mut attributes, mask)?;
        Ok((pair, cap.max_inline_data as usize))
    }

    fn modify(
        &self,
        pair: &QueuePair,
        attributes: &mut ibv_qp_attr,
        mask: i32,
    ) -> Result<(), VerbsConnectError> {
        let device = self.context.name.clone();
        let what = "connecting a queue pair";
        let wrap = |error| VerbsConnectError::System { what, device, error };
        pair.modify(attributes, mask).map_err(wrap)
    }

    /// Connects `pair`, whose first packet number is `psn`, with queue pair `number` of a peer at `to`, whose first packet
    /// number is `their_psn`.
    pub fn connect(
        &self,
        pair: &QueuePair,
        psn: u32,
        to: &RailAddress,
        number: u32,
        their_psn: u32,
        their_reads: u8,
    ) -> Result<(), VerbsConnectError> {
        let mtu = self.port.mtu.min(to.mtu as usize);
        let mut attributes = ibv_qp_attr {
            qp_state: IBV_QPS_RTR,
            path_mtu: crate::device::mtu_code(mtu),
            dest_qp_num: number,
            rq_psn: their_psn,
            max_dest_rd_atomic: self.reads,
            // 12 means 0.64 ms. Credits make an RNR NAK rare.
            min_rnr_timer: 12,
            ah_attr: self.path(to, Traffic::Connections),
            ..ibv_qp_attr::default()
        };
        let mask = IBV_QP_STATE
            | IBV_QP_AV
            | IBV_QP_PATH_MTU
            | IBV_QP_DEST_QPN
            | IBV_QP_RQ_PSN
            | IBV_QP_MAX_DEST_RD_ATOMIC
            | IBV_QP_MIN_RNR_TIMER;
        self.modify(pair, &mut attributes, mask)?;
        let mut attributes = ibv_qp_attr {
            qp_state: IBV_QPS_RTS,
            timeout: self.options.timeout,
            // Both at most 6: as `rnr_retry`, 7 would mean to retry for ever.
            retry_cnt: self.options.retries.min(6),
            rnr_retry: 6,
            sq_psn: psn,
            max_rd_atomic: self.reads.min(their_reads).max(1),
            ..ibv_qp_attr::default()
        };
        let mask = IBV_QP_STATE
            | IBV_QP_TIMEOUT
            | IBV_QP_RETRY_CNT
            | IBV_QP_RNR_RETRY
            | IBV_QP_SQ_PSN
            | IBV_QP_MAX_QP_RD_ATOMIC;
        self.modify(pair, &mut attributes, mask)
    }

    /// Makes and posts `count` receive buffers for a new connection, except those that closed connections have left.
    pub fn grow(
        &mut self,
        number: usize,
        count: usize,
        memories: &mut Memories,
    ) -> Result<(), Fault> {
        let found = count.min(self.spare);
        self.spare -= found;
        let count = count - found;
        if count == 0 {
            return Ok(());
        }
        let (registration, start) = memories.buffers(count * BUFFER, Some(number))?;
        // SAFETY: `Sge::new` needs valid bytes: `memories.buffers` has just mapped them, and they live as long as `memories`.
        let all = unsafe { Sge::new(start, count * BUFFER) };
        let first = self.buffers.len() as u32;
        for i in 0..count {
            let memory = all.part(i * BUFFER, HEAD + SEND_MAX);
            let sge = memories.sge(registration, number, memory);
            let (peer, of) = (0, BufferUse::Control);
            self.buffers.push(ReceiveBuffer { memory, sge, next: NONE, len: 0, peer, of });
        }
        let new: Vec<u32> = (first..self.buffers.len() as u32).collect();
        new.chunks(IDLE_MOST).try_for_each(|buffers| self.post(buffers))
    }

    /// Takes over the `count` buffers of the closed connection `link`: no credits are owed for them, and new connections may
    /// use them.
    pub fn shrink(&mut self, link: usize, count: usize) {
        for &buffer in &self.idle {
            let it = &mut self.buffers[buffer as usize];
            if it.peer as usize == link {
                it.of = BufferUse::Control;
            }
        }
        self.spare += count;
    }

    /// Takes a buffer back. Returns true if the idle buffers should be posted.
    #[inline]
    pub fn give_back(&mut self, buffer: u32, peer: usize, of: BufferUse) -> bool {
        let it = &mut self.buffers[buffer as usize];
        (it.peer, it.of) = (peer as u32, of);
        self.idle.push(buffer);
        // Few buffers are reserved for control messages, so those are posted again immediately.
        self.idle.len() >= self.together || of == BufferUse::Control
    }

    /// Posts all idle buffers by one call. Calls `owe` for each, with the peer that is owed a credit.
    pub fn repost(&mut self, mut owe: impl FnMut(usize, BufferUse)) -> Result<(), Fault> {
        let idle = std::mem::take(&mut self.idle);
        let posted = self.post(&idle);
        for &buffer in &idle {
            let it = &self.buffers[buffer as usize];
            owe(it.peer as usize, it.of);
        }
        self.idle = idle;
        self.idle.clear();
        posted
    }

    /// Posts at most [`IDLE_MOST`] buffers by one call.
    fn post(&mut self, buffers: &[u32]) -> Result<(), Fault> {
        if buffers.is_empty() {
            return Ok(());
        }
        let none =
            ibv_recv_wr { wr_id: 0, next: ptr::null_mut(), sg_list: ptr::null_mut(), num_sge: 1 };
        let mut list = [none; IDLE_MOST];
        for (wr, &buffer) in list.iter_mut().zip(buffers) {
            wr.wr_id = buffer.into();
            wr.sg_list = &mut self.buffers[buffer as usize].sge;
        }
        for i in 1..buffers.len() {
            list[i - 1].next = &raw mut list[i];
        }
        let mut bad = ptr::null_mut();
        let post = self.context.table.post_srq_recv;
        // SAFETY: `post_srq_recv` needs a live queue with room for all buffers, and memory that stays until the completion:
        // each buffer lives as long as the queue, and is idle.
        match unsafe { post(self.shared.raw(), list.as_mut_ptr(), &mut bad) } {
            0 => Ok(()),
            errno => Err(Fault::system("posting receive buffers", errno.abs())),
        }
    }
}
