//! Info objects: ordered key-value pairs. Keys and values are strings of any bytes (MPI 5.0, chapter 10).

/// Maximum number of bytes of a key, without the terminating zero: MPI_MAX_INFO_KEY less 1.
pub const KEY_MAX: usize = 255;
/// Maximum number of bytes of a value, without the terminating zero: MPI_MAX_INFO_VAL less 1.
pub const VALUE_MAX: usize = 1023;

/// Key-value pairs in the order of their first setting.
#[derive(Debug, Default, Clone)]
pub struct Info {
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Info {
    /// Returns the value of `key`, in which upper and lower case differ.
    pub fn bytes(&self, key: impl AsRef<[u8]>) -> Option<&[u8]> {
        self.pairs.iter().find(|(k, _)| k == key.as_ref()).map(|(_, v)| v.as_slice())
    }

    /// Returns a value as text, or `None` if the value is missing or not UTF-8. For the library's own keys, whose values are words
    /// and numbers.
    pub fn get(&self, key: &str) -> Option<&str> {
        std::str::from_utf8(self.bytes(key)?).ok()
    }

    /// Sets the value of `key`. A key that has a value already keeps its place. The caller has checked both lengths.
    pub fn set<K: AsRef<[u8]> + ?Sized, V: AsRef<[u8]> + ?Sized>(&mut self, key: &K, value: &V) {
        let (key, value) = (key.as_ref(), value.as_ref());
        match self.pairs.iter_mut().find(|(k, _)| k == key) {
            Some((_, v)) => *v = value.to_owned(),
            None => self.pairs.push((key.to_owned(), value.to_owned())),
        }
    }

    /// Deletes `key`. Returns false if there is no such key.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> bool {
        let before = self.pairs.len();
        self.pairs.retain(|(k, _)| k != key.as_ref());
        self.pairs.len() != before
    }

    /// Returns the number of pairs (MPI_Info_get_nkeys).
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Returns true if no key is set.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Returns the key of the `n`-th pair.
    pub fn key(&self, n: usize) -> Option<&[u8]> {
        self.pairs.get(n).map(|(k, _)| k.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_place() {
        let mut info = Info::default();
        info.set("a", "1");
        info.set("b", "2");
        info.set("a", "3");
        assert_eq!((info.key(0), info.get("a"), info.len()), (Some(&b"a"[..]), Some("3"), 2));
        assert!(info.delete("a") && !info.delete("a"));
        assert_eq!(info.key(0), Some(&b"b"[..]));
        info.set("b", b"\xff");
        assert_eq!((info.get("b"), info.bytes("b")), (None, Some(&b"\xff"[..])));
        assert!(!info.is_empty());
    }
}
