//! A cluster in virtual time: the very algorithms that run on real fabrics, on machines that we do
//! not own, deterministically, thousands of ranks in one thread.
//!
//! ```text
//!   program of rank 0, 1, ...   futures, polled in the order of time            run, cluster
//!   explore                     one program under many schedules                explore
//!   Sim                         one rank's fabric: posts cost local time        sim
//!   State                       clocks, inboxes, what happens when it is due    world, flight, travel, happen, queue
//!                               order of messages, and what becomes of it when  order, deaths
//!                               something dies
//!   Host                        a rank's threads, cores, interrupts, signals    host
//!   Network                     ports and buses, where messages wait            network
//!   Machine                     a TOML file: latencies, gaps, rates             machine
//! ```

#![warn(missing_docs)]

mod cluster;
mod deaths;
mod event;
pub mod explore;
mod host;
mod in_flight;
pub mod machine;
mod memory;
mod network;
mod options;
mod order;
mod ordered_flag;
mod peek;
mod post;
mod prices;
mod queue;
mod run;
mod sim;
mod trace;
mod travel;
pub mod units;
mod world;

pub use cluster::Cluster;
pub use explore::explore;
pub use host::{Compute, Event, HostCounts, Notify, Thread, Waiting};
pub use machine::Machine;
pub use options::{Chaos, Death, Options};
pub use run::{Outcome, Stopped, run};
pub use sim::Sim;
pub use trace::{Activity, Arrow, Span, Trace, Travel};
pub use world::Counts;
