//! The fabric of clusters: InfiniBand and RoCE through libibverbs, which is loaded at run time.
//!
//! Each port of an adapter is a rail. A process publishes the addresses of its rails and connects
//! with a peer when it first has something for it ([`Verbs::connect`]): on one rail for everything, and on each other rail
//! for the writes and reads that name it.
//!
//! - Messages are sends into buffers that all connections share; a sender has credits for as many as
//!   fit, which come back with messages, or by themselves.
//! - A silent flag is a second write behind that of the data; a waking one carries an immediate, so
//!   that the receiver hears of it. Two writes of one connection are placed in their order.
//! - What has no room in the send queue, or no credits, is kept and moved on by `progress`.
//! - Memory is registered when it is allocated or exposed; short pieces of other memory go through
//!   buffers, long ones are registered for the operation ([`VerbsOptions::keep`] keeps registrations).

#![warn(missing_docs)]

mod address;
mod atomics;
mod batch;
mod connect;
mod connect_request;
mod connection;
mod connections;
mod datagrams;
mod describe;
mod device;
mod disconnect;
mod error;
pub mod ffi;
mod helper;
mod interfaces;
mod ip;
#[cfg(test)]
mod layout;
mod library;
mod links;
mod manager;
mod memlock;
mod memory;
mod messages;
mod multicast;
mod networks;
mod numa;
mod object;
mod onesided;
mod options;
mod other_jobs;
mod path;
mod peek;
mod pending;
mod pool;
mod rail;
mod secondary;
mod sleep;
mod state;
mod subnets;
mod survey;
mod trouble;
mod uses;
mod verbs;
mod watch;
mod wire;

pub use device::{DevicePort, Gid, LinkLayer, ports};
pub use error::VerbsConnectError;
pub use library::VerbsFunctions;
pub use memory::RegistrationTotals;
pub use options::{Keep, VerbsOptions};
pub use survey::Survey;
pub use verbs::Verbs;

/// Most rails: as many keys of an adapter as fit into the key of a [`weft_fabric::RemoteAddr`].
pub const RAILS_MAX: usize = 4;
