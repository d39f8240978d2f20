//! A nonblocking send and receive on a communicator of a lane, as one operation. The lane progresses both halves. No task polls
//! them, because a task that polls keeps every wait of the process from sleeping.

use crate::engine::{CommObject, Engine};
use std::cell::RefCell;
use std::rc::Rc;
use weft_fabric::Staging;
use weft_process::{Active, External, OperationOutcome};

/// A send and a receive, started in a lane. The status of both is the status of the receive.
pub(super) struct LaneExchange {
    engine: Rc<Engine>,
    halves: RefCell<Halves>,
}

/// The operations under way, and the outcomes of the others.
#[derive(Default)]
struct Halves {
    send: ExchangeHalf,
    receive: ExchangeHalf,
    /// Memory that must stay until the send is complete.
    memory: Option<Staging>,
}

/// One of the two operations.
#[derive(Default)]
struct ExchangeHalf {
    /// `None` if the operation is complete.
    active: Option<Active>,
    outcome: Option<OperationOutcome>,
}

impl ExchangeHalf {
    fn new(active: Active) -> ExchangeHalf {
        ExchangeHalf { active: Some(active), outcome: None }
    }

    /// Polls the operation. Returns true if it is complete.
    fn advance(&mut self, engine: &Engine) -> bool {
        if let Some(active) = &mut self.active
            && let Some(outcome) = active.poll(engine.endpoint())
        {
            self.outcome = Some(outcome);
            self.active = None;
        }
        self.active.is_none()
    }
}

impl LaneExchange {
    /// Makes one operation of a send and a receive that have begun on `comm`. The operation owns `memory`.
    pub fn start(
        comm: &CommObject,
        send: Active,
        receive: Active,
        memory: Option<Staging>,
    ) -> Active {
        let (send, receive) = (ExchangeHalf::new(send), ExchangeHalf::new(receive));
        let halves = RefCell::new(Halves { send, receive, memory });
        Active::External(Rc::new(LaneExchange { engine: comm.engine().clone(), halves }))
    }
}

impl External for LaneExchange {
    fn poll(&self) -> Option<OperationOutcome> {
        if !self.is_over() {
            return None;
        }
        let Halves { send, receive, .. } = self.halves.take();
        let (sent, received) = (send.outcome?, receive.outcome?);
        Some(OperationOutcome { status: received.status, error: received.error.or(sent.error) })
    }

    fn is_over(&self) -> bool {
        let halves = &mut *self.halves.borrow_mut();
        // Both are polled, whatever the result of the first.
        let (sent, received) =
            (halves.send.advance(&self.engine), halves.receive.advance(&self.engine));
        sent && received
    }

    fn peek(&self) -> Option<OperationOutcome> {
        let over = self.is_over();
        let halves = self.halves.borrow();
        let received = halves.receive.outcome.as_ref().filter(|_| over)?;
        Some(OperationOutcome::of(received.status))
    }

    /// Does nothing, because half of the operation may be complete. MPI allows that a cancelled operation completes normally.
    fn cancel(&self) -> Result<(), weft_process::Error> {
        Ok(())
    }

    /// Lets both operations complete in the background. A task polls them, because it owns the memory of the send.
    fn release(&self) -> Result<(), weft_process::Error> {
        let Halves { send, receive, memory } = self.halves.take();
        let endpoint = self.engine.endpoint().clone();
        self.engine.spawn(async move {
            let _kept_until_sent = memory;
            for mut active in [send.active, receive.active].into_iter().flatten() {
                active.over(&endpoint).await;
            }
            Ok(())
        });
        Ok(())
    }
}
