//! Facts about a provider that determine how it is used.

use crate::ffi::FI_MR_VIRT_ADDR;
use crate::tcp::Interface;
use crate::wire::HEADER;
use std::ffi::c_int;

/// Facts about a provider that determine how it is used.
#[derive(Debug, Clone)]
pub struct ProviderFacts {
    pub provider: String,
    pub domain: String,
    pub network: String,
    pub mr_mode: c_int,
    /// Size of a key, in bytes.
    pub key_size: usize,
    /// Maximum length of an injected message, in bytes.
    pub inject_max: usize,
    /// Size of a buffer, in bytes. It limits the length of a message.
    pub buffer: usize,
    /// Approximate round-trip time, in nanoseconds.
    pub round_trip: u32,
    /// Maximum length of a transfer, in bytes.
    pub transfer_max: usize,
    /// True if a message is received only after all writes that were posted before the message have been placed.
    pub sends_follow_writes: bool,
}

/// Returns the size of a provider's buffers, in bytes. A TCP stream takes any length as one piece, and the system gives no memory
/// for the unfilled part of a buffer. Other providers split long messages, or make a rendezvous: ofi_rxm does this beyond 16 KiB,
/// and shorter messages then overtake longer messages. Over TCP, copying a message of up to 16 KiB takes less time than a
/// rendezvous of ofi_rxm.
pub fn buffer(provider: &str) -> usize {
    match provider {
        BUILT_IN => HEADER + LONGEST,
        "tcp" | "net" => HEADER + LONG,
        BELOW_RXM => whole_by_rxm(std::env::var("FI_OFI_RXM_BUFFER_SIZE").ok().as_deref()),
        _ => SHORT,
    }
}

/// Name of the TCP that needs no library ([`crate::tcp`]).
pub const BUILT_IN: &str = "weft-tcp";

/// Name of libfabric's TCP provider below ofi_rxm. ofi_rxm makes reliable datagrams out of the streams.
const BELOW_RXM: &str = "tcp;ofi_rxm";

/// Maximum payload of a message over libfabric's TCP, in bytes. Up to this size, a rendezvous would take longer than the copies.
const LONG: usize = 64 << 10;

/// Maximum payload of a message over the built-in TCP, in bytes. The three messages of a rendezvous (request, answer, end) take
/// longer than a copy of this length (256 KiB: 55 us copied, 90 us by rendezvous).
const LONGEST: usize = 256 << 10;

/// Maximum number of parts of a message. Four parts took longer than a rendezvous (64 KiB: 41 us in parts, 37 us by rendezvous).
const PARTS: usize = 3;

/// Size of a buffer that all providers take as one piece, in bytes.
const SHORT: usize = 8 << 10;

/// Returns the maximum number of bytes of a message that this crate gives to ofi_rxm as one piece: 16 KiB, or the setting of
/// ofi_rxm if the setting is less.
fn whole_by_rxm(set: Option<&str>) -> usize {
    let set = set.and_then(|text| text.trim().parse().ok());
    set.map_or(16 << 10, |set: usize| set.clamp(SHORT, 16 << 10))
}

/// Returns the round-trip time of a provider, in nanoseconds. The kernel's network code takes tens of microseconds, on every
/// machine. Adapters that programs use directly take only a few microseconds, which count as 0.
pub fn round_trip(provider: &str) -> u32 {
    let by_the_kernel = [BUILT_IN, "tcp", "net", "udp", "sockets"];
    if by_the_kernel.iter().any(|name| provider.starts_with(name)) { 20_000 } else { 0 }
}

impl ProviderFacts {
    /// Returns the facts of the built-in TCP on an interface.
    pub fn built_in(interface: &Interface) -> ProviderFacts {
        ProviderFacts {
            provider: BUILT_IN.to_owned(),
            domain: interface.name.clone(),
            network: interface.network.clone(),
            mr_mode: FI_MR_VIRT_ADDR,
            key_size: 8,
            // Every message is copied during the call, so every message can be injected.
            inject_max: usize::MAX,
            buffer: buffer(BUILT_IN),
            round_trip: round_trip(BUILT_IN),
            transfer_max: 1 << 30,
            sends_follow_writes: true,
        }
    }

    /// Returns the number of credits that a message of `len` bytes takes. `room` is the total number of credits of a peer. A long
    /// message takes several credits, so that a flood of long messages takes no more memory than a flood of short messages. A
    /// message takes at most half of the credits, since the receiver may hold the other half back.
    #[inline]
    pub fn credits(len: usize, room: usize) -> usize {
        (1 + len / LONG).min(room / 2).max(1)
    }

    pub fn has(&self, mode: c_int) -> bool {
        self.mr_mode & mode != 0
    }

    /// Returns the maximum payload of a message, in bytes.
    pub fn send_max(&self) -> usize {
        if self.provider == BELOW_RXM { PARTS * self.part_max() } else { self.part_max() }
    }

    /// Returns the maximum payload that goes as one message of the provider, in bytes.
    #[inline]
    pub fn part_max(&self) -> usize {
        self.buffer - HEADER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_what_ofi_rxm_takes_as_one_piece() {
        assert_eq!((whole_by_rxm(None), whole_by_rxm(Some("65536"))), (16 << 10, 16 << 10));
        assert_eq!((whole_by_rxm(Some("12000")), whole_by_rxm(Some("x"))), (12_000, 16 << 10));
        assert_eq!(buffer("udp;ofi_rxd"), SHORT);
    }

    #[test]
    fn a_long_message_counts_for_several() {
        assert_eq!(
            [0, LONG - 1, LONG, LONGEST].map(|len| ProviderFacts::credits(len, 64)),
            [1, 1, 2, 5]
        );
        // A receiver keeps back up to half of the credits before it returns them. The rest must be enough for any message.
        for room in 4..200 {
            assert!(
                ProviderFacts::credits(LONGEST, room) <= room - ((room / 2).max(1) - 1),
                "{room}"
            );
        }
    }
}
