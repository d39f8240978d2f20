//! Threads that move bytes between memory and files while the program computes, and the kernel's ring for those who need no thread.
//!
//! A job ends by advancing a word that the waiting operation counts on, and rings where the process's threads sleep: so a wait
//! for a file is a wait for a counter, like all others.

use crate::core::Transfer;
use crate::failure::Failure;
use crate::ring::Ring;
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

/// Threads of a pool, at most: more do not make a device or a page cache quicker.
const THREADS: usize = 4;

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    idle: usize,
    over: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    more: Condvar,
    /// Where the threads of the process, and its helper, sleep.
    bells: [Arc<dyn Sleep>; 2],
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

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
            if queue.over {
                return;
            }
            queue.idle += 1;
            queue = self.more.wait(queue).unwrap_or_else(|poisoned| poisoned.into_inner());
            queue.idle -= 1;
        }
    }
}

/// A word that jobs advance, one at a time, and its counter.
pub type Signal = (&'static AtomicU64, Counter);

/// The pool of one process.
pub struct Pool<F: Fabric> {
    engine: Rc<Engine<F>>,
    shared: Arc<Shared>,
    threads: RefCell<Vec<JoinHandle<()>>>,
    /// `None`: not wanted, or the system forbids it.
    ring: OnceCell<Option<Ring>>,
    signals: RefCell<Vec<Signal>>,
}

impl<F: Fabric> Pool<F> {
    /// A pool without threads, and a ring where the system has one: both are begun when they are needed.
    pub fn new(engine: &Rc<Engine<F>>) -> Rc<Pool<F>> {
        Rc::new(Pool::with_ring(engine, OnceCell::new()))
    }

    /// One that never has a ring.
    pub fn of_threads(engine: &Rc<Engine<F>>) -> Rc<Pool<F>> {
        Rc::new(Pool::with_ring(engine, OnceCell::from(None)))
    }

    fn with_ring(engine: &Rc<Engine<F>>, ring: OnceCell<Option<Ring>>) -> Pool<F> {
        let fabric = engine.endpoint().fabric();
        let bells = [fabric.sleeper(), fabric.helper()];
        let shared = Shared { queue: Mutex::default(), more: Condvar::new(), bells };
        Pool {
            engine: engine.clone(),
            shared: Arc::new(shared),
            threads: RefCell::default(),
            ring,
            signals: RefCell::default(),
        }
    }

    /// Threads that there are now.
    pub fn threads(&self) -> usize {
        self.threads.borrow().len()
    }

    fn signal(&self) -> Signal {
        self.signals.borrow_mut().pop().unwrap_or_else(|| {
            // As many as there ever were jobs at once; counters stay as long as the process's fabric.
            let word: &'static AtomicU64 = Box::leak(Box::default());
            // SAFETY: the word is never given back.
            let counter =
                unsafe { self.engine.endpoint().fabric().counters().adopt(NonNull::from(word)) };
            (word, counter)
        })
    }

    /// Gives a job to a thread; where none can be had, it is done here.
    fn push(&self, job: Job) {
        let mut queue = self.shared.lock();
        let mut threads = self.threads.borrow_mut();
        if queue.idle <= queue.jobs.len() && threads.len() < THREADS {
            let shared = self.shared.clone();
            threads.extend(start_thread("weft-io", move || shared.work()));
        }
        if threads.is_empty() {
            drop(queue);
            return job();
        }
        queue.jobs.push_back(job);
        drop(queue);
        self.shared.more.notify_one();
    }

    /// Has a thread do `job`, which begins at once; [`Pool::end`] waits for it. Never ended, it ends by itself. One that is `quick`
    /// is done here: the way to a thread and back would take longer.
    pub fn start<T: Send + 'static>(
        &self,
        quick: bool,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Started<T> {
        if quick {
            return Started::Over(job());
        }
        let (started, told) = self.going();
        self.push(Box::new(move || told(job())));
        started
    }

    /// Moves a transfer, once this is polled: what is one piece and needs no lock, the kernel moves by itself, if it has a ring for it.
    pub async fn run_transfer(
        &self,
        quick: bool,
        transfer: Transfer,
    ) -> Result<Result<u64, Failure>, Error> {
        self.end(self.start_transfer(quick, transfer)).await
    }

    fn start_transfer(&self, quick: bool, transfer: Transfer) -> Started<Result<u64, Failure>> {
        if quick {
            return Started::Over(transfer.run());
        }
        let piece = transfer.one_piece();
        let Some((piece, ring)) = piece.and_then(|piece| Some((piece, self.ring()?))) else {
            return self.start(false, || transfer.run());
        };
        let (started, told) = self.going();
        if let Err((piece, told)) = ring.start(piece, Box::new(told)) {
            self.push(Box::new(move || {
                let moved = piece.move_rest(0);
                drop(piece);
                told(moved);
            }));
        }
        started
    }

    fn ring(&self) -> Option<&Ring> {
        let begin = || {
            let bells = self.shared.bells.clone();
            Ring::new(move || bells.iter().for_each(|bell| bell.ring())).ok()
        };
        self.ring.get_or_init(begin).as_ref()
    }

    /// A job under way, and what tells of its end.
    fn going<T: Send + 'static>(&self) -> (Started<T>, impl FnOnce(T) + Send + use<T, F>) {
        let signal @ (word, _) = self.signal();
        let target = word.load(Ordering::Acquire) + 1;
        let result = Arc::new(Mutex::new(None));
        let place = result.clone();
        let told = move |value| {
            *place.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(value);
            word.fetch_add(1, Ordering::Release);
        };
        (Started::Going { signal, target, result }, told)
    }

    /// Waits for a job as operations wait, and takes its result.
    pub async fn end<T>(&self, started: Started<T>) -> Result<T, Error> {
        let (signal, target, result) = match started {
            Started::Over(value) => return Ok(value),
            Started::Going { signal, target, result } => (signal, target, result),
        };
        if let Err(error) = self.engine.endpoint().until(signal.1, target).await {
            // Nobody can be waited for any more but this thread, which uses the memory of who waits.
            while signal.0.load(Ordering::Acquire) < target {
                std::thread::sleep(Duration::from_micros(200));
            }
            return Err(error.into());
        }
        self.signals.borrow_mut().push(signal);
        let value = result.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        value.ok_or_else(|| Error::new(class::INTERN, "a job on a file ended without a result"))
    }

    /// Both.
    pub async fn run<T: Send + 'static>(
        &self,
        quick: bool,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.end(self.start(quick, job)).await
    }
}

/// A job under way, or over.
pub enum Started<T> {
    /// It was done when it was started.
    Over(T),
    /// A thread does it.
    Going {
        /// What tells of its end.
        signal: Signal,
        /// From which value on.
        target: u64,
        /// Where its result will be.
        result: Arc<Mutex<Option<T>>>,
    },
}

impl<F: Fabric> Drop for Pool<F> {
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.more.notify_all();
        for thread in self.threads.get_mut().drain(..) {
            let _ = thread.join();
        }
    }
}
