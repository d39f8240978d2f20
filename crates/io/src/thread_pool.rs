//! Threads that move bytes between memory and files in the background, and the kernel's ring for pieces that need no thread.
//!
//! A job ends by advancing a word that the waiting operation uses as its counter, and by waking the process's sleeping threads.
//! So a wait for a file is a wait for a counter, like all other waits.

use crate::failure::FileFailure;
use crate::file_transfer::FileTransfer;
use crate::uring::KernelRing;
use std::cell::{OnceCell, RefCell};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;
use weft_bootstrap::calls::start_thread;
use weft_fabric::wait::Sleep;
use weft_fabric::{Counter, Fabric, FabricExt};
use weft_process::{Engine, Error, class};

type Job = Box<dyn FnOnce() + Send>;

/// Thread that does a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunOn {
    /// The caller's thread, for a job that takes less time than a handover to another thread.
    Caller,
    /// A thread of the pool, or the kernel.
    Thread,
}

/// Maximum number of threads of a pool. More threads do not make a device or a page cache faster.
const MAX_THREADS: usize = 4;

#[derive(Default)]
struct JobQueue {
    jobs: VecDeque<Job>,
    idle: usize,
    stop: bool,
}

/// State that the threads of a pool share.
struct PoolState {
    queue: Mutex<JobQueue>,
    wake: Condvar,
    /// Bells that wake the process's threads and its helper thread.
    bells: [Arc<dyn Sleep>; 2],
}

impl PoolState {
    fn lock(&self) -> MutexGuard<'_, JobQueue> {
        self.queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Does jobs until the pool is stopped.
    fn work(&self) {
        let mut queue = self.lock();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                drop(queue);
                job();
                self.bells.iter().for_each(|bell| bell.ring());
                queue = self.lock();
                continue;
            }
            if queue.stop {
                return;
            }
            queue.idle += 1;
            queue = self.wake.wait(queue).unwrap_or_else(|poisoned| poisoned.into_inner());
            queue.idle -= 1;
        }
    }
}

/// A word that jobs advance, one job at a time, and the fabric's counter by which the engine waits for the word.
pub struct JobCounter {
    word: &'static AtomicU64,
    counter: Counter,
}

/// The threads and the kernel ring of a process.
pub struct IoPool<F: Fabric> {
    engine: Rc<Engine<F>>,
    state: Arc<PoolState>,
    threads: RefCell<Vec<JoinHandle<()>>>,
    /// The ring; empty until its first use. An inner `None` means that no ring is wanted, or that the system forbids rings.
    ring: OnceCell<Option<KernelRing>>,
    idle_counters: RefCell<Vec<JobCounter>>,
}

impl<F: Fabric> IoPool<F> {
    /// Creates a pool. Its threads and its ring, if the system permits one, start when they are first needed.
    pub fn new(engine: &Rc<Engine<F>>) -> Rc<IoPool<F>> {
        Rc::new(IoPool::with_ring(engine, OnceCell::new()))
    }

    /// Creates a pool that never uses a ring.
    pub fn of_threads(engine: &Rc<Engine<F>>) -> Rc<IoPool<F>> {
        Rc::new(IoPool::with_ring(engine, OnceCell::from(None)))
    }

    fn with_ring(engine: &Rc<Engine<F>>, ring: OnceCell<Option<KernelRing>>) -> IoPool<F> {
        let fabric = engine.endpoint().fabric();
        let bells = [fabric.sleeper(), fabric.helper()];
        let state = PoolState { queue: Mutex::default(), wake: Condvar::new(), bells };
        IoPool {
            engine: engine.clone(),
            state: Arc::new(state),
            threads: RefCell::default(),
            ring,
            idle_counters: RefCell::default(),
        }
    }

    /// Returns the present number of threads.
    pub fn threads(&self) -> usize {
        self.threads.borrow().len()
    }

    /// Returns true if the caller's thread does a job. In simulated time there are no other threads: the end of their jobs would come
    /// at a real time, which the simulation does not know.
    fn is_done_here(&self, run_on: RunOn) -> bool {
        run_on == RunOn::Caller || self.engine.endpoint().fabric().facets().simulated.is_some()
    }

    fn take_counter(&self) -> JobCounter {
        self.idle_counters.borrow_mut().pop().unwrap_or_else(|| {
            // Counters live as long as the process's fabric. Their number is the largest number of jobs that were active at the
            // same time.
            let word: &'static AtomicU64 = Box::leak(Box::default());
            // SAFETY: the word is leaked, so it is valid for as long as the counter.
            let counter =
                unsafe { self.engine.endpoint().fabric().counters().adopt(NonNull::from(word)) };
            JobCounter { word, counter }
        })
    }

