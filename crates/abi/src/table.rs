//! Handles to objects: an index and a generation, so that a freed or foreign handle is found out.
//!
//! ```text
//!   bit   63   60                 36                  12            0
//!         | 0  | generation (24)  | index (24)        | class (12)  |
//! ```
//! The class is never 0 and the generation starts at 1, so a handle is above the predefined ones,
//! which all lie below 0x1000.

use std::ffi::c_int;

const INDEX_SHIFT: u32 = 12;
const GENERATION_SHIFT: u32 = 36;
const INDEX_MASK: usize = (1 << 24) - 1;
const GENERATION_MASK: usize = (1 << 24) - 1;

/// Predefined handles lie below.
pub const PREDEFINED_END: usize = 0x1000;

struct Slot<T> {
    generation: usize,
    object: Option<T>,
}

/// The objects of one class.
pub struct Table<T> {
    class: usize,
    slots: Vec<Slot<T>>,
    free: Vec<usize>,
}

impl<T> Table<T> {
    pub const fn new(class: usize) -> Table<T> {
        assert!(class > 0 && class < 16);
        Table { class, slots: Vec::new(), free: Vec::new() }
    }

    /// Keeps an object; its handle.
    pub fn insert(&mut self, object: T) -> usize {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                self.slots.push(Slot { generation: 0, object: None });
                self.slots.len() - 1
            }
        };
        assert!(index <= INDEX_MASK, "more than 16 million objects of one kind at once");
        let slot = &mut self.slots[index];
        slot.generation = (slot.generation + 1) & GENERATION_MASK;
        slot.generation += usize::from(slot.generation == 0);
        slot.object = Some(object);
        self.handle(index)
    }

    fn handle(&self, index: usize) -> usize {
        self.class | index << INDEX_SHIFT | self.slots[index].generation << GENERATION_SHIFT
    }

    fn index(&self, handle: usize) -> Option<usize> {
        let index = handle >> INDEX_SHIFT & INDEX_MASK;
        let live = index < self.slots.len() && self.handle(index) == handle;
        (live && self.slots[index].object.is_some()).then_some(index)
    }

    pub fn get(&self, handle: usize) -> Option<&T> {
        self.slots[self.index(handle)?].object.as_ref()
    }

    pub fn get_mut(&mut self, handle: usize) -> Option<&mut T> {
        let index = self.index(handle)?;
        self.slots[index].object.as_mut()
    }

    /// Ends a handle; its object.
    pub fn remove(&mut self, handle: usize) -> Option<T> {
        let index = self.index(handle)?;
        self.free.push(index);
        self.slots[index].object.take()
    }

    /// Handles of all objects.
    pub fn handles(&self) -> Vec<usize> {
        let live = |&i: &usize| self.slots[i].object.is_some();
        (0..self.slots.len()).filter(live).map(|i| self.handle(i)).collect()
    }

    /// An `int` for Fortran's sake (`MPI_Comm_toint`): predefined handles keep their value.
    pub fn to_int(&self, handle: usize) -> c_int {
        match self.index(handle) {
            Some(index) => (PREDEFINED_END + index) as c_int,
            None => handle as c_int,
        }
    }

    /// The handle behind such an `int`; of an unknown one a handle that no object has.
    #[allow(clippy::wrong_self_convention)] // MPI's name for it
    pub fn from_int(&self, int: c_int) -> usize {
        let int = int as u32 as usize;
        match int.checked_sub(PREDEFINED_END) {
            Some(index) if index < self.slots.len() => self.handle(index),
            _ => int,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_and_foreign_handles_are_found_out() {
        let mut table = Table::new(3);
        let mut other = Table::new(4);
        let a = table.insert("a");
        let b = table.insert("b");
        assert!(a > PREDEFINED_END && b > PREDEFINED_END && a != b);
        assert_eq!(table.get(a), Some(&"a"));
        assert_eq!(table.remove(a), Some("a"));
        assert_eq!(table.get(a), None);
        assert_eq!(table.remove(a), None);
        let c = table.insert("c");
        assert_ne!(a, c, "same place, another generation");
        let foreign = other.insert("d");
        assert_eq!(table.get(foreign), None);
        for nonsense in [0, 3, 0x101, usize::MAX, c ^ 1 << 40] {
            assert_eq!(table.get(nonsense), None, "{nonsense:#x}");
        }
        assert_eq!(table.handles().len(), 2);
    }

    #[test]
    fn integers_stand_for_handles() {
        let mut table = Table::new(1);
        let a = table.insert(7);
        assert_eq!(table.from_int(table.to_int(a)), a);
        assert_eq!(table.to_int(0x101), 0x101);
        assert_eq!(table.from_int(0x101), 0x101);
        assert_eq!(table.get(table.from_int(257)), None);
        assert_eq!(table.get(table.from_int(-5)), None);
    }
}
