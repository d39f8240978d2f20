//! View of a communicator for an algorithm: ranks, and messages in a separate matching context. One of two transports carries the
//! messages; the algorithm does not distinguish them.

use crate::algorithm::{AlgorithmChoice, Carrier};
use crate::members::Members;
use smallvec::SmallVec;
use std::rc::Rc;
use weft_fabric::{Fabric, Fault, Sge, Staging};
use weft_p2p::{
    Direct, Endpoint, MatchingContext, MessageTarget, ReceiveSource, RequestId, Status, Tag,
    TransferPattern, Want,
};

/// View of a communicator for one collective operation. All messages of the view carry `tag`, so that operations under way at the
/// same time do not match each other's messages.
pub struct CommView<F: Fabric> {
    /// Endpoint that carries the view's messages. The endpoint also gives access to the fabric and to the staging memory of the
    /// process.
    pub endpoint: Rc<Endpoint<F>>,
    /// Map from a rank in the communicator to a rank in the fabric.
    pub members: Rc<Members>,
    /// This process's rank in the communicator.
    pub rank: usize,
    /// Matching context of the view's messages, separate from the program's messages.
    pub context: MatchingContext,
    /// Tag that distinguishes the operation's messages from messages of other operations under way.
    pub tag: Tag,
    /// Transport of the view's messages, chosen with the algorithm by [`CommView::carried`].
    pub via: Via,
    /// Reception of writes into slots; not used by messages.
    pub reception: Reception,
}

/// Requests of one operation, on the stack if there are few.
pub type RequestBatch = SmallVec<[RequestId; 8]>;

/// Transport of a view's messages. All members choose the same transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Via {
    /// MPI's point-to-point messages: the baseline algorithms, named `MPI-X`.
    #[default]
    Messages,
    /// Streams of segments ([`weft_p2p::stream`]): algorithms named `X`.
    Native,
}

/// Method by which a rank detects RDMA writes into its slots. All members choose the same method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reception {
    /// A mark in memory that is written with the data or after the data. Algorithms with this reception have no suffix in their
    /// name.
    #[default]
    Marks,
    /// The arrival of a write with immediate, which the adapter reports. Algorithms with this reception have the suffix `-IMM` in
    /// their name.
    Immediates,
}

impl<F: Fabric> CommView<F> {
    /// Returns the view with the transport and reception that `choice` needs.
    pub fn carried(mut self, choice: AlgorithmChoice) -> CommView<F> {
        match choice.algorithm.carrier {
            Carrier::Streams => self.via = Via::Native,
            Carrier::Immediates => self.reception = Reception::Immediates,
            _ => {}
        }
        self
    }

    /// Returns the number of processes.
    pub fn size(&self) -> usize {
        self.members.len()
    }

    fn target(&self, to: usize) -> MessageTarget {
        let CommView { context, tag, .. } = *self;
        MessageTarget { context, peer: self.members[to] as usize, rank: self.rank as u32, tag }
    }

    fn want(&self, from: usize) -> Want {
        let source = ReceiveSource::Rank { rank: from as u32, peer: self.members[from] as usize };
        Want { context: self.context, source, tag: Some(self.tag) }
    }

    /// Returns the source of a stream's message.
    fn origin(&self, rank: usize) -> MessageTarget {
        MessageTarget { rank: rank as u32, ..self.target(rank) }
    }

    /// Starts a send. Returns `None` if the send is already complete.
    pub fn isend(&self, to: usize, data: Sge) -> Option<RequestId> {
        self.isend_in(TransferPattern::Plain, to, data)
    }

    /// Starts a send to a rank that soon forwards the data or sends the data back ([`TransferPattern::Forwarded`]).
    pub fn isend_on(&self, to: usize, data: Sge) -> Option<RequestId> {
        self.isend_in(TransferPattern::Forwarded, to, data)
    }

    /// Starts a send of a rank that sends to all other ranks at once. If there are several receivers, the receivers copy long data.
    pub fn isend_to_each(&self, to: usize, data: Sge) -> Option<RequestId> {
        self.isend_in(self.pattern(TransferPattern::OneToMany), to, data)
    }

    /// Starts a send of a rank that also receives at this time, to a rank that also sends ([`TransferPattern::Exchange`]).
    pub fn isend_exchanged(&self, to: usize, data: Sge) -> Option<RequestId> {
        self.isend_in(TransferPattern::Exchange, to, data)
    }

