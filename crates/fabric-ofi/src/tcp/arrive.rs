//! Handling of the frames that arrive on a connection.

use super::connection::{Lending, ReadAnswer, TcpConnectionState, TcpPeer};
use super::frame::{FRAME, FrameKind, TcpFrame};
use super::reader::{BodyEnd, FrameBody, Landed, MemoryPieces};
use super::shared::ConnectionShared;
use std::os::fd::AsRawFd;
use weft_fabric::Sge;

/// Maximum number of successive reads of one connection before the other connections have their turn.
const READS: usize = 4;

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
            if self.reader.is_stalled() {
                return Ok(false);
            }
            moved = true;
        }
        for _ in 0..READS {
            let TcpConnectionState::Open(fd) = &self.link else { break };
            let guess = self.guess(shared);
            let mut head = [0; FRAME];
            let landed = self.reader.land(fd.as_raw_fd(), &mut head, guess, shared);
            let (mut pieces, full) = match landed {
                Ok(Landed::Some { pieces, full }) => (pieces, full),
                Ok(Landed::Nothing) => break,
                Err(0) => return Err(CLOSED),
                Err(error) => return Err(error),
            };
            moved = true;
            self.take(&mut pieces, shared)?;
            if !full || self.reader.is_stalled() {
                break;
            }
        }
        if self.acks > 0 {
            let frame = TcpFrame { kind: FrameKind::Ack, acks: 0, len: 0, key: 0, at: 0 };
            self.push(shared, frame, &[], Lending::Copied)?;
        }
        Ok(moved)
    }

    /// Returns the likely destination of the next frame's body.
    fn guess(&self, shared: &ConnectionShared) -> Option<Sge> {
        // The body under way may be the data of the oldest read.
        let first =
            usize::from(self.reader.body.is_some_and(|body| matches!(body.end, BodyEnd::Read)));
        let read = self.reads.get(first).map(|&(place, _)| place);
        read.or_else(|| shared.posted.last().map(|&(place, _)| place))
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
            if !self.begin(shared)? {
                self.reader.rest = pieces.rest();
                return Ok(());
            }
            self.reader.have = 0;
        }
    }

    /// Begins a frame. Returns false if there is no buffer for it.
    fn begin(&mut self, shared: &mut ConnectionShared) -> Result<bool, i32> {
        let frame = self.reader.frame().ok_or(BROKEN)?;
        let len = usize::try_from(frame.len).map_err(|_| BROKEN)?;
        if frame.kind == FrameKind::Message && shared.posted.is_empty() {
            return Ok(false);
        }
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
                Some(FrameBody::new(Some(place), len, BodyEnd::Message(context)))
            }
            FrameKind::Write => Some(match shared.find(&frame) {
                Some(place) => FrameBody::new(Some(place), len, BodyEnd::Written(frame.key)),
                None => FrameBody::new(None, len, BodyEnd::NotWritten),
            }),
            FrameKind::Read => {
                self.serve();
                match shared.find(&frame) {
                    Some(place) => {
                        let data = TcpFrame { len: frame.len, ..none(FrameKind::Data) };
                        self.push(shared, data, &[place], Lending::Registered(frame.key))?;
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
