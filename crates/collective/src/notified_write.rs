//! Writes by which the receiver learns that a payload has landed in its memory (Kini 2003, section 5.3.2).
//!
//! ```text
//!   a notify buffer for up to `room` bytes; the sender's copy of it looks the same
//!   | unused | payload of n bytes, which ends at the mark | mark |
//!                                                           8 bytes, aligned
//!   BOTTOM-FILL   one write of payload and mark       n + 8 bytes fit the MTU, placed in order
//!   FLAG          a write of the payload, and one of the mark behind it      always right
//!   IMMEDIATE     a write of the payload with immediate                      always right; takes a receive
//! ```
//! The paper's terms are "single transfer" and "notify buffer". A write within the MTU is one packet. If the adapter places the
//! bytes of a packet in ascending order, the appearance of the mark proves that the payload is there. Packets of one message may be
//! placed in any order, and so may the bytes of one packet unless the adapter promises otherwise (soft-RoCE does not). Without such
//! a promise, only a second write, which is ordered behind the first, proves that the payload is there.
//!
//! The mark is the payload's number, from 1 on and never repeated. (In the paper the mark is one byte.) The receiver waits for the
//! mark as a counter, so no mark is ever reset. Since payloads end where the mark begins, no payload byte is ever taken for a mark.
//! At worst, the bytes of a number become visible from the low byte upward, so a partly visible mark is less than the complete
//! mark. The place of the mark does not depend on the method, so the receiver always waits for `arrived() >= number`.
//!
//! A write with immediate needs no mark (section 3.3.2; the paper does not use such writes, because they consume a descriptor at
//! the receiver). The adapter reports the immediate behind its data, and the receiver counts the arrivals of the notify buffer's
//! immediate. A notify buffer is made for marks or for immediates, and its owner reports to the sender which of the two it is made
//! for.
//!
//! The caller decides when a notify buffer may be written again (section 5.3.3: double buffers).

use std::fmt;
use weft_fabric::{
    Capabilities, Completion, Counter, Fabric, FabricExt, Fault, FlagKind, Region, RemoteAddr,
    RemoteFlag, RemoteWrite, Sge,
};

/// Size of the mark in bytes.
pub const MARK: usize = 8;

/// Method by which a payload travels and its arrival is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotifyMethod {
    /// One write, whose last bytes the receiver polls. The write wakes no process.
    BottomFill,
    /// A flag behind the payload, which wakes the receiver.
    Flag,
    /// A write with immediate, which consumes a receive at the receiver, and wakes the receiver.
    Immediate,
}

impl NotifyMethod {
    /// Returns the best method for `len` bytes to a peer whose memory the fabric reaches with the capabilities `able`. Both ends
    /// make the same choice.
    pub fn choose(able: &Capabilities, len: usize) -> NotifyMethod {
        match bottom_fill(able, len) {
            Ok(()) => NotifyMethod::BottomFill,
            Err(_) => NotifyMethod::Flag,
        }
    }
}

/// Reason why a payload must not be sent by BOTTOM-FILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// Bytes may become visible in any order.
    AnyOrder,
    /// Payload and mark do not fit one packet.
    TooLong {
        /// Bytes of payload and mark together.
        bytes: usize,
        /// Maximum number of bytes that one packet carries.
        most: usize,
    },
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::AnyOrder => {
                write!(f, "BOTTOM-FILL: this fabric places bytes in any order; use FLAG")
            }
            Obstacle::TooLong { bytes, most } => {
                write!(f, "{bytes} bytes: BOTTOM-FILL carries at most {most}")
            }
        }
    }
}

/// Checks that BOTTOM-FILL may carry a payload of `len` bytes.
pub fn bottom_fill(able: &Capabilities, len: usize) -> Result<(), Obstacle> {
    if !able.in_order_placement {
        return Err(Obstacle::AnyOrder);
    }
    let bytes = len.saturating_add(MARK);
    if bytes > able.mtu { Err(Obstacle::TooLong { bytes, most: able.mtu }) } else { Ok(()) }
}

/// Returns the size in bytes of a notify buffer for payloads of up to `room` bytes, a multiple of 8.
pub const fn size(room: usize) -> usize {
    room.next_multiple_of(MARK) + MARK
}

