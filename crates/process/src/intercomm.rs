//! Intercommunicators: two groups that talk to each other (MPI 5.0, section 7.6).
//!
//! ```text
//!   local  0 ─ 1 ─ 2          0 ─ 1   remote        1. the leaders exchange numbers and lists of members
//!          leader L <────────> leader R             2. each leader tells its group
//!            v v v              v                   3. each group tells its leader which rank has no room, or does not
//!                                                      know a process of the other group; then again steps 1 and 2
//! ```
//! Processes that are connected only through other processes (section 11.10.4) do not know each other. The layer above connects
//! them while the two leaders can still talk. So the groups meet first ([`Parties`]), and get their communicator in a second
//! step.

use crate::agreement::{Agreement, AgreementTree, name_of};
use crate::creation::{agree_on, numbers};
use crate::mailbox::{Making, Name};
use crate::resources::{CommResources, Resources};
use crate::{Comm, Engine, Error, Group, Identity, class};
use std::collections::HashSet;
use std::rc::Rc;
use weft_collective::inter::leaders;
use weft_collective::{bcast, words};
use weft_fabric::{Fabric, Sge};

/// Agreement of a leader with the other leader: the name of the agreement, and the other leader's rank in the world.
struct Meeting {
    name: Name,
    other: u32,
}

/// Place of a group in the union of both groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergePlace {
    /// The group comes first, unless the other group asks for the same place.
    Low,
    /// The group comes second, unless the other group asks for the same place.
    High,
}

/// Two groups that have met through their leaders, and have no communicator yet.
pub struct Parties<F: Fabric> {
    engine: Rc<Engine<F>>,
    group: Group,
    leader: usize,
    me: usize,
    within: Agreement<F>,
    /// At a leader: the agreement with the other leader, and the other leader's number.
    there: Option<(Agreement<F>, u32)>,
    id: u64,
    remote: Vec<Identity>,
    means: Resources,
    refusal: Option<Error>,
}

impl<F: Fabric> Comm<F> {
    /// Begins an intercommunicator between this group and another group (MPI_Intercomm_create). `peer` is a communicator, and the
    /// rank of the other group's leader in that communicator. Only `leader` must pass `peer`. This is the first step;
    /// [`Parties::join`] is the second step.
    ///
    /// # Errors
    /// A process is in both groups: [`class::GROUP`], on all processes.
    pub fn intercomm(
        &self,
        leader: usize,
        peer: Option<(&Comm<F>, usize)>,
        tag: i32,
    ) -> impl Future<Output = Result<Parties<F>, Error>> + use<F> {
        let local = Name::new(Making::Sides, &[self.id()], b"", &[]);
        let meeting = peer.map(|(comm, at)| Meeting {
            name: Name::new(Making::Bridge, &[comm.id(), tag as u64], b"", &[]),
            other: comm.peers().ranks()[at],
        });
        introduced(self.engine.clone(), self.group().clone(), local, leader, meeting)
    }

    /// Begins an intercommunicator between two groups, without an existing communicator (MPI_Intercomm_create_from_groups).
    /// `leader` is a rank of `group`. `remote` is the other group and its leader; only this group's leader must pass `remote`.
    pub fn intercomm_from_groups(
        engine: &Rc<Engine<F>>,
        group: &Group,
        leader: usize,
        remote: Option<(&Group, usize)>,
        name: &[u8],
    ) -> impl Future<Output = Result<Parties<F>, Error>> + use<F> {
        let local = name_of(engine, Making::OneOfGroups, &[], name, &[group]);
        let meeting = remote.map(|(remote, at)| {
            // Both leaders put the two groups in the same order.
            let mut both = [group, remote];
            both.sort_by_key(|group| engine.identities(group));
            Meeting {
                name: name_of(engine, Making::BridgeOfGroups, &[], name, &both),
                other: remote.ranks()[at],
            }
        });
        introduced(engine.clone(), group.clone(), local, leader, meeting)
    }

    /// Makes one group of both groups (MPI_Intercomm_merge). If both groups pass the same place, either group may come first, but
    /// the order is the same on all ranks.
    ///
    /// # Errors
    /// [`class::COMM`] if there is only one group.
    pub fn merge(
        &self,
        place: MergePlace,
    ) -> impl Future<Output = Result<Rc<Comm<F>>, Error>> + use<F> {
        let (link, bridge) = self.links();
        let engine = self.engine.clone();
        let (group, remote) = (self.group().clone(), self.remote().cloned());
        async move {
            let (Some(bridge), Some(remote)) = (&bridge, remote) else {
                return Err(Error::new(class::COMM, "an intracommunicator has only one group"));
            };
            // The value of the leader counts for the whole group. If both leaders have the same value, the identities of the first
            // processes decide, because these identities differ.
            let agreed = agree_on(&link, Some(bridge), &engine).await?;
            let [mine, theirs, verdict] = [link.stage(24), link.stage(24), link.stage(8)];
            if link.rank == 0 {
                let first = engine.identity(group.ranks()[0]);
                words::write([place as u64, first.job, u64::from(first.rank)], mine.sge());
                leaders::swap(bridge, mine.sge(), theirs.sge()).await?;
                let order = |of: Sge| words::read_array::<3>(of);
                let before = order(mine.sge()) < order(theirs.sge());
                words::write([u64::from(before)], verdict.sge());
            }
            bcast::binomial(&link, 0, verdict.sge()).await?;
            let before = words::read(verdict.sge(), 0) != 0;
            let all = if before { group.union(&remote) } else { remote.union(&group) };
            Ok(Comm::agreed(&engine, agreed, all, None))
        }
    }
}

