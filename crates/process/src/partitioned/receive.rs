//! The receiver: a receive for each message, at its place in the buffer.

use super::{Handshake, not_cancelled, within};
use crate::buffer::BufferPiece;
use crate::messages::NOBODY;
use crate::{
    Active, Buffer, Comm, Engine, Error, Executor, External, NonblockingTask, OperationOutcome,
    class,
};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use weft_fabric::{Counter, Fabric, Sge, Staging};
use weft_p2p::{Endpoint, RequestId, Status, Want};

/// The receiver's request (MPI_Precv_init).
pub struct PartitionedReceive<F: Fabric> {
    comm: Rc<Comm<F>>,
    /// All partitions.
    buffer: Buffer,
    partitions: usize,
    /// `None` if MPI_PROC_NULL is the sender.
    sender: Option<Rc<PartitionSender<F>>>,
    /// The round under way. `None` while the request is not active.
    round: RefCell<Option<Receiving<F>>>,
}

struct Receiving<F: Fabric> {
    task: NonblockingTask,
    parts: Rc<Parts<F>>,
}

impl<F: Fabric> PartitionedReceive<F> {
    /// Makes the request. Local, because the handshake may come at any time. `buffer` holds all partitions, so its number of
    /// elements is a multiple of `partitions`. If `from` is `None`, nobody sends.
    pub fn new(
        comm: &Rc<Comm<F>>,
        buffer: Buffer,
        partitions: usize,
        from: Option<usize>,
        tag: i32,
    ) -> Rc<PartitionedReceive<F>> {
        assert!(partitions > 0 && buffer.count().is_multiple_of(partitions));
        let sender = from.map(|from| PartitionSender::expect(comm, from, tag));
        let (comm, round) = (comm.clone(), RefCell::new(None));
        Rc::new(PartitionedReceive { comm, buffer, partitions, sender, round })
    }

    /// Begins a round (MPI_Start).
    pub fn start(self: &Rc<Self>) -> Active {
        let Some(sender) = &self.sender else { return Active::Done(NOBODY) };
        let engine = self.comm.engine();
        let parts = Rc::new(Parts {
            engine: engine.clone(),
            sender: sender.clone(),
            buffer: self.buffer.clone(),
            piece: self.buffer.writable(engine.endpoint().staging()),
            messages: RefCell::default(),
            failed: RefCell::default(),
        });
        let task = engine.spawn_by(Executor::Anybody, receive(parts.clone()));
        *self.round.borrow_mut() = Some(Receiving { task, parts });
        Active::External(self.clone())
    }

    /// Returns true if all bytes of a partition have arrived (MPI_Parrived). Always true for a request that is not active. The call
    /// looks only at messages that have arrived, and progresses nothing.
    pub fn arrived(&self, partition: i32) -> Result<bool, Error> {
        let partition = within(partition, self.partitions, "partition")?;
        match &*self.round.borrow() {
            Some(round) => round.parts.have(partition, self.partitions),
            None => Ok(true),
        }
    }
}

impl<F: Fabric> External for PartitionedReceive<F> {
    fn poll(&self) -> Option<OperationOutcome> {
        let mut slot = self.round.borrow_mut();
        let round = slot.take_if(|round| round.task.is_over())?;
        let error = round.task.result().and_then(Result::err);
        Some(OperationOutcome { status: round.parts.status(), error })
    }

    fn is_over(&self) -> bool {
        self.round.borrow().as_ref().is_none_or(|round| round.task.is_over())
    }

    fn peek(&self) -> Option<OperationOutcome> {
        let round = self.round.borrow();
        let over = round.as_ref().filter(|round| round.task.is_over())?;
        Some(OperationOutcome::of(over.parts.status()))
    }

    fn cancel(&self) -> Result<(), Error> {
        Err(not_cancelled())
    }
}

/// The sender, with the facts that the receiver knows of it.
struct PartitionSender<F: Fabric> {
    endpoint: Rc<Endpoint<F>>,
    /// The receive of the handshake, and the counter value at which it may be complete.
    request: RequestId,
    wait: (Counter, u64),
    memory: Staging,
    handshake: RefCell<Option<Result<Handshake, Error>>>,
    /// Matching criteria of the sender's messages, except their context and tag.
    want: Want,
    rank: usize,
    tag: i32,
    /// Number of refused rounds that still have messages to discard.
    refused: Cell<u64>,
}

