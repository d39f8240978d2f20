//! The fast box: a ring from one sender to one receiver.
//!
//! ```text
//!   lines, 128 bytes each                    bytes, for payloads over 96
//!   ┌───────┬──────────┬──────────────┐      ┌────────────┬──────┬────────────┐
//!   │ stamp │ head, 24 │ payload <=96 │ ...  │ payload    │ pay- │ (skipped)  │
//!   └───────┴──────────┴──────────────┘      └────────────┴──────┴────────────┘
//! ```
//! A line is a pair of cache lines. Data that fit into the first cache line are one transfer. The second cache line comes with the
//! first, more quickly than a line at another place would. Measured between caches 0.2 us apart: half a round trip of 64 bytes
//! takes 0.16 us instead of 0.20.
//!
//! Contract. Positions count up for ever; line `p` lies in slot `p mod lines`.
//! - Only the producer writes lines and bytes. It writes the lines and bytes at positions below
//!   `taken + capacity` that it has not published yet. It publishes line `p` by storing the stamp
//!   `(p + 1) << 32 | length` with release, after the bytes that belong to the line.
//! - Only the consumer writes `taken`. It reads line `p` and its bytes from when it has seen that
//!   stamp (acquire) until it stores a `taken` past the line (release). After that the producer (acquire)
//!   may overwrite the line and its bytes.
//! - A long payload is contiguous. If it does not fit before the end of the bytes, the rest of the bytes is skipped.
//!   Both sides compute the same skip from the length.
//!
//! The pages of the lines are provided at once before the first message ([`populate`]). The pages of the bytes are touched by the
//! first long payloads, and the other pages are provided at once before the next payload, so that a ring that carries few payloads
//! has few pages. At first the producer has only the room of the first payloads. When a later payload finds no room there, the
//! producer provides the pages, and has all room from then on ([`Producer::push_widening`]). The consumer provides the pages when it
//! has consumed the first payloads, and more than a single payload.
//!
//! No deadlock, once a producer has all room: the consumer publishes `taken` once a quarter of either ring has been consumed since
//! the last time. A producer that found no room had more than a quarter outstanding beyond the `taken` that it read (a payload and
//! its skip take less than half of the bytes). Consuming this quarter makes the consumer publish again, and then ring. When all is
//! consumed, less than a quarter is unpublished, and any payload fits into the other three quarters.

use crate::populate::populate;
use crate::sync::{AtomicU64, Ordering, UnsafeCell};
use std::cell::Cell;
use weft_fabric::{Copies, Head, SMALL, Sge, copy_small};
#[cfg(not(loom))]
use weft_intranode::CacheLines;
use weft_intranode::staged;

/// Maximum payload that lies in the line itself, in bytes.
pub const INLINE: usize = 96;

/// Maximum payload of any box, in bytes.
const SEND_MAX: usize = 16 << 10;

/// Number of bytes of the first payloads of a ring, for which its pages are not provided at once. Ten payloads occupy more, so that
/// a call that follows ten like it takes no page fault. A single payload may be longer.
const FIRST_BYTES: u64 = if cfg!(loom) { 64 } else { 1 << 10 };

#[derive(Debug)]
#[repr(C, align(128))]
pub struct RingLine {
    stamp: AtomicU64,
    head: UnsafeCell<Head>,
    inline: UnsafeCell<[u8; INLINE]>,
}

impl RingLine {
    /// Returns the second cache line, if a payload of `len` bytes reaches into it.
    #[inline(always)]
    fn second(&self, len: usize) -> Sge {
        const FIRST: usize = 32;
        if len <= FIRST {
            return Sge::EMPTY;
        }
        let inline = self.inline.with(|at| at.cast::<u8>().cast_mut());
        // SAFETY: FIRST is below INLINE, so the result names the rest of `inline`, which the producer may write until it
        // publishes the line.
        unsafe { Sge::new(inline.add(FIRST), INLINE - FIRST) }
    }
}

