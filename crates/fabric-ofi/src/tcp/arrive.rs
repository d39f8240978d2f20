//! What is done with what comes on a connection.

use super::connection::{Lending, Link, Peer, Shared};
use super::frame::{FRAME, Frame, Kind};
use super::reader::{Body, End, Landed, Pieces};
use std::os::fd::AsRawFd;
use weft_fabric::Sge;

/// Reads in a row of one connection, before others have their turn.
const READS: usize = 4;

/// Why a connection ends whose peer breaks a rule.
const BROKEN: i32 = libc::EPROTO;

/// Why one ends that the peer has ended.
const CLOSED: i32 = libc::ECONNRESET;

impl Peer {
    /// Takes what has come; whether anything has. Errors: errno, why the connection is over.
    pub fn read(&mut self, shared: &mut Shared) -> Result<bool, i32> {
        let mut moved = false;
        if self.reader.is_stalled() {
            let mut rest = std::mem::take(&mut self.reader.rest);
            // SAFETY: our own, until the end of this block.
            let mut pieces = Pieces::of(unsafe { Sge::new(rest.as_mut_ptr(), rest.len()) });
            self.take(&mut pieces, shared)?;
            if self.reader.is_stalled() {
                return Ok(false);
            }
            moved = true;
        }
        for _ in 0..READS {
            let Link::Open(fd) = &self.link else { break };
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
            let frame = Frame { kind: Kind::Ack, acks: 0, len: 0, key: 0, at: 0 };
            self.push(shared, frame, &[], Lending::Copied)?;
        }
        Ok(moved)
    }

    /// Where the body of the next frame goes, most likely.
    fn guess(&self, shared: &Shared) -> Option<Sge> {
        // The oldest read may be under way.
        let first = usize::from(self.reader.body.is_some_and(|body| matches!(body.end, End::Read)));
        let read = self.reads.get(first).map(|&(place, _)| place);
        read.or_else(|| shared.posted.last().map(|&(place, _)| place))
    }

    /// Takes all of `pieces`, or as much as there are buffers for.
    fn take(&mut self, pieces: &mut Pieces, shared: &mut Shared) -> Result<(), i32> {
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

    /// A frame begins; false: there is no buffer for it.
    fn begin(&mut self, shared: &mut Shared) -> Result<bool, i32> {
        let frame = self.reader.frame().ok_or(BROKEN)?;
        let len = usize::try_from(frame.len).map_err(|_| BROKEN)?;
        if frame.kind == Kind::Message && shared.posted.is_empty() {
            return Ok(false);
        }
        for _ in 0..frame.acks {
            let context = self.writes.pop_front().ok_or(BROKEN)?;
            shared.done.push_back((context, 0));
        }
        let none = |kind| Frame { kind, acks: 0, len: 0, key: 0, at: 0 };
        self.reader.body = match frame.kind {
            Kind::Message => {
                let (place, context) = shared.posted.pop().ok_or(BROKEN)?;
                if len > place.len() {
                    shared.posted.push((place, context));
                    return Err(BROKEN);
                }
                Some(Body::new(Some(place), len, End::Message(context)))
            }
            Kind::Write => Some(match shared.find(&frame) {
                Some(place) => Body::new(Some(place), len, End::Written(frame.key)),
                None => Body::new(None, len, End::NotWritten),
            }),
            Kind::Read => {
                match shared.find(&frame) {
                    Some(place) => {
                        let data = Frame { len: frame.len, ..none(Kind::Data) };
                        self.push(shared, data, &[place], Lending::Registered(frame.key))?;
                    }
                    None => self.push(shared, none(Kind::NotRead), &[], Lending::Copied)?,
                }
                None
            }
            Kind::Data => {
                let &(place, _) = self.reads.front().ok_or(BROKEN)?;
                if place.len() != len {
                    return Err(BROKEN);
                }
                Some(Body::new(Some(place), len, End::Read))
            }
            Kind::Ack => None,
            Kind::NotWritten => {
                let context = self.writes.pop_front().ok_or(BROKEN)?;
                shared.failed.push_back((context, libc::EACCES));
                None
            }
            Kind::NotRead => {
                self.has_come(shared, true)?;
                None
            }
        };
        Ok(true)
    }

    /// All of a body is there.
    fn finish(&mut self, body: Body, shared: &mut Shared) -> Result<(), i32> {
        match body.end {
            End::Message(context) => shared.done.push_back((context, body.len)),
            End::Written(_) => self.acks += 1,
            End::NotWritten => {
                let frame = Frame { kind: Kind::NotWritten, acks: 0, len: 0, key: 0, at: 0 };
                self.push(shared, frame, &[], Lending::Copied)?;
            }
            End::Read => self.has_come(shared, false)?,
        }
        Ok(())
    }
}
