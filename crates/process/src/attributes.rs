//! Attributes cached on an object (MPI 5.0, section 7.7): values by key. Callbacks are above.

/// The attributes of one object, in the order in which they were set.
#[derive(Debug, Default)]
pub struct Attributes {
    values: Vec<(i32, usize)>,
}

impl Attributes {
    /// The value set for `key`; `None` if none is set (MPI_Comm_get_attr and its kin).
    pub fn get(&self, key: i32) -> Option<usize> {
        self.values.iter().find(|(k, _)| *k == key).map(|&(_, v)| v)
    }

    /// Sets a value; the former one, if there was one.
    pub fn set(&mut self, key: i32, value: usize) -> Option<usize> {
        match self.values.iter_mut().find(|(k, _)| *k == key) {
            Some((_, old)) => Some(std::mem::replace(old, value)),
            None => {
                self.values.push((key, value));
                None
            }
        }
    }

    /// Takes the value of `key` out, for the layer above to call its delete callback on; the others
    /// keep their order.
    pub fn remove(&mut self, key: i32) -> Option<usize> {
        let at = self.values.iter().position(|(k, _)| *k == key)?;
        Some(self.values.remove(at).1)
    }

    /// Keys and values, in order.
    pub fn all(&self) -> Vec<(i32, usize)> {
        self.values.clone()
    }
}
