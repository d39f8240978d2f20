//! Format of the bytes on a connection of the built-in TCP.
//!
//! ```text
//!   challenge  once, by the side that accepts:  magic number (8 bytes), random bytes (16)
//!   hello      once, by the side that connects: magic number (8), proof (16), random bytes (16), the connecting endpoint (20)
//!   answer     once, by the side that accepts:  proof (16), of a yes or of a no
//!   frames     from then on, both ways:
//!              0     1..4   4      8        16    24
//!              kind  0      acks   length   key   address      the body, `length` bytes
//! ```
//! A proof is a keyed hash of both names and of the random bytes of both sides. So no proof can be used a second time, and the
//! secret itself is never sent. `acks` is the number of writes of the frame's receiver that have completed since the last frame.
//! Numbers are little-endian.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use weft_bootstrap::{is_same_secret, keyed_hash_128};
use weft_fabric::{coded_enum, put_words, word_at};

/// Size of a frame before its body, in bytes.
pub const FRAME: usize = 32;

/// Size of an endpoint's name (port, kind of address, address), in bytes.
pub const NAME: usize = 20;

/// Size of a proof, and of the random bytes, in bytes.
const PROOF: usize = 16;

/// Size of a challenge, in bytes.
pub const CHALLENGE: usize = 8 + PROOF;

/// Size of a hello, in bytes.
pub const HELLO: usize = 8 + 2 * PROOF + NAME;

/// Size of an answer, in bytes.
pub const ANSWER: usize = PROOF;

/// Random bytes that make each greeting unique.
pub type Nonce = [u8; PROOF];

/// Maximum number of addresses of an endpoint.
pub const NAMES_MOST: usize = 8;

/// Magic number: the protocol and its version.
const MAGIC: u64 = u64::from_le_bytes(*b"weft-t3\0");

coded_enum! {
    /// Kind of a frame.
    pub enum FrameKind {
        /// A message, which is the body.
        Message = 1,
        /// The body goes to the receiver's memory.
        Write = 2,
        /// Request for `length` bytes of the receiver's memory. No body.
        Read = 3,
        /// The requested bytes. Reads are answered in order.
        Data = 4,
        /// Carries only `acks`.
        Ack = 5,
        /// The oldest write that is not acknowledged names no registered memory. No body.
        NotWritten = 6,
        /// The oldest read names no registered memory. No body.
        NotRead = 7,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpFrame {
    pub kind: FrameKind,
    pub acks: u32,
    pub len: u64,
    pub key: u64,
    pub at: u64,
}

impl TcpFrame {
    pub fn encode(&self) -> [u8; FRAME] {
        let mut bytes = [0; FRAME];
        bytes[0] = self.kind as u8;
        bytes[4..8].copy_from_slice(&self.acks.to_le_bytes());
        put_words(&mut bytes[8..], [self.len, self.key, self.at]);
        bytes
    }

    /// Decodes a frame. Returns `None` if the frame is malformed.
    pub fn decode(bytes: &[u8; FRAME]) -> Option<TcpFrame> {
        let word = |at| word_at(bytes, at);
        let kind = FrameKind::of_code(bytes[0])?;
        (bytes[1..4] == [0; 3]).then(|| TcpFrame {
            kind,
            acks: (word(0) >> 32) as u32,
            len: word(8),
            key: word(16),
            at: word(24),
        })
    }
}

/// Encodes the name of an endpoint.
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

/// Decodes a name that [`encode_name`] has encoded. Returns `None` if the bytes are malformed.
pub fn decode_name(bytes: &[u8]) -> Option<SocketAddr> {
    let bytes: &[u8; NAME] = bytes.try_into().ok()?;
    let port = u16::from_le_bytes([bytes[0], bytes[1]]);
    let ip = Ipv6Addr::from(<[u8; 16]>::try_from(&bytes[4..]).expect("16 of them"));
    (port != 0 && bytes[2..4] == [0; 2]).then(|| SocketAddr::new(ip.to_canonical(), port))
}

/// Encodes the addresses at which an endpoint listens. The first address is its name.
pub fn encode_names(names: &[SocketAddr]) -> Vec<u8> {
    names.iter().take(NAMES_MOST).flat_map(|&name| encode_name(name)).collect()
}

/// Decodes the addresses that [`encode_names`] has encoded. Returns `None` if the bytes are malformed.
pub fn decode_names(bytes: &[u8]) -> Option<Vec<SocketAddr>> {
    let count = bytes.len() / NAME;
    let whole = bytes.len().is_multiple_of(NAME) && (1..=NAMES_MOST).contains(&count);
    if whole { bytes.chunks_exact(NAME).map(decode_name).collect() } else { None }
}

/// Answer of the side that accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GreetingAnswer {
    Yes,
    /// The connection is refused, because another connection between the two endpoints is kept.
    No,
}

/// The contents of a greeting between two endpoints: `from` connects to `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GreetingWords {
    pub from: SocketAddr,
    pub to: SocketAddr,
    /// Random bytes of `to`, then of `from`.
    pub asked: Nonce,
    pub drawn: Nonce,
}

