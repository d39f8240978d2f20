//! Code that the tools `mpicc`, `mpicxx`, `mpifort` and `weft` share.

#![warn(missing_docs)]

pub mod algorithms;
pub mod allocation;
pub mod coverage;
pub mod explain;
pub mod hosts;
pub mod library;
mod library_selection;
pub mod machine;
pub mod program;
pub mod search_paths;
pub mod settings;
pub mod sim;
pub mod topology_table;
pub mod tree;
pub mod tune;
pub mod variables;
pub mod wrapper;
