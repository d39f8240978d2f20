//! How ranks of one machine move bytes: the copy loops, and what both ends of a copy do at once.
//!
//! ```text
//!   lines         what a processor does with cache lines for others
//!   interleaved   a copy from many pages at once
//!   staged        in and out of a buffer that another rank sees, by what pays for how far it is
//!   pipelined     the same with both ends at work at once
//! ```
//! Which of it pays is not known here but to the fabric's [`weft_fabric::Copies`]: a model of the machine, and what this rank
//! has seen since.

mod interleaved;
mod lines;
pub mod pipelined;
pub mod staged;

pub use interleaved::copy_interleaved;
pub use lines::Lines;
