//! Messages of a communicator: ranks and datatypes around [`weft_p2p`] (MPI 5.0, chapter 3).

use crate::request::truncated;
use crate::{Active, Buffer, Comm, Error, OperationOutcome, WaitHooks};
use std::task::Poll;
use weft_fabric::{Fabric, FabricExt, Sge};
use weft_p2p::{
    Direct, Matched, MatchingContext, MessageTarget, ReceiveSource, RequestId, SendMode,
    SignatureMark, Status, StatusFlags, Want,
};

/// Destination of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// A place in [`Comm::peers`], which must be in range.
    Rank(usize),
    /// MPI_PROC_NULL.
    Nobody,
}

/// Source of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A sender: its place in [`Comm::peers`], which must be in range.
    Rank(usize),
    /// MPI_ANY_SOURCE.
    Any,
    /// MPI_PROC_NULL.
    Nobody,
}

/// The status of a receive from MPI_PROC_NULL (MPI 5.0, section 3.10).
pub(crate) const NOBODY: Status =
    Status { source: -3, tag: -2, bytes: 0, lost: 0, flags: StatusFlags::NONE };

impl<F: Fabric> Comm<F> {
    #[inline(always)]
    fn target(&self, to: usize, tag: i32) -> MessageTarget {
        let peer = self.peers().ranks()[to] as usize;
        MessageTarget { context: self.context(), peer, rank: self.rank() as u32, tag }
    }

    /// Returns the matching criteria of a receive. `None` for a receive from MPI_PROC_NULL.
    #[inline(always)]
    fn want(&self, from: Origin, tag: Option<i32>) -> Option<Want> {
        let source = match from {
            Origin::Rank(rank) => {
                ReceiveSource::Rank { rank: rank as u32, peer: self.peers().ranks()[rank] as usize }
            }
            Origin::Any => ReceiveSource::Any,
            Origin::Nobody => return None,
        };
        Some(Want { context: self.context(), source, tag })
    }

    /// Returns the target of a message in matching space `context`.
    pub(crate) fn target_in(&self, context: MatchingContext, to: usize, tag: i32) -> MessageTarget {
        MessageTarget { context, ..self.target(to, tag) }
    }

    /// Returns the matching criteria of a receive in matching space `context`.
    pub(crate) fn want_in(&self, context: MatchingContext, from: usize, tag: i32) -> Want {
        let want = self.want(Origin::Rank(from), Some(tag));
        Want { context, ..want.expect("a rank is somebody") }
    }

    /// Starts a send.
    pub fn isend(&self, buffer: &Buffer, to: Destination, tag: i32, mode: SendMode) -> Active {
        let Destination::Rank(to) = to else { return Active::Done(NOBODY) };
        let send =
            |data| self.engine.endpoint().isend_cancellable(self.target(to, tag), data, mode);
        self.isend_by(buffer, send)
    }

    /// Starts a send of a message with a signature mark.
    pub fn isend_with_mark(
        &self,
        buffer: &Buffer,
        to: Destination,
        tag: i32,
        mode: SendMode,
        mark: SignatureMark,
    ) -> Active {
        let Destination::Rank(to) = to else { return Active::Done(NOBODY) };
        let (endpoint, target) = (self.engine.endpoint(), self.target(to, tag));
        self.isend_by(buffer, |data| endpoint.isend_with_mark(target, data, mode, mark))
    }

    pub(crate) fn isend_to(
        &self,
        target: MessageTarget,
        buffer: &Buffer,
        mode: SendMode,
    ) -> Active {
        self.isend_by(buffer, |data| self.engine.endpoint().isend(target, data, mode))
    }

    fn isend_by(&self, buffer: &Buffer, send: impl FnOnce(Sge) -> Option<RequestId>) -> Active {
        let piece = buffer.readable(self.pool());
        match send(piece.sge) {
            None => Active::Done(Status::default()),
            Some(id) => {
                Active::Send { id, _piece: piece.staging.is_some().then(|| Box::new(piece)) }
            }
        }
    }

