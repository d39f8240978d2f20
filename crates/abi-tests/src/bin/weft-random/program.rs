//! A program: the steps of all ranks. Every rank has the whole program. Unless said otherwise, ranks are seats in the item's
//! communicator.

use crate::buffer::Piece;
use crate::comm::{CommId, CommModel, ExchangePeers, Wiring};
use crate::mpi::CountWidth;
use crate::onesided::{Epoch, WindowId, WindowModel};
use crate::reduce::{Element, Operator};
use std::fmt;

pub struct RandomProgram {
    pub ranks: usize,
    pub comms: Vec<CommModel>,
    pub windows: Vec<WindowModel>,
    pub steps: Vec<ProgramStep>,
}

pub enum ProgramStep {
    Make(CommCreation),
    Free(CommId),
    Phase(ItemPhase),
    Open(WindowId),
    Epoch(Epoch),
    Close(WindowId),
}

/// Makes communicators from a parent. `made` holds their numbers. A rank is a member of at most one of them.
pub struct CommCreation {
    pub parent: CommId,
    pub how: How,
    pub made: Vec<CommId>,
}

#[derive(Debug)]
pub enum How {
    Dup,
    DupWithInfo,
    Idup,
    /// Colour (`None` stands for MPI_UNDEFINED) and key of each rank.
    Split(Vec<(Option<i64>, i64)>),
    /// Disjoint groups of ranks of the parent, each in its order.
    Create(Vec<Vec<usize>>),
    /// Disjoint groups, each of which only its members create, with this tag.
    CreateGroup(Vec<Vec<usize>>, i64),
    /// A group, without a parent, under this name.
    FromGroup(Vec<usize>, String),
    /// Two groups with a leader in each, without a parent, under this name.
    FromGroups {
        sides: [Vec<usize>; 2],
        leaders: [usize; 2],
        name: String,
    },
    Cart {
        dims: Vec<usize>,
        periodic: Vec<bool>,
    },
    Graph,
    DistGraph,
    /// From two disjoint communicators, with a leader in each. The leaders meet in the parent.
    Intercomm {
        sides: [CommId; 2],
        leaders: [usize; 2],
        tag: i64,
    },
    /// Both groups of the parent, in this order.
    Merge {
        swapped: bool,
    },
}

/// Items that are under way at the same time. Every rank goes through them in the same order, so that blocking calls cannot wait in
/// a circle. Nonblocking calls are completed at the end.
pub struct ItemPhase {
    pub items: Vec<Item>,
    /// Number of times that all items run, with the same buffers and persistent requests, but other data.
    pub rounds: u64,
    /// True if some message is sent in ready mode: all early receives come before a barrier.
    pub ready: bool,
    /// Communicators on which some receive takes messages from any source: a barrier keeps messages of later phases out.
    pub closing: Vec<CommId>,
    /// True if datatypes are freed while they are in use.
    pub free_early: bool,
}

pub enum Item {
    Message(Message),
    Shift(Shift),
    Collective(CollectiveItem),
}

/// Form of a call: it waits, returns a request, or starts a persistent request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallForm {
    Blocking,
    Immediate,
    Persistent,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageMode {
    Standard,
    Synchronous,
    Buffered,
    Ready,
}

