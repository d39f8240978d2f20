//! Slots by number, in chunks that never move and double: growth copies nothing, a number costs no
//! search, and few slots take little memory.

/// Slots in the first chunk; each further one is as long as all before it.
const FIRST: u32 = 8;

/// Chunk and place of a slot.
#[inline]
fn place(index: u32) -> (usize, usize) {
    let chunk = (index / FIRST + 1).ilog2();
    (chunk as usize, (index - FIRST * ((1 << chunk) - 1)) as usize)
}

/// No slot.
pub const NONE: u32 = u32::MAX;

/// A growing set of `T`, addressed by number. Freed numbers are used again, last freed first.
pub struct Slab<T> {
    chunks: Vec<Box<[T]>>,
    free: Vec<u32>,
    used: usize,
    most: usize,
}

impl<T: Default> Slab<T> {
    pub fn new() -> Slab<T> {
        Slab { chunks: Vec::new(), free: Vec::new(), used: 0, most: 0 }
    }

    /// A free slot, as it was left.
    pub fn take(&mut self) -> u32 {
        self.used += 1;
        self.most = self.most.max(self.used);
        if let Some(index) = self.free.pop() {
            return index;
        }
        let len = FIRST << self.chunks.len();
        let first = len - FIRST;
        self.chunks.push((0..len).map(|_| T::default()).collect());
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

    pub fn get(&self, index: u32) -> Option<&T> {
        let (chunk, at) = place(index.min(NONE - FIRST));
        self.chunks.get(chunk).and_then(|c| c.get(at))
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, index: u32) -> &T {
        let (chunk, at) = place(index);
        &self.chunks[chunk][at]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, index: u32) -> &mut T {
        let (chunk, at) = place(index);
        &mut self.chunks[chunk][at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(slab.get(1 << 30).is_none());
    }
}
