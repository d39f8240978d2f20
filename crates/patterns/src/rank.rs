//! One rank of a pattern: its communicator, its buffers, its timer.

mod together;

use crate::data::{self, PayloadBuffer};
use crate::error::PatternError;
use crate::laps::Laps;
use crate::plan::{PatternPlan, PayloadPresence};
use std::rc::Rc;
use together::PatternMeeting;
use weft_collective::{CollectiveKind, Selection, SelectionKey};
use weft_datatype::{Basic, Predefined, Type};
use weft_fabric::wait::WaitPolicy;
use weft_fabric::{Fabric, FabricExt, Sge};
use weft_p2p::{ProtocolLimits, SendMode};
use weft_process::{Active, Buffer, Comm, Destination, Engine, Group, Origin};

/// State that all ranks of a run in one thread share. Cheap to clone.
#[derive(Clone)]
pub struct PatternWorld(Rc<Shared>);

struct Shared {
    plan: PatternPlan,
    everybody: Group,
    byte: Type,
    int: Type,
    on_lap: Option<Box<dyn Fn()>>,
}

impl PatternWorld {
    /// Creates a world. Errors: [`PatternError::Refused`] if the parameters do not fit together.
    pub fn new(plan: PatternPlan) -> Result<PatternWorld, PatternError> {
        PatternWorld::with(plan, None)
    }

    /// Creates a world with a function that rank 0 calls at the start of each repetition, measured or not, to show the progress of
    /// a long run.
    pub fn watched(
        plan: PatternPlan,
        on_lap: impl Fn() + 'static,
    ) -> Result<PatternWorld, PatternError> {
        PatternWorld::with(plan, Some(Box::new(on_lap)))
    }

    fn with(
        plan: PatternPlan,
        on_lap: Option<Box<dyn Fn()>>,
    ) -> Result<PatternWorld, PatternError> {
        plan.check()?;
        let everybody = Group::new((0..plan.ranks as u32).collect::<Vec<_>>());
        let types = Predefined::new();
        let (byte, int) = (types.of(Basic::BYTE).clone(), types.of(Basic::INT).clone());
        Ok(PatternWorld(Rc::new(Shared { plan, everybody, byte, int, on_lap })))
    }

    /// Returns the plan, which was checked when the world was created.
    pub fn plan(&self) -> &PatternPlan {
        &self.0.plan
    }
}

/// A rank that runs a pattern.
pub struct PatternRank<F: Fabric> {
    world: PatternWorld,
    pub(crate) engine: Rc<Engine<F>>,
    pub(crate) comm: Rc<Comm<F>>,
    /// Communicator for all operations except the measured operations. It has its own sequence numbers and algorithms.
    pub(crate) aside: Rc<Comm<F>>,
    pub(crate) meeting: PatternMeeting,
}

impl<F: Fabric> PatternRank<F> {
    /// Creates the rank of `fabric`, with its engine and communicators.
    ///
    /// # Panics
    /// If the number of ranks of the fabric differs from that of the plan.
    pub fn new(
        fabric: F,
        policy: WaitPolicy,
        limits: ProtocolLimits,
        world: &PatternWorld,
    ) -> PatternRank<F> {
        assert_eq!(fabric.size(), world.plan().ranks, "ranks of the fabric and of the plan");
        let engine = Engine::new(fabric, policy, limits);
        let comm = Comm::world_of(&engine, world.0.everybody.clone());
        let aside = comm.nonblocking_context().clone();
        PatternRank {
            world: world.clone(),
            engine,
            comm,
            aside,
            meeting: PatternMeeting::default(),
        }
    }

    /// Makes the measured communicator choose by `selection`, where the plan names no algorithm.
    pub fn choose_by(&self, selection: Rc<Selection>) {
        self.comm.select(selection);
    }

    /// Returns the plan, which is the same for all ranks of the world.
    pub fn plan(&self) -> &PatternPlan {
        self.world.plan()
    }

    /// Makes progress on operations of other ranks that need this rank.
    pub fn progress(&self) {
        if self.plan().about.bare {
            self.engine.endpoint().fabric().progress();
        } else {
            self.engine.progress();
        }
    }

    // ---- building blocks of patterns ----------------------------------------------------------

    pub(crate) fn me(&self) -> usize {
        self.comm.rank()
    }

    pub(crate) fn size(&self) -> usize {
        self.comm.size()
    }

    pub(crate) fn fabric(&self) -> &F {
        self.engine.endpoint().fabric()
    }

