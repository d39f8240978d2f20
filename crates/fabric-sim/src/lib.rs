//! A cluster in virtual time.

pub mod machine;
pub mod units;
