//! A process of a job of another launcher: the common part of PMI-1, PMI-2 and PMIx.
//!
//! All values are passed to the launcher at the fence, so that no process can read a value before the fence.

use std::collections::HashSet;
use std::time::Duration;

use crate::launched_by_rank::Sign;
use crate::wire::MAX_VALUE;
use crate::{Bootstrap, BootstrapError, nodes};

/// Maximum length of a key, in bytes. With its prefix, a key of this length fits the lowest limit of all launchers (64 in PMI).
pub(crate) const MAX_KEY: usize = 40;

/// Pause between printing the message of an abort and the abort, in which a launcher can pass on the message. Some launchers kill
/// the processes that carry the output together with the ranks.
const LAST_WORD: Duration = Duration::from_millis(100);

/// Key-value space of a launcher.
pub(crate) trait Space: Send {
    /// Publishes a value of this process. Other processes may read it after the next fence.
    fn put(&mut self, rank: usize, key: &str, value: &[u8]) -> Result<(), BootstrapError>;

    /// Returns the value of another process; `None` if there is no such value.
    fn get(&mut self, rank: usize, key: &str) -> Result<Option<Vec<u8>>, BootstrapError>;

    /// Waits for all processes of the job.
    fn fence(&mut self) -> Result<(), BootstrapError>;

    /// Leaves the launcher's protocol normally.
    fn finalize(&mut self) -> Result<(), BootstrapError>;

    /// Asks for the end of the job. The message was printed before. Returns if this process may end by itself.
    fn abort(&mut self, code: i32, message: &str);
}

/// Facts about this process and its job, as the launcher reports them.
pub(crate) struct Facts {
    pub rank: usize,
    pub size: usize,
    /// Name that the launcher gives to the job. It may be any text.
    pub job: String,
    pub app: Option<usize>,
}

/// A process of a job of another launcher.
pub(crate) struct LauncherMember<S> {
    space: S,
    facts: Facts,
    nodes: Vec<usize>,
    pending: Vec<(String, Vec<u8>)>,
    /// Keys that this process has put. Launchers keep only one value for each key, so a key must not be put twice.
    used: HashSet<String>,
    _sign: Option<Sign>,
}

impl<S: Space> LauncherMember<S> {
    /// Joins the job. `placed` is the node of each rank, if the launcher reports it.
    pub fn join(
        space: S,
        facts: Facts,
        placed: Option<Vec<usize>>,
    ) -> Result<Self, BootstrapError> {
        let Facts { rank, size, .. } = facts;
        if rank >= size {
            return Err(BootstrapError(format!("the launcher reports rank {rank} of {size}")));
        }
        let facts = Facts { job: name(&facts.job), ..facts };
        let (pending, used) = Default::default();
        let mut member = LauncherMember {
            space,
            facts,
            nodes: vec![0; size],
            pending,
            used,
            _sign: Sign::set(),
        };
        member.nodes = match (nodes::from_setting(size)?, placed) {
            (Some(nodes), _) | (None, Some(nodes)) => nodes,
            _ => nodes::exchange(&mut member)?,
        };
        Ok(member)
    }
}

/// Makes a name from `raw` that is as unique: at most 48 bytes of letters, digits, dots, dashes and underscores.
fn name(raw: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let plain: String = raw.chars().map(|c| if fits(c) { c } else { '-' }).collect();
    if plain == raw && raw.len() <= 48 {
        return plain;
    }
    format!("{:.31}-{:016x}", plain, hash(raw))
}

/// Hashes a text by FNV-1a. The hash is equal in all processes, independent of the compiler.
pub fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Checks that every launcher can publish a value under `key`.
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

impl<S: Space> Bootstrap for LauncherMember<S> {
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
        // The exit code of an aborted job must not be 0.
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
