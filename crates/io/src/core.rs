//! What all operations on an open file need: its storage, its communicator, and how it is used.

use crate::amode::Amode;
use crate::bytes::Memory;
use crate::cost::Costs;
use crate::doomed::Doomed;
use crate::exclusion::Exclusion;
use crate::failure::Failure;
use crate::found::Found;
use crate::hints::{Buffering, Hints};
use crate::pool::Pool;
use crate::ring::Piece;
use crate::storage::disk::Kind;
use crate::storage::{Guard, Storage, locked, read_whole, write_whole};
use crate::strided_runs::{StridedRun, StridedRuns};
use crate::transfer::{self, Manner, Sieving};
use std::cell::{Cell, OnceCell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use weft_datatype::Type;
use weft_fabric::Fabric;
use weft_process::{Comm, Error, Info};

/// Which way data go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the file to memory.
    Read,
    /// From memory to the file.
    Write,
}

/// Moves one piece of a file that needs no lock; how many bytes, of a read those before the end of the file.
#[inline]
pub fn move_piece(
    storage: &dyn Storage,
    direction: Direction,
    at: u64,
    data: Memory,
) -> Result<u64, Failure> {
    match direction {
        Direction::Read => data.write(|data| read_whole(storage, at, data)).map(|come| come as u64),
        Direction::Write => {
            data.read(|data| write_whole(storage, at, data)).map(|()| data.len() as u64)
        }
    }
}

/// An open file, as its operations see it.
pub struct Core<F: Fabric> {
    /// The file's own communicator.
    pub comm: Rc<Comm<F>>,
    /// The open file.
    pub storage: Arc<dyn Storage>,
    /// Where it is.
    pub path: PathBuf,
    /// The file that the first rank deletes when the file is closed.
    pub doomed: Option<Doomed>,
    /// What it was opened for.
    pub amode: Amode,
    /// Threads for what is not moved by the program's own.
    pub pool: Rc<Pool<F>>,
    /// What things take on the first rank's machine.
    pub costs: Costs,
    /// In force.
    pub hints: Cell<Hints>,
    /// Hints that are only told again.
    pub kept: RefCell<Info>,
    /// Kind of the file system, after its first use.
    pub about: OnceCell<Kind>,
    /// Preferred size of a read or write, in bytes, on the first rank's host.
    pub block: u64,
    /// What is to be written can be read before, as sieving does.
    pub rereads: bool,
    /// MPI_File_set_atomicity.
    pub atomic: Cell<bool>,
    /// What makes accesses whole then, once it was asked for; `None`: locks of the file.
    pub exclusion: OnceCell<Option<Exclusion<F>>>,
    /// All ranks see the file as it is, without gaps: nobody reads what others write, and writes it back.
    pub gapless: Cell<bool>,
    /// The first rank of each node, in order.
    pub leaders: Vec<usize>,
    /// MPI_BYTE.
    pub byte: Type,
    /// What collective accesses were found to take, read and written: each rank's own apart, or all in phases as a whole.
    pub found: [Found; 2],
    /// Collective operations that were begun, which all ranks count alike.
    pub begun: Cell<u32>,
}

/// A transfer that any thread can do: what is moved, from where to where, and how.
pub struct Transfer {
    storage: Arc<dyn Storage>,
    direction: Direction,
    runs: StridedRuns,
    data: Memory,
    manner: Manner,
    atomic: bool,
}

impl Transfer {
    /// What it takes, in nanoseconds.
    pub fn cost(&self) -> f64 {
        let (pieces, bytes, costs) = (self.runs.pieces(), self.runs.bytes(), &self.manner.costs);
        let span = self.runs.bounds().map_or(0, |(first, end)| end - first);
        let (apart, whole) = match self.direction {
            Direction::Read => (costs.reads(pieces, bytes), costs.read_sieved(span)),
            Direction::Write => (costs.writes(pieces, bytes), costs.write_sieved(span)),
        };
        let whole = whole + pieces as f64 * costs.piece;
        if self.manner.sieving == Sieving::Off { apart } else { apart.min(whole) }
    }

    /// The one piece that it is, if it is one and needs no lock.
    pub fn one_piece(&self) -> Option<Piece> {
        let free = match self.direction {
            Direction::Read => true,
            Direction::Write => self.manner.guard == Guard::Free,
        };
        match *self.runs.list() {
            [StridedRun { offset, count: 1, .. }] if free && !self.atomic => {
                let (storage, direction) = (self.storage.clone(), self.direction);
                Some(Piece { storage, direction, offset, data: self.data })
            }
            _ => None,
        }
    }

    /// Moves the data; how many bytes: of a read, those before the end of the file.
    pub fn run(self) -> Result<u64, Failure> {
        let Transfer { storage, direction, runs, data, manner, atomic } = self;
        let storage = &*storage;
        let go = |manner: &Manner| match direction {
            Direction::Read => transfer::read(storage, &runs, data, manner),
            Direction::Write => {
                transfer::write(storage, &runs, data, manner).map(|()| runs.bytes())
            }
        };
        match runs.bounds() {
            Some((first, end)) if atomic => {
                let alone = direction == Direction::Write;
                let inside = Manner { guard: Guard::Free, ..manner };
                locked(storage, (first, end - first), alone, || go(&inside))
            }
            _ => go(&manner),
        }
    }
}

/// How long a rank that waits may be without an ear for messages, in nanoseconds.
const PATIENCE: f64 = 1e6;

