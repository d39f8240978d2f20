//! What is under way: one entry for each operation and each timer, by number.

use crate::units::Picoseconds;
use weft_fabric::{
    Completion, Counter, GroupId, Head, RemoteAddr, RemoteFlag, Sge, Staging, StagingPool,
};

/// What a write does after its data has been placed.
#[derive(Debug, Clone, Copy)]
pub enum Then {
    Nothing,
    Flag(RemoteFlag, u64),
    Immediate(u32),
}

/// What happens when a flight is due.
pub enum Action {
    Free,
    /// A message enters the inbox of `to`.
    Message {
        head: Head,
        /// For the helper of `to`, too.
        solicited: bool,
        payload: Payload,
        done: Completion,
    },
    /// All of a write's data that is not placed yet, then the rest.
    Write {
        src: Sge,
        dst: RemoteAddr,
        then: Then,
        done: Completion,
    },
    /// Some packets of a write that has more.
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
        operation: Atomic,
        result: Sge,
        done: Completion,
    },
    AtomicReply {
        before: u64,
        result: Sge,
        done: Completion,
    },
    /// A datagram reaches one member, or all of them.
    Datagram {
        group: GroupId,
        payload: Staging,
        member: Option<u32>,
    },
    /// `counter` of `to` advances.
    Complete {
        counter: Counter,
    },
    /// Something dies.
    Death(crate::options::Death),
    /// The others hear of it.
    Obituary(usize),
    /// There is no way any more between `to` and `peer`.
    Parted {
        peer: usize,
    },
}

/// The content of a message.
pub enum Payload {
    /// Sizes only, or nothing.
    None(Sge),
    /// Taken at the post.
    Copied(Staging),
    /// Read when it arrives, and kept from then.
    Kept(Sge),
}

impl Payload {
    /// Takes `source` now.
    pub fn copy(source: Sge, pool: &StagingPool) -> Payload {
        if source.is_phantom() {
            return Payload::None(source);
        }
        let copy = pool.take(source.len());
        copy.sge().copy_from(source);
        Payload::Copied(copy)
    }

    pub fn sge(&self) -> Sge {
        match self {
            Payload::None(sge) | Payload::Kept(sge) => *sge,
            Payload::Copied(copy) => copy.sge(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub enum Atomic {
    Add(u64),
    Swap { compare: u64, swap: u64 },
}

impl Atomic {
    pub fn apply(self, value: u64) -> u64 {
        match self {
            Atomic::Add(operand) => value.wrapping_add(operand),
            Atomic::Swap { compare, swap } if value == compare => swap,
            Atomic::Swap { .. } => value,
        }
    }
}

/// No flight.
pub const NONE: u32 = u32::MAX;

/// The rail of a flight that takes none.
pub const NO_RAIL: u8 = u8::MAX;

pub struct Flight {
    pub action: Action,
    pub from: u32,
    pub to: u32,
    pub rail: u8,
    /// It waits to leave the sender's port, for its bus.
    pub leaving: bool,
    /// It has passed the receiver's port.
    pub admitted: bool,
    /// On the wire.
    pub bytes: usize,
    /// Of the operation.
    pub latency: Picoseconds,
    pub sent: Picoseconds,
    /// The next message in an inbox.
    pub next: u32,
}

impl Flight {
    /// One that takes no rail: within a node, a timer, a datagram.
    pub fn aside(action: Action, from: usize, sent: Picoseconds) -> Flight {
        let from = from as u32;
        Flight {
            action,
            from,
            to: from,
            rail: NO_RAIL,
            leaving: false,
            admitted: true,
            bytes: 0,
            latency: 0,
            sent,
            next: NONE,
        }
    }
}

/// Flights by number.
#[derive(Default)]
pub struct Flights {
    all: Vec<Flight>,
    free: Vec<u32>,
}

impl Flights {
    pub fn add(&mut self, flight: Flight) -> u32 {
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

    /// Ends a flight.
    #[inline]
    pub fn end(&mut self, index: u32) {
        self.free.push(index);
        self.all[index as usize].action = Action::Free;
    }

    /// Ends a flight; what it did is handed out.
    pub fn take(&mut self, index: u32) -> Action {
        self.free.push(index);
        std::mem::replace(&mut self.all[index as usize].action, Action::Free)
    }
}

impl std::ops::Index<u32> for Flights {
    type Output = Flight;

    fn index(&self, index: u32) -> &Flight {
        &self.all[index as usize]
    }
}

impl std::ops::IndexMut<u32> for Flights {
    fn index_mut(&mut self, index: u32) -> &mut Flight {
        &mut self.all[index as usize]
    }
}
