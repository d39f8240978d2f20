//! Tests of the fault fabric. They are one program, because all of them compile the same crates below.

mod conformance;
mod found_out;