/// # Safety
/// The conditions of `copy_small`, for a `len` of at most [`INLINE`] bytes.
#[inline(always)]
unsafe fn copy_inline(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller promised that `from` is readable and `to` writable for `len` bytes. A payload longer than `SMALL` does
    // not lie in a box, so it does not overlap the line.
    unsafe {
        match len <= SMALL {
            true => copy_small(from, to, len),
            false => std::ptr::copy_nonoverlapping(from, to, len),
        }
    }
}

/// Progress of the consumer. The consumer writes it, and the producer reads it.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Taken {
    lines: AtomicU64,
    bytes: AtomicU64,
}

/// A chunk of 64 bytes of long payloads.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct RingChunk(UnsafeCell<[u8; 64]>);

/// A box on the heap, for models and tests.
#[cfg(test)]
#[derive(Debug)]
pub struct Heap {
    taken: Taken,
    lines: Vec<RingLine>,
    chunks: Vec<RingChunk>,
}

// SAFETY: the contract above says which side touches which part; the models check it.
#[cfg(test)]
unsafe impl Sync for Heap {}

#[cfg(test)]
impl Heap {
    pub fn new(lines: usize, bytes: usize) -> Heap {
        let zero = || AtomicU64::new(0);
        let line = || RingLine {
            stamp: zero(),
            head: UnsafeCell::new(Head::default()),
            inline: UnsafeCell::new([0; INLINE]),
        };
        Heap {
            taken: Taken { lines: zero(), bytes: zero() },
            lines: (0..lines).map(|_| line()).collect(),
            chunks: (0..bytes / 64).map(|_| RingChunk(UnsafeCell::new([0; 64]))).collect(),
        }
    }

    /// # Safety
    /// The conditions of `MessageRing::new`. The heap must outlive the ring.
    pub unsafe fn ring(&self) -> MessageRing {
        // SAFETY: the arrays belong to this heap and start as zeros. The caller promised that the heap outlives the ring, and
        // that each end has only one user.
        unsafe { MessageRing::new(&self.taken, &self.lines[..], &self.chunks[..]) }
    }
}

/// Addresses of the parts of a ring. They are plain pointers, because the memory is shared with a process that need not be honest.
/// References are made only to atomics in the memory.
#[derive(Debug, Clone, Copy)]
pub struct MessageRing {
    taken: *const Taken,
    lines: *const RingLine,
    chunks: *const RingChunk,
    line_count: u64,
    byte_count: u64,
}

impl MessageRing {
    /// Creates the description of a box of these lines and chunks (powers of two, at least 4 chunks).
    ///
    /// # Safety
    /// The three arrays must stay mapped for as long as a [`Producer`] or [`Consumer`] made from this value is used. They must
    /// be zero or have been used as a box before. At most one producer and one consumer may exist on them at a time.
    pub unsafe fn new(
        taken: *const Taken,
        lines: *const [RingLine],
        chunks: *const [RingChunk],
    ) -> MessageRing {
        let (line_count, byte_count) = (lines.len() as u64, 64 * chunks.len() as u64);
        assert!(line_count.is_power_of_two() && byte_count.is_power_of_two() && byte_count >= 256);
        MessageRing { taken, lines: lines.cast(), chunks: chunks.cast(), line_count, byte_count }
    }

    /// Returns the maximum payload of a message, in bytes: a quarter of the bytes, and at most [`SEND_MAX`].
    pub fn send_max(&self) -> usize {
        (self.byte_count as usize / 4).min(SEND_MAX)
    }

    #[inline(always)]
    fn line(&self, position: u64) -> &RingLine {
        // SAFETY: the index is below `line_count`, and the caller of `new` promised that many mapped lines. Lines consist of
        // atomics and cells, so a reference claims nothing about data that other processes write.
        unsafe { &*self.lines.add((position & (self.line_count - 1)) as usize) }
    }

    #[inline(always)]
    fn taken(&self) -> &Taken {
        // SAFETY: the caller of `new` promised that `taken` stays mapped. It consists of atomics.
        unsafe { &*self.taken }
    }

    /// Provides the pages of all lines.
    #[cold]
    fn populate_lines(&self) {
        let lines = self.lines.cast_mut().cast::<u8>();
        // SAFETY: the caller of `new` promised that the lines stay mapped. The content is neither read nor written.
        populate(unsafe { Sge::new(lines, self.line_count as usize * size_of::<RingLine>()) });
    }

