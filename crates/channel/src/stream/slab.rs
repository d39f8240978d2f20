//! Records by number, which keep what they hold of memory when they are used again.

/// A growing set of `T`. Freed numbers are used again, last freed first.
#[derive(Default)]
pub struct Slab<T> {
    items: Vec<T>,
    free: Vec<u32>,
}

impl<T: Default> Slab<T> {
    /// A free record, as it was left.
    pub fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.items.push(T::default());
            self.items.len() as u32 - 1
        })
    }

    pub fn give(&mut self, index: u32) {
        self.free.push(index);
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter()
    }

    pub fn get(&self, index: u32) -> Option<&T> {
        self.items.get(index as usize)
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, index: u32) -> &T {
        &self.items[index as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.items[index as usize]
    }
}
