//! Reading of frames from a connection, with each body placed where it belongs.
//!
//! ```text
//!   one readv ──► rest of the body under way │ head of the next frame │ likely destination of its body │ a staging buffer
//!                                              └── up to 8 times, if the lengths of the next frames are known ──┘
//! ```
//! The likely destination is the memory of the oldest read, or else the next buffer for a message. So the kernel makes the only
//! copy of a body. Several frames at once are expected where their lengths are known: the answers to long reads, and messages as
//! long as the last two. In all other cases, frames after the first are copied twice, but such frames are short. Bytes that were
//! read to another place are copied to their destination. After a long write, the next head is read alone, because the place of its
//! body is known only from the head.

use super::frame::{FRAME, TcpFrame};
use super::shared::{ConnectionShared, OperationContext};
use std::ptr;
use weft_fabric::Sge;
use weft_fabric::copies::PAGE;

/// Maximum number of frames for which one read has room.
pub const FRAMES: usize = 8;

/// Maximum number of bytes of bodies for which one read has room. If there were more bytes, they would leave the caches before they
/// are used.
pub const READ_MOST: usize = 256 << 10;

/// Minimum length of a body that is expected to be followed by another body of a known length. For shorter bodies, a copy takes
/// less time than naming their places in a read.
pub const CHAINED: usize = 1 << 10;

/// Action to take when a body has arrived completely.
#[derive(Debug, Clone, Copy)]
pub enum BodyEnd {
    /// Delivers a message, which is in the buffer posted with this context.
    Message(OperationContext),
    /// Acknowledges a peer's write to the registration with this key.
    Written(u64),
    /// Refuses a peer's write, which names no registered memory.
    NotWritten,
    /// Completes the oldest part of a read.
    Read,
}

/// A body that is being read.
#[derive(Debug, Clone, Copy)]
pub struct FrameBody {
    /// Destination, or `None` if the body is dropped.
    pub to: Option<Sge>,
    pub len: usize,
    pub filled: usize,
    pub end: BodyEnd,
}

impl FrameBody {
    pub fn new(to: Option<Sge>, len: usize, end: BodyEnd) -> FrameBody {
        FrameBody { to, len, filled: 0, end }
    }

    /// Returns the destination of the rest of the body.
    fn rest(&self) -> Option<Sge> {
        self.to.map(|to| to.part(self.filled, self.len - self.filled))
    }
}

/// Position of a connection in its stream.
#[derive(Default)]
pub struct FrameReader {
    pub body: Option<FrameBody>,
    pub head: [u8; FRAME],
    /// Number of bytes of `head` that have arrived.
    pub have: usize,
    /// Bytes that came after a message for which there is no buffer.
    pub rest: Vec<u8>,
    /// Lengths of the last two messages, latest first.
    lens: [usize; 2],
    /// Number of acknowledgements after which the series of long writes is over. As long as this number is not 0, the next head is
    /// read alone.
    pub long_writes: u8,
}

impl FrameReader {
    /// Returns true if the next head is read alone, because a long write is likely. The body of a refused write has no place, and
    /// goes to the staging buffer with the next frames.
    pub fn reads_straight(&self) -> bool {
        self.long_writes > 0 && self.body.is_none_or(|body| body.to.is_some())
    }
}

/// Maximum number of pieces that one call fills: the rest of a body, heads and bodies, and the staging buffer.
const PIECES: usize = 2 + 2 * FRAMES;

/// Heads of the frames for which one read has room.
pub type Heads = [[u8; FRAME]; FRAMES];

/// Bytes in several pieces of memory, one after the other.
pub struct MemoryPieces {
    all: [Sge; PIECES],
    count: usize,
    /// Index of the next piece, and number of its bytes that are taken.
    at: (usize, usize),
    left: usize,
}

impl MemoryPieces {
    fn new() -> MemoryPieces {
        MemoryPieces { all: [Sge::EMPTY; PIECES], count: 0, at: (0, 0), left: 0 }
    }

    /// Returns all of `piece`.
    pub fn of(piece: Sge) -> MemoryPieces {
        let mut one = MemoryPieces::new();
        one.push(piece);
        one.left = piece.len();
        one
    }

    fn push(&mut self, piece: Sge) {
        if !piece.is_empty() {
            self.all[self.count] = piece;
            self.count += 1;
        }
    }

