//! Tests of shared memory as a fabric. They are one program, because all of them compile the same crates below.
#![cfg(not(any(loom, miri)))]

mod conformance;
mod lanes;
mod smoke;
