//! Messages of agreements that have arrived, by sender and by the agreement's name.

use crate::Group;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

/// Name of an agreement, made of its subject and its members. All members make the same name, and no other process makes this name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Name(pub Rc<[u8]>);

/// Kind of call that makes an object by an agreement.
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
    /// Makes the name of an agreement. Numbers (of a communicator, a tag) or a text distinguish the agreement from other agreements
    /// of the same kind. `groups`: the groups of the members.
    pub fn new(making: Making, numbers: &[u64], text: &[u8], groups: &[&Group]) -> Name {
        let mut bytes = vec![making as u8];
        let mut add = |word: u64| bytes.extend(word.to_le_bytes());
        numbers.iter().for_each(|&number| add(number));
        add(text.len() as u64);
        groups.iter().for_each(|group| add(group.size() as u64));
        bytes.extend(text);
        for group in groups {
            runs(group.ranks(), |run| bytes.extend(run.iter().flat_map(|n| n.to_le_bytes())));
        }
        Name(bytes.into())
    }
}

/// Divides a list of ranks into runs with equal steps. Calls `each` with the first rank, the step and the length of each run. The
/// runs of equal lists are equal.
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

/// Sender of a message, and the agreement to which the message belongs.
pub(crate) type Sender = (u32, Name);

/// Messages that have arrived for agreements of this process.
#[derive(Default)]
pub(crate) struct Mailbox {
    letters: RefCell<HashMap<Sender, VecDeque<Vec<u8>>>>,
    /// True while a message is taken. The next message is not taken meanwhile, so that messages stay in order.
    pub taking: Cell<bool>,
}

impl Mailbox {
    /// Returns the next message of an agreement from a process, if it has arrived.
    pub fn open(&self, key: &Sender) -> Option<Vec<u8>> {
        let letters = &mut *self.letters.borrow_mut();
        let queue = letters.get_mut(key)?;
        let data = queue.pop_front();
        if queue.is_empty() {
            letters.remove(key);
        }
        data
    }

    /// Forgets messages that process `peer` of another job has sent and that nobody has received.
    pub fn forget(&self, peer: u32) {
        self.letters.borrow_mut().retain(|(from, _), _| *from != peer);
    }

    /// Appends a message to the earlier messages of the same sender and agreement.
    pub fn put(&self, key: Sender, data: Vec<u8>) {
        self.letters.borrow_mut().entry(key).or_default().push_back(data);
    }
}
