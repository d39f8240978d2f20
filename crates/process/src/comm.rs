//! Communicators: a group, a rank, and matching spaces of their own (MPI 5.0, chapter 7).

use crate::collectives::Selection;
use crate::topology::{Edge, Topology};
use crate::{Attributes, Buffer, Engine, Error, Group, class};
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use weft_collective::{Board, Link, allgather, bcast};
use weft_fabric::{Fabric, Sge, Work};
use weft_p2p::Context;

/// Largest tag (attribute MPI_TAG_UB).
pub const TAG_UB: i32 = i32::MAX;

/// How two groups or communicators compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    Ident,
    Congruent,
    Similar,
    Unequal,
}

/// An intracommunicator of this process.
pub struct Comm<F: Fabric> {
    pub(crate) engine: Rc<Engine<F>>,
    id: u64,
    group: Group,
    rank: usize,
    sequence: Cell<u64>,
    /// Which algorithms it uses.
    pub selection: Cell<Selection>,
    /// Where the central algorithms meet.
    pub(crate) board: Rc<Board<F>>,
    pub(crate) shares_memory: OnceCell<bool>,
    pub name: RefCell<String>,
    pub attributes: RefCell<Attributes>,
    pub topology: RefCell<Option<Topology>>,
    /// The handle of its error handler; meaningful to the layer above.
    pub errhandler: Cell<usize>,
}

/// Contexts of the two communicators that every process has.
const WORLD: u64 = 1;
const SELF: u64 = 2;

impl<F: Fabric> Comm<F> {
    fn new(engine: &Rc<Engine<F>>, id: u64, group: Group, name: &str) -> Rc<Comm<F>> {
        let rank = group.rank_of(engine.rank() as u32).expect("a member makes the communicator");
        Rc::new(Comm {
            engine: engine.clone(),
            id,
            group,
            rank,
            sequence: Cell::new(0),
            selection: Cell::default(),
            board: Rc::default(),
            shares_memory: OnceCell::new(),
            name: RefCell::new(name.to_owned()),
            attributes: RefCell::default(),
            topology: RefCell::default(),
            errhandler: Cell::new(0),
        })
    }

    /// MPI_COMM_WORLD.
    pub fn world(engine: &Rc<Engine<F>>) -> Rc<Comm<F>> {
        let all: Vec<u32> = (0..engine.endpoint().fabric().size() as u32).collect();
        Comm::world_of(engine, Group::new(all))
    }

    /// MPI_COMM_WORLD, with the group of all ranks in their order given: processes of a simulation
    /// share one.
    pub fn world_of(engine: &Rc<Engine<F>>, all: Group) -> Rc<Comm<F>> {
        debug_assert_eq!(all.size(), engine.endpoint().fabric().size());
        Comm::new(engine, WORLD, all, "MPI_COMM_WORLD")
    }

    /// MPI_COMM_SELF.
    pub fn myself(engine: &Rc<Engine<F>>) -> Rc<Comm<F>> {
        let me = engine.rank() as u32;
        Comm::new(engine, SELF, Group::new(vec![me]), "MPI_COMM_SELF")
    }

    pub fn rank(&self) -> usize {
        self.rank
    }

    pub fn size(&self) -> usize {
        self.group.size()
    }

    pub fn group(&self) -> &Group {
        &self.group
    }

    pub fn engine(&self) -> &Rc<Engine<F>> {
        &self.engine
    }

    /// Unique in the job: what reports and the tool interface name it by.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The matching space of its messages.
    pub fn context(&self) -> Context {
        Context(self.id << 1)
    }

    /// Collective operations that began on it so far, those that made communicators among them.
    pub fn operations(&self) -> u64 {
        self.sequence.get()
    }

    fn collective_context(&self) -> Context {
        Context(self.id << 1 | 1)
    }

    /// Whether `context` belongs to this communicator.
    pub fn owns(&self, context: Context) -> bool {
        context.0 >> 1 == self.id
    }

