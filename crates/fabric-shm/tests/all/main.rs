//! Shared memory as a fabric: one program, since what it compiles of the crates below is the same for all.
#![cfg(not(any(loom, miri)))]

mod conformance;
mod smoke;
