//! Windows: how they are made, what they keep, how they end (MPI 5.0, section 12.2).

use crate::atomics::Atomics;
use crate::attach::Attached;
use crate::control::Control;
use crate::epoch::Epochs;
use crate::exposed::{self, Exposed};
use crate::fence::{Arrivals, Design};
use crate::ordered_flag::{Ending, RAILS};
use crate::queue::Order;
use crate::target::Target;
use crate::turns::Turns;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll};
use weft_datatype::{Basic, Predefined, Type};
use weft_fabric::{Fabric, FabricExt, Fault, Region, Sge};
use weft_p2p::Endpoint;
use weft_process::{Buffer, Comm, Error, Executor, Spread, Task, class};

/// By which call a window was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavor {
    /// MPI_Win_create: each rank exposes memory that the program owns.
    Create,
    /// MPI_Win_allocate: the window owns its memory until it is freed.
    Allocate,
    /// MPI_Win_allocate_shared: the window owns memory that all its ranks see.
    Shared,
    /// MPI_Win_create_dynamic: memory is attached and detached later.
    Dynamic,
}

/// What a rank brings to a new window.
#[derive(Debug, Clone, Copy)]
pub enum Memory {
    /// The program's own (MPI_Win_create).
    Own(Sge),
    /// So many bytes, to be allocated; aligned to `align`, a power of two.
    Allocate {
        /// Bytes of this rank; ranks may differ.
        len: usize,
        /// Bytes.
        align: usize,
    },
    /// The same in memory that all ranks see, one after the other if `contiguous`.
    Share {
        /// Bytes of this rank; ranks may differ.
        len: usize,
        /// Bytes, a power of two: of the whole if `contiguous`, else of each rank's part.
        align: usize,
        /// The parts of all ranks make one piece, without gaps between them.
        contiguous: bool,
    },
    /// Nothing yet (MPI_Win_create_dynamic).
    Nothing,
}

impl Memory {
    /// Bytes of this rank.
    fn len(&self) -> usize {
        match self {
            Memory::Own(memory) => memory.len(),
            Memory::Allocate { len, .. } | Memory::Share { len, .. } => *len,
            Memory::Nothing => 0,
        }
    }

    fn flavor(&self) -> Flavor {
        match self {
            Memory::Own(_) => Flavor::Create,
            Memory::Allocate { .. } => Flavor::Allocate,
            Memory::Share { .. } => Flavor::Shared,
            Memory::Nothing => Flavor::Dynamic,
        }
    }
}

/// How a window works; the same at all its ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// How [`Window::fence`] learns that operations are over.
    pub fence: Design,
    /// When puts and gets are issued to the fabric.
    pub order: Order,
    /// How a target learns that an access epoch (MPI_Win_start to MPI_Win_complete) is over.
    pub ending: Ending,
    /// Whether adapters or the target's guard make accumulates exclude each other.
    pub atomics: Atomics,
}

/// A window of this process. It has a communicator of its own, so that nothing meets the program's messages.
pub struct Window<F: Fabric> {
    comm: Rc<Comm<F>>,
    flavor: Flavor,
    memory: Sge,
    /// What the fabric lent for it.
    region: Option<Region>,
    pub(crate) shown: Box<[Exposed]>,
    pub(crate) targets: Box<[Target]>,
    pub(crate) control: Control<F>,
    pub(crate) epochs: Epochs,
    pub(crate) attached: Attached,
    pub(crate) options: Options,
    pub(crate) arrivals: Arrivals,
    /// All ranks see memory of the fabric, and share processors.
    pub(crate) one_node: bool,
    /// This process's operations that need a guard, and those that ask for a lock of MPI_Win_lock_all.
    pub(crate) guards: Turns<F>,
    pub(crate) joins: Turns<F>,
    /// Tags of answers ([`crate::serve`]).
    pub(crate) answers: Cell<i32>,
    service: RefCell<Option<Task>>,
    /// Set by the program; empty until then.
    pub name: RefCell<String>,
}

