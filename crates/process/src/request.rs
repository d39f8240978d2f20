//! What a request looks at: an operation under way.

use crate::buffer::BufferPiece;
use crate::{Buffer, Engine, Error, NonblockingTask, class};
use std::rc::Rc;
use std::task::{Context, Poll};
use weft_fabric::Fabric;
use weft_p2p::{Endpoint, RequestId, Status};

/// How an operation ended: its status, and its error if it failed.
#[derive(Debug, Clone)]
pub struct OperationOutcome {
    /// What the program's MPI_Status is filled from.
    pub status: Status,
    /// `None`: it succeeded.
    pub error: Option<Error>,
}

impl OperationOutcome {
    /// A success of which the status says nothing, as of a send.
    pub fn done() -> OperationOutcome {
        OperationOutcome::of(Status::default())
    }

    /// Without an error.
    pub fn of(status: Status) -> OperationOutcome {
        OperationOutcome { status, error: None }
    }
}

/// An operation that is not ours: the layer above knows how it goes on.
pub trait External {
    /// Ends it if it is over, once.
    fn poll(&self) -> Option<OperationOutcome>;

    /// Whether it is over, without ending it.
    fn is_over(&self) -> bool;

    /// The status if it is over, without ending it; the error is that of looking.
    fn peek(&self) -> Option<OperationOutcome>;

    /// Asks to take it back.
    fn cancel(&self) -> Result<(), Error>;

    /// Nobody will ask any more. An error is that of the program's function.
    fn release(&self) -> Result<(), Error>;
}

/// An operation under way, or over.
pub enum Active {
    /// Over when it was started.
    Done(Status),
    /// A message that goes out: its buffer is read until it is over.
    Send {
        /// The endpoint's number for it, which is used up when it is ended.
        id: RequestId,
        /// Keeps packed data until the send is over. Boxed, as is what a receive keeps: few have any, and requests are small.
        _piece: Option<Box<BufferPiece>>,
    },
    /// A message to come: its buffer is the library's until it is over.
    Receive {
        /// The endpoint's number for it, until it has been ended.
        id: RequestId,
        /// Where received data go that did not go straight to their place.
        unpack: Option<Box<(BufferPiece, Buffer)>>,
    },
    /// An operation that the engine moves on, as a nonblocking collective one.
    Task(NonblockingTask),
    /// An operation that the layer above, or a partitioned one's own state, moves on.
    External(Rc<dyn External>),
}

impl Active {
    /// Looks once; the outcome if it is over. A fault of the fabric ends everything.
    pub fn poll<F: Fabric>(&mut self, endpoint: &Endpoint<F>) -> Option<OperationOutcome> {
        let outcome = match self {
            Active::External(operation) => return operation.poll(),
            Active::Done(status) => OperationOutcome { status: *status, error: None },
            Active::Task(task) => {
                if !task.is_over() {
                    return None;
                }
                let error = task.result().and_then(Result::err);
                OperationOutcome { status: Status::default(), error }
            }
            Active::Send { id, .. } => match endpoint.finish(*id) {
                Some(status) => finished(Status { source: 0, tag: 0, ..status }),
                None => return failed(endpoint),
            },
            Active::Receive { id, unpack } => match endpoint.finish(*id) {
                Some(status) => {
                    if let Some(kept) = unpack.take() {
                        let (piece, buffer) = *kept;
                        piece.unpack(&buffer, status.bytes as usize);
                    }
                    finished(status)
                }
                None => return failed(endpoint),
            },
        };
        Some(outcome)
    }

    /// Whether it is over, without ending it; `faulted`: whether a fault has ended all messages.
    #[inline]
    pub fn looks_over<F: Fabric>(&self, endpoint: &Endpoint<F>, faulted: bool) -> bool {
        match self {
            Active::Done(_) => true,
            Active::Task(task) => task.is_over(),
            Active::External(operation) => operation.is_over(),
            Active::Send { id, .. } | Active::Receive { id, .. } => {
                endpoint.is_over(*id) || faulted
            }
        }
    }

    /// Waits for it as a task does, which says what it waits for.
    pub async fn over<F: Fabric>(&mut self, endpoint: &Endpoint<F>) -> OperationOutcome {
        loop {
            if let Some(outcome) = self.poll(endpoint) {
                return outcome;
            }
            if let Active::Send { id, .. } | Active::Receive { id, .. } = self {
                let (counter, target) = endpoint.wait_of(*id);
                // A fault is what the next look finds.
                let _ = endpoint.until(counter, target).await;
                continue;
            }
            // Nobody says when: it is looked at in each round.
            let mut looked = false;
            let once = |_: &mut Context<'_>| match std::mem::replace(&mut looked, true) {
                false => Poll::Pending,
                true => Poll::Ready(()),
            };
            std::future::poll_fn(once).await;
        }
    }

    /// The status if it is over, without ending it (MPI_Request_get_status): an error of the operation is
    /// left for who ends it.
    pub fn peek<F: Fabric>(&self, endpoint: &Endpoint<F>) -> Option<OperationOutcome> {
        let status = match self {
            Active::Done(status) => Some(*status),
            Active::Task(task) => task.is_over().then(Status::default),
            Active::External(operation) => return operation.peek(),
            Active::Send { id, .. } => endpoint
                .peek_status(*id)
                .map(|s| Status { cancelled: s.cancelled, ..Status::default() }),
            Active::Receive { id, .. } => endpoint.peek_status(*id),
        };
        status.map(OperationOutcome::of)
    }

    /// Asks to take it back (MPI_Cancel).
    pub fn cancel<F: Fabric>(&self, endpoint: &Endpoint<F>) {
        if let Active::Send { id, .. } | Active::Receive { id, .. } = self {
            endpoint.cancel(*id);
        }
    }
}

impl<F: Fabric> Engine<F> {
    /// A nonblocking operation has begun.
    #[inline]
    pub fn note_nonblocking(&self, active: &Active) {
        if self.overlaps().get() {
            self.want_overlap(active);
        }
    }

    #[cold]
    fn want_overlap(&self, active: &Active) {
        let large = match active {
            Active::Send { id, .. } | Active::Receive { id, .. } => self.endpoint().is_large(*id),
            Active::Task(task) => !task.is_over(),
            _ => false,
        };
        if large {
            self.overlaps().set(false);
            self.start_helper();
        }
    }
}

fn finished(status: Status) -> OperationOutcome {
    let error = (status.lost > 0).then(|| truncated(&status));
    OperationOutcome { status, error }
}

/// A message that was longer than its receive.
pub(crate) fn truncated(status: &Status) -> Error {
    let (got, room) = (status.bytes + status.lost, status.bytes);
    let Status { source, tag, .. } = status;
    let text = format!(
        "the message of {got} bytes from rank {source} with tag {tag} is longer than the receive \
         buffer of {room} bytes: receive with a larger count, or probe first"
    );
    Error::new(class::TRUNCATE, text).with_status(*status)
}

fn failed<F: Fabric>(endpoint: &Endpoint<F>) -> Option<OperationOutcome> {
    let fault = endpoint.fault()?;
    Some(OperationOutcome { status: Status::default(), error: Some(fault.into()) })
}