    /// Takes `len` bytes, or all remaining bytes if there are fewer. Copies these bytes to `to`, or drops them if `to` is `None`.
    /// Returns the number of bytes taken.
    pub fn take(&mut self, to: Option<Sge>, len: usize) -> usize {
        let mut taken = 0;
        while taken < len && self.left > 0 {
            let (piece, offset) = (self.all[self.at.0], self.at.1);
            let n = (piece.len() - offset).min(len - taken).min(self.left);
            if let Some(to) = to {
                let (from, to) = (piece.part(offset, n).ptr(), to.part(taken, n).ptr());
                if !ptr::eq(from, to) {
                    // SAFETY: `copy` needs `n` readable and `n` writable bytes, which may overlap. Both lie in memory that the
                    // makers of the `Sge`s keep until the operation is complete (`Sge::new`).
                    unsafe { ptr::copy(from, to, n) };
                }
            }
            (taken, self.left) = (taken + n, self.left - n);
            self.at = if offset + n == piece.len() {
                (self.at.0 + 1, 0)
            } else {
                (self.at.0, offset + n)
            };
        }
        taken
    }

    /// Returns the number of bytes that came and are not taken.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Returns true if the next bytes lie at `place`.
    fn are_at(&self, place: Sge) -> bool {
        let (piece, offset) = (self.all[self.at.0], self.at.1);
        offset <= piece.len() && ptr::eq(piece.part(offset, 0).ptr(), place.ptr())
    }

    /// Moves the remaining bytes to `spill`, unless they lie at `place` or in the last two pieces. Otherwise a body that comes
    /// first could have its destination in the memory of a later piece, and would overwrite remaining bytes there.
    pub fn make_way(&mut self, place: Sge, spill: &mut Vec<u8>) {
        if self.left == 0 || self.are_at(place) || self.at.0 + 2 >= self.count {
            return;
        }
        let mut bytes = std::mem::take(spill);
        bytes.resize(self.left.max(bytes.len()), 0);
        // SAFETY: `Sge::new` needs memory that stays until it is used. `bytes` becomes `spill`, which is not changed before the
        // pieces are dropped, because their remaining bytes then lie in the last piece.
        let to = unsafe { Sge::new(bytes.as_mut_ptr(), self.left) };
        let len = self.take(Some(to), to.len());
        *self = MemoryPieces::of(to.part(0, len));
        *spill = bytes;
    }

    /// Returns a copy of the bytes that are left.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; self.left];
        // SAFETY: `Sge::new` needs memory that stays until it is used. `bytes` is a local variable and is used only in the next
        // line.
        let to = unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) };
        self.take(Some(to), bytes.len());
        bytes
    }
}

/// Bytes that were read. `full` is true if they filled all the room.
pub struct Landed {
    pub pieces: MemoryPieces,
    pub full: bool,
}

impl FrameReader {
    /// Returns true if a message waits for a buffer.
    pub fn is_stalled(&self) -> bool {
        self.have == FRAME
    }

    /// Returns the frame whose head has arrived.
    pub fn frame(&self) -> Option<TcpFrame> {
        TcpFrame::decode(&self.head)
    }

    /// Notes the length of a message.
    pub fn note(&mut self, len: usize) {
        self.lens = [len, self.lens[0]];
    }

    /// Returns the part of `buffer` that the next message is likely to fill, and true if the messages after it are likely to have
    /// the same length.
    pub fn likely(&self, buffer: Sge) -> (Sge, bool) {
        let [last, before] = self.lens;
        if last == before && last >= CHAINED {
            return (buffer.part(0, last.min(buffer.len())), true);
        }
        // The part is as long as the longer of the last two messages, because a program may send short and long messages in turn.
        // It ends with a page. A longer part would receive the messages that follow, on pages of the buffer that may not have been
        // touched yet; the first write to such a page is a page fault.
        let begin = buffer.ptr().addr();
        let len = last.max(before).min(buffer.len()).max(1);
        let end = (begin + len).next_multiple_of(PAGE);
        (buffer.part(0, (end - begin).min(buffer.len())), false)
    }

