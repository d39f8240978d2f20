//! Work of the helper thread for a process while its program computes.
//!
//! The layer above owns the thread, and ensures that it calls [`Engine::help`] while no other thread is in the library
//! ([`weft_fabric::wait::HelperHandle`], or a lock). The layer above starts the thread on request of the code that wants a helper
//! ([`Engine::want_helper`]), or by itself.
//!
//! Functions of the program (operators, error handlers, attribute callbacks) never run here. Only entry points call error handlers
//! and attribute callbacks. Tasks call operators, and a task runs only on the program's threads unless it was started with
//! [`Executor::Anybody`]. The layer above, which calls the functions of the program, must refuse to call them on the helper's
//! thread.
//!
//! [`Executor::Anybody`]: crate::Executor::Anybody

use super::{Engine, Executor, PollReach};
use std::cell::{Cell, RefCell};
use weft_fabric::{Fabric, FabricExt};

/// Request for a helper thread, and the function that starts it.
#[derive(Default)]
pub(crate) struct HelperThreads {
    wanted: Cell<bool>,
    /// True if the first large nonblocking operation will ask for a thread.
    overlaps: Cell<bool>,
    start: RefCell<Option<Box<dyn FnOnce()>>>,
}

impl<F: Fabric> Engine<F> {
    /// Asks for a helper thread.
    pub fn want_helper(&self) {
        self.helping.wanted.set(true);
        self.start_wanted();
    }

    /// Sets the function that starts a helper thread. The function is called when a helper is first requested, or now if a helper
    /// was requested before.
    pub fn helped_by(&self, start: impl FnOnce() + 'static) {
        *self.helping.start.borrow_mut() = Some(Box::new(start));
        self.start_wanted();
    }

    fn start_wanted(&self) {
        if self.helping.wanted.get() {
            self.start_helper();
        }
    }

    /// Starts the helper thread, if [`Engine::helped_by`] has set a function that starts it.
    pub(crate) fn start_helper(&self) {
        let start = self.helping.start.borrow_mut().take();
        if let Some(start) = start {
            start();
        }
    }

    /// Returns true if a helper that wakes up may find something to do.
    pub fn awaits_help(&self) -> bool {
        self.awaits_beside_messages() || self.endpoint().awaits_help()
    }

    /// Returns true if [`Engine::help`] may find work that [`Endpoint::interrupted`] does not do.
    ///
    /// [`Endpoint::interrupted`]: weft_p2p::Endpoint::interrupted
    pub fn awaits_more_than_a_handler(&self) -> bool {
        self.awaits_beside_messages() || self.endpoint().awaits_more_than_a_handler()
    }

    fn awaits_beside_messages(&self) -> bool {
        let fabric = self.endpoint().fabric();
        self.helping.wanted.get()
            || self.tasks() > 0
            || fabric.keeps_back()
            || fabric.moves_by_progress()
    }

    /// Lets the first large nonblocking operation after this call ask for a helper, too.
    pub fn overlap_by_helper(&self) {
        self.helping.overlaps.set(true);
    }

    /// Returns a flag that is true until the first large nonblocking operation has asked for a helper.
    #[inline]
    pub(crate) fn overlaps(&self) -> &Cell<bool> {
        &self.helping.overlaps
    }

    /// Runs a round of the helper: progresses messages, and tasks that any thread may run. Returns true if anything moved.
    pub fn help(&self) -> bool {
        let moved = self.endpoint().progress() | self.run_tasks(Executor::Anybody, PollReach::All);
        if moved {
            self.wake_siblings();
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;
    use weft_bootstrap::SingleProcess;
    use weft_fabric::wait::WaitPolicy;
    use weft_fabric_shm::Shm;
    use weft_p2p::ProtocolLimits;

    fn engine() -> Rc<Engine<Shm>> {
        let shm = Shm::connect(&mut SingleProcess::new()).unwrap();
        Engine::new(shm, WaitPolicy::new(true), ProtocolLimits::default())
    }

    /// Completes when the counter has reached 1.
    async fn until_one(
        engine: Rc<Engine<Shm>>,
        counter: weft_fabric::Counter,
    ) -> Result<(), crate::Error> {
        Ok(engine.endpoint().until(counter, 1).await?)
    }

    #[test]
    fn the_helper_leaves_to_the_program_what_is_the_programs() {
        let engine = engine();
        let counters = || engine.endpoint().fabric().counters();
        let counter = counters().allocate();
        let start = |by| engine.spawn_by(by, until_one(engine.clone(), counter));
        let (anybodys, programs) = (start(Executor::Anybody), start(Executor::Program));
        let default = engine.spawn(until_one(engine.clone(), counter));
        assert!(!engine.help());
        counters().add(counter, 1);
        assert!(engine.help());
        let over = || [&anybodys, &programs, &default].map(|task| task.is_over());
        assert_eq!(over(), [true, false, false]);
        assert!(!engine.help(), "what is not the helper's does not keep it awake");
        assert!(engine.progress());
        assert_eq!(over(), [true, true, true]);
    }

    #[test]
    fn a_task_that_does_not_say_what_it_waits_for_keeps_nobody_awake() {
        let engine = engine();
        let polls = Rc::new(Cell::new(0));
        let counted = polls.clone();
        let task = engine.spawn_by(
            Executor::Anybody,
            std::future::poll_fn(move |_| {
                counted.set(counted.get() + 1);
                match counted.get() {
                    4 => std::task::Poll::Ready(Ok(())),
                    _ => std::task::Poll::Pending,
                }
            }),
        );
        assert!(!engine.help() && !engine.help());
        assert!(engine.help() && task.is_over());
    }

    #[test]
    fn a_thread_is_started_once_when_it_is_wanted() {
        let engine = engine();
        let started = Rc::new(Cell::new(0));
        let start = started.clone();
        engine.helped_by(move || start.set(start.get() + 1));
        assert_eq!(started.get(), 0, "nobody wants one yet");
        engine.want_helper();
        engine.want_helper();
        assert_eq!(started.get(), 1);
    }

    #[test]
    fn a_thread_that_was_wanted_before_starts_at_once() {
        let engine = engine();
        engine.want_helper();
        let started = Rc::new(Cell::new(false));
        let start = started.clone();
        engine.helped_by(move || start.set(true));
        assert!(started.get());
    }
}