    /// Starts a send of contiguous bytes. Returns `None` if the send is complete.
    #[inline(always)]
    pub fn isend_run(&self, data: Sge, to: usize, tag: i32, mode: SendMode) -> Option<RequestId> {
        self.engine.endpoint().isend_cancellable(self.target(to, tag), data, mode)
    }

    /// Starts a receive of contiguous bytes. Returns `None` for a receive from MPI_PROC_NULL.
    #[inline(always)]
    pub fn irecv_run(&self, data: Sge, from: Origin, tag: Option<i32>) -> Option<RequestId> {
        let want = self.want(from, tag)?;
        Some(self.engine.endpoint().irecv(&want, data))
    }

    /// Sends contiguous bytes, and waits until the program may change the bytes.
    #[inline]
    pub fn send_run(
        &self,
        outside: &dyn WaitHooks,
        data: Sge,
        to: Destination,
        tag: i32,
        mode: SendMode,
    ) -> Result<(), Error> {
        let Destination::Rank(to) = to else { return Ok(()) };
        match self.engine.endpoint().isend(self.target(to, tag), data, mode) {
            None => Ok(()),
            Some(id) => self.finish(outside, Active::Send { id, _piece: None }).map(|_| ()),
        }
    }

    /// Starts a receive.
    pub fn irecv(&self, buffer: &Buffer, from: Origin, tag: Option<i32>) -> Active {
        let Some(want) = self.want(from, tag) else { return Active::Done(NOBODY) };
        self.receive_by(buffer, |data| self.engine.endpoint().irecv(&want, data))
    }

    fn receive_by(&self, buffer: &Buffer, post: impl FnOnce(Sge) -> RequestId) -> Active {
        let piece = buffer.writable(self.pool());
        let id = post(piece.sge);
        let unpack = piece.staging.is_some().then(|| Box::new((piece, buffer.clone())));
        Active::Receive { id, unpack }
    }

    /// Receives contiguous bytes. First tries the fast path, on which data go from the fabric straight to the buffer.
    #[inline]
    pub fn recv_run(
        &self,
        outside: &dyn WaitHooks,
        data: Sge,
        from: Origin,
        tag: Option<i32>,
    ) -> Result<Status, Error> {
        let Some(want) = self.want(from, tag) else { return Ok(NOBODY) };
        let endpoint = self.engine.endpoint();
        let mut left = None;
        loop {
            match endpoint.poll_uncharged(&want, data) {
                Direct::Got(status) if status.lost == 0 => return Ok(status),
                Direct::Got(status) => return Err(truncated(&status)),
                Direct::Nothing => {
                    let (before, far) = left
                        .unwrap_or_else(|| (self.direct_turns(outside), endpoint.is_far(&want)));
                    if before <= 1 {
                        break;
                    }
                    left = Some((before - 1, far));
                    // Messages over a network arrive only if the fabric makes progress, and polls for one peer make no progress.
                    if far {
                        endpoint.move_on();
                    } else {
                        std::hint::spin_loop();
                    }
                }
                Direct::Post => break,
                Direct::Marked => return self.recv_marked(outside, want, data),
                Direct::Other => {
                    self.engine.wake_siblings();
                    break;
                }
            }
        }
        self.recv_posted(outside, want, data)
    }

    /// Posts a receive and waits for it. This function is separate, so that a message that has arrived saves no registers for it.
    #[inline(never)]
    fn recv_posted(&self, outside: &dyn WaitHooks, want: Want, data: Sge) -> Result<Status, Error> {
        let id = self.engine.endpoint().irecv(&want, data);
        self.finish(outside, Active::Receive { id, unpack: None })
    }

    /// Receives after a message with a signature mark was put aside, which may be the awaited message.
    #[cold]
    fn recv_marked(&self, outside: &dyn WaitHooks, want: Want, data: Sge) -> Result<Status, Error> {
        match self.engine.endpoint().take_marked(&want, data) {
            Direct::Got(status) if status.lost == 0 => Ok(status),
            Direct::Got(status) => Err(truncated(&status)),
            _ => {
                self.engine.wake_siblings();
                self.recv_posted(outside, want, data)
            }
        }
    }

