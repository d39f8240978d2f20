//! What an algorithm sees of a communicator: ranks, and messages in a context of its own, by one of two
//! transports that it does not tell apart.

use crate::algorithm::{AlgorithmChoice, Carrier};
use crate::members::Members;
use smallvec::SmallVec;
use std::rc::Rc;
use weft_fabric::{Fabric, FabricExt, Fault, Sge, Staging, Work};
use weft_p2p::{
    Direct, Endpoint, MatchingContext, MessageTarget, ReceiveSource, RequestId, Status, Tag,
    TransferPattern, Want,
};

/// One collective operation's view of its communicator. All its messages carry `tag`, so that
/// operations under way at once do not meet.
pub struct CommView<F: Fabric> {
    /// What its messages go through; the fabric and the staging memory of the process are behind
    /// it.
    pub endpoint: Rc<Endpoint<F>>,
    /// Rank in the communicator to rank in the fabric.
    pub members: Rc<Members>,
    /// This process's rank in the communicator.
    pub rank: usize,
    /// The matching space of its messages, apart from those of the program.
    pub context: MatchingContext,
    /// Tells the operation's messages from those of others under way.
    pub tag: Tag,
    /// Chosen with the algorithm, by [`CommView::carried`].
    pub via: Via,
    /// Of writes into slots; of no concern to messages.
    pub reception: Reception,
}

/// Requests of one operation, without a heap for few.
pub type RequestBatch = SmallVec<[RequestId; 8]>;

/// What carries a link's messages. All members choose the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Via {
    /// MPI's point-to-point messages: the baselines, `MPI-X`.
    #[default]
    Messages,
    /// Streams of segments ([`weft_p2p::stream`]): `X`.
    Native,
}

/// How a rank learns of RDMA writes into its slots. All members choose the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reception {
    /// By a mark that is written with them, or behind them: `X`.
    #[default]
    Marks,
    /// By the arrival of a write with immediate, which the adapter reports: `X-IMM`.
    Immediates,
}

impl<F: Fabric> CommView<F> {
    /// The same, carried as an algorithm wants it.
    pub fn carried(mut self, choice: AlgorithmChoice) -> CommView<F> {
        match choice.algorithm.carrier {
            Carrier::Streams => self.via = Via::Native,
            Carrier::Immediates => self.reception = Reception::Immediates,
            _ => {}
        }
        self
    }

    /// Number of processes.
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

    /// Where a stream's message comes from.
    fn origin(&self, rank: usize) -> MessageTarget {
        MessageTarget { rank: rank as u32, ..self.target(rank) }
    }

    /// Starts a send; `None` when it is over already.
    pub fn isend(&self, to: usize, data: Sge) -> Option<RequestId> {
        self.isend_in(TransferPattern::Plain, to, data)
    }

    /// The same to one who passes it on, or is the next to do so.
    pub fn isend_on(&self, to: usize, data: Sge) -> Option<RequestId> {
        self.isend_in(TransferPattern::Forwarded, to, data)
    }

    /// The same by one who sends to all others at once: where there are several, they fetch what is long.
    pub fn isend_to_each(&self, to: usize, data: Sge) -> Option<RequestId> {
        let pattern =
            if self.has_others() { TransferPattern::OneToMany } else { TransferPattern::Plain };
        self.isend_in(pattern, to, data)
    }