impl GreetingWords {
    /// Returns a proof that this process knows `secret`.
    fn proof(&self, secret: u128, what: &str) -> [u8; PROOF] {
        let names = (encode_name(self.from), encode_name(self.to));
        keyed_hash_128(secret, (MAGIC, what, names, self.asked, self.drawn)).to_le_bytes()
    }

    /// Encodes a hello.
    pub fn hello(&self, secret: u128) -> [u8; HELLO] {
        let mut bytes = [0; HELLO];
        bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[8..24].copy_from_slice(&self.proof(secret, "hello"));
        bytes[24..40].copy_from_slice(&self.drawn);
        bytes[40..].copy_from_slice(&encode_name(self.from));
        bytes
    }

    /// Decodes a hello to endpoint `to`, which has sent the challenge `asked`. Returns `None` if the sender does not know the
    /// secret.
    pub fn heard(
        secret: u128,
        bytes: &[u8; HELLO],
        to: SocketAddr,
        asked: Nonce,
    ) -> Option<GreetingWords> {
        let drawn = std::array::from_fn(|i| bytes[24 + i]);
        let words = GreetingWords { from: claimed(bytes)?, to, asked, drawn };
        is_same_secret(bytes, &words.hello(secret)).then_some(words)
    }

    /// Encodes the answer to a hello.
    pub fn answer(&self, secret: u128, answer: GreetingAnswer) -> [u8; ANSWER] {
        let what = match answer {
            GreetingAnswer::Yes => "yes",
            GreetingAnswer::No => "no",
        };
        self.proof(secret, what)
    }
}

/// Encodes a challenge to a new connection.
pub fn challenge(asked: Nonce) -> [u8; CHALLENGE] {
    let mut bytes = [0; CHALLENGE];
    bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[8..].copy_from_slice(&asked);
    bytes
}

/// Returns the random bytes of a challenge, or `None` if `bytes` is not a challenge.
pub fn challenged(bytes: &[u8; CHALLENGE]) -> Option<Nonce> {
    let magic = bytes[..8] == MAGIC.to_le_bytes();
    magic.then(|| std::array::from_fn(|i| bytes[8 + i]))
}

/// Returns the endpoint that a hello claims to come from.
pub fn claimed(bytes: &[u8; HELLO]) -> Option<SocketAddr> {
    decode_name(&bytes[40..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back() {
        for kind in (1..=7).filter_map(FrameKind::of_code) {
            let frame = TcpFrame { kind, acks: 7, len: u64::MAX, key: 3, at: 1 << 40 };
            assert_eq!(TcpFrame::decode(&frame.encode()), Some(frame));
        }
        for byte in [0, FrameKind::NotRead as u8 + 1, 255] {
            let mut bytes = [0; FRAME];
            bytes[0] = byte;
            assert_eq!(TcpFrame::decode(&bytes), None, "no such kind");
        }
    }

    #[test]
    fn only_who_knows_the_secret_is_heard() {
        let (from, to) = ("10.0.0.1:5".parse().unwrap(), "[fd77::2]:70".parse().unwrap());
        let words = GreetingWords { from, to, asked: [3; PROOF], drawn: [4; PROOF] };
        let said = words.hello(9);
        assert_eq!(GreetingWords::heard(9, &said, to, [3; PROOF]), Some(words));
        assert_eq!(GreetingWords::heard(8, &said, to, [3; PROOF]), None, "another job");
        assert_eq!(
            GreetingWords::heard(9, &said, from, [3; PROOF]),
            None,
            "said to another endpoint"
        );
        assert_eq!(GreetingWords::heard(9, &said, to, [5; PROOF]), None, "said before");
        for at in 0..HELLO {
            let mut bytes = said;
            bytes[at] ^= 1;
            assert_eq!(GreetingWords::heard(9, &bytes, to, [3; PROOF]), None, "byte {at}");
        }
        assert_ne!(words.answer(9, GreetingAnswer::Yes), words.answer(9, GreetingAnswer::No));
        for other in [
            GreetingWords { from: to, to: from, ..words },
            GreetingWords { asked: [5; PROOF], ..words },
            GreetingWords { drawn: [5; PROOF], ..words },
        ] {
            assert_ne!(words.answer(9, GreetingAnswer::Yes), other.answer(9, GreetingAnswer::Yes));
        }
        assert!(!said.windows(16).any(|bytes| bytes == 9u128.to_le_bytes()), "never in clear");
    }

    #[test]
    fn challenges_and_names_come_back() {
        let mut bytes = challenge([7; PROOF]);
        assert_eq!(challenged(&bytes), Some([7; PROOF]));
        bytes[0] ^= 1;
        assert_eq!(challenged(&bytes), None);
        let names = ["10.0.0.1:5".parse().unwrap(), "[fd77::2]:70".parse().unwrap()];
        let bytes = encode_names(&names);
        assert_eq!(decode_names(&bytes), Some(names.to_vec()));
        for len in (0..bytes.len()).filter(|&len| len != NAME) {
            assert_eq!(decode_names(&bytes[..len]), None, "{len} bytes");
        }
        assert_eq!(decode_names(&encode_name(names[0]).repeat(NAMES_MOST + 1)), None);
    }
}
