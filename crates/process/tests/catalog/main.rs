//! The catalogue's algorithms: one program, as what it compiles of the crates below is the same for all.
#![cfg(not(miri))]

#[path = "../oracle/mod.rs"]
mod oracle;

mod every;
mod long;
mod overlap;
