//! Agreements among processes that have no common communicator yet. At the same time, these or other processes may make other
//! communicators (MPI 5.0, sections 7.4.2, 7.6 and 11.3).
//!
//! ```text
//!   message    length of the name (32) | name | data         the receiver knows the sender by its rank in the world
//!   name       kind of object | values that distinguish its calls | all members, in their order
//!   mailbox    messages that have arrived, by sender and name, in the order in which they were sent
//! ```
//! Complete names are compared, because a hash, or a rank among the members, may be the same for another agreement. All members
//! take part in the agreements of one name in the same order, and messages between two members stay in order. So the next message
//! of this name from a process is always the awaited message.

use crate::mailbox::{Making, Name};
use crate::{Engine, Error, Group};
use std::rc::Rc;
use weft_collective::rank;
use weft_fabric::{Fabric, Fault, Staging};
use weft_p2p::{MatchingContext, MessageTarget, ReceiveSource, RequestId, SendMode, Want};

/// Matching space of the messages of agreements. It belongs to no communicator.
const CONTEXT: MatchingContext = MatchingContext(crate::comm::NONE << 1 | 1);
const ANY: Want = Want { context: CONTEXT, source: ReceiveSource::Any, tag: None };

/// Agreements of one name, on one of the processes that take part in them.
pub(crate) struct Agreement<F: Fabric> {
    engine: Rc<Engine<F>>,
    name: Name,
}

/// A send for an agreement, and the memory that is sent. Empty if the send was complete at once.
#[must_use]
pub(crate) struct AgreementSends(Option<(RequestId, Staging)>);

/// Makes a [`Name`]. If a group in `groups` has processes of other jobs, the name contains the identities of the members, because
/// identities are the same at all processes.
pub(crate) fn name_of<F: Fabric>(
    engine: &Engine<F>,
    making: Making,
    numbers: &[u64],
    text: &[u8],
    groups: &[&Group],
) -> Name {
    let name = Name::new(making, numbers, text, groups);
    let world = engine.endpoint().fabric().size();
    let is_foreign = |group: &&Group| group.ranks().iter().any(|&rank| rank as usize >= world);
    if !groups.iter().any(is_foreign) {
        return name;
    }
    let mut bytes = Name::new(making, numbers, text, &[]).0.to_vec();
    for group in groups {
        bytes.extend((group.size() as u64).to_le_bytes());
        bytes.extend(engine.identities(group).into_iter().flat_map(|identity| identity.encode()));
    }
    Name(bytes.into())
}

impl<F: Fabric> Agreement<F> {
    pub fn new(engine: &Rc<Engine<F>>, name: Name) -> Agreement<F> {
        Agreement { engine: engine.clone(), name }
    }

    /// Sends `data` to process `peer` of the world.
    pub fn tell(&self, peer: u32, data: &[u8]) -> AgreementSends {
        let (endpoint, name) = (self.engine.endpoint(), &self.name.0);
        let bytes = [&(name.len() as u32).to_le_bytes()[..], name, data].concat();
        let memory = endpoint.staging().take(bytes.len());
        memory.sge().fill(&bytes);
        let rank = self.engine.rank() as u32;
        let target = MessageTarget { context: CONTEXT, peer: peer as usize, rank, tag: 0 };
        AgreementSends(
            endpoint.isend(target, memory.sge(), SendMode::Standard).map(|id| (id, memory)),
        )
    }

    /// Waits until a message of [`Agreement::tell`] has left.
    pub async fn left(&self, told: AgreementSends) -> Result<(), Error> {
        if let AgreementSends(Some((id, _memory))) = told {
            self.engine.endpoint().wait(id).await?;
        }
        Ok(())
    }

    /// Receives the next data of process `peer` of the world in agreements of this name.
    pub async fn hear(&self, peer: u32) -> Result<Vec<u8>, Error> {
        let (endpoint, mailbox) = (self.engine.endpoint(), self.engine.mailbox());
        let key = (peer, self.name.clone());
        loop {
            let seen = endpoint.fabric().counters().value(endpoint.arrivals());
            if let Some(data) = mailbox.open(&key) {
                return Ok(data);
            }
            if !mailbox.taking.get() && self.take_one().await? {
                continue;
            }
            endpoint.until(endpoint.arrivals(), seen + 1).await?;
        }
    }

