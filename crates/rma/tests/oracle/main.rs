//! Windows on every kind of path to their memory: a single test program, because all tests share the compiled crates below.

#[path = "../common/mod.rs"]
mod common;

mod atomics;
mod attached;
mod rails;
mod windows;
