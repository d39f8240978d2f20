//! Tests of verbs beyond the conformance suite, in one program: the crates below are compiled into it only once.

#[path = "../side/mod.rs"]
mod side;

mod credits;
mod errors;
mod memory;
mod ordered_flag;
mod placement;
mod rails;
mod sleeping;
