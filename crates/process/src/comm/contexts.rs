//! The views of a communicator for operations that do not run in the order of its blocking calls.

use super::Comm;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use weft_collective::CollectiveState;
use weft_fabric::Fabric;

/// Maximum number of persistent contexts per communicator whose operations may multicast. The number is bounded because a program
/// may initialize any number of persistent requests, and each request has a context of its own. The ranks free a request at
/// different times, so the multicast group of the request's context is kept until the communicator is freed.
const CASTING_LANES: usize = 64;

/// The views of one communicator.
pub struct CommContexts<F: Fabric> {
    nonblocking: OnceCell<Rc<Comm<F>>>,
    /// States of persistent contexts that may multicast: [`Comm::close`] must end their multicast groups.
    persistent: RefCell<Vec<Rc<CollectiveState<F>>>>,
    /// Number of persistent operations that were initialized.
    initialized: Cell<usize>,
}

impl<F: Fabric> Default for CommContexts<F> {
    fn default() -> CommContexts<F> {
        CommContexts {
            nonblocking: OnceCell::new(),
            persistent: RefCell::default(),
            initialized: Cell::new(0),
        }
    }
}

impl<F: Fabric> CommContexts<F> {
    /// Returns the view for nonblocking operations, if it was made.
    pub fn nonblocking(&self) -> Option<&Rc<Comm<F>>> {
        self.nonblocking.get()
    }

    /// Returns the view for nonblocking operations. The first call makes it.
    pub fn nonblocking_or(&self, make: impl FnOnce() -> Rc<Comm<F>>) -> &Rc<Comm<F>> {
        self.nonblocking.get_or_init(make)
    }

    /// Makes the view for one more persistent operation. `make` gets the number of views made before. This number is the same on
    /// all ranks, because the choice of algorithms depends on it.
    pub fn add_persistent(&self, make: impl FnOnce(usize) -> Rc<Comm<F>>) -> Rc<Comm<F>> {
        let before = self.initialized.replace(self.initialized.get() + 1);
        let context = make(before);
        if before < CASTING_LANES {
            let mut states = self.persistent.borrow_mut();
            // A context whose request was freed, and which has not multicast, has nothing to end.
            states.retain(|state| Rc::strong_count(state) > 1 || state.has_multicast());
            states.push(context.state.clone());
        } else {
            context.state.forbid_multicast();
        }
        context
    }

    /// Returns the states of all views, in the same order on all ranks.
    pub fn states(&self) -> impl Iterator<Item = Rc<CollectiveState<F>>> + use<F> {
        let nonblocking = self.nonblocking.get().map(|view| view.state.clone());
        nonblocking.into_iter().chain(self.persistent.borrow().clone())
    }
}
