//! libfabric and the built-in TCP as a fabric: one program, since what it compiles of the crates below is the same for all.

mod conformance;
mod faults;
mod rails;
mod registrations;
