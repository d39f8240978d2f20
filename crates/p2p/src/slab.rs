//! Slots by number, in chunks of equal length. Growth copies nothing, a number is resolved by one table look-up without a
//! search, and the first few slots lie in the owner itself.

/// Number of slots inside the slab.
const FIRST: u32 = 4;
/// Number of slots in a chunk. In the first chunk, the first [`FIRST`] slots are unused, because the slots with these numbers are
/// in the slab itself.
const CHUNK: usize = 16;

/// Number that means no slot.
pub const NONE: u32 = u32::MAX;

/// A growing set of `T`, addressed by number. Freed numbers are used again, the last freed number first.
// The fields that every call reads lie in one cache line.
#[repr(C)]
pub struct Slab<T> {
    used: usize,
    most: usize,
    free: Vec<u32>,
    chunks: Vec<Box<[T; CHUNK]>>,
    first: [T; FIRST as usize],
}

impl<T: Default> Slab<T> {
    pub fn new() -> Slab<T> {
        let first = std::array::from_fn(|_| T::default());
        Slab { first, chunks: Vec::new(), free: (0..FIRST).rev().collect(), used: 0, most: 0 }
    }

    /// Takes a free slot, which keeps its old content. Returns the number of the slot.
    #[inline(always)]
    pub fn take(&mut self) -> u32 {
        self.used += 1;
        self.most = self.most.max(self.used);
        match self.free.pop() {
            Some(index) => index,
            None => self.grow(),
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> u32 {
        let end = (self.chunks.len() + 1) * CHUNK;
        let first = (end - CHUNK).max(FIRST as usize) as u32;
        self.chunks.push(Box::new(std::array::from_fn(|_| T::default())));
        // The free list has room for all slots, so that `give` allocates nothing, as signal handlers require.
        self.free.reserve(end);
        self.free.extend((first + 1..end as u32).rev());
        first
    }

    /// Frees a slot.
    #[inline(always)]
    pub fn give(&mut self, index: u32) {
        self.used -= 1;
        self.free.push(index);
    }

    /// Returns the number of slots in use.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Returns the maximum number of slots that were in use at once.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Restarts the maximum from the present number.
    pub fn restart_most(&mut self) {
        self.most = self.used;
    }

    pub fn get(&self, index: u32) -> Option<&T> {
        if let Some(slot) = self.first.get(index as usize) {
            return Some(slot);
        }
        self.chunks.get(index as usize / CHUNK).map(|chunk| &chunk[index as usize % CHUNK])
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let further = self.chunks.iter().flat_map(|chunk| chunk.iter()).skip(FIRST as usize);
        self.first.iter().chain(further)
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, index: u32) -> &T {
        if index < FIRST {
            return &self.first[index as usize];
        }
        &self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    #[inline(always)]
    fn index_mut(&mut self, index: u32) -> &mut T {
        if index < FIRST {
            return &mut self.first[index as usize];
        }
        &mut self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_each_other_without_gaps() {
        let mut slab: Slab<u64> = Slab::new();
        for next in 0..200 {
            assert_eq!(slab.take(), next);
            slab[next] = u64::from(next) + 1;
        }
        let all: Vec<u64> = slab.iter().copied().filter(|&value| value > 0).collect();
        assert_eq!(all, (1..=200).collect::<Vec<_>>());
    }

    #[test]
    fn numbers_are_reused_and_slots_do_not_move() {
        let mut slab: Slab<u64> = Slab::new();
        let all: Vec<u32> = (0..1000).map(|_| slab.take()).collect();
        for &i in &all {
            slab[i] = u64::from(i) + 1;
        }
        let address = &raw const slab[all[3]];
        slab.give(all[7]);
        assert_eq!(slab.take(), all[7]);
        for _ in 0..1000 {
            slab.take();
        }
        assert_eq!(&raw const slab[all[3]], address);
        assert!(all.iter().all(|&i| slab[i] == u64::from(i) + 1));
        assert_eq!(slab.len(), 2000);
        assert_eq!(slab.most(), 2000);
        slab.give(all[7]);
        assert_eq!(slab.most(), 2000);
        slab.restart_most();
        assert_eq!(slab.most(), 1999);
        assert!(slab.get(1 << 30).is_none());
    }
}
