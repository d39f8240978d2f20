//! How communicators come to be (MPI 5.0, sections 7.4.2 and 7.6).
//!
//! Each has a number that no other in the job has: any one member may give it, and all agree on whose
//! it is. Where there are two groups, both leaders give one and the smaller counts.

use crate::comm::{NONE, tags};
use crate::topology::{Edge, Topology};
use crate::{Comm, Engine, Error, Group, class};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use weft_collective::inter::leaders;
use weft_collective::{Link, Via, allgather, bcast};
use weft_fabric::{Fabric, Sge};
use weft_p2p::Context;

/// What one process says of itself when communicators are made.
type Words = [u64; 3];

impl<F: Fabric> Comm<F> {
    /// A communicator of the same groups (MPI_Comm_dup). Rank 0 numbers it; one broadcast.
    pub fn dup(&self) -> impl Future<Output = Result<Rc<Comm<F>>, Error>> + use<F> {
        let links = self.links();
        let engine = self.engine.clone();
        let (group, remote) = (self.group().clone(), self.remote().cloned());
        let topology = self.topology.borrow().clone();
        async move {
            let id = agree_on(&links, &engine).await?;
            let copy = Comm::new(&engine, id, group, remote, "");
            *copy.topology.borrow_mut() = topology;
            Ok(copy)
        }
    }

    /// Parts by colour, ordered by key, then by rank (MPI_Comm_split). `None` stays out, and so does
    /// a colour of an intercommunicator that the other group does not have. One allgather of 24 bytes
    /// a rank, which also brings the number that the first member gives.
    pub fn split(
        &self,
        colour: Option<i32>,
        key: i32,
    ) -> impl Future<Output = Result<Option<Rc<Comm<F>>>, Error>> + use<F> {
        let links = self.links();
        let engine = self.engine.clone();
        let (group, remote) = (self.group().clone(), self.remote().cloned());
        async move {
            let word = colour.map_or(-1, i64::from) as u64;
            let all = gather_words(&links, [word, key as i64 as u64, engine.new_context()]).await?;
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
            let (mine, theirs) = (part(&all.mine), all.theirs.as_deref().map(part));
            Ok(meet(&engine, &all, [&group, remote.as_ref().unwrap_or(&group)], mine, theirs))
        }
    }

    /// A communicator of a subgroup (MPI_Comm_create): collective over the whole communicator.
    /// `None` for those outside, and where a side of an intercommunicator names nobody.
    pub fn create(
        &self,
        subgroup: &Group,
    ) -> impl Future<Output = Result<Option<Rc<Comm<F>>>, Error>> + use<F> {
        let links = self.links();
        let engine = self.engine.clone();
        let subgroup = subgroup.clone();
        let (group, remote) = (self.group().clone(), self.remote().cloned());
        async move {
            let place = subgroup.rank_of(engine.rank() as u32);
            let word = place.map_or(-1, |place| place as i64) as u64;
            let all = gather_words(&links, [word, 0, engine.new_context()]).await?;
            if place.is_none() {
                return Ok(None);
            }
            if let Some(stranger) = subgroup.ranks().iter().find(|&&r| group.rank_of(r).is_none()) {
                let text = format!("process {stranger} of the group is not in the communicator");
                return Err(Error::new(class::GROUP, text));
            }
            // Of one group, different processes may name disjoint subgroups: only the own one counts.
            let mine = subgroup.ranks().iter().filter_map(|&r| group.rank_of(r)).collect();
            let theirs = all.theirs.as_ref().map(|all| {
                let mut members: Vec<usize> =
                    (0..all.len()).filter(|&r| all[r][0] as i64 >= 0).collect();
                members.sort_unstable_by_key(|&r| all[r][0]);
                members
            });
            Ok(meet(&engine, &all, [&group, remote.as_ref().unwrap_or(&group)], mine, theirs))
        }
    }

    /// A communicator of a subgroup, collective over the subgroup alone (MPI_Comm_create_group).
    /// Calls under way at once in one process differ in `tag`.
    pub fn create_group(
        &self,
        subgroup: &Group,
        tag: i32,
    ) -> impl Future<Output = Result<Rc<Comm<F>>, Error>> + use<F> {
        let tag = tags::GROUPS | (tag & tags::NUMBERS);
        founded(&self.engine, self.collective_context(), subgroup, tag)
    }

    /// A communicator of a group, of which no communicator has to exist before
    /// (MPI_Comm_create_from_group). Calls under way at once differ in `name` or group.
    pub fn from_group(
        engine: &Rc<Engine<F>>,
        group: &Group,
        name: &str,
    ) -> impl Future<Output = Result<Rc<Comm<F>>, Error>> + use<F> {
        founded(engine, Context(NONE << 1 | 1), group, name_tag(name, group.ranks()))
    }