    /// Sends to one who receives from all others at once: where there are several, they copy what is long.
    pub fn send_as_each(
        &self,
        to: usize,
        data: Sge,
    ) -> impl Future<Output = Result<(), Fault>> + '_ {
        let pattern =
            if self.has_others() { TransferPattern::ManyToOne } else { TransferPattern::Plain };
        self.sent(self.isend_in(pattern, to, data))
    }

    /// Beside the two of a message.
    fn has_others(&self) -> bool {
        self.size() > 2
    }

    fn isend_in(&self, pattern: TransferPattern, to: usize, data: Sge) -> Option<RequestId> {
        match self.via {
            Via::Messages => self.endpoint.isend_as(self.target(to), data, pattern),
            Via::Native => self.endpoint.streams().isend(self.target(to), data),
        }
    }

    /// Starts a receive of exactly `data.len()` bytes.
    pub fn irecv(&self, from: usize, data: Sge) -> RequestId {
        match self.via {
            Via::Messages => self.endpoint.irecv(&self.want(from), data),
            Via::Native => self.endpoint.streams().irecv(self.origin(from), data),
        }
    }

    fn irecv_as_each(&self, from: usize, data: Sge) -> RequestId {
        match self.via {
            Via::Messages if self.has_others() => {
                self.endpoint.irecv_as(&self.want(from), data, TransferPattern::OneToMany)
            }
            _ => self.irecv(from, data),
        }
    }

    /// Waits until a request that this link has started is over.
    ///
    /// # Errors
    /// A fault of the fabric, or one of truncation if a message was longer than its receive.
    pub async fn wait(&self, request: RequestId) -> Result<(), Fault> {
        let Status { source, bytes, lost, .. } = self.endpoint.wait(request).await?;
        match lost {
            0 => Ok(()),
            // The ranks disagree about the size of the operation.
            _ => Err(Fault::truncated(source as usize, bytes, bytes + lost)),
        }
    }

    /// Waits, as [`CommView::wait`], for a receive of exactly `len` bytes from `from`.
    ///
    /// # Errors
    /// A shorter message is a truncation, too: the sender is in another operation, or passes another length.
    async fn received(&self, request: RequestId, from: usize, len: usize) -> Result<(), Fault> {
        exactly(from, len, self.endpoint.wait(request).await?)
    }

    /// Waits for all of `requests`, also behind one that failed: nothing may come into memory that
    /// the caller has back. Returns the first fault.
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

    /// Sends; what is awaited is the end. Operations start with the call, so that little is kept in
    /// the future.
    pub fn send(&self, to: usize, data: Sge) -> impl Future<Output = Result<(), Fault>> + '_ {
        self.sent(self.isend(to, data))
    }

    async fn sent(&self, send: Option<RequestId>) -> Result<(), Fault> {
        match send {
            None => Ok(()),
            Some(request) => self.wait(request).await,
        }
    }

    /// Receives; what has arrived already goes straight from the fabric to `data`.
    pub fn recv(&self, from: usize, data: Sge) -> impl Future<Output = Result<(), Fault>> + '_ {
        self.recv_by(from, data, Self::irecv)
    }

    /// The same of what comes by [`CommView::isend_to_each`].
    pub fn recv_as_each(
        &self,
        from: usize,
        data: Sge,
    ) -> impl Future<Output = Result<(), Fault>> + '_ {
        self.recv_by(from, data, Self::irecv_as_each)
    }

    fn recv_by(
        &self,
        from: usize,
        data: Sge,
        irecv: fn(&Self, usize, Sge) -> RequestId,
    ) -> impl Future<Output = Result<(), Fault>> + '_ {
        let receive = match self.try_recv(from, data) {
            Some(over) => Err(over),
            None => Ok(irecv(self, from, data)),
        };
        async move {
            match receive {
                Err(over) => over,
                Ok(request) => self.received(request, from, data.len()).await,
            }
        }
    }

    /// `None`: it is to be posted.
    #[inline(never)]
    fn try_recv(&self, from: usize, data: Sge) -> Option<Result<(), Fault>> {
        if self.via == Via::Native {
            return None;
        }
        match self.endpoint.poll_direct(&self.want(from), data) {
            Direct::Got(status) => Some(exactly(from, data.len(), status)),
            Direct::Nothing | Direct::Post | Direct::Other => None,
        }
    }

    /// Sends to one rank and receives from another (or the same) at once.
    pub fn exchange(
        &self,
        to: usize,
        out: Sge,
        from: usize,
        into: Sge,
    ) -> impl Future<Output = Result<(), Fault>> + '_ {
        let receive = self.irecv(from, into);
        let send = self.isend(to, out);
        async move {
            let sent = match send {
                Some(request) => self.wait(request).await,
                None => Ok(()),
            };
            sent.and(self.received(receive, from, into.len()).await)
        }
    }

    /// The same of data in pieces, each a message of its own: as many, of the same lengths, at both ends.
    pub async fn exchange_pieces(
        &self,
        (to, out): (usize, &[Sge]),
        (from, into): (usize, &[Sge]),
    ) -> Result<(), Fault> {
        let receives: RequestBatch = into.iter().map(|&piece| self.irecv(from, piece)).collect();
        let sends: RequestBatch = out.iter().filter_map(|&piece| self.isend(to, piece)).collect();
        let sent = self.wait_all(sends).await;
        sent.and(self.wait_all(receives).await)
    }

    /// Starts to receive `data`, which is passed on to each of `to`. Whoever has waited for it says so by
    /// [`CommView::relay_come`], and waits for all that was added to `sends` before `data` is used for
    /// something else. Streams pass on what has come while more comes, from where it was received.
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

    /// What [`CommView::irelay`] received is there: messages are sent on now.
    pub fn relay_come(&self, data: Sge, to: &[usize], sends: &mut Vec<RequestId>) {
        if let Via::Messages = self.via {
            sends.extend(to.iter().filter_map(|&to| self.isend(to, data)));
        }
    }

    /// Receives `data` and passes it on to each of `to`; the sends are added to `sends`, to be waited
    /// for before `data` is used for something else.
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
            // Nothing may read the caller's memory behind its back.
            for send in sends.drain(before..) {
                self.wait(send).await?;
            }
        }
        ended
    }

    /// A temporary buffer.
    pub fn stage(&self, len: usize) -> Staging {
        self.endpoint.staging().take(len)
    }
}

