//! A common name for memory that two fabrics reach.
//!
//! ```text
//!   addr    virtual address at the owner, for both
//!   key 0   the near fabric's key (2 bits) | the far fabric's (62 bits)      key 1, 2: the far one's
//! ```
//! So both fabrics must name memory by the owner's virtual address. The keys of the near fabric must be 1 to 3, and the far
//! fabric must leave two bits of its key free. Memory that only this node reaches has no far key.

use weft_fabric::{FlagWrite, Key, Region, RemoteAddr, RemoteFlag, RemoteRead, RemoteWrite};

const SHIFT: u32 = 62;
const MASK: u64 = (1 << SHIFT) - 1;

/// Joins both fabrics' names of the same memory.
pub fn join(near: RemoteAddr, far: RemoteAddr) -> RemoteAddr {
    let Key([first, second, third]) = far.key;
    assert!(first <= MASK, "the far fabric leaves two bits of its keys free");
    assert_eq!(near.addr, far.addr, "both name memory by its address");
    RemoteAddr { addr: far.addr, key: Key([first | near_bits(near), second, third]) }
}

/// Returns the name of memory that only the near fabric reaches.
pub fn near_only(near: RemoteAddr) -> RemoteAddr {
    RemoteAddr::new(near_bits(near), near.addr)
}

fn near_bits(near: RemoteAddr) -> u64 {
    let Key([key, second, third]) = near.key;
    let fits = (1..=3).contains(&key) && (second, third) == (0, 0);
    assert!(fits, "the near fabric's keys are 1 to 3");
    key << SHIFT
}

/// Returns the near fabric's name of the memory at `at`.
pub fn near(at: RemoteAddr) -> RemoteAddr {
    let Key([first, ..]) = at.key;
    RemoteAddr::new(first >> SHIFT, at.addr)
}

/// Returns the far fabric's name of the memory at `at`; its key is [`Key::NONE`] if the far fabric does not reach the memory.
pub fn far(at: RemoteAddr) -> RemoteAddr {
    let Key([first, second, third]) = at.key;
    RemoteAddr { addr: at.addr, key: Key([first & MASK, second, third]) }
}

/// Returns true if the far fabric reaches the memory, too.
pub fn is_far(at: RemoteAddr) -> bool {
    far(at).key != Key::NONE
}

pub fn near_region(region: Region) -> Region {
    Region { remote: near(region.remote), ..region }
}

pub fn far_region(region: Region) -> Region {
    Region { remote: far(region.remote), ..region }
}

pub fn near_write(write: &RemoteWrite) -> RemoteWrite {
    RemoteWrite { dst: near(write.dst), ..*write }
}

pub fn far_write(write: &RemoteWrite) -> RemoteWrite {
    RemoteWrite { dst: far(write.dst), ..*write }
}

pub fn near_read(read: &RemoteRead) -> RemoteRead {
    RemoteRead { src: near(read.src), ..*read }
}

pub fn far_read(read: &RemoteRead) -> RemoteRead {
    RemoteRead { src: far(read.src), ..*read }
}

pub fn near_flag(set: &FlagWrite) -> FlagWrite {
    FlagWrite { flag: RemoteFlag { at: near(set.flag.at), ..set.flag }, ..*set }
}

pub fn far_flag(set: &FlagWrite) -> FlagWrite {
    FlagWrite { flag: RemoteFlag { at: far(set.flag.at), ..set.flag }, ..*set }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_names_come_back_and_offsets_go_through() {
        let a = RemoteAddr::new(3, 0x7fff_1000);
        let b = RemoteAddr { addr: 0x7fff_1000, key: Key([MASK - 7, 8, !7]) };
        let joined = join(a, b);
        assert_eq!((near(joined), far(joined), is_far(joined)), (a, b, true));
        let moved = joined.offset(24);
        assert_eq!((near(moved), far(moved)), (a.offset(24), b.offset(24)));
        let only = near_only(a);
        assert_eq!((near(only), is_far(only)), (a, false));
    }
}
