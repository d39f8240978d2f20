//! The fabric of clusters: InfiniBand and RoCE through libibverbs, which is loaded at run time.

mod device;
mod error;
mod ffi;
mod library;
mod options;

pub use device::{Gid, Link, Port, ports};
pub use error::ConnectError;
pub use library::Table;
pub use options::{Keep, Options};

/// Most rails: as many keys of an adapter as fit into the key of a [`weft_fabric::RemoteAddr`].
pub const RAILS_MAX: usize = 2;
