//! Memory that peers write to in collective operations: one pool for all communicators of a process.
//!
//! It lends pairs of notify buffers, one for each parity of an operation's number (Kini 2003, section
//! 5.3.3), in a few sizes. Memory is registered once, in chunks, and kept: a communicator that is freed
//! gives its pairs back, the next one takes them, and nothing is registered for it. A notify buffer's mark
//! keeps its value when it changes hands, so who takes a pair numbers from `base` on.
//!
//! Bound: [`NotifyArena::new`] says how many bytes there may be in all; what does not fit is refused, and the
//! communicator then does without (its ranks agree on it).

use crate::notified_write::{self, NotifyBuffer, NotifyMethod};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use weft_fabric::{Fabric, Fault, Region, RemoteAddr, Sge};
use weft_p2p::Endpoint;

/// Payloads that a notify buffer has room for, in bytes: a mark alone, one packet of most networks, and more.
pub const ROOMS: [usize; 4] = [0, 2 << 10, 16 << 10, 64 << 10];

/// Bytes of one process in all, if nobody says otherwise.
pub const USUAL: usize = 8 << 20;

/// A line of the cache: what two peers write does not share one.
const LINE: usize = 64;
/// Least bytes of a chunk.
const CHUNK: usize = 8 << 10;

/// Sizes that govern the writes.
#[derive(Debug, Clone, Copy)]
pub struct ArenaLimits {
    /// Bytes of all notify buffers of a process.
    pub bytes: usize,
    /// Payloads up to so many bytes travel with their mark in one write, whatever the MTU: the
    /// boundary of a document, where it is known to hold.
    pub single: Option<usize>,
}

impl Default for ArenaLimits {
    fn default() -> ArenaLimits {
        ArenaLimits { bytes: USUAL, single: None }
    }
}

/// The pool.
pub struct NotifyArena<F: Fabric> {
    endpoint: Rc<Endpoint<F>>,
    bounds: ArenaLimits,
    taken: Cell<usize>,
    /// Whether no communicator has taken the one large set of buffers ([`crate::bounce`]).
    many_buffers: Rc<Cell<bool>>,
    chunks: RefCell<Vec<Region>>,
    idle: RefCell<Vec<Lent>>,
}

impl<F: Fabric> Drop for NotifyArena<F> {
    fn drop(&mut self) {
        for region in self.chunks.get_mut().drain(..) {
            self.endpoint.fabric().withdraw(region);
        }
    }
}

/// Two notify buffers of one size: for odd and even operations.
#[derive(Debug, Clone, Copy)]
pub struct NotifyPair {
    buffers: [NotifyBuffer; 2],
    /// The first of their two immediates, where they are for writes with immediate.
    immediate: u32,
    at: RemoteAddr,
    room: usize,
    way: NotifyMethod,
}

/// A pair and the pool to which it goes back.
type Lent = NotifyPair;

impl NotifyPair {
    /// Bytes from one notify buffer to the other.
    pub fn stride(room: usize) -> usize {
        notified_write::size(room).next_multiple_of(LINE)
    }

    /// The notify buffer for operations whose number has this parity: 0 for even ones.
    pub fn buffer(&self, parity: usize) -> &NotifyBuffer {
        &self.buffers[parity]
    }

    /// All of a notify buffer, as a sender's copy of one is laid out.
    pub fn block(&self, parity: usize) -> Sge {
        self.buffers[parity].block()
    }

    /// Its first byte as peers name it.
    pub fn at(&self) -> RemoteAddr {
        self.at
    }

    /// What a write to one of them carries, if they are for writes with immediate.
    pub fn immediate(&self, parity: usize) -> u32 {
        self.immediate + parity as u32
    }

    /// A number that neither mark has passed: users count on from it.
    pub fn base<F: Fabric>(&self, fabric: &F) -> u64 {
        let [even, odd] = self.arrived(fabric);
        even.max(odd)
    }

    /// What has landed, by parity: the last number, or how many with immediate.
    pub fn arrived<F: Fabric>(&self, fabric: &F) -> [u64; 2] {
        self.buffers.map(|buffer| fabric.counters().value(buffer.arrived()))
    }
}

impl<F: Fabric> NotifyArena<F> {
    /// For one process; at most `bounds.bytes` of notify buffers.
    pub fn new(endpoint: Rc<Endpoint<F>>, bounds: ArenaLimits) -> NotifyArena<F> {
        let (chunks, idle) = (RefCell::default(), RefCell::default());
        let many_buffers = Rc::new(Cell::new(true));
        NotifyArena { endpoint, bounds, taken: Cell::new(0), many_buffers, chunks, idle }
    }

    /// Whether no communicator has taken the one large set of buffers: set to false by the one that does.
    pub(crate) fn many_buffers(&self) -> Rc<Cell<bool>> {
        self.many_buffers.clone()
    }

    /// The sizes that it was made with.
    pub fn bounds(&self) -> ArenaLimits {
        self.bounds
    }

    /// Bytes of memory that it has, lent or idle.
    pub fn bytes(&self) -> usize {
        self.taken.get()
    }

    /// `count` pairs of notify buffers for `room` bytes, one of [`ROOMS`]; `way` as for [`NotifyBuffer::new`],
    /// or [`NotifyMethod::Immediate`].
    /// `None` beyond the bound.
    ///
    /// # Errors
    /// [`weft_fabric::FaultCause::NoRoom`] or `System` when the fabric has no memory.
    pub fn take(
        &self,
        count: usize,
        room: usize,
        way: NotifyMethod,
    ) -> Result<Option<Vec<NotifyPair>>, Fault> {
        let mut idle = self.idle.borrow_mut();
        let mut pairs = Vec::with_capacity(count);
        idle.retain(|pair| {
            let take = pairs.len() < count && pair.room == room && pair.way == way;
            if take {
                pairs.push(*pair);
            }
            !take
        });
        let missing = count - pairs.len();
        if missing == 0 {
            return Ok(Some(pairs));
        }
        let step = 2 * NotifyPair::stride(room);
        let bytes = (missing * step).max(CHUNK / step * step);
        if self.taken.get() + bytes > self.bounds.bytes {
            idle.append(&mut pairs);
            return Ok(None);
        }
        let fabric = self.endpoint.fabric();
        let region = match fabric.allocate(bytes) {
            Ok(region) => region,
            Err(fault) => {
                idle.append(&mut pairs);
                return Err(fault);
            }
        };
        self.taken.set(self.taken.get() + bytes);
        for i in 0..bytes / step {
            let offset = i * step;
            let immediate = match way {
                NotifyMethod::Immediate => self.endpoint.new_immediates(2),
                _ => 0,
            };
            let buffer = |parity: usize| {
                let at = offset + parity * step / 2;
                match way {
                    NotifyMethod::Immediate => {
                        let immediate = immediate + parity as u32;
                        NotifyBuffer::with_immediate(fabric, &region, at, room, immediate)
                    }
                    _ => NotifyBuffer::new(fabric, &region, at, room, way),
                }
            };
            let buffers = [buffer(0), buffer(1)];
            let pair = NotifyPair { buffers, immediate, at: region.at(offset), room, way };
            if pairs.len() < count { pairs.push(pair) } else { idle.push(pair) }
        }
        self.chunks.borrow_mut().push(region);
        Ok(Some(pairs))
    }

    /// Takes pairs back: nobody writes to them any more.
    pub fn give(&self, pairs: impl IntoIterator<Item = NotifyPair>) {
        self.idle.borrow_mut().extend(pairs);
    }
}
