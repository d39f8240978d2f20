//! Ways between processes that are more than the bare fabric and less than MPI's messages: what
//! collectives and one-sided operations are carried by.
//!
//! Everything here works below matching: [`weft_p2p`](../weft_p2p/index.html) hands arrived messages
//! of these kinds over, and looks after their progress.

pub mod stream;