    /// Provides the pages of all bytes.
    #[cold]
    fn populate_bytes(&self) {
        let bytes = self.chunks.cast_mut().cast::<u8>();
        // SAFETY: the caller of `new` promised that the chunks stay mapped. The content is neither read nor written.
        populate(unsafe { Sge::new(bytes, self.byte_count as usize) });
    }

    /// Returns the positions at which a payload of `len` contiguous bytes begins and ends. `from`: the first position that is not
    /// used by earlier payloads.
    #[inline(always)]
    fn place(&self, from: u64, len: usize) -> (u64, u64) {
        let need = (len as u64).next_multiple_of(64);
        let left = self.byte_count - (from & (self.byte_count - 1));
        let start = if need > left { from + left } else { from };
        (start, start + need)
    }

    /// Returns the chunk in which position `at` of the bytes (a multiple of 64) lies.
    #[inline(always)]
    fn chunk(&self, at: u64) -> *const RingChunk {
        let index = (at & (self.byte_count - 1)) / 64;
        // SAFETY: the index is below the number of chunks that the caller of `new` promised.
        unsafe { self.chunks.add(index as usize) }
    }

    /// Copies `payload` to position `at`; returns the memory that it now occupies.
    #[cfg(not(loom))]
    fn put(&self, at: u64, payload: Sge, copies: &Copies) -> Sge {
        // SAFETY: `place` made sure that the payload fits between `at` and the end of the bytes, and `push` that the consumer
        // has released these bytes: only the producer touches them now.
        let to = unsafe { Sge::new(self.chunk(at).cast_mut().cast::<u8>(), payload.len()) };
        to.want_lines(copies);
        // SAFETY: `to` is writable for the length of the payload (see its construction). The payload is readable: the caller of
        // `Sge::new` promised it. The two do not overlap, because a payload this long does not lie in a box.
        unsafe { std::ptr::copy_nonoverlapping(payload.ptr(), to.ptr(), payload.len()) }
        to
    }

    /// Copies `payload` chunk by chunk, so that the checker sees every access.
    #[cfg(loom)]
    fn put(&self, at: u64, payload: Sge, _: &Copies) -> Sge {
        for offset in (0..payload.len()).step_by(64) {
            let part = payload.part(offset, (payload.len() - offset).min(64));
            // SAFETY: `chunk` points into the ring, and only the producer accesses this chunk until the message is published.
            let chunk = unsafe { &*self.chunk(at + offset as u64) };
            // SAFETY: only the producer accesses the chunk now, which the checker checks; `part` has at most 64 bytes.
            chunk.0.with_mut(|to| unsafe {
                std::ptr::copy_nonoverlapping(part.ptr(), to.cast(), part.len());
            });
        }
        Sge::EMPTY
    }
}

#[cfg(test)]
impl RingMessage {
    /// Returns the payload, read in a way that the checker sees.
    pub fn bytes(&self, ring: &MessageRing) -> Vec<u8> {
        let mut all = vec![0; self.payload.len()];
        for (i, part) in all.chunks_mut(64).enumerate() {
            let at = self.payload.part(64 * i, part.len()).ptr();
            if self.payload.len() > INLINE {
                let index = (at.addr() - ring.chunks.addr()) / size_of::<RingChunk>();
                // SAFETY: `peek` checked the length, so the index lies inside the ring.
                let chunk = unsafe { &*ring.chunks.add(index) };
                // SAFETY: the producer does not write the chunk until the message is popped.
                chunk.0.with(|from| unsafe { part.copy_from_slice(&(&*from)[..part.len()]) });
            } else {
                // SAFETY: the bytes lie inside a line that `peek` has already shown the checker, and the line stays unchanged
                // until the pop.
                unsafe { std::ptr::copy_nonoverlapping(at, part.as_mut_ptr(), part.len()) };
            }
        }
        all
    }
}

