//! Collective calls with every algorithm, compared with an oracle: code that the tests of this crate share.

pub mod call;
pub mod calls;
pub mod folds;
pub mod memory;
pub mod ops;
pub mod world;
