//! Slots: memory for the data of algorithms that use RDMA writes (Kini 2003, sections 4.2 and 5.3).
//!
//! ```text
//!   rank r      slot 0 [odd|even]   slot 1 [odd|even] ...    one for each rank that writes to r
//!               own  0 [odd|even]   own  1 [odd|even] ...    the memory from which r writes
//! ```
//! The first operation of a pattern and size on a communicator makes the slots: each rank takes pairs from the process's
//! [`NotifyArena`] and sends their addresses to the ranks that write to it, and to no other rank. Then the ranks agree whether all
//! of them have memory. If some rank has no memory, no rank uses slots on this communicator.
//!
//! Operation k uses parity k mod 2. A slot of k is written again in k + 2. A rank that writes in k + 2 has left k + 1, and k + 1
//! ends only after all ranks have arrived at it. A rank arrives at k + 1 after it has left k, and has read all data of k that it
//! needed. So no data are overwritten before they are read, although there are no reuse messages (section 5.3.3). This holds for
//! operations in which every rank receives, directly or indirectly, from every other rank: barrier and allreduce. By the same
//! argument, the data that a rank wrote from a buffer in k have arrived before the rank writes to this buffer again in k + 2, so no
//! rank waits for completions. Completions matter only when the communicator is freed: a source buffer is given to another
//! communicator only when its last write is complete.
//!
//! With immediates ([`Reception::Immediates`]), each notify buffer has a separate immediate. Arrivals are counted from the time at
//! which the slots were taken. The n-th payload of a notify buffer since then belongs to operation 2n - 1 or 2n.

use crate::allreduce::allreduce_pairwise_exchange::pairwise_exchange;
use crate::arena::{NotifyArena, NotifyPair, ROOMS};
use crate::notified_write::{NotifyMethod, NotifyTarget, payload};
use crate::outstanding::Outstanding;
use crate::rdma_pattern::{Edges, WritePattern};
use crate::shm_queue::{OperationTicket, Tickets};
use crate::{CommView, Largest, Reception, ReductionBuffers, words};
use std::cell::OnceCell;
use std::rc::Rc;
use weft_fabric::{Fabric, FabricExt, Fault, RemoteAddr, Sge, Work};

/// Maximum payload, in bytes.
pub const MOST: usize = ROOMS[ROOMS.len() - 1];

/// The slots of one pattern and size on one communicator, made by the first operation.
pub struct WriteSlots<F: Fabric> {
    pattern: WritePattern,
    room: usize,
    reception: Reception,
    arena: Rc<NotifyArena<F>>,
    tickets: Tickets<F>,
    /// Contains `None` if some rank has no memory for the slots.
    made: OnceCell<Option<SlotMemory<F>>>,
}

/// The memory of the slots, once it is made.
struct SlotMemory<F: Fabric> {
    arena: Rc<NotifyArena<F>>,
    slots: Vec<NotifyPair>,
    own: Vec<NotifyPair>,
    /// Slots of peers: rank in the fabric, address, and the first of two immediates.
    targets: Vec<(usize, RemoteAddr, u32)>,
    /// A number that no rank's mark had exceeded when the slots were taken.
    base: u64,
    /// Writes that were posted, including writes of data that are forwarded from a slot.
    posted: Outstanding<F>,
    /// With immediates, the number of arrivals in each slot when the slots were taken, by parity.
    before: Vec<[u64; 2]>,
}

impl<F: Fabric> Drop for SlotMemory<F> {
    fn drop(&mut self) {
        let mut pairs: Vec<NotifyPair> = self.slots.drain(..).chain(self.own.drain(..)).collect();
        let arena = Rc::downgrade(&self.arena);
        self.posted.when_all_done(move || {
            if let Some(arena) = arena.upgrade() {
                arena.give(pairs.drain(..));
            }
        });
    }
}

/// Word that a rank without memory for slots sends instead of a base.
const NO_ROOM: u64 = u64::MAX;