/// Introduces the groups to each other through their leaders.
async fn introduced<F: Fabric>(
    engine: Rc<Engine<F>>,
    group: Group,
    local: Name,
    leader: usize,
    meeting: Option<Meeting>,
) -> Result<Parties<F>, Error> {
    let me = group.rank_of(engine.rank() as u32).expect("only members call");
    let within = Agreement::new(&engine, local);
    let there = meeting.filter(|_| me == leader);
    let there = there.map(|Meeting { name, other }| (Agreement::new(&engine, name), other));
    // The leaders exchange data before any exchange within the group. This also detects a process that names another leader than
    // the rest of its group.
    let id = if there.is_some() { engine.new_context() } else { 0 };
    let (remote, means, refusal) = (Vec::new(), Resources::ALL, None);
    let mut parties =
        Parties { engine, group, leader, me, within, there, id, remote, means, refusal };
    let own = parties.engine.identities(&parties.group);
    let list: Vec<u8> = own.iter().flat_map(|identity| identity.encode()).collect();
    let mut said = parties.swap(&[&id.to_le_bytes()[..], &list].concat()).await?;
    if parties.leads() {
        let [theirs] = numbers(&said)?;
        said[..8].copy_from_slice(&id.max(theirs).to_le_bytes());
    }
    let said = parties.tell_all(said).await?;
    let [id] = numbers(&said)?;
    let (list, _) = said[8..].as_chunks();
    (parties.id, parties.remote) = (id, list.iter().map(Identity::decode).collect());
    let mine: HashSet<Identity> = own.into_iter().collect();
    if let Some(twice) = parties.remote.iter().find(|one| mine.contains(one)) {
        let process = parties.engine.peer_of(*twice)?;
        let text =
            format!("process {process} of the world is in both groups, which must be disjoint");
        return Err(Error::new(class::GROUP, text));
    }
    parties.agree_on_means().await?;
    Ok(parties)
}

impl<F: Fabric> Parties<F> {
    /// Agrees on the resources that all processes have for the communicator. Also finds out if all processes know each other.
    async fn agree_on_means(&mut self) -> Result<(), Error> {
        let (mut means, refusal) = self.engine.resources();
        if self.remote.iter().any(|&one| self.engine.peer_of(one).is_err()) {
            means = means.max(Resources::APART);
        }
        let mut means = self.within.largest(self.tree(), means.0).await?;
        let theirs = self.swap(&means.to_le_bytes()).await?;
        if self.leads() {
            let [theirs] = numbers(&theirs)?;
            means = means.max(theirs);
        }
        let said = self.tell_all(means.to_le_bytes().to_vec()).await?;
        let [means] = numbers(&said)?;
        (self.means, self.refusal) = (Resources(means), refusal);
        Ok(())
    }

    /// Returns the tree for agreements within the group. The leader is the root of the tree.
    fn tree(&self) -> AgreementTree<'_> {
        AgreementTree { members: self.group.ranks(), root: self.leader, me: self.me }
    }

    fn leads(&self) -> bool {
        self.there.is_some()
    }

    /// Returns true if two of the processes are connected only through other processes. Then the groups have to be linked.
    pub fn are_apart(&self) -> bool {
        self.means == Resources::APART
    }

    /// Returns true at the first of the two leaders, false at the second, and `None` on all other ranks. Both leaders agree on
    /// their order.
    pub fn is_first_leader(&self) -> Option<bool> {
        let (_, other) = self.there.as_ref()?;
        let (engine, own) = (&self.engine, self.group.ranks()[self.me]);
        Some(engine.identity(own) < engine.identity(*other))
    }

    /// Returns the group of this process.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Returns the engine of this process.
    pub fn engine(&self) -> &Rc<Engine<F>> {
        &self.engine
    }

    /// Exchanges bytes between the two leaders. Returns the other leader's bytes at a leader, and no bytes elsewhere.
    pub async fn swap(&self, mine: &[u8]) -> Result<Vec<u8>, Error> {
        let Some((there, other)) = &self.there else { return Ok(Vec::new()) };
        let told = there.tell(*other, mine);
        let said = there.hear(*other).await?;
        there.left(told).await?;
        Ok(said)
    }

    /// Sends `bytes` of the leader to its whole group.
    pub async fn tell_all(&self, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
        self.within.broadcast(self.tree(), bytes).await
    }

    /// Returns the intercommunicator of groups that are not apart.
    ///
    /// # Errors
    /// Fails on all processes if a process has no room for the communicator, or if two of the processes are not connected.
    pub fn join(self) -> Result<Rc<Comm<F>>, Error> {
        let lean = self.means.settle(self.refusal)?;
        let remote = self.remote.iter().map(|&one| self.engine.peer_of(one));
        let remote = Group::new(remote.collect::<Result<Vec<_>, _>>()?);
        Ok(Comm::agreed(
            &self.engine,
            CommResources { id: self.id, lean },
            self.group,
            Some(remote),
        ))
    }
}