impl<F: Fabric> Core<F> {
    /// What the file is called in errors.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Returns the kind of the file system on this rank's host. On the host of a file server it is local.
    pub fn kind(&self) -> Kind {
        *self.about.get_or_init(|| self.storage.kind())
    }

    /// Whether what one rank writes for another one may be unknown to the other's host, which reads what it kept.
    pub fn is_kept_apart(&self) -> bool {
        self.leaders.len() > 1 && self.kind().keeps_pages()
    }

    /// Whether what takes so many nanoseconds in a page cache is done at once, rather than by a thread: not where it may wait for
    /// another host, or for a lock. `beside` the program little is quick; where the program waits for it anyway, all that does
    /// not keep others waiting for their messages.
    pub fn is_quick(&self, cost: f64, beside: bool) -> bool {
        let most = if beside { 2.0 * self.costs.handover } else { PATIENCE };
        cost < most && !self.locks_bytes() && self.kind() == Kind::Local
    }

    /// The lock in memory that makes accesses whole in atomic mode.
    pub fn exclusion(&self) -> Option<&Exclusion<F>> {
        self.exclusion.get().filter(|_| self.atomic.get())?.as_ref()
    }

    /// Whether accesses lock the bytes of the file that they move.
    fn locks_bytes(&self) -> bool {
        self.atomic.get() && self.exclusion().is_none()
    }

    /// A failure of this rank, in words.
    #[cold]
    pub fn error(&self, failure: &Failure) -> Error {
        failure.error(&self.name(), "")
    }

    /// How independent operations move pieces.
    pub fn manner(&self, direction: Direction) -> Manner {
        let hints = self.hints.get();
        let (sieving, buffer) = match direction {
            Direction::Read => (hints.ds_read, hints.ind_rd_buffer_size),
            Direction::Write => (self.sieves_writes(hints.ds_write), hints.ind_wr_buffer_size),
        };
        let guard = self.guard();
        // Beside gaps of this rank's view there are others' pieces, which they write meanwhile.
        let others = u64::from(direction == Direction::Write && guard == Guard::Ranks);
        Manner { sieving, buffer, costs: self.costs.beside(others), guard }
    }

    /// Decides whether gaps are written back, given the hint `asked`. Gaps need their old contents, and no other opening may
    /// write there meanwhile, which only locks exclude. The locks of a network mount may only hold on its own host: there the
    /// program must ask for sieving, or state that there is no other opening.
    fn sieves_writes(&self, asked: Sieving) -> Sieving {
        match self.kind() {
            _ if !self.rereads || !self.storage.kept().company.is_known() => Sieving::Off,
            Kind::Local => asked,
            // On NFS, a lock discards the host's cached pages of the file, so that sieving does not pay unless it is asked for.
            Kind::Nfs if asked == Sieving::Auto => Sieving::Off,
            _ if asked == Sieving::Auto && !self.amode.is_unique() => Sieving::Off,
            _ => asked,
        }
    }

    fn guard(&self) -> Guard {
        match (self.gapless.get(), self.comm.size()) {
            (true, _) => Guard::Free,
            (false, 1) => Guard::Threads,
            (false, _) => Guard::Ranks,
        }
    }

    /// Whether each rank moves its own in collective accesses, as all ranks know without asking each other: so it is asked for, or no
    /// rank's view has gaps, in which others' pieces could lie.
    pub fn is_each_its_own(&self, direction: Direction) -> bool {
        let hints = self.hints.get();
        let asked = match direction {
            Direction::Read => hints.cb_read,
            Direction::Write => hints.cb_write,
        };
        match asked {
            // Atomic mode promises that each rank's access is whole: under locks of its own.
            _ if self.comm.size() == 1 || self.atomic.get() => true,
            Buffering::Off => true,
            Buffering::On => false,
            Buffering::Auto => self.gapless.get(),
        }
    }

    /// Moves one piece that needs no lock.
    #[inline]
    pub fn piece(&self, direction: Direction, at: u64, data: Memory) -> Result<u64, Failure> {
        move_piece(&*self.storage, direction, at, data)
    }

    /// A transfer of this rank alone.
    pub fn transfer(&self, direction: Direction, runs: StridedRuns, data: Memory) -> Transfer {
        let (storage, atomic) = (self.storage.clone(), self.locks_bytes());
        Transfer { storage, direction, runs, data, manner: self.manner(direction), atomic }
    }

    /// Ranks that read and write for the others in collective operations: as many as the hint says, one node after the other.
    pub fn aggregators(&self) -> Vec<usize> {
        let size = self.comm.size();
        let wanted = match self.hints.get().cb_nodes {
            0 => self.leaders.len(),
            asked => asked.min(size),
        };
        let nodes = self.leaders.len();
        if wanted <= nodes {
            return (0..wanted).map(|i| self.leaders[i * nodes / wanted]).collect();
        }
        let mut all = self.leaders.clone();
        // The others evenly among the rest.
        let rest: Vec<usize> = (0..size).filter(|rank| !self.leaders.contains(rank)).collect();
        let more = wanted - nodes;
        all.extend((0..more).map(|i| rest[i * rest.len() / more]));
        all.sort_unstable();
        all
    }

    /// File domains begin at multiples of it.
    pub fn alignment(&self) -> u64 {
        match self.hints.get().striping_unit {
            0 => self.block.max(1),
            unit => unit,
        }
    }
}
