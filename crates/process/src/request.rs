//! Operations under way, in the form that requests hold.

use crate::buffer::BufferPiece;
use crate::engine::pending_once;
use crate::{Buffer, Engine, Error, NonblockingTask, class};
use std::rc::Rc;
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
    /// Returns a success with an empty status, such as the outcome of a send.
    pub fn done() -> OperationOutcome {
        OperationOutcome::of(Status::default())
    }

    /// Returns a success with this status.
    pub fn of(status: Status) -> OperationOutcome {
        OperationOutcome { status, error: None }
    }

    /// Returns the status, or the error.
    #[inline]
    pub fn result(self) -> Result<Status, Error> {
        self.error.map_or(Ok(self.status), Err)
    }
}

/// An operation that is progressed outside of the engine, for instance by the layer above.
pub trait External {
    /// Ends the operation if it is complete. Returns the outcome only once.
    fn poll(&self) -> Option<OperationOutcome>;

    /// Returns true if the operation is complete. Does not end the operation.
    fn is_over(&self) -> bool;

    /// Returns the status if the operation is complete. Does not end the operation. An error in the outcome is an error of this
    /// call, not of the operation.
    fn peek(&self) -> Option<OperationOutcome>;

    /// Requests cancellation.
    fn cancel(&self) -> Result<(), Error>;

    /// Releases the operation. No later call uses the operation. If a function of the program fails, its error is returned.
    fn release(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// An operation, under way or complete.
pub enum Active {
    /// An operation that was complete when it was started.
    Done(Status),
    /// A send: its buffer is read until the send is complete.
    Send {
        /// The endpoint's number for the send. The number is invalid once the send has ended.
        id: RequestId,
        /// Packed data, kept until the send is complete. Boxed like `unpack`, because requests are small and few requests have
        /// packed data.
        _piece: Option<Box<BufferPiece>>,
    },
    /// A receive: its buffer belongs to the library until the receive is complete.
    Receive {
        /// The endpoint's number for the receive. The number is invalid once the receive has ended.
        id: RequestId,
        /// Staging memory for data that are not received straight to their place, and the buffer into which the data are unpacked.
        unpack: Option<Box<(BufferPiece, Buffer)>>,
    },
    /// An operation that the engine progresses, such as a nonblocking collective operation.
    Task(NonblockingTask),
    /// An operation that the layer above, or the state of a partitioned operation, progresses.
    External(Rc<dyn External>),
}

impl Active {
    /// Polls the operation once. Returns the outcome if the operation is complete. A fault of the fabric ends every operation.
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

    /// Returns true if the operation is complete. Does not end the operation. `faulted` is true if a fault has ended all messages.
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

    /// Waits for the operation in a task. The task announces the counter for which it waits.
    pub async fn over<F: Fabric>(&mut self, endpoint: &Endpoint<F>) -> OperationOutcome {
        loop {
            if let Some(outcome) = self.poll(endpoint) {
                return outcome;
            }
            if let Active::Send { id, .. } | Active::Receive { id, .. } = self {
                let (counter, target) = endpoint.wait_of(*id);
                // A fault is ignored here, because the next poll reports it.
                let _ = endpoint.until(counter, target).await;
                continue;
            }
            // No counter reports the end of this operation, so each round looks at the operation.
            pending_once().await;
        }
    }

    /// Returns the status if the operation is complete (MPI_Request_get_status). Does not end the operation. An error of the
    /// operation is kept for the call that ends it.
    pub fn peek<F: Fabric>(&self, endpoint: &Endpoint<F>) -> Option<OperationOutcome> {
        let status = match self {
            Active::Done(status) => Some(*status),
            Active::Task(task) => task.is_over().then(Status::default),
            Active::External(operation) => return operation.peek(),
            Active::Send { id, .. } => {
                endpoint.peek_status(*id).map(|s| Status { flags: s.flags, ..Status::default() })
            }
            Active::Receive { id, .. } => endpoint.peek_status(*id),
        };
        status.map(OperationOutcome::of)
    }

    /// Returns the endpoint's request of a send or receive; `None` for another operation.
    pub fn message_request(&self) -> Option<RequestId> {
        match self {
            Active::Send { id, .. } | Active::Receive { id, .. } => Some(*id),
            _ => None,
        }
    }

    /// Requests cancellation (MPI_Cancel).
    pub fn cancel<F: Fabric>(&self, endpoint: &Endpoint<F>) {
        if let Active::Send { id, .. } | Active::Receive { id, .. } = self {
            endpoint.cancel(*id);
        }
    }
}

impl<F: Fabric> Engine<F> {
    /// Asks for a helper thread if `active` is the first large nonblocking operation.
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
