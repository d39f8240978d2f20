//! Data that processes exchange outside of the connections: the address that each process publishes through the launcher, and the
//! connect request that makes a connection. The immediate of a message is also defined here.

use crate::RAILS_MAX;
use crate::adapter::device::LinkLayer;
use crate::ffi::ibv_gid;
use weft_fabric::put_words;

/// Mark of all formats: "WEFTVRB", with the version in the last byte.
const MAGIC: u64 = u64::from_le_bytes(*b"WEFTVRB\x05");

/// Address of a rail of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RailAddress {
    pub link: LinkLayer,
    /// True if bytes written to this rail become visible in ascending order within the MTU.
    pub in_order: bool,
    /// True if the adapter does atomic operations.
    pub atomics: bool,
    /// MTU in bytes.
    pub mtu: u16,
    pub lid: u16,
    pub gid: ibv_gid,
    /// Number of the queue pair for connect requests.
    pub number: u32,
}

/// The address that a process publishes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerbsAddress {
    /// Number that identifies the job on the network. All processes use the nonce of rank 0.
    pub nonce: u64,
    pub host: String,
    /// True if the process can join multicast groups.
    pub multicast: bool,
    /// True if the process has an IP address, at which other jobs can reach it.
    pub has_ip: bool,
    pub rails: Vec<RailAddress>,
}

struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }
}

impl VerbsAddress {
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        bytes.extend(self.nonce.to_le_bytes());
        bytes.push(u8::from(self.multicast) | u8::from(self.has_ip) << 1);
        bytes.push(self.rails.len() as u8);
        for rail in &self.rails {
            bytes.push(
                u8::from(rail.link == LinkLayer::Ethernet)
                    | u8::from(rail.in_order) << 1
                    | u8::from(rail.atomics) << 2,
            );
            bytes.extend(rail.mtu.to_le_bytes());
            bytes.extend(rail.lid.to_le_bytes());
            bytes.extend(rail.gid);
            bytes.extend(rail.number.to_le_bytes());
        }
        bytes.extend(self.host.as_bytes());
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Option<VerbsAddress> {
        let mut from = Reader(bytes);
        let magic = u64::from_le_bytes(from.take()?);
        let nonce = u64::from_le_bytes(from.take()?);
        let [bits, rails] = from.take()?;
        if magic != MAGIC || rails == 0 || rails as usize > RAILS_MAX {
            return None;
        }
        let mut address = VerbsAddress {
            nonce,
            host: String::new(),
            multicast: bits & 1 != 0,
            has_ip: bits & 2 != 0,
            rails: Vec::new(),
        };
        for _ in 0..rails {
            let [bits] = from.take()?;
            address.rails.push(RailAddress {
                link: if bits & 1 == 1 { LinkLayer::Ethernet } else { LinkLayer::InfiniBand },
                in_order: bits & 2 != 0,
                atomics: bits & 4 != 0,
                mtu: u16::from_le_bytes(from.take()?),
                lid: u16::from_le_bytes(from.take()?),
                gid: from.take()?,
                number: u32::from_le_bytes(from.take()?),
            });
        }
        address.host = String::from_utf8_lossy(from.0).into_owned();
        Some(address)
    }
}

/// Description of a queue pair. Each end sends this description to the other end repeatedly until both ends are ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectRequest {
    pub nonce: u64,
    pub from: u32,
    pub to: u32,
    pub number: u32,
    /// First packet number that the sender will use.
    pub psn: u32,
    /// Credits: the maximum numbers of messages and of immediates for which the sender of the connect request has room.
    pub messages: u16,
    pub events: u16,
    pub rail: u8,
    /// Maximum number of reads and atomics in flight towards the sender of the connect request.
    pub reads: u8,
    /// True if the sender has received a connect request. Then the sender's end can receive.
    pub heard: bool,
    /// True if the sender needs no answer.
    pub settled: bool,
}

/// Size of a connect request in bytes.
pub const CONNECT_REQUEST: usize = 48;

