//! The algorithms among threads and in virtual time: one program, since what it compiles of the crates below is the same for all.
#![cfg(not(miri))]

#[path = "../group/mod.rs"]
mod group;

mod bounce;
mod moves;
mod native;
mod native_mistakes;
mod native_times;
mod neighbors;
mod notified_write;
mod order;
mod reductions;
mod results;
