//! Which algorithm a communicator's call uses: [`Selection`], with what is known of where its ranks are.

use crate::Comm;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use weft_collective::algorithm::Need;
use weft_collective::selection_key::Near;
use weft_collective::{
    Choice, Chosen, Operation, Reason, Selection, SelectionKey, Topology, all_do_atomics, apart,
    share_memory,
};
use weft_fabric::{Fabric, FabricExt};

/// A communicator's selection, and the last choice for each operation: programs repeat themselves.
#[derive(Default)]
pub struct Choosing {
    selection: RefCell<Rc<Selection>>,
    site: OnceCell<Topology>,
    /// Boxed one by one: few operations are used on most communicators, of which a simulated world has very many.
    recent: [OnceCell<Box<Last>>; Operation::ALL.len()],
}

/// The last choice for an operation, and what it was for.
type Last = Cell<Option<(CallKey, Near, Choice)>>;

/// What a choice depends on beside the communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallKey {
    /// Bytes as [`Operation::measure`] counts them for the operation.
    pub bytes: usize,
    /// Bytes of one element of a reduction; 1 elsewhere.
    pub element: usize,
    /// Whether the operator of a reduction commutes; true elsewhere.
    pub commutes: bool,
    /// Whether the blocks of all ranks have one length; true where there are no blocks.
    pub equal: bool,
}

impl CallKey {
    /// An operation that moves data in blocks of one length.
    pub fn of(bytes: usize) -> CallKey {
        CallKey { bytes, element: 1, commutes: true, equal: true }
    }
}

impl<F: Fabric> Comm<F> {
    /// Which algorithms it uses.
    pub fn selection(&self) -> Rc<Selection> {
        self.choosing.selection.borrow().clone()
    }

    /// All ranks must select the same.
    pub fn select(&self, selection: Rc<Selection>) {
        if let Some(view) = self.nonblocking_context.get() {
            view.select(selection.clone());
        }
        self.state.select(selection.clone());
        *self.choosing.selection.borrow_mut() = selection;
        self.choosing.recent.iter().filter_map(OnceCell::get).for_each(|last| last.set(None));
    }

    /// Where its ranks are; what they tell each other later is not in it.
    pub fn site(&self) -> Topology {
        *self.choosing.site.get_or_init(|| {
            let fabric = self.engine.endpoint().fabric();
            let members = self.group().ranks();
            let multicast = fabric.capabilities(fabric.rank()).multicast_max;
            let mut nodes: Vec<usize> = members.iter().map(|&m| fabric.node(m as usize)).collect();
            nodes.sort_unstable();
            let crowds = nodes.chunk_by(|a, b| a == b).map(<[usize]>::len);
            Topology {
                same_node: share_memory(fabric, members) && !self.state.is_lean(),
                nodes: crowds.clone().count(),
                ranks_per_node: crowds.max().unwrap_or(0),
                multicast: if self.state.may_multicast() { multicast } else { 0 },
                same_arithmetic: fabric.same_arithmetic(),
                atomics: all_do_atomics(fabric, members),
                near: Near::default(),
            }
        })
    }

    /// What its ranks know of each other right before the next operation, all of them the same.
    fn near(&self) -> Near {
        self.state.area.near(self.rank())
    }

    /// What serves a call, and why.
    pub fn chosen(&self, operation: Operation, case: &SelectionKey) -> Chosen {
        let model = self.engine.endpoint().fabric().copies().model();
        self.choosing.selection.borrow().choose(operation, case, model)
    }

    pub(crate) fn choose(&self, operation: Operation, asked: CallKey) -> Choice {
        let recent = &self.choosing.recent[operation as usize];
        let near = self.near();
        let last = recent.get().and_then(|last| last.get());
        if let Some((_, _, choice)) = last.filter(|last| (last.0, last.1) == (asked, near)) {
            return choice;
        }
        let CallKey { bytes, element, commutes, equal } = asked;
        let site = Topology { near, ..self.site() };
        let case = SelectionKey { ranks: self.size(), bytes, element, commutes, equal, site };
        let Chosen { mut choice, reason, .. } = self.chosen(operation, &case);
        // Ranks wait for each other in it, and one that computes would hold the others up: what runs in
        // the background sends messages, which are kept for it.
        let meets = choice.algorithm.meets() && reason != Reason::Asked;
        if meets && !self.is_foreground() {
            choice = apart(operation, &case);
        }
        recent.get_or_init(Box::default).set(Some((asked, near, choice)));
        if choice.algorithm.needs.contains(&Need::Multicast) {
            // A root that computes repairs what is lost.
            self.engine.want_helper();
        }
        choice
    }
}
