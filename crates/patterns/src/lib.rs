//! Communication patterns: small programs with the communication of real programs, which measure its time.
//!
//! Each pattern is written once on the asynchronous interface of [`weft_process`], or on the bare fabric, so that the same text
//! runs on shared memory, on a network and in virtual time.
//!
//! ```text
//!   PatternPlan    a pattern by name, with checked parameters                   plan
//!   PatternWorld   state that the ranks of a run share                          rank
//!   PatternRank    one rank: program(), to be polled, or block_on()             rank
//!   Laps           start and end of each repetition, by this rank's clock       laps
//!   LapReduction   reduction of the laps of all ranks to one figure             laps
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
mod run;

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
