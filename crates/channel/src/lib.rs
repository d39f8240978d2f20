//! Ways between processes that are more than the bare fabric and less than MPI's messages: what
//! collectives and one-sided operations are carried by.
//!
//! Everything here works below matching: [`weft_p2p`](../weft_p2p/index.html) hands arrived messages
//! of these kinds over, and looks after their progress.
//!
//! The lowest byte of a message's head says whose it is: below 0x40 matching, 0x40 to 0x4f
//! [`multicast`], 0x60 to 0x6f streams of segments, which p2p has.

#![warn(missing_docs)]

pub mod multicast;
pub mod rails;
