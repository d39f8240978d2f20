//! The fault fabric: one program, since what it compiles of the crates below is the same for all.

mod conformance;
mod found_out;
