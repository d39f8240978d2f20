//! Slots by number, in chunks that grow: growth copies nothing, a number costs no search, and few slots
//! lie in the owner itself.

/// Slots inside the slab. The first chunk beyond is as long, further ones as all before them, up to
/// [`LONGEST`].
const FIRST: u32 = 4;
/// Slots in the longest chunks: what a large slab may have too many.
const LONGEST: u32 = 256;
/// Chunks that differ in length.
const GROWING: u32 = (LONGEST / FIRST).ilog2() + 1;

/// No slot.
pub const NONE: u32 = u32::MAX;

/// Chunk and place of a slot that is not among the first.
#[inline]
fn place(index: u32) -> (usize, usize) {
    if index >= 2 * LONGEST {
        let beyond = index - 2 * LONGEST;
        return ((GROWING + beyond / LONGEST) as usize, (beyond % LONGEST) as usize);
    }
    let chunk = (index / FIRST).ilog2();
    (chunk as usize, (index - (FIRST << chunk)) as usize)
}

/// First slot of a chunk, and how many it has.
fn extent(chunk: u32) -> (u32, u32) {
    match chunk.checked_sub(GROWING) {
        None => (FIRST << chunk, FIRST << chunk),
        Some(beyond) => ((2 + beyond) * LONGEST, LONGEST),
    }
}

/// A growing set of `T`, addressed by number. Freed numbers are used again, last freed first.
// What every call looks at lies in one cache line.
#[repr(C)]
pub struct Slab<T> {
    used: usize,
    most: usize,
    free: Vec<u32>,
    chunks: Vec<Box<[T]>>,
    first: [T; FIRST as usize],
}

impl<T: Default> Slab<T> {
    pub fn new() -> Slab<T> {
        let first = std::array::from_fn(|_| T::default());
        Slab { first, chunks: Vec::new(), free: (0..FIRST).rev().collect(), used: 0, most: 0 }
    }

    /// A free slot, as it was left.
    pub fn take(&mut self) -> u32 {
        self.used += 1;
        self.most = self.most.max(self.used);
        if let Some(index) = self.free.pop() {
            return index;
        }
        let (first, len) = extent(self.chunks.len() as u32);
        self.chunks.push((0..len).map(|_| T::default()).collect());
        // To give slots back allocates nothing, as signal handlers need it.
        self.free.reserve((first + len) as usize);
        self.free.extend((first + 1..first + len).rev());
        first
    }

    /// Gives a slot back.
    pub fn give(&mut self, index: u32) {
        self.used -= 1;
        self.free.push(index);
    }

    /// Slots in use.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Largest number of slots that were in use at once.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Forgets that there ever were more than now.
    pub fn restart_most(&mut self) {
        self.most = self.used;
    }

    pub fn get(&self, index: u32) -> Option<&T> {
        if let Some(slot) = self.first.get(index as usize) {
            return Some(slot);
        }
        let (chunk, at) = place(index);
        self.chunks.get(chunk).and_then(|c| c.get(at))
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(self.chunks.iter().flat_map(|chunk| chunk.iter()))
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: u32) -> &T {
        if index < FIRST {
            return &self.first[index as usize];
        }
        let (chunk, at) = place(index);
        &self.chunks[chunk][at]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        if index < FIRST {
            return &mut self.first[index as usize];
        }
        let (chunk, at) = place(index);
        &mut self.chunks[chunk][at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_follow_each_other_without_gaps() {
        let mut next = FIRST;
        for chunk in 0..40 {
            let (first, len) = extent(chunk);
            assert_eq!(first, next);
            assert_eq!(place(first), (chunk as usize, 0));
            assert_eq!(place(first + len - 1), (chunk as usize, len as usize - 1));
            next += len;
        }
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
