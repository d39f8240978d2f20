//! The fabric of one machine.
//!
//! All ranks map one anonymous segment ([`Shm::connect`]), and the parts of each other's memory that they reach. Small messages
//! travel in fast boxes, one for each ordered pair, at the cost of one cache line. Memory that the fabric allocates is read and
//! written in place. The program's own memory is reached by cross-memory attach where the system permits it. An idle rank sleeps on
//! a doorbell in the segment.
//!
//! ```text
//!   fabric       implements the trait and its facets by
//!   messages     boxes, immediates, datagrams          memory    allocation, reads and writes;  reach: open parts of the arenas
//!      ▼                                                  ▼
//!   shm          a rank's state; its construction (connect, options);  other_jobs: processes of other jobs as peers
//!      ▼
//!   own_arena (arena, commit), datagrams, backlogs,          parts of shm, each of which keeps one kind of state
//!   poll_turn, poll_bell, first_fault, processors
//!      ▼
//!   peers, peer, view, bell                                  state that shm keeps for each rank
//!      ▼
//!   segment      the memory that all ranks map: layout, control, ring, multicast
//! ```
//! Arrows only point down.

#![warn(missing_docs)]

// Under the model checker only the lock-free parts exist, and only its models use them.
#[cfg_attr(all(loom, not(test)), allow(dead_code))]
mod multicast;
#[cfg(not(loom))]
mod poll_bell;
mod populate;
#[cfg_attr(loom, allow(dead_code))]
mod ring;
#[cfg_attr(all(loom, not(test)), allow(dead_code, unused_imports))]
mod sync;

#[cfg(not(loom))]
mod arena;
#[cfg(not(loom))]
mod backlogs;
#[cfg(not(loom))]
mod bell;
#[cfg(not(loom))]
mod bound_places;
#[cfg(not(loom))]
mod cgroup;
#[cfg(not(loom))]
mod cma;
#[cfg(not(loom))]
mod commit;
#[cfg(not(loom))]
mod connect;
#[cfg(not(loom))]
mod control;
#[cfg(not(loom))]
mod datagrams;
#[cfg(not(loom))]
mod fabric;
#[cfg(not(loom))]
mod first_fault;
#[cfg(not(loom))]
mod lanes;
#[cfg(not(loom))]
mod layout;
#[cfg(not(loom))]
mod memory;
#[cfg(not(loom))]
mod messages;
#[cfg(not(loom))]
mod open_lane;
#[cfg(not(loom))]
mod options;
#[cfg(not(loom))]
mod other_jobs;
#[cfg(not(loom))]
mod own_arena;
#[cfg(not(loom))]
mod pages;
#[cfg(not(loom))]
mod peer;
#[cfg(not(loom))]
mod peers;
#[cfg(not(loom))]
mod poll_turn;
#[cfg(not(loom))]
mod processors;
#[cfg(not(loom))]
mod reach;
#[cfg(not(loom))]
mod segment;
#[cfg(not(loom))]
mod shm;
#[cfg(not(loom))]
mod socket;
#[cfg(not(loom))]
mod view;
#[cfg(not(loom))]
mod watch;

#[cfg(all(test, loom))]
mod model;

#[cfg(not(loom))]
pub use connect::{FENCES, ShmConnectError};
#[cfg(not(loom))]
pub use options::ShmOptions;
#[cfg(not(loom))]
pub use other_jobs::{ADMIT_ROUNDS, ShmJobConnection};
#[cfg(not(loom))]
pub use shm::Shm;
