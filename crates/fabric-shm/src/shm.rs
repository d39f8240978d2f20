//! State of the shared-memory fabric, and its construction.

use crate::backlogs::BackloggedPeers;
use crate::bound_places;
use crate::connect::{self, ShmConnectError};
use crate::control::RankControl;
use crate::datagrams::ShmDatagrams;
use crate::first_fault::FirstFault;
use crate::lanes::ReservedLanes;
use crate::options::ShmOptions;
use crate::own_arena::OwnArena;
use crate::peers::ShmPeers;
use crate::poll_bell::{PollBells, SleepingPart};
use crate::poll_turn::PollTurn;
use crate::processors;
use crate::segment::{self, Segment};
use crate::view::MappedArena;
use crate::watch::WatchThread;
use std::cell::{Cell, OnceCell};
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::sync::Arc;
use weft_bootstrap::Bootstrap;
use weft_fabric::copies::ProcessorGroups;
use weft_fabric::wait::WaitPolicy;
use weft_fabric::{Completion, Copies, Counters, Fault};
#[cfg(doc)]
use weft_fabric::{Fabric, FabricExt};

/// The ranks of a job on one machine, connected through shared memory.
pub struct Shm {
    pub(crate) rank: usize,
    pub(crate) counters: Rc<Counters>,
    pub(crate) copies: Copies,
    pub(crate) same_arithmetic: bool,
    /// Groups of processors of the job's ranks, if they are known.
    pub(crate) groups: Option<Box<[ProcessorGroups]>>,
    pub(crate) peers: ShmPeers,
    /// The boxes where [`Fabric::receive`] from any peer looks first.
    pub(crate) turn: PollTurn,
    /// Peers for which messages are kept back.
    pub(crate) backlogs: BackloggedPeers,
    pub(crate) immediates_seen: Cell<u64>,
    pub(crate) datagrams: ShmDatagrams,
    pub(crate) arena: OwnArena,
    pub(crate) options: ShmOptions,
    pub(crate) fault: FirstFault,
    /// The sockets on which this rank sleeps in poll(2), and from which it rings for other ranks.
    pub(crate) bells: PollBells,
    /// The thread that watches the processes of other jobs. It is started with the first such process.
    pub(crate) watch: OnceCell<WatchThread>,
    /// The further lanes, which are opened at their first use.
    pub(crate) lanes: ReservedLanes,
    /// The word that peers read to prove that they reach this process.
    pub(crate) _probe: Box<u64>,
    pub(crate) segment: Arc<Segment>,
}

// SAFETY: the parts that are not `Send` by themselves are the pointers in `Counters`, `ShmPeer`, its rings and its view, and
// the shared ownership of the counters. The pointers lead to the heap, and into the segment, which `segment` keeps mapped;
// neither belongs to a thread. Another owner of the counters is a fabric of the same process, which moves to another thread
// together with this fabric. `Shm` is not `Sync`.
unsafe impl Send for Shm {}

impl Shm {
    /// Connects the ranks of a job, which all call this. A job of one rank needs no other process.
    pub fn connect(bootstrap: &mut dyn Bootstrap) -> Result<Shm, ShmConnectError> {
        Shm::connect_with(bootstrap, ShmOptions::default())
    }

    /// Connects as [`Shm::connect`] does, with other options than the defaults.
    pub fn connect_with(
        bootstrap: &mut dyn Bootstrap,
        options: ShmOptions,
    ) -> Result<Shm, ShmConnectError> {
        Shm::connect_counting(bootstrap, options, Rc::default())
    }