    /// The communicator of the first `size` ranks with this topology, `None` for the others
    /// (MPI_Cart_create, MPI_Graph_create). Ranks keep their order.
    pub fn arranged(
        &self,
        size: usize,
        topology: Topology,
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
    /// The edges that all ranks name, on every rank, in the order of ranks.
    pub fn all_edges(
        &self,
        mine: Vec<Edge>,
    ) -> impl Future<Output = Result<Vec<Edge>, Error>> + use<F> {
        const LEN: usize = size_of::<Edge>();
        let (counting, link) = ((self.link(), None), self.link());
        async move {
            let counts = gather_words(&counting, [mine.len() as u64, 0, 0]).await?.mine;
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

/// A number for operations on groups by name: the same for all who name the same.
pub(crate) fn name_tag(name: &str, members: &[u32]) -> i32 {
    // Its keys are fixed, so all processes get one result.
    let mut hash = DefaultHasher::new();
    (name, members).hash(&mut hash);
    hash.finish() as i32 & tags::NUMBERS
}

/// The members of `group` meet in `context` under `tag`.
fn founded<F: Fabric>(
    engine: &Rc<Engine<F>>,
    context: Context,
    group: &Group,
    tag: i32,
) -> impl Future<Output = Result<Rc<Comm<F>>, Error>> + use<F> {
    let (engine, group) = (engine.clone(), group.clone());
    async move {
        let rank = group.rank_of(engine.rank() as u32).expect("only members call");
        let members = group.ranks().clone();
        let link = Link {
            endpoint: engine.endpoint().clone(),
            members,
            rank,
            context,
            tag,
            via: Via::Messages,
        };
        let id = agree_on(&(link, None), &engine).await?;
        Ok(Comm::new(&engine, id, group, None, ""))
    }
}

/// The new communicator of the members at these places of each group. `None` if there is nobody of the
/// other group. This process is one of them.
fn meet<F: Fabric>(
    engine: &Rc<Engine<F>>,
    all: &Gathered,
    [group, remote]: [&Group; 2],
    mine: Vec<usize>,
    theirs: Option<Vec<usize>>,
) -> Option<Rc<Comm<F>>> {
    let mut id = all.mine[mine[0]][2];
    let mut other = None;
    if let (Some(said), Some(places)) = (&all.theirs, theirs) {
        id = id.min(said[*places.first()?][2]);
        other = Some(remote.include(&places));
    }
    Some(Comm::new(engine, id, group.include(&mine), other, ""))
}

/// A new context number, the same on every rank.
async fn agree_on<F: Fabric>(
    (link, bridge): &(Link<F>, Option<Link<F>>),
    engine: &Engine<F>,
) -> Result<u64, Error> {
    let [word, other] = [link.stage(8), link.stage(8)];
    if link.rank == 0 {
        let mut id = engine.new_context();
        word.sge().fill(&id.to_ne_bytes());
        if let Some(bridge) = bridge {
            leaders::swap(bridge, word.sge(), other.sge()).await?;
            id = id.min(words::<1>(&other.sge())[0]);
            word.sge().fill(&id.to_ne_bytes());
        }
    }
    bcast::binomial(link, 0, word.sge()).await?;
    Ok(words::<1>(&word.sge())[0])
}

/// The numbers that a piece of memory holds.
pub(crate) fn words<const N: usize>(from: &Sge) -> [u64; N] {
    let mut bytes = vec![0u8; 8 * N];
    from.read(&mut bytes);
    std::array::from_fn(|i| u64::from_ne_bytes(bytes[8 * i..][..8].try_into().expect("8 bytes")))
}

/// What all say, by rank.
struct Gathered {
    mine: Vec<Words>,
    /// The other group's.
    theirs: Option<Vec<Words>>,
}

/// Three words of every rank, on every rank, of both groups.
async fn gather_words<F: Fabric>(
    (link, bridge): &(Link<F>, Option<Link<F>>),
    mine: Words,
) -> Result<Gathered, Error> {
    const LEN: usize = size_of::<Words>();
    let blocks = |all: Sge| (0..all.len() / LEN).map(move |r| all.part(LEN * r, LEN));
    let all = link.stage(LEN * link.size());
    let places: Vec<Sge> = blocks(all.sge()).collect();
    let bytes: Vec<u8> = mine.iter().flat_map(|word| word.to_ne_bytes()).collect();
    places[link.rank].fill(&bytes);
    allgather::ring(link, &places).await?;
    let read = |all: Sge| blocks(all).map(|block| words(&block)).collect();
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
