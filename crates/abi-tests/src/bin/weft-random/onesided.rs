//! Windows and their epochs, as all ranks know them. Ranks are seats of the window's communicator; places are
//! bytes from the beginning of a target's part.

use crate::buffer::Piece;
use crate::comm::CommId;
use crate::mpi::CountWidth;
use crate::reduce::{Element, StandardOp};
use std::fmt;

/// The number of a window in a program.
pub type WindowId = usize;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flavor {
    Create,
    Allocate,
    /// MPI_Win_allocate_shared if all ranks are on one node, else MPI_Win_allocate.
    Shared {
        contiguous: bool,
    },
    Dynamic,
}

/// Part of one rank in a window.
#[derive(Clone, Debug)]
pub struct RankPart {
    pub len: i64,
    /// Displacement unit of the part; 1 in a dynamic window.
    pub unit: i64,
    /// Accessible ranges of its memory (begin and end): all of it, or the ranges that a dynamic window has attached.
    pub chunks: Vec<(i64, i64)>,
}

pub struct WindowModel {
    pub comm: CommId,
    pub flavor: Flavor,
    pub parts: Vec<RankPart>,
    /// Hints for the library.
    pub hints: Vec<(&'static str, &'static str)>,
}

/// Synchronization of the operations of an epoch.
#[derive(Debug)]
pub enum Sync {
    /// Assertions of each fence, by seat: one fence before each round and one at the end.
    Fence(Vec<Vec<i64>>),
    Post(PostSync),
    Lock(LockSync),
    /// One MPI_Win_lock_all. Between rounds come MPI_Win_flush_all and a barrier.
    LockAll {
        unchecked: bool,
    },
}

/// Synchronization by MPI_Win_post and MPI_Win_start.
#[derive(Debug)]
pub struct PostSync {
    /// By origin and target: true if the origin may access the target.
    pub pairs: Vec<Vec<bool>>,
    /// Assertions of MPI_Win_post by seat.
    pub asserts: Vec<i64>,
    /// True if all ranks post before an origin starts, and then assert MPI_MODE_NOCHECK.
    pub unchecked: bool,
    /// True if ranks also call the functions with empty groups.
    pub empty: bool,
}

/// Synchronization by MPI_Win_lock.
#[derive(Debug)]
pub struct LockSync {
    /// Targets that each origin locks, in this order; true for an exclusive lock.
    pub targets: Vec<Vec<(usize, bool)>>,
    /// True if an origin holds all its locks at the same time.
    pub together: bool,
    /// True if no lock conflicts with another lock, and origins assert MPI_MODE_NOCHECK.
    pub unchecked: bool,
}

