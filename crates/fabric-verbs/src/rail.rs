//! One port of one adapter in use: its queues, and the buffers that messages come into.

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

/// Largest payload of a message, in bytes.
pub const SEND_MAX: usize = 8192;
/// Head of a message, in bytes.
pub const HEAD: usize = 24;
/// Payloads of up to so many bytes are taken at once, room or no room.
pub const INLINE_MAX: usize = 104;
/// Work requests that a queue pair holds.
pub const DEPTH: usize = 64;
/// Receive buffers of a connection beside those for messages and events: at most two returns of
/// credits for messages, two for events, a disconnect, and the end of each secondary rail are under way at once.
pub const RESERVE: usize = 5 + (RAILS_MAX - 1);

/// Flags that may be under way to a peer over a secondary connection.
const FLAGS: usize = 8;

/// Bytes of a buffer for one message.
pub const BUFFER: usize = (HEAD + SEND_MAX).next_multiple_of(64);

/// `wr_id` of datagrams; those of connections are smaller.
pub const GREETER_TAG: u64 = 1 << 62;
pub const MULTICAST_TAG: u64 = 2 << 62;

/// What a sleeper needs, even after the fabric is gone.
pub struct Base {
    /// Completions of receives of connections, of sends, and of receives of datagrams.
    pub arrivals: CompletionQueue,
    pub departures: CompletionQueue,
    pub datagrams: CompletionQueue,
    pub channel: Channel,
}

/// How many of everything; the same on all rails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueDepths {
    pub connections: usize,
    /// Connections beyond these, for processes of other jobs.
    pub linked: usize,
    /// Credits that a peer is given.
    pub messages: usize,
    pub events: usize,
}

impl QueueDepths {
    /// As many as the adapters allow, for a job of `size` processes, where `buffers` receive buffers
    /// may be locked in memory.
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
        // With many peers, each gets less, but not less than what lets it stream at all.
        let share = (receives / wanted.max(1)).saturating_sub(RESERVE);
        let messages = options.credits.min(share * 2 / 3).max(4);
        let events = (options.credits / 2).min(share / 3).max(4);
        let room = (receives / (messages + events + RESERVE))
            .min(least(|a| a.max_cqe).saturating_sub(256) / DEPTH);
        let connections = wanted.min(room).max(1);
        // What the job itself does not need.
        let linked = options.linked.min(most.min(room).saturating_sub(connections));
        QueueDepths { connections, linked, messages, events }
    }

    /// The job's connections, and those for processes of other jobs.
    pub fn all_connections(&self) -> usize {
        self.connections + self.linked
    }

    /// Receive buffers of one connection.
    pub fn buffers(&self) -> usize {
        self.messages + self.events + RESERVE
    }

    /// Events that a peer may send by a secondary connection: flags alone.
    pub fn secondary_events(&self) -> usize {
        self.events.min(FLAGS)
    }

    /// Receive buffers of a secondary connection: for events, and for two returns of credits.
    pub fn secondary_buffers(&self) -> usize {
        self.secondary_events() + 2
    }
}

/// What a receive buffer was used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferUse {
    Message,
    Event,
    /// Credits: nobody is owed any for them.
    Control,
}

/// A receive buffer.
pub struct ReceiveBuffer {
    pub memory: Sge,
    sge: ibv_sge,
    /// The next message of the same peer.
    pub next: u32,
    /// Bytes received.
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
    /// Buffers that are to be posted again, together.
    idle: Vec<u32>,
    /// Buffers of connections that are no more, for the next ones.
    spare: usize,
    /// How many are collected before.
    together: usize,
    /// Reads and atomics that may be under way towards this process.
    pub reads: u8,
    options: VerbsOptions,
}

/// Buffers that are collected to be posted again together.
const TOGETHER: usize = 8;

/// Most buffers that are idle: a batch of completions may add to what is collected.
pub const IDLE_MOST: usize = TOGETHER + BATCH;

/// Connect requests that can wait to be read.
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

    /// Whether what is written here becomes visible in ascending order within the MTU.
    pub fn in_order(&self) -> bool {
        self.options.in_order_placement.unwrap_or(self.port.places_in_order())
    }

    /// What others need to know.
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

    /// The path to a peer's rail.
    pub fn path(&self, to: &RailAddress, traffic: Traffic) -> ibv_ah_attr {
        path::to_rail(&self.port, &self.options, to, traffic)
    }

    /// The path to a group of the network.
    pub fn path_to_group(&self, gid: ibv_gid) -> ibv_ah_attr {
        path::to(&self.port, &self.options, (gid, 0, true), Traffic::Datagrams)
    }

    /// The path to a group that the connection manager joined.
    pub fn path_of_group(&self, joined: ibv_ah_attr) -> ibv_ah_attr {
        path::of_group(&self.options, joined)
    }

    /// A queue pair for a connection, ready to be told of its peer; and its inline size.
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

    /// Connects `pair`, which sends from packet `psn` on, with queue pair `number` of a peer at
    /// `to`, which sends from `their_psn` on.
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
            // 0.64 ms; credits see to it that it is hardly ever needed.
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
            // 7 would mean for ever.
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

    /// Makes and posts `count` receive buffers, for one more connection: those of one that is no more are as good.
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
        // SAFETY: fresh memory of that length, which lives as long as `memories`.
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

    /// Connection `link` is no more, whose buffers are `count`: nobody is owed anything for them, and others may have them.
    pub fn shrink(&mut self, link: usize, count: usize) {
        for &buffer in &self.idle {
            let it = &mut self.buffers[buffer as usize];
            if it.peer as usize == link {
                it.of = BufferUse::Control;
            }
        }
        self.spare += count;
    }

    /// Takes a buffer back; true if it is time to post again.
    #[inline]
    pub fn give_back(&mut self, buffer: u32, peer: usize, of: BufferUse) -> bool {
        let it = &mut self.buffers[buffer as usize];
        (it.peer, it.of) = (peer as u32, of);
        self.idle.push(buffer);
        // What is kept back for control messages is little.
        self.idle.len() >= self.together || of == BufferUse::Control
    }

    /// Posts all idle buffers by one call; `owe` hears for each whom it is owed to.
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
        // SAFETY: a live queue with room for all buffers; each lives as long as the queue, and is
        // idle.
        match unsafe { post(self.shared.raw(), list.as_mut_ptr(), &mut bad) } {
            0 => Ok(()),
            errno => Err(Fault::system("posting receive buffers", errno.abs())),
        }
    }
}
