//! Facts of a provider that decide how it is used.

use crate::ffi::FI_MR_VIRT_ADDR;
use crate::tcp::Interface;
use crate::wire::HEADER;
use std::ffi::c_int;

/// Facts of a provider that decide how it is used.
#[derive(Debug, Clone)]
pub struct ProviderFacts {
    pub provider: String,
    pub domain: String,
    pub network: String,
    pub mr_mode: c_int,
    /// Bytes of a key.
    pub key_size: usize,
    /// Longest message that is taken at once, in bytes.
    pub inject_max: usize,
    /// Bytes of a buffer, which a message fills at most.
    pub buffer: usize,
    /// Nanoseconds of a question and its answer, roughly.
    pub round_trip: u32,
    /// Longest transfer, in bytes.
    pub transfer_max: usize,
    /// A send is received after the writes that were posted before it are there.
    pub sends_follow_writes: bool,
}

/// Streams of the kernel take any length as one piece, and of a buffer that is not filled the system gives no memory. Others
/// take apart what is long, or ask the receiver for it first: beyond 16 KiB ofi_rxm does, and shorter messages overtake. Where
/// it writes to streams, a question takes longer than the copies of all that it takes at once.
pub fn buffer(provider: &str) -> usize {
    match provider {
        BUILT_IN => HEADER + LONGEST,
        "tcp" | "net" => HEADER + LONG,
        BELOW_RXM => whole_by_rxm(std::env::var("FI_OFI_RXM_BUFFER_SIZE").ok().as_deref()),
        _ => SHORT,
    }
}

/// The name of the TCP that needs no library ([`crate::tcp`]).
pub const BUILT_IN: &str = "weft-tcp";

/// The kernel's TCP below a layer that makes datagrams of it.
const BELOW_RXM: &str = "tcp;ofi_rxm";

/// Bytes of a message where the kernel carries it: a question would take longer than its copies.
const LONG: usize = 64 << 10;

/// The same where nothing lies between: a question, its answer and the word of its end take longer than a copy of so many bytes
/// (256 KiB in 55 us, asked for 90).
const LONGEST: usize = 256 << 10;

/// Parts of a message at most: four of them took longer than a question (64 KiB in 41 us by parts, 37 us asked for).
const PARTS: usize = 3;

/// Bytes of a buffer that all providers take as one piece.
const SHORT: usize = 8 << 10;

/// What ofi_rxm takes as one piece, as far as it is used: 16 KiB, unless its own setting says less.
fn whole_by_rxm(set: Option<&str>) -> usize {
    let set = set.and_then(|text| text.trim().parse().ok());
    set.map_or(16 << 10, |set: usize| set.clamp(SHORT, 16 << 10))
}

/// What the kernel's network code takes to each end and back, where it is what carries: tens of microseconds, whatever the
/// machine. Adapters that programs talk to themselves need few.
pub fn round_trip(provider: &str) -> u32 {
    let by_the_kernel = [BUILT_IN, "tcp", "net", "udp", "sockets"];
    if by_the_kernel.iter().any(|name| provider.starts_with(name)) { 20_000 } else { 0 }
}

impl ProviderFacts {
    /// Those of the built-in TCP on an interface.
    pub fn built_in(interface: &Interface) -> ProviderFacts {
        ProviderFacts {
            provider: BUILT_IN.to_owned(),
            domain: interface.name.clone(),
            network: interface.network.clone(),
            mr_mode: FI_MR_VIRT_ADDR,
            key_size: 8,
            // All that is sent as a message is copied at once, by the kernel if there is room.
            inject_max: usize::MAX,
            buffer: buffer(BUILT_IN),
            round_trip: round_trip(BUILT_IN),
            transfer_max: 1 << 30,
            sends_follow_writes: true,
        }
    }

    /// How many of the `room` messages that a peer may have unreceived one of `len` bytes counts for: long ones for several, so
    /// that a flood of them takes no more memory than one of short ones, but never for more than can come back at once.
    #[inline]
    pub fn credits(len: usize, room: usize) -> usize {
        (1 + len / LONG).min(room / 2).max(1)
    }

    pub fn has(&self, mode: c_int) -> bool {
        self.mr_mode & mode != 0
    }

    /// Longest payload of a message, in bytes.
    pub fn send_max(&self) -> usize {
        if self.provider == BELOW_RXM { PARTS * self.part_max() } else { self.part_max() }
    }

    /// Longest payload that goes as one message of the provider, in bytes.
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
        // With half of them kept back until a word of it goes, there must be enough.
        for room in 4..200 {
            assert!(
                ProviderFacts::credits(LONGEST, room) <= room - ((room / 2).max(1) - 1),
                "{room}"
            );
        }
    }
}
