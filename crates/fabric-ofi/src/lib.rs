//! The fabric for every network that libfabric supports: Ethernet over TCP on every machine and, with the same code, AWS EFA, HPE
//! Slingshot, Omni-Path and verbs.
//!
//! ```text
//!   send ────────────────▶ a message of the provider, in a buffer of this fabric, within the peer's credits
//!   write with a flag ───▶ short: one message, from which the target's process copies data and flag
//!                          else: a write, and a message behind it
//!   write, read ─────────▶ the provider's remote memory access
//!   fetch-add, swap ─────▶ a message, and the answer of the target's process
//!   write, read on a rail ▶ the same through another interface: `rails.rs`
//! ```
//! A provider needs only ordered messages and plain reads and writes. A flag behind data costs a round trip, unless the provider
//! keeps messages behind earlier writes.
//!
//! The machine's own library is loaded at run time, because it has the vendor's providers. TCP needs no library: `tcp.rs` is a
//! built-in provider with fewer system calls and copies. `choose.rs` decides which provider is used.
//!
//! Security: a message is accepted only with a proof that its sender knows the secret of the job (the built-in TCP asks for a proof
//! before the first message). Remote memory access needs a key of 64 random bits. The launcher's services carry the secret and the
//! keys between the processes. Messages are neither encrypted nor signed.

#![warn(missing_docs)]

mod access;
mod address;
mod agree;
mod buffers;
mod choose;
mod connect;
mod connection_state;
mod descriptor;
mod error;
mod extra_rail;
mod ffi;
mod helper_thread;
mod job;
mod libfabric;
mod library;
mod memory;
mod message_pools;
mod object;
mod ofi;
mod options;
mod peer;
mod peer_rail;
mod poll_pace;
mod provider_facts;
mod rail_changes;
mod random;
mod registrations;
mod requests;
mod signs;
mod sleep;
mod sockets;
mod state;
mod tcp;
mod wire;
mod work;

pub use choose::{PROVIDERS, survey};
pub use error::OfiConnectError;
pub use ofi::{Ofi, Usage};
pub use options::{OfiOptions, RAILS_MAX};
