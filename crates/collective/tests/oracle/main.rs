//! Tests of the algorithms among threads and in virtual time. They are one program, because all tests compile the same code of the
//! crates below.
#![cfg(not(miri))]

mod group;

mod bounce;
mod moves;
mod native;
mod native_mistakes;
mod native_steady;
mod native_times;
mod neighbors;
mod notified_write;
mod order;
mod reductions;
mod results;
