//! Communication patterns: the communication of programs in small, with its time.
//!
//! Each pattern is written once on the asynchronous interface of [`weft_process`], or on the bare fabric, so that the same text
//! runs on shared memory, on a network and in virtual time.
//!
//! ```text
//!   Plan      a pattern by name, its parameters, checked                        plan
//!   World     what the ranks of one run share                                   rank
//!   Rank      one rank: play(), to be polled, or block_on()                     rank
//!   Laps      when each repetition began and ended, by this rank's clock        laps
//!   Measured  how the laps of all ranks make one figure                         laps
//! ```
//!
//! A pattern is one file: an `ABOUT` and an `async fn play`. Its name goes into the list in
//! `registry.rs`, and all tools know it.

#![warn(missing_docs)]

mod about;
mod bare;
mod data;
mod error;
mod laps;
mod plan;
mod rank;
mod registry;
mod together;

mod allgather;
mod allreduce;
mod alltoall;
mod bandwidth;
mod barrier;
mod bcast;
mod fabric_fan_in;
mod fabric_multicast;
mod fabric_send;
mod fabric_write;
mod fan_in;
mod gather;
mod halo;
mod ping_pong;
mod reduce;
mod ring_shift;
mod scatter;

pub use about::{PatternAlgorithm, PatternText};
pub use error::PatternError;
pub use laps::{LapReduction, Laps};
pub use plan::{PatternPlan, PayloadPresence};
pub use rank::{PatternRank, PatternWorld};
pub use registry::{ALL, find};
