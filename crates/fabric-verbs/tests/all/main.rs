//! Verbs beyond the conformance suite, in one program: the code that it compiles of the crates below is the same for all.

#[path = "../side/mod.rs"]
mod side;

mod credits;
mod errors;
mod memory;
mod ordered_flag;
mod placement;
mod rails;
mod sleeping;