    /// Returns the number of polls on the fast path. If other threads wait for the lock, the number is 1, because only the wait
    /// after the fast path releases the lock.
    fn direct_turns(&self, outside: &dyn WaitHooks) -> u32 {
        if outside.undisturbed() { self.engine.direct_turns() } else { 1 }
    }

    /// Receives a message. Returns when the message has arrived.
    pub fn recv(
        &self,
        outside: &dyn WaitHooks,
        buffer: &Buffer,
        from: Origin,
        tag: Option<i32>,
    ) -> Result<Status, Error> {
        match buffer.run() {
            Some(run) => self.recv_run(outside, run, from, tag),
            None => self.finish(outside, self.irecv(buffer, from, tag)),
        }
    }

    /// Waits for an operation. The error of a truncated receive contains the status of the receive.
    pub fn finish(&self, outside: &dyn WaitHooks, mut active: Active) -> Result<Status, Error> {
        let endpoint = self.engine.endpoint();
        let request = active.message_request();
        let awaited = || request.into_iter().collect();
        self.engine.drive_requests(outside, awaited, || active.poll(endpoint)).result()
    }

    /// Waits for an operation like [`Comm::finish`], but as a future, for programs that run as futures.
    pub async fn finished(&self, mut active: Active) -> Result<Status, Error> {
        let endpoint = self.engine.endpoint();
        let outcome = std::future::poll_fn(|_| match active.poll(endpoint) {
            Some(outcome) => Poll::Ready(outcome),
            None => Poll::Pending,
        })
        .await;
        outcome.result()
    }

    /// Tests an operation for completion (MPI_Test), for programs that run as futures. In a simulation, global time first catches
    /// up with the rank's own time.
    pub async fn test(&self, active: &mut Active) -> Option<OperationOutcome> {
        let endpoint = self.engine.endpoint();
        std::future::poll_fn(|cx| endpoint.fabric().poll_clock(cx)).await;
        self.engine.progress();
        active.poll(endpoint)
    }

    /// Returns the status of the message that a receive would take now, if there is one.
    pub fn iprobe(&self, from: Origin, tag: Option<i32>) -> Option<Status> {
        let Some(want) = self.want(from, tag) else { return Some(NOBODY) };
        self.engine.progress();
        self.engine.endpoint().probe(&want)
    }

    /// Waits for a message that a receive would take.
    pub fn probe(
        &self,
        outside: &dyn WaitHooks,
        from: Origin,
        tag: Option<i32>,
    ) -> Result<Status, Error> {
        let Some(want) = self.want(from, tag) else { return Ok(NOBODY) };
        let endpoint = self.engine.endpoint();
        self.engine.drive(outside, || match endpoint.fault() {
            Some(fault) => Some(Err(fault.into())),
            None => endpoint.probe(&want).map(Ok),
        })
    }

    /// Finds the message that a receive would take, and removes this message from matching (MPI_Improbe). A message from
    /// MPI_PROC_NULL has no [`Matched`].
    pub fn improbe(&self, from: Origin, tag: Option<i32>) -> Option<(Option<Matched>, Status)> {
        let Some(want) = self.want(from, tag) else { return Some((None, NOBODY)) };
        self.engine.progress();
        let matched = self.engine.endpoint().take(&want)?;
        let status = Status {
            source: matched.rank as i32,
            tag: matched.tag,
            bytes: matched.len,
            flags: matched.flags(),
            ..Status::default()
        };
        Some((Some(matched), status))
    }

    /// Starts the receive of a message that [`Comm::improbe`] has returned.
    pub fn imrecv(&self, message: Matched, buffer: &Buffer) -> Active {
        self.receive_by(buffer, |data| self.engine.endpoint().imrecv(message, data))
    }
}
