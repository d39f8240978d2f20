//! Late messages. Each message is copied on arrival. A message is handed out when it is due and all earlier messages of the
//! same peer have been handed out.

use super::FaultyFabric;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use weft_fabric::{ArrivedMessage, Fabric, Head, Sge};

struct Held {
    due: u64,
    head: Head,
    payload: Box<[u8]>,
}

pub(crate) struct FaultyMessages {
    /// Held messages by peer.
    queues: Vec<RefCell<VecDeque<Held>>>,
    turn: Cell<usize>,
    /// Payloads that were handed out and not released.
    lent: RefCell<Vec<Box<[u8]>>>,
}

impl FaultyMessages {
    pub fn new(size: usize) -> FaultyMessages {
        let queues = (0..size).map(|_| RefCell::default()).collect();
        FaultyMessages { queues, turn: Cell::new(0), lent: RefCell::default() }
    }

    pub fn held(&self) -> usize {
        self.queues.iter().map(|queue| queue.borrow().len()).sum()
    }

    fn take(&self, peer: usize, now: u64) -> Option<ArrivedMessage> {
        let mut queue = self.queues[peer].borrow_mut();
        if queue.front()?.due > now {
            return None;
        }
        let Held { head, mut payload, .. } = queue.pop_front()?;
        // SAFETY: the boxed bytes stay in `lent` until the message is released, so they do not move and stay valid.
        let sge = unsafe { Sge::new(payload.as_mut_ptr(), payload.len()) };
        self.lent.borrow_mut().push(payload);
        Some(ArrivedMessage { peer, head, payload: sge, token: 0 })
    }

    pub fn release(&self, message: &ArrivedMessage) {
        let at = message.payload.ptr().cast_const();
        let mut lent = self.lent.borrow_mut();
        let found = lent.iter().position(|payload| payload.as_ptr() == at);
        lent.swap_remove(found.expect("a message is released once"));
    }
}

impl<F: Fabric> FaultyFabric<F> {
    pub(crate) fn receive_late(&self, from: Option<usize>) -> Option<ArrivedMessage> {
        let now = self.tick();
        // Takes a few messages at a time, so that a flood does not pile up here.
        for _ in 0..4 {
            let Some(message) = self.inner.receive(from) else { break };
            let mut payload = vec![0; message.payload.len()].into_boxed_slice();
            message.payload.read(&mut payload);
            let (peer, head) = (message.peer, message.head);
            self.inner.release(message);
            let due = self.due(self.plan.message_delay);
            self.messages.queues[peer].borrow_mut().push_back(Held { due, head, payload });
        }
        let size = self.inner.size();
        let message = match from {
            Some(peer) => self.messages.take(peer, now),
            None => (0..size).map(|i| (self.messages.turn.get() + i) % size).find_map(|peer| {
                let message = self.messages.take(peer, now)?;
                self.messages.turn.set((peer + 1) % size);
                Some(message)
            }),
        };
        self.note_pending();
        message
    }
}
