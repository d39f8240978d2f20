//! Runs a program on this rank.

mod collectives;
mod comms;
mod completion;
mod epochs;
mod handles;
mod messages;
mod windows;

use crate::buffer::{GuardedBuffer, Piece};
use crate::generate::{Recipe, key};
use crate::mpi::{self, Array, CStatus, CountWidth, Mpi};
use crate::oracle::{BufferSide, Oracle, pieces};
use crate::program::{CallForm, Item, ItemPhase, Message, ProgramStep, RandomProgram, Taking};
use crate::reduce::{Spacing, UserOp};
use crate::types::SharedType;
use crate::watch::Watch;
use fastrand::Rng;
use std::collections::HashMap;

type Outcome<T = ()> = Result<T, String>;

/// Memory in which a byte is spoilt on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Plant {
    /// In a buffer of a message.
    Message,
    /// In this rank's part of a window.
    Window,
    /// In what a one-sided operation fetched.
    Fetched,
}

/// State that lasts longer than a program.
pub struct RankSession<'a> {
    pub mpi: &'a Mpi,
    /// Rank in MPI_COMM_WORLD.
    pub me: usize,
    pub watch: &'a Watch,
    /// If given, spoils one byte of the next memory of this kind on this rank.
    pub plant: Option<Plant>,
    /// True to complete requests only by MPI_Waitall, not in all ways that MPI has.
    pub waitall: bool,
    operators: HashMap<(UserOp, Spacing, CountWidth), usize>,
    /// True if all ranks are on one node. `None` until that was asked.
    one_node: Option<bool>,
}

/// State that an item needs until its phase ends.
#[derive(Default)]
struct Live {
    send: Option<GuardedBuffer>,
    recv: Option<GuardedBuffer>,
    /// Counts and displacements, which nonblocking calls may read until they are complete.
    arrays: Vec<Array>,
    /// Lists of datatypes, for the same reason.
    handles: Vec<Box<[usize]>>,
    packed_send: Vec<u8>,
    packed_recv: Vec<u8>,
    /// Persistent requests: that of the send (or the collective), and that of the receive.
    persistent: [Option<usize>; 2],
    /// Status of the receive.
    status: Option<CStatus>,
}

/// A request to complete.
struct PendingRequest {
    request: usize,
    item: usize,
    /// True if the status describes a received message.
    receives: bool,
}

/// A phase under way on this rank.
struct PhaseRun<'s, 'a> {
    session: &'s mut RankSession<'a>,
    program: &'s RandomProgram,
    phase: &'s ItemPhase,
    comms: &'s [usize],
    rng: Rng,
    types: handles::Handles,
    /// Datatypes of absolute addresses.
    absolute: Vec<usize>,
    live: Vec<Live>,
    pending: Vec<PendingRequest>,
    /// Items in the order in which their receives were posted.
    posted: Vec<usize>,
    /// Persistent collectives to start after all items.
    deferred: Vec<(usize, usize)>,
    /// Memory for buffered sends.
    attached: Vec<u64>,
    /// Seed for the contents of this round.
    key: u64,
}