impl<F: Fabric> WriteSlots<F> {
    /// Makes slots for payloads of up to `len` bytes, at most [`MOST`].
    pub fn new(
        pattern: WritePattern,
        len: usize,
        reception: Reception,
        arena: Rc<NotifyArena<F>>,
    ) -> WriteSlots<F> {
        let room = WriteSlots::<F>::room(len);
        WriteSlots {
            pattern,
            room,
            reception,
            arena,
            tickets: Tickets::default(),
            made: OnceCell::new(),
        }
    }

    /// Returns the smallest entry of [`ROOMS`] that is at least `len` bytes.
    fn room(len: usize) -> usize {
        *ROOMS.iter().find(|&&room| room >= len).expect("a payload of at most MOST bytes")
    }

    /// Returns true if these are the slots of `pattern` for `len` bytes.
    pub fn serve(&self, pattern: WritePattern, len: usize, reception: Reception) -> bool {
        (self.pattern, self.reception) == (pattern, reception)
            && self.room == WriteSlots::<F>::room(len)
    }

    /// Returns a lease on the slots for the next operation, and makes the slots first if necessary. Waits until this rank has left
    /// all earlier operations. Returns `None` if some rank has no memory for slots. Then all later calls also return `None`.
    pub async fn enter(&self, link: &CommView<F>) -> Result<Option<SlotLease<'_, F>>, Fault> {
        let (turn, number) = self.tickets.enter(link).await?;
        let made = match self.made.get() {
            Some(made) => made,
            None => {
                let made = self.make(link).await?;
                self.made.get_or_init(|| made)
            }
        };
        let Some(made) = made else { return Ok(None) };
        let WriteSlots { room, reception, .. } = *self;
        Ok(Some(SlotLease { room, reception, made, number, _turn: turn }))
    }

    async fn make(&self, link: &CommView<F>) -> Result<Option<SlotMemory<F>>, Fault> {
        let fabric = link.endpoint.fabric();
        let Edges { from, to } = self.pattern.edges(link.rank, link.size());
        let able = |peer: usize| fabric.capabilities(link.members[peer] as usize);
        let sleepless =
            from.iter().any(|&p| NotifyMethod::choose(&able(p), 0) == NotifyMethod::BottomFill);
        let way = if sleepless { NotifyMethod::BottomFill } else { NotifyMethod::Flag };
        let arena = self.arena.clone();
        let lands = match self.reception {
            Reception::Marks => way,
            Reception::Immediates => NotifyMethod::Immediate,
        };
        link.endpoint.clear_parked();
        // If the fabric has no memory, this rank has no slots.
        let slots = arena.take(from.len(), self.room, lands).unwrap_or(None);
        // Buffers to write from: a block for each write, and one block for the result.
        let own = arena.take(to.len() + 1, self.room, way).unwrap_or(None);
        let room = slots.is_some() && own.is_some();
        let (slots, own) = (slots.unwrap_or_default(), own.unwrap_or_default());
        let before = match self.reception {
            Reception::Marks => Vec::new(),
            Reception::Immediates => slots.iter().map(|pair| pair.arrived(fabric)).collect(),
        };
        let posted = Outstanding::new(link.endpoint.clone());
        let mut made =
            SlotMemory { arena, slots, own, targets: Vec::new(), base: 0, posted, before };

        // A record has the address of a slot, and the immediate of the slot if it has one.
        let length = 8 * (RemoteAddr::WORDS + usize::from(lands == NotifyMethod::Immediate));
        let (out, into) = (link.stage(length * from.len()), link.stage(length * to.len()));
        let record = |all: Sge, i: usize| all.part(length * i, length);
        let receives: Vec<_> =
            to.iter().enumerate().map(|(i, &p)| link.irecv(p, record(into.sge(), i))).collect();
        let mut sends = Vec::new();
        for (i, &peer) in from.iter().enumerate() {
            let pair = made.slots.get(i);
            let at = pair.map_or(RemoteAddr::default(), |pair| pair.at());
            let immediate = pair.map_or(0, |pair| pair.immediate(0).into());
            let record = record(out.sge(), i);
            words::write(at.words().into_iter().chain([immediate]).take(length / 8), record);
            sends.extend(link.isend(peer, record));
        }
        link.wait_all(sends.into_iter().chain(receives)).await?;
        for (i, &peer) in to.iter().enumerate() {
            let record = record(into.sge(), i);
            let immediate = match lands {
                NotifyMethod::Immediate => words::read(record, RemoteAddr::WORDS) as u32,
                _ => 0,
            };
            let peer = link.members[peer] as usize;
            made.targets.push((peer, words::read_addr(record), immediate));
        }
        // All ranks use one base, so that a write from a slot (of forwarded data) leaves the slot's own mark unchanged. The
        // agreement on the base also reports to all ranks that some rank has no memory. The exchange of addresses reports this only
        // to the ranks that write to that rank.
        let base = made.slots.iter().map(|pair| pair.base(fabric)).max().unwrap_or(0);
        let (mine, all) = (link.stage(8), link.stage(8));
        words::write([if room { base } else { NO_ROOM }], mine.sge());
        let buffers = ReductionBuffers { data: mine.sge(), result: all.sge(), element: 8 };
        pairwise_exchange(link, buffers, &Largest).await?;
        made.base = words::read(all.sge(), 0);
        Ok((made.base != NO_ROOM).then_some(made))
    }
}