    /// Makes the communicator use the plan's algorithm. Errors: [`PatternError::Refused`] with the reason if the algorithm cannot
    /// serve this operation.
    pub(crate) fn select(&self, operation: CollectiveKind) -> Result<(), PatternError> {
        let Some(choice) = self.plan().algorithm.choice else { return Ok(()) };
        let (ranks, bytes, site) = (self.size(), self.plan().bytes, self.comm.site());
        let element = if operation == CollectiveKind::Allreduce { 4 } else { 1 };
        let case = SelectionKey { ranks, bytes, element, commutes: true, equal: true, site };
        let name = choice.algorithm.name;
        let why = |why: String| PatternError::Refused(format!("{name}: {why}"));
        choice.algorithm.eligible(&case).map_err(why)?;
        let mut selection = Selection::clone(&self.comm.selection());
        selection.ask(operation, Some(choice));
        self.comm.select(Rc::new(selection));
        Ok(())
    }

    /// Returns a buffer with real payload, or with only a size, as the plan requires.
    pub(crate) fn data(&self, len: usize) -> PayloadBuffer {
        match self.plan().payload {
            PayloadPresence::Real => self.real(len),
            PayloadPresence::Phantom => PayloadBuffer::phantom(len),
        }
    }

    /// Returns a buffer with real payload for any plan.
    pub(crate) fn real(&self, len: usize) -> PayloadBuffer {
        PayloadBuffer::real(self.engine.endpoint().staging().take(len))
    }

    /// Returns memory as a buffer of bytes for a communicator.
    pub(crate) fn bytes(&self, data: Sge) -> Buffer {
        Buffer::over(data, self.world.0.byte.clone())
    }

    /// Returns `count` blocks of a buffer.
    pub(crate) fn blocks(&self, data: &PayloadBuffer, count: usize) -> Vec<Buffer> {
        let bytes = self.plan().bytes;
        (0..count).map(|i| self.bytes(data.block(i, bytes))).collect()
    }

    /// Returns memory as a buffer of integers for a communicator.
    pub(crate) fn integers(&self, data: Sge) -> Buffer {
        Buffer::over(data, self.world.0.int.clone())
    }

    pub(crate) fn isend(&self, data: Sge, to: usize, tag: i32) -> Active {
        self.comm.isend(&self.bytes(data), Destination::Rank(to), tag, SendMode::Standard)
    }

    pub(crate) fn irecv(&self, data: Sge, from: usize, tag: i32) -> Active {
        self.comm.irecv(&self.bytes(data), Origin::Rank(from), Some(tag))
    }

    pub(crate) async fn send(&self, data: Sge, to: usize, tag: i32) -> Result<(), PatternError> {
        self.finish(self.isend(data, to, tag)).await
    }

    pub(crate) async fn recv(&self, data: Sge, from: usize, tag: i32) -> Result<(), PatternError> {
        self.finish(self.irecv(data, from, tag)).await
    }

    pub(crate) async fn finish(&self, operation: Active) -> Result<(), PatternError> {
        self.comm.finished(operation).await?;
        Ok(())
    }

    pub(crate) async fn finish_all(
        &self,
        operations: impl IntoIterator<Item = Active>,
    ) -> Result<(), PatternError> {
        for operation in operations {
            self.finish(operation).await?;
        }
        Ok(())
    }

    /// Fills the data that this rank sends in repetition `lap`, if the plan compares this repetition.
    pub(crate) fn fill(&self, lap: usize, to: Sge, key: u64) {
        if self.plan().compares(lap) {
            data::fill(to, key);
        }
    }

    /// Compares the data that arrived in repetition `lap`, if the plan compares this repetition.
    pub(crate) fn compare(
        &self,
        lap: usize,
        what: &'static str,
        right: impl FnOnce() -> bool,
    ) -> Result<(), PatternError> {
        if !self.plan().compares(lap) || right() {
            Ok(())
        } else {
            Err(PatternError::Wrong { rank: self.me(), lap, what })
        }
    }

    pub(crate) fn watch(&self) -> LapTimer<'_, F> {
        LapTimer { rank: self, next: 0, laps: Laps::default() }
    }
}

/// Counter of repetitions, which measures the time of each measured repetition.
pub(crate) struct LapTimer<'r, F: Fabric> {
    rank: &'r PatternRank<F>,
    next: usize,
    laps: Laps,
}

impl<F: Fabric> LapTimer<'_, F> {
    /// Returns the number of the next repetition.
    pub fn lap(&mut self) -> Option<usize> {
        let lap = self.next;
        self.next += 1;
        if lap >= self.rank.plan().laps() {
            return None;
        }
        if let (0, Some(tell)) = (self.rank.me(), &self.rank.world.0.on_lap) {
            tell();
        }
        Some(lap)
    }

    fn counts(&self) -> bool {
        self.rank.plan().measures(self.next - 1)
    }

    pub fn start(&mut self) {
        if self.counts() {
            self.laps.starts.push(self.rank.fabric().now());
        }
    }

    pub fn end(&mut self) {
        if self.counts() {
            self.laps.ends.push(self.rank.fabric().now());
        }
    }

    pub fn laps(self) -> Result<Laps, PatternError> {
        Ok(self.laps)
    }
}
