//! Operations and timers under way, each a numbered entry.

use crate::units::Picoseconds;
use weft_fabric::{
    Completion, Counter, GroupId, Head, RemoteAddr, RemoteFlag, Sge, Staging, StagingPool,
};

/// Effect of a write after its data has been placed.
#[derive(Debug, Clone, Copy)]
pub enum AfterWrite {
    Nothing,
    Flag(RemoteFlag, u64),
    Immediate(u32),
}

/// Effect of a flight when it is due.
pub enum FlightAction {
    Free,
    /// A message enters the inbox of `to`.
    Message {
        head: Head,
        /// True if the message wakes the helper of `to`, too.
        solicited: bool,
        payload: FlightPayload,
        done: Completion,
    },
    /// The remaining data of a write are placed, and the write ends.
    Write {
        src: Sge,
        dst: RemoteAddr,
        then: AfterWrite,
        done: Completion,
    },
    /// Some packets of a write are placed, and further packets follow.
    Packets {
        src: Sge,
        dst: RemoteAddr,
    },
    /// A read's request reaches the owner of the memory.
    ReadRequest {
        dst: Sge,
        src: RemoteAddr,
        done: Completion,
    },
    ReadReply {
        dst: Sge,
        src: RemoteAddr,
        done: Completion,
    },
    AtomicRequest {
        target: RemoteAddr,
        operation: FlightAtomic,
        result: Sge,
        done: Completion,
    },
    AtomicReply {
        before: u64,
        result: Sge,
        done: Completion,
    },
    /// A datagram reaches one member of a group, or all members.
    Datagram {
        group: GroupId,
        payload: Staging,
        member: Option<u32>,
    },
    /// `counter` of `to` advances.
    Complete {
        counter: Counter,
    },
    /// A rank or a port dies.
    Death(crate::options::Death),
    /// The other ranks learn of a death.
    Obituary(usize),
    /// No path connects `to` and `peer` any more.
    Parted {
        peer: usize,
    },
}

/// The content of a message.
pub enum FlightPayload {
    /// Payload that has only a size, or no payload.
    None(Sge),
    /// Payload that was copied at the post.
    Copied(Staging),
    /// Payload that is read when the message arrives. The memory is kept from then on.
    Kept(Sge),
}

impl FlightPayload {
    /// Copies the payload `source` now.
    pub fn copy(source: Sge, pool: &StagingPool) -> FlightPayload {
        if source.is_phantom() {
            return FlightPayload::None(source);
        }
        let copy = pool.take(source.len());
        copy.sge().copy_from(source);
        FlightPayload::Copied(copy)
    }

    pub fn sge(&self) -> Sge {
        match self {
            FlightPayload::None(sge) | FlightPayload::Kept(sge) => *sge,
            FlightPayload::Copied(copy) => copy.sge(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub enum FlightAtomic {
    Add(u64),
    Swap { compare: u64, swap: u64 },
}

impl FlightAtomic {
    pub fn apply(self, value: u64) -> u64 {
        match self {
            FlightAtomic::Add(operand) => value.wrapping_add(operand),
            FlightAtomic::Swap { compare, swap } if value == compare => swap,
            FlightAtomic::Swap { .. } => value,
        }
    }
}

/// Value that stands for no flight.
pub const NONE: u32 = u32::MAX;

/// Value for a flight that uses no rail.
pub const NO_RAIL: u8 = u8::MAX;

pub struct SimFlight {
    pub action: FlightAction,
    pub from: u32,
    pub to: u32,
    pub rail: u8,
    /// True while the flight waits to leave the sender's port, because of the bus.
    pub leaving: bool,
    /// True once the flight has passed the receiver's port.
    pub admitted: bool,
    /// Number of bytes on the wire.
    pub bytes: usize,
    /// Latency of the operation.
    pub latency: Picoseconds,
    pub sent: Picoseconds,
    /// Time of the post that caused the flight: `sent`, or the time of the request for an answer.
    pub begun: Picoseconds,
    /// The next message in an inbox.
    pub next: u32,
}

impl SimFlight {
    /// Returns a flight that uses no rail, such as a transfer within a node, a timer, or a datagram.
    pub fn aside(action: FlightAction, from: usize, sent: Picoseconds) -> SimFlight {
        let from = from as u32;
        SimFlight {
            action,
            from,
            to: from,
            rail: NO_RAIL,
            leaving: false,
            admitted: true,
            bytes: 0,
            latency: 0,
            sent,
            begun: sent,
            next: NONE,
        }
    }
}

/// Flights by number.
#[derive(Default)]
pub struct SimFlights {
    all: Vec<SimFlight>,
    free: Vec<u32>,
}

impl SimFlights {
    pub fn add(&mut self, flight: SimFlight) -> u32 {
        match self.free.pop() {
            Some(index) => {
                self.all[index as usize] = flight;
                index
            }
            None => {
                self.all.push(flight);
                self.all.len() as u32 - 1
            }
        }
    }

    /// Returns true if an operation under way still reads or writes memory of `rank`.
    pub fn use_memory_of(&self, rank: u32) -> bool {
        self.all.iter().any(|flight| match flight.action {
            FlightAction::Write { .. }
            | FlightAction::Packets { .. }
            | FlightAction::ReadRequest { .. }
            | FlightAction::ReadReply { .. }
            | FlightAction::AtomicRequest { .. }
            | FlightAction::AtomicReply { .. } => flight.from == rank || flight.to == rank,
            _ => false,
        })
    }

    /// Ends a flight.
    #[inline]
    pub fn end(&mut self, index: u32) {
        self.free.push(index);
        self.all[index as usize].action = FlightAction::Free;
    }

    /// Ends a flight and returns its action.
    pub fn take(&mut self, index: u32) -> FlightAction {
        self.free.push(index);
        std::mem::replace(&mut self.all[index as usize].action, FlightAction::Free)
    }
}

impl std::ops::Index<u32> for SimFlights {
    type Output = SimFlight;

    fn index(&self, index: u32) -> &SimFlight {
        &self.all[index as usize]
    }
}

impl std::ops::IndexMut<u32> for SimFlights {
    fn index_mut(&mut self, index: u32) -> &mut SimFlight {
        &mut self.all[index as usize]
    }
}