impl ConnectRequest {
    pub fn encode(&self) -> [u8; CONNECT_REQUEST] {
        let pair = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        let rest = [self.rail, self.reads, u8::from(self.heard), u8::from(self.settled)];
        let credits = u32::from(self.events) << 16 | u32::from(self.messages);
        let words = [
            MAGIC,
            self.nonce,
            pair(self.from, self.to),
            pair(self.number, self.psn),
            pair(credits, u32::from_le_bytes(rest)),
        ];
        let mut bytes = [0; CONNECT_REQUEST];
        put_words(&mut bytes, words);
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Option<ConnectRequest> {
        let mut from = Reader(bytes);
        if u64::from_le_bytes(from.take()?) != MAGIC {
            return None;
        }
        Some(ConnectRequest {
            nonce: u64::from_le_bytes(from.take()?),
            from: u32::from_le_bytes(from.take()?),
            to: u32::from_le_bytes(from.take()?),
            number: u32::from_le_bytes(from.take()?),
            psn: u32::from_le_bytes(from.take()?),
            messages: u16::from_le_bytes(from.take()?),
            events: u16::from_le_bytes(from.take()?),
            rail: u8::from_le_bytes(from.take()?),
            reads: u8::from_le_bytes(from.take()?),
            heard: from.take()? != [0],
            settled: from.take()? != [0],
        })
    }
}

/// The immediate of a send: its kind, and returned credits. Writes do not use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImmediateTag {
    pub kind: WireKind,
    pub messages: u32,
    pub events: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireKind {
    /// A message: head and payload.
    Message = 0,
    /// Only credits. If the message has 8 bytes of data, these bytes contain the number of a rail. The sender's end of the
    /// connection over this rail is shut.
    Credits = 1,
    /// An immediate of the program that is equal to [`WAKE`]. A write cannot carry this immediate, because [`WAKE`] in a write is
    /// for waking flags.
    Reserved = 2,
    /// The sender disconnects. It will destroy its end of the connection.
    Disconnect = 3,
}

/// Maximum number of credits of one kind that fits into an [`ImmediateTag`].
pub const CREDITS_MAX: usize = (1 << 15) - 1;

/// The immediate of a write that only wakes its receiver.
pub const WAKE: u32 = 0x5745_4654;

impl ImmediateTag {
    pub fn encode(self) -> u32 {
        (self.kind as u32) << 30 | self.messages << 15 | self.events
    }

    pub fn decode(word: u32) -> ImmediateTag {
        let kind = match word >> 30 {
            0 => WireKind::Message,
            1 => WireKind::Credits,
            2 => WireKind::Reserved,
            _ => WireKind::Disconnect,
        };
        ImmediateTag { kind, messages: word >> 15 & 0x7fff, events: word & 0x7fff }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_wire() {
        let rail = |n: u8| RailAddress {
            link: if n == 0 { LinkLayer::InfiniBand } else { LinkLayer::Ethernet },
            in_order: n == 0,
            atomics: n == 1,
            mtu: 4096,
            lid: 17 + u16::from(n),
            gid: [n; 16],
            number: 1 << 23,
        };
        let address = VerbsAddress {
            nonce: 77,
            host: "nöde".to_owned(),
            multicast: true,
            has_ip: false,
            rails: vec![rail(0), rail(1)],
        };
        let bytes = address.encode();
        assert_eq!(VerbsAddress::decode(&bytes), Some(address));
        assert_eq!(VerbsAddress::decode(&bytes[..40]), None);
        assert_eq!(VerbsAddress::decode(b"something else altogether"), None);
    }

    #[test]
    fn connect_requests_and_tags_survive_the_wire() {
        let request = ConnectRequest {
            nonce: u64::MAX,
            from: 1,
            to: 2,
            number: 3,
            psn: 4,
            messages: 5,
            events: 6,
            rail: 1,
            reads: 16,
            heard: true,
            settled: false,
        };
        assert_eq!(ConnectRequest::decode(&request.encode()), Some(request));
        assert_eq!(ConnectRequest::decode(&[0; CONNECT_REQUEST]), None);
        for kind in [WireKind::Message, WireKind::Credits, WireKind::Reserved, WireKind::Disconnect]
        {
            let tag = ImmediateTag { kind, messages: 0x7fff, events: 3 };
            assert_eq!(ImmediateTag::decode(tag.encode()), tag);
        }
    }
}