/// The sender's end. Its first push requires an earlier [`Producer::refresh`].
#[derive(Debug)]
pub struct Producer {
    ring: MessageRing,
    next: Cell<u64>,
    /// Lines below this position are free: `taken + capacity` as last read, or zero while pushing is blocked.
    limit: Cell<u64>,
    bytes: Cell<u64>,
    bytes_limit: Cell<u64>,
    /// True if the pages of the lines are there.
    has_lines: Cell<bool>,
    /// Number of bytes that may be outstanding: those of the first payloads until the pages of all bytes are there.
    byte_room: Cell<u64>,
    /// End of a payload that has found no room, or 0.
    lacked: Cell<u64>,
}

impl Producer {
    pub fn new(ring: MessageRing) -> Producer {
        let zero = || Cell::new(0);
        Producer {
            ring,
            next: zero(),
            limit: zero(),
            bytes: zero(),
            bytes_limit: zero(),
            has_lines: Cell::new(false),
            byte_room: Cell::new(ring.byte_count.min(FIRST_BYTES)),
            lacked: zero(),
        }
    }

    pub fn send_max(&self) -> usize {
        self.ring.send_max()
    }

    /// Publishes a message. Returns false if the last known progress of the consumer leaves no room. The payload must not be longer
    /// than [`MessageRing::send_max`].
    #[inline(always)]
    pub fn push(&self, copies: &Copies, head: Head, payload: Sge) -> bool {
        let next = self.next.get();
        if next >= self.limit.get() {
            return false;
        }
        let len = payload.len();
        let line = self.ring.line(next);
        let put = if len <= INLINE {
            // SAFETY: until its stamp is stored, only the producer touches this line. `len` is at most INLINE, the size of the
            // field, and the caller of `Sge::new` promised that the payload is readable.
            line.inline.with_mut(|to| unsafe { copy_inline(payload.ptr(), to.cast(), len) });
            line.second(len)
        } else {
            let (start, end) = self.ring.place(self.bytes.get(), len);
            if end > self.bytes_limit.get() {
                self.lacked.set(end);
                return false;
            }
            self.bytes.set(end);
            self.ring.put(start, payload, copies)
        };
        // SAFETY: until its stamp is stored, only the producer touches this line.
        line.head.with_mut(|to| unsafe { to.write(head) });
        let stamp = (u64::from(next as u32) + 1) << 32 | len as u64;
        line.stamp.store(stamp, Ordering::Release);
        self.next.set(next + 1);
        if !put.is_empty() {
            staged::told_of(copies, put);
        }
        true
    }

    /// Publishes a message, as [`Producer::push`], and first takes all room if the message lacks more than the first room. A sender
    /// that would wait after a failure must call this method, because the consumer does not wake a sender that has room to take.
    #[cold]
    pub fn push_widening(&self, copies: &Copies, head: Head, payload: Sge) -> bool {
        if self.push(copies, head, payload) {
            return true;
        }
        if self.lacked.get() == 0 || self.byte_room.get() == self.ring.byte_count {
            return false;
        }
        self.refresh();
        self.push(copies, head, payload)
    }

    /// Reads the progress of the consumer.
    pub fn refresh(&self) {
        let taken = self.ring.taken();
        // At most the positions that were sent, because the peer writes `taken` and may write a false value.
        let lines = taken.lines.load(Ordering::Acquire).min(self.next.get());
        let bytes = taken.bytes.load(Ordering::Acquire).min(self.bytes.get());
        if !self.has_lines.replace(true) {
            self.ring.populate_lines();
        }
        let lacked = self.lacked.take();
        if lacked > 0 && self.byte_room.get() < self.ring.byte_count {
            // The first payload has room even if it is longer than the first room.
            if self.bytes.get() == 0 {
                self.byte_room.set(lacked);
            } else {
                self.byte_room.set(self.ring.byte_count);
                self.ring.populate_bytes();
            }
        }
        self.limit.set(lines + self.ring.line_count);
        self.bytes_limit.set(bytes + self.byte_room.get());
    }

    /// Makes every push fail until [`Producer::refresh`], because older messages wait elsewhere.
    pub fn block(&self) {
        self.limit.set(0);
    }
}

/// A message at the receiver's end. It stays in place until [`Consumer::pop`].
#[derive(Debug, Clone, Copy)]
pub struct RingMessage {
    pub head: Head,
    pub payload: Sge,
}

/// An error: the stamp names a length that no honest sender would write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Corrupt;