impl<F: Fabric> Window<F> {
    /// Makes a window of the ranks of `comm`, which all call it. `unit`: this rank's displacement unit, in
    /// bytes. One broadcast for the communicator, an allgather of 96 bytes a rank, and one of 8 where
    /// memory is the program's own.
    pub async fn create(
        comm: &Comm<F>,
        brings: Memory,
        unit: usize,
        options: Options,
    ) -> Result<Rc<Window<F>>, Error> {
        let comm = comm.dup().await?;
        let endpoint = comm.engine().endpoint().clone();
        let fabric = endpoint.fabric();
        let (size, me) = (comm.size(), comm.rank());
        let peers = comm.group().ranks().clone();
        let one_node = peers.iter().all(|&peer| {
            let able = fabric.capabilities(peer as usize);
            able.coherent_atomics && able.synchronous
        });
        let rails = peers.iter().map(|&peer| fabric.capabilities(peer as usize).rails);
        let rails = rails.max().unwrap_or(1).clamp(1, RAILS);
        // What fails here fails for all: they learn of it together.
        let made = match Mine::of(&comm, &brings, &endpoint).await {
            Ok(mine) => mine.with(Control::new(&endpoint, size, rails, one_node), fabric),
            Err(error) => Err(error),
        };
        let immediate = comm.engine().new_immediates(2);
        let words = match &made {
            Ok((mine, control)) => Exposed {
                memory: mine.at,
                control: control.at(),
                len: mine.memory.len() as u64,
                unit: unit as u64,
                holder: mine.holder.unwrap_or(me) as u64,
                immediate,
                within: mine.within,
                rails,
                // What the target says counts, so all its origins find the same.
                adapters: brings.flavor() == Flavor::Allocate
                    && !one_node
                    && options.atomics.by_adapters(mine.memory.len()),
            }
            .encode(),
            Err(_) => exposed::nothing(brings.len()),
        };
        let told = match gather(&comm, words).await {
            Ok(told) => told,
            Err(error) => {
                if let Ok((mine, _)) = made {
                    mine.give_back(fabric);
                }
                return Err(error);
            }
        };
        let all: Option<Box<[Exposed]>> =
            told.iter().map(|&words| Exposed::decode(words, size)).collect();
        let (mine, control) = made?;
        let Some(all) = all else {
            mine.give_back(fabric);
            return Err(failed_elsewhere(&told, me));
        };
        let window = Rc::new(Window {
            flavor: brings.flavor(),
            memory: mine.memory,
            region: mine.region,
            shown: all,
            targets: (0..size).map(|_| Target::default()).collect(),
            control,
            epochs: Epochs::default(),
            attached: Attached::default(),
            options,
            arrivals: Arrivals::new(immediate),
            one_node,
            guards: Turns::new(&comm),
            joins: Turns::new(&comm),
            answers: Cell::new(0),
            service: RefCell::new(None),
            name: RefCell::default(),
            comm,
        });
        window.begin_service().await?;
        Ok(window)
    }

    /// Where some rank can be reached by its own process alone, all that may be begin to serve.
    async fn begin_service(self: &Rc<Self>) -> Result<(), Error> {
        if !self.one_node {
            // Connections are made by both ends when they are first needed, and this one may compute then.
            self.comm.engine().want_helper();
        }
        // All know that all are reached: no need to ask.
        if matches!(self.flavor, Flavor::Allocate | Flavor::Shared) {
            return Ok(());
        }
        let needs = (0..self.shown.len()).any(|rank| self.needs_service(rank));
        let all = gather(&self.comm, [u64::from(needs)]).await?;
        if all.iter().all(|&[needs]| needs == 0) {
            return Ok(());
        }
        let engine = self.comm.engine();
        let task = engine.spawn_by(Executor::Anybody, self.clone().serve());
        *self.service.borrow_mut() = Some(task);
        engine.want_helper();
        Ok(())
    }

    fn needs_service(&self, rank: usize) -> bool {
        let reachable = self.shown[rank].within && self.flavor != Flavor::Dynamic;
        rank != self.rank()
            && !reachable
            && !self.endpoint().fabric().capabilities(self.peer(rank)).direct
    }

    /// Errors: RMA_SYNC while an epoch is open.
    pub fn may_free(&self) -> Result<(), Error> {
        match self.open_epochs() {
            Some(why) => Err(self.sync(format_args!("MPI_Win_free: {why}"))),
            None => Ok(()),
        }
    }

