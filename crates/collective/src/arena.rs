//! Memory that peers write to in collective operations: one pool for all communicators of a process.
//!
//! The pool lends pairs of notify buffers, one for each parity of an operation's number (Kini 2003, section 5.3.3), in a few sizes.
//! Memory is registered once, in chunks, and stays registered. A communicator that is freed gives its pairs back, and the next
//! communicator takes them without any registration. The mark of a notify buffer keeps its value when another communicator takes
//! the buffer. So this communicator counts on from `base`.
//!
//! Bound: [`NotifyArena::new`] sets the maximum total size in bytes. A request beyond this bound is refused. Then the ranks of the
//! communicator agree not to use notify buffers.

use crate::notified_write::{self, NotifyBuffer, NotifyMethod};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use weft_fabric::{Fabric, Fault, Region, RemoteAddr, Sge};
use weft_p2p::Endpoint;

/// Maximum payload, in bytes, of each size of notify buffer: no payload but only a mark, one packet of most networks, and more.
pub const ROOMS: [usize; 4] = [0, 2 << 10, 16 << 10, 64 << 10];

/// Default maximum number of bytes of all notify buffers of a process.
pub const USUAL: usize = 8 << 20;

/// Size of a cache line in bytes. The writes of two peers do not share a line.
const LINE: usize = 64;
/// Minimum size of a chunk in bytes.
const CHUNK: usize = 8 << 10;

/// Limits of the pool and of single writes.
#[derive(Debug, Clone, Copy)]
pub struct ArenaLimits {
    /// Maximum number of bytes of all notify buffers of a process.
    pub bytes: usize,
    /// Maximum payload in bytes that travels with its mark in one write. If set, this limit replaces the MTU, for comparisons with
    /// a document that states such a limit. The user must know that the machine permits such writes.
    pub single: Option<usize>,
}

impl Default for ArenaLimits {
    fn default() -> ArenaLimits {
        ArenaLimits { bytes: USUAL, single: None }
    }
}

/// The pool of notify buffers of a process.
pub struct NotifyArena<F: Fabric> {
    endpoint: Rc<Endpoint<F>>,
    bounds: ArenaLimits,
    taken: Cell<usize>,
    /// True as long as no communicator has taken the large bounce buffers ([`crate::bounce`]).
    many_buffers: Rc<Cell<bool>>,
    chunks: RefCell<Vec<Region>>,
    /// Pairs that no communicator uses.
    idle: RefCell<Vec<NotifyPair>>,
}

impl<F: Fabric> Drop for NotifyArena<F> {
    fn drop(&mut self) {
        for region in self.chunks.get_mut().drain(..) {
            self.endpoint.fabric().withdraw(region);
        }
    }
}

/// Two notify buffers of one size, for odd and even operations.
#[derive(Debug, Clone, Copy)]
pub struct NotifyPair {
    buffers: [NotifyBuffer; 2],
    /// The first of the pair's two immediates, if the pair is for writes with immediate.
    immediate: u32,
    at: RemoteAddr,
    room: usize,
    way: NotifyMethod,
}

impl NotifyPair {
    /// Returns the number of bytes from one notify buffer of a pair to the other.
    pub fn stride(room: usize) -> usize {
        notified_write::size(room).next_multiple_of(LINE)
    }

    /// Returns the notify buffer for operations whose number has this parity: 0 for even numbers.
    pub fn buffer(&self, parity: usize) -> &NotifyBuffer {
        &self.buffers[parity]
    }

    /// Returns a whole notify buffer; a sender's copy has the same layout.
    pub fn block(&self, parity: usize) -> Sge {
        self.buffers[parity].block()
    }

    /// Returns the remote address of the first byte of the pair.
    pub fn at(&self) -> RemoteAddr {
        self.at
    }

    /// Returns the immediate that a write to the buffer of this parity carries, if the pair is for writes with immediate.
    pub fn immediate(&self, parity: usize) -> u32 {
        self.immediate + parity as u32
    }

    /// Returns a number that neither mark of the pair has exceeded. A new user counts on from this number.
    pub fn base<F: Fabric>(&self, fabric: &F) -> u64 {
        let [even, odd] = self.arrived(fabric);
        even.max(odd)
    }

    /// Returns a value for payloads with even numbers, and a value for payloads with odd numbers. Each value is the number of the
    /// last payload that has landed or, with immediates, how many payloads have landed.
    pub fn arrived<F: Fabric>(&self, fabric: &F) -> [u64; 2] {
        self.buffers.map(|buffer| fabric.counters().value(buffer.arrived()))
    }
}

impl<F: Fabric> NotifyArena<F> {
    /// Makes the pool of one process, of at most `bounds.bytes` bytes of notify buffers.
    pub fn new(endpoint: Rc<Endpoint<F>>, bounds: ArenaLimits) -> NotifyArena<F> {
        let (chunks, idle) = (RefCell::default(), RefCell::default());
        let many_buffers = Rc::new(Cell::new(true));
        NotifyArena { endpoint, bounds, taken: Cell::new(0), many_buffers, chunks, idle }
    }

    /// Returns a flag that is true as long as no communicator has taken the large bounce buffers. The communicator that takes these
    /// buffers sets the flag to false.
    pub(crate) fn many_buffers(&self) -> Rc<Cell<bool>> {
        self.many_buffers.clone()
    }

    /// Returns the limits with which the pool was made.
    pub fn bounds(&self) -> ArenaLimits {
        self.bounds
    }

    /// Takes `count` pairs of notify buffers for `room` bytes, an entry of [`ROOMS`]. `way` is as for [`NotifyBuffer::new`], or
    /// [`NotifyMethod::Immediate`]. Returns `None` if the bound would be exceeded.
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

    /// Takes back pairs to which no rank writes any more.
    pub fn give(&self, pairs: impl IntoIterator<Item = NotifyPair>) {
        self.idle.borrow_mut().extend(pairs);
    }
}