impl Sync {
    /// Returns true if targets are passive, which allows flushes and requests.
    pub fn passive(&self) -> bool {
        matches!(self, Sync::Lock(_) | Sync::LockAll { .. })
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccumulateOp {
    Reduce(StandardOp),
    Replace,
    Nothing,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlushForm {
    One,
    All,
    LocalOne,
    LocalAll,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OneSidedCall {
    Put,
    Get,
    Accumulate(AccumulateOp),
    GetAccumulate(AccumulateOp),
    FetchAndOp(AccumulateOp),
    /// Compares with the value that is there, or with another value.
    CompareAndSwap {
        hit: bool,
    },
    /// Under an exclusive lock: get, flush, and put of the number plus one.
    Increment,
    Flush(FlushForm),
}

/// Knowledge about the result of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fetched {
    Known,
    /// Depends on the order of origins.
    Open,
    /// The results of all operations in this group are different consecutive numbers.
    Ticket(usize),
    /// One operation of this group finds the old value and sets its own value, which all others find.
    Race(usize),
}

/// A local store before the epoch, to the storing rank's own part.
pub struct Store {
    pub seat: usize,
    pub piece: Piece,
    /// Operator that the values suit.
    pub values: Option<(StandardOp, Element)>,
}

/// A call. Pieces that it does not have are `None`.
pub struct Action {
    pub round: usize,
    pub origin: usize,
    /// `None` stands for MPI_PROC_NULL.
    pub target: Option<usize>,
    pub what: OneSidedCall,
    /// Place at the target.
    pub place: Option<Piece>,
    /// Data that are brought, and data that are fetched.
    pub from: Option<Piece>,
    pub to: Option<Piece>,
    /// Kind of the elements, if it matters.
    pub element: Option<Element>,
    /// Operator that the data suit.
    pub suits: Option<StandardOp>,
    pub fetched: Fetched,
    pub request: bool,
    pub width: CountWidth,
}

pub struct Epoch {
    pub window: WindowId,
    pub sync: Sync,
    pub rounds: usize,
    pub stores: Vec<Store>,
    /// Calls, in an order that would give the right result if one rank made all of them. Each rank keeps this order.
    pub actions: Vec<Action>,
    /// Number of groups of tickets and races.
    pub groups: usize,
    /// Seats that detach their memory and attach it again before the epoch.
    pub reattach: Vec<usize>,
    pub free_early: bool,
    /// True if each rank looks at the next rank's memory after the epoch, if that memory is visible.
    pub peek: bool,
}

impl AccumulateOp {
    pub fn handle(self) -> usize {
        match self {
            AccumulateOp::Reduce(op) => op.handle(),
            AccumulateOp::Replace => crate::mpi::REPLACE,
            AccumulateOp::Nothing => crate::mpi::NO_OP,
        }
    }
}

impl OneSidedCall {
    /// Returns the function's name without `MPI_`.
    pub fn name(self) -> &'static str {
        match self {
            OneSidedCall::Put => "Put",
            OneSidedCall::Get => "Get",
            OneSidedCall::Accumulate(_) => "Accumulate",
            OneSidedCall::GetAccumulate(_) => "Get_accumulate",
            OneSidedCall::FetchAndOp(_) => "Fetch_and_op",
            OneSidedCall::CompareAndSwap { .. } => "Compare_and_swap",
            OneSidedCall::Increment => "Get, flush, Put",
            OneSidedCall::Flush(FlushForm::One) => "Win_flush",
            OneSidedCall::Flush(FlushForm::All) => "Win_flush_all",
            OneSidedCall::Flush(FlushForm::LocalOne) => "Win_flush_local",
            OneSidedCall::Flush(FlushForm::LocalAll) => "Win_flush_local_all",
        }
    }

    /// Returns true if the operation changes the target's memory.
    pub fn writes(self) -> bool {
        !matches!(
            self,
            OneSidedCall::Get
                | OneSidedCall::Flush(_)
                | OneSidedCall::GetAccumulate(AccumulateOp::Nothing)
                | OneSidedCall::FetchAndOp(AccumulateOp::Nothing)
        )
    }

    pub fn op(self) -> Option<AccumulateOp> {
        match self {
            OneSidedCall::Accumulate(op)
            | OneSidedCall::GetAccumulate(op)
            | OneSidedCall::FetchAndOp(op) => Some(op),
            _ => None,
        }
    }
}

impl fmt::Display for WindowModel {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:?} on comm {}", self.flavor, self.comm)?;
        self.hints.iter().try_for_each(|(key, value)| write!(f, ", {key}={value}"))?;
        for (seat, part) in self.parts.iter().enumerate() {
            write!(f, "\n    rank {seat}: {} bytes, unit {}", part.len, part.unit)?;
            if self.flavor == Flavor::Dynamic {
                write!(f, ", attached {:?}", part.chunks)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "epoch on window {}, {} rounds, {:?}", self.window, self.rounds, self.sync)?;
        if !self.reattach.is_empty() {
            write!(f, ", attached anew: {:?}", self.reattach)?;
        }
        for store in &self.stores {
            write!(f, "\n  rank {} stores {}", store.seat, store.piece)?;
        }
        for (i, action) in self.actions.iter().enumerate() {
            write!(f, "\n  action {i}: {action}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let letter = if self.request { "R" } else { "" };
        let width = self.width.suffix();
        write!(f, "round {}, {letter}{}{width}", self.round, self.what.name())?;
        match self.what {
            OneSidedCall::CompareAndSwap { hit } => write!(f, "(hit: {hit})")?,
            _ => self.what.op().map_or(Ok(()), |op| write!(f, "({op:?})"))?,
        }
        match self.target {
            Some(target) => write!(f, ", {} on {target}", self.origin)?,
            None => write!(f, ", {} on PROC_NULL", self.origin)?,
        }
        for (name, piece) in [("place", &self.place), ("from", &self.from), ("to", &self.to)] {
            if let Some(piece) = piece {
                write!(f, "\n      {name}: {piece}")?;
            }
        }
        Ok(())
    }
}