    /// Ends the window, once all ranks do. Errors: RMA_SYNC while an epoch is open.
    pub async fn free(&self) -> Result<(), Error> {
        self.may_free()?;
        self.comm.barrier().await?;
        let service = self.service.borrow_mut().take();
        if let Some(task) = service {
            self.stop_serving().await?;
            let over =
                |_: &mut Context<'_>| if task.is_over() { Poll::Ready(()) } else { Poll::Pending };
            std::future::poll_fn(over).await;
            task.result().unwrap_or(Ok(()))?;
        }
        self.comm.close().await?;
        self.withdraw_attached();
        let fabric = self.endpoint().fabric();
        if let Some(region) = self.region {
            fabric.withdraw(region);
        }
        for target in &self.targets {
            if let Some(&counter) = target.done.get() {
                fabric.counters().free(counter);
            }
        }
        Ok(())
    }

    /// The communicator of the window's own.
    pub fn comm(&self) -> &Rc<Comm<F>> {
        &self.comm
    }

    /// Decides what [`Window::memory`] may be and whether memory can be attached.
    pub fn flavor(&self) -> Flavor {
        self.flavor
    }

    /// This rank's part; of a dynamic window nothing.
    pub fn memory(&self) -> Sge {
        self.memory
    }

    /// This process, as the window's communicator counts.
    pub fn rank(&self) -> usize {
        self.comm.rank()
    }

    /// Number of ranks of the window.
    pub fn size(&self) -> usize {
        self.shown.len()
    }

    /// Length of a rank's part and its displacement unit, in bytes.
    pub fn part(&self, rank: usize) -> (usize, usize) {
        (self.shown[rank].len as usize, self.shown[rank].unit as usize)
    }

    /// A rank's part as this process sees it (MPI_Win_shared_query).
    pub fn seen_part(&self, rank: usize) -> Option<Sge> {
        match self.reach(rank) {
            crate::place::Reach::Seen(memory) => Some(memory),
            _ => None,
        }
    }

    pub(crate) fn endpoint(&self) -> &Rc<Endpoint<F>> {
        self.comm.engine().endpoint()
    }

    /// The process of a rank in the fabric.
    #[inline]
    pub(crate) fn peer(&self, rank: usize) -> usize {
        self.comm.group().ranks()[rank] as usize
    }
}

/// This rank's memory, made.
struct Mine {
    memory: Sge,
    at: weft_fabric::RemoteAddr,
    region: Option<Region>,
    holder: Option<usize>,
    within: bool,
}

impl Mine {
    async fn of<F: Fabric>(
        comm: &Comm<F>,
        brings: &Memory,
        endpoint: &Rc<Endpoint<F>>,
    ) -> Result<Mine, Error> {
        let fabric = endpoint.fabric();
        match *brings {
            Memory::Nothing => {
                let at = weft_fabric::RemoteAddr::default();
                Ok(Mine { memory: Sge::EMPTY, at, region: None, holder: None, within: false })
            }
            Memory::Own(memory) => {
                let within = fabric.lies_within(memory);
                let region = fabric.expose(memory)?;
                Ok(Mine { memory, at: region.remote, region: Some(region), holder: None, within })
            }
            Memory::Allocate { len, align } => {
                let region = fabric.allocate(padded(len, align)?)?;
                let skip = aligned(region.local, align);
                let (memory, at) = (region.local.part(skip, len), region.at(skip));
                Ok(Mine { memory, at, region: Some(region), holder: None, within: true })
            }
            Memory::Share { len, align, contiguous } => {
                Mine::shared(comm, endpoint, len, align, contiguous).await
            }
        }
    }