/// Description of the data of one side to MPI.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dress {
    Plain,
    /// From MPI_BOTTOM, with a datatype of absolute addresses.
    Absolute,
    /// Packed by MPI_Pack, unpacked by MPI_Unpack.
    Packed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProbeForm {
    /// MPI_Probe or MPI_Mprobe.
    Blocking,
    /// MPI_Iprobe or MPI_Improbe, until a message is found.
    Immediate,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taking {
    Receive(CallForm),
    /// MPI_Probe or MPI_Iprobe, then MPI_Recv.
    Probe {
        form: ProbeForm,
    },
    /// MPI_Mprobe or MPI_Improbe, then MPI_Mrecv or MPI_Imrecv.
    Matched {
        form: ProbeForm,
        later: bool,
    },
}

pub struct Message {
    pub comm: CommId,
    /// `None` stands for MPI_PROC_NULL, which is never on both sides.
    pub from: Option<usize>,
    pub to: Option<usize>,
    pub tag: i64,
    pub send: Piece,
    pub mode: MessageMode,
    pub form: CallForm,
    pub send_width: CountWidth,
    pub send_dress: Dress,
    /// May have room for more than the sent data.
    pub recv: Piece,
    pub taking: Taking,
    /// True if the receive is posted before all items.
    pub early: bool,
    pub any_source: bool,
    pub any_tag: bool,
    pub recv_width: CountWidth,
    pub recv_dress: Dress,
}

/// Each rank sends to the rank `by` above it, and receives from the rank `by` below it, in one call.
pub struct Shift {
    pub comm: CommId,
    pub by: usize,
    /// True if ranks wrap around. Otherwise MPI_PROC_NULL is beyond the ends.
    pub around: bool,
    /// True if both directions use the same buffer.
    pub replace: bool,
    pub immediate: bool,
    pub width: Vec<CountWidth>,
    pub tag: i64,
    pub send: Vec<Piece>,
    pub recv: Vec<Piece>,
}

impl Shift {
    pub fn to(&self, rank: usize) -> Option<usize> {
        let n = self.send.len();
        (self.around || rank + self.by < n).then(|| (rank + self.by) % n)
    }

    pub fn from(&self, rank: usize) -> Option<usize> {
        let n = self.send.len();
        (self.around || rank >= self.by).then(|| (rank + n - self.by) % n)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum CollectiveFunction {
    Barrier,
    Bcast,
    Gather,
    Gatherv,
    Scatter,
    Scatterv,
    Allgather,
    Allgatherv,
    Alltoall,
    Alltoallv,
    Alltoallw,
    Reduce,
    Allreduce,
    ReduceScatterBlock,
    ReduceScatter,
    Scan,
    Exscan,
    NeighborAllgather,
    NeighborAllgatherv,
    NeighborAlltoall,
    NeighborAlltoallv,
    NeighborAlltoallw,
}

impl CollectiveFunction {
    /// Returns the function's name without `MPI_` and the letter of its form.
    pub fn name(self) -> &'static str {
        match self {
            CollectiveFunction::Barrier => "barrier",
            CollectiveFunction::Bcast => "bcast",
            CollectiveFunction::Gather => "gather",
            CollectiveFunction::Gatherv => "gatherv",
            CollectiveFunction::Scatter => "scatter",
            CollectiveFunction::Scatterv => "scatterv",
            CollectiveFunction::Allgather => "allgather",
            CollectiveFunction::Allgatherv => "allgatherv",
            CollectiveFunction::Alltoall => "alltoall",
            CollectiveFunction::Alltoallv => "alltoallv",
            CollectiveFunction::Alltoallw => "alltoallw",
            CollectiveFunction::Reduce => "reduce",
            CollectiveFunction::Allreduce => "allreduce",
            CollectiveFunction::ReduceScatterBlock => "reduce_scatter_block",
            CollectiveFunction::ReduceScatter => "reduce_scatter",
            CollectiveFunction::Scan => "scan",
            CollectiveFunction::Exscan => "exscan",
            CollectiveFunction::NeighborAllgather => "neighbor_allgather",
            CollectiveFunction::NeighborAllgatherv => "neighbor_allgatherv",
            CollectiveFunction::NeighborAlltoall => "neighbor_alltoall",
            CollectiveFunction::NeighborAlltoallv => "neighbor_alltoallv",
            CollectiveFunction::NeighborAlltoallw => "neighbor_alltoallw",
        }
    }

    /// Returns true if the operation is among neighbours in a topology.
    pub fn neighbors(self) -> bool {
        self.name().starts_with("neighbor")
    }

    /// Returns the ranks with which a rank exchanges data.
    pub fn peers(self) -> ExchangePeers {
        if self.neighbors() { ExchangePeers::Neighbors } else { ExchangePeers::All }
    }

    pub fn rooted(self) -> bool {
        use CollectiveFunction::*;
        matches!(self, Bcast | Gather | Gatherv | Scatter | Scatterv | Reduce)
    }

    pub fn reduces(self) -> bool {
        use CollectiveFunction::*;
        matches!(self, Reduce | Allreduce | ReduceScatterBlock | ReduceScatter | Scan | Exscan)
    }
}

/// A collective call. `send` and `recv` hold the pieces of each seat: one piece, or one for each peer. There is none if the seat
/// has no such buffer, or the operation is in place. Bcast has only `recv`.
pub struct CollectiveItem {
    pub comm: CommId,
    pub kind: CollectiveFunction,
    pub form: CallForm,
    pub width: Vec<CountWidth>,
    /// At the root of a rooted collective, and everywhere in other collectives: the data lie in `recv`.
    pub in_place: bool,
    pub root: usize,
    pub send: Vec<Vec<Piece>>,
    pub recv: Vec<Vec<Piece>>,
    pub op: Option<(Operator, Element)>,
    pub wiring: Wiring,
}

impl CollectiveItem {
    /// Returns true if this rank's call uses MPI_IN_PLACE.
    pub fn in_place_at(&self, rank: usize) -> bool {
        self.in_place && (!self.kind.rooted() || rank == self.root)
    }
}

impl fmt::Display for RandomProgram {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (i, step) in self.steps.iter().enumerate() {
            match step {
                ProgramStep::Make(make) => {
                    writeln!(f, "step {i}: from comm {}, {:?}:", make.parent, make.how)?;
                    for id in &make.made {
                        let comm = &self.comms[*id];
                        write!(f, "    comm {id}: world ranks {:?}", comm.members)?;
                        match comm.first {
                            Some(first) => writeln!(f, ", of which {first} are the first group")?,
                            None => writeln!(f)?,
                        }
                        if let Some(t) = comm.topology.as_ref().filter(|t| !t.grid) {
                            writeln!(f, "    {:?} -> {:?}", t.sources, t.destinations)?;
                        }
                    }
                }
                ProgramStep::Free(id) => writeln!(f, "step {i}: free comm {id}")?,
                ProgramStep::Open(id) => {
                    writeln!(f, "step {i}: window {id}: {}", self.windows[*id])?
                }
                ProgramStep::Epoch(epoch) => writeln!(f, "step {i}: {epoch}")?,
                ProgramStep::Close(id) => writeln!(f, "step {i}: free window {id}")?,
                ProgramStep::Phase(phase) => {
                    writeln!(
                        f,
                        "step {i}: {} items, {} rounds{}{}",
                        phase.items.len(),
                        phase.rounds,
                        if phase.ready { ", a barrier after early receives" } else { "" },
                        if phase.free_early { ", datatypes freed in use" } else { "" },
                    )?;
                    for (j, item) in phase.items.iter().enumerate() {
                        writeln!(f, "  item {j}: {item}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Item::Message(m) => m.fmt(f),
            Item::Shift(s) => s.fmt(f),
            Item::Collective(c) => c.fmt(f),
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let who = |r: Option<usize>| r.map_or("PROC_NULL".to_owned(), |r| r.to_string());
        write!(f, "message on comm {}, {} to {}", self.comm, who(self.from), who(self.to))?;
        writeln!(f, ", tag {}", self.tag)?;
        let (mode, form, width) = (self.mode, self.form, self.send_width.suffix());
        writeln!(f, "    send {mode:?} {form:?}{width} {:?}: {}", self.send_dress, self.send)?;
        let any = match (self.any_source, self.any_tag) {
            (false, false) => "",
            (true, false) => " any source",
            (false, true) => " any tag",
            (true, true) => " any source, any tag",
        };
        let early = if self.early { " early" } else { "" };
        let (taking, width) = (self.taking, self.recv_width.suffix());
        let dress = self.recv_dress;
        write!(f, "    recv {taking:?}{width}{any}{early} {dress:?}: {}", self.recv)
    }
}

impl fmt::Display for Shift {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}sendrecv", if self.immediate { "i" } else { "" })?;
        write!(f, "{} on comm {}", if self.replace { "_replace" } else { "" }, self.comm)?;
        let ends = if self.around { "around" } else { "to the ends" };
        write!(f, " by {}, {ends}, tag {}", self.by, self.tag)?;
        for (r, (send, recv)) in self.send.iter().zip(&self.recv).enumerate() {
            write!(f, "\n    rank {r}{}: {send}", self.width[r].suffix())?;
            if !self.replace {
                write!(f, " -> {recv}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for CollectiveItem {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} {:?} on comm {}", self.kind.name(), self.form, self.comm)?;
        if self.kind.rooted() {
            write!(f, ", root {}", self.root)?;
        }
        if let Some((op, _)) = self.op {
            write!(f, ", {op}")?;
        }
        for (r, (send, recv)) in self.send.iter().zip(&self.recv).enumerate() {
            let list = |pieces: &[Piece]| {
                let all: Vec<String> = pieces.iter().map(Piece::to_string).collect();
                format!("[{}]", all.join("; "))
            };
            write!(f, "\n    rank {r}{}: ", self.width[r].suffix())?;
            if self.in_place_at(r) {
                write!(f, "in place ")?;
            } else if self.kind != CollectiveFunction::Bcast {
                write!(f, "{} -> ", list(send))?;
            }
            write!(f, "{}", list(recv))?;
        }
        Ok(())
    }
}
