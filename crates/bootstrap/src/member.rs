//! A process of a job of another launcher: what PMI-1, PMI-2 and PMIx have in common.
//!
//! Values that were put are handed over at the fence, all at once, so that a value is readable
//! nowhere before it.

use std::collections::HashSet;
use std::time::Duration;

use crate::launched_by_rank::Sign;
use crate::wire::MAX_VALUE;
use crate::{Bootstrap, BootstrapError, nodes};

/// Longest key in bytes; what is put before it fits the shortest limit (64 in PMI).
pub(crate) const MAX_KEY: usize = 40;

/// How long a launcher has to pass on the message of an abort, which none prints itself: some kill
/// what carries the output along with the ranks.
const LAST_WORD: Duration = Duration::from_millis(100);

/// The key-value space of a launcher, as its protocol has it.
pub(crate) trait Space: Send {
    /// Publishes a value of this process; others may read it after the next fence.
    fn put(&mut self, rank: usize, key: &str, value: &[u8]) -> Result<(), BootstrapError>;

    /// The value of another process; `None` if there is none.
    fn get(&mut self, rank: usize, key: &str) -> Result<Option<Vec<u8>>, BootstrapError>;

    /// Waits for all processes of the job.
    fn fence(&mut self) -> Result<(), BootstrapError>;

    /// Leaves the launcher's protocol in good order.
    fn finalize(&mut self) -> Result<(), BootstrapError>;

    /// Asks for the end of the job, the message of which is printed; returns if this process may end
    /// by itself.
    fn abort(&mut self, code: i32, message: &str);
}

/// What the launcher says of this process and its job.
pub(crate) struct Facts {
    pub rank: usize,
    pub size: usize,
    /// The launcher's name of the job; any text.
    pub job: String,
    pub app: Option<usize>,
}

/// A process of a job of another launcher.
pub(crate) struct Member<S> {
    space: S,
    facts: Facts,
    nodes: Vec<usize>,
    pending: Vec<(String, Vec<u8>)>,
    /// Keys that were put, in this fence or before: the launchers keep one value a key.
    used: HashSet<String>,
    _sign: Option<Sign>,
}

impl<S: Space> Member<S> {
    /// Joins. `placed`: the node of each rank, if the launcher told.
    pub fn join(
        space: S,
        facts: Facts,
        placed: Option<Vec<usize>>,
    ) -> Result<Self, BootstrapError> {
        let Facts { rank, size, .. } = facts;
        if rank >= size {
            return Err(BootstrapError(format!("the launcher says: rank {rank} of {size}")));
        }
        let facts = Facts { job: name(&facts.job), ..facts };
        let (pending, used) = Default::default();
        let mut member =
            Member { space, facts, nodes: vec![0; size], pending, used, _sign: Sign::set() };
        member.nodes = match (nodes::from_setting(size)?, placed) {
            (Some(nodes), _) | (None, Some(nodes)) => nodes,
            _ => nodes::exchange(&mut member)?,
        };
        Ok(member)
    }
}

/// A name of letters, digits, dots and dashes, at most 48 bytes, that is as unique as `raw`.
fn name(raw: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let plain: String = raw.chars().map(|c| if fits(c) { c } else { '-' }).collect();
    if plain == raw && raw.len() <= 48 {
        return plain;
    }
    format!("{:.31}-{:016x}", plain, hash(raw))
}

/// A number for a text, by FNV-1a: the same in every process, whichever compiler built it.
pub fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Whether a value can be published under `key` everywhere.
fn check(key: &str, value: &[u8]) -> Result<(), BootstrapError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.:/".contains(c);
    if key.is_empty() || key.len() > MAX_KEY || !key.chars().all(fits) {
        return Err(BootstrapError(format!(
            "put of {key:?}: a key has 1 to {MAX_KEY} letters, digits and characters of -_.:/"
        )));
    }
    if value.len() > MAX_VALUE {
        let length = value.len();
        return Err(BootstrapError(format!(
            "put of {key:?}: value of {length} bytes, limit {MAX_VALUE}"
        )));
    }
    Ok(())
}

impl<S: Space> Bootstrap for Member<S> {
    fn rank(&self) -> usize {
        self.facts.rank
    }

    fn size(&self) -> usize {
        self.facts.size
    }

    fn job(&self) -> &str {
        &self.facts.job
    }

    fn nodes(&self) -> Vec<usize> {
        self.nodes.clone()
    }

    fn app_number(&self) -> Option<usize> {
        self.facts.app
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), BootstrapError> {
        check(key, value)?;
        if !self.used.insert(key.into()) {
            return Err(BootstrapError(format!(
                "put of {key:?}: it was put before, and launchers keep one value a key"
            )));
        }
        self.pending.push((key.into(), value.into()));
        Ok(())
    }

    fn get(&mut self, rank: usize, key: &str) -> Result<Vec<u8>, BootstrapError> {
        let size = self.facts.size;
        let waiting = rank == self.facts.rank && self.pending.iter().any(|(k, _)| k == key);
        let value = if rank < size && !waiting { self.space.get(rank, key)? } else { None };
        value.ok_or_else(|| {
            BootstrapError(format!(
                "get of {key:?}: rank {rank} of {size} published no such value before the last fence"
            ))
        })
    }

    fn fence(&mut self) -> Result<(), BootstrapError> {
        for (key, value) in std::mem::take(&mut self.pending) {
            self.space.put(self.facts.rank, &key, &value)?;
        }
        self.space.fence()
    }

    fn finalized(&mut self) -> Result<(), BootstrapError> {
        self.space.finalize()
    }

    fn abort(&mut self, code: i32, message: &str) {
        // An aborted job never looks successful.
        let code = if code & 0xff == 0 { 1 } else { code & 0xff };
        eprintln!("{message}");
        std::thread::sleep(LAST_WORD);
        self.space.abort(code, message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_jobs_are_short_plain_and_different() {
        assert_eq!(name("kvs_19136_0_952790954_vm"), "kvs_19136_0_952790954_vm");
        assert_eq!(name("3.0"), "3.0");
        let long = ["prterun-host-1@1", "prterun-host-1@2"].map(|tail| "x".repeat(60) + tail);
        for raw in [long[0].as_str(), long[1].as_str(), "prterun-vm-19441@1", "a b;c=d"] {
            let name = name(raw);
            assert!(name.len() <= 48, "{name}");
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)), "{name}");
        }
        assert_ne!(name(&long[0]), name(&long[1]));
        assert_ne!(name("a@1"), name("a-1"));
    }

    #[test]
    fn keys_that_a_protocol_could_misread_are_refused_by_name() {
        for key in ["", "a b", "a;b", "a=b", "ä", &"k".repeat(MAX_KEY + 1)] {
            assert!(check(key, b"").unwrap_err().0.contains(key), "{key}");
        }
        check("rail/0:1-2_3.4", &vec![0; MAX_VALUE]).unwrap();
        assert!(check("k", &vec![0; MAX_VALUE + 1]).unwrap_err().0.contains("limit"));
    }
}
