//! Intercommunicators: two groups that talk to each other (MPI 5.0, section 7.6).
//!
//! ```text
//!   local  0 ─ 1 ─ 2          0 ─ 1   remote        1. the leaders exchange numbers and lists of members
//!          leader L <────────> leader R             2. each tells its group
//!            v v v              v                   3. each group tells its leader who has no room; as 1 and 2
//! ```

use crate::agreement::{Agreement, name_of};
use crate::creation::{agree_on, fill, numbers, words};
use crate::mailbox::{Making, Name};
use crate::resources::Resources;
use crate::{Comm, Engine, Error, Group, Identity, class};
use std::rc::Rc;
use weft_collective::bcast;
use weft_collective::inter::leaders;
use weft_fabric::Fabric;

/// How a leader meets the other one: under which name, and who that is in the world.
struct Meeting {
    name: Name,
    other: u32,
}

impl<F: Fabric> Comm<F> {
    /// An intercommunicator between this group and the one whose leader is `peer.1` of the
    /// communicator `peer.0`, which only `leader` must know (MPI_Intercomm_create).
    ///
    /// # Errors
    /// A process is in both groups: [`class::GROUP`], on all processes.
    pub fn intercomm(
        &self,
        leader: usize,
        peer: Option<(&Comm<F>, usize)>,
        tag: i32,
    ) -> impl Future<Output = Result<Rc<Comm<F>>, Error>> + use<F> {
        let local = Name::new(Making::Sides, &[self.id()], "", &[]);
        let meeting = peer.map(|(comm, at)| Meeting {
            name: Name::new(Making::Bridge, &[comm.id(), tag as u64], "", &[]),
            other: comm.peers().ranks()[at],
        });
        introduced(self.engine.clone(), self.group().clone(), local, leader, meeting)
    }

    /// The same between two groups, of which no communicator has to exist before
    /// (MPI_Intercomm_create_from_groups). `leader`: of `group`; `remote`, which only the leader must
    /// know: the other group and its leader.
    pub fn intercomm_from_groups(
        engine: &Rc<Engine<F>>,
        group: &Group,
        leader: usize,
        remote: Option<(&Group, usize)>,
        name: &str,
    ) -> impl Future<Output = Result<Rc<Comm<F>>, Error>> + use<F> {
        let local = name_of(engine, Making::OneOfGroups, &[], name, &[group]);
        let meeting = remote.map(|(remote, at)| {
            // Both leaders put the two groups in one order.
            let mut both = [group, remote];
            both.sort_by_key(|group| engine.identities(group));
            Meeting {
                name: name_of(engine, Making::BridgeOfGroups, &[], name, &both),
                other: remote.ranks()[at],
            }
        });
        introduced(engine.clone(), group.clone(), local, leader, meeting)
    }

    /// One group of both, those who say `high` behind the others (MPI_Intercomm_merge). Where both
    /// groups say the same, the order is one of the two, the same for all.
    ///
    /// # Errors
    /// [`class::COMM`] if there is only one group.
    pub fn merge(&self, high: bool) -> impl Future<Output = Result<Rc<Comm<F>>, Error>> + use<F> {
        let links = self.links();
        let engine = self.engine.clone();
        let (group, remote) = (self.group().clone(), self.remote().cloned());
        async move {
            let (link, Some(bridge), Some(remote)) = (&links.0, &links.1, remote) else {
                return Err(Error::new(class::COMM, "an intracommunicator has only one group"));
            };
            // The leader's wish counts for its group. The first ranks differ, so that equal wishes are
            // put in order, too.
            let agreed = agree_on(&links, &engine).await?;
            let [mine, theirs, verdict] = [link.stage(24), link.stage(24), link.stage(8)];
            if link.rank == 0 {
                let first = engine.identity(group.ranks()[0]);
                fill(mine.sge(), [u64::from(high), first.job, u64::from(first.rank)]);
                leaders::swap(bridge, mine.sge(), theirs.sge()).await?;
                let before = words::<3>(&mine.sge()) < words::<3>(&theirs.sge());
                fill(verdict.sge(), [u64::from(before)]);
            }
            bcast::binomial(link, 0, verdict.sge()).await?;
            let [before] = words(&verdict.sge());
            let all = if before != 0 { group.union(&remote) } else { remote.union(&group) };
            Ok(Comm::agreed(&engine, agreed, all, None))
        }
    }
}

/// The groups get to know each other through their leaders.
async fn introduced<F: Fabric>(
    engine: Rc<Engine<F>>,
    group: Group,
    local: Name,
    leader: usize,
    meeting: Option<Meeting>,
) -> Result<Rc<Comm<F>>, Error> {
    let me = group.rank_of(engine.rank() as u32).expect("only members call");
    let (within, members) = (Agreement::new(&engine, local), group.ranks());
    let there = meeting.filter(|_| me == leader);
    let there = there.map(|Meeting { name, other }| (Agreement::new(&engine, name), other));
    let exchange = async |mine: &[u8]| -> Result<Vec<u8>, Error> {
        let Some((there, other)) = &there else { return Ok(Vec::new()) };
        let told = there.tell(*other, mine);
        let said = there.hear(*other).await?;
        there.left(told).await?;
        Ok(said)
    };
    // Before anything is asked within the group: who names another leader than the others is found out here, too.
    let id = if there.is_some() { engine.new_context() } else { 0 };
    let list: Vec<u8> =
        engine.identities(&group).into_iter().flat_map(|identity| identity.encode()).collect();
    let mut said = exchange(&[&id.to_le_bytes()[..], &list].concat()).await?;
    if there.is_some() {
        let [theirs] = numbers(&said)?;
        said[..8].copy_from_slice(&id.max(theirs).to_le_bytes());
    }
    let said = within.broadcast(members, (leader, me), said).await?;
    let [id] = numbers(&said)?;
    let (list, _) = said[8..].as_chunks();
    let list = list.iter().map(|one| engine.peer_of(Identity::decode(one)));
    // Who does not know all of them still answers the others, and nobody gets the communicator.
    let (remote, stranger) = match list.collect::<Result<Vec<_>, _>>() {
        Ok(ranks) => (Group::new(ranks), None),
        Err(error) => (Group::new(Vec::new()), Some(error)),
    };
    let both = group.intersection(&remote);
    if let Some(twice) = both.ranks().first() {
        let text =
            format!("process {twice} of the world is in both groups, which must be disjoint");
        return Err(Error::new(class::GROUP, text));
    }
    let (mut means, mut refusal) = engine.resources();
    if stranger.is_some() {
        (means, refusal) = (Resources::none(engine.rank()), stranger);
    }
    let mut means = within.largest(members, (leader, me), means.0).await?;
    let theirs = exchange(&means.to_le_bytes()).await?;
    if there.is_some() {
        let [theirs] = numbers(&theirs)?;
        means = means.max(theirs);
    }
    let said = within.broadcast(members, (leader, me), means.to_le_bytes().to_vec()).await?;
    let [means] = numbers(&said)?;
    let lean = Resources(means).settle(refusal)?;
    Ok(Comm::agreed(&engine, (id, lean), group, Some(remote)))
}