    /// Gives a job to a thread, or runs the job in this function if there is no thread.
    fn push(&self, job: Job) {
        let mut queue = self.state.lock();
        let mut threads = self.threads.borrow_mut();
        if queue.idle <= queue.jobs.len() && threads.len() < MAX_THREADS {
            let state = self.state.clone();
            threads.extend(start_thread("weft-io", move || state.work()));
        }
        if threads.is_empty() {
            drop(queue);
            return job();
        }
        queue.jobs.push_back(job);
        drop(queue);
        self.state.wake.notify_one();
    }

    /// Starts a job. [`IoPool::end`] waits for its end. The job also ends if [`IoPool::end`] is never called.
    pub fn start<T: Send + 'static>(
        &self,
        run_on: RunOn,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> FileJob<T> {
        if self.is_done_here(run_on) {
            return FileJob::Done(job());
        }
        let (running, complete) = self.running_job();
        self.push(Box::new(move || complete(job())));
        running
    }

    /// Runs a transfer, which starts when the future is first polled. The kernel's ring moves a single piece that needs no lock.
    pub async fn run_transfer(
        &self,
        run_on: RunOn,
        transfer: FileTransfer,
    ) -> Result<Result<u64, FileFailure>, Error> {
        self.end(self.start_transfer(run_on, transfer)).await
    }

    fn start_transfer(
        &self,
        run_on: RunOn,
        transfer: FileTransfer,
    ) -> FileJob<Result<u64, FileFailure>> {
        if self.is_done_here(run_on) {
            return FileJob::Done(transfer.run());
        }
        let piece = transfer.as_single_piece();
        let Some((piece, ring)) = piece.and_then(|piece| Some((piece, self.ring()?))) else {
            return self.start(run_on, move || transfer.run());
        };
        let (running, complete) = self.running_job();
        if let Err((piece, complete)) = ring.start(piece, Box::new(complete)) {
            self.push(Box::new(move || {
                let moved = piece.move_rest(0);
                drop(piece);
                complete(moved);
            }));
        }
        running
    }

    fn ring(&self) -> Option<&KernelRing> {
        let create = || {
            let bells = self.state.bells.clone();
            KernelRing::new(move || bells.iter().for_each(|bell| bell.ring())).ok()
        };
        self.ring.get_or_init(create).as_ref()
    }

    /// Creates a running job, and the function that completes it.
    fn running_job<T: Send + 'static>(&self) -> (FileJob<T>, impl FnOnce(T) + Send + use<T, F>) {
        let counter = self.take_counter();
        let word = counter.word;
        let target = word.load(Ordering::Acquire) + 1;
        let result = Arc::new(Mutex::new(None));
        let place = result.clone();
        let complete = move |value| {
            *place.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(value);
            word.fetch_add(1, Ordering::Release);
        };
        (FileJob::Running { counter, target, result }, complete)
    }

    /// Waits for a job in the same way as operations wait, and returns its result.
    pub async fn end<T>(&self, job: FileJob<T>) -> Result<T, Error> {
        let (counter, target, result) = match job {
            FileJob::Done(value) => return Ok(value),
            FileJob::Running { counter, target, result } => (counter, target, result),
        };
        if let Err(error) = self.engine.endpoint().until(counter.counter, target).await {
            // The engine's wait has failed, but the thread may still use the caller's memory.
            while counter.word.load(Ordering::Acquire) < target {
                std::thread::sleep(Duration::from_micros(200));
            }
            return Err(error.into());
        }
        self.idle_counters.borrow_mut().push(counter);
        let value = result.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        value.ok_or_else(|| Error::new(class::INTERN, "a job on a file ended without a result"))
    }

    /// Runs a job on a thread and waits for it.
    pub async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.end(self.start(RunOn::Thread, job)).await
    }
}

/// A job on a file.
pub enum FileJob<T> {
    /// A job that was complete when it was started.
    Done(T),
    /// A job that a thread or the kernel does.
    Running {
        /// Counter that the end of the job advances.
        counter: JobCounter,
        /// Value of the counter at which the job is complete.
        target: u64,
        /// Result, once the job is complete.
        result: Arc<Mutex<Option<T>>>,
    },
}

impl<F: Fabric> Drop for IoPool<F> {
    fn drop(&mut self) {
        self.state.lock().stop = true;
        self.state.wake.notify_all();
        for thread in self.threads.get_mut().drain(..) {
            let _ = thread.join();
        }
    }
}
