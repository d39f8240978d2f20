//! The fabric of clusters: InfiniBand and RoCE through libibverbs, which is loaded at run time.
//!
//! Each port of an adapter is a rail. A process publishes the addresses of its rails, and connects with a peer at the first
//! operation to this peer ([`Verbs::connect`]). The first connection, on one rail, can carry all traffic. Secondary connections, on
//! the other rails, carry writes and reads that name these rails.
//!
//! - Messages are sends into receive buffers that all connections share. A sender has one credit for each message that the receiver
//!   has room for. Credits return with messages, or in a message of their own.
//! - A silent flag is a second write after the write of the data. A waking flag carries an immediate, so that the receiver gets a
//!   completion. Two writes of one connection are placed in order.
//! - Work without room in the send queue, or without credits, is kept; `progress` posts it later.
//! - Memory is registered when it is allocated or exposed. Short pieces of other memory go through bounce buffers; long
//!   pieces are registered for the operation.

#![warn(missing_docs)]

mod adapter;
mod address;
mod connect;
mod connection;
mod datagrams;
mod describe;
mod disconnect;
mod error;
pub mod ffi;
mod ip;
mod job;
#[cfg(test)]
mod layout;
mod memlock;
mod memory;
mod multicast;
mod networks;
mod options;
mod other_jobs;
mod rail;
mod sizes;
mod sleep;
mod state;
mod survey;
mod trouble;
mod verbs;
mod watch;
mod wire;

pub use adapter::device::{DevicePort, Gid, LinkLayer, ports};
pub use adapter::library::VerbsFunctions;
pub use error::VerbsConnectError;
pub use memory::RegistrationTotals;
pub use options::VerbsOptions;
pub use survey::Survey;
pub use verbs::Verbs;

/// Maximum number of rails. The key of a [`weft_fabric::RemoteAddr`] has room for the keys of this number of rails.
pub const RAILS_MAX: usize = 4;
