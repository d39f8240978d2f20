//! What travels on a connection of the built-in TCP.
//!
//! ```text
//!   hello    once, by who connects:  what this is (8 bytes), proof (8), the endpoint that connects (28)
//!   answer   once, by the other one: proof (8), of a yes or of a no
//!   frames   from then on, both ways:
//!              0     1..4   4      8        16    24
//!              kind  0      acks   length   key   address      the body, `length` bytes
//! ```
//! `acks`: so many writes of the receiver's, in their order, are in their place. Words are of little-endian order.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use weft_bootstrap::keyed_hash;

/// Bytes of a frame before its body.
pub const FRAME: usize = 32;

/// Bytes of an endpoint's name: port, kind of address, address.
pub const NAME: usize = 20;

/// Bytes of a hello.
pub const HELLO: usize = 16 + NAME;

/// Bytes of an answer.
pub const ANSWER: usize = 8;

/// What this is, and of which version.
const MAGIC: u64 = u64::from_le_bytes(*b"weft-t1\0");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A message: the body.
    Message,
    /// The body goes to the receiver's memory.
    Write,
    /// `length` bytes of the receiver's memory are wanted. No body.
    Read,
    /// What was wanted: reads are answered in their order.
    Data,
    /// Nothing but acks.
    Ack,
    /// The write behind all that were acknowledged names no memory. No body.
    NotWritten,
    /// The oldest read names no memory. No body.
    NotRead,
}

impl Kind {
    const ALL: [Kind; 7] = [
        Kind::Message,
        Kind::Write,
        Kind::Read,
        Kind::Data,
        Kind::Ack,
        Kind::NotWritten,
        Kind::NotRead,
    ];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    pub kind: Kind,
    pub acks: u32,
    pub len: u64,
    pub key: u64,
    pub at: u64,
}

impl Frame {
    pub fn encode(&self) -> [u8; FRAME] {
        let mut bytes = [0; FRAME];
        // Zero is none.
        bytes[0] = 1 + self.kind as u8;
        bytes[4..8].copy_from_slice(&self.acks.to_le_bytes());
        for (to, word) in bytes[8..].chunks_exact_mut(8).zip([self.len, self.key, self.at]) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// `None`: no frame.
    pub fn decode(bytes: &[u8; FRAME]) -> Option<Frame> {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let kind = *Kind::ALL.get(usize::from(bytes[0]).checked_sub(1)?)?;
        (bytes[1..4] == [0; 3]).then(|| Frame {
            kind,
            acks: (word(0) >> 32) as u32,
            len: word(8),
            key: word(16),
            at: word(24),
        })
    }
}

/// The name of an endpoint, as it travels.
pub fn encode_name(name: SocketAddr) -> [u8; NAME] {
    let mut bytes = [0; NAME];
    bytes[..2].copy_from_slice(&name.port().to_le_bytes());
    let ip = match name.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    bytes[4..].copy_from_slice(&ip.octets());
    bytes
}

/// What [`encode_name`] has encoded; `None`: it is none.
pub fn decode_name(bytes: &[u8]) -> Option<SocketAddr> {
    let bytes: &[u8; NAME] = bytes.try_into().ok()?;
    let port = u16::from_le_bytes([bytes[0], bytes[1]]);
    let ip = Ipv6Addr::from(<[u8; 16]>::try_from(&bytes[4..]).expect("16 of them"));
    (port != 0 && bytes[2..4] == [0; 2]).then(|| SocketAddr::new(ip.to_canonical(), port))
}

/// What who knows the secret of the job says, and nobody else can.
fn proof(secret: u64, what: &str, from: SocketAddr, to: SocketAddr) -> u64 {
    keyed_hash([secret, MAGIC], (what, encode_name(from), encode_name(to)))
}

/// What `from` says when it connects to `to`.
pub fn hello(secret: u64, from: SocketAddr, to: SocketAddr) -> [u8; HELLO] {
    let mut bytes = [0; HELLO];
    bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[8..16].copy_from_slice(&proof(secret, "hello", from, to).to_le_bytes());
    bytes[16..].copy_from_slice(&encode_name(from));
    bytes
}

/// Whom a hello claims to come from.
pub fn claimed(bytes: &[u8; HELLO]) -> Option<SocketAddr> {
    decode_name(&bytes[16..])
}

/// Who says hello to `to`; `None`: nobody of the job.
pub fn who(secret: u64, bytes: &[u8; HELLO], to: SocketAddr) -> Option<SocketAddr> {
    let from = claimed(bytes)?;
    (*bytes == hello(secret, from, to)).then_some(from)
}

/// The answer to a hello.
pub fn answer(secret: u64, yes: bool, from: SocketAddr, to: SocketAddr) -> [u8; ANSWER] {
    proof(secret, if yes { "yes" } else { "no" }, from, to).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back() {
        for kind in Kind::ALL {
            let frame = Frame { kind, acks: 7, len: u64::MAX, key: 3, at: 1 << 40 };
            assert_eq!(Frame::decode(&frame.encode()), Some(frame));
        }
        for byte in [0, 1 + Kind::ALL.len() as u8, 255] {
            let mut bytes = [0; FRAME];
            bytes[0] = byte;
            assert_eq!(Frame::decode(&bytes), None, "no such kind");
        }
    }

    #[test]
    fn only_who_knows_the_secret_is_heard() {
        let (a, b) = ("10.0.0.1:5".parse().unwrap(), "[fd77::2]:70".parse().unwrap());
        let said = hello(9, a, b);
        assert_eq!(who(9, &said, b), Some(a));
        assert_eq!(who(8, &said, b), None, "another job");
        assert_eq!(who(9, &said, a), None, "said to another endpoint");
        for at in 0..HELLO {
            let mut bytes = said;
            bytes[at] ^= 1;
            assert_eq!(who(9, &bytes, b), None, "byte {at}");
        }
        assert_ne!(answer(9, true, a, b), answer(9, false, a, b));
        assert_ne!(answer(9, true, a, b), answer(9, true, b, a));
    }
}
