//! Creation of communicators (MPI 5.0, sections 7.4.2 and 7.6).
//!
//! Each communicator has a number that no other communicator in the job has. Any member may give the number, and all members agree
//! on the member whose number counts. With two groups, both leaders give a number, and the larger number counts. All members also
//! agree that each process has room for one more communicator. Otherwise no process gets the communicator.

use crate::agreement::{Agreement, AgreementTree, name_of};
use crate::mailbox::{Making, Name};
use crate::resources::{CommResources, Resources};
use crate::topology::{CommTopology, Edge};
use crate::{Comm, Engine, Error, Group, class};
use std::rc::Rc;
use weft_collective::inter::leaders;
use weft_collective::{
    CommView, ElementReduction, Largest, ReductionBuffers, allgather, allreduce, bcast, words,
};
use weft_fabric::{Fabric, Sge};

/// Numbers that one process contributes to the creation of a communicator.
type Words = [u64; 3];

/// Number that a process gives if it has no room for another communicator.
const NO_ROOM: u64 = u64::MAX;
/// Bit in a number: the process has no memory to share for the communicator.
const LEAN: u64 = 1 << 63;

impl<F: Fabric> Comm<F> {
    /// Duplicates the communicator, with the same groups (MPI_Comm_dup). Rank 0 gives the number. Cost: one broadcast.
    pub fn dup(&self) -> impl Future<Output = Result<Rc<Comm<F>>, Error>> + use<F> {
        let (link, bridge) = self.links();
        let engine = self.engine.clone();
        let (group, remote) = (self.group().clone(), self.remote().cloned());
        let topology = self.topology.borrow().clone();
        async move {
            let agreed = agree_on(&link, bridge.as_ref(), &engine).await?;
            let copy = Comm::agreed(&engine, agreed, group, remote);
            *copy.topology.borrow_mut() = topology;
            Ok(copy)
        }
    }

    /// Splits the communicator by colour. Ranks are ordered by key, then by their old rank (MPI_Comm_split). A rank with the colour
    /// `None` gets no communicator. In an intercommunicator, a rank also gets no communicator if no rank of the other group has the
    /// same colour. Cost: one allgather of 24 bytes per rank, which includes the number that the first member gives.
    pub fn split(
        &self,
        colour: Option<i32>,
        key: i32,
    ) -> impl Future<Output = Result<Option<Rc<Comm<F>>>, Error>> + use<F> {
        let (link, bridge) = self.links();
        let engine = self.engine.clone();
        let (group, remote) = (self.group().clone(), self.remote().cloned());
        async move {
            let word = colour.map_or(-1, i64::from) as u64;
            let (number, refusal) = offered(&engine);
            let all =
                gather_words(&link, bridge.as_ref(), [word, key as i64 as u64, number]).await?;
            if colour.is_none() {
                return Ok(None);
            }
            let part = |all: &[Words]| {
                let mut members: Vec<(i64, usize)> = (0..all.len())
                    .filter(|&r| all[r][0] == word)
                    .map(|r| (all[r][1] as i64, r))
                    .collect();
                members.sort_unstable();
                members.into_iter().map(|(_, r)| r).collect::<Vec<_>>()
            };
            let places =
                MemberPlaces { mine: part(&all.mine), theirs: all.theirs.as_deref().map(part) };
            let groups = [&group, remote.as_ref().unwrap_or(&group)];
            meet(&engine, &all, groups, places, refusal)
        }
    }

    /// Makes a communicator of a subgroup (MPI_Comm_create). Collective over the whole communicator. Returns `None` outside of the
    /// subgroup. In an intercommunicator, also returns `None` if the subgroup of either side is empty.
    pub fn create(
        &self,
        subgroup: &Group,
    ) -> impl Future<Output = Result<Option<Rc<Comm<F>>>, Error>> + use<F> {
        let (link, bridge) = self.links();
        let engine = self.engine.clone();
        let subgroup = subgroup.clone();
        let (group, remote) = (self.group().clone(), self.remote().cloned());
        async move {
            let place = subgroup.rank_of(engine.rank() as u32);
            let word = place.map_or(-1, |place| place as i64) as u64;
            let (number, refusal) = offered(&engine);
            let all = gather_words(&link, bridge.as_ref(), [word, 0, number]).await?;
            if place.is_none() {
                return Ok(None);
            }
            if let Some(stranger) = subgroup.ranks().iter().find(|&&r| group.rank_of(r).is_none()) {
                let text = format!("process {stranger} of the group is not in the communicator");
                return Err(Error::new(class::GROUP, text));
            }
            // Different processes of one group may pass disjoint subgroups. This process needs only its own subgroup.
            let mine = subgroup.ranks().iter().filter_map(|&r| group.rank_of(r)).collect();
            let theirs = all.theirs.as_ref().map(|all| {
                let mut members: Vec<usize> =
                    (0..all.len()).filter(|&r| all[r][0] as i64 >= 0).collect();
                members.sort_unstable_by_key(|&r| all[r][0]);
                members
            });
            let groups = [&group, remote.as_ref().unwrap_or(&group)];
            meet(&engine, &all, groups, MemberPlaces { mine, theirs }, refusal)
        }
    }

