//! The `Fabric` trait: the operations that a network offers to Weft, in the terms of RDMA verbs.
//!
//! All layers above this crate are written only once, against [`Fabric`]. They run on shared memory, on verbs and in virtual
//! time. Three rules hold on every fabric:
//!
//! 1. The only thing to wait for is a [`Counter`]: a monotonic 64-bit word, awaited as
//!    `counter >= value`. No flag is ever reset.
//! 2. Posting never waits and never fails for lack of room. An operation without room is kept by
//!    the fabric, and [`Fabric::progress`] posts it later.
//! 3. Memory that the fabric may touch after a call returns is named by an [`Sge`], whose
//!    constructor is `unsafe`: the caller promises that the memory outlives the operation.
//!
//! `crates/fabric-testing/src/skeleton.rs` shows the methods that a new fabric must implement.

#![warn(missing_docs)]

mod announced_wait;
pub mod arithmetic;
pub mod block;
mod boxed;
mod capabilities;
mod codes;
pub mod copies;
mod counter;
mod ext;
mod fabric;
mod facets;
mod fault;
mod memory;
mod message;
mod methods;
mod one_sided;
mod staging;
mod trouble;
mod until;
pub mod wait;
mod watched;
mod words;

pub use announced_wait::{AnnouncedWait, AwaitedCounter, AwaitedMessage, HeadPattern};
pub use boxed::boxed;
pub use capabilities::Capabilities;
pub use copies::{ByDistance, CacheDistance, Copies, CopyModel, Field, Unit};
pub use counter::{Completion, Counter, CounterTarget, Counters};
pub use ext::FabricExt;
pub use fabric::Fabric;
pub use facets::{
    Facets, FileClock, Helper, Immediates, MappedMemory, Multicast, Nodes, Rails, Registration,
    SignalSafe, Simulated, Work,
};
pub use fault::{Fault, FaultCause, repeated};
pub use memory::{
    Flag, FlagKind, Key, PeerWords, Region, RemoteAddr, RemoteFlag, SMALL, Sge, copy_small,
};
pub use message::{ArrivedMessage, Datagram, GroupId, Head, Peek, PostOutcome};
pub use one_sided::{CompareSwap, FetchAdd, FlagWrite, RdmaDirection, RemoteRead, RemoteWrite};
pub use staging::{Staging, StagingPool};
pub use trouble::FabricTrouble;
pub use until::{Until, until, until_any};
pub use weft_topology::TopologyLevel;
pub use words::{put_words, word_at};
