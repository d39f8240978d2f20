//! Agreements among some processes that have no communicator of their own yet, while others, or the same ones, make
//! others (MPI 5.0, sections 7.4.2, 7.6 and 11.3).
//!
//! ```text
//!   message    length of the name (32) | name | data         sender: its rank in the world
//!   name       what is made | what its calls are told apart by | all who take part, in their order
//!   mailbox    what has arrived, by sender and name, in the order in which it was sent
//! ```
//! Names are compared whole: a hash, or a rank among those who agree, is the same for others, too. Agreements of one name
//! follow each other in the same order at all who take part, and so does what each of them sends to another: the
//! next message of the name from a process is the one that is waited for.

use crate::{Engine, Error, Group, class};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use weft_collective::rank;
use weft_fabric::{Fabric, Fault, Staging};
use weft_p2p::{Context, Mode, RequestId, Source, Target, Want};

/// The matching space of these messages, which belongs to no communicator.
const CONTEXT: Context = Context(crate::comm::NONE << 1 | 1);
const ANY: Want = Want { context: CONTEXT, source: Source::Any, tag: None };

/// Who takes part in what: the same bytes at all of them, and at nobody else.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Name(Rc<[u8]>);

/// What is made.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub(crate) enum Making {
    /// MPI_Comm_create_group.
    Group = 1,
    /// MPI_Comm_create_from_group.
    FromGroup = 2,
    /// MPI_Intercomm_create: within a communicator, and between the leaders.
    Sides = 3,
    Bridge = 4,
    /// MPI_Intercomm_create_from_groups: within a group, and between the leaders.
    OneOfGroups = 5,
    BridgeOfGroups = 6,
}

impl Name {
    /// `told_apart` by numbers (a communicator, a tag) or by a text; `groups` of those who take part.
    pub fn new(making: Making, numbers: &[u64], text: &str, groups: &[&Group]) -> Name {
        let mut bytes = vec![making as u8];
        let mut add = |word: u64| bytes.extend(word.to_le_bytes());
        numbers.iter().for_each(|&number| add(number));
        add(text.len() as u64);
        groups.iter().for_each(|group| add(group.size() as u64));
        bytes.extend(text.as_bytes());
        for group in groups {
            runs(group.ranks(), |run| bytes.extend(run.iter().flat_map(|n| n.to_le_bytes())));
        }
        Name(bytes.into())
    }
}

/// A list of ranks as runs of equal steps: first, step, number. One list has one form.
fn runs(ranks: &[u32], mut each: impl FnMut([u32; 3])) {
    let mut left = ranks;
    while let [first, rest @ ..] = left {
        let step = rest.first().map_or(0, |second| second.wrapping_sub(*first));
        let alike = left.windows(2).take_while(|pair| pair[1].wrapping_sub(pair[0]) == step);
        let count = 1 + alike.count();
        each([*first, step, count as u32]);
        left = &left[count..];
    }
}

/// Who sends, in which agreement.
type Sender = (u32, Name);

/// What a process has for a new communicator; the largest of all counts for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Means(pub u64);

impl Means {
    pub const ALL: Means = Means(0);
    /// No memory that ranks share.
    pub const LEAN: Means = Means(1);

    /// Nothing, at this process of the world.
    pub fn none(rank: usize) -> Means {
        Means(rank as u64 + 2)
    }

    /// Whether all do without shared memory. Errors: with this process's own reason if it has one.
    pub fn settle(self, refusal: Option<Error>) -> Result<bool, Error> {
        match self.0 {
            0 | 1 => Ok(self == Means::LEAN),
            process => Err(refusal.unwrap_or_else(|| {
                let process = process - 2;
                let text = format!(
                    "process {process} of the world has no room for another communicator, so nobody gets it"
                );
                Error::new(class::NO_MEM, text)
            })),
        }
    }
}

/// What has arrived for agreements of this process.
#[derive(Default)]
pub(crate) struct Mailbox {
    letters: RefCell<HashMap<Sender, VecDeque<Vec<u8>>>>,
    /// Somebody takes a message in: the next one waits, so that they stay in order.
    taking: Cell<bool>,
}

