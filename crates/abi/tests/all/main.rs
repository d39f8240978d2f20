//! Tests of the built library with C programs and tools.
#![cfg(not(miri))]

#[path = "../common/mod.rs"]
mod common;

mod calls;
mod coverage;
mod exports;
mod header;
mod older;
mod programs;
