//! Attributes cached on an object (MPI 5.0, section 7.7): values by key. The layer above calls the callbacks.

/// The attributes of one object, in the order in which they were set.
#[derive(Debug, Default)]
pub struct Attributes {
    values: Vec<(i32, usize)>,
}

impl Attributes {
    /// Returns the value set for `key`; `None` if no value is set (MPI_Comm_get_attr and the like).
    pub fn get(&self, key: i32) -> Option<usize> {
        self.values.iter().find(|(k, _)| *k == key).map(|&(_, v)| v)
    }

    /// Sets a value. Returns the former value, if there was one.
    pub fn set(&mut self, key: i32, value: usize) -> Option<usize> {
        match self.values.iter_mut().find(|(k, _)| *k == key) {
            Some((_, old)) => Some(std::mem::replace(old, value)),
            None => {
                self.values.push((key, value));
                None
            }
        }
    }

    /// Removes the value of `key` and returns this value. The layer above calls the delete callback. The other values keep their
    /// order.
    pub fn remove(&mut self, key: i32) -> Option<usize> {
        let at = self.values.iter().position(|(k, _)| *k == key)?;
        Some(self.values.remove(at).1)
    }

    /// Returns keys and values, in order.
    pub fn all(&self) -> Vec<(i32, usize)> {
        self.values.clone()
    }
}
