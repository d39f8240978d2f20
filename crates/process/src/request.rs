//! Operations under way, in the form that requests hold.

use crate::buffer::BufferPiece;
use crate::{Buffer, Engine, Error, NonblockingTask, class};
use std::rc::Rc;
use std::task::{Context, Poll};
use weft_fabric::Fabric;
use weft_p2p::{Endpoint, RequestId, Status};

/// Outcome of an operation: its status, and its error if it failed.
#[derive(Debug, Clone)]
pub struct OperationOutcome {
    /// Status from which the program's MPI_Status is filled.
    pub status: Status,
    /// Error of the operation. `None` if it succeeded.
    pub error: Option<Error>,
}

impl OperationOutcome {
    /// Returns a success with an empty status, as of a send.
    pub fn done() -> OperationOutcome {
        OperationOutcome::of(Status::default())
    }

    /// Returns a success with this status.
    pub fn of(status: Status) -> OperationOutcome {
        OperationOutcome { status, error: None }
    }
}

/// An operation of the layer above, which knows how it progresses.
pub trait External {
    /// Ends the operation if it is complete. Returns its outcome, once.
    fn poll(&self) -> Option<OperationOutcome>;

    /// Returns true if the operation is complete, without ending it.
    fn is_over(&self) -> bool;

    /// Returns the status if the operation is complete, without ending it. An error in the outcome is an error of this call, not of
    /// the operation.
    fn peek(&self) -> Option<OperationOutcome>;

    /// Requests cancellation.
    fn cancel(&self) -> Result<(), Error>;

    /// Releases the operation, because no call will ask for it any more. An error comes from a function of the program.
    fn release(&self) -> Result<(), Error>;
}

/// An operation under way, or over.
pub enum Active {
    /// An operation that was complete when it was started.
    Done(Status),
    /// A send: its buffer is read until the send is complete.
    Send {
        /// The endpoint's number for the send, which is invalid once the send is ended.
        id: RequestId,
        /// Packed data, kept until the send is complete. Boxed like `unpack`, because requests are small and few requests have
        /// packed data.
        _piece: Option<Box<BufferPiece>>,
    },
    /// A receive: its buffer belongs to the library until the receive is complete.
    Receive {
        /// The endpoint's number for the receive, until the receive is ended.
        id: RequestId,
        /// Staging memory for data that are not received straight to their place, and the buffer into which they are unpacked.
        unpack: Option<Box<(BufferPiece, Buffer)>>,
    },
    /// An operation that the engine progresses, such as a nonblocking collective operation.
    Task(NonblockingTask),
    /// An operation that the layer above, or the state of a partitioned operation, progresses.
    External(Rc<dyn External>),
}

impl Active {
    /// Looks once at the operation. Returns the outcome if the operation is complete. A fault of the fabric ends every operation.
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

    /// Returns true if the operation is complete, without ending it. `faulted`: true if a fault has ended all messages.
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

    /// Waits for the operation in a task, which announces the counter that it waits for.
    pub async fn over<F: Fabric>(&mut self, endpoint: &Endpoint<F>) -> OperationOutcome {
        loop {
            if let Some(outcome) = self.poll(endpoint) {
                return outcome;
            }
            if let Active::Send { id, .. } | Active::Receive { id, .. } = self {
                let (counter, target) = endpoint.wait_of(*id);
                // The next poll reports a fault.
                let _ = endpoint.until(counter, target).await;
                continue;
            }
            // No counter announces the end: each round looks at the operation.
            let mut looked = false;
            let once = |_: &mut Context<'_>| match std::mem::replace(&mut looked, true) {
                false => Poll::Pending,
                true => Poll::Ready(()),
            };
            std::future::poll_fn(once).await;
        }
    }

    /// Returns the status if the operation is complete, without ending it (MPI_Request_get_status). An error of the operation is
    /// kept for the call that ends it.
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

    /// Requests cancellation (MPI_Cancel).
    pub fn cancel<F: Fabric>(&self, endpoint: &Endpoint<F>) {
        if let Active::Send { id, .. } | Active::Receive { id, .. } = self {
            endpoint.cancel(*id);
        }
    }
}

impl<F: Fabric> Engine<F> {
    /// Notes that a nonblocking operation has begun.
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

/// Returns the error of a message that was longer than its receive.
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