impl<'a> RankSession<'a> {
    pub fn new(mpi: &'a Mpi, me: usize, watch: &'a Watch) -> RankSession<'a> {
        RankSession {
            mpi,
            me,
            watch,
            plant: None,
            waitall: false,
            operators: HashMap::new(),
            one_node: None,
        }
    }

    /// Runs a program. An error says what was wrong on this rank.
    pub fn run(&mut self, recipe: &Recipe, program: &RandomProgram) -> Outcome {
        let mut handles = vec![mpi::COMM_NULL; program.comms.len()];
        handles[0] = mpi::COMM_WORLD;
        let mut windows: Vec<Option<windows::Open>> = Vec::new();
        windows.resize_with(program.windows.len(), || None);
        for (i, step) in program.steps.iter().enumerate() {
            self.watch.at(recipe.number, i, 0);
            let result = match step {
                ProgramStep::Make(make) => self.make(program, make, &mut handles),
                ProgramStep::Free(id) => self.free(&mut handles[*id]),
                ProgramStep::Phase(phase) => {
                    let parts = [recipe.seed, recipe.number, recipe.ranks as u64, i as u64, 2];
                    self.phase(program, phase, &handles, key(&parts))
                }
                ProgramStep::Open(id) => {
                    let window = &program.windows[*id];
                    let seat = program.comms[window.comm].seat(self.me);
                    let parts = [recipe.seed, recipe.number, recipe.ranks as u64, i as u64, 3];
                    self.open(window, seat, handles[window.comm], key(&parts))
                        .map(|open| windows[*id] = open)
                }
                ProgramStep::Epoch(epoch) => {
                    let parts = [recipe.seed, recipe.number, recipe.ranks as u64, i as u64, 4];
                    match &mut windows[epoch.window] {
                        Some(open) => {
                            let window = &program.windows[epoch.window];
                            self.epoch(epoch, window, open, key(&parts))
                        }
                        None => Ok(()),
                    }
                }
                ProgramStep::Close(id) => match windows[*id].take() {
                    Some(open) => self.close_window(open, &program.windows[*id]),
                    None => Ok(()),
                },
            };
            result.map_err(|e| format!("step {i}: {e}"))?;
        }
        handles[1..].iter_mut().try_for_each(|handle| self.free(handle))
    }

    /// Frees the state that lasted longer than a program.
    pub fn close(&mut self) -> Outcome {
        let mut operators = std::mem::take(&mut self.operators).into_values();
        operators.try_for_each(|handle| self.mpi.free("MPI_Op_free", handle))
    }

    fn free(&mut self, handle: &mut usize) -> Outcome {
        if *handle == mpi::COMM_NULL {
            return Ok(());
        }
        let freed = std::mem::replace(handle, mpi::COMM_NULL);
        self.mpi.free("MPI_Comm_free", freed)
    }

    fn phase(
        &mut self,
        program: &RandomProgram,
        phase: &ItemPhase,
        comms: &[usize],
        base: u64,
    ) -> Outcome {
        let rng = Rng::with_seed(key(&[base, self.me as u64]));
        let live = phase.items.iter().map(|_| Live::default()).collect();
        let mut stage = PhaseRun {
            session: self,
            program,
            phase,
            comms,
            rng,
            types: handles::Handles::default(),
            absolute: Vec::new(),
            live,
            pending: Vec::new(),
            posted: Vec::new(),
            deferred: Vec::new(),
            attached: Vec::new(),
            key: base,
        };
        let buffered = stage.attach()?;
        for round in 0..phase.rounds {
            stage.key = key(&[base, round]);
            stage.round().map_err(|e| format!("round {round}: {e}"))?;
        }
        stage.end()?;
        if buffered { stage.detach() } else { Ok(()) }
    }
}

impl PhaseRun<'_, '_> {
    fn mpi(&self) -> &Mpi {
        self.session.mpi
    }

    /// Returns this process's seat in the item's communicator.
    fn rank(&self, item: usize) -> Option<usize> {
        let comm = match &self.phase.items[item] {
            Item::Message(m) => m.comm,
            Item::Shift(s) => s.comm,
            Item::Collective(c) => c.comm,
        };
        self.program.comms[comm].seat(self.session.me)
    }

