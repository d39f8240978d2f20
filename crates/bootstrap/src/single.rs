//! A world of one process: a program that was started without a launcher.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::{Bootstrap, BootstrapError};

/// The services of a launcher for a program that was started without a launcher.
pub struct SingleProcess {
    job: String,
    put: HashMap<String, Vec<u8>>,
    fenced: HashMap<String, Vec<u8>>,
}

impl SingleProcess {
    /// Makes a world of this process only.
    pub fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos());
        let job = format!("weft-{}-{now:x}", std::process::id());
        SingleProcess { job, put: HashMap::new(), fenced: HashMap::new() }
    }
}

impl Default for SingleProcess {
    fn default() -> Self {
        Self::new()
    }
}

impl Bootstrap for SingleProcess {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn job(&self) -> &str {
        &self.job
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), BootstrapError> {
        self.put.insert(key.into(), value.into());
        Ok(())
    }

    fn get(&mut self, rank: usize, key: &str) -> Result<Vec<u8>, BootstrapError> {
        if rank != 0 {
            return Err(BootstrapError(format!("get of {key:?}: rank {rank} in a world of one")));
        }
        self.fenced.get(key).cloned().ok_or_else(|| {
            BootstrapError(format!("get of {key:?}: nothing published before the last fence"))
        })
    }

    fn fence(&mut self) -> Result<(), BootstrapError> {
        self.fenced.extend(self.put.drain());
        Ok(())
    }

    fn finalized(&mut self) -> Result<(), BootstrapError> {
        Ok(())
    }

    fn abort(&mut self, code: i32, message: &str) {
        eprintln!("{message}");
        // The exit code of an aborted program must not be 0.
        let code = if code & 0xff == 0 { 1 } else { code & 0xff };
        // SAFETY: `_exit` has no preconditions. It runs no exit handlers, which would enter an MPI library in the middle of a call.
        unsafe { libc::_exit(code) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_appear_at_the_fence() {
        let mut world = SingleProcess::new();
        world.put("a", b"1").unwrap();
        assert!(world.get(0, "a").is_err());
        world.fence().unwrap();
        assert_eq!(world.get(0, "a").unwrap(), b"1");
        assert!(world.get(1, "a").unwrap_err().to_string().contains("rank 1"));
    }
}
