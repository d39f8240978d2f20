//! Handling of the frames that arrive on a connection.

use super::connection::{Lending, ReadAnswer, TcpConnectionState, TcpPeer};
use super::frame::{FRAME, FrameKind, TcpFrame};
use super::reader::{BodyEnd, CHAINED, FRAMES, FrameBody, Landed, MemoryPieces, READ_MOST};
use super::shared::ConnectionShared;
use std::os::fd::AsRawFd;
use weft_fabric::Sge;

/// Maximum number of successive reads of one connection before the other connections have their turn.
const READS: usize = 4;

/// Minimum length of a write after which the next head is read alone, so that the body after it is read straight to its place. The
/// place is known only from the head. A shorter body is copied faster than read by a call of its own.
const LONG_WRITE: usize = 8 << 10;

/// Number of successive acknowledgements after which no long write is expected.
const LONG_WRITE_ACKS: u8 = 2;

/// Errno of a connection whose peer breaks a rule of the protocol.
const BROKEN: i32 = libc::EPROTO;

/// Errno of a connection that the peer has ended.
const CLOSED: i32 = libc::ECONNRESET;

impl TcpPeer {
    /// Takes the bytes that have come. Returns true if there were any. Errors: errno, the reason for the end of the connection.
    pub fn read(&mut self, shared: &mut ConnectionShared) -> Result<bool, i32> {
        let mut moved = false;
        if self.reader.is_stalled() {
            let mut rest = std::mem::take(&mut self.reader.rest);
            // SAFETY: `Sge::new` needs memory that stays until it is used. `rest` lives until the end of this block, and so does
            // `pieces`.
            let mut pieces = MemoryPieces::of(unsafe { Sge::new(rest.as_mut_ptr(), rest.len()) });
            self.take(&mut pieces, shared)?;
            moved = !self.reader.is_stalled();
        }
        let mut came = 0;
        for _ in 0..READS {
            if self.reader.is_stalled() {
                break;
            }
            let TcpConnectionState::Open(fd) = &self.link else { break };
            let mut places = [Sge::EMPTY; FRAMES];
            let count = self.expect(shared, &mut places);
            let mut heads = [[0; FRAME]; FRAMES];
            let landed = self.reader.land(fd.as_raw_fd(), &mut heads, &places[..count], shared);
            let landed = landed.map_err(|error| if error == 0 { CLOSED } else { error })?;
            let Some(Landed { mut pieces, full }) = landed else { break };
            moved = true;
            came += pieces.left();
            self.take(&mut pieces, shared)?;
            if !full || came >= READ_MOST {
                break;
            }
        }
        if self.acks > 0 {
            let frame = TcpFrame { kind: FrameKind::Ack, acks: 0, len: 0, key: 0, at: 0 };
            self.push(shared, frame, &[], Lending::Copied)?;
        }
        self.send_gathered(shared)?;
        Ok(moved)
    }

    /// Stores the likely destinations of the next bodies in `places`. Returns their number, at least 1.
    fn expect(&self, shared: &ConnectionShared, places: &mut [Sge; FRAMES]) -> usize {
        // The body under way may be the data of the oldest read.
        let first =
            usize::from(self.reader.body.is_some_and(|body| matches!(body.end, BodyEnd::Read)));
        let mut room = READ_MOST;
        let mut count = 0;
        for &(place, _) in self.reads.iter().skip(first).take(FRAMES) {
            // Later bytes must not overwrite earlier bytes before these are examined, even if the program reads twice to a place.
            let is_apart = places[..count].iter().all(|&other| are_apart(other, place));
            if count > 0 && (place.len() > room || place.len() < CHAINED || !is_apart) {
                break;
            }
            places[count] = place;
            (count, room) = (count + 1, room.saturating_sub(place.len()));
        }
        if count > 0 || self.reader.reads_straight() {
            return count.max(1);
        }
        for &(buffer, _) in shared.posted.iter().rev().take(FRAMES) {
            let (place, more) = self.reader.likely(buffer);
            if count > 0 && (place.len() > room || !more) {
                break;
            }
            places[count] = place;
            (count, room) = (count + 1, room.saturating_sub(place.len()));
        }
        count.max(1)
    }