    /// The view of the next collective operation: all ranks start them in one order.
    pub fn link(&self) -> Link<F> {
        let sequence = self.sequence.get();
        self.sequence.set(sequence + 1);
        self.engine.endpoint().fabric().charge(Work::Entry);
        Link {
            endpoint: self.engine.endpoint().clone(),
            members: self.group.ranks().clone(),
            rank: self.rank,
            context: self.collective_context(),
            tag: (sequence & 0x3fff_ffff) as i32,
        }
    }

    pub fn compare(&self, other: &Comm<F>) -> Compare {
        if self.id == other.id {
            return Compare::Ident;
        }
        match self.group.compare(&other.group) {
            Compare::Ident => Compare::Congruent,
            other => other,
        }
    }

    /// A communicator of the same group (MPI_Comm_dup). Rank 0 numbers it; one broadcast.
    pub fn dup(&self) -> impl Future<Output = Result<Rc<Comm<F>>, Error>> + use<F> {
        let link = self.link();
        let engine = self.engine.clone();
        let group = self.group.clone();
        let topology = self.topology.borrow().clone();
        let name = self.name.borrow().clone();
        async move {
            let id = agree_on(&link, &engine).await?;
            let copy = Comm::new(&engine, id, group, &name);
            copy.name.borrow_mut().clear();
            *copy.topology.borrow_mut() = topology;
            Ok(copy)
        }
    }

    /// Parts by colour, ordered by key, then by rank (MPI_Comm_split). `None` stays out. One
    /// allgather of 24 bytes a rank, which also brings the number that the first member gives.
    pub fn split(
        &self,
        colour: Option<i32>,
        key: i32,
    ) -> impl Future<Output = Result<Option<Rc<Comm<F>>>, Error>> + use<F> {
        let link = self.link();
        let engine = self.engine.clone();
        let group = self.group.clone();
        async move {
            let mine =
                [colour.map_or(-1, i64::from) as u64, key as i64 as u64, engine.new_context()];
            let all = gather_words(&link, mine).await?;
            let Some(colour) = colour else { return Ok(None) };
            let mut members: Vec<(i64, usize)> = (0..link.size())
                .filter(|&r| all[r][0] as i64 == i64::from(colour))
                .map(|r| (all[r][1] as i64, r))
                .collect();
            members.sort_unstable();
            let places: Vec<usize> = members.into_iter().map(|(_, r)| r).collect();
            let id = all[places[0]][2];
            Ok(Some(Comm::new(&engine, id, group.include(&places), "")))
        }
    }

    /// A communicator of a subgroup (MPI_Comm_create): collective over the whole communicator.
    /// `None` for those outside.
    pub fn create(
        &self,
        subgroup: &Group,
    ) -> impl Future<Output = Result<Option<Rc<Comm<F>>>, Error>> + use<F> {
        let link = self.link();
        let engine = self.engine.clone();
        let subgroup = subgroup.clone();
        let members = self.group.clone();
        async move {
            let all = gather_words(&link, [0, 0, engine.new_context()]).await?;
            if subgroup.rank_of(engine.rank() as u32).is_none() {
                return Ok(None);
            }
            let first = subgroup.ranks()[0];
            let Some(leader) = members.rank_of(first) else {
                let text = format!("process {first} of the group is not in the communicator");
                return Err(Error::new(class::GROUP, text));
            };
            Ok(Some(Comm::new(&engine, all[leader][2], subgroup, "")))
        }
    }

    /// A communicator of a subgroup, collective over the subgroup alone (MPI_Comm_create_group).
    /// Calls under way at once in one process differ in `tag`.
    pub fn create_group(
        &self,
        subgroup: &Group,
        tag: i32,
    ) -> impl Future<Output = Result<Rc<Comm<F>>, Error>> + use<F> {
        let engine = self.engine.clone();
        let subgroup = subgroup.clone();
        let context = self.collective_context();
        async move {
            let me = engine.rank() as u32;
            let rank = subgroup.rank_of(me).expect("only members call");
            let members = subgroup.ranks().clone();
            // Tags of collective operations stay below 2^30.
            let tag = 1 << 30 | (tag & 0x3fff_ffff);
            let link = Link { endpoint: engine.endpoint().clone(), members, rank, context, tag };
            let id = agree_on(&link, &engine).await?;
            Ok(Comm::new(&engine, id, subgroup, ""))
        }
    }

