//! Handles to objects: an index and a generation, so that a freed or foreign handle is detected.
//!
//! ```text
//!   bit   63     60                 36                  12            0
//!         | lane | generation (24)  | index (24)        | class (12)  |
//! ```
//! The lane ([`crate::lanes`]) is 0 for most objects. The table keeps it with the generation.
//!
//! The class is never 0 and the generation starts at 1, so a handle is above the predefined handles, which all lie below 0x1000.

use crate::memory_left::memory_left;
use std::ffi::c_int;

const INDEX_SHIFT: u32 = 12;
const GENERATION_SHIFT: u32 = 36;
const LANE_SHIFT: u32 = 60;
const INDEX_MASK: usize = (1 << 24) - 1;
const GENERATION_MASK: usize = (1 << 24) - 1;

/// Upper bound of the numbers of lanes, exclusive.
pub const LANES_END: usize = 15;

/// Number that the handle of a communicator has instead of a lane, if the tag of each message gives the lane. It is the last number
/// for which a handle has room.
pub const LANE_BY_TAG: usize = LANES_END;

/// Position of the lane in the `int` of a request that belongs to a lane.
pub const LANE_IN_INT: u32 = 25;

/// Maximum number of objects of one kind at once, unless [`HandleTable::set_most`] changes it. It is less than the number of
/// indices, because some objects are created some time after room was checked.
pub const MOST: usize = 16_000_000;

/// For each class: name of the objects, and the maximum number of bytes that an object takes, including all data attached to it.
const KINDS: [(&str, u64); 16] = [
    ("", 0),
    ("communicators", 4 << 10),
    ("groups", 256),
    ("datatypes", 512),
    ("operators", 256),
    ("info objects", 512),
    ("error handlers", 256),
    ("requests", 1 << 10),
    ("messages", 256),
    ("sessions", 256),
    ("windows", 8 << 10),
    ("files", 16 << 10),
    ("", 0),
    ("handles of control variables", 256),
    ("sessions of the tool interface", 256),
    ("handles of performance variables", 256),
];

/// Maximum number of bytes by which the table grows without a check of the memory that is left.
const UNASKED: u64 = 1 << 20;

/// Number of bytes of memory that the table leaves for other uses of the process.
const SPARED: u64 = 8 << 20;

/// Upper bound of predefined handles, exclusive.
pub const PREDEFINED_END: usize = 0x1000;

/// Returns the lane in a handle. It is 0 for objects that belong to no lane, and for predefined handles.
#[inline(always)]
pub const fn lane_of(handle: usize) -> usize {
    handle >> LANE_SHIFT
}

/// Returns the index in a handle, which no other object of the class has at the same time.
#[inline(always)]
pub const fn index_of(handle: usize) -> usize {
    handle >> INDEX_SHIFT & INDEX_MASK
}

/// Error text if there is no room for an object.
#[derive(Debug)]
pub struct Full(pub String);

struct Slot<T> {
    /// Generation, and the lane above it.
    generation: usize,
    object: Option<T>,
}

/// The objects of one class.
pub struct HandleTable<T> {
    class: usize,
    slots: Vec<Slot<T>>,
    free: Vec<usize>,
    most: usize,
    /// Number of objects at the start of the table that are never removed, and that do not count towards the maximum.
    permanent: usize,
}

impl<T> HandleTable<T> {
    /// Makes an empty table, whose handles have this class: 1 to 15.
    pub const fn new(class: usize) -> HandleTable<T> {
        assert!(class > 0 && class < 16);
        HandleTable { class, slots: Vec::new(), free: Vec::new(), most: MOST, permanent: 0 }
    }

    /// Sets the maximum number of objects at once.
    pub fn set_most(&mut self, most: usize) {
        self.most = most + self.permanent;
    }

    /// Returns the maximum number of objects at once.
    pub fn most(&self) -> usize {
        self.most - self.permanent
    }

    /// Stores an object that is never removed, before any other object is stored. Returns its handle, which is the same in every
    /// process.
    pub fn insert_permanent(&mut self, object: T) -> usize {
        assert_eq!(self.slots.len(), self.permanent, "permanent objects come first");
        self.permanent += 1;
        self.most += 1;
        self.insert(object)
    }

    /// Returns true if there is room for one more object without growing.
    #[inline(always)]
    pub fn has_room(&self) -> bool {
        !self.free.is_empty() || self.slots.len() < self.slots.capacity().min(self.most)
    }

