//! A cluster in virtual time: the same algorithms that run on real fabrics, on simulated machines, deterministically, with
//! thousands of ranks in one thread.
//!
//! ```text
//!   program of rank 0, 1, ...   futures, polled in the order of time            run, cluster
//!   explore                     one program under many schedules                explore
//!   Sim                         one rank's fabric: posts cost local time        sim
//!   WorldState                  clocks, inboxes, events at their time           world, in_flight, travel, event, queue
//!                               order of messages, also after deaths            turns, order, deaths
//!   RankThreads                 a rank's threads, cores, interrupts, signals    threads; their interface: host
//!   NetworkState                ports and buses, where messages wait            network
//!   WorldState::carry_*         payloads that processors of a node carry        carrying, aided_read
//!   NodeLevels                  caches, domains and sockets of a node            node_levels
//!   RankProcesses               ranks that are processes of their own        processes, address_spaces, remote_rank
//!   Machine                     a TOML file: latencies, gaps, rates             machine
//! ```
//! Dependencies point downwards: `run` and `explore` use `host` and `sim`; these use `post`, `travel`, `event` and `deaths`;
//! these use `world`; and `world` uses `threads`, `turns`, `ordered_flag`, `network`,
//! `node_levels`, `queue`, `in_flight` and `machine`.

#![warn(missing_docs)]

mod address_spaces;
mod aided_read;
mod arrival_record;
mod arrivals;
mod carrying;
mod cluster;
mod deaths;
mod event;
pub mod explore;
mod host;
mod in_flight;
pub mod machine;
mod memory;
mod network;
mod node_levels;
mod options;
mod order;
mod ordered_flag;
mod peek;
mod post;
mod prices;
mod processes;
mod queue;
mod remote_rank;
mod run;
mod sim;
mod stopped;
mod threads;
mod token_bucket;
mod trace;
mod travel;
mod turns;
pub mod units;
mod world;

pub use arrival_record::Arrival;
pub use cluster::Cluster;
pub use explore::explore;
pub use host::{Compute, Notify, Thread};
pub use machine::{Machine, SEND_MAX};
pub use options::{Chaos, Death, SimOptions};
pub use processes::{RankCounter, RankMemory, RankProcesses};
pub use run::{RunOutcome, run};
pub use sim::Sim;
pub use stopped::Stopped;
pub use threads::{HostCounts, InterruptEvent, WaitBehaviour};
pub use trace::{Activity, Arrow, BusySpan, Trace, Travel};
pub use world::RunCounts;
