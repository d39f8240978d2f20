//! Windows on every kind of path to their memory: one program, since what it compiles of the crates below is the same for all.

#[path = "../common/mod.rs"]
mod common;

mod atomics;
mod attached;
mod rails;
mod windows;
