//! A rail (one port of one adapter in use): its queues, and its receive buffers.

use crate::VerbsConnectError;
use crate::adapter::device::{DeviceContext, DevicePort};
use crate::adapter::object::{
    self, CompletionChannel, CompletionQueue, Domain, QueuePair, QueuePairParts,
};
use crate::adapter::path::{self, PathAddress, Traffic};
use crate::datagrams::{DatagramQueuePair, DatagramSizes, GREETER_TAG};
use crate::ffi::*;
use crate::memory::Memories;
use crate::memory::receive_pool::ReceivePool;
use crate::options::VerbsOptions;
use crate::sizes::{
    DEPTH, HEAD, INLINE_MAX, MULTICAST_RECEIVED, MULTICAST_SENT, QueueDepths, RETRIES,
};
use crate::wire::{CONNECT_REQUEST, RailAddress};
use std::sync::Arc;

/// Queues of a rail that a sleeper needs. They may outlive the fabric.
pub struct Base {
    /// Completion queues: `arrivals` for receives of connections, `departures` for sends, `datagrams` for receives of datagrams.
    pub arrivals: CompletionQueue,
    pub departures: CompletionQueue,
    pub datagrams: CompletionQueue,
    pub channel: CompletionChannel,
}

pub struct VerbsRail {
    pub greeter: DatagramQueuePair,
    pub receives: ReceivePool,
    pub domain: Arc<Domain>,
    pub base: Arc<Base>,
    pub context: Arc<DeviceContext>,
    pub port: DevicePort,
    /// Maximum number of reads and atomics in flight towards this process, per connection.
    pub reads: u8,
    options: VerbsOptions,
}

/// Sizes of the queue pair for connect requests.
const CONNECT_REQUESTS: DatagramSizes =
    DatagramSizes { received: 256, sent: 64, payload: CONNECT_REQUEST };

impl VerbsRail {
    pub fn new(
        port: &DevicePort,
        number: usize,
        bounds: QueueDepths,
        options: &VerbsOptions,
        memories: &mut Memories,
        domain: Arc<Domain>,
    ) -> Result<VerbsRail, VerbsConnectError> {
        let context = &domain.context.clone();
        let channel = object::channel(context)?;
        let queue = |entries| object::completion_queue(context, &channel, entries);
        let connections = bounds.all_connections();
        let all = connections * bounds.buffers();
        let base = Arc::new(Base {
            arrivals: queue(all)?,
            departures: queue(connections * DEPTH + CONNECT_REQUESTS.sent + MULTICAST_SENT)?,
            datagrams: queue(CONNECT_REQUESTS.received + MULTICAST_RECEIVED)?,
            channel,
        });
        let receives = ReceivePool::new(&domain, bounds)?;
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
        Ok(VerbsRail {
            greeter,
            receives,
            domain,
            base,
            context: context.clone(),
            port: port.clone(),
            reads: reads as u8,
            options: options.clone(),
        })
    }

    /// Returns true if bytes written to this rail become visible in ascending order within the MTU.
    pub fn in_order(&self) -> bool {
        self.options.in_order_placement.unwrap_or(self.port.places_in_order())
    }

    /// Returns the address of the rail, which peers need to connect.
    pub fn address(&self) -> RailAddress {
        RailAddress {
            link: self.port.link,
            in_order: self.in_order(),
            atomics: self.context.attributes.atomic_cap != IBV_ATOMIC_NONE,
            mtu: self.port.mtu as u16,
            lid: self.port.path_lid(),
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
        let to = PathAddress { gid, lid: 0, is_global: true };
        path::to(&self.port, &self.options, to, Traffic::Datagrams)
    }

    /// Returns the path to a group that the connection manager joined.
    pub fn path_of_group(&self, joined: ibv_ah_attr) -> ibv_ah_attr {
        path::of_group(&self.options, joined)
    }

    /// Makes a queue pair for a connection, in the state INIT. Returns the queue pair and its inline size in bytes.
    pub fn pair(&self) -> Result<(QueuePair, usize), VerbsConnectError> {
        let ends = QueuePairParts {
            domain: &self.domain,
            send: &self.base.departures,
            receive: &self.base.arrivals,
            shared: Some(self.receives.queue()),
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

    /// Connects `pair` with queue pair `number` of a peer at `to`. The first packet number of `pair` is `psn`, and the first packet
    /// number of the peer's queue pair is `their_psn`.
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
            path_mtu: crate::adapter::device::mtu_code(mtu),
            dest_qp_num: number,
            rq_psn: their_psn,
            max_dest_rd_atomic: self.reads,
            // The value 12 means 0.64 ms. RNR NAKs are rare because of credits.
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
            // Both numbers of retries are at most 6, because 7 would mean infinite retries in `rnr_retry`.
            retry_cnt: RETRIES,
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
}
