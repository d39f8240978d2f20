//! What a communicator keeps for its collective operations, made when an algorithm first needs it.

use crate::Board;
use crate::arena::Arena;
use crate::edges::Pattern;
use crate::slots::Slots;
use std::cell::RefCell;
use std::rc::Rc;
use weft_fabric::Fabric;

/// One communicator's grounds.
pub struct Ground<F: Fabric> {
    /// Where ranks that share memory meet.
    pub board: Board<F>,
    /// The pool of the process.
    arena: Rc<Arena<F>>,
    slots: RefCell<Vec<Rc<Slots<F>>>>,
}

impl<F: Fabric> Ground<F> {
    pub fn new(arena: Rc<Arena<F>>) -> Ground<F> {
        Ground { board: Board::default(), arena, slots: RefCell::default() }
    }

    /// The slots of `pattern` for payloads of `len` bytes.
    pub fn slots(&self, pattern: Pattern, len: usize) -> Rc<Slots<F>> {
        let mut all = self.slots.borrow_mut();
        match all.iter().find(|slots| slots.serve(pattern, len)) {
            Some(slots) => slots.clone(),
            None => {
                let slots = Rc::new(Slots::new(pattern, len, self.arena.clone()));
                all.push(slots.clone());
                slots
            }
        }
    }
}
