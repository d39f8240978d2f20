//! Collective operations by all algorithms of the catalogue against an oracle, and communicators, rails and shortage of memory: one
//! program, since what it compiles of the crates below is the same for all.
#![cfg(not(miri))]

#[path = "../simulated/mod.rs"]
mod simulated;

mod every;
mod long;
mod overlap;
mod overlapping;
mod rails;
mod short_of_memory;
mod short_way;