    fn oracle(&self, item: usize) -> Oracle<'_> {
        Oracle { item: &self.phase.items[item], key: key(&[self.key, item as u64]) }
    }

    fn named<T>(&self, item: usize, result: Outcome<T>) -> Outcome<T> {
        result.map_err(|e| format!("item {item}: {e}\n  {}", self.phase.items[item]))
    }

    fn round(&mut self) -> Outcome {
        let phase = self.phase;
        self.posted.clear();
        for item in 0..phase.items.len() {
            if let Some(rank) = self.rank(item) {
                self.prepare(item, rank);
            }
        }
        let me = |stage: &Self, i: usize, m: &Message| {
            m.early && stage.rank(i) == m.to && m.to.is_some()
        };
        let mut early: Vec<usize> = (0..phase.items.len())
            .filter(|i| matches!(&phase.items[*i], Item::Message(m) if me(self, *i, m)))
            .collect();
        self.rng.shuffle(&mut early);
        for item in early {
            if let Item::Message(m) = &phase.items[item] {
                let result = self.receive(item, m);
                self.named(item, result)?;
            }
        }
        if phase.ready {
            self.mpi().call("MPI_Barrier", &[mpi::COMM_WORLD])?;
        }
        for item in 0..phase.items.len() {
            self.session.watch.item(item);
            let Some(rank) = self.rank(item) else { continue };
            let result = match &phase.items[item] {
                Item::Message(m) => self.message(item, m, rank),
                Item::Shift(s) => self.shift(item, s, rank),
                Item::Collective(c) => self.collective(item, c, rank),
            };
            self.named(item, result)?;
        }
        let mut deferred = std::mem::take(&mut self.deferred);
        self.rng.shuffle(&mut deferred);
        for (item, request) in deferred {
            let result = self.start(PendingRequest { request, item, receives: false });
            self.named(item, result)?;
        }
        if phase.free_early {
            self.free_types()?;
        }
        self.session.watch.item(phase.items.len());
        self.complete()?;
        self.check()?;
        for comm in &phase.closing {
            if self.comms[*comm] != mpi::COMM_NULL {
                self.mpi().call("MPI_Barrier", &[self.comms[*comm]])?;
            }
        }
        Ok(())
    }

    /// Fills buffers with the contents of this round.
    fn prepare(&mut self, item: usize, rank: usize) {
        let kind = &self.phase.items[item];
        for side in [BufferSide::Send, BufferSide::Recv] {
            let pieces = pieces(kind, rank, side);
            if pieces.is_empty() {
                continue;
            }
            let image = self.oracle(item).initial(rank, side);
            let live = &mut self.live[item];
            let place = if side == BufferSide::Send { &mut live.send } else { &mut live.recv };
            place.get_or_insert_with(|| GuardedBuffer::new(pieces)).fill(&image);
        }
        self.live[item].status = None;
    }

    /// Returns the handle of a datatype, which is made when it is first needed.
    fn datatype(&mut self, ty: &SharedType) -> Outcome<usize> {
        self.types.get(self.session.mpi, ty)
    }

    fn free_types(&mut self) -> Outcome {
        self.types.free(self.session.mpi)?;
        for handle in std::mem::take(&mut self.absolute) {
            self.mpi().free("MPI_Type_free", handle)?;
        }
        Ok(())
    }

    fn end(&mut self) -> Outcome {
        let persistent: Vec<usize> = self
            .live
            .iter_mut()
            .flat_map(|l| std::mem::take(&mut l.persistent))
            .flatten()
            .collect();
        for request in persistent {
            self.mpi().free("MPI_Request_free", request)?;
        }
        self.free_types()
    }

    /// Compares all buffers of this rank, byte for byte.
    fn check(&mut self) -> Outcome {
        let matched = self.matched()?;
        for item in 0..self.phase.items.len() {
            let Some(rank) = self.rank(item) else { continue };
            for side in [BufferSide::Send, BufferSide::Recv] {
                let live = &mut self.live[item];
                let place = if side == BufferSide::Send { &mut live.send } else { &mut live.recv };
                let Some(mut buffer) = place.take() else { continue };
                if self.session.plant == Some(Plant::Message) && self.plant(item, &mut buffer) {
                    self.session.plant = None;
                }
                let by = matched.get(&item).map(|by| self.oracle(*by));
                let expected = self.oracle(item).expected(rank, side, by);
                let mut image = expected.image;
                for piece in &expected.open {
                    let found = crate::buffer::Image {
                        bytes: buffer.bytes().to_vec(),
                        origin: image.origin,
                    };
                    image.unpack(piece, &found.pack(piece));
                }
                let pieces = pieces(&self.phase.items[item], rank, side);
                let result = compare(buffer.bytes(), &image, pieces);
                let live = &mut self.live[item];
                *if side == BufferSide::Send { &mut live.send } else { &mut live.recv } =
                    Some(buffer);
                self.named(item, result.map_err(|e| format!("{side:?} buffer: {e}")))?;
            }
        }
        Ok(())
    }

    /// Spoils a byte, and reports it. Never a byte that the standard leaves undefined.
    fn plant(&mut self, item: usize, buffer: &mut GuardedBuffer) -> bool {
        if matches!(self.phase.items[item], Item::Collective(_)) {
            return false;
        }
        let at = self.rng.usize(..buffer.bytes().len());
        buffer.bytes()[at] ^= 0x10;
        eprintln!("planted: item {item}, byte {at} of the buffer with its guards");
        true
    }
}

/// Describes the first byte that differs.
fn compare(found: &[u8], expected: &crate::buffer::Image, pieces: &[Piece]) -> Outcome {
    let Some(at) = found.iter().zip(&expected.bytes).position(|(a, b)| a != b) else {
        return Ok(());
    };
    let wrong = found.iter().zip(&expected.bytes).filter(|(a, b)| a != b).count();
    let offset = at as i64 - expected.origin;
    let holds = |p: &Piece| {
        let extent = p.ty.extent();
        let inside = |i: i64, d: i64| {
            let begin = p.at + i * extent + d;
            begin..begin + 1
        };
        (0..p.count).find(|i| {
            p.ty.runs.iter().any(|(d, n)| {
                let begin = inside(*i, *d).start;
                (begin..begin + *n as i64).contains(&offset)
            })
        })
    };
    let place = pieces.iter().enumerate().find_map(|(i, p)| Some((i, holds(p)?)));
    let place = match place {
        Some((piece, element)) => format!("data, element {element} of piece {piece}"),
        None => "no data: a gap, or beside the buffer".to_owned(),
    };
    Err(format!(
        "first wrong byte at {offset} from its address (byte {at} with its guards; {place}): {:#04x}, \
         expected {:#04x}; {wrong} bytes differ",
        found[at], expected.bytes[at]
    ))
}

/// Returns true if the receive is a request.
fn immediate(taking: Taking) -> bool {
    matches!(taking, Taking::Receive(CallForm::Immediate | CallForm::Persistent))
}