/// Returns the part of `block` (a notify buffer, or the sender's copy of a notify buffer) that holds a payload of `len` bytes.
///
/// # Panics
/// If `block` has room for less than `len` bytes.
pub fn payload(block: Sge, len: usize) -> Sge {
    let mark = block.len() - MARK;
    assert!(len <= mark, "a payload of {len} bytes where there is room for {mark}");
    block.part(mark - len, len)
}

/// A notify buffer, as its owner sees it. The buffer is made once and used repeatedly, so its counter does not change.
#[derive(Debug, Clone, Copy)]
pub struct NotifyBuffer {
    block: Sge,
    arrived: Counter,
}

impl NotifyBuffer {
    /// Turns the `size(room)` bytes at `offset`, a multiple of 8, of an allocated region into a notify buffer. `way` is
    /// [`NotifyMethod::BottomFill`] if any payload may come by this method. A sleeping receiver must then poll by itself.
    pub fn new<F: Fabric + ?Sized>(
        fabric: &F,
        region: &Region,
        offset: usize,
        room: usize,
        way: NotifyMethod,
    ) -> NotifyBuffer {
        let block = region.local.part(offset, size(room));
        let kind = match way {
            NotifyMethod::Flag => FlagKind::Waking,
            _ => FlagKind::Silent,
        };
        let mark = fabric.flag(region, offset + block.len() - MARK, kind);
        NotifyBuffer { block, arrived: mark.local }
    }

    /// Makes a notify buffer for payloads that come with `immediate`, which no other write to this process carries.
    pub fn with_immediate<F: Fabric + ?Sized>(
        fabric: &F,
        region: &Region,
        offset: usize,
        room: usize,
        immediate: u32,
    ) -> NotifyBuffer {
        let block = region.local.part(offset, size(room));
        NotifyBuffer { block, arrived: fabric.immediate(immediate) }
    }

    /// Returns the counter of the last payload that has landed: its number, or the number of arrivals if the buffer is for
    /// immediates. [`NotifyBuffer::payload`] holds a payload once this counter has reached its number, and not before.
    pub fn arrived(&self) -> Counter {
        self.arrived
    }

    /// Returns the memory of a payload of `len` bytes.
    pub fn payload(&self, len: usize) -> Sge {
        payload(self.block, len)
    }

    /// Returns the whole notify buffer, including the mark.
    pub fn block(&self) -> Sge {
        self.block
    }
}

/// A notify buffer of a peer, as its only sender sees it.
#[derive(Debug, Clone, Copy)]
pub struct NotifyTarget {
    peer: usize,
    /// Address of the first byte of the notify buffer.
    at: RemoteAddr,
    /// Number of bytes in front of the mark.
    room: usize,
    /// Immediate that the buffer's owner counts, if the buffer is for [`NotifyMethod::Immediate`].
    immediate: u32,
}

impl NotifyTarget {
    /// Describes the notify buffer for `room` bytes of `peer`, whose first byte is at `at`.
    pub fn new(peer: usize, at: RemoteAddr, room: usize) -> NotifyTarget {
        NotifyTarget { peer, at, room: size(room) - MARK, immediate: 0 }
    }

    /// Returns the target with an immediate. The owner counts the arrivals of this immediate.
    pub fn immediate(self, immediate: u32) -> NotifyTarget {
        NotifyTarget { immediate, ..self }
    }

    /// Returns the address to which a payload of `len` bytes goes.
    pub fn payload(&self, len: usize) -> RemoteAddr {
        self.at.offset((self.room - len) as u64)
    }