    /// Handles all bytes of `pieces`, or stops at a message for which there is no buffer.
    fn take(
        &mut self,
        pieces: &mut MemoryPieces,
        shared: &mut ConnectionShared,
    ) -> Result<(), i32> {
        loop {
            if self.reader.body.is_some() {
                match self.reader.take_body(pieces) {
                    None => return Ok(()),
                    Some(body) => self.finish(body, shared)?,
                }
            }
            if !self.reader.take_head(pieces) {
                return Ok(());
            }
            if !self.begin(shared, pieces.left())? {
                self.reader.rest = pieces.rest();
                return Ok(());
            }
            self.reader.have = 0;
            if let Some(FrameBody { to: Some(to), len: 1.., .. }) = self.reader.body {
                pieces.make_way(to, &mut shared.spill);
            }
        }
    }

    /// Begins a frame, behind which `left` bytes have come. Returns false if there is no buffer for it.
    fn begin(&mut self, shared: &mut ConnectionShared, left: usize) -> Result<bool, i32> {
        let frame = self.reader.frame().ok_or(BROKEN)?;
        let len = usize::try_from(frame.len).map_err(|_| BROKEN)?;
        if frame.kind == FrameKind::Message && shared.posted.is_empty() {
            return Ok(false);
        }
        // An acknowledgement between two long writes changes nothing; a second acknowledgement ends the series of writes.
        self.reader.long_writes = match frame.kind {
            FrameKind::Ack => self.reader.long_writes.saturating_sub(1),
            _ => 0,
        };
        for _ in 0..frame.acks {
            let context = self.writes.pop_front().ok_or(BROKEN)?;
            shared.done.push_back((context, 0));
        }
        let none = |kind| TcpFrame { kind, acks: 0, len: 0, key: 0, at: 0 };
        self.reader.body = match frame.kind {
            FrameKind::Message => {
                let (place, context) = shared.posted.pop().ok_or(BROKEN)?;
                if len > place.len() {
                    shared.posted.push((place, context));
                    return Err(BROKEN);
                }
                self.reader.note(len);
                Some(FrameBody::new(Some(place), len, BodyEnd::Message(context)))
            }
            FrameKind::Write => Some(match shared.find(&frame) {
                Some(place) => {
                    if len >= LONG_WRITE {
                        self.reader.long_writes = LONG_WRITE_ACKS;
                    }
                    FrameBody::new(Some(place), len, BodyEnd::Written(frame.key))
                }
                None => FrameBody::new(None, len, BodyEnd::NotWritten),
            }),
            FrameKind::Read => {
                self.serve();
                match shared.find(&frame) {
                    Some(place) => {
                        let data = TcpFrame { len: frame.len, ..none(FrameKind::Data) };
                        let lending = Lending::Registered(frame.key);
                        // If more frames have come, their answers go together.
                        match left >= FRAME {
                            true => self.gather(shared, data, &[place], lending)?,
                            false => self.push(shared, data, &[place], lending)?,
                        }
                    }
                    None => self.push(shared, none(FrameKind::NotRead), &[], Lending::Copied)?,
                }
                None
            }
            FrameKind::Data => {
                let &(place, _) = self.reads.front().ok_or(BROKEN)?;
                if place.len() != len {
                    return Err(BROKEN);
                }
                Some(FrameBody::new(Some(place), len, BodyEnd::Read))
            }
            FrameKind::Ack => None,
            FrameKind::NotWritten => {
                let context = self.writes.pop_front().ok_or(BROKEN)?;
                shared.failed.push_back((context, libc::EACCES));
                None
            }
            FrameKind::NotRead => {
                self.has_come(shared, ReadAnswer::Refused)?;
                None
            }
        };
        Ok(true)
    }

    /// Handles a body that has arrived completely.
    fn finish(&mut self, body: FrameBody, shared: &mut ConnectionShared) -> Result<(), i32> {
        match body.end {
            BodyEnd::Message(context) => shared.done.push_back((context, body.len)),
            BodyEnd::Written(_) => self.acks += 1,
            BodyEnd::NotWritten => {
                let frame =
                    TcpFrame { kind: FrameKind::NotWritten, acks: 0, len: 0, key: 0, at: 0 };
                self.push(shared, frame, &[], Lending::Copied)?;
            }
            BodyEnd::Read => self.has_come(shared, ReadAnswer::Data)?,
        }
        Ok(())
    }
}

/// Returns true if two pieces of memory have no byte in common.
fn are_apart(one: Sge, other: Sge) -> bool {
    let [one, other] = [one, other].map(|piece| (piece.ptr().addr(), piece.len()));
    one.0 + one.1 <= other.0 || other.0 + other.1 <= one.0
}
