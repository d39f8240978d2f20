//! Channels between processes, above the bare fabric and below MPI's messages. Collectives and one-sided operations use them.
//!
//! Channels work below matching: [`weft_p2p`](../weft_p2p/index.html) hands over their arrived messages, and drives their progress.
//!
//! The lowest byte of a message's head names the layer to which the message belongs: below 0x40 matching, 0x40 to 0x4f
//! [`multicast`], 0x60 to 0x6f streams of segments, which belong to p2p.

#![warn(missing_docs)]

pub mod multicast;
pub mod rails;
