//! One name for memory that two fabrics reach.
//!
//! ```text
//!   key    the far fabric's key
//!   addr   the near fabric's key (2 bits) | virtual address at the owner (62 bits)
//! ```
//! Both fabrics must name memory by the owner's virtual address, and the near one by keys 0 to 3.

use weft_fabric::{Region, RemoteAddr};

const SHIFT: u32 = 62;
const MASK: u64 = (1 << SHIFT) - 1;

/// One name of two.
pub fn join(near: RemoteAddr, far: RemoteAddr) -> RemoteAddr {
    assert!(near.key <= 3, "the near fabric's keys have two bits");
    assert!(near.addr <= MASK && near.addr == far.addr, "both name memory by its address");
    RemoteAddr { key: far.key, addr: near.key << SHIFT | near.addr }
}

/// What the near fabric calls it.
pub fn near(at: RemoteAddr) -> RemoteAddr {
    RemoteAddr { key: at.addr >> SHIFT, addr: at.addr & MASK }
}

/// What the far fabric calls it.
pub fn far(at: RemoteAddr) -> RemoteAddr {
    RemoteAddr { key: at.key, addr: at.addr & MASK }
}

pub fn near_region(region: Region) -> Region {
    Region { remote: near(region.remote), ..region }
}

pub fn far_region(region: Region) -> Region {
    Region { remote: far(region.remote), ..region }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_names_come_back_and_offsets_go_through() {
        let (a, b) =
            (RemoteAddr { key: 3, addr: 0x7fff_1000 }, RemoteAddr { key: !7, addr: 0x7fff_1000 });
        let joined = join(a, b);
        assert_eq!((near(joined), far(joined)), (a, b));
        let moved = joined.offset(24);
        assert_eq!((near(moved), far(moved)), (a.offset(24), b.offset(24)));
    }
}