    /// The communicator of the first `size` ranks with this topology, `None` for the others
    /// (MPI_Cart_create, MPI_Graph_create). Ranks keep their order.
    pub fn arranged(
        &self,
        size: usize,
        topology: Topology,
    ) -> impl Future<Output = Result<Option<Rc<Comm<F>>>, Error>> + use<F> {
        let places: Vec<usize> = (0..size).collect();
        let created = self.create(&self.group.include(&places));
        async move {
            let comm = created.await?;
            if let Some(comm) = &comm {
                *comm.topology.borrow_mut() = Some(topology);
            }
            Ok(comm)
        }
    }
}

impl<F: Fabric> Comm<F> {
    /// The edges that all ranks name, on every rank, in the order of ranks.
    pub fn all_edges(
        &self,
        mine: Vec<Edge>,
    ) -> impl Future<Output = Result<Vec<Edge>, Error>> + use<F> {
        const LEN: usize = size_of::<Edge>();
        let (counting, link) = (self.link(), self.link());
        async move {
            let counts = gather_words(&counting, [mine.len() as u64, 0, 0]).await?;
            let total: usize = counts.iter().map(|count| count[0] as usize).sum();
            let all = link.stage(LEN * total);
            let mut at = 0;
            let blocks: Vec<Sge> = counts
                .iter()
                .map(|count| {
                    let block = all.sge().part(LEN * at, LEN * count[0] as usize);
                    at += count[0] as usize;
                    block
                })
                .collect();
            let bytes: Vec<u8> = mine.as_flattened().iter().flat_map(|n| n.to_ne_bytes()).collect();
            blocks[link.rank].fill(&bytes);
            allgather::ring(&link, &blocks).await?;
            let mut bytes = vec![0; LEN * total];
            all.sge().read(&mut bytes);
            let number =
                |i: usize| i32::from_ne_bytes(bytes[4 * i..][..4].try_into().expect("4 bytes"));
            Ok((0..total).map(|e| std::array::from_fn(|i| number(3 * e + i))).collect())
        }
    }
}

/// Rank 0's new context number, on every rank.
async fn agree_on<F: Fabric>(link: &Link<F>, engine: &Engine<F>) -> Result<u64, Error> {
    let word = link.stage(8);
    if link.rank == 0 {
        word.sge().fill(&engine.new_context().to_ne_bytes());
    }
    bcast::binomial(link, 0, word.sge()).await?;
    let mut bytes = [0; 8];
    word.sge().read(&mut bytes);
    Ok(u64::from_ne_bytes(bytes))
}

/// Three words of every rank, on every rank.
async fn gather_words<F: Fabric>(link: &Link<F>, mine: [u64; 3]) -> Result<Vec<[u64; 3]>, Error> {
    const LEN: usize = 24;
    let all = link.stage(LEN * link.size());
    let blocks: Vec<Sge> = (0..link.size()).map(|r| all.sge().part(LEN * r, LEN)).collect();
    let mut bytes = [0u8; LEN];
    for (at, word) in bytes.chunks_exact_mut(8).zip(mine) {
        at.copy_from_slice(&word.to_ne_bytes());
    }
    blocks[link.rank].fill(&bytes);
    allgather::ring(link, &blocks).await?;
    let decode = |block: &Sge| {
        let mut bytes = [0u8; LEN];
        block.read(&mut bytes);
        std::array::from_fn(|i| {
            u64::from_ne_bytes(bytes[8 * i..][..8].try_into().expect("8 bytes"))
        })
    };
    Ok(blocks.iter().map(decode).collect())
}

/// Buffers that overlap where they must not are not found out here.
impl<F: Fabric> Comm<F> {
    /// Staging memory of the process.
    pub(crate) fn pool(&self) -> &weft_fabric::StagingPool {
        self.engine.endpoint().staging()
    }

    /// Bytes of `buffer` in one piece.
    pub(crate) fn piece(&self, buffer: &Buffer) -> crate::buffer::Piece {
        buffer.readable(self.pool())
    }
}
