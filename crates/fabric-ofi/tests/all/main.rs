//! Tests of libfabric and the built-in TCP as a fabric. They are one program, so that the crates below are compiled into it only
//! once.

mod conformance;
mod faults;
mod rails;
mod registrations;
