//! Greeting by which both ends of a connection prove that they know the port's secret. The secret itself is never sent.
//!
//! ```text
//!   port   ── a number (16 bytes) ──►                                                              caller
//!          ◄── proof for this number (16), a number (16), the wish: kind, two words (24) ────────
//!          ── proof for the caller's number (16) ──►
//! ```

use super::{Stream, secret};
use crate::{is_same_secret, keyed_hash_128};
use std::io::{self, Error, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

/// Maximum time for a complete greeting, at either end.
pub(super) const GREETING: Duration = Duration::from_secs(5);

/// Wish of a process that connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// Wish of a calling job to be accepted, with its number of processes.
    Call(u64),
    /// Wish of a process to take part in a session, with the number of the session and the place of the process.
    Take(u64, u64),
}

/// Length of a random number, and of a proof, in bytes.
const NUMBER: usize = 16;

/// Length of a caller's part of the greeting, in bytes.
pub(super) const SAID: usize = 2 * NUMBER + 24;

impl Wish {
    fn words(self) -> [u64; 3] {
        match self {
            Wish::Call(size) => [1, size, 0],
            Wish::Take(session, place) => [2, session, place],
        }
    }

    fn of(words: [u64; 3]) -> Option<Wish> {
        match words {
            [1, size @ 1..=0xf_ffff, 0] => Some(Wish::Call(size)),
            [2, session, place] => Some(Wish::Take(session, place)),
            _ => None,
        }
    }
}

/// Computes the proof that a process knows the secret.
fn proof(secret: u128, number: u128, who: &str, words: [u64; 3]) -> u128 {
    keyed_hash_128(secret, (number, who, words))
}

/// Reads all of `bytes`. Fails if the bytes have not come before `end`.
fn read_by(mut stream: &Stream, bytes: &mut [u8], end: Instant) -> io::Result<()> {
    let late = || {
        let text = format!("whoever has this port does not answer within {} s", GREETING.as_secs());
        Error::new(ErrorKind::TimedOut, text)
    };
    let mut have = 0;
    while have < bytes.len() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(late());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut bytes[have..]) {
            Ok(0) => return Err(Error::new(ErrorKind::ConnectionAborted, AWAY)),
            Ok(count) => have += count,
            Err(error) => match error.kind() {
                ErrorKind::Interrupted => {}
                ErrorKind::WouldBlock | ErrorKind::TimedOut => return Err(late()),
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
                    return Err(Error::new(ErrorKind::ConnectionAborted, AWAY));
                }
                _ => return Err(error),
            },
        }
    }
    Ok(())
}

/// Sends a wish to the port at the other end, and checks the port's proof.
pub(super) fn ask(mut stream: &Stream, port: u128, wish: Wish) -> io::Result<()> {
    let end = Instant::now() + GREETING;
    let mut theirs = [0; NUMBER];
    read_by(stream, &mut theirs, end)?;
    let (theirs, mine, words) = (u128::from_le_bytes(theirs), secret()?, wish.words());
    let mut said = [0; SAID];
    said[..NUMBER].copy_from_slice(&proof(port, theirs, "caller", words).to_le_bytes());
    said[NUMBER..2 * NUMBER].copy_from_slice(&mine.to_le_bytes());
    for (to, word) in said[2 * NUMBER..].chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    stream.write_all(&said).map_err(|error| match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
            Error::new(ErrorKind::ConnectionAborted, AWAY)
        }
        _ => error,
    })?;
    let mut answer = [0; NUMBER];
    read_by(stream, &mut answer, end)?;
    stream.set_read_timeout(None)?;
    match is_same_secret(&answer, &proof(port, mine, "port", words).to_le_bytes()) {
        true => Ok(()),
        false => Err(Error::new(ErrorKind::ConnectionRefused, NO)),
    }
}

/// Error if the port does not know the secret.
const NO: &str = "the port that was there is gone, and what is there now does not know its secret";

/// Error if the connection ends during the greeting.
const AWAY: &str = "whoever has this port has closed the connection: the port that was there is gone, or too many strangers \
                    connect to it at once";

/// Returns the wish of a caller to which the port has sent the number `challenge`, and the port's answer. Returns `None` if the
/// caller does not know the secret or its words are malformed.
pub(super) fn judge(
    port: u128,
    challenge: u128,
    said: &[u8; SAID],
) -> Option<(Wish, [u8; NUMBER])> {
    let word = |at: usize| {
        let bytes = &said[2 * NUMBER + 8 * at..][..8];
        u64::from_le_bytes(bytes.try_into().expect("8 of them"))
    };
    let words = [word(0), word(1), word(2)];
    let right = proof(port, challenge, "caller", words).to_le_bytes();
    let wish = Wish::of(words).filter(|_| is_same_secret(&said[..NUMBER], &right))?;
    let theirs = u128::from_le_bytes(said[NUMBER..2 * NUMBER].try_into().expect("16 of them"));
    Some((wish, proof(port, theirs, "port", words).to_le_bytes()))
}
