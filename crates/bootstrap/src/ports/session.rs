//! A session: every member says something, and hears what all have said; again and again.

use super::{Invitation, Kind, greet};
use std::io::{self, Error, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// Longest word of a member, in bytes.
const LONGEST: usize = 1 << 20;

/// Sends some bytes with their length.
pub(super) fn say(mut stream: &UnixStream, bytes: &[u8]) -> io::Result<()> {
    let whole = [&(bytes.len() as u32).to_le_bytes()[..], bytes].concat();
    stream.write_all(&whole)
}

/// Receives what [`say`] sends.
pub(super) fn hear(mut stream: &UnixStream) -> io::Result<Vec<u8>> {
    let mut len = [0; 4];
    stream.read_exact(&mut len)?;
    let len = u32::from_le_bytes(len) as usize;
    if len > LONGEST {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Passes on what `all` members say, until one of them leaves. Then all connections end.
pub(super) fn serve(
    members: &Receiver<(usize, UnixStream)>,
    all: usize,
    patience: Duration,
) -> io::Result<()> {
    let end = Instant::now() + patience;
    let mut streams: Vec<Option<UnixStream>> = (0..all).map(|_| None).collect();
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
    let streams: Vec<UnixStream> = streams.into_iter().flatten().collect();
    loop {
        let said = streams.iter().map(hear).collect::<io::Result<Vec<_>>>()?;
        for stream in &streams {
            for bytes in &said {
                say(stream, bytes)?;
            }
        }
    }
}

/// One process of a session.
#[derive(Debug)]
pub struct Member {
    stream: UnixStream,
    all: usize,
}

impl Member {
    /// Takes its place in a session. `patience`: the longest wait for others, in each round.
    pub fn join(invitation: &Invitation, place: usize, patience: Duration) -> io::Result<Member> {
        let numbers = [invitation.session, place as u64];
        let stream = greet(&invitation.port, Kind::Take, numbers)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Member { stream, all: invitation.all })
    }

    /// The same member, for another thread.
    pub fn try_clone(&self) -> io::Result<Member> {
        Ok(Member { stream: self.stream.try_clone()?, all: self.all })
    }

    /// Says `bytes`, at most a MiB, and returns what all say, by place. Waits for all. An error if one is gone, or too slow:
    /// then the session is over for all.
    pub fn exchange(&self, bytes: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        say(&self.stream, bytes)?;
        (0..self.all).map(|_| hear(&self.stream)).collect()
    }
}