    /// Reads once. `places` are the likely destinations of the next bodies, and `heads` is room for their heads. Returns `None`
    /// if no bytes have come. Errors: errno, or 0 at the end of the stream.
    pub fn land(
        &self,
        fd: libc::c_int,
        heads: &mut Heads,
        places: &[Sge],
        shared: &ConnectionShared,
    ) -> Result<Option<Landed>, i32> {
        let mut pieces = MemoryPieces::new();
        pieces.push(self.body.and_then(|body| body.rest()).unwrap_or(Sge::EMPTY));
        let mut have = self.have;
        for (head, &place) in heads.iter_mut().zip(places) {
            // SAFETY: `Sge::new` needs memory that stays until it is used. The caller holds `heads` until it has taken the bytes.
            pieces.push(unsafe { Sge::new(head.as_mut_ptr(), FRAME - have) });
            pieces.push(place);
            have = 0;
        }
        if !self.reads_straight() || !places[0].is_empty() {
            pieces.push(shared.staging());
        }
        let mut iov = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; PIECES];
        let mut room = 0;
        for (entry, piece) in iov.iter_mut().zip(&pieces.all[..pieces.count]) {
            *entry = libc::iovec { iov_base: piece.ptr().cast(), iov_len: piece.len() };
            room += piece.len();
        }
        loop {
            // SAFETY: `readv` needs writable pieces. Their owners keep them until the operations are complete (`Sge::new`), and the
            // kernel writes no more bytes than they hold.
            let count = unsafe { libc::readv(fd, iov.as_ptr(), pieces.count as libc::c_int) };
            match count {
                0 => return Err(0),
                1.. => {
                    pieces.left = count as usize;
                    return Ok(Some(Landed { full: count as usize == room, pieces }));
                }
                _ => match std::io::Error::last_os_error().raw_os_error().unwrap_or(0) {
                    libc::EINTR => {}
                    libc::EAGAIN => return Ok(None),
                    error => return Err(error),
                },
            }
        }
    }

    /// Takes the rest of a head. Returns true if the head is complete.
    pub fn take_head(&mut self, pieces: &mut MemoryPieces) -> bool {
        // SAFETY: `have` is at most `FRAME`, so the rest lies in `head`. Nothing else uses it before `take` returns.
        let to = unsafe { Sge::new(self.head.as_mut_ptr().add(self.have), FRAME - self.have) };
        self.have += pieces.take(Some(to), to.len());
        self.have == FRAME
    }

    /// Takes more of the body under way. Returns the body when all of it has arrived.
    pub fn take_body(&mut self, pieces: &mut MemoryPieces) -> Option<FrameBody> {
        let body = self.body.as_mut()?;
        let rest = body.rest();
        body.filled += pieces.take(rest, body.len - body.filled);
        if body.filled < body.len { None } else { self.body.take() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sge(bytes: &mut [u8]) -> Sge {
        // SAFETY: `Sge::new` needs memory that stays until it is used. Each test below keeps its bytes until then.
        unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) }
    }

    #[test]
    fn a_read_has_room_in_the_pages_of_a_message_only() {
        let mut memory = vec![0; 17 * PAGE];
        let start = memory.as_ptr().addr().next_multiple_of(PAGE) - memory.as_ptr().addr();
        let buffer = sge(&mut memory).part(start, 16 * PAGE);
        let room = |lens, offset| {
            let reader = FrameReader { lens, ..FrameReader::default() };
            let (place, more) = reader.likely(buffer.part(offset, buffer.len() - offset));
            (place.len(), more)
        };
        assert_eq!(room([0, 0], 0), (PAGE, false), "nothing has come");
        assert_eq!(room([8, 8], 64), (PAGE - 64, false), "a train of short messages");
        assert_eq!(room([8, PAGE + 1], 0), (2 * PAGE, false), "short and long messages in turn");
        assert_eq!(room([CHAINED, CHAINED], 0), (CHAINED, true), "messages of the same length");
        assert_eq!(room([8, usize::MAX], 0), (16 * PAGE, false), "no more than the buffer");
    }

    #[test]
    fn pieces_are_taken_in_their_order_and_stay_where_they_belong() {
        let (mut a, mut b) = (*b"abcd", *b"efghij");
        let mut pieces = MemoryPieces::new();
        pieces.push(sge(&mut a));
        pieces.push(sge(&mut b));
        pieces.left = 9;
        let mut to = [0; 3];
        assert_eq!(pieces.take(Some(sge(&mut to)), 3), 3);
        assert_eq!(&to, b"abc");
        assert_eq!(pieces.take(None, 2), 2, "to nowhere, over the border");
        // The destination overlaps the source and begins before it.
        let place = sge(&mut b);
        assert_eq!(pieces.take(Some(place), 3), 3);
        assert_eq!(&b[..3], b"fgh");
        assert_eq!(pieces.rest(), b"i");
        assert_eq!(pieces.take(Some(place), 1), 0, "no more than came");
    }
}