/// The receiver's end.
#[derive(Debug)]
pub struct Consumer {
    ring: MessageRing,
    next: Cell<u64>,
    bytes: Cell<u64>,
    /// The values that were last stored in `taken`. At first `told_bytes` is less, so that progress is published [`soon`].
    told_lines: Cell<u64>,
    told_bytes: Cell<u64>,
    /// True if the pages of the bytes are there.
    has_bytes: Cell<bool>,
}

/// Returns the value of `told_bytes` with which progress is published when [`FIRST_BYTES`] behind `bytes` have been consumed.
fn soon(bytes: u64, quarter: u64) -> u64 {
    bytes.wrapping_add(quarter.min(FIRST_BYTES)).wrapping_sub(quarter)
}

impl Consumer {
    pub fn new(ring: MessageRing) -> Consumer {
        Consumer {
            ring,
            next: Cell::new(0),
            bytes: Cell::new(0),
            told_lines: Cell::new(0),
            told_bytes: Cell::new(soon(0, ring.byte_count / 4)),
            has_bytes: Cell::new(ring.byte_count <= FIRST_BYTES),
        }
    }

    /// Returns the oldest message that was not popped.
    #[inline(always)]
    pub fn peek(&self) -> Result<Option<RingMessage>, Corrupt> {
        let next = self.next.get();
        let line = self.ring.line(next);
        let stamp = line.stamp.load(Ordering::Acquire);
        if (stamp >> 32) as u32 != (next as u32).wrapping_add(1) {
            return Ok(None);
        }
        let len = stamp as u32 as usize;
        if len > self.ring.send_max() {
            return Err(Corrupt);
        }
        let ptr = if len <= INLINE {
            line.inline.with(|at| at.cast::<u8>())
        } else {
            self.ring.chunk(self.ring.place(self.bytes.get(), len).0).cast::<u8>()
        };
        // SAFETY: the message is published, so the producer does not touch its line until it is popped.
        let head = line.head.with(|from| unsafe { from.read() });
        // SAFETY: the payload lies in the ring, whose memory stays mapped as the caller of `MessageRing::new` promised, and the
        // producer does not touch it until the message is popped.
        let payload = unsafe { Sge::new(ptr.cast_mut(), len) };
        Ok(Some(RingMessage { head, payload }))
    }

    /// Returns true if a message has arrived after the oldest message that was not popped.
    pub fn has_another(&self) -> bool {
        let second = self.next.get() + 1;
        let stamp = self.ring.line(second).stamp.load(Ordering::Acquire);
        (stamp >> 32) as u32 == (second as u32).wrapping_add(1)
    }

    /// Gives the oldest message, with a payload of `len` bytes, back. Returns true if this call has published new room. Then the
    /// caller must wake the producer if it sleeps.
    #[inline(always)]
    #[must_use]
    pub fn pop(&self, len: usize) -> bool {
        let next = self.next.get() + 1;
        self.next.set(next);
        if len > INLINE {
            self.bytes.set(self.ring.place(self.bytes.get(), len).1);
        }
        let lines = next - self.told_lines.get();
        let bytes = self.bytes.get().wrapping_sub(self.told_bytes.get());
        let tell = lines >= self.ring.line_count / 4 || bytes >= self.ring.byte_count / 4;
        if tell {
            self.tell(len);
        }
        tell
    }

    /// Publishes the progress after a payload of `len` bytes. The first payload of the ring may be its only payload, and needs no
    /// other pages.
    #[cold]
    fn tell(&self, len: usize) {
        let taken = self.ring.taken();
        taken.lines.store(self.next.get(), Ordering::Release);
        taken.bytes.store(self.bytes.get(), Ordering::Release);
        self.told_lines.set(self.next.get());
        if self.bytes.get() > 0 {
            self.told_bytes.set(self.bytes.get());
            let is_first = self.bytes.get() == (len as u64).next_multiple_of(64);
            if is_first {
                self.told_bytes.set(soon(self.bytes.get(), self.ring.byte_count / 4));
            } else if !self.has_bytes.replace(true) {
                self.ring.populate_bytes();
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
#[path = "ring_tests.rs"]
mod tests;
