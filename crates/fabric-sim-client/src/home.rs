//! The processor on which the simulation and the ranks take turns: the home of a job.
//!
//! Only one side of a job runs at a time. If the system wakes a rank on another processor, which sleeps, a turn takes much longer
//! than a switch on the processor that already runs. So the simulation stays on a processor, and a rank restricts itself to that
//! processor before it sleeps. Once it is awake, the rank restores its affinity: the program and the threads that it starts see no
//! restriction.

/// A thread that is restricted to a processor, until this value is dropped.
pub struct ThreadStay {
    before: libc::cpu_set_t,
}

impl ThreadStay {
    /// Restricts the calling thread to `processor`. Returns `None` if the thread may not run there.
    pub fn on(processor: usize) -> Option<ThreadStay> {
        if processor >= libc::CPU_SETSIZE as usize {
            return None;
        }
        // SAFETY: `cpu_set_t` is an array of bits, for which all zeros are valid.
        let mut one: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        let (mut before, size) = (one, size_of_val(&one));
        // SAFETY: `processor` is below CPU_SETSIZE, as CPU_SET and CPU_ISSET require. Both sets have `size` bytes and outlive the
        // calls.
        let stays = unsafe {
            libc::CPU_SET(processor, &mut one);
            libc::sched_getaffinity(0, size, &mut before) == 0
                && libc::CPU_ISSET(processor, &before)
                && libc::sched_setaffinity(0, size, &one) == 0
        };
        stays.then(|| ThreadStay { before })
    }

    /// Returns the processor on which the calling thread runs.
    pub fn processor() -> Option<usize> {
        // SAFETY: the call takes no arguments and touches no memory of the caller.
        usize::try_from(unsafe { libc::sched_getcpu() }).ok()
    }
}

impl Drop for ThreadStay {
    fn drop(&mut self) {
        // SAFETY: the set has the size that is named, and outlives the call.
        unsafe { libc::sched_setaffinity(0, size_of_val(&self.before), &self.before) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> Vec<usize> {
        // SAFETY: as in `ThreadStay::on`.
        let mut all: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: as in `ThreadStay::on`.
        assert_eq!(unsafe { libc::sched_getaffinity(0, size_of_val(&all), &mut all) }, 0);
        // SAFETY: all numbers are below CPU_SETSIZE.
        (0..libc::CPU_SETSIZE as usize).filter(|&p| unsafe { libc::CPU_ISSET(p, &all) }).collect()
    }

    #[test]
    #[cfg_attr(miri, ignore = "sched_setaffinity")]
    fn a_stay_restricts_the_thread_until_it_ends() {
        let before = allowed();
        let last = *before.last().unwrap();
        let stay = ThreadStay::on(last).unwrap();
        assert_eq!((allowed(), ThreadStay::processor()), (vec![last], Some(last)));
        assert!(before.iter().all(|&other| other == last || ThreadStay::on(other).is_none()));
        drop(stay);
        assert_eq!(allowed(), before);
        assert!(ThreadStay::on(1 << 20).is_none());
    }
}
