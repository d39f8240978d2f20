//! Tests that a sibling that progresses an operation wakes the thread that sleeps in a wait for this operation. The second thread
//! is a function that runs when the waiting thread releases the lock.

use super::*;
use crate::{Comm, Destination, Origin};
use std::rc::Rc;
use weft_bootstrap::SingleProcess;
use weft_fabric::Sge;
use weft_fabric_shm::Shm;
use weft_p2p::SendMode;

pub(super) fn engine() -> Rc<Engine<Shm>> {
    let shm = Shm::connect(&mut SingleProcess::new()).unwrap();
    Engine::new(shm, WaitPolicy::new(true), ProtocolLimits::default())
}

/// Runs `sibling` once, when the waiting thread goes to sleep.
struct Meanwhile<'a> {
    engine: &'a Engine<Shm>,
    sibling: RefCell<Option<Box<dyn FnOnce() + 'a>>>,
}

impl<'a> Meanwhile<'a> {
    fn new(engine: &'a Engine<Shm>, sibling: impl FnOnce() + 'a) -> Meanwhile<'a> {
        Meanwhile { engine, sibling: RefCell::new(Some(Box::new(sibling))) }
    }
}

impl WaitHooks for Meanwhile<'_> {
    fn unlocked(&self, f: &mut dyn FnMut()) {
        if self.engine.waiting.get() > 0
            && let Some(sibling) = self.sibling.take()
        {
            sibling();
        }
        f();
    }
}

impl Engine<Shm> {
    /// Returns true if `f` rings for threads that sleep.
    fn rings(&self, f: impl FnOnce()) -> bool {
        let look = || {
            let token = self.sleeper.arm();
            self.sleeper.disarm();
            token
        };
        let before = look();
        f();
        look() != before
    }
}

fn send(comm: &Comm<Shm>, tag: i32) {
    comm.send_run(&Single, Sge::EMPTY, Destination::Rank(0), tag, SendMode::Standard).unwrap();
}

#[test]
fn progress_wakes_the_sibling_whose_message_it_moved() {
    let engine = engine();
    let comm = Comm::world(&engine);
    let sibling = || {
        assert!(!engine.rings(|| assert!(!engine.progress())), "nothing moved: nobody is woken");
        send(&comm, 1);
        assert!(engine.rings(|| assert!(engine.progress())));
    };
    let outside = Meanwhile::new(&engine, sibling);
    let status = comm.recv_run(&outside, Sge::EMPTY, Origin::Any, Some(1)).unwrap();
    assert_eq!(status.tag, 1);
    assert!(outside.sibling.borrow().is_none() && engine.waiting.get() == 0);
    send(&comm, 1);
    assert!(!engine.rings(|| assert!(engine.progress())), "nobody sleeps any more");
}

/// The fast path of a receive looks only at its peer, and may find a message for another thread.
#[test]
fn a_receive_wakes_the_sibling_that_probes_for_what_it_finds() {
    let engine = engine();
    let comm = Comm::world(&engine);
    let sibling = || {
        send(&comm, 1);
        send(&comm, 2);
        let receive = || {
            let status = comm.recv_run(&Single, Sge::EMPTY, Origin::Rank(0), Some(2));
            assert_eq!(status.unwrap().tag, 2);
        };
        assert!(engine.rings(receive));
    };
    let outside = Meanwhile::new(&engine, sibling);
    let status = comm.probe(&outside, Origin::Rank(0), Some(1)).unwrap();
    assert_eq!(status.tag, 1);
    assert!(outside.sibling.borrow().is_none());
}

/// Before a thread sleeps, it looks once more at all operations. This last look releases the lock while an operator runs. Then a
/// sibling may progress an operation at which the thread has already looked.
#[test]
fn who_looks_for_the_last_time_counts_as_waiting() {
    let engine = engine();
    let comm = Comm::world(&engine);
    let (armed, rung, mut over) = (Cell::new(0), Cell::new(false), false);
    let nobody = Meanwhile { engine: &engine, sibling: RefCell::new(None) };
    engine.drive(&nobody, || {
        if engine.waiting.get() == 1 && !over {
            armed.set(armed.get() + 1);
            send(&comm, 1);
            rung.set(engine.rings(|| assert!(engine.progress())));
            over = true;
            return None;
        }
        over.then_some(())
    });
    assert_eq!(armed.get(), 1);
    assert!(rung.get());
}
