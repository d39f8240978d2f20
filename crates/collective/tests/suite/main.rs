//! The algorithms among threads: one program, as what it compiles of the crates below is the same for all.
#![cfg(not(miri))]

#[path = "../group/mod.rs"]
mod group;

mod bounce;
mod moves;
mod native;
mod neighbors;
mod order;
mod reductions;
mod results;
