//! Collective operations by all algorithms of the catalogue against an oracle, and communicators, rails and shortage of memory. All
//! tests are one program, because they share most of the compiled code of the crates below.
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
