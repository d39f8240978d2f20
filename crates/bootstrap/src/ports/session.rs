//! A session: every member says something, and hears what all have said; again and again.

use super::greeting::Wish;
use super::life::{Life, attend};
use super::{Invitation, Stream, greet};
use std::io::{self, Error, ErrorKind, Read, Write};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// Longest word of a member, in bytes.
const LONGEST: usize = 1 << 20;

/// The length of a word that says: all is said, and this member stays.
const STAYS: u32 = u32::MAX;

/// Sends some bytes with their length.
pub(super) fn say(mut stream: &Stream, bytes: &[u8]) -> io::Result<()> {
    let whole = [&(bytes.len() as u32).to_le_bytes()[..], bytes].concat();
    stream.write_all(&whole)
}

/// Receives what [`say`] sends; `None`: the member stays.
fn hear_member(mut stream: &Stream) -> io::Result<Option<Vec<u8>>> {
    let mut len = [0; 4];
    stream.read_exact(&mut len)?;
    let len = u32::from_le_bytes(len);
    if len == STAYS {
        return Ok(None);
    }
    if len as usize > LONGEST {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; len as usize];
    stream.read_exact(&mut bytes)?;
    Ok(Some(bytes))
}

/// The same of somebody who has something to say.
pub(super) fn hear(stream: &Stream) -> io::Result<Vec<u8>> {
    hear_member(stream)?.ok_or_else(|| ErrorKind::InvalidData.into())
}

/// Passes on what `all` members say, until one of them goes, which ends all connections, or all stay: then until they have left.
pub(super) fn serve(
    members: &Receiver<(usize, Stream)>,
    all: usize,
    patience: Duration,
) -> io::Result<()> {
    let end = Instant::now() + patience;
    let mut streams: Vec<Option<Stream>> = (0..all).map(|_| None).collect();
    let mut missing = all;
    while missing > 0 {
        let left = end.saturating_duration_since(Instant::now());
        let (place, stream) = members.recv_timeout(left).map_err(Error::other)?;
        if let Some(free @ None) = streams.get_mut(place) {
            stream.set_read_timeout(Some(patience))?;
            stream.set_write_timeout(Some(patience))?;
            *free = Some(stream);
            missing -= 1;
        }
    }
    let streams: Vec<Stream> = streams.into_iter().flatten().collect();
    loop {
        let heard = streams.iter().map(hear_member).collect::<io::Result<Vec<_>>>()?;
        let said: Vec<_> = heard.iter().flatten().collect();
        match said.len() {
            0 => break,
            some if some < all => return Err(ErrorKind::InvalidData.into()),
            _ => {}
        }
        for stream in &streams {
            for bytes in &said {
                say(stream, bytes)?;
            }
        }
    }
    attend(&streams);
    Ok(())
}

/// One process of a session.
#[derive(Debug)]
pub struct Member {
    stream: Stream,
    all: usize,
    holder: usize,
}

impl Member {
    /// Takes its place in a session. `patience`: the longest wait for others, in each round.
    pub fn join(invitation: &Invitation, place: usize, patience: Duration) -> io::Result<Member> {
        let stream = greet(&invitation.port, Wish::Take(invitation.session, place as u64))?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Member { stream, all: invitation.all, holder: invitation.root })
    }

    /// The same member, for another thread.
    pub fn try_clone(&self) -> io::Result<Member> {
        Ok(Member { stream: self.stream.try_clone()?, ..*self })
    }

    /// Says `bytes`, at most a MiB, and returns what all say, by place. Waits for all. An error if one is gone, or too slow:
    /// then the session is over for all.
    pub fn exchange(&self, bytes: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        say(&self.stream, bytes)?;
        (0..self.all).map(|_| hear(&self.stream)).collect()
    }

    /// Stays in the session, after all has been said: to hear of the others' ends, which `wake` tells of, by another thread. All
    /// members do that, or none.
    pub fn stay(self, wake: impl Fn() + Send + 'static) -> io::Result<Life> {
        (&self.stream).write_all(&STAYS.to_le_bytes())?;
        Life::begin(self.stream, self.holder, wake)
    }
}
