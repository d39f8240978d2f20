//! Reading of frames from a connection, with each body placed where it belongs.
//!
//! ```text
//!   one readv ──► rest of the body under way │ head of the next frame │ likely destination of its body │ a staging buffer
//! ```
//! The likely destination is the memory of the oldest read, or else the next buffer for a message. So the kernel makes the only
//! copy of a body, unless several frames come at once, where all except the first are short. Bytes that were read to another
//! place are copied to their destination.

use super::frame::{FRAME, TcpFrame};
use super::shared::{ConnectionShared, OperationContext};
use std::ptr;
use weft_fabric::Sge;

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
}

/// Maximum number of pieces that one call fills.
const PIECES: usize = 4;

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

    /// Takes `len` bytes, or all that are left if they are fewer. Copies them to `to`, or drops them if `to` is `None`. Returns
    /// their number.
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

/// Result of a read call.
pub enum Landed {
    /// Bytes were read. `full` is true if they filled all the room.
    Some {
        pieces: MemoryPieces,
        full: bool,
    },
    Nothing,
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

    /// Reads once. `guess` is the likely destination of the next body, and `head` is room for a head. Errors: errno, or 0 at the
    /// end of the stream.
    pub fn land(
        &self,
        fd: libc::c_int,
        head: &mut [u8; FRAME],
        guess: Option<Sge>,
        shared: &ConnectionShared,
    ) -> Result<Landed, i32> {
        let mut pieces = MemoryPieces::new();
        pieces.push(self.body.and_then(|body| body.rest()).unwrap_or(Sge::EMPTY));
        // SAFETY: `Sge::new` needs memory that stays until it is used. The caller holds `head` until it has taken the bytes.
        pieces.push(unsafe { Sge::new(head.as_mut_ptr(), FRAME - self.have) });
        pieces.push(guess.unwrap_or(Sge::EMPTY));
        pieces.push(shared.staging());
        let iov: [libc::iovec; PIECES] = pieces
            .all
            .map(|piece| libc::iovec { iov_base: piece.ptr().cast(), iov_len: piece.len() });
        let room: usize = pieces.all.iter().map(|piece| piece.len()).sum();
        loop {
            // SAFETY: `readv` needs writable pieces. Their owners keep them until the operations are complete (`Sge::new`), and the
            // kernel writes no more bytes than they hold.
            let count = unsafe { libc::readv(fd, iov.as_ptr(), pieces.count as libc::c_int) };
            match count {
                0 => return Err(0),
                1.. => {
                    pieces.left = count as usize;
                    return Ok(Landed::Some { full: count as usize == room, pieces });
                }
                _ => match std::io::Error::last_os_error().raw_os_error().unwrap_or(0) {
                    libc::EINTR => {}
                    libc::EAGAIN => return Ok(Landed::Nothing),
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
