//! Tests of datatypes and reductions: random types against a type map, operators against plain arithmetic.

mod external;
mod map;
mod random;

mod basics;
mod operators;
mod reduce;
mod types;
