//! Collective operations by all algorithms of the catalogue against an oracle, what they allocate and keep, and communicators, rails and shortage of memory. All
//! tests are one program, because they share most of the compiled code of the crates below.
#![cfg(not(miri))]

mod allocations;
mod counting;
mod simulated;

mod catalog_steady;
mod every;
mod growth;
mod levels;
mod long;
mod overlap;
mod overlapping;
mod phantom_call;
mod rails;
mod regret;
mod short_of_memory;
mod short_way;