    /// Writes the last `len` bytes before the mark of `copy`, as payload `number`. Sets the mark of `copy` if the method needs it.
    /// `copy` may be reused once `done` advances.
    ///
    /// # Panics
    /// If `copy` is not `size(room)` bytes long, or has room for less than `len` bytes.
    pub fn write<F: Fabric + ?Sized>(
        &self,
        fabric: &F,
        way: NotifyMethod,
        copy: Sge,
        len: usize,
        number: u64,
        done: Completion,
    ) -> Result<(), Fault> {
        assert_eq!(copy.len(), self.room + MARK, "the sender's copy looks like the notify buffer");
        let data = payload(copy, len);
        let to = self.payload(len);
        match way {
            NotifyMethod::BottomFill => {
                copy.part(self.room, MARK).fill(&number.to_ne_bytes());
                fabric.write(
                    self.peer,
                    &RemoteWrite::new(copy.part(self.room - len, len + MARK), to, done),
                )
            }
            NotifyMethod::Flag => {
                let at = self.at.offset(self.room as u64);
                let flag = RemoteFlag { at, waking: true };
                fabric.write_flag(self.peer, &RemoteWrite::new(data, to, done), &flag.with(number))
            }
            NotifyMethod::Immediate => {
                fabric.write_imm(self.peer, &RemoteWrite::new(data, to, done), self.immediate)
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use weft_bootstrap::SingleProcess;
    use weft_fabric_shm::Shm;

    #[test]
    fn the_way_depends_on_order_and_length() {
        let fabric = Shm::connect(&mut SingleProcess::new()).unwrap();
        let any_order =
            Capabilities { in_order_placement: false, mtu: 1024, ..fabric.capabilities(0) };
        let in_order = Capabilities { in_order_placement: true, ..any_order.clone() };
        for len in [0, 1, 1016, 1017, usize::MAX] {
            assert_eq!(NotifyMethod::choose(&any_order, len), NotifyMethod::Flag);
            let within = len <= 1024 - MARK;
            let expected = if within { NotifyMethod::BottomFill } else { NotifyMethod::Flag };
            assert_eq!(NotifyMethod::choose(&in_order, len), expected, "{len}");
        }
        let words = |able, len| bottom_fill(able, len).unwrap_err().to_string();
        assert_eq!(
            words(&any_order, 8),
            "BOTTOM-FILL: this fabric places bytes in any order; use FLAG"
        );
        assert_eq!(words(&in_order, 1017), "1025 bytes: BOTTOM-FILL carries at most 1024");
        // A fabric with an MTU of 0 never places bytes as a unit.
        assert_eq!(
            NotifyMethod::choose(&Capabilities { mtu: 0, ..in_order }, 0),
            NotifyMethod::Flag
        );
    }

    /// Both methods put payload and mark at the same places, for any length.
    #[test]
    fn where_a_payload_lands_does_not_depend_on_the_way() {
        let fabric = Shm::connect(&mut SingleProcess::new()).unwrap();
        let room = 29;
        assert_eq!(size(room), 40);
        let region = fabric.allocate(64 + 2 * size(room)).unwrap();
        let buffer = NotifyBuffer::new(&fabric, &region, 64, room, NotifyMethod::BottomFill);
        let target = NotifyTarget::new(0, region.at(64), room);
        let copy = region.local.part(64 + size(room), size(room));
        let mut number = 0;
        for len in (0..=32).rev() {
            for way in [NotifyMethod::BottomFill, NotifyMethod::Flag] {
                number += 1;
                payload(copy, len).fill(&vec![number as u8; len]);
                target.write(&fabric, way, copy, len, number, None).unwrap();
                assert_eq!(fabric.counters().value(buffer.arrived()), number);
                let mut got = [0; 40];
                buffer.payload(len).read(&mut got[..len]);
                assert_eq!(got[..len], vec![number as u8; len], "{way:?}, {len} bytes");
            }
        }
        let mut before = [1; 64];
        region.local.read(&mut before);
        assert_eq!(before, [0; 64], "bytes in front of the notify buffer");
    }

    /// A payload with an immediate goes to the same place, leaves the mark unchanged, and is counted.
    #[test]
    fn immediates_are_counted_and_leave_no_mark() {
        let fabric = Shm::connect(&mut SingleProcess::new()).unwrap();
        let room = 24;
        let region = fabric.allocate(2 * size(room)).unwrap();
        let buffer = NotifyBuffer::with_immediate(&fabric, &region, 0, room, 9);
        let target = NotifyTarget::new(0, region.at(0), room).immediate(9);
        let copy = region.local.part(size(room), size(room));
        for (count, len) in [(1, 0), (2, 24), (3, 5)] {
            payload(copy, len).fill(&vec![count as u8; len]);
            target.write(&fabric, NotifyMethod::Immediate, copy, len, 77, None).unwrap();
            while fabric.progress() {}
            assert_eq!(fabric.counters().value(buffer.arrived()), count);
            let mut got = [0; 24];
            buffer.payload(len).read(&mut got[..len]);
            assert_eq!(got[..len], vec![count as u8; len], "{len} bytes");
        }
        let mut mark = [1; MARK];
        buffer.block().part(room, MARK).read(&mut mark);
        assert_eq!(mark, [0; MARK]);
    }

    #[test]
    #[should_panic(expected = "a payload of 33 bytes where there is room for 32")]
    fn a_payload_without_room_is_refused() {
        let _ = payload(Sge::phantom(size(32)), 33);
    }
}
