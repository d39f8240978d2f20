//! Intercommunicators: two groups that talk to each other (MPI 5.0, section 7.6).
//!
//! ```text
//!   local  0 ─ 1 ─ 2          0 ─ 1   remote        1. the leaders exchange size and number,
//!          leader L <────────> leader R                 then the lists of members
//!            v v v              v                    2. each tells its group (two broadcasts)
//! ```

use crate::comm::{NONE, tags};
use crate::creation::{name_tag, words};
use crate::{Comm, Engine, Error, Group, class};
use std::rc::Rc;
use weft_collective::inter::leaders;
use weft_collective::{Link, Via, bcast};
use weft_fabric::{Fabric, Sge};
use weft_p2p::Context;

/// Where a leader meets the other one: a view whose members have it at `at`.
struct Meeting<F: Fabric> {
    link: Link<F>,
    at: usize,
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
        let link = self.link();
        let tag = tags::GROUPS | tags::BRIDGE | (tag & tags::NUMBERS);
        let meeting =
            peer.map(|(comm, at)| Meeting { link: comm.link_with(comm.peers().ranks(), tag), at });
        introduced(self.engine.clone(), self.group().clone(), link, leader, meeting)
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
        let rank = group.rank_of(engine.rank() as u32).expect("only members call");
        let endpoint = engine.endpoint();
        let link = |members: &Rc<[u32]>, tag| {
            let (endpoint, members) = (endpoint.clone(), members.clone());
            Link {
                endpoint,
                members,
                rank,
                context: Context(NONE << 1 | 1),
                tag,
                via: Via::Messages,
            }
        };
        let meeting = remote.map(|(group, at)| Meeting {
            link: link(group.ranks(), tags::BRIDGE | name_tag(name, &[])),
            at,
        });
        // The list of members told the calls of different groups apart; the leaders have only the
        // name in common.
        let local = link(group.ranks(), tags::GROUPS | name_tag(name, group.ranks()));
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
            let [mine, theirs, verdict] = [link.stage(24), link.stage(24), link.stage(16)];
            if link.rank == 0 {
                let first = u64::from(group.ranks()[0]);
                fill(mine.sge(), [u64::from(high), first, engine.new_context()]);
                leaders::swap(bridge, mine.sge(), theirs.sge()).await?;
                let (here, there) = (words::<3>(&mine.sge()), words::<3>(&theirs.sge()));
                let before = here[..2] < there[..2];
                fill(verdict.sge(), [u64::from(before), here[2].min(there[2])]);
            }
            bcast::binomial(link, 0, verdict.sge()).await?;
            let [before, id] = words::<2>(&verdict.sge());
            let all = if before != 0 { group.union(&remote) } else { remote.union(&group) };
            Ok(Comm::new(&engine, id, all, None, ""))
        }
    }
}

fn fill<const N: usize>(to: Sge, words: [u64; N]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    to.fill(&bytes);
}

/// The groups get to know each other through their leaders.
async fn introduced<F: Fabric>(
    engine: Rc<Engine<F>>,
    group: Group,
    link: Link<F>,
    leader: usize,
    meeting: Option<Meeting<F>>,
) -> Result<Rc<Comm<F>>, Error> {
    let [mine, head] = [link.stage(16), link.stage(16)];
    let mut members = None;
    if let Some(Meeting { link: there, at }) = meeting.filter(|_| link.rank == leader) {
        fill(mine.sge(), [group.size() as u64, engine.new_context()]);
        there.exchange(at, mine.sge(), at, head.sge()).await?;
        let [_, id] = words::<2>(&mine.sge());
        let [count, other] = words::<2>(&head.sge());
        let [list, theirs] = [link.stage(4 * group.size()), link.stage(4 * count as usize)];
        let bytes: Vec<u8> = group.ranks().iter().flat_map(|rank| rank.to_ne_bytes()).collect();
        list.sge().fill(&bytes);
        there.exchange(at, list.sge(), at, theirs.sge()).await?;
        fill(head.sge(), [count, id.min(other)]);
        members = Some(theirs);
    }
    bcast::binomial(&link, leader, head.sge()).await?;
    let [count, id] = words::<2>(&head.sge());
    let members = members.unwrap_or_else(|| link.stage(4 * count as usize));
    bcast::binomial(&link, leader, members.sge()).await?;
    let mut bytes = vec![0; 4 * count as usize];
    members.sge().read(&mut bytes);
    let rank = |bytes: &[u8]| u32::from_ne_bytes(bytes.try_into().expect("4 bytes"));
    let remote = Group::new(bytes.chunks_exact(4).map(rank).collect::<Vec<_>>());
    let both = group.intersection(&remote);
    if let Some(twice) = both.ranks().first() {
        let text =
            format!("process {twice} of the world is in both groups, which must be disjoint");
        return Err(Error::new(class::GROUP, text));
    }
    Ok(Comm::new(&engine, id, group, Some(remote), ""))
}
