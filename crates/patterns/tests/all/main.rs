//! Patterns on all fabrics: one program, since what it compiles of the crates below is the same for all.
#![cfg(not(miri))]

mod everywhere;
mod large;