/// Compares the length of a message from `from` with the expected length: the ranks may disagree about the size of the operation,
/// or be in different operations.
#[inline]
fn exactly(from: usize, len: usize, status: Status) -> Result<(), Fault> {
    let got = status.bytes + status.lost;
    if got == len as u64 { Ok(()) } else { Err(Fault::truncated(from, len as u64, got)) }
}

/// A reduction over contiguous elements.
pub trait ElementReduction {
    /// `right = left op right`, element by element; both have the same length.
    fn combine(&self, left: Sge, right: Sge);

    /// `result = left op right`; all have the same length, and `result` overlaps neither.
    fn combine_into(&self, left: Sge, right: Sge, result: Sge) {
        result.copy_from(right);
        self.combine(left, result);
    }

    /// The operands may be exchanged.
    fn commutes(&self) -> bool;
}

/// A value that grows by operands of lower or higher ranks, kept in two buffers so that the order
/// of operands is the order of ranks: all ranks then get the same bits.
pub struct Accumulator {
    value: Staging,
    spare: Staging,
}

impl Accumulator {
    /// Starts with `data`.
    pub fn new<F: Fabric>(link: &CommView<F>, data: Sge) -> Accumulator {
        let pool = link.endpoint.staging();
        let (value, spare) = (pool.take_for(data), pool.take_for(data));
        value.sge().copy_from(data);
        link.endpoint.fabric().charge(Work::Copy(data.len()));
        Accumulator { value, spare }
    }

    /// The value so far.
    pub fn value(&self) -> Sge {
        self.value.sge()
    }

    /// Where the next operand is to be received.
    pub fn operand(&self) -> Sge {
        self.spare.sge()
    }

    /// Takes the operand in: from lower ranks if `lower`, else from higher ones.
    pub fn take<F: Fabric>(
        &mut self,
        link: &CommView<F>,
        reduce: &(impl ElementReduction + ?Sized),
        lower: bool,
    ) {
        link.endpoint.fabric().charge(Work::Reduce(self.value.len()));
        if lower {
            reduce.combine(self.spare.sge(), self.value.sge());
        } else {
            reduce.combine(self.value.sge(), self.spare.sge());
            std::mem::swap(&mut self.value, &mut self.spare);
        }
    }
}
