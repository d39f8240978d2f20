//! A world of threads for tests and benchmarks: every rank is a thread of this process.

use crate::{Bootstrap, BootstrapError};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// State that the threads share.
struct World {
    size: usize,
    job: String,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Values that were put since the last fence.
    pending: HashMap<(usize, String), Vec<u8>>,
    values: HashMap<(usize, String), Vec<u8>>,
    /// Number of ranks that wait at the present fence, and number of completed fences.
    waiting: usize,
    fences: u64,
    /// Reason why the job has ended; `None` while it runs.
    ended: Option<String>,
}

/// The launcher's services to a thread. If a panic drops the value before `finalized`, the fences of the other threads end with
/// an error, so that a failed test does not hang.
pub struct ThreadBootstrap {
    rank: usize,
    world: Arc<World>,
}

/// Returns services for `n` ranks, to be moved into `n` threads.
pub fn threads(n: usize) -> Vec<ThreadBootstrap> {
    static JOBS: AtomicU64 = AtomicU64::new(0);
    let number = JOBS.fetch_add(1, Ordering::Relaxed);
    let job = format!("threads-{}-{number}", std::process::id());
    let (state, changed) = Default::default();
    let world = Arc::new(World { size: n, job, state, changed });
    (0..n).map(|rank| ThreadBootstrap { rank, world: world.clone() }).collect()
}

impl World {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn end(&self, why: String) {
        self.lock().ended.get_or_insert(why);
        self.changed.notify_all();
    }
}

impl Bootstrap for ThreadBootstrap {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.world.size
    }

    fn job(&self) -> &str {
        &self.world.job
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), BootstrapError> {
        self.world.lock().pending.insert((self.rank, key.to_owned()), value.to_owned());
        Ok(())
    }

    fn get(&mut self, rank: usize, key: &str) -> Result<Vec<u8>, BootstrapError> {
        let value = self.world.lock().values.get(&(rank, key.to_owned())).cloned();
        value.ok_or_else(|| BootstrapError(format!("rank {rank} has published no `{key}`")))
    }

    fn fence(&mut self) -> Result<(), BootstrapError> {
        let mut state = self.world.lock();
        let fence = state.fences;
        state.waiting += 1;
        if state.waiting == self.world.size {
            let State { pending, values, .. } = &mut *state;
            values.extend(pending.drain());
            state.waiting = 0;
            state.fences += 1;
            self.world.changed.notify_all();
        }
        while state.fences == fence {
            if let Some(why) = &state.ended {
                return Err(BootstrapError(why.clone()));
            }
            let changed = self.world.changed.wait(state);
            state = changed.unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        Ok(())
    }

    fn finalized(&mut self) -> Result<(), BootstrapError> {
        Ok(())
    }

    fn abort(&mut self, code: i32, message: &str) {
        self.world.end(format!("rank {} aborted with code {code}: {message}", self.rank));
    }
}

impl Drop for ThreadBootstrap {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.world.end(format!("rank {} panicked", self.rank));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_readable_after_a_fence() {
        let handles = threads(3).into_iter().map(|mut world| {
            std::thread::spawn(move || {
                let rank = world.rank();
                world.put("name", format!("rank {rank}").as_bytes()).unwrap();
                world.fence().unwrap();
                for peer in 0..world.size() {
                    assert_eq!(world.get(peer, "name").unwrap(), format!("rank {peer}").as_bytes());
                }
                assert!(world.get(0, "nothing").is_err());
                world.fence().unwrap();
            })
        });
        for handle in handles.collect::<Vec<_>>() {
            handle.join().unwrap();
        }
    }

    #[test]
    fn an_abort_ends_the_fences_of_the_others() {
        let mut worlds = threads(2);
        let mut second = worlds.pop().unwrap();
        let waiting = std::thread::spawn(move || second.fence());
        worlds[0].abort(3, "enough");
        let error = waiting.join().unwrap().unwrap_err();
        assert!(error.0.contains("code 3: enough"), "{error}");
    }
}
