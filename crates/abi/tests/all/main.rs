//! The built library, seen by C programs and by tools.
#![cfg(not(miri))]

#[path = "../common/mod.rs"]
mod common;

mod calls;
mod coverage;
mod exports;
mod header;
mod older;
mod programs;
