//! The fabric of a rank whose job runs in virtual time. The rank is a process of its own with the usual library. A simulation
//! process has the clocks, the network and the order of all events, and decides which rank runs.
//!
//! ```text
//!   rank 0                    ranks file (one slot a rank)            simulation process
//!   SimClient::write ───────▶ journal
//!   SimClient::send  ───────▶ journal, payload
//!   Sleep::sleep  ──────────▶ Rest { until } ───────────────────────▶ Sim::write, Sim::send of rank 0; then
//!                                                                     other ranks run, events happen
//!            ◀─────────────── counters that advanced, messages ◀───── rank 0 is due
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `turn` | the baton of a slot: either the rank or the simulation runs |
//! | `slot` | the file of the slots, which both map |
//! | `request` | requests and replies as words |
//! | `journal` | work, and requests without a reply, until the next request |
//! | `home` | the processor on which all take turns |
//! | `inbox` | messages that have arrived |
//! | `slot_wait` | the wait of a rank that rests, so that the simulation handles quiet arrivals itself |
//! | `client` | the rank's side: requests, charges, counters |
//! | `fabric` | the traits of a fabric, over `client` |
//! | `clock_readings` | time that a program takes to read the clock |
//! | `arena` | memory that peers of the simulated node may map |
//!
//! The processor time that the program takes between MPI calls is no matter of this crate: a layer above MPI adds it to
//! [`RankSlot::compute`], and names the present call in [`RankSlot::call`].

#![warn(missing_docs)]

#[cfg(not(loom))]
mod arena;
#[cfg(not(loom))]
mod client;
#[cfg(not(loom))]
mod clock_readings;
#[cfg(not(loom))]
mod fabric;
#[cfg(not(loom))]
mod home;
#[cfg(not(loom))]
mod inbox;
#[cfg(not(loom))]
mod journal;
#[cfg(not(loom))]
mod request;
#[cfg(not(loom))]
mod slot;
#[cfg(not(loom))]
mod slot_wait;
mod turn;

#[cfg(not(loom))]
pub use client::{ClientFailure, IMMEDIATE, SimClient};
#[cfg(not(loom))]
pub use clock_readings::ClockReadings;
#[cfg(not(loom))]
pub use home::ThreadStay;
#[cfg(not(loom))]
pub use inbox::{InboxMessage, InboxRoom, PAYLOAD, SlotInbox};
#[cfg(not(loom))]
pub use journal::{Journal, JournalEntry};
#[cfg(not(loom))]
pub use request::{SimRequest, SlotWords, WriteEnd, fault_of, fault_word};
#[cfg(not(loom))]
pub use slot::{JobHeader, MOST_ADVANCES, PathHeader, RankSlot, SIMULATION_VARIABLE, SlotsFile};
#[cfg(not(loom))]
pub use slot_wait::{RestingWait, SlotWait};
pub use turn::{Turn, TurnSide};
