//! The simulated cluster's own tests: one program, since what it compiles of the crates below is the same for all.

mod carrying;
mod conformance;
mod deaths;
mod determinism;
mod explore;
mod host;
mod levels;
mod loggp;
mod machines;
mod mistakes;
mod network;
mod order;
mod overlap;
mod ownership;
mod planted;
mod protocols;
mod scale;
