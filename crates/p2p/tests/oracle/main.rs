//! Messages on every fabric against oracles: a single test program, because all tests share the compiled crates below.
#![cfg(not(miri))]

mod exchange;
mod multicast;
mod promises;
mod signature_marks;
mod traffic;
