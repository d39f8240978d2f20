//! Tests of libfabric and the built-in TCP as a fabric. They are one program, because the code of the crates below is compiled the
//! same for all.

mod conformance;
mod faults;
mod rails;
mod registrations;