    /// Connects as [`Shm::connect_with`] does, with a table of counters that another fabric of this process uses too.
    pub fn connect_counting(
        bootstrap: &mut dyn Bootstrap,
        options: ShmOptions,
        counters: Rc<Counters>,
    ) -> Result<Shm, ShmConnectError> {
        let rank = bootstrap.rank();
        let (segment, loader) = connect::segment(bootstrap, &options)?;
        let segment = Arc::new(segment);
        let probe = Box::new(segment::random());
        let own = MappedArena::of_own(&segment, rank).map_err(|error| ShmConnectError::System {
            what: "reserving addresses for shared memory",
            error,
        })?;
        connect::introduce(segment.control(rank), &probe, own.base().as_ptr());
        // Once, because all lanes of a process have the same groups.
        bound_places::introduce(segment.control(rank));
        let arena = OwnArena::new(segment.clone(), rank, &own);
        let bells = match options.polls {
            true => PollBells::bind(&segment, rank).map_err(|error| ShmConnectError::System {
                what: "binding the socket that wakes this process",
                error,
            })?,
            false => PollBells::default(),
        };
        let lanes = ReservedLanes::reserve(&segment, rank, options.lanes);
        if let Some(loader) = loader {
            connect::tell_costs(&segment, loader);
        }
        bootstrap.fence().map_err(ShmConnectError::Bootstrap)?;
        let copies = Copies::new(Arc::new(connect::costs(&segment)));
        let same_arithmetic = connect::same_arithmetic(&segment);
        let groups = bound_places::of_job(&segment);
        if let Some(own) = groups.as_ref().map(|groups| groups[rank]) {
            copies.set_groups(own);
        }
        lanes.agree(&segment);
        // SAFETY: every rank connects once, so each end of each box has only one user. The peers keep `segment`.
        let peers = unsafe { ShmPeers::of_job(&segment, rank, own) };
        Ok(Shm {
            rank,
            counters,
            copies,
            same_arithmetic,
            groups,
            peers,
            turn: PollTurn::default(),
            backlogs: BackloggedPeers::default(),
            immediates_seen: Cell::new(0),
            datagrams: ShmDatagrams::default(),
            arena,
            options,
            fault: FirstFault::default(),
            bells,
            watch: OnceCell::new(),
            lanes,
            _probe: probe,
            segment,
        })
    }

    /// Returns the policy of waiting on this machine. It depends on the number of ranks, and on the number of processors that they
    /// may use within the control group's quota.
    pub fn policy(&self) -> WaitPolicy {
        WaitPolicy::for_ranks(self.peers.own().len(), self.processors())
    }

    /// Returns the number of processes that share memory with this process, including this process and processes of other jobs.
    pub fn processes(&self) -> usize {
        (0..self.peers.end()).filter(|&peer| self.peers.has(peer)).count()
    }

    /// Returns the processors on which the threads of this rank should stay while threads take turns on processors. Returns `None` if the
    /// ranks may use different processors, if a quota allows fewer processors, or if there is only one processor.
    pub fn own_processors(&self) -> Option<Box<[usize]>> {
        processors::own(&self.segment, self.rank)
    }

    /// For tests: makes the ranks count as ranks that stay in `groups`. All ranks pass the same groups before they communicate.
    pub fn assume_groups(&mut self, groups: Vec<ProcessorGroups>) {
        self.groups = Some(groups.into());
    }

    /// Returns the number of bytes that this process has allocated for its peers to reach.
    pub fn allocated(&self) -> u64 {
        self.arena.used()
    }

    /// Returns the number of processors for all ranks of this machine together, at least 1.
    pub fn processors(&self) -> usize {
        processors::count(&self.segment)
    }

    /// Returns the descriptor that becomes readable when a peer rings for a sleeper of this process. It exists only with
    /// [`ShmOptions::polls`]. The descriptor does not block, and the thread that sleeps on it empties it. The doorbell of
    /// [`Fabric::sleeper`] must be armed.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.bells.descriptor(SleepingPart::Main)
    }

    /// Returns the descriptor for the doorbell of [`FabricExt::helper`].
    pub fn helper_descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.bells.descriptor(SleepingPart::Helper)
    }

    pub(crate) fn own(&self) -> &RankControl {
        self.segment.control(self.rank)
    }

    /// Ends all waits with `fault`. If there was an earlier fault, that fault stays.
    #[cold]
    pub(crate) fn fail(&self, fault: Fault) {
        self.fault.set(fault);
    }

    pub(crate) fn complete(&self, done: Completion) {
        if let Some(counter) = done {
            self.counters.add(counter, 1);
        }
    }
}