    /// Makes room for one more object. Must be called before the object is created, so that a call of MPI that fails here has no
    /// effect. If the table has to grow by more than `UNASKED` bytes, checks how much memory is left, and takes at most half of it.
    ///
    /// # Errors
    /// NO_MEM: the maximum number of objects is reached, or there is no memory for another object.
    #[inline]
    pub fn room(&mut self) -> Result<(), Full> {
        if self.has_room() { Ok(()) } else { self.grow() }
    }

    #[cold]
    fn grow(&mut self) -> Result<(), Full> {
        let (slots, (name, each)) = (self.slots.len(), KINDS[self.class]);
        let len = slots - self.permanent;
        if slots >= self.most {
            let text = format!(
                "there are {len} {name}, which is the most that a process may have at once (WEFT_OBJECTS, at most {MOST}): \
                 free some"
            );
            return Err(Full(text));
        }
        let each = each + (size_of::<Slot<T>>() + size_of::<usize>()) as u64;
        let mut more = len.max(16).min(self.most - slots);
        if more as u64 * each > UNASKED {
            let left = memory_left();
            more = more.min((left.saturating_sub(SPARED) / 2 / each) as usize);
            if more == 0 {
                return Err(no_memory(len, name, each, left));
            }
        }
        // The list of free slots gets its memory now, because freeing an object must not need memory.
        let free = slots + more - self.free.len();
        let reserved =
            self.free.try_reserve_exact(free).and_then(|()| self.slots.try_reserve_exact(more));
        reserved.map_err(|_| no_memory(len, name, each, memory_left()))
    }

    /// Stores an object. Returns its handle.
    #[inline(always)]
    pub fn insert(&mut self, object: T) -> usize {
        let index = match self.free.pop() {
            Some(index) => index,
            None => self.another(),
        };
        let slot = &mut self.slots[index];
        slot.generation = (slot.generation + 1) & GENERATION_MASK;
        slot.generation += usize::from(slot.generation == 0);
        // A free slot has no object, so there is nothing to drop.
        std::mem::forget(slot.object.replace(object));
        self.class | index << INDEX_SHIFT | slot.generation << GENERATION_SHIFT
    }

    /// Stores an object that belongs to a lane. Returns its handle, which names the lane ([`lane_of`]).
    #[inline(always)]
    pub fn insert_in(&mut self, lane: usize, object: T) -> usize {
        let handle = self.insert(object);
        self.slots[index_of(handle)].generation |= lane << (LANE_SHIFT - GENERATION_SHIFT);
        handle | lane << LANE_SHIFT
    }

    #[cold]
    fn another(&mut self) -> usize {
        self.slots.push(Slot { generation: 0, object: None });
        let index = self.slots.len() - 1;
        assert!(index <= INDEX_MASK, "more than 16 million objects of one kind at once");
        index
    }

    #[inline(always)]
    fn handle(&self, index: usize) -> usize {
        self.class | index << INDEX_SHIFT | self.slots[index].generation << GENERATION_SHIFT
    }

    #[inline(always)]
    fn index(&self, handle: usize) -> Option<usize> {
        let index = handle >> INDEX_SHIFT & INDEX_MASK;
        let slot = self.slots.get(index)?;
        let named = self.class | index << INDEX_SHIFT | slot.generation << GENERATION_SHIFT;
        (named == handle && slot.object.is_some()).then_some(index)
    }

    /// Returns the object of a handle, or `None` if there is no such object.
    #[inline(always)]
    pub fn get(&self, handle: usize) -> Option<&T> {
        self.slots[self.index(handle)?].object.as_ref()
    }

    /// Returns the object of a handle, so that the caller can change the object. Returns `None` if there is no such object.
    #[inline(always)]
    pub fn get_mut(&mut self, handle: usize) -> Option<&mut T> {
        let index = self.index(handle)?;
        self.slots[index].object.as_mut()
    }

    /// Removes the object of a handle, and returns the object.
    #[inline(always)]
    pub fn remove(&mut self, handle: usize) -> Option<T> {
        let index = self.index(handle).filter(|&index| index >= self.permanent)?;
        self.free.push(index);
        self.slots[index].object.take()
    }

