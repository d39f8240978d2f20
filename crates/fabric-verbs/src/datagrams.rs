//! A queue pair for datagrams (UD). Connect requests and multicast use such queue pairs.

use crate::VerbsConnectError;
use crate::adapter::device::DevicePort;
use crate::adapter::object::{self, Handle, QueuePair, QueuePairParts};
use crate::ffi::*;
use crate::memory::Memories;
use std::collections::VecDeque;
use std::ptr;
use weft_fabric::Sge;

/// Q_Key that all queue pairs for datagrams share.
const QKEY: u32 = 0x0057_4654;

/// Size of the global routing header before a received datagram, in bytes.
pub const GRH: usize = 40;

/// Lowest `wr_id` of datagrams. The `wr_id` of any request of a connection is smaller.
pub const GREETER_TAG: u64 = 1 << 62;
pub const MULTICAST_TAG: u64 = 2 << 62;

/// Number of the queue pair to which datagrams for a multicast group are sent.
pub const MULTICAST: u32 = 0x00ff_ffff;

/// Sizes of a [`DatagramQueuePair`]: number of slots for receiving, and number of slots for sending.
#[derive(Debug, Clone, Copy)]
pub struct DatagramSizes {
    pub received: usize,
    pub sent: usize,
    /// Maximum size of a datagram in bytes.
    pub payload: usize,
}

/// A queue pair with its buffers. Completions carry `wr_id = tag + slot`.
pub struct DatagramQueuePair {
    pub pair: QueuePair,
    tag: u64,
    sizes: DatagramSizes,
    memory: Sge,
    rail: usize,
    registration: u32,
    /// Slots that are free for sending.
    free: VecDeque<u32>,
}

impl DatagramQueuePair {
    pub fn new(
        ends: &QueuePairParts,
        port: &DevicePort,
        rail: usize,
        memories: &mut Memories,
        sizes: DatagramSizes,
        tag: u64,
    ) -> Result<DatagramQueuePair, VerbsConnectError> {
        let mut cap = ibv_qp_cap {
            max_send_wr: sizes.sent as u32,
            max_recv_wr: sizes.received as u32,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: 0,
        };
        let pair = object::queue_pair(ends, IBV_QPT_UD, &mut cap)?;
        let state = |pair: &QueuePair, attributes: &mut ibv_qp_attr, mask| {
            let what = "bringing up a queue pair for datagrams";
            let device = port.device.clone();
            let wrap = |error| VerbsConnectError::System { what, device, error };
            pair.modify(attributes, IBV_QP_STATE | mask).map_err(wrap)
        };
        let mut attributes = ibv_qp_attr {
            qp_state: IBV_QPS_INIT,
            port_num: port.number,
            qkey: QKEY,
            ..ibv_qp_attr::default()
        };
        state(&pair, &mut attributes, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)?;
        attributes.qp_state = IBV_QPS_RTR;
        state(&pair, &mut attributes, 0)?;
        attributes.qp_state = IBV_QPS_RTS;
        state(&pair, &mut attributes, IBV_QP_SQ_PSN)?;
        let slot = (GRH + sizes.payload).next_multiple_of(64);
        let len = slot * (sizes.received + sizes.sent);
        let (registration, start) = memories.buffers(len, Some(rail)).map_err(|fault| {
            let what = "registering buffers for datagrams";
            VerbsConnectError::from_fault(&fault, what, &port.device)
        })?;
        // SAFETY: `Sge::new` needs `len` valid bytes: `memories.buffers` has just allocated them, and they live as long as
        // `memories`.
        let memory = unsafe { Sge::new(start, len) };
        let free = (sizes.received as u32..(sizes.received + sizes.sent) as u32).collect();
        let made = DatagramQueuePair { pair, tag, sizes, memory, rail, registration, free };
        (0..sizes.received as u32).for_each(|slot| made.listen(slot, memories));
        Ok(made)
    }

    fn slot(&self, slot: u32) -> Sge {
        let size = (GRH + self.sizes.payload).next_multiple_of(64);
        self.memory.part(slot as usize * size, GRH + self.sizes.payload)
    }

    /// Returns the slot of a completion of this queue pair.
    pub fn slot_of(&self, id: u64) -> u32 {
        (id - self.tag) as u32
    }

    /// Returns the bytes of a datagram in `slot`. `len` is the length with the header. Returns `None` if the datagram is too short,
    /// or longer than a slot.
    pub fn received(&self, slot: u32, len: u32) -> Option<Sge> {
        let len = (len as usize).checked_sub(GRH)?;
        (len <= self.sizes.payload).then(|| self.slot(slot).part(GRH, len))
    }

    /// Posts `slot` as receive buffer for a datagram.
    pub fn listen(&self, slot: u32, memories: &Memories) {
        let mut sge = memories.sge(self.registration, self.rail, self.slot(slot));
        let wr_id = self.tag + u64::from(slot);
        let mut wr = ibv_recv_wr { wr_id, next: ptr::null_mut(), sg_list: &mut sge, num_sge: 1 };
        let mut bad = ptr::null_mut();
        // SAFETY: `post_recv` needs a live queue pair and memory that stays until the completion: the slots live as long as
        // `memories`, and this slot is idle. If the queue refuses the slot, the number of slots that receive is one lower.
        // Datagrams may be lost anyway.
        unsafe { (self.pair.context.table.post_recv)(self.pair.raw(), &mut wr, &mut bad) };
    }

    /// Returns true if [`DatagramQueuePair::send`] has a free slot.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// Sends the parts, one after the other, as one datagram. If there is no room, sends nothing and returns false.
    pub fn send(&mut self, memories: &Memories, to: &Handle, number: u32, parts: &[Sge]) -> bool {
        let Some(slot) = self.free.pop_front() else { return false };
        let mut len = 0;
        for part in parts {
            self.slot(slot).part(len, part.len()).copy_from(*part);
            len += part.len();
        }
        let mut sge = memories.sge(self.registration, self.rail, self.slot(slot).part(0, len));
        // A connect request is solicited, so it also wakes the peer's helper thread.
        let greets = self.tag == GREETER_TAG;
        let target = ibv_ud { ah: to.raw(), remote_qpn: number, remote_qkey: QKEY };
        let mut wr = ibv_send_wr {
            wr_id: self.tag + u64::from(slot),
            next: ptr::null_mut(),
            sg_list: &mut sge,
            num_sge: 1,
            opcode: IBV_WR_SEND,
            send_flags: IBV_SEND_SIGNALED | if greets { IBV_SEND_SOLICITED } else { 0 },
            imm_data: 0,
            wr: ibv_target { ud: target },
            rest: [0; 7],
        };
        let mut bad = ptr::null_mut();
        // SAFETY: `post_send` needs a live queue pair, a live address handle (`to`), and memory that stays until the
        // completion: the slot becomes free only then.
        let sent =
            unsafe { (self.pair.context.table.post_send)(self.pair.raw(), &mut wr, &mut bad) } == 0;
        if !sent {
            self.free.push_back(slot);
        }
        sent
    }

    /// Frees `slot` after its datagram was sent.
    pub fn sent(&mut self, slot: u32) {
        self.free.push_back(slot);
    }
}
