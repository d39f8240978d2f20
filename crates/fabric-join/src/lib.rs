//! Two fabrics as one: a near one among the ranks of a node, a far one between nodes.
//!
//! ```text
//!   node 0              node 1
//!   0 ═ 1 ═ 2 ───────── 3 ═ 4         ═ near    ─ far
//! ```
//! Every pair of ranks uses one fabric for everything, so there is one order of messages between
//! them. Both fabrics count in one table, so a wait need not know who ends it.

#![warn(missing_docs)]

mod address;
mod joined;
mod sleeper;

pub use joined::Joined;