    /// Makes a communicator of a subgroup (MPI_Comm_create_group). Collective over the subgroup only. Calls that are under way at
    /// the same time in a process differ in `tag`.
    pub fn create_group(
        &self,
        subgroup: &Group,
        tag: i32,
    ) -> impl Future<Output = Result<Rc<Comm<F>>, Error>> + use<F> {
        let apart = [self.id(), tag as u64];
        let name = name_of(&self.engine, Making::Group, &apart, b"", &[subgroup]);
        founded(&self.engine, name, subgroup)
    }

    /// Makes a communicator of a group, without an existing communicator (MPI_Comm_create_from_group). Calls that are under way at
    /// the same time differ in `name` or group.
    pub fn from_group(
        engine: &Rc<Engine<F>>,
        group: &Group,
        name: &[u8],
    ) -> impl Future<Output = Result<Rc<Comm<F>>, Error>> + use<F> {
        founded(engine, name_of(engine, Making::FromGroup, &[], name, &[group]), group)
    }

    /// Makes a communicator of the first `size` ranks with this topology (MPI_Cart_create, MPI_Graph_create). Returns `None` on the
    /// other ranks. Ranks keep their order.
    pub fn arranged(
        &self,
        size: usize,
        topology: CommTopology,
    ) -> impl Future<Output = Result<Option<Rc<Comm<F>>>, Error>> + use<F> {
        let places: Vec<usize> = (0..size).collect();
        let created = self.create(&self.group().include(&places));
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
    /// Returns the smallest of the words that the ranks pass. The communicator is no intercommunicator.
    pub fn smallest(&self, mine: u64) -> impl Future<Output = Result<u64, Error>> + use<F> {
        let link = self.link();
        async move {
            let all = gather_words(&link, None, [mine, 0, 0]).await?.mine;
            Ok(all.iter().map(|words| words[0]).min().unwrap_or(mine))
        }
    }

    /// Collects the edges that the ranks pass. Returns all edges on every rank, in the order of the ranks that passed them.
    pub fn all_edges(
        &self,
        mine: Vec<Edge>,
    ) -> impl Future<Output = Result<Vec<Edge>, Error>> + use<F> {
        const LEN: usize = size_of::<Edge>();
        let (counting, link) = (self.link(), self.link());
        async move {
            let counts = gather_words(&counting, None, [mine.len() as u64, 0, 0]).await?.mine;
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

/// Makes a communicator of the members of `group`, which agree under `name`.
fn founded<F: Fabric>(
    engine: &Rc<Engine<F>>,
    name: Name,
    group: &Group,
) -> impl Future<Output = Result<Rc<Comm<F>>, Error>> + use<F> {
    let (engine, group) = (engine.clone(), group.clone());
    async move {
        let me = group.rank_of(engine.rank() as u32).expect("only members call");
        let agreement = Agreement::new(&engine, name);
        let tree = AgreementTree { members: group.ranks(), root: 0, me };
        let (means, refusal) = engine.resources();
        let means = agreement.largest(tree, means.0).await?;
        let said = [engine.new_context(), means].map(u64::to_le_bytes).concat();
        let said = agreement.broadcast(tree, said).await?;
        let [id, means] = numbers(&said)?;
        let lean = Resources(means).settle(refusal)?;
        Ok(Comm::agreed(&engine, CommResources { id, lean }, group, None))
    }
}

/// Returns the numbers at the beginning of a message.
pub(crate) fn numbers<const N: usize>(said: &[u8]) -> Result<[u64; N], Error> {
    let short = || Error::new(class::INTERN, "a message of an agreement is too short");
    let (words, _) = said.as_chunks();
    let words: &[_; N] = words.first_chunk().ok_or_else(short)?;
    Ok(words.map(u64::from_le_bytes))
}

/// Returns the number that this process gives for a new communicator, perhaps with [`LEAN`], or [`NO_ROOM`]. With [`NO_ROOM`], also
/// returns the reason.
fn offered<F: Fabric>(engine: &Engine<F>) -> (u64, Option<Error>) {
    let (means, refusal) = engine.resources();
    match means {
        Resources::ALL => (engine.new_context(), refusal),
        Resources::LEAN => (engine.new_context() | LEAN, refusal),
        _ => (NO_ROOM, refusal),
    }
}

/// Places of the members of a new communicator in each group.
struct MemberPlaces {
    mine: Vec<usize>,
    theirs: Option<Vec<usize>>,
}

/// Makes the new communicator of the members at these places, which include this process. Returns `None` if the communicator would
/// have no process of the other group.
fn meet<F: Fabric>(
    engine: &Rc<Engine<F>>,
    all: &Gathered,
    [group, remote]: [&Group; 2],
    places: MemberPlaces,
    refusal: Option<Error>,
) -> Result<Option<Rc<Comm<F>>>, Error> {
    let MemberPlaces { mine, theirs } = places;
    let means = |said: &[Words], places: &[usize], group: &Group| {
        let each = places.iter().map(|&place| match said[place][2] {
            NO_ROOM => Resources::none(group.ranks()[place] as usize),
            number if number & LEAN != 0 => Resources::LEAN,
            _ => Resources::ALL,
        });
        each.max().unwrap_or(Resources::ALL)
    };
    let mut id = all.mine[mine[0]][2] & !LEAN;
    let mut least = means(&all.mine, &mine, group);
    let mut other = None;
    if let (Some(said), Some(places)) = (&all.theirs, theirs) {
        let Some(&first) = places.first() else { return Ok(None) };
        id = id.max(said[first][2] & !LEAN);
        least = least.max(means(said, &places, remote));
        other = Some(remote.include(&places));
    }
    let lean = least.settle(refusal)?;
    Ok(Some(Comm::agreed(engine, CommResources { id, lean }, group.include(&mine), other)))
}

/// Agrees on a new communicator. The result is the same on every rank.
pub(crate) async fn agree_on<F: Fabric>(
    link: &CommView<F>,
    bridge: Option<&CommView<F>>,
    engine: &Engine<F>,
) -> Result<CommResources, Error> {
    let (means, refusal) = engine.resources();
    let [mine, all, other] = [link.stage(16), link.stage(16), link.stage(16)];
    let id = if link.rank == 0 { engine.new_context() } else { 0 };
    words::write([id, means.0], mine.sge());
    let buffers = ReductionBuffers { data: mine.sge(), result: all.sge(), element: 8 };
    allreduce::pairwise_exchange(link, buffers, &Largest).await?;
    if let Some(bridge) = bridge {
        if link.rank == 0 {
            leaders::swap(bridge, all.sge(), other.sge()).await?;
            Largest.combine(other.sge(), all.sge());
        }
        bcast::binomial(link, 0, all.sge()).await?;
    }
    let [id, means] = words::read_array(all.sge());
    Ok(CommResources { id, lean: Resources(means).settle(refusal)? })
}

/// Numbers from all processes, by rank.
struct Gathered {
    mine: Vec<Words>,
    /// Numbers from the other group.
    theirs: Option<Vec<Words>>,
}

/// Gathers three numbers from every rank of both groups, on every rank.
async fn gather_words<F: Fabric>(
    link: &CommView<F>,
    bridge: Option<&CommView<F>>,
    mine: Words,
) -> Result<Gathered, Error> {
    const LEN: usize = size_of::<Words>();
    let blocks = |all: Sge| (0..all.len() / LEN).map(move |r| all.part(LEN * r, LEN));
    let all = link.stage(LEN * link.size());
    let places: Vec<Sge> = blocks(all.sge()).collect();
    words::write(mine, places[link.rank]);
    allgather::ring(link, &places).await?;
    let read = |all: Sge| blocks(all).map(words::read_array).collect();
    let theirs = match bridge {
        None => None,
        Some(bridge) => {
            let others = link.stage(LEN * bridge.size());
            leaders::swap(bridge, all.sge(), others.sge()).await?;
            bcast::binomial(link, 0, others.sge()).await?;
            Some(read(others.sge()))
        }
    };
    Ok(Gathered { mine: read(all.sge()), theirs })
}