    /// Memory of rank 0 for all, or of each rank for itself.
    async fn shared<F: Fabric>(
        comm: &Comm<F>,
        endpoint: &Rc<Endpoint<F>>,
        len: usize,
        align: usize,
        contiguous: bool,
    ) -> Result<Mine, Error> {
        let fabric = endpoint.fabric();
        if !contiguous {
            let region = fabric.allocate_on_node(padded(len, align)?)?;
            let skip = aligned(region.local, align);
            let (memory, at) = (region.local.part(skip, len), region.at(skip));
            return Ok(Mine { memory, at, region: Some(region), holder: None, within: true });
        }
        let lens = gather(comm, [len as u64]).await?;
        let places: Vec<u64> = lens
            .iter()
            .scan(0u64, |end, &[len]| {
                let at = *end;
                *end = end.saturating_add(len);
                Some(at)
            })
            .collect();
        let total = lens.iter().fold(0u64, |sum, &[len]| sum.saturating_add(len));
        let region = match comm.rank() {
            0 => usize::try_from(total)
                .map_err(|_| out_of_memory(total))
                .and_then(|total| Ok(fabric.allocate_on_node(padded(total, align)?)?)),
            _ => Err(out_of_memory(total)),
        };
        let start = match &region {
            Ok(region) => region.at(aligned(region.local, align)).words(),
            Err(_) => [0; 4],
        };
        // Only rank 0's counts: the others get it in one exchange with everybody's share of it.
        let [at, ..] = gather(comm, start).await?[..] else { return Err(out_of_memory(total)) };
        if at == [0; 4] {
            // The others see the same limits: so all can say which one it is.
            let why = |total| match fabric.allocate_on_node(total) {
                Err(fault) => fault.into(),
                Ok(region) => {
                    fabric.withdraw(region);
                    out_of_memory(total as u64)
                }
            };
            return Err(match region {
                Err(error) if comm.rank() == 0 => error,
                _ => usize::try_from(total).map_or_else(|_| out_of_memory(total), why),
            });
        }
        let holder = comm.group().ranks()[0] as usize;
        let at = weft_fabric::RemoteAddr::from_words(at).offset(places[comm.rank()]);
        // No bytes have a place, too: the others see it, and so does their owner.
        let memory = match fabric.shown(holder, at, len) {
            None if len == 0 => Some(Sge::EMPTY),
            seen => seen,
        };
        let Some(memory) = memory else {
            let what = "see memory of another process";
            return Err(Fault::unsupported(holder, what).into());
        };
        Ok(Mine { memory, at, region: region.ok(), holder: Some(0), within: true })
    }

    /// With control words; without them the memory is given back.
    fn with<F: Fabric>(
        self,
        control: Result<Control<F>, Fault>,
        fabric: &F,
    ) -> Result<(Mine, Control<F>), Error> {
        match control {
            Ok(control) => Ok((self, control)),
            Err(fault) => {
                self.give_back(fabric);
                Err(fault.into())
            }
        }
    }

    fn give_back<F: Fabric>(self, fabric: &F) {
        if let Some(region) = self.region {
            fabric.withdraw(region);
        }
    }
}

/// The error of a rank that has its part, where another one has none.
fn failed_elsewhere(told: &[[u64; exposed::WORDS]], me: usize) -> Error {
    let failed = |words: &[u64; exposed::WORDS]| Exposed::decode(*words, told.len()).is_none();
    let rank = told.iter().position(failed).unwrap_or(me);
    let text = format_args!(
        "rank {rank} could not make its part of the window, {} bytes; ask for less there, or start fewer \
         processes on its node",
        told[rank][0]
    );
    Error::new(class::NO_MEM, text)
}

fn out_of_memory(len: u64) -> Error {
    let text = format_args!(
        "no room for {len} bytes of memory that all ranks see, which the communicator's rank 0 allocates; ask for less, or \
         start fewer processes on a node"
    );
    Error::new(class::NO_MEM, text)
}

/// Memory of the fabric is aligned to so much.
const ALIGN: usize = 64;

fn padded(len: usize, align: usize) -> Result<usize, Error> {
    let extra = if align > ALIGN { align } else { 0 };
    // A length of 0 still has an address.
    len.max(1).checked_add(extra).ok_or_else(|| out_of_memory(u64::MAX))
}

fn aligned(memory: Sge, align: usize) -> usize {
    memory.ptr().addr().wrapping_neg() & (align.max(1) - 1)
}

pub(crate) fn named(basic: Basic) -> Type {
    Predefined::new().of(basic).clone()
}

/// Some words of every rank, on every rank.
async fn gather<F: Fabric, const N: usize>(
    comm: &Comm<F>,
    words: [u64; N],
) -> Result<Vec<[u64; N]>, Error> {
    let (size, len) = (comm.size(), 8 * N);
    let all = comm.engine().endpoint().staging().take(size * len);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    all.sge().part(comm.rank() * len, len).fill(&bytes);
    let first = Buffer::over(all.sge().part(0, len), named(Basic::BYTE));
    comm.allgather(None, Spread::Equal { first, ranks: size }).await?;
    let mut bytes = vec![0; size * len];
    all.sge().read(&mut bytes);
    let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    Ok((0..size).map(|rank| std::array::from_fn(|i| word(rank * len + 8 * i))).collect())
}
