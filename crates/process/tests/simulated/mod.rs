//! Collective calls with every algorithm, compared with an oracle: code that the tests of this crate share.
#![allow(dead_code)] // not every test uses all

pub mod call;
pub mod calls;
pub mod memory;
pub mod ops;
pub mod world;