/// One process's part in one agreement.
pub(crate) struct Agreement<F: Fabric> {
    engine: Rc<Engine<F>>,
    name: Name,
}

/// Sends that are under way.
#[must_use]
pub(crate) struct Told(Option<(RequestId, Staging)>);

impl<F: Fabric> Agreement<F> {
    pub fn new(engine: &Rc<Engine<F>>, name: Name) -> Agreement<F> {
        Agreement { engine: engine.clone(), name }
    }

    /// Sends `data` to process `peer` of the world.
    pub fn tell(&self, peer: u32, data: &[u8]) -> Told {
        let (endpoint, name) = (self.engine.endpoint(), &self.name.0);
        let bytes = [&(name.len() as u32).to_le_bytes()[..], name, data].concat();
        let memory = endpoint.staging().take(bytes.len());
        memory.sge().fill(&bytes);
        let rank = self.engine.rank() as u32;
        let target = Target { context: CONTEXT, peer: peer as usize, rank, tag: 0 };
        Told(endpoint.isend(target, memory.sge(), Mode::Standard).map(|id| (id, memory)))
    }

    /// Waits until what was told has left.
    pub async fn left(&self, told: Told) -> Result<(), Error> {
        if let Told(Some((id, _memory))) = told {
            self.engine.endpoint().wait(id).await?;
        }
        Ok(())
    }

    /// The next data that process `peer` of the world says in agreements of this name.
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

    /// Takes one message in, whosever it is; false if there is none.
    async fn take_one(&self) -> Result<bool, Error> {
        let (endpoint, mailbox) = (self.engine.endpoint(), self.engine.mailbox());
        let Some(message) = endpoint.take(&ANY) else { return Ok(false) };
        let (from, memory) = (message.rank, endpoint.staging().take(message.len as usize));
        mailbox.taking.set(true);
        let come = endpoint.wait(endpoint.imrecv(message, memory.sge())).await;
        mailbox.taking.set(false);
        come?;
        let mut bytes = vec![0; memory.len()];
        memory.sge().read(&mut bytes);
        let (name, data) = parts(&bytes).ok_or_else(|| malformed(from))?;
        let key = (from, Name(name.into()));
        mailbox.letters.borrow_mut().entry(key).or_default().push_back(data.to_vec());
        // Others of this process may wait for what was taken, or for their turn.
        endpoint.notify_probes();
        self.engine.wake_siblings();
        Ok(true)
    }

    /// `data` of the member at place `root`, to all. Every member calls it; `me` is the own place.
    pub async fn broadcast(
        &self,
        members: &[u32],
        (root, me): (usize, usize),
        data: Vec<u8>,
    ) -> Result<Vec<u8>, Error> {
        let tree = Tree { members, root, me };
        let data = match tree.parent() {
            Some(parent) => self.hear(parent).await?,
            None => data,
        };
        let told: Vec<Told> = tree.children().rev().map(|to| self.tell(to, &data)).collect();
        for told in told {
            self.left(told).await?;
        }
        Ok(data)
    }

    /// The largest of what all say, at place `root`; elsewhere the largest of some.
    pub async fn largest(
        &self,
        members: &[u32],
        (root, me): (usize, usize),
        mine: u64,
    ) -> Result<u64, Error> {
        let tree = Tree { members, root, me };
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

/// A binomial tree of those who take part, by rank in the world.
struct Tree<'m> {
    members: &'m [u32],
    root: usize,
    me: usize,
}

impl Tree<'_> {
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

impl Mailbox {
    fn open(&self, key: &Sender) -> Option<Vec<u8>> {
        let letters = &mut *self.letters.borrow_mut();
        let queue = letters.get_mut(key)?;
        let data = queue.pop_front();
        if queue.is_empty() {
            letters.remove(key);
        }
        data
    }
}

/// Name and data of a message.
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
        Name::new(Making::FromGroup, numbers, text, &groups.iter().collect::<Vec<_>>())
    }

    #[test]
    fn names_differ_in_all_that_tells_agreements_apart() {
        let mut lists: Vec<Vec<u32>> = vec![vec![]];
        // All ordered lists of up to five of five ranks.
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
            Name::new(Making::Group, &[1, 2], "a", &[&Group::new([0, 1]), &Group::new([2])]),
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