impl<F: Fabric> PartitionSender<F> {
    /// Posts the receive of the handshake. The handshake must be received even if the request is freed first, because otherwise a
    /// later request would receive this handshake.
    fn expect(comm: &Rc<Comm<F>>, rank: usize, tag: i32) -> Rc<PartitionSender<F>> {
        let endpoint = comm.engine().endpoint();
        let memory = endpoint.staging().take(Handshake::LEN);
        let want = comm.want_in(comm.handshakes(), rank, tag);
        let request = endpoint.irecv(&want, memory.sge());
        let sender = Rc::new(PartitionSender {
            endpoint: endpoint.clone(),
            request,
            wait: endpoint.wait_of(request),
            memory,
            handshake: RefCell::default(),
            want,
            rank,
            tag,
            refused: Cell::new(0),
        });
        let expecting = sender.clone();
        comm.engine()
            .spawn_by(Executor::Anybody, async move { expecting.handshaken().await.map(|_| ()) });
        sender
    }

    async fn handshaken(&self) -> Result<Handshake, Error> {
        loop {
            if let Some(handshake) = &*self.handshake.borrow() {
                return handshake.clone();
            }
            if let Some(status) = self.endpoint.finish(self.request) {
                let mut bytes = [0; Handshake::LEN];
                self.memory.sge().read(&mut bytes);
                let whole = status.bytes == Handshake::LEN as u64 && status.lost == 0;
                let handshake = Handshake::decode(&bytes).filter(|_| whole);
                let (peer, tag) = (self.rank, self.tag);
                let text = || format!("rank {peer} sent a senseless handshake with tag {tag}");
                let handshake = handshake.ok_or_else(|| Error::new(class::INTERN, text()));
                *self.handshake.borrow_mut() = Some(handshake);
                continue;
            }
            self.endpoint.until(self.wait.0, self.wait.1).await?;
        }
    }

    /// Discards the messages of a refused round. Does so in the background, because the sender may never begin the round. Otherwise
    /// the messages would use up the sender's credit, and match a later round. If there are several refused rounds, only the first
    /// has receives posted.
    fn discard(self: &Rc<Self>, engine: &Engine<F>, handshake: Handshake) {
        self.refused.set(self.refused.get() + 1);
        if self.refused.get() > 1 {
            return;
        }
        let sender = self.clone();
        engine.spawn_by(Executor::Anybody, async move {
            while sender.refused.get() > 0 {
                let messages: Vec<RequestId> = (0..handshake.partitions)
                    .map(|i| sender.post(handshake, i, Sge::EMPTY))
                    .collect();
                for message in messages {
                    sender.endpoint.wait(message).await?;
                }
                sender.refused.set(sender.refused.get() - 1);
            }
            Ok(())
        });
    }

    /// Posts the receive of message `i`.
    fn post(&self, handshake: Handshake, i: usize, into: Sge) -> RequestId {
        let want = Want { context: handshake.context, tag: Some(i as i32), ..self.want };
        self.endpoint.irecv(&want, into)
    }
}

/// The messages of one round.
struct Parts<F: Fabric> {
    engine: Rc<Engine<F>>,
    sender: Rc<PartitionSender<F>>,
    buffer: Buffer,
    /// The buffer itself, or staging memory if the buffer has gaps.
    piece: BufferPiece,
    /// The receives by number, once the handshake has come. `None`: the receive is complete, and its bytes are in their place.
    messages: RefCell<Vec<Option<RequestId>>>,
    failed: RefCell<Option<Error>>,
}

async fn receive<F: Fabric>(parts: Rc<Parts<F>>) -> Result<(), Error> {
    let result = parts.receive().await;
    *parts.failed.borrow_mut() = result.clone().err();
    result
}

