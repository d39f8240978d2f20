//! What this process keeps of each rank of a window that it may access.

use crate::place::Reach;
use crate::queue::Queued;
use crate::ticket::Turn;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use weft_channel::rails::Waits;
use weft_fabric::{Counter, Words};
use weft_process::{Buffer, Piece};

/// By what this process may access a rank's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// By a fence or by MPI_Win_lock_all, if at all.
    #[default]
    None,
    /// MPI_Win_start.
    Started,
    /// MPI_Win_lock.
    Shared,
    Exclusive,
    /// MPI_Win_lock with MPI_MODE_NOCHECK: no lock is held.
    Unchecked,
}

/// An operation that was issued and may not be over.
pub struct Kept {
    /// It is over when each of these counters has its value. None: when all is over that was posted to the
    /// rank without a counter of its own ([`Target::done`]).
    pub waits: Waits,
    /// Memory that it still reads, or lands in, and where the data go from there.
    pub piece: Option<Piece>,
    pub unpack: Option<Buffer>,
}

/// One rank of a window.
#[derive(Default)]
pub struct Target {
    pub reach: OnceCell<Reach>,
    /// Its control words, if this process sees them.
    pub control: OnceCell<Option<Words>>,
    pub access: Cell<Access>,
    /// This process is among those that announce updates of single elements of it.
    pub announces: Cell<bool>,
    /// The ticket of its lock, while that is held.
    pub ticket: Cell<u64>,
    /// That lock was taken or given back at once, and somebody has to be told.
    pub tell: Cell<Option<Turn>>,
    /// MPI_Win_lock_all's share of its lock is held.
    pub of_all: Cell<bool>,
    /// Counts completions of operations that need nothing afterwards, and its value once all are over.
    pub done: OnceCell<Counter>,
    pub due: Cell<u64>,
    pub kept: RefCell<VecDeque<Kept>>,
    /// What waits to be issued ([`crate::queue`]).
    pub queue: RefCell<Vec<Queued>>,
    /// It is in the list of those with operations under way.
    pub touched: Cell<bool>,
    /// Rails of puts that may not be over, and whether there are gets among what may not be over.
    pub used: Cell<u16>,
    pub reads: Cell<bool>,
    /// It has been told of the end of the epoch that is being completed.
    pub told: Cell<bool>,
    /// Operations issued that were not over at once, and those of them that ended.
    pub issued: Cell<u64>,
    pub settled: Cell<u64>,
    /// Access epochs that were completed, exposures granted, and both as seen from the other side.
    pub started: Cell<u64>,
    pub posted: Cell<u64>,
    pub completed: Cell<u64>,
    pub awaited: Cell<u64>,
}
