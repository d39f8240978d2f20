//! Messages on every fabric against oracles: one program, since what it compiles of the crates below is the same for all.
#![cfg(not(miri))]

mod multicast;
mod promises;
mod traffic;
