//! Two fabrics as one: a near fabric among the ranks of a node, and a far fabric between nodes.
//!
//! ```text
//!   node 0              node 1
//!   0 ═ 1 ═ 2 ───────── 3 ═ 4         ═ near    ─ far
//! ```
//! Every pair of ranks uses only one fabric, so there is one order of messages between them. Both fabrics count in the same
//! table, so a wait need not know which fabric ends it.

#![warn(missing_docs)]

mod address;
mod joined;
mod sleeper;

pub use joined::Joined;
