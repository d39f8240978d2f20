//! Values of arbitrary bytes in key-value spaces that hold only short texts, as in PMI-1 and PMI-2.
//!
//! A value is encoded in base64, whose characters have no special meaning in either protocol, and cut into pieces that the
//! launcher accepts:
//!
//! ```text
//!   w3-shm    = 2.K3dlZnQt...     number of pieces, first piece
//!   w3-shm-1  = ...               second piece
//! ```

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;

use crate::BootstrapError;
use crate::member::Space;

/// Key-value space of a protocol whose values are texts.
pub(crate) trait Wire: Send {
    /// Returns the maximum length of a value, in bytes.
    fn room(&self) -> usize;
    fn put(&mut self, key: &str, value: &str) -> Result<(), BootstrapError>;
    fn get(&mut self, rank: usize, key: &str) -> Result<Option<String>, BootstrapError>;
    fn fence(&mut self) -> Result<(), BootstrapError>;
    fn finalize(&mut self) -> Result<(), BootstrapError>;
    fn abort(&mut self, code: i32, message: &str);
}

/// A [`Wire`] that carries bytes.
pub(crate) struct Text<W>(pub W);

/// Returns the key of a piece of a value in the launcher's space.
fn place(rank: usize, key: &str, piece: usize) -> String {
    if piece == 0 { format!("w{rank}-{key}") } else { format!("w{rank}-{key}-{piece}") }
}

/// Cuts a value into pieces of at most `room` bytes.
fn cut(value: &[u8], room: usize) -> Vec<String> {
    let text = BASE64.encode(value);
    // The first piece begins with the number of pieces: at most ten digits and a dot.
    let (first, rest) = text.split_at(text.len().min(room.saturating_sub(11)));
    let rest = rest.as_bytes().chunks(room.max(1)).map(|piece| String::from_utf8_lossy(piece));
    let mut pieces = vec![first.to_owned()];
    pieces.extend(rest.map(|piece| piece.into_owned()));
    pieces[0] = format!("{}.{first}", pieces.len());
    pieces
}

impl<W: Wire> Space for Text<W> {
    fn put(&mut self, rank: usize, key: &str, value: &[u8]) -> Result<(), BootstrapError> {
        for (number, piece) in cut(value, self.0.room()).into_iter().enumerate() {
            self.0.put(&place(rank, key, number), &piece)?;
        }
        Ok(())
    }

    fn get(&mut self, rank: usize, key: &str) -> Result<Option<Vec<u8>>, BootstrapError> {
        let Some(first) = self.0.get(rank, &place(rank, key, 0))? else { return Ok(None) };
        let damaged = || BootstrapError(format!("get of {key:?}: rank {rank} published {first:?}"));
        let (count, start) = first.split_once('.').ok_or_else(damaged)?;
        let count: usize = count.parse().map_err(|_| damaged())?;
        let mut text = start.to_owned();
        for piece in 1..count {
            let more = self.0.get(rank, &place(rank, key, piece))?;
            text += &more.ok_or_else(|| {
                BootstrapError(format!(
                    "get of {key:?}: piece {piece} of {count} of rank {rank}'s value is missing"
                ))
            })?;
        }
        BASE64.decode(text).map(Some).map_err(|_| damaged())
    }

    fn fence(&mut self) -> Result<(), BootstrapError> {
        self.0.fence()
    }

    fn finalize(&mut self) -> Result<(), BootstrapError> {
        self.0.finalize()
    }

    fn abort(&mut self, code: i32, message: &str) {
        self.0.abort(code, message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    struct Shelf(HashMap<String, String>, usize);

    impl Wire for Shelf {
        fn room(&self) -> usize {
            self.1
        }
        fn put(&mut self, key: &str, value: &str) -> Result<(), BootstrapError> {
            assert!(value.len() <= self.1 && key.len() <= 64, "{key} {value}");
            assert!(!value.contains([' ', '=', ';', '\n']) || self.0.is_empty());
            self.0.insert(key.into(), value.into());
            Ok(())
        }
        fn get(&mut self, _: usize, key: &str) -> Result<Option<String>, BootstrapError> {
            Ok(self.0.get(key).cloned())
        }
        fn fence(&mut self) -> Result<(), BootstrapError> {
            Ok(())
        }
        fn finalize(&mut self) -> Result<(), BootstrapError> {
            Ok(())
        }
        fn abort(&mut self, _: i32, _: &str) {}
    }

    #[test]
    fn all_bytes_and_lengths_come_back() {
        for room in [32, 100, 1023] {
            let mut space = Text(Shelf(HashMap::new(), room));
            for length in (0..70).chain([1022, 1023, 1024, 5000]) {
                let value: Vec<u8> = (0..length).map(|n| (n * 7 % 256) as u8).collect();
                let key = format!("k{length}");
                space.put(1023, &key, &value).unwrap();
                assert_eq!(space.get(1023, &key).unwrap(), Some(value), "{length} in {room}");
            }
            assert_eq!(space.get(0, "k1").unwrap(), None);
        }
    }

    #[test]
    fn a_missing_piece_is_an_error_and_not_a_shorter_value() {
        let mut space = Text(Shelf(HashMap::new(), 32));
        space.put(0, "k", &[5; 200]).unwrap();
        assert!(space.0.0.remove("w0-k-3").is_some());
        assert!(space.get(0, "k").unwrap_err().0.contains("piece 3"));
        space.0.0.insert("w0-x".into(), "rubbish".into());
        assert!(space.get(0, "x").unwrap_err().0.contains("rubbish"));
    }
}
