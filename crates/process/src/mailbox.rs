//! Messages of agreements that have arrived, by sender and by the agreement's name.

use crate::Group;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

/// Who takes part in what: the same bytes at all of them, and at nobody else.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Name(pub Rc<[u8]>);

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
pub(crate) type Sender = (u32, Name);

/// What has arrived for agreements of this process.
#[derive(Default)]
pub(crate) struct Mailbox {
    letters: RefCell<HashMap<Sender, VecDeque<Vec<u8>>>>,
    /// Somebody takes a message in: the next one waits, so that they stay in order.
    pub taking: Cell<bool>,
}

impl Mailbox {
    /// The next letter of an agreement from a process, if it has come.
    pub fn open(&self, key: &Sender) -> Option<Vec<u8>> {
        let letters = &mut *self.letters.borrow_mut();
        let queue = letters.get_mut(key)?;
        let data = queue.pop_front();
        if queue.is_empty() {
            letters.remove(key);
        }
        data
    }

    /// Forgets what a process of another job has said that nobody heard.
    pub fn forget(&self, peer: u32) {
        self.letters.borrow_mut().retain(|(from, _), _| *from != peer);
    }

    /// Puts a letter behind those that have come before it.
    pub fn put(&self, key: Sender, data: Vec<u8>) {
        self.letters.borrow_mut().entry(key).or_default().push_back(data);
    }
}