    /// Receives one message of any agreement into the mailbox. Returns false if there is no message.
    async fn take_one(&self) -> Result<bool, Error> {
        let (endpoint, mailbox) = (self.engine.endpoint(), self.engine.mailbox());
        let Some(message) = endpoint.take(&ANY) else { return Ok(false) };
        // The sender's number at this process. The sender may have another number for itself.
        let (from, memory) = (message.peer() as u32, endpoint.staging().take(message.len as usize));
        mailbox.taking.set(true);
        let come = endpoint.wait(endpoint.imrecv(message, memory.sge())).await;
        mailbox.taking.set(false);
        come?;
        let mut bytes = vec![0; memory.len()];
        memory.sge().read(&mut bytes);
        let (name, data) = parts(&bytes).ok_or_else(|| malformed(from))?;
        let key = (from, Name(name.into()));
        mailbox.put(key, data.to_vec());
        // Other threads of this process may wait for this message, or for their turn to take a message.
        endpoint.notify_probes();
        self.engine.wake_siblings();
        Ok(true)
    }

    /// Sends `data` of the tree's root to all members. All members must call this function.
    pub async fn broadcast(
        &self,
        tree: AgreementTree<'_>,
        data: Vec<u8>,
    ) -> Result<Vec<u8>, Error> {
        let data = match tree.parent() {
            Some(parent) => self.hear(parent).await?,
            None => data,
        };
        let told: Vec<AgreementSends> =
            tree.children().rev().map(|to| self.tell(to, &data)).collect();
        for told in told {
            self.left(told).await?;
        }
        Ok(data)
    }

    /// Returns the maximum of the numbers in this process's subtree. At the tree's root, this is the maximum of all members'
    /// numbers.
    pub async fn largest(&self, tree: AgreementTree<'_>, mine: u64) -> Result<u64, Error> {
        let mut most = mine;
        for child in tree.children() {
            let said = self.hear(child).await?.try_into().map_err(|_| malformed(child))?;
            most = most.max(u64::from_le_bytes(said));
        }
        if let Some(parent) = tree.parent() {
            self.left(self.tell(parent, &most.to_le_bytes())).await?;
        }
        Ok(most)
    }
}

/// A binomial tree of the members.
#[derive(Clone, Copy)]
pub(crate) struct AgreementTree<'m> {
    /// Ranks of the members in the world.
    pub members: &'m [u32],
    /// Places among the members: the place of the root, and the place of this process.
    pub root: usize,
    pub me: usize,
}

impl AgreementTree<'_> {
    fn relative(&self) -> usize {
        (self.me + self.members.len() - self.root) % self.members.len()
    }

    fn member(&self, relative: usize) -> u32 {
        self.members[(relative + self.root) % self.members.len()]
    }

    fn parent(&self) -> Option<u32> {
        rank::parent(self.relative()).map(|relative| self.member(relative))
    }

    fn children(&self) -> impl DoubleEndedIterator<Item = u32> {
        rank::children(self.relative(), self.members.len()).map(|relative| self.member(relative))
    }
}

/// Splits a message into name and data.
fn parts(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*len) as usize)
}

fn malformed(peer: u32) -> Error {
    Fault::corrupt(peer as usize, "message of an agreement").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(numbers: &[u64], text: &str, groups: &[&[u32]]) -> Name {
        let groups: Vec<Group> = groups.iter().map(|ranks| Group::new(ranks.to_vec())).collect();
        Name::new(Making::FromGroup, numbers, text.as_bytes(), &groups.iter().collect::<Vec<_>>())
    }

    #[test]
    fn names_differ_in_all_that_tells_agreements_apart() {
        let mut lists: Vec<Vec<u32>> = vec![vec![]];
        // Makes all ordered lists of distinct ranks below 5.
        for at in 0.. {
            let Some(list) = lists.get(at).cloned() else { break };
            lists.extend((0..5).filter(|r| !list.contains(r)).map(|r| [&list[..], &[r]].concat()));
        }
        assert_eq!(lists.len(), 326);
        let names: std::collections::HashSet<_> =
            lists.iter().map(|list| name(&[7, 0], "", &[list])).collect();
        assert_eq!(names.len(), lists.len());
        let all = [
            name(&[1, 2], "a", &[&[0, 1], &[2]]),
            name(&[1, 3], "a", &[&[0, 1], &[2]]),
            name(&[1, 2], "b", &[&[0, 1], &[2]]),
            name(&[1, 2], "a", &[&[0], &[1, 2]]),
            name(&[1, 2], "a", &[&[0, 1, 2]]),
            name(&[1, 2], "a", &[&[2], &[0, 1]]),
            Name::new(Making::Group, &[1, 2], b"a", &[&Group::new([0, 1]), &Group::new([2])]),
        ];
        let set: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(set.len(), all.len());
        assert_eq!(all[0], name(&[1, 2], "a", &[&[0, 1], &[2]]));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        assert_eq!(parts(&[]), None);
        assert_eq!(parts(&[5, 0, 0, 0, 1]), None);
        assert_eq!(parts(&[1, 0, 0, 0, 9, 8]), Some((&[9][..], &[8][..])));
    }
}