/// The slots, in use by one operation.
pub struct SlotLease<'s, F: Fabric> {
    room: usize,
    reception: Reception,
    made: &'s SlotMemory<F>,
    number: u64,
    _turn: OperationTicket<'s, F>,
}

impl<F: Fabric> SlotLease<'_, F> {
    fn parity(&self) -> usize {
        (self.number % 2) as usize
    }

    /// Returns the number of slots of this rank.
    pub fn count(&self) -> usize {
        self.made.slots.len()
    }

    /// Returns the number of writes of this rank.
    pub fn writes(&self) -> usize {
        self.made.targets.len()
    }

    /// Returns block `i` of this rank's blocks to write from. There is one more block than there are writes.
    pub fn own(&self, i: usize) -> Sge {
        self.made.own[i].block(self.parity())
    }

    /// Returns the block of slot `i`.
    pub fn slot(&self, i: usize) -> Sge {
        self.made.slots[i].block(self.parity())
    }

    /// Writes the last `len` bytes of `block` to peer number `edge` of this rank's edges. `block` is a [`SlotLease::own`] or a
    /// [`SlotLease::slot`]. The bytes must not change until the operation after the next operation.
    pub fn write(
        &self,
        link: &CommView<F>,
        edge: usize,
        block: Sge,
        len: usize,
    ) -> Result<(), Fault> {
        let fabric = link.endpoint.fabric();
        let (peer, at, immediate) = self.made.targets[edge];
        let (parity, stride) = (self.parity(), NotifyPair::stride(self.room));
        let target = NotifyTarget::new(peer, at.offset((parity * stride) as u64), self.room)
            .immediate(immediate + parity as u32);
        let single = self.made.arena.bounds().single;
        let way = match (self.reception, single) {
            (Reception::Immediates, _) => NotifyMethod::Immediate,
            (_, Some(most)) if len <= most => NotifyMethod::BottomFill,
            (_, Some(_)) => NotifyMethod::Flag,
            (_, None) => NotifyMethod::choose(&fabric.capabilities(peer), len),
        };
        let number = self.made.base + self.number;
        self.made.posted.post(|fabric, done| target.write(fabric, way, block, len, number, done))
    }

    /// Waits until the payload of slot `i` has landed.
    pub async fn landed(&self, link: &CommView<F>, i: usize) -> Result<(), Fault> {
        let counter = self.made.slots[i].buffer(self.parity()).arrived();
        let value = match self.reception {
            Reception::Marks => self.made.base + self.number,
            Reception::Immediates => self.made.before[i][self.parity()] + self.number.div_ceil(2),
        };
        link.endpoint.until(counter, value).await
    }

    /// Copies `data` to the end of a block.
    pub fn put(&self, link: &CommView<F>, block: Sge, data: Sge) {
        payload(block, data.len()).copy_from(data);
        link.endpoint.fabric().charge(Work::Copy(data.len()));
    }

    /// Copies the end of a block to `data`.
    pub fn get(&self, link: &CommView<F>, block: Sge, data: Sge) {
        data.copy_from(payload(block, data.len()));
        link.endpoint.fabric().charge(Work::Copy(data.len()));
    }
}