impl<F: Fabric> Parts<F> {
    async fn receive(&self) -> Result<(), Error> {
        let endpoint = &self.sender.endpoint;
        let handshake = self.sender.handshaken().await?;
        if let Err(refusal) = self.check(handshake) {
            self.sender.discard(&self.engine, handshake);
            return Err(refusal);
        }
        let each = handshake.bytes / handshake.partitions;
        let post = |i: usize| Some(self.sender.post(handshake, i, self.place(i, each)));
        *self.messages.borrow_mut() = (0..handshake.partitions).map(post).collect();
        let mut all = Ok(());
        // Waits for all messages, even if a message has failed, because no message may arrive in memory that the program uses
        // again.
        for i in 0..handshake.partitions {
            loop {
                match self.look(i) {
                    Ok(true) => break,
                    Ok(false) => {}
                    Err(error) => {
                        all = all.and(Err(error));
                        break;
                    }
                }
                let id = self.messages.borrow()[i];
                let (counter, target) = endpoint.wait_of(id.expect("a look found it open"));
                endpoint.until(counter, target).await?;
            }
        }
        all
    }

    /// Checks that the sender sends the awaited number of bytes: "Send-side and receive-side buffers must be identical in size"
    /// (MPI 5.0, section 4.2.1). A larger receive buffer is also refused, because some of its partitions would never arrive.
    fn check(&self, handshake: Handshake) -> Result<(), Error> {
        let (room, PartitionSender { rank, tag, .. }) = (self.buffer.len(), &*self.sender);
        let Handshake { bytes, partitions, .. } = handshake;
        if bytes == room {
            return Ok(());
        }
        let class = if bytes > room { class::TRUNCATE } else { class::COUNT };
        let text = format!(
            "rank {rank} sends {bytes} bytes with tag {tag}, in {partitions} partitions, but the \
             partitions to receive have {room} together: both sides of a partitioned message have \
             the same number of bytes (MPI 5.0, section 4.2.1)"
        );
        Err(Error::new(class, text))
    }

    /// Returns the memory into which message `i` of `each` bytes is received.
    fn place(&self, i: usize, each: usize) -> Sge {
        self.piece.sge.part(i * each, each)
    }

    /// Returns true if message `i` is in its place. A message that has arrived is moved there first.
    fn look(&self, i: usize) -> Result<bool, Error> {
        let mut messages = self.messages.borrow_mut();
        let Some(id) = messages[i] else { return Ok(true) };
        let Some(status) = self.sender.endpoint.finish(id) else { return Ok(false) };
        let each = self.buffer.len() / messages.len();
        messages[i] = None;
        if status.bytes != each as u64 || status.lost > 0 {
            let (rank, got) = (self.sender.rank, status.bytes + status.lost);
            let text = format!("partition {i} of rank {rank} has {got} bytes, not {each}");
            return Err(Error::new(class::INTERN, text));
        }
        if self.piece.staging.is_some() {
            self.buffer.unpack_at(i * each, self.place(i, each));
        }
        Ok(true)
    }

    /// Returns true if all messages that overlap part `part` of `parts` have arrived.
    fn have(&self, part: usize, parts: usize) -> Result<bool, Error> {
        if let Some(error) = &*self.failed.borrow() {
            return Err(error.clone());
        }
        let messages = self.messages.borrow().len();
        if messages == 0 {
            return Ok(false);
        }
        for i in overlapping(part, parts, messages) {
            if !self.look(i)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn status(&self) -> Status {
        let bytes = self.buffer.len() as u64;
        let PartitionSender { rank, tag, .. } = *self.sender;
        Status { source: rank as i32, tag, bytes, ..Status::default() }
    }
}

/// Returns the messages that overlap part `part` of `parts` equal parts. There are `messages` messages of equal length.
fn overlapping(part: usize, parts: usize, messages: usize) -> std::ops::Range<usize> {
    part * messages / parts..((part + 1) * messages).div_ceil(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_lies_in_the_messages_that_share_bytes_with_it() {
        for parts in 1..=12 {
            for messages in 1..=12 {
                // Lengths in a unit in which the length of a part and the length of a message are whole numbers.
                let (part_len, message_len) = (messages, parts);
                for part in 0..parts {
                    let mine = part * part_len..(part + 1) * part_len;
                    let shares = |&m: &usize| {
                        m * message_len < mine.end && (m + 1) * message_len > mine.start
                    };
                    let found: Vec<usize> = (0..messages).filter(shares).collect();
                    let said: Vec<usize> = overlapping(part, parts, messages).collect();
                    assert_eq!(said, found, "part {part} of {parts} in {messages}");
                }
            }
        }
    }
}