    /// Removes the object of a handle if `has` returns a value for the object. Returns this value and the object.
    #[inline(always)]
    pub fn remove_if<R>(
        &mut self,
        handle: usize,
        has: impl FnOnce(&T) -> Option<R>,
    ) -> Option<(R, T)> {
        let index = self.index(handle).filter(|&index| index >= self.permanent)?;
        let slot = &mut self.slots[index];
        let found = has(slot.object.as_ref()?)?;
        self.free.push(index);
        Some((found, slot.object.take()?))
    }

    /// Returns all objects.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|slot| slot.object.as_ref())
    }

    /// Returns all objects.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| slot.object.as_mut())
    }

    /// Returns the handles of all objects.
    pub fn handles(&self) -> Vec<usize> {
        let live = |&i: &usize| self.slots[i].object.is_some();
        (0..self.slots.len()).filter(live).map(|i| self.handle(i)).collect()
    }

    /// Returns an `int` for a handle, for Fortran (`MPI_Comm_toint`). Predefined handles keep their value. The result is less than
    /// `1 << LANE_IN_INT` for every object, so there is room for a lane above it.
    pub fn to_int(&self, handle: usize) -> c_int {
        match self.index(handle) {
            Some(index) => (PREDEFINED_END + index) as c_int,
            None => handle as c_int,
        }
    }

    /// Returns the handle of an `int` of [`HandleTable::to_int`]. For an unknown `int`, returns a handle that no object has.
    #[allow(clippy::wrong_self_convention)] // MPI's name for it
    pub fn from_int(&self, int: c_int) -> usize {
        let int = int as u32 as usize;
        match int.checked_sub(PREDEFINED_END) {
            Some(index) if index < self.slots.len() => self.handle(index),
            _ => int,
        }
    }
}

#[cold]
fn no_memory(len: usize, name: &str, each: u64, left: u64) -> Full {
    let text = format!(
        "there are {len} {name}, and no memory for more: {left} bytes are left for this process by the machine, its control \
         group and ulimit -v, of which {SPARED} are spared, and each may take {each}: free some"
    );
    Full(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_again_when_some_are_freed() {
        let mut table = HandleTable::new(2);
        table.set_most(20);
        let mut handles = Vec::new();
        while table.room().is_ok() {
            handles.push(table.insert(()));
        }
        assert_eq!(handles.len(), 20);
        let error = table.room().expect_err("full");
        assert!(error.0.starts_with("there are 20 groups, which is the most"), "{error:?}");
        table.remove(handles[7]);
        assert!(table.room().is_ok());
        table.insert(());
        assert!(table.room().is_err());
    }

    #[test]
    fn freed_and_foreign_handles_are_found_out() {
        let mut table = HandleTable::new(3);
        let mut other = HandleTable::new(4);
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
    fn a_permanent_object_is_not_counted_and_stays() {
        let mut table = HandleTable::new(7);
        let first = table.insert_permanent(1);
        table.set_most(2);
        assert_eq!(first, 7 | 1 << GENERATION_SHIFT);
        for _ in 0..2 {
            table.room().unwrap();
            table.insert(2);
        }
        let error = table.room().expect_err("full");
        assert!(error.0.starts_with("there are 2 requests, which is the most"), "{error:?}");
        assert_eq!((table.remove(first), table.get(first)), (None, Some(&1)));
    }

    #[test]
    fn a_handle_names_its_lane_until_it_is_freed() {
        let mut table = HandleTable::new(7);
        let a = table.insert_in(9, "a");
        assert_eq!((lane_of(a), index_of(a)), (9, 0));
        assert_eq!((table.get(a), table.handles()), (Some(&"a"), vec![a]));
        assert_eq!(table.get(a ^ 1 << LANE_SHIFT), None);
        assert_eq!(table.from_int(table.to_int(a)), a);
        assert_eq!(table.remove(a), Some("a"));
        let b = table.insert("b");
        assert_eq!((lane_of(b), index_of(b), table.get(a)), (0, 0, None));
        assert!(table.get(b).is_some());
    }

    #[test]
    fn integers_stand_for_handles() {
        let mut table = HandleTable::new(1);
        let a = table.insert(7);
        assert_eq!(table.from_int(table.to_int(a)), a);
        assert_eq!(table.to_int(0x101), 0x101);
        assert_eq!(table.from_int(0x101), 0x101);
        assert_eq!(table.get(table.from_int(257)), None);
        assert_eq!(table.get(table.from_int(-5)), None);
    }
}