    /// Sends to a rank that receives from all other ranks at once. If there are several senders, the senders copy long data.
    pub fn send_as_each(
        &self,
        to: usize,
        data: Sge,
    ) -> impl Future<Output = Result<(), Fault>> + '_ {
        self.sent(self.isend_in(self.pattern(TransferPattern::ManyToOne), to, data))
    }

    /// Returns `among_others`, or the plain pattern if there are only two ranks.
    fn pattern(&self, among_others: TransferPattern) -> TransferPattern {
        if self.size() > 2 { among_others } else { TransferPattern::Plain }
    }

    /// Starts a send with a communication pattern.
    pub fn isend_in(&self, pattern: TransferPattern, to: usize, data: Sge) -> Option<RequestId> {
        match self.via {
            Via::Messages => self.endpoint.isend_as(self.target(to), data, pattern),
            Via::Native => self.endpoint.streams().isend(self.target(to), data),
        }
    }

    /// Starts a receive of exactly `data.len()` bytes.
    pub fn irecv(&self, from: usize, data: Sge) -> RequestId {
        self.irecv_in(TransferPattern::Plain, from, data)
    }

    /// Starts to receive a message that was sent by [`CommView::isend_to_each`].
    pub fn irecv_as_each(&self, from: usize, data: Sge) -> RequestId {
        self.irecv_in(self.pattern(TransferPattern::OneToMany), from, data)
    }

    /// Starts to receive a message that was sent by [`CommView::isend_exchanged`].
    pub fn irecv_exchanged(&self, from: usize, data: Sge) -> RequestId {
        self.irecv_in(TransferPattern::Exchange, from, data)
    }

    /// Starts to receive a message that was sent with a communication pattern.
    pub fn irecv_in(&self, pattern: TransferPattern, from: usize, data: Sge) -> RequestId {
        match self.via {
            Via::Messages => self.endpoint.irecv_as(&self.want(from), data, pattern),
            Via::Native => self.endpoint.streams().irecv(self.origin(from), data),
        }
    }

    /// Waits until a request that this view has started is complete.
    ///
    /// # Errors
    /// Returns a fault of the fabric, or a truncation if a message was longer than its receive.
    pub async fn wait(&self, request: RequestId) -> Result<(), Fault> {
        let Status { source, bytes, lost, .. } = self.endpoint.wait(request).await?;
        match lost {
            0 => Ok(()),
            // Truncation means that the ranks disagree about the size of the operation.
            _ => Err(Fault::truncated(source as usize, bytes, bytes + lost)),
        }
    }

    /// Waits like [`CommView::wait`] for a receive of exactly `len` bytes from `from`.
    ///
    /// # Errors
    /// Also returns a truncation for a shorter message, because the sender is in another operation, or passes a different length.
    async fn received(&self, request: RequestId, from: usize, len: usize) -> Result<(), Fault> {
        exactly(from, len, self.endpoint.wait(request).await?)
    }

    /// Waits for all of `requests`, even after a failure, because no data may arrive in memory that the caller owns again. Returns
    /// the first fault.
    pub async fn wait_all(
        &self,
        requests: impl IntoIterator<Item = RequestId>,
    ) -> Result<(), Fault> {
        let mut all = Ok(());
        for request in requests {
            all = all.and(self.wait(request).await);
        }
        all
    }

    /// Sends, and waits for the end of the send. The send starts in this call, not at the first poll of the future, so that the
    /// future stays small.
    pub fn send(&self, to: usize, data: Sge) -> impl Future<Output = Result<(), Fault>> + '_ {
        self.sent(self.isend(to, data))
    }

    async fn sent(&self, send: Option<RequestId>) -> Result<(), Fault> {
        match send {
            None => Ok(()),
            Some(request) => self.wait(request).await,
        }
    }

    /// Receives. A message that has already arrived goes directly from the fabric to `data`.
    pub fn recv(&self, from: usize, data: Sge) -> impl Future<Output = Result<(), Fault>> + '_ {
        self.recv_in(TransferPattern::Plain, from, data)
    }

    /// Receives a message that was sent by [`CommView::isend_to_each`].
    pub fn recv_as_each(
        &self,
        from: usize,
        data: Sge,
    ) -> impl Future<Output = Result<(), Fault>> + '_ {
        self.recv_in(self.pattern(TransferPattern::OneToMany), from, data)
    }

    fn recv_in(
        &self,
        pattern: TransferPattern,
        from: usize,
        data: Sge,
    ) -> impl Future<Output = Result<(), Fault>> + '_ {
        let receive = match self.try_recv(from, data) {
            Some(over) => Err(over),
            None => Ok(self.irecv_in(pattern, from, data)),
        };
        async move {
            match receive {
                Err(over) => over,
                Ok(request) => self.received(request, from, data.len()).await,
            }
        }
    }

    /// Receives without a request if possible. Returns `None` if a receive must be posted.
    #[inline(never)]
    fn try_recv(&self, from: usize, data: Sge) -> Option<Result<(), Fault>> {
        if self.via == Via::Native {
            return None;
        }
        match self.endpoint.poll_direct(&self.want(from), data) {
            Direct::Got(status) => Some(exactly(from, data.len(), status)),
            Direct::Marked => match self.endpoint.take_marked(&self.want(from), data) {
                Direct::Got(status) => Some(exactly(from, data.len(), status)),
                _ => None,
            },
            Direct::Nothing | Direct::Post | Direct::Other => None,
        }
    }

    /// Sends to one rank and receives from another rank (or the same rank) at once.
    pub fn exchange(
        &self,
        to: usize,
        out: Sge,
        from: usize,
        into: Sge,
    ) -> impl Future<Output = Result<(), Fault>> + '_ {
        let receive = self.irecv_exchanged(from, into);
        let send = self.isend_exchanged(to, out);
        async move {
            let sent = match send {
                Some(request) => self.wait(request).await,
                None => Ok(()),
            };
            sent.and(self.received(receive, from, into.len()).await)
        }
    }

    /// Exchanges data in pieces, each piece as a separate message. Both ends have the same number of pieces, of the same lengths.
    pub async fn exchange_pieces(
        &self,
        to: usize,
        out: &[Sge],
        from: usize,
        into: &[Sge],
    ) -> Result<(), Fault> {
        let receives: RequestBatch =
            into.iter().map(|&piece| self.irecv_exchanged(from, piece)).collect();
        let sends: RequestBatch =
            out.iter().filter_map(|&piece| self.isend_exchanged(to, piece)).collect();
        let sent = self.wait_all(sends).await;
        sent.and(self.wait_all(receives).await)
    }

    /// Starts to receive `data` and to forward them to each rank of `to`. The caller waits for the receive, then calls
    /// [`CommView::relay_come`], and waits for all requests added to `sends` before it reuses `data`. Streams forward the part that
    /// has arrived, from the receive buffer, while the rest arrives.
    pub fn irelay(
        &self,
        from: usize,
        data: Sge,
        to: &[usize],
        sends: &mut Vec<RequestId>,
    ) -> RequestId {
        match self.via {
            Via::Messages => self.irecv(from, data),
            Via::Native => {
                let to = to.iter().map(|&to| self.target(to));
                let add = |send| sends.push(send);
                self.endpoint.streams().relay(self.origin(from), data, to, add)
            }
        }
    }

    /// Reports that the data of [`CommView::irelay`] have arrived. If messages carry the data, this function forwards them now.
    pub fn relay_come(&self, data: Sge, to: &[usize], sends: &mut Vec<RequestId>) {
        if let Via::Messages = self.via {
            sends.extend(to.iter().filter_map(|&to| self.isend(to, data)));
        }
    }

    /// Receives `data` and forwards the data to each rank of `to`. The sends are added to `sends`. The caller must wait for these
    /// sends before it reuses `data`.
    pub async fn relay(
        &self,
        from: usize,
        data: Sge,
        to: &[usize],
        sends: &mut Vec<RequestId>,
    ) -> Result<(), Fault> {
        let before = sends.len();
        let ended = self.received(self.irelay(from, data, to, sends), from, data.len()).await;
        if ended.is_ok() {
            self.relay_come(data, to, sends);
        } else {
            // After a failure the caller owns its memory again, so no send may still read it.
            for send in sends.drain(before..) {
                self.wait(send).await?;
            }
        }
        ended
    }

    /// Returns a temporary buffer of `len` bytes.
    pub fn stage(&self, len: usize) -> Staging {
        self.endpoint.staging().take(len)
    }
}

/// Compares the length of a message from `from` with the expected length. The lengths differ if the ranks disagree about the size
/// of the operation, or are in different operations.
#[inline]
fn exactly(from: usize, len: usize, status: Status) -> Result<(), Fault> {
    let got = status.bytes + status.lost;
    if got == len as u64 { Ok(()) } else { Err(Fault::truncated(from, len as u64, got)) }
}
